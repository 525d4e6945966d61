//! Signals, full or missing disks, closed outputs, and concurrent runs.

use crate::hostile::command::{Running, conformant, reports, run, write};
use crate::hostile::pages::{flows, ok};
use crate::hostile::target::{Act, Target, keep};
use crate::program::{Folder, one_in};
use conformant_base::clock;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A target that stops responding after that many requests.
pub(crate) fn falling_silent_after(answers: usize) -> Target {
    Target::answering(move |asked| {
        if asked.number > answers {
            return vec![Act::Hold];
        }
        keep(flows())
    })
}

/// Soon, for a run with deadlines of a minute.
// Without optimization, and in parallel with other tests, writing the reports takes most of it.
const SOON: Duration = Duration::from_secs(if cfg!(debug_assertions) { 12 } else { 2 });

/// `run` of the scenarios that list flows, with a timeout of a minute. None of them waits.
fn patient_run(folder: &Path, target: &Target) -> Command {
    write(&folder.join("conformant.yaml"), "limits: {timeout: 60s}\n");
    let mut command = conformant(folder);
    command.args(["run", "--filter", "flow/read-flows/*", "--jobs", "2"]);
    command.args(["--target", &format!("flow={}/flow", target.origin())]);
    command.args(["--report", "json=run.json", "--report", "junit=junit.xml"]);
    command
}

/// Waits until the target has received that many requests.
fn until_asked(target: &Target, times: usize) {
    let deadline = clock::monotonic() + Duration::from_secs(60);
    while target.asked().len() < times {
        assert!(
            clock::monotonic() < deadline,
            "only {} requests",
            target.asked().len()
        );
        clock::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_ends_the_run_soon_with_valid_reports() {
    for (signal, exit) in [("INT", 130), ("TERM", 143)] {
        let target = falling_silent_after(4);
        let folder = Folder::with_limits();
        let running = Running::start(&mut patient_run(&folder, &target));
        until_asked(&target, 5);
        let sent = clock::monotonic();
        running.signal(signal);
        let ended = running.end();
        let took = sent.elapsed();
        assert_eq!(ended.exit, Some(exit), "{signal}: {ended:?}");
        assert!(took < SOON, "{signal}: {took:?}");
        let (_, record) = reports(&folder, &ended);
        assert_eq!(record["complete"], false);
        let scenarios = record["scenarios"].as_array().expect("a list");
        let interrupted = scenarios
            .iter()
            .filter(|s| s["reason"] == "the run ended before")
            .count();
        assert!(
            interrupted > 0 && interrupted < scenarios.len(),
            "{interrupted} of {}",
            scenarios.len()
        );
        assert_eq!(record["summary"]["rules"]["error"], 0);
    }
}

#[test]
fn a_closed_terminal_stops_the_run_with_reports() {
    let target = falling_silent_after(4);
    let folder = Folder::with_limits();
    let running = Running::start(&mut patient_run(&folder, &target));
    until_asked(&target, 5);
    running.signal("HUP");
    let ended = running.end();
    assert_eq!(ended.exit, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("stopped by SIGHUP"), "{ended:?}");
    let (_, record) = reports(&folder, &ended);
    assert_eq!(record["complete"], false);
}

#[test]
fn sigpipe_does_not_stop_the_run() {
    let target = falling_silent_after(4);
    let folder = Folder::with_limits();
    let running = Running::start(&mut patient_run(&folder, &target));
    until_asked(&target, 5);
    running.signal("PIPE");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.exit, Some(130), "{ended:?}");
}

/// At any moment: no partial output, and a complete record is marked as such.
#[test]
fn a_signal_at_any_moment_leaves_correct_reports() {
    let whole = {
        let folder = Folder::with_limits();
        let ended = run(short_run(&folder).args(["--report", "json=run.json"]));
        assert_eq!(ended.exit, Some(0), "{ended:?}");
        reports_of_json(&folder);
        ended.took
    };
    for moment in one_in(6, (0..12).collect()) {
        let folder = Folder::with_limits();
        folder.write("run.json", "the old one");
        let running = Running::start(short_run(&folder).args(["--report", "json=run.json"]));
        clock::sleep(whole * moment / 11);
        running.signal_if_there("TERM");
        let ended = running.end();
        let text = folder.read("run.json");
        let record: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let complete = record.as_ref().map(|record| record["complete"] == true);
        let fits = match ended.exit {
            Some(0) => complete == Some(true),
            Some(143) => complete != Some(true) && (record.is_some() || text == "the old one"),
            // Before it installs handlers the process has no exit code of its own.
            None => ended.signal == Some(15) && text == "the old one",
            Some(_) => false,
        };
        assert!(fits, "{moment}: {complete:?} {ended:?}");
        let mut left = folder.names();
        left.retain(|name| ![".git", "conformant.yaml", "run.json"].contains(&name.as_str()));
        // A killed process cannot remove its lock; the next run does.
        left.retain(|name| !name.ends_with(".conformant-lock"));
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Some scenarios against the reference.
fn short_run(folder: &Path) -> Command {
    let mut command = conformant(folder);
    command.args(["run", "--filter", "flow/read-flow*"]);
    command
}

#[test]
fn a_file_that_may_not_grow_further_is_named() {
    let folder = Folder::with_limits();
    let program = env!("CARGO_BIN_EXE_conformant");
    for (line, expected) in [
        (
            format!(
                "ulimit -f 8; {program} run --reference --filter 'flow/read-flows/happy' --report json=run.json"
            ),
            "run.json",
        ),
        (
            format!(
                "ulimit -f 8; {program} fixtures generate --kind flow/flow --count 500 --out set"
            ),
            "set",
        ),
        (
            format!("ulimit -f 8; {program} list rules > rules.txt"),
            "standard output",
        ),
        (
            format!(
                "{program} run --reference --filter 'flow/read-flows/happy' --report junit=x.xml > /dev/full"
            ),
            "standard output",
        ),
        (
            format!("{program} list rules > /dev/full"),
            "standard output",
        ),
        (format!("{program} --help > /dev/full"), "standard output"),
        (
            format!("{program} fixtures generate --kind flow/flow > /dev/full"),
            "standard output",
        ),
    ] {
        let mut command = Command::new("bash");
        command
            .args(["-c", &line])
            .current_dir(&*folder)
            .stdin(Stdio::null());
        let ended = run(&mut command);
        assert_eq!(ended.exit, Some(3), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{line}: {ended:?}");
    }
    assert_eq!(
        folder.names(),
        [".git", "conformant.yaml", "rules.txt", "x.xml"],
        "no strays"
    );
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let folder = Folder::with_limits();
    let target = falling_silent_after(0);
    // A hook that cannot be interrupted is not waited for: two distinct signals suffice, whichever arrives first.
    let running = Running::start(&mut patient_run(&folder, &target));
    until_asked(&target, 1);
    running.signal("INT");
    let sent = clock::monotonic();
    clock::sleep(Duration::from_millis(300));
    // The process may have ended already.
    drop(
        Command::new("sh")
            .args(["-c", "kill -INT $0 2>&-", &running.id().to_string()])
            .status(),
    );
    let ended = running.end();
    assert_eq!(ended.exit, Some(130), "{ended:?}");
    assert!(sent.elapsed() < SOON);
}

/// `timeout` sends the signal to each process of a group and then to the group.
#[test]
fn two_signals_at_once_count_as_one() {
    for _ in 0..2 {
        let folder = Folder::with_limits();
        let target = falling_silent_after(4);
        let running = Running::start(&mut patient_run(&folder, &target));
        until_asked(&target, 5);
        let twice = format!("kill -TERM {0}; kill -TERM {0}", running.id());
        let sent = Command::new("sh").args(["-c", &twice]).status();
        assert!(sent.expect("a shell").success());
        let ended = running.end();
        assert_eq!(ended.exit, Some(143), "{ended:?}");
        reports(&folder, &ended);
    }
}

#[test]
fn a_killed_run_leaves_the_old_reports_and_the_next_one_clears_up() {
    let folder = Folder::with_limits();
    let silent = falling_silent_after(4);
    folder.write("run.json", "the old one");
    let running = Running::start(&mut patient_run(&folder, &silent));
    until_asked(&silent, 5);
    running.signal("KILL");
    assert_eq!(running.end().signal, Some(9));
    let left = folder.read("run.json");
    assert_eq!(left, "the old one");
    assert!(!folder.join("junit.xml").exists());
    let target = falling_silent_after(usize::MAX);
    let mut command = patient_run(&folder, &target);
    command.args(["--filter", "flow/read-flows/happy"]);
    let ended = run(&mut command);
    reports(&folder, &ended);
    assert_eq!(
        folder.names(),
        [".git", "conformant.yaml", "junit.xml", "run.json"]
    );
}

#[test]
fn two_runs_never_write_the_same_report() {
    let folder = Folder::with_limits();
    let target = falling_silent_after(4);
    let first = Running::start(&mut patient_run(&folder, &target));
    until_asked(&target, 5);
    let second = run(&mut patient_run(&folder, &target));
    assert_eq!(second.exit, Some(2), "{second:?}");
    assert!(
        second.stderr.contains("run.json") && second.stderr.contains("another run"),
        "{second:?}"
    );
    first.signal("INT");
    let ended = first.end();
    assert_eq!(ended.exit, Some(130), "{ended:?}");
    reports(&folder, &ended);
}

#[test]
fn the_longest_run_is_cut_short() {
    let folder = Folder::with_limits();
    let target = falling_silent_after(0);
    let mut command = patient_run(&folder, &target);
    command.args(["--global-timeout", "1s"]);
    let ended = run(&mut command);
    assert_eq!(ended.exit, Some(3), "{ended:?}");
    assert!(
        ended.took < Duration::from_secs(20),
        "far from the target's minute: {:?}",
        ended.took
    );
    let (_, record) = reports(&folder, &ended);
    assert_eq!(record["complete"], false);
}

#[test]
fn an_interrupted_run_is_marked_as_incomplete() {
    let folder = Folder::with_limits();
    folder.write("conformant.yaml", "limits: {timeout: 60s}\n");
    let target = Target::answering(|asked| match asked.number {
        1..=3 => keep(ok("[]")),
        _ => vec![Act::Hold],
    });
    let mut command = conformant(&folder);
    command.args(["run", "--filter", "flow/read-flows/*", "--jobs", "1"]);
    command.args(["--target", &format!("flow={}/flow", target.origin())]);
    command.args(["--report", "json=run.json", "--report", "junit=junit.xml"]);
    let ended = run(command.args(["--global-timeout", "2s"]));
    let (_, record) = reports(&folder, &ended);
    assert_eq!(record["complete"], false);
    assert_ne!(record["findings"], serde_json::json!([]), "{ended:?}");
    assert_eq!(ended.exit, Some(3), "{ended:?}");
}

#[test]
fn an_empty_selection_does_not_pass() {
    let folder = Folder::with_limits();
    let ended = run(conformant(&folder).args(["run", "--filter", "flow/no-such/*"]));
    assert_eq!(ended.exit, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("nothing was judged"), "{ended:?}");
}

#[test]
fn a_report_that_cannot_be_written_is_named_and_the_verdict_stays() {
    let folder = Folder::with_limits();
    folder.write("file", "");
    std::fs::create_dir(folder.join("folder")).expect("a folder");
    let target = falling_silent_after(usize::MAX);
    let run_with = |path: &str| {
        let mut command = conformant(&folder);
        command.args(["run", "--filter", "flow/read-flows/happy", "--report"]);
        command.args([&format!("json={path}"), "--report", "junit=other.xml"]);
        command.args(["--target", &format!("flow={}/flow", target.origin())]);
        run(&mut command)
    };
    for path in ["file/run.json", "folder", "/proc/conformant/run.json"] {
        let ended = run_with(path);
        assert_eq!(ended.exit, Some(2), "{path}: {ended:?}");
        assert!(ended.stderr.contains(path), "{path}: {ended:?}");
        assert_eq!(target.asked().len(), 0, "{path}: no request was sent");
    }
    // A full disk shows only when the report is written.
    let ended = run_with("/dev/full");
    assert_eq!(ended.exit, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("/dev/full"), "{ended:?}");
    assert!(ended.stdout.contains("passed: "), "{ended:?}");
    assert!(folder.join("other.xml").exists(), "the others are written");
}

#[test]
fn closed_outputs_are_not_an_error() {
    let folder = Folder::with_limits();
    let program = env!("CARGO_BIN_EXE_conformant");
    for line in [
        format!(
            "{program} run --reference --filter 'flow/read-flows/*' --report json=run.json | head -1; echo ${{PIPESTATUS[0]}}"
        ),
        format!("{program} list rules | head -1; echo ${{PIPESTATUS[0]}}"),
        format!(
            "{program} run --reference --filter flow/read-flows/happy --report json=run.json >&- ; echo $?"
        ),
        format!(
            "{program} run --reference --filter flow/read-flows/happy --report json=run.json 2>&- ; echo $?"
        ),
    ] {
        let mut command = Command::new("bash");
        command
            .args(["-c", &line])
            .current_dir(&*folder)
            .stdin(Stdio::null());
        let ended = run(&mut command);
        assert_eq!(ended.stdout.lines().last(), Some("0"), "{line}: {ended:?}");
    }
    reports_of_json(&folder);
}

fn reports_of_json(folder: &Path) {
    let text = std::fs::read_to_string(folder.join("run.json")).expect("a report");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["complete"], true);
}
