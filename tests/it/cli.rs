//! Sessions of the command line: each file in `tests/it/cmd` is one.
//!
//! `BLESS=1 cargo test` writes the present output into the files; read the diff.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

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
    trycmd::TestCases::new()
        .env("CI", "")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .register_bin(
            "conformant",
            std::path::Path::new(env!("CARGO_BIN_EXE_conformant")),
        )
        .case("tests/it/cmd/*.md");
}
