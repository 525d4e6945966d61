//! Tests of `runs`.

use crate::records::{answering, run};
use conformant_record::{Defect, Level, Verdict};
use conformant_versions::{Format, runs};

#[test]
fn equal_runs_do_not_differ() {
    let a = run("flow/a", &[("flow/x", Verdict::Fail)]);
    let difference = runs(("a", &a), ("b", &a));
    assert!(difference.is_empty());
    assert_eq!(
        difference.render(Format::Text).unwrap(),
        "a -> b: no difference\n"
    );
}

#[test]
fn answers_that_both_runs_gave_are_left_out() {
    let one = |words: &[&str]| answering(run("flow/a", &[]), "flow/open/p", words);
    let (a, b) = (one(&["null", ": b", "c"]), one(&["null", "d"]));
    let text = runs(("a", &a), ("b", &b)).render(Format::Text).unwrap();
    let line = "  flow/open/p: only in the first run: b, c; only in the second run: d\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_finding_is_not_gone_where_its_scenario_was_left_out() {
    let a = run("flow/a", &[("flow/x", Verdict::Fail)]);
    let gone = |scenario: &str| {
        let b = run(scenario, &[("flow/x", Verdict::Pass)]);
        runs(("a", &a), ("b", &b)).gone.len()
    };
    assert_eq!(gone("flow/a"), a.findings.len());
    assert_eq!(gone("flow/b"), 0);
}

#[test]
fn different_verdicts_answers_and_findings_are_listed() {
    let a = run(
        "flow/a",
        &[("flow/x", Verdict::Fail), ("flow/y", Verdict::Pass)],
    );
    let b = run(
        "flow/a",
        &[("flow/y", Verdict::Fail), ("flow/z", Verdict::Pass)],
    );
    let (a, b) = (
        answering(a, "flow/open/p", &["null"]),
        answering(b, "flow/open/p", &["absent"]),
    );
    let difference = runs(("a", &a), ("b", &b));
    let ids: Vec<_> = difference
        .rules
        .iter()
        .map(|d| (d.id.as_str(), d.a, d.b))
        .collect();
    assert_eq!(
        ids,
        [
            ("flow/x", Some(Verdict::Fail), None),
            ("flow/y", Some(Verdict::Pass), Some(Verdict::Fail)),
            ("flow/z", None, Some(Verdict::Pass)),
        ]
    );
    assert_eq!(
        difference
            .regressions()
            .map(|d| d.id.as_str())
            .collect::<Vec<_>>(),
        ["flow/y"]
    );
    assert_eq!(
        (
            difference.new[0].rule.as_str(),
            difference.gone[0].rule.as_str()
        ),
        ("flow/y", "flow/x")
    );
    assert_eq!(difference.open_points.len(), 1);
    let text = difference.render(Format::Text).unwrap();
    assert!(text.contains("  flow/y: pass -> fail\n"), "{text}");
    assert!(text.contains("  flow/open/p: null -> absent\n"), "{text}");
    assert!(
        difference
            .render(Format::Markdown)
            .unwrap()
            .contains("### new findings: 1")
    );
    assert_eq!(difference.render(Format::Junit), None);
}

#[test]
fn one_defect_of_many_rules_is_compared_in_40_lines() {
    let ids: Vec<String> = (0..300).map(|n| format!("flow/x/r{n}")).collect();
    let with = |verdict| ids.iter().map(move |id| (id.as_str(), verdict)).collect();
    let passing: Vec<(&str, Verdict)> = with(Verdict::Pass);
    let failing: Vec<(&str, Verdict)> = with(Verdict::Fail);
    let (a, mut b) = (run("flow/a", &passing), run("flow/a", &failing));
    b.defects = vec![Defect {
        title: "read-x: status 500, expected an accepted request".into(),
        similar_faults: Vec::new(),
        service: "flow".into(),
        level: Level::Must,
        rules: ids.clone(),
        findings: 300,
        scenarios: 1,
    }];
    let difference = runs(("a", &a), ("b", &b));
    assert_eq!(difference.new_defects.len(), 1);
    let text = difference.render(Format::Text).unwrap();
    assert!(text.lines().count() <= 40, "{text}");
    let line = "new defects: 1\n  read-x: status 500, expected an accepted request (300 rules, 300 new findings, ";
    assert!(text.starts_with(line), "{text}");
}

#[test]
fn limits_of_a_comparison_are_listed() {
    let a = run("flow/a", &[]);
    let mut b = a.clone();
    (b.rulebook.digest, b.complete) = ("e".into(), false);
    assert_eq!(
        runs(("a", &a), ("b", &b)).cautions,
        [
            "the runs were judged by different rulebooks",
            "the second run was interrupted"
        ]
    );
    let judged = run(
        "flow/a",
        &[("flow/x/a", Verdict::Pass), ("flow/x/b", Verdict::Fail)],
    );
    let less = run(
        "flow/a",
        &[
            ("flow/x/a", Verdict::NotJudged),
            ("flow/x/b", Verdict::Fail),
        ],
    );
    assert_eq!(
        runs(("a", &judged), ("b", &less)).cautions,
        ["the second run has no result for 1 of the 2 must-rules that the first one judged"]
    );
    let lost = |second: &[(&str, Verdict)]| -> Vec<String> {
        let difference = runs(("a", &judged), ("b", &run("flow/a", second)));
        difference.not_judged_again().map(str::to_owned).collect()
    };
    let both = ("flow/x/a", Verdict::Pass);
    assert_eq!(lost(&[both]), ["flow/x/b"], "one is not selected");
    assert!(lost(&[both, ("flow/x/b", Verdict::Waived)]).is_empty());
    let further = [
        both,
        ("flow/x/b", Verdict::Pass),
        ("flow/x/c", Verdict::NotJudged),
    ];
    assert!(
        lost(&further).is_empty(),
        "the first did not judge it either"
    );
}
