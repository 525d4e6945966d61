//! Helpers of the tests: files of the project, and the program as a process.

use std::io::{BufRead, BufReader};
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
    command.env_remove("BLESS").env_remove("CI");
    command
}

/// Runs it; returns exit code, standard output and standard error.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = conformant(folder, arguments)
        .output()
        .expect("the program can be started");
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

/// `conformant serve` on a free port; stopped when dropped.
pub(crate) struct Served {
    child: Child,
    /// Its address.
    pub(crate) url: String,
    /// What it prints after its address.
    pub(crate) output: BufReader<ChildStdout>,
}

impl Served {
    /// Starts it with further arguments and waits for its address.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["serve", "--port", "0"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let mut child = conformant(folder, &all)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
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
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first valid fixture of a type in the committed set.
pub(crate) fn first_fixture(kind: &str) -> serde_json::Value {
    let file = root().join(format!("fixtures/{kind}.ndjson"));
    let text = std::fs::read_to_string(file).expect("it is committed");
    serde_json::from_str(text.lines().next().expect("a line")).expect("it is JSON")
}
