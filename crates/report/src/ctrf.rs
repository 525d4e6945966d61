//! Common Test Report Format: one test per defect, per rule and per scenario, as in `JUnit`, and one for what failed the run
//! apart from rules. Rules and scenarios that fail because of a defect have the status `other` and name it.
//!
//! A record has no start time, because the same seed must give the same bytes: the run starts at 0.

use super::Settings;
use super::cards::Card;
use super::failing::{self, Failing};
use super::view::{self, Outcome};
use conformant_base::text;
use conformant_record::{Repeats, RunRecord, Verdict};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SPEC_VERSION: &str = "0.0.0";

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    name: String,
    status: &'static str,
    duration: u64,
    suite: Vec<String>,
    raw_status: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flaky: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    trace: String,
    extra: Value,
}

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let tests = tests(record, settings);
    let with = |status| tests.iter().filter(|test| test.status == status).count();
    let report = json!({
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "results": {
            "tool": {"name": record.tool.name, "version": record.tool.version},
            "summary": {
                "tests": tests.len(),
                "passed": with("passed"),
                "failed": with("failed"),
                "pending": with("pending"),
                "skipped": with("skipped"),
                "other": with("other"),
                "start": 0,
                "stop": milliseconds(record.summary.seconds),
            },
            "tests": tests,
            "extra": {
                "targets": record.targets,
                "rulebook": record.rulebook.digest,
                "seed": record.seed,
                "complete": record.complete,
            },
        },
    });
    text::safe_json(&report).expect("map keys are strings")
}

fn tests(record: &RunRecord, settings: Settings) -> Vec<Test> {
    let findings = view::by_rule(record);
    let failing = Failing::new(record, settings);
    let mut tests: Vec<Test> = failing
        .cards()
        .iter()
        .map(|card| of_defect(record, card))
        .collect();
    let flaky: BTreeSet<&str> = record
        .repeats
        .iter()
        .flat_map(Repeats::flaky)
        .map(|flaky| flaky.rule.as_str())
        .collect();
    for rule in &record.rules {
        let findings = view::of(&findings, &rule.id);
        let first = findings.first();
        let outcome = view::of_rule(rule, settings);
        let cause = failing.cause(&outcome, findings);
        let broken = first.map_or(String::new(), |first| first.message.clone());
        let (status, message) = status(outcome, rule.verdict, cause, broken);
        tests.push(Test {
            name: rule.id.clone(),
            status,
            suite: suite(&rule.id, "rules"),
            raw_status: rule.verdict.word(),
            flaky: flaky.contains(rule.id.as_str()),
            message,
            trace: first.map_or(String::new(), |finding| view::describe(record, finding)),
            extra: json!({
                "level": rule.level.word(),
                "source": rule.source.to_string(),
                "judged": rule.judged,
                "findings": rule.findings,
            }),
            ..Test::default()
        });
    }
    tests.extend(scenarios(record, settings, &failing));
    let errors = view::errors(record, settings);
    if let Some(first) = errors.first() {
        tests.push(Test {
            name: "target".to_owned(),
            status: "failed",
            suite: vec![record.tool.name.clone()],
            raw_status: Verdict::Error.word(),
            message: first.clone(),
            trace: errors.join("\n"),
            extra: json!({}),
            ..Test::default()
        });
    }
    tests
}

/// A defect that fails the run.
fn of_defect(record: &RunRecord, card: &Card<'_>) -> Test {
    let first = card.rules.first().map_or("", |rule| rule.id);
    Test {
        name: failing::name(card),
        status: "failed",
        suite: suite(first, failing::part(card)),
        raw_status: Verdict::Fail.word(),
        message: card.extent(),
        trace: failing::details(record, card),
        extra: json!({
            "number": card.number,
            "rules": card.rules.iter().map(|rule| rule.id).collect::<Vec<_>>(),
        }),
        ..Test::default()
    }
}

/// The status of a rule or scenario, and why. `cause` is what explains a failure, `broken` what was broken.
fn status(
    outcome: Outcome,
    verdict: Verdict,
    cause: Option<String>,
    broken: String,
) -> (&'static str, String) {
    match (outcome, cause) {
        (Outcome::Failed, Some(cause)) => ("other", cause),
        (Outcome::Passed, _) => ("passed", String::new()),
        (Outcome::Failed, None) => ("failed", broken),
        (Outcome::Warned, _) => ("other", broken),
        (Outcome::Skipped(reason), _) if verdict == Verdict::Open => ("other", reason),
        (Outcome::Skipped(reason), _) => ("skipped", reason),
        (Outcome::Errored(reason), _) => ("failed", reason),
    }
}

fn scenarios(
    record: &RunRecord,
    settings: Settings,
    failing: &Failing<'_>,
) -> impl Iterator<Item = Test> {
    let findings = view::by_scenario(record);
    record.scenarios.iter().map(move |result| {
        let findings = view::of(&findings, &result.id);
        let broken = view::breaks(findings, &result.reason);
        let outcome = view::of_scenario(result, findings, settings);
        let cause = failing.cause(&outcome, findings);
        let cause = cause.map(|cause| format!("{cause}; {broken}"));
        let (status, message) = status(outcome, result.verdict, cause, broken);
        Test {
            name: result.id.clone(),
            status,
            duration: milliseconds(result.seconds),
            suite: suite(&result.id, "scenarios"),
            raw_status: result.verdict.word(),
            message,
            extra: json!({}),
            ..Test::default()
        }
    })
}

/// The service, and what the test is about: `flow`, `rules`.
fn suite(id: &str, kind: &str) -> Vec<String> {
    vec![view::service(id).to_owned(), kind.to_owned()]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and no duration is negative"
)]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, every_text_is, sample};

    fn rendered(record: &RunRecord) -> Value {
        let text = Format::Ctrf.render(record, Settings::default());
        assert!(!text.contains(text::is_deceptive));
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_run_reads_like_this() {
        let report = rendered(&sample());
        assert_eq!(report["reportFormat"], "CTRF");
        assert_eq!(
            report["results"]["extra"]["targets"]["flow"],
            "http://127.0.0.1:4010/flow"
        );
        assert_eq!(
            report["results"]["summary"],
            json!({
                "tests": 15, "passed": 2, "failed": 2, "pending": 0, "skipped": 7, "other": 4,
                "start": 0, "stop": 1250,
            })
        );
        let cause = "fails because of defect 1. An execution has a third state";
        let defect = &report["results"]["tests"][0];
        assert_eq!(defect["name"], "1. An execution has a third state");
        assert_eq!(defect["status"], "failed");
        assert_eq!(defect["suite"], json!(["flow", "defects"]));
        let test = &report["results"]["tests"][4];
        assert_eq!(test["name"], "flow/execution/status");
        assert_eq!(test["status"], "other");
        assert_eq!(test["suite"], json!(["flow", "rules"]));
        assert_eq!(test["message"], cause);
        assert!(test["trace"].as_str().unwrap().contains("where"), "{test}");
        assert_eq!(report["results"]["tests"][2]["status"], "other");
        let tests = report["results"]["tests"].as_array().unwrap();
        let of_scenario = |id: &str| {
            let is_it = |test: &&Value| test["name"] == id && test["suite"][1] == "scenarios";
            tests.iter().find(is_it).unwrap()
        };
        assert_eq!(
            of_scenario("flow/fetch-execution/happy")["duration"],
            json!(250)
        );
        let failed = of_scenario("flow/create-execution/happy");
        assert_eq!(failed["status"], "other");
        assert_eq!(
            failed["message"],
            format!("{cause}; breaks flow/execution/no-other-fields, flow/execution/status")
        );
    }

    #[test]
    fn a_run_that_failed_without_findings_has_a_failed_test() {
        let record = RunRecord {
            exit: Some(3),
            errors: vec!["flow cannot be reached".to_owned()],
            ..RunRecord::default()
        };
        let report = rendered(&record);
        assert_eq!(report["results"]["summary"]["failed"], 1);
        let test = &report["results"]["tests"][0];
        assert_eq!(
            (&test["name"], &test["status"]),
            (&json!("target"), &json!("failed"))
        );
        assert_eq!(test["message"], "flow cannot be reached");
    }

    #[test]
    fn hostile_texts_are_kept_as_data() {
        for text in HOSTILE {
            let report = rendered(&every_text_is(text));
            assert_eq!(report["results"]["tests"][1]["name"], *text);
        }
    }
}
