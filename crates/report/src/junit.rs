//! `JUnit` XML: one suite per service, one test case per defect, per rule and per scenario.
//!
//! - A defect that fails the run is one failed case, so that the number of failures is that of defects.
//! - A broken rule is a skipped case that names its defect, with all its findings, under a stable id that dashboards follow.
//! - Scenarios have their duration; failed ones are skipped and name their defects and the rules that broke in them. The
//!   class name distinguishes the three: `flow.defects` (of requests: `flow.clients`), `flow.rules`, `flow.scenarios`.
//! - What failed the run apart from rules is one case `target` with an error.
//! - A case fails only if it fails the run; broken should-rules pass with their findings as output.
//! - Data that the usual schema does not allow (properties of a case, number of judgments) is output.

use super::Settings;
use super::failing::{self, Failing};
use super::repeats;
use super::view::{self, Outcome};
use conformant_record::junit::{self, Case, Failure, Status, Suite};
use conformant_record::{Finding, RunRecord, Verdict};
use std::collections::BTreeMap;

/// Findings per rule.
const FINDINGS_MAX: usize = 20;

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut suites: Vec<Suite> = suites(record, settings).into_values().collect();
    suites.extend(of_errors(record, settings));
    junit::render("conformant", Some(record.summary.seconds), &suites)
}

/// The suite of what failed the run apart from rules, with one case.
fn of_errors(record: &RunRecord, settings: Settings) -> Option<Suite> {
    let errors = view::errors(record, settings);
    let outcome = Outcome::Errored(errors.first()?.clone());
    let case = case("target", "run", outcome, "", errors.join("\n"));
    Some(Suite {
        name: record.tool.name.clone(),
        cases: vec![Case {
            class: format!("{}.run", record.tool.name),
            ..case
        }],
        ..Suite::default()
    })
}

fn suites(record: &RunRecord, settings: Settings) -> BTreeMap<&str, Suite> {
    let mut suites = BTreeMap::new();
    let failing = Failing::new(record, settings);
    for card in failing.cards() {
        let name = failing::name(card);
        let details = failing::details(record, card);
        let case = Case {
            class: format!("{}.{}", card.defect.service, failing::part(card)),
            ..case(&name, "", Outcome::Failed, &card.extent(), details)
        };
        let first = card.rules.first().map_or("", |rule| rule.id);
        suite(&mut suites, first, record).cases.push(case);
    }
    let rules = view::by_rule(record);
    for rule in &record.rules {
        let findings = view::of(&rules, &rule.id);
        let summary = findings.first().map_or("", |finding| &finding.message);
        let accepted = view::waiver_of(record, &rule.id);
        let outcome = match accepted.filter(|_| rule.verdict == Verdict::Waived) {
            // Waived rules neither pass nor fail.
            Some(waiver) => Outcome::Skipped(format!(
                "waived until {}: {}",
                waiver.expires, waiver.reason
            )),
            None => settled(&failing, view::of_rule(rule, settings), findings),
        };
        let mut case = case(
            &rule.id,
            "rules",
            outcome,
            summary,
            repeats::of_rule(record.repeats.as_ref(), &rule.id) + &details(record, findings),
        );
        let mut about = format!("{}\n{}, {}", rule.says, rule.level.word(), rule.source);
        if rule.judged > 0 {
            about += &format!(", judged {}×", rule.judged);
        }
        if let Some(waiver) = accepted {
            let findings = view::count(waiver.findings, "finding");
            about += &format!("\nwaived until {}: {findings}", waiver.expires);
        }
        if let Some(output) = &case.output {
            about += &format!("\n{output}");
        }
        case.output = Some(about.trim_start().to_owned());
        suite(&mut suites, &rule.id, record).cases.push(case);
    }
    let scenarios = view::by_scenario(record);
    for result in &record.scenarios {
        let findings = view::of(&scenarios, &result.id);
        let outcome = view::of_scenario(result, findings, settings);
        let outcome = settled(&failing, outcome, findings);
        let broken = view::breaks(findings, &result.reason);
        let mut case = case(&result.id, "scenarios", outcome, &broken, String::new());
        if let Status::Skipped(reason) = &mut case.status
            && result.verdict == Verdict::Fail
        {
            reason.push_str(&format!("; {broken}"));
        }
        case.failed_before.clone_from(&result.failed_before);
        case.seconds = Some(result.seconds);
        let suite = suite(&mut suites, &result.id, record);
        suite.seconds = Some(suite.seconds.unwrap_or_default() + result.seconds);
        suite.cases.push(case);
    }
    suites
}

/// A failure that defects explain is skipped, because the defect is the failure.
fn settled(failing: &Failing<'_>, outcome: Outcome, findings: &[&Finding]) -> Outcome {
    failing
        .cause(&outcome, findings)
        .map_or(outcome, Outcome::Skipped)
}

fn suite<'a, 'r>(
    suites: &'a mut BTreeMap<&'r str, Suite>,
    id: &'r str,
    record: &RunRecord,
) -> &'a mut Suite {
    let service = view::service(id);
    suites.entry(service).or_insert_with(|| {
        let target = record.targets.get(service);
        let properties = [
            ("target", target.cloned()),
            ("seed", Some(record.seed.to_string())),
            ("rulebook", Some(record.rulebook.digest.clone())),
            ("complete", Some(record.complete.to_string())),
        ];
        Suite {
            name: service.to_owned(),
            properties: properties
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
            ..Suite::default()
        }
    })
}

fn case(id: &str, kind: &str, outcome: Outcome, message: &str, details: String) -> Case {
    let failure = |kind, message, details| Failure {
        kind,
        message,
        details,
    };
    let (status, output) = match outcome {
        Outcome::Passed => (Status::Passed, None),
        Outcome::Failed => {
            let failure = failure("broken", message.to_owned(), details);
            (Status::Failed(failure), None)
        }
        Outcome::Warned => {
            let output = format!("warning: {message}\n{details}");
            (Status::Passed, Some(output))
        }
        Outcome::Skipped(reason) => {
            let output = (!details.is_empty()).then_some(details);
            (Status::Skipped(reason), output)
        }
        Outcome::Errored(message) => (Status::Errored(failure("error", message, details)), None),
    };
    Case {
        name: id.to_owned(),
        class: format!("{}.{kind}", view::service(id)),
        seconds: None,
        status,
        failed_before: Vec::new(),
        output,
    }
}

fn details(record: &RunRecord, findings: &[&Finding]) -> String {
    let mut out = String::new();
    for finding in findings.iter().take(FINDINGS_MAX) {
        let described = view::describe(record, finding);
        out += &format!("{}\n{described}\n", finding.message);
    }
    if findings.len() > FINDINGS_MAX {
        out += &view::count(findings.len() - FINDINGS_MAX, "more finding");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, assert_contains, every_text_is, sample};
    use quick_xml::Reader;
    use quick_xml::events::Event;

    fn rendered(record: &RunRecord) -> String {
        Format::Junit.render(record, Settings::default())
    }

    #[test]
    fn a_run_reads_like_this() {
        let xml = rendered(&sample());
        assert_contains(
            &xml,
            &[
                r#"<testsuites name="conformant" tests="15" failures="1" errors="1" time="1.250">"#,
                r#"<testsuite name="flow" tests="15" skipped="10" errors="1" failures="1" time="1.250">"#,
                r#"<property name="target" value="http://127.0.0.1:4010/flow"/>"#,
                r#"<testcase name="flow/execution/sid" classname="flow.rules">"#,
                "<system-out>What flow/execution/sid asks for.",
                "must, D3 &quot;Execution (FN)&quot;, line 37, judged 3×",
                r#"<testcase name="1. An execution has a third state" classname="flow.defects">"#,
                r#"<failure message="flow · 1 rule · 2 findings in 1 scenario" type="broken">"#,
                "breaks flow/execution/status\nin flow/create-execution/happy",
                r#"<skipped message="fails because of defect 1. An execution has a third state"/>"#,
                r#"<skipped message="fails because of defect 1. An execution has a third state; breaks flow/execution/no-other-fields, flow/execution/status"/>"#,
                "/status is &quot;running&quot;, expected one of active, ended",
                r#"<skipped message="not-applicable: hook missing: end_execution"/>"#,
                r#"<skipped message="waived until 2027-01-31: known until 2.4"/>"#,
                r"waived until 2027-01-31: 3 findings",
                r#"<error message="error: predicate panicked" type="error"/>"#,
                r"warning: /shape is not a documented field",
                r#"<testcase name="flow/fetch-execution/happy" classname="flow.scenarios" time="0.250"/>"#,
            ],
        );
    }

    #[test]
    fn a_run_that_failed_without_findings_has_an_error() {
        let mut record = RunRecord {
            exit: Some(3),
            complete: true,
            errors: vec!["flow cannot be reached".to_owned(), "and more".to_owned()],
            ..RunRecord::default()
        };
        let xml = rendered(&record);
        let shown = r#"<error message="flow cannot be reached" type="error">flow cannot be reached
and more</error>"#;
        assert!(xml.contains(shown), "{xml}");
        assert!(xml.contains(r#"errors="1""#), "{xml}");
        record.errors.clear();
        assert!(rendered(&record).contains("<error message=\"nothing judged (exit 3)"));
        record.exit = Some(0);
        assert!(!rendered(&record).contains("<error"));
    }

    #[test]
    fn a_failure_that_no_defect_explains_is_counted() {
        let mut record = sample();
        record.findings.clear();
        let xml = rendered(&record);
        assert!(!xml.contains("flow.defects"), "{xml}");
        assert!(xml.contains("failures=\"2\""), "{xml}");
    }

    #[test]
    fn earlier_failures_are_listed() {
        let mut record = sample();
        record.scenarios[2].failed_before = vec!["a: b".to_owned(), "c: \u{fffe}<d>".to_owned()];
        let xml = rendered(&record);
        assert_contains(
            &xml,
            &[
                r#"<flakyFailure message="a: b" type="failed-before">"#,
                r#"<flakyFailure message="c: &lt;d&gt;" type="failed-before">"#,
            ],
        );
        assert!(xml.contains("failures=\"1\""), "{xml}");
    }

    #[test]
    fn hostile_texts_leave_the_file_well_formed() {
        for text in HOSTILE {
            let xml = rendered(&every_text_is(text));
            assert!(
                !xml.contains(['\0', '\u{1b}', '\u{fffe}', '\u{ffff}']),
                "{text:?}"
            );
            let mut reader = Reader::from_str(&xml);
            reader.config_mut().check_end_names = true;
            let mut cases = 0;
            loop {
                let event = reader.read_event();
                let event = event.unwrap_or_else(|e| panic!("{text:?}: {e}\n{xml}"));
                if event == Event::Eof {
                    break;
                }
                if let Event::Start(tag) | Event::Empty(tag) = event {
                    for attribute in tag.attributes() {
                        attribute.unwrap_or_else(|e| panic!("{text:?}: {e}\n{xml}"));
                    }
                    cases += usize::from(tag.name().as_ref() == "testcase");
                }
            }
            assert_eq!(cases, 15, "{text:?}");
        }
    }
}
