//! The rulebook's files as bytes, from a folder or from the binary, and their digest.
//!
//! Files are not parsed here; trees of the embedded files are generated at build time.

use super::problems::{Problem, Problems};
use conformant_base::sorted::SortedMap;
use conformant_specs::FILES;
use conformant_yaml::BYTES_MAX;
use conformant_yaml::Form;
use conformant_yaml::Node;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::path::Path;

/// The tree of an embedded file, by its path in the rulebook or in the project; `None` if the bytes differ, or if reading
/// them reports a problem.
pub(super) fn embedded_tree(path: &str, bytes: &[u8]) -> Option<Node> {
    let file = conformant_specs::file(path.strip_prefix("specs/").unwrap_or(path))?;
    if file.bytes != bytes || file.tree.is_empty() {
        return None;
    }
    Form(file.tree).node()
}

/// Bytes by path inside the folder, with `/` between names. Hidden files are omitted.
pub(super) type Sources = SortedMap<String, Cow<'static, [u8]>>;

/// The files that the binary was built with.
pub(super) fn embedded() -> Sources {
    FILES
        .iter()
        .map(|file| (file.path.to_owned(), Cow::Borrowed(file.bytes)))
        .collect()
}

/// The depth of the deepest files that are read. Deeper folders are reported.
const DEPTH_MAX: usize = 8;

/// All regular files under `root`.
pub(super) fn from_dir(root: &Path, problems: &mut Problems) -> Sources {
    let mut sources = Sources::new();
    let entries = walkdir::WalkDir::new(root)
        .max_depth(DEPTH_MAX)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|e| e.depth() == 0 || !e.file_name().to_string_lossy().starts_with('.'));
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(root).display().to_string();
                let why = error
                    .io_error()
                    .map_or_else(|| error.to_string(), ToString::to_string);
                problems.push(Problem::of_file(&path, format!("cannot be read: {why}")));
                continue;
            }
        };
        let path = slashes(entry.path().strip_prefix(root).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            if entry.depth() == DEPTH_MAX {
                let why = format!(
                    "is not read: a file may be in at most {} folders",
                    DEPTH_MAX - 1
                );
                problems.push(Problem::of_file(&path, why));
            }
            continue;
        }
        match read(&entry) {
            Ok(bytes) => {
                sources.insert(path, bytes.into());
            }
            Err(error) => problems.push(error.problem(&path)),
        }
    }
    sources
}

/// The reason why a file is not part of the rulebook; printed after its path.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("is not a regular file")]
    Irregular,
    #[error("is too large: {0} bytes")]
    TooLarge(u64),
    #[error(transparent)]
    Gone(#[from] walkdir::Error),
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
}

impl SourceError {
    fn problem(&self, path: &str) -> Problem {
        let problem = Problem::of_file(path, self.to_string());
        match self {
            Self::Irregular | Self::TooLarge(_) => {
                problem.help("only regular files of at most 8 MiB are read")
            }
            Self::Gone(_) | Self::Unreadable(_) => problem,
        }
    }
}

/// The file's bytes. Only regular files are opened: a pipe would block for ever.
fn read(entry: &walkdir::DirEntry) -> Result<Vec<u8>, SourceError> {
    if !entry.file_type().is_file() {
        return Err(SourceError::Irregular);
    }
    let size = entry.metadata()?.len();
    if size > BYTES_MAX as u64 {
        return Err(SourceError::TooLarge(size));
    }
    Ok(std::fs::read(entry.path())?)
}

fn slashes(path: &Path) -> String {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    names.join("/")
}

/// SHA-256 of the paths and bytes of the selected files, each preceded by its length, in
/// hexadecimal.
pub(super) fn digest(sources: &Sources, is_included: impl Fn(&str) -> bool) -> String {
    let mut hash = Sha256::new();
    for (path, bytes) in sources.iter().filter(|(path, _)| is_included(path)) {
        for part in [path.as_bytes(), bytes] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    hex(&hash.finalize())
}

/// Lower-case hexadecimal digits.
///
/// # Panics
///
/// Never: a nibble is a hex digit.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|nibble| char::from_digit(u32::from(nibble), 16).expect("a nibble is a hex digit"))
        .collect()
}
