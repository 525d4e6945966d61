//! Sessions of the command line: each file in `tests/it/cmd` is one. A sample of them runs, and those of the last commit.
//!
//! `BLESS=1 cargo test` writes the present output into the files; read the diff.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::program::{Folder, Served, changed_files, conformant, ended, files, one_in, root};
use crate::sessions::words;
use regex::Regex;
use std::path::PathBuf;

const FENCE: &str = "```console\n$ conformant";

/// A folder with everything of the project but the reports of earlier runs.
fn linked_project() -> Folder {
    let folder = Folder::new();
    for entry in std::fs::read_dir(root()).expect("the project is a folder") {
        let entry = entry.expect("it can be read");
        let name = entry.file_name();
        if name != "reports" && name != "target" {
            std::os::unix::fs::symlink(entry.path(), folder.join(name)).expect("it can be linked");
        }
    }
    folder
}

/// Runs a command line; returns its exit code, if it is not 0, and its output as pages show them.
fn shown(folder: &Folder, line: &str) -> String {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = conformant(folder, &words);
    let (code, out, err) = ended(command.env("NO_COLOR", "1").env("COLUMNS", "100"));
    let code = match code {
        0 => String::new(),
        code => format!("? {code}\n"),
    };
    format!("{code}{out}{err}\n")
}

/// Whether a page shows this. There, `...` stands for any lines, and `[..]` for any part of a line.
fn is_shown(expected: &str, actual: &str) -> bool {
    let any = regex::escape(expected)
        .replace("\n\\.\\.\\.\n", "\n(?s:.*\n)?")
        .replace("\\[\\.\\.\\]", ".*");
    let pattern = Regex::new(&format!("^{any}$")).expect("it is escaped");
    pattern.is_match(actual)
}

/// Runs the sessions of a page. Returns the page with their output, unless it shows the same.
fn played(folder: &Folder, page: &str) -> String {
    let (head, sessions) = page.split_once(FENCE).expect("a page has a session");
    let mut written = head.to_owned();
    for session in sessions.split(FENCE) {
        let (line, rest) = session.split_once('\n').expect("a command is a line");
        let (expected, after) = rest.split_once("```\n").expect("a session has an end");
        let actual = shown(folder, line);
        let output = match is_shown(expected, &actual) {
            true => expected,
            false => &actual,
        };
        written += &[FENCE, line, "\n", output, "```\n", after].concat();
    }
    written
}

#[test]
fn sessions_go_as_written() {
    let blessing = std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none();
    let all = files(&root().join("tests/it/cmd"), &["md"]);
    assert!(all.len() > 4, "{all:?}");
    let changed = changed_files("tests/it/cmd");
    let is_changed = |file: &PathBuf| changed.iter().any(|name| file.ends_with(name));
    let mut sample = match blessing {
        true => all.clone(),
        false => one_in(3, all.clone()),
    };
    sample.extend(all.into_iter().filter(is_changed));
    sample.sort();
    sample.dedup();
    let folder = linked_project();
    for file in sample {
        let page = std::fs::read_to_string(&file).expect("it can be read");
        let now = played(&folder, &page);
        if blessing {
            std::fs::write(&file, now).expect("the project is writable");
        } else {
            let name = file.display();
            assert!(page == now, "{name} differs:\n{}", difference(&page, &now));
        }
    }
}

/// The lines that differ.
fn difference(expected: &str, actual: &str) -> String {
    let diff = similar::TextDiff::from_lines(expected, actual);
    diff.unified_diff().to_string()
}

#[test]
fn sessions_match_texts_in_place_of_dots_only() {
    for (expected, actual, is_same) in [
        ("a\n", "a\n", true),
        ("a\n", "a\nb\n", false),
        ("a.c\n", "abc\n", false),
        ("a [..] d\n", "a b c d\n", true),
        ("a [..] d\n", "a b\nd\n", false),
        ("a\n...\nd\n", "a\nb\nc\nd\n", true),
        ("a\n...\nd\n", "a\nd\n", true),
        ("a\n...\nd\n", "a\nb\n", false),
    ] {
        assert_eq!(is_shown(expected, actual), is_same, "{expected} {actual}");
    }
}

#[test]
fn mistakes_about_files_are_errors_of_usage() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("empty")).expect("it can be created");
    folder.write("table.parquet", b"PAR1\x15\x04");
    folder.write("cut.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xabV");
    for (line, expected) in [
        ("run --specs empty", "empty has no rulebook"),
        (
            "run --specs empty --target flow=http://h --hooks http://h",
            "empty has no rulebook",
        ),
        (
            "doctor --specs empty --target all=http://h",
            "empty has no rulebook",
        ),
        ("list rules --specs empty", "empty has no rulebook"),
        ("diff table.parquet table.parquet", "it is Parquet"),
        ("init --from table.parquet rulebook", "it is Parquet"),
        ("check cut.gz --as flow/execution", "failed to read cut.gz"),
    ] {
        let (_, err) = folder.run(2, line);
        assert!(err.contains(expected), "{line}: {err}");
    }
}

#[test]
fn failed_scenarios_of_a_target_are_not_run_again_without_it() {
    let folder = Folder::new();
    folder.run(
        3,
        "run --filter flow/read-flows/happy --target flow=http://127.0.0.1:1",
    );
    let (_, err) = folder.run(2, "run --rerun last-failed");
    assert!(err.contains("--target flow=http://127.0.0.1:1"), "{err}");

    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    let options = served.options();
    folder.run(1, &format!("run --filter flow/read-flows/happy {options}"));
    let advice = format!("configure it again: {options}");
    let auth = format!("--target auth={}/auth", served.url);
    for given in ["", &auth] {
        let (_, err) = folder.run(2, &format!("run --rerun last-failed {given}"));
        assert!(err.contains(&advice), "{given}: {err}");
    }
    let (_, err) = folder.run(
        4,
        &format!("run --rerun last-failed --filter chat/* {options}"),
    );
    assert!(
        err.contains("selected by --filter 'chat/*' --rerun last-failed ("),
        "{err}"
    );
    folder.run(1, &format!("run --rerun last-failed {options}"));
}

#[test]
fn a_run_without_reports_names_those_of_an_earlier_run_and_removes_them_in_ci() {
    let folder = Folder::new();
    folder.run(
        0,
        "run --reference --filter flow/read-flows/happy --prove off",
    );
    let nothing = "run --reference --filter flow/nosuch";
    let (_, err) = folder.run(4, nothing);
    let both = "reports/run.json, reports/junit.xml";
    let note = format!("no reports were written: an earlier run wrote {both}");
    assert!(err.contains(&note), "{err}");
    let (code, _, err) = ended(
        folder
            .command(&format!("{nothing} --dry-run"))
            .env("CI", "1"),
    );
    assert!(code == 4 && !err.contains("reports"), "{err}");
    let (_, err) = folder.run(2, "run --rerun last-failed");
    assert!(
        err.contains("everything in reports/run.json (target: built-in reference) passed"),
        "{err}"
    );
    let (_, _, err) = ended(folder.command(nothing).env("CI", "1"));
    assert!(err.contains(&format!("removed {both}")), "{err}");
    assert!(!folder.join("reports/junit.xml").exists());
}

#[test]
fn a_refused_run_creates_no_folder_and_a_run_names_the_one_that_it_creates() {
    let folder = Folder::new();
    let new = folder.join("new").display().to_string();
    let line = |filter: &str| {
        format!("run --reference --prove off --filter {filter} --report json={new}/deep/run.json")
    };
    std::fs::create_dir(folder.join("a-folder")).expect("it can be created");
    let refused = format!("{} --report html=a-folder", line("flow/read-flows/happy"));
    let (_, err) = folder.run(2, &refused);
    assert!(!err.contains("created"), "{err}");
    assert!(!folder.join("new").exists());
    let (_, err) = folder.run(0, &line("flow/read-flows/happy"));
    assert!(err.contains(&format!("created {new}\n")), "{err}");
}

#[test]
fn the_summary_of_a_ci_job_keeps_what_earlier_commands_wrote() {
    let folder = Folder::new();
    folder.write("summary.md", "earlier\n");
    let lines = [
        "run --reference -q --prove off --filter flow/read-flows/happy --report json=run.json \
         --report markdown=summary.md",
        "compare run.json run.json --report markdown=summary.md",
    ];
    for line in lines {
        let mut command = folder.command(line);
        let (code, out, err) = ended(command.env("GITHUB_STEP_SUMMARY", "summary.md"));
        assert_eq!(code, 0, "{line}: {out}{err}");
    }
    let summary = folder.read("summary.md");
    assert!(summary.starts_with("earlier\n\n"), "{summary}");
    assert!(summary.contains("passed: "), "{summary}");
    assert!(summary.contains("`run.json` to `run.json`"), "{summary}");
    folder.run(0, lines[0]);
    assert!(!folder.read("summary.md").contains("earlier"));
}

#[test]
fn files_that_are_not_reports_stay_in_ci_when_a_run_is_refused() {
    let folder = Folder::new();
    folder.write("package.json", r#"{"name":"mine"}"#);
    folder.write("notes.md", "notes");
    folder.write("summary.md", "");
    let line = "run --reference --filter flow/nosuch --report json=package.json \
                --report markdown=notes.md --report markdown=summary.md";
    let (_, _, err) = ended(folder.command(line).env("CI", "1"));
    let note = "left unchanged, because not known to be reports: package.json, notes.md";
    assert!(err.contains(note), "{err}");
    assert!(
        !err.contains("removed") && !err.contains("earlier"),
        "{err}"
    );
    assert!(folder.join("package.json").exists() && folder.join("notes.md").exists());
}

#[test]
fn a_baseline_of_nothing_and_an_update_of_a_missing_file_are_refused() {
    let folder = Folder::new();
    folder.run(
        3,
        "run --filter flow/read-flows/happy --target flow=http://127.0.0.1:1 --report dir=out",
    );
    let (_, err) = folder.run(2, "baseline out --reason x --owner y");
    assert!(err.contains("the run judged nothing"), "{err}");
    folder.run(
        0,
        "run --reference --filter flow/read-flows/happy --prove off --report json=run.json",
    );
    let (_, err) = folder.run(2, "baseline run.json --update --out typo.yaml");
    assert!(err.contains("typo.yaml"), "{err}");
    assert!(!folder.join("typo.yaml").exists());
}

#[test]
fn stored_runs_of_one_second_are_listed_in_their_order() {
    let folder = Folder::new();
    let line = "run --reference --filter flow/read-flows/happy --prove off --report json=run.json";
    folder.run(0, line);
    let record = folder.read("run.json");
    for name in ["", "-2", "-10"] {
        folder.write(&format!("h/2027-01-31T10-20-30Z{name}.json"), &record);
    }
    let (out, _) = folder.run(0, "history h");
    let runs: Vec<&str> = out
        .lines()
        .filter(|line| line.starts_with("2027"))
        .collect();
    let names = runs
        .iter()
        .map(|line| line.split(' ').next().unwrap_or_default());
    let expected = ["", "-2", "-10"].map(|n| format!("2027-01-31T10-20-30Z{n}"));
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let (_, err) = folder.run(2, "history nodir");
    assert!(err.contains("nodir does not exist"), "{err}");
}

#[test]
fn the_current_folder_is_not_replaced() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("set")).expect("it can be created");
    let mut command = conformant(&folder.join("set"), &["fixtures", "generate", "--out", "."]);
    let (code, _, err) = ended(&mut command);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("contains the current folder"), "{err}");
}
