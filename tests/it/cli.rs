//! Sessions of the command line: each file in `tests/it/cmd` is one. A sample of them runs, and those of the last commit.
//!
//! `BLESS=1 cargo test` writes the present output into the files; read the diff.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::program::{changed_files, files, one_in, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable of `trycmd` for `BLESS`.
const OVERWRITE: (&str, &str) = ("TRYCMD", "overwrite");

#[test]
fn sessions_go_as_written() {
    let blessing = std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none();
    if blessing && std::env::var_os(OVERWRITE.0).is_none() {
        let this = std::env::current_exe().expect("the test knows itself");
        let status = Command::new(this)
            .args(["--exact", "cli::sessions_go_as_written"])
            .env(OVERWRITE.0, OVERWRITE.1)
            .status()
            .expect("the test can be started again");
        assert!(status.success(), "blessing failed");
        return;
    }
    let path = |file: &PathBuf| file.strip_prefix(root()).map(Path::to_owned);
    let all = files(&root().join("tests/it/cmd"), &["md"]);
    let all: Vec<PathBuf> = all.iter().flat_map(path).collect();
    assert!(all.len() > 4, "{all:?}");
    let changed = changed_files("tests/it/cmd");
    let sample = match blessing {
        true => all.clone(),
        false => one_in(2, all.clone()),
    };
    let is_changed = |file: &Path| changed.iter().any(|name| Path::new(name) == file);
    let cases = trycmd::TestCases::new();
    for file in all {
        if sample.contains(&file) || is_changed(&file) {
            cases.case(file);
        }
    }
    cases
        .env("CI", "")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .register_bin("conformant", Path::new(env!("CARGO_BIN_EXE_conformant")))
        .run();
}
