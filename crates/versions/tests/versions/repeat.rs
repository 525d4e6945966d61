//! Tests of `repeat`.

use crate::records::run;
use conformant_record::{RunRecord, Verdict};
use conformant_versions::repeated;

fn named(runs: Vec<RunRecord>) -> Vec<(String, RunRecord)> {
    let names = |at: usize| format!("n{at}");
    let runs = runs.into_iter().enumerate();
    runs.map(|(at, run)| (names(at), run)).collect()
}

#[test]
fn a_rule_that_failed_in_any_run_fails_and_is_flaky() {
    let runs = [Verdict::Pass, Verdict::Fail, Verdict::Fail];
    let runs = runs.map(|verdict| run("flow/a", &[("flow/x", verdict), ("flow/y", Verdict::Fail)]));
    let whole = repeated(3, named(runs.to_vec())).unwrap();
    let rules: Vec<_> = whole
        .rules
        .iter()
        .map(|r| (r.id.as_str(), r.verdict, r.judged, r.findings))
        .collect();
    assert_eq!(
        rules,
        [
            ("flow/x", Verdict::Fail, 3, 1),
            ("flow/y", Verdict::Fail, 3, 1)
        ]
    );
    let exchanges: Vec<_> = whole
        .findings
        .iter()
        .map(|f| (f.rule.as_str(), f.exchange))
        .collect();
    assert_eq!(
        exchanges,
        [("flow/y", 1), ("flow/x", 3)],
        "numbers continue"
    );
    let repeats = whole.repeats.unwrap();
    let flaky: Vec<_> = repeats
        .flaky()
        .map(|r| (r.rule.as_str(), r.failures()))
        .collect();
    assert_eq!(flaky, [("flow/x", 2)]);
    assert_eq!(
        repeats.rules[0].distribution(),
        [(Verdict::Pass, 1), (Verdict::Fail, 2)]
    );
    assert_eq!(repeats.runs[1].names, "n1");
    assert_eq!(whole.summary.exchanges, 6);
    assert_eq!(whole.summary.scenarios, [("fail".to_owned(), 1)].into());
    assert!(whole.complete);
}

#[test]
fn an_interrupted_run_adds_only_what_was_judged() {
    let first = run("flow/a", &[("flow/x", Verdict::Pass)]);
    let mut cut = run("flow/a", &[("flow/x", Verdict::Inconclusive)]);
    cut.scenarios[0].verdict = Verdict::Inconclusive;
    cut.complete = false;
    let whole = repeated(3, named(vec![first, cut])).unwrap();
    assert_eq!(whole.rules[0].verdict, Verdict::Pass);
    assert_eq!(whole.scenarios[0].verdict, Verdict::Pass);
    assert!(!whole.complete);
    let repeats = whole.repeats.unwrap();
    assert_eq!((repeats.requested, repeats.runs.len()), (3, 2));
    assert_eq!(repeats.flaky().count(), 0);
}

#[test]
fn runs_that_agree_are_one() {
    let one = run("flow/a", &[("flow/x", Verdict::Pass)]);
    let whole = repeated(2, named(vec![one.clone(), one.clone()])).unwrap();
    assert_eq!(whole.repeats.clone().unwrap().rules, []);
    let expected = RunRecord {
        repeats: whole.repeats.clone(),
        summary: whole.summary.clone(),
        scenarios: whole.scenarios.clone(),
        rules: whole.rules.clone(),
        ..one
    };
    assert_eq!(whole, expected);
    assert_eq!(repeated(2, Vec::new()), None);
}
