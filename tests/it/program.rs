//! Helpers of the tests: files of the project, and the program as a process.

use crate::hostile::command;
use crate::sessions::words;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::LazyLock;

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files with these extensions below a folder, sorted; without extensions every file.
pub(crate) fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let is_wanted = |path: &Path| {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        endings.is_empty() || endings.contains(&ending.as_ref())
    };
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_entry(|e| {
            !["target", ".git", "reports"]
                .iter()
                .any(|n| e.file_name() == *n)
                || e.depth() == 0
        })
        .map(|entry| entry.expect("the project's folders are readable"))
        .filter(|entry| entry.file_type().is_file() && is_wanted(entry.path()))
        .map(walkdir::DirEntry::into_path)
        .collect();
    files.sort();
    files
}

/// Copies folders of the project, for a test to edit.
pub(crate) fn copy_of(folders: &[&str], into: &Path) {
    for entry in folders
        .iter()
        .flat_map(|f| walkdir::WalkDir::new(root().join(f)))
    {
        let entry = entry.expect("the project's folders are readable");
        let below = entry
            .path()
            .strip_prefix(root())
            .expect("it lies below the root");
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(into.join(below)).expect("the disk is writable");
        } else {
            std::fs::copy(entry.path(), into.join(below)).expect("the disk is writable");
        }
    }
}

/// The program with arguments, in a folder of its own, without the caller's configuration.
pub(crate) fn conformant(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformant"));
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CONFORMANT_") {
            command.env_remove(name);
        }
    }
    for name in [
        "BLESS",
        "CI",
        "CODEBUILD_BUILD_ID",
        "JENKINS_URL",
        "TEAMCITY_VERSION",
        "TF_BUILD",
    ] {
        command.env_remove(name);
    }
    command
}

/// A new folder in which a test runs the program; removed when dropped.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("the disk is writable"))
    }

    /// The same with a `conformant.yaml` with tight limits.
    pub(crate) fn with_limits() -> Self {
        Self(command::folder())
    }

    /// The names of its files and folders, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = self.read_dir().expect("it is a folder");
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.join(name);
        let parent = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(parent).expect("the disk is writable");
        std::fs::write(path, content).expect("the disk is writable");
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The content of a JSON file.
    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The program with a command line.
    pub(crate) fn command(&self, line: &str) -> Command {
        let words = words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        conformant(self, &words)
    }

    /// Runs a command line; returns exit code, standard output and standard error.
    pub(crate) fn output(&self, line: &str) -> (i32, String, String) {
        ended(&mut self.command(line))
    }

    /// The same for a command line that must end with this exit code.
    pub(crate) fn run(&self, code: i32, line: &str) -> (String, String) {
        let (ended, out, err) = self.output(line);
        assert_eq!(ended, code, "{line}: {out}{err}");
        (out, err)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

/// Runs it; returns exit code, standard output and standard error.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    ended(&mut conformant(folder, arguments))
}

/// The same for a command with an environment of its own.
pub(crate) fn ended(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program can be started");
    let code = status.code().expect("it ends by itself");
    (code, text(&stdout), text(&stderr))
}

/// A number from the environment, such as `FUZZ_SECONDS`.
pub(crate) fn setting(name: &str) -> Option<u64> {
    variable(name)?.parse().ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "settings of the tests, not of the program"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether this is the campaign `samples`, in which tests run all of their cases instead of a sample.
pub(crate) fn is_campaign() -> bool {
    variable("CAMPAIGN").is_some_and(|name| name == "samples")
}

/// Every `n`th item, or all of them in the campaign `samples`.
///
/// The first item depends on `SAMPLE_SEED`, by default the number of commits: `n` commits in a row run every item.
#[expect(
    clippy::print_stdout,
    reason = "a failing test shows how to draw the same sample again"
)]
pub(crate) fn one_in<T>(n: usize, items: Vec<T>) -> Vec<T> {
    if is_campaign() {
        return items;
    }
    let seed = sample_seed();
    println!(
        "sample: one in {n} of {} with SAMPLE_SEED={seed}",
        items.len()
    );
    let first = usize::try_from(seed % n as u64).expect("it is less than n");
    items.into_iter().skip(first).step_by(n).collect()
}

/// Files below a folder of the project that differ from the last commit but one.
pub(crate) fn changed_files(folder: &str) -> Vec<String> {
    let mut git = Command::new("git");
    let changed = git
        .args(["diff", "--name-only", "HEAD~1", "--", folder])
        .current_dir(root())
        .output();
    let names = changed
        .map(|output| text(&output.stdout))
        .unwrap_or_default();
    names.lines().map(str::to_owned).collect()
}

fn sample_seed() -> u64 {
    static COMMITS: LazyLock<u64> = LazyLock::new(|| {
        let mut git = Command::new("git");
        let counted = git
            .args(["rev-list", "--count", "HEAD"])
            .current_dir(root());
        // A copy without history has no commits to count.
        let counted = counted.output().map(|output| text(&output.stdout));
        counted
            .ok()
            .and_then(|n| n.trim().parse().ok())
            .unwrap_or(0)
    });
    setting("SAMPLE_SEED").unwrap_or_else(|| *COMMITS)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server, such as `conformant serve` on a free port; stopped when dropped.
pub(crate) struct Served {
    child: Child,
    /// Its address.
    pub(crate) url: String,
    /// What it prints after its address.
    pub(crate) output: BufReader<ChildStdout>,
}

impl Served {
    /// Starts `conformant serve` with further arguments and waits for its address.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::listen(&mut conformant(folder, &[&["serve"], arguments].concat()))
    }

    /// Starts a command that prints its address, and waits for it.
    pub(crate) fn listen(command: &mut Command) -> Self {
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.expect("the program can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        let mut output = BufReader::new(stdout);
        output.read_line(&mut line).expect("it prints its address");
        let url = line
            .trim()
            .strip_prefix("listening ")
            .expect("the address comes first")
            .to_owned();
        Self { child, url, output }
    }

    /// Ends it by a signal; returns its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let line = format!("kill -INT {}", self.child.id());
        let shell = Command::new("sh").args(["-c", &line]).status();
        assert!(shell.expect("a shell").success());
        // What it still prints must not block it.
        drop(std::io::copy(&mut self.output, &mut std::io::sink()));
        self.child.wait().expect("a child of ours").code()
    }

    /// The options of a run that judges it.
    pub(crate) fn options(&self) -> String {
        format!("--target all={0} --hooks {0}/_control", self.url)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Valid credentials of the reference.
pub(crate) const BASIC: &str = "cmVmZXJlbmNlLWFwaS1rZXk6cmVmZXJlbmNlLWFwaS1zZWNyZXQ=";

/// The first valid fixture of a type in the committed set.
pub(crate) fn first_fixture(kind: &str) -> serde_json::Value {
    let file = root().join(format!("fixtures/{kind}.ndjson"));
    let text = std::fs::read_to_string(file).expect("it is committed");
    serde_json::from_str(text.lines().next().expect("a line")).expect("it is JSON")
}
