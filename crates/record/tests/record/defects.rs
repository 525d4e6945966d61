//! Tests of `defects`.

use crate::sample::{owned, rule};
use conformant_record::{FaultPattern, Finding, Level, RuleResult, Verdict, defects};

#[test]
fn findings_of_the_first_account_come_first() {
    let rank = |scenario: &str| finding("flow/x", scenario, "").complexity();
    for other in ["flow/accounts/flow-kept", "flow/fetch-flow/other-account"] {
        assert!(rank("flow/read-flows/happy") < rank(other), "{other}");
    }
}

fn finding(rule: &str, scenario: &str, message: &str) -> Finding {
    Finding {
        scenario: scenario.into(),
        message: message.into(),
        ..crate::sample::finding(rule)
    }
}

fn fault(id: &str, rules: &[&str]) -> FaultPattern {
    FaultPattern {
        id: id.into(),
        says: format!("{id} is wrong."),
        rules: owned(rules).into_iter().collect(),
    }
}

/// The faults that the defects of these broken rules resemble. Each rule is broken in a scenario of its own.
fn named(rules: &[RuleResult], faults: &[FaultPattern]) -> Vec<String> {
    let broken = rules.iter().filter(|rule| rule.verdict == Verdict::Fail);
    let findings: Vec<Finding> = broken
        .map(|rule| finding(&rule.id, &rule.id, "seen"))
        .collect();
    let defects = defects(rules, &findings, faults).into_iter();
    defects.flat_map(|defect| defect.similar_faults).collect()
}

#[test]
fn the_defect_that_explains_most_comes_first_and_takes_its_rules() {
    let mut rules = ["f/a", "f/b", "f/c", "g/d-should"].map(|id| rule(id, Verdict::Fail));
    rules[3].level = Level::Should;
    let findings = ["f/a", "f/b", "f/c", "g/d-should"].map(|id| finding(id, id, "seen"));
    let all = [
        fault("pair", &["f/a", "f/b"]),
        fault("one", &["f/a"]),
        fault("gone", &["f/c", "f/unjudged"]),
    ];
    let found = defects(&rules, &findings, &all);
    let titles: Vec<_> = found
        .iter()
        .map(|d| (d.title.as_str(), d.rules.join(" "), d.level))
        .collect();
    assert_eq!(
        titles,
        [
            ("seen", "f/a f/b".to_owned(), Level::Must),
            ("seen", "f/c".to_owned(), Level::Must),
            ("seen", "g/d-should".to_owned(), Level::Should),
        ]
    );
}

#[test]
fn the_fewest_defects_are_named_even_where_another_explains_more_at_first() {
    let rules = ["f/a", "f/b", "f/c", "f/d", "f/e"].map(|id| rule(id, Verdict::Fail));
    let faults = [
        fault("mixed", &["f/a", "f/b", "f/d"]),
        fault("left", &["f/a", "f/b", "f/c"]),
        fault("right", &["f/d", "f/e"]),
        fault("rest", &["f/c"]),
        fault("more", &["f/e"]),
    ];
    assert_eq!(named(&rules, &faults), ["left", "right"]);
}

#[test]
fn rules_about_different_fields_are_not_one_defect() {
    let rules = ["f/a", "f/b"].map(|id| rule(id, Verdict::Fail));
    let found = |first: [&str; 3], second: [&str; 3]| {
        let about = |rule: &str, [scenario, pointer, kind]: [&str; 3]| Finding {
            pointer: pointer.into(),
            kind: kind.into(),
            ..finding(rule, scenario, rule)
        };
        let findings = [about("f/a", first), about("f/b", second)];
        let defects = defects(&rules, &findings, &[fault("both", &["f/a", "f/b"])]);
        (defects.len(), defects[0].similar_faults.len())
    };
    let first = ["one", "/request/processed_at", "differs"];
    assert_eq!(
        found(first, ["two", "/request/details/x", "not-kept"]),
        (2, 0)
    );
    for related in [
        ["one", "/request/details/x", "not-kept"],
        ["two", "/requests/0/processed_at", "not-kept"],
        ["two", "/request", "not-kept"],
        ["two", "/request/details/x", "differs"],
        ["two", "/request/details/x", "story"],
        ["two", "", "refused"],
    ] {
        assert_eq!(found(first, related), (1, 1), "{related:?}");
    }
}

#[test]
fn one_of_many_rules_of_a_fault_may_hold() {
    let mut rules = ["f/a", "f/b", "f/c", "f/d"]
        .map(|id| rule(id, Verdict::Fail))
        .to_vec();
    rules.extend(["f/e", "f/g"].map(|id| rule(id, Verdict::Pass)));
    let whole = fault("whole", &["f/a", "f/b", "f/c", "f/d", "f/e"]);
    assert_eq!(named(&rules, &[whole, fault("part", &["f/b"])]), ["whole"]);
    let two_hold = fault("two", &["f/a", "f/b", "f/c", "f/d", "f/e", "f/g"]);
    assert!(named(&rules, &[two_hold]).is_empty());
}

#[test]
fn a_fault_is_not_named_where_one_of_its_two_rules_holds() {
    let rules = [rule("f/a", Verdict::Fail), rule("f/b", Verdict::Pass)];
    assert!(named(&rules, &[fault("pair", &["f/a", "f/b"])]).is_empty());
}

#[test]
fn a_fault_is_not_named_where_most_of_its_rules_were_not_judged() {
    let rules = [rule("f/a", Verdict::Fail)];
    assert!(named(&rules, &[fault("many", &["f/a", "f/b", "f/c"])]).is_empty());
    assert_eq!(named(&rules, &[fault("two", &["f/a", "f/b"])]), ["two"]);
}

#[test]
fn faults_with_the_same_rules_are_all_named() {
    let rules = [rule("f/a", Verdict::Fail)];
    let all = [fault("one", &["f/a"]), fault("two", &["f/a"])];
    assert_eq!(named(&rules, &all), ["one", "two"]);
}
