//! Tests of `detection`.

use crate::sample::owned;
use conformant_record::{
    Detection, FaultPattern, FirstRun, KnownDefects, Level, Raise, RuleResult, RunRecord, STRICT,
    Verdict, add_defects,
};
use std::collections::BTreeSet;

fn rule(id: &str, level: Level, judged: usize, needs: &[&str]) -> RuleResult {
    RuleResult {
        level,
        judged,
        needs: owned(needs),
        ..crate::sample::rule(id, Verdict::Pass)
    }
}

fn known() -> KnownDefects {
    let fault = |id: &str, rule: &str| FaultPattern {
        id: id.to_owned(),
        says: String::new(),
        rules: BTreeSet::from([rule.to_owned()]),
    };
    KnownDefects {
        faults: vec![
            fault("one", "f/a/x"),
            fault("two", "f/b/y"),
            fault("three", "f/b/warned"),
            fault("four", "g/c/z"),
        ],
        third_party: [&["f/a"][..], &["f/a"], &["f/a"], &["f/b"], &["f/b"], &[]]
            .map(owned)
            .into(),
        first_runs: vec![first_run(10, 8, 1), first_run(20, 18, 1)],
    }
}

fn first_run(defects: usize, failed: usize, warned: usize) -> FirstRun {
    FirstRun {
        defects,
        failed,
        warned,
        ..FirstRun::default()
    }
}

/// What is estimated of the record.
fn detection(record: &RunRecord, known: &KnownDefects, is_strict: bool) -> Option<Detection> {
    let mut record = record.clone();
    add_defects(&mut record, known, is_strict);
    record.detection
}

fn raise(percent: u32) -> Raise {
    Raise {
        by: STRICT.to_owned(),
        percent,
    }
}

fn estimate(rules: Vec<RuleResult>, is_strict: bool) -> Detection {
    let record = RunRecord {
        rules,
        complete: true,
        ..RunRecord::default()
    };
    detection(&record, &known(), is_strict).expect("it is estimated")
}

#[test]
fn a_run_that_ended_early_has_no_estimate() {
    let record = RunRecord {
        rules: vec![rule("f/a/x", Level::Must, 1, &[])],
        complete: false,
        ..RunRecord::default()
    };
    assert_eq!(detection(&record, &known(), false), None);
}

#[test]
fn unjudged_rules_lower_it_and_their_need_would_raise_it() {
    let run = |judged: usize, needs: &[&str]| {
        vec![
            rule("f/a/x", Level::Must, 1, &[]),
            rule("f/b/y", Level::Must, judged, needs),
            rule("f/b/warned", Level::Should, judged, needs),
            rule("g/c/z", Level::Must, 0, &["service g"]),
        ]
    };
    let whole = estimate(run(1, &[]), false);
    let partial = estimate(run(0, &["hook h"]), false);
    assert!(partial.percent < whole.percent, "{partial:?} {whole:?}");
    assert_eq!(partial.raised_by[0].by, "hook h");
    assert_eq!(partial.raised_by[0].percent, whole.percent);
    // Warnings count in strict runs.
    let strict = estimate(run(1, &[]), true);
    assert_eq!(whole.raised_by[0], raise(strict.percent));
    assert!(whole.low < whole.percent && whole.percent < whole.high);
    assert!(strict.raised_by.is_empty());
}

#[test]
fn a_vacuous_rule_lowers_it_and_the_range_narrows_with_it() {
    let run = |verdict: Verdict| {
        let vacuous = RuleResult {
            verdict,
            ..rule("f/a/x", Level::Must, 1, &[])
        };
        estimate(vec![vacuous, rule("f/b/y", Level::Must, 0, &[])], false)
    };
    let (judged, vacuous) = (run(Verdict::Pass), run(Verdict::NotJudged));
    assert!(judged.percent > 0);
    assert_eq!((vacuous.low, vacuous.percent, vacuous.high), (0, 0, 0));
}

#[test]
fn a_whole_run_has_the_rate_of_first_runs_and_the_range_follows_from_their_differences() {
    let rules = ["f/a/x", "f/b/y", "g/c/z"];
    let rules = rules.iter().map(|id| rule(id, Level::Must, 1, &[]));
    let warned = rule("f/b/warned", Level::Should, 1, &[]);
    let whole = estimate(rules.chain([warned]).collect(), false);
    // 8 of 10 and 18 of 20: the mean is 0.85, one more differs by 0.087.
    assert_eq!((whole.low, whole.percent, whole.high), (68, 85, 100));
    assert_eq!(whole.raised_by[0], raise(93));
}
