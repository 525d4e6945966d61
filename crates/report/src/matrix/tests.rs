//! The table of implementations: its rows, its marks and hostile texts.

use super::*;
use crate::sample::{HOSTILE, every_text_is, sample};
use conformant_base::text::is_deceptive;
use conformant_record::{ClaimsResult, Verdict};

fn claiming(services: &[&str]) -> RunRecord {
    let services = services.iter().map(|name| ((*name).to_owned(), Vec::new()));
    RunRecord {
        claims: Some(ClaimsResult {
            implementation: "Second".to_owned(),
            services: services.collect(),
            unjudged: Vec::new(),
        }),
        ..sample()
    }
}

fn features() -> FeatureScenarios {
    let scenarios = sample().scenarios;
    let passed = scenarios.iter().find(|one| one.verdict == Verdict::Pass);
    let passed = passed.unwrap().id.clone();
    let features = [
        ("callbacks".to_owned(), vec![passed]),
        ("hook x".to_owned(), vec!["flow/absent".to_owned()]),
    ];
    [("flow".to_owned(), features.into())].into()
}

#[test]
fn each_implementation_has_a_column_and_each_feature_a_row() {
    let runs = [
        ("first".to_owned(), sample()),
        ("unused".to_owned(), claiming(&["flow"])),
    ];
    let matrix = Matrix::of(&runs, &features());
    let markdown = matrix.markdown();
    for line in [
        "|  | `first` | `Second` |",
        "| `flow: callbacks` | ✓ passes 1 scenario | ✓ passes 1 scenario |",
        "| `flow: hook x` | – not judged | – not claimed |",
    ] {
        assert!(markdown.contains(line), "{line} in\n{markdown}");
    }
    let page = matrix.page();
    assert!(page.contains("<th scope=\"col\">Second</th>"), "{page}");
    assert!(page.contains("not claimed"));
    assert_eq!(page, Matrix::of(&runs, &features()).page());
}

#[test]
fn runs_of_one_target_have_a_table_of_rules_that_differ() {
    let mut second = sample();
    let rule = second.rules.iter_mut().find(|r| r.verdict == Verdict::Pass);
    let rule = rule.unwrap();
    rule.verdict = Verdict::Fail;
    let id = rule.id.clone();
    let runs = [("run-1".to_owned(), sample()), ("run-2".to_owned(), second)];
    let matrix = Matrix::of(&runs, &FeatureScenarios::new());
    let markdown = matrix.markdown();
    let row = format!("| `{id}` | ✓ pass | ✗ fail |");
    assert!(markdown.contains(&row), "{row} in\n{markdown}");
    assert!(markdown.starts_with("# Runs of one target"), "{markdown}");
    let page = matrix.page();
    assert!(page.contains("Rules with verdicts that differ"), "{page}");
    let same = Matrix::of(&runs[..1], &FeatureScenarios::new());
    assert!(!same.page().contains("verdicts that differ"));
}

#[test]
fn runs_of_different_rulebooks_are_noted() {
    let mut other = sample();
    other.rulebook.digest = "other".to_owned();
    let runs = [("a".to_owned(), sample()), ("b".to_owned(), other)];
    let markdown = Matrix::of(&runs, &FeatureScenarios::new()).markdown();
    assert!(markdown.contains("different rulebooks"), "{markdown}");
}

#[test]
fn hostile_names_stay_text() {
    for text in HOSTILE {
        let runs = [(text.to_owned(), every_text_is(text))];
        let matrix = Matrix::of(&runs, &FeatureScenarios::new());
        assert!(!matrix.markdown().contains(is_deceptive), "{text:?}");
        let page = matrix.page();
        assert!(
            !page.contains(is_deceptive) && !page.contains("<script"),
            "{text:?}"
        );
    }
}
