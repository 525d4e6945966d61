//! Tests of `merge`.

use crate::records::{answering, run};
use conformant_record::{ENDED_BEFORE, PartOf, RunRecord, Verdict};
use conformant_versions::{MergeError, merge};

#[test]
fn counts_add_up_and_the_worst_verdict_stands() {
    let a = run(
        "flow/a",
        &[("flow/x", Verdict::Pass), ("flow/y", Verdict::NotJudged)],
    );
    let b = run(
        "flow/b",
        &[("flow/x", Verdict::Fail), ("flow/y", Verdict::Pass)],
    );
    let c = run(
        "flow/c",
        &[
            ("flow/x", Verdict::Inconclusive),
            ("flow/z", Verdict::Waived),
        ],
    );
    let whole = merge(&[a.clone(), b.clone(), c.clone()]).unwrap();
    let verdicts: Vec<_> = whole
        .rules
        .iter()
        .map(|r| (r.id.as_str(), r.verdict, r.judged))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("flow/x", Verdict::Fail, 2),
            ("flow/y", Verdict::Pass, 1),
            ("flow/z", Verdict::Waived, 1),
        ]
    );
    assert_eq!(whole.summary.exchanges, 6);
    assert_eq!((whole.summary.rules.fail, whole.summary.rules.pass), (1, 1));
    assert_eq!(whole.summary.scenarios["pass"], 2);
    assert_eq!(whole.scenarios.len(), 3);
    assert_eq!(whole.findings[0].exchange, 3, "renumbered in all parts");
    let other_order = merge(&[c, a, b]).unwrap();
    assert_eq!(other_order.rules, whole.rules);
}

#[test]
fn a_rule_that_one_part_could_not_finish_does_not_pass() {
    let whole = |reason: &str| {
        let passed = run("flow/a", &[("flow/x", Verdict::Pass)]);
        let mut cut = run("flow/b", &[("flow/x", Verdict::Inconclusive)]);
        cut.rules[0].reason = reason.to_owned();
        let rule = merge(&[passed, cut]).unwrap().rules.remove(0);
        (rule.verdict, rule.reason)
    };
    let cut = (Verdict::Inconclusive, ENDED_BEFORE.to_owned());
    assert_eq!(whole(ENDED_BEFORE), cut);
    assert_eq!(whole("timeout"), (Verdict::Pass, String::new()));
}

#[test]
fn one_part_is_the_whole() {
    let part = run("flow/a", &[("flow/x", Verdict::Fail)]);
    assert_eq!(merge(std::slice::from_ref(&part)), Ok(part));
}

#[test]
fn two_answers_in_two_parts_break_the_rule_of_one_answer() {
    let part = |scenario, word| {
        answering(
            run(scenario, &[("flow/open/x", Verdict::Pass)]),
            "flow/open/x",
            &[word],
        )
    };
    let whole = merge(&[part("flow/a", "null"), part("flow/b", "absent")]).unwrap();
    assert_eq!(whole.open_points[0].observed, ["absent", "null"]);
    assert_eq!(whole.rules[0].verdict, Verdict::Fail);
    assert_eq!(whole.findings.len(), 1);
    let same = merge(&[part("flow/a", "null"), part("flow/b", "null")]).unwrap();
    assert_eq!(
        (same.rules[0].verdict, same.findings.len()),
        (Verdict::Pass, 0)
    );
}

#[test]
fn parts_that_are_missing_or_there_twice_are_named() {
    let part = |part, of| RunRecord {
        partition: Some(PartOf {
            kind: "hash".into(),
            part,
            of,
        }),
        invocation: format!("conformant run --partition hash:{part}/{of} --strict"),
        ..run(&format!("flow/{part}"), &[])
    };
    let whole = merge(&[part(2, 2), part(1, 2)]).unwrap();
    assert_eq!(whole.invocation, "conformant run --strict");
    assert_eq!((whole.partition, whole.scenarios.len()), (None, 2));
    let refused = |parts: &[RunRecord]| merge(parts).unwrap_err().to_string();
    assert_eq!(
        refused(&[part(1, 4), part(3, 4)]),
        "failed to merge: no record is given of parts 2, 4 of 4"
    );
    let mut again = part(1, 2);
    again.scenarios.clear();
    assert_eq!(
        refused(&[part(1, 2), again]),
        "failed to merge record 2: it is part 1 of 2, as an earlier one is"
    );
    assert_eq!(
        refused(&[part(1, 2), part(2, 3)]),
        "failed to merge record 2: its partition is hash in 3, that of the first is hash in 2"
    );
    assert!(merge(&[part(1, 2), run("flow/x", &[])]).is_err());
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let part = || run("flow/a", &[]);
    assert_eq!(merge(&[]), Err(MergeError::Nothing));
    let twice = merge(&[part(), part()]).unwrap_err().to_string();
    assert_eq!(
        twice,
        "failed to merge record 2: the scenario flow/a is in an earlier one too"
    );
    let mut other = run("flow/b", &[]);
    other.seed = 2;
    let error = merge(&[part(), other]).unwrap_err().to_string();
    assert_eq!(
        error,
        "failed to merge record 2: its seed is 2, that of the first is 1"
    );
    let live = |scenario: &str, flags: &str| RunRecord {
        targets: [("flow".to_owned(), "http://h".to_owned())].into(),
        invocation: format!("conformant run {flags}"),
        ..run(scenario, &[])
    };
    let merged = |names| merge(&[live("flow/a", "--names a --strict"), live("flow/b", names)]);
    let whole = merged("--strict --names=b").unwrap();
    assert_eq!(whole.invocation, "conformant run --strict");
    let of = |scenario| whole.invocation_of(scenario);
    assert_eq!(of("flow/a"), "conformant run --names a --strict");
    assert_eq!(of("flow/b"), "conformant run --strict --names=b");
    let whole = merged("--names=a --strict").unwrap();
    assert_eq!(
        (whole.parts.len(), whole.invocation_of("flow/b")),
        (0, &*whole.invocation)
    );
    let mut other = run("flow/b", &[]);
    other.rulebook.digest = "e".into();
    assert!(merge(&[part(), other]).is_err());
}

#[test]
fn parts_of_other_targets_or_selections_are_refused_with_both_values() {
    let part = |scenario: &str, url: &str, invocation: &str| RunRecord {
        targets: [("flow".to_owned(), url.to_owned())].into(),
        invocation: invocation.to_owned(),
        ..run(scenario, &[])
    };
    let refused = |a, b| merge(&[a, b]).unwrap_err().to_string();
    assert_eq!(
        refused(
            part("flow/a", "http://a", ""),
            part("flow/b", "http://b", "")
        ),
        "failed to merge record 2: its target is flow=http://b, that of the first is flow=http://a"
    );
    let of = |scenario, flags: &str| part(scenario, "http://a", &format!("conformant run {flags}"));
    assert_eq!(
        refused(
            of("flow/a", "--filter 'flow/*' --seed 1"),
            of("flow/b", "--strict")
        ),
        "failed to merge record 2: its selection is everything, that of the first is --filter 'flow/*'"
    );
    let same = [
        of(
            "flow/a",
            "--filter 'flow/*' --service flow --seed 1 --partition hash:1/2",
        ),
        of("flow/b", "--service=flow '--filter=flow/*' --jobs 2"),
    ];
    assert_eq!(merge(&same).unwrap().scenarios.len(), 2);
}
