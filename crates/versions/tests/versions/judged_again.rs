//! Tests of `judged_again`.

use crate::records::run;
use conformant_record::{Level, RunRecord, Verdict};
use conformant_rulebook::Rulebook;
use conformant_versions::{JudgedAgain, judge_again};

const RULE: &str = "flow/execution/only-ends";

fn book(level: Level) -> Rulebook {
    let mut book =
        conformant_judge::load::embedded().unwrap_or_else(|problems| panic!("{problems}"));
    book.rules
        .retain(|rule| rule.id == RULE || rule.id == "flow/execution/sid");
    book.rules.get_mut(RULE).expect("it is a rule").level = level;
    book
}

fn verdict(again: &JudgedAgain, id: &str) -> (Verdict, Level) {
    let rule = again
        .record
        .rules
        .iter()
        .find(|rule| rule.id == id)
        .expect("it is a rule");
    (rule.verdict, rule.level)
}

#[test]
fn levels_are_those_of_the_rulebook() {
    let stored = run("flow/a", &[(RULE, Verdict::Fail)]);
    let again = judge_again(&stored, &book(Level::Should));
    assert_eq!(verdict(&again, RULE), (Verdict::Fail, Level::Should));
    assert_eq!(again.record.findings[0].level, Level::Should);
    let again = judge_again(&stored, &book(Level::Open));
    assert_eq!(verdict(&again, RULE), (Verdict::Open, Level::Open));
    assert_eq!(again.record.findings, []);
    assert_eq!(
        (
            again.record.summary.rules.fail,
            again.record.summary.rules.open
        ),
        (0, 1)
    );
}

#[test]
fn a_scenario_fails_only_if_it_breaks_a_must_rule() {
    let stored = run("flow/a", &[(RULE, Verdict::Fail)]);
    for (level, expected) in [
        (Level::Must, Verdict::Fail),
        (Level::Should, Verdict::Pass),
        (Level::May, Verdict::Pass),
    ] {
        let record = judge_again(&stored, &book(level)).record;
        assert_eq!(record.scenarios[0].verdict, expected, "{level:?}");
        let counts = [(expected.word().to_owned(), 1)].into();
        assert_eq!(record.summary.scenarios, counts, "{level:?}");
    }
    // A warning that became a requirement fails its scenario.
    let mut warned = stored;
    warned.findings[0].level = Level::Should;
    warned.scenarios[0].verdict = Verdict::Pass;
    let record = judge_again(&warned, &book(Level::Must)).record;
    assert_eq!(record.scenarios[0].verdict, Verdict::Fail);
}

#[test]
fn a_rule_with_another_sentence_is_not_judged() {
    for before in [Verdict::Pass, Verdict::Fail] {
        let mut stored = run("flow/a", &[(RULE, before)]);
        stored.rules[0].says = "A sentence of an earlier rulebook.".to_owned();
        let again = judge_again(&stored, &book(Level::Must));
        assert_eq!(verdict(&again, RULE), (Verdict::NotJudged, Level::Must));
        assert_eq!(again.record.findings, []);
        assert_eq!(again.record.scenarios[0].verdict, Verdict::Pass);
        let note = format!("so it is not judged; its verdict was {}", before.word());
        assert!(again.notes.iter().any(|n| n.ends_with(&note)), "{again:?}");
    }
}

#[test]
fn a_rule_that_was_not_judged_does_not_pass() {
    let stored = run("flow/a", &[(RULE, Verdict::Open)]);
    let again = judge_again(&stored, &book(Level::Must));
    assert_eq!(verdict(&again, RULE).0, Verdict::NotJudged);
    assert_eq!(verdict(&again, "flow/execution/sid").0, Verdict::NotJudged);
}

#[test]
fn a_rule_that_is_gone_takes_its_findings_along() {
    let stored = run(
        "flow/a",
        &[("flow/gone", Verdict::Fail), (RULE, Verdict::Pass)],
    );
    let again = judge_again(&stored, &book(Level::Must));
    assert_eq!(again.record.findings, []);
    assert!(
        again
            .notes
            .iter()
            .any(|note| note == "flow/gone is not a rule of this rulebook")
    );
    assert_eq!(again.record.summary.rules.pass, 1);
}

#[test]
fn the_same_rulebook_concludes_the_same() {
    let book = book(Level::Must);
    let mut stored = run(
        "flow/a",
        &[("flow/execution/sid", Verdict::Pass), (RULE, Verdict::Fail)],
    );
    book.digest().clone_into(&mut stored.rulebook.digest);
    let again = judge_again(&stored, &book);
    assert_eq!(again.notes, Vec::<String>::new());
    let verdicts = |run: &RunRecord| run.rules.iter().map(|r| r.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts(&again.record), [Verdict::Fail, Verdict::Pass]);
    assert_eq!(again.record.summary, stored.summary);
}
