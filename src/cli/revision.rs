//! Reads a folder from a git revision into a temporary folder.
//!
//! Only reads objects: neither index nor work tree is touched, and nothing is fetched.

use super::Failure;
use std::path::{Component, Path};
use std::process::Command;
use tempfile::TempDir;

/// The folder of a revision without a path.
const SPECS: &str = "specs";

/// Writes the files of `REVISION:FOLDER`, or of the rulebook in `REVISION`, into a folder.
pub(super) fn check_out(revision: &str) -> Result<TempDir, Failure> {
    let named = if revision.contains(':') {
        revision.to_owned()
    } else {
        format!("{revision}:{SPECS}")
    };
    let tree = git(&[
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &named,
    ])
    .map_err(|why| Failure::Usage(format!("{revision} names no folder in git{why}")))?;
    let tree = String::from_utf8_lossy(&tree).trim().to_owned();
    let trouble = |why| Failure::Trouble(format!("failed to read {named} from git{why}"));
    let list = git(&["ls-tree", "-r", "-z", &tree]).map_err(trouble)?;
    let dir = tempfile::tempdir().map_err(|e| trouble(GitError::Folder(e)))?;
    for (object, path) in entries(&String::from_utf8_lossy(&list)) {
        let bytes = git(&["cat-file", "blob", object]).map_err(trouble)?;
        write(dir.path(), path, &bytes).map_err(|source| {
            let path = path.to_owned();
            trouble(GitError::File { path, source })
        })?;
    }
    Ok(dir)
}

/// Whether the current folder belongs to a git repository.
pub(super) fn is_in_repository() -> bool {
    git(&["rev-parse", "--git-dir"]).is_ok()
}

/// Object and path of each regular file: `100644 blob <object>\t<path>`, each terminated by a zero byte.
fn entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.split_terminator('\0').filter_map(|entry| {
        let (about, path) = entry.split_once('\t')?;
        let mut words = about.split(' ');
        let is_file = words.next()?.starts_with("100") && words.next()? == "blob";
        let is_inside = Path::new(path)
            .components()
            .all(|c| matches!(c, Component::Normal(_)));
        (is_file && is_inside).then_some((words.next()?, path))
    })
}

fn write(dir: &Path, path: &str, bytes: &[u8]) -> std::io::Result<()> {
    let to = dir.join(path);
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(to, bytes)
}

/// A git error, as the end of a sentence.
#[derive(Debug, thiserror::Error)]
enum GitError {
    #[error(": failed to start git: {0}")]
    Start(std::io::Error),
    #[error(": {0}")]
    Refused(String),
    #[error("")]
    Quiet,
    #[error(": {0}")]
    Folder(std::io::Error),
    #[error(": {path}: {source}")]
    File {
        path: String,
        source: std::io::Error,
    },
}

fn git(args: &[&str]) -> Result<Vec<u8>, GitError> {
    let output = Command::new("git")
        .args(args)
        .output()
        .map_err(GitError::Start)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stderr = stderr.trim();
    Err(if stderr.is_empty() {
        GitError::Quiet
    } else {
        GitError::Refused(stderr.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_extracted() {
        let list = "100644 blob aa\tcommon.yaml\x00120000 blob bb\tlink\x00160000 commit cc\tmodule\0\
                    100755 blob dd\tevents/a b/1.yaml\x00100644 blob ee\t../outside\0";
        let found: Vec<_> = entries(list).collect();
        assert_eq!(found, [("aa", "common.yaml"), ("dd", "events/a b/1.yaml")]);
    }

    #[test]
    fn an_unknown_revision_is_an_error() {
        let error = check_out("no-such-revision-here")
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("no-such-revision-here names no folder in git"),
            "{error}"
        );
        assert!(check_out("--help").is_err());
    }
}
