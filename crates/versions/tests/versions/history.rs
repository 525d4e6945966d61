//! Tests of `history`.

use crate::records::{answering, run};
use conformant_record::{Repeats, RunRecord, Verdict};
use conformant_versions::{history, trend};

fn runs(verdicts: &[&[(&str, Verdict)]]) -> Vec<(String, RunRecord)> {
    let named = verdicts.iter().enumerate();
    named
        .map(|(n, rules)| (format!("run-{n}"), run("flow/a", rules)))
        .collect()
}

use Verdict::{Fail, Pass};

#[test]
fn new_and_fixed_rules_have_their_first_run() {
    let earlier = runs(&[
        &[("f/a", Pass), ("f/b", Fail), ("f/c", Fail)],
        &[("f/a", Pass), ("f/b", Fail), ("f/c", Fail)],
    ]);
    let now = run(
        "flow/a",
        &[("f/a", Fail), ("f/b", Fail), ("f/c", Pass), ("f/new", Fail)],
    );
    let compared = history(&earlier, &now);
    assert_eq!(
        (compared.new, compared.fixed),
        (vec!["f/a".to_owned()], vec!["f/c".to_owned()])
    );
    assert_eq!(
        compared.first_seen,
        [("f/b".to_owned(), "run-0".to_owned())].into()
    );
    assert_eq!(compared.earlier[0].broken, 2);
    assert_eq!(compared.flaky, Vec::<String>::new());
}

#[test]
fn a_rule_that_changes_three_times_is_flaky() {
    let earlier = runs(&[&[("f/a", Fail)], &[("f/a", Pass)], &[("f/a", Fail)]]);
    assert_eq!(
        history(&earlier, &run("flow/a", &[("f/a", Pass)])).flaky,
        ["f/a"]
    );
    assert_eq!(
        history(&earlier[1..], &run("flow/a", &[("f/a", Pass)])).flaky,
        Vec::<String>::new()
    );
}

#[test]
fn other_targets_and_rulebooks_are_not_compared() {
    let mut earlier = runs(&[&[("f/a", Pass)]]);
    earlier[0].1.rulebook.digest = "other".into();
    let compared = history(&earlier, &run("flow/a", &[("f/a", Fail)]));
    assert_eq!((compared.new.len(), compared.earlier.len()), (0, 0));
}

#[test]
fn local_ports_do_not_distinguish_targets() {
    let at = |url: &str, verdict| {
        let mut run = run("flow/a", &[("f/a", verdict)]);
        run.targets = [("flow".to_owned(), url.to_owned())].into();
        run
    };
    for (before, now, new) in [
        (
            "http://127.0.0.1:4010/flow",
            "http://127.0.0.1:4020/flow",
            1,
        ),
        (
            "http://127.0.0.1:4010/flow",
            "http://127.0.0.1:4010/chat",
            0,
        ),
        ("https://a.example:1/flow", "https://a.example:2/flow", 0),
        ("https://a.example/flow", "https://a.example/flow", 1),
        ("reference", "reference", 1),
    ] {
        let earlier = [("r".to_owned(), at(before, Pass))];
        let compared = history(&earlier, &at(now, Fail));
        assert_eq!(
            (compared.new.len(), compared.earlier.len()),
            (new, new),
            "{before} {now}"
        );
    }
}

#[test]
fn a_changed_answer_to_unspecified_behavior_is_reported() {
    let before = answering(run("flow/a", &[]), "flow/open/x", &["null"]);
    let now = answering(run("flow/a", &[]), "flow/open/x", &["absent"]);
    assert_eq!(
        history(&[("r".into(), before)], &now).changed,
        ["flow/open/x"]
    );
}

#[test]
fn a_trend_has_a_letter_for_each_run() {
    let runs = runs(&[
        &[("f/a", Pass)],
        &[("f/a", Fail)],
        &[("f/a", Pass)],
        &[("f/a", Fail), ("f/b", Fail)],
    ]);
    let compared = trend(&runs, 9);
    let rules: Vec<_> = compared
        .rules
        .iter()
        .map(|r| (r.id.as_str(), r.verdicts.as_str(), r.flaky))
        .collect();
    assert_eq!(rules, [("f/a", ".x.x", true), ("f/b", "???x", false)]);
    assert_eq!(
        compared.runs.iter().map(|r| r.broken).collect::<Vec<_>>(),
        [0, 1, 0, 2]
    );
    assert_eq!(trend(&[], 9).runs, []);
    let last = trend(&runs, 2);
    let first = (last.runs.len(), last.rules[0].verdicts.as_str());
    assert_eq!(first, (2, ".x"));
}

#[test]
fn a_rule_that_was_flaky_in_a_repeated_run_has_a_letter_of_its_own() {
    let mut runs = runs(&[&[("f/a", Pass)], &[("f/a", Fail)]]);
    let repeated = [Pass, Fail].map(|verdict| (String::new(), run("flow/a", &[("f/a", verdict)])));
    runs[1].1.repeats = Some(Repeats::of(2, &repeated));
    let rule = &trend(&runs, 9).rules[0];
    assert_eq!(
        (rule.verdicts.as_str(), rule.flaky, rule.broken),
        (".~", true, true)
    );
    assert_eq!(history(&runs[..1], &runs[1].1).flaky, ["f/a"]);
}
