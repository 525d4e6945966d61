//! `run --repeat`: verdicts of several runs, flaky rules, and interrupted repetitions.

use crate::hostile::command::{Running, conformant, write};
use crate::hostile::process::falling_silent_after;
use crate::hostile::target::Target;
use crate::program::{Folder, Served};
use conformant_base::clock;
use conformant_record::{RunRecord, Verdict};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The rule that a stale response breaks.
const BROKEN: &str = "chat/members/update-is-kept";

fn record(folder: &Folder) -> RunRecord {
    folder.json("run.json")
}

#[test]
fn a_rule_that_fails_in_one_of_three_runs_is_flaky() {
    let folder = Folder::new();
    // Each run fetches the member twice: the second run gets an old state.
    let served = Served::start(&folder, &["--answer", "4@chat/fetch-member=stale"]);
    let options = format!("{} --prove off --repeat 3 --history kept", served.options());
    let selection = "--filter chat/members/update --jobs 1";
    let reports = "--report json=run.json --report markdown=run.md --report junit=run.xml";
    let (out, _) = folder.run(1, &format!("run {options} {selection} {reports}"));
    let record = record(&folder);
    let repeats = record.repeats.as_ref().expect("it was repeated");
    assert!(record.complete && repeats.runs.iter().all(|run| run.complete));
    let names: BTreeSet<&str> = repeats.runs.iter().map(|run| run.names.as_str()).collect();
    assert_eq!((repeats.requested, names.len()), (3, 3), "{names:?}");
    let rule = repeats.flaky().find(|rule| rule.rule == BROKEN);
    let rule = rule.unwrap_or_else(|| panic!("{:?}", repeats.rules));
    assert_eq!(rule.verdicts, [Verdict::Pass, Verdict::Fail, Verdict::Pass]);
    let difference = rule.difference.as_ref().expect("a response differs");
    assert_eq!(difference.operation, "chat/fetch-member");
    assert_eq!((difference.passed_run, difference.failed_run), (1, 2));
    assert_ne!(difference.passed, difference.failed);
    let verdict = record.rules.iter().find(|rule| rule.id == BROKEN);
    assert_eq!(verdict.map(|rule| rule.verdict), Some(Verdict::Fail));
    let counted = "failed in 1 of 3 runs (2 pass, 1 fail)";
    let place = format!("chat/fetch-member, {}", difference.place);
    for report in [&out, &folder.read("run.md"), &folder.read("run.xml")] {
        assert!(
            report.contains(counted) && report.contains(&place),
            "{report}"
        );
    }
    assert!(
        !record.invocation.contains("--names"),
        "{}",
        record.invocation
    );
    let (out, _) = folder.run(0, "history kept --last 1");
    let line = out.lines().find(|line| line.starts_with(BROKEN));
    let line = line.unwrap_or_else(|| panic!("{out}"));
    assert!(line.contains("  ~  ") && line.ends_with("flaky"), "{line}");
}

#[test]
fn runs_that_agree_have_no_flaky_rule() {
    let folder = Folder::new();
    let line =
        "run --reference -q --filter flow/read-flows/happy --repeat 2 --report json=run.json";
    folder.run(0, line);
    let repeats = record(&folder).repeats.expect("it was repeated");
    assert_eq!((repeats.runs.len(), repeats.rules.len()), (2, 0));
    for (flag, value) in [
        ("--names", "a"),
        ("--keep-evidence", "b"),
        ("--partition", "hash:1/2"),
    ] {
        folder.run(2, &format!("run --repeat 2 {flag} {value}"));
    }
    folder.run(2, "run --repeat 1");
}

fn start(folder: &Path, target: &Target, repeat: &str) -> Running {
    let mut command = conformant(folder);
    command.args(["run", "--filter", "flow/read-flows/*", "--jobs", "1"]);
    command.args(["--prove", "off", "--repeat", repeat]);
    command.args(["--target", &format!("flow={}/flow", target.origin())]);
    command.args(["--report", "json=run.json", "--report", "junit=junit.xml"]);
    Running::start(&mut command)
}

#[test]
fn a_signal_in_a_repetition_leaves_reports_of_what_ran() {
    let folder = Folder::new();
    write(&folder.join("conformant.yaml"), "limits: {timeout: 60s}\n");
    let target = falling_silent_after(usize::MAX);
    start(&folder, &target, "2").end();
    let whole = record(&folder);
    let of_one_run = target.asked().len() / 2;
    let target = falling_silent_after(of_one_run + 2);
    let running = start(&folder, &target, "3");
    let deadline = clock::monotonic() + Duration::from_secs(60);
    while target.asked().len() < of_one_run + 3 {
        assert!(clock::monotonic() < deadline, "{}", target.asked().len());
        clock::sleep(Duration::from_millis(5));
    }
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.exit, Some(130), "{ended:?}");
    let record = record(&folder);
    assert!(!record.complete);
    let repeats = record.repeats.expect("it was repeated");
    let complete: Vec<bool> = repeats.runs.iter().map(|run| run.complete).collect();
    assert_eq!((repeats.requested, complete), (3, vec![true, false]));
    let verdicts = |record: &[conformant_record::RuleResult]| {
        let rules = record.iter();
        rules
            .map(|rule| (rule.id.clone(), rule.verdict))
            .collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&record.rules), verdicts(&whole.rules));
    assert!(folder.read("junit.xml").ends_with("</testsuites>\n"));
}
