//! `JUnit` XML: one suite per service, one test case per rule and per scenario.
//!
//! - A broken rule is one failed case with all its findings, under a stable id that dashboards follow.
//! - Scenarios have their duration and name the rules that broke in them. The class name distinguishes both:
//!   `flow.rules`, `flow.scenarios`.
//! - A case fails only if it fails the run; broken should-rules pass with their findings as output.
//! - Data that the usual schema does not allow (properties of a case, number of judgments) is output.

use super::Settings;
use super::view::{self, Outcome};
use conformant_record::{Finding, RunRecord, Verdict};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Findings per rule.
const FINDINGS_MAX: usize = 20;

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut report = Report::new("conformant");
    report.set_time(duration(record.summary.seconds));
    for (_, suite) in suites(record, settings) {
        report.add_test_suite(suite);
    }
    let xml = report
        .to_string()
        .expect("writing XML into memory succeeds");
    without_skipped(&xml)
}

/// Removes the total of skipped cases, which the schema allows for suites only.
fn without_skipped(xml: &str) -> String {
    const BEGIN: &str = " skipped=\"";
    let place = xml.find("<testsuites").and_then(|element| {
        let end = element + xml[element..].find('>')?;
        let from = element + xml[element..end].find(BEGIN)?;
        let value = from + BEGIN.len();
        Some((from, value + xml[value..].find('"')? + 1))
    });
    match place {
        Some((from, to)) => format!("{}{}", &xml[..from], &xml[to..]),
        None => xml.to_owned(),
    }
}

fn suites(record: &RunRecord, settings: Settings) -> BTreeMap<&str, TestSuite> {
    let mut suites = BTreeMap::new();
    let rules = view::by_rule(record);
    for rule in &record.rules {
        let findings = rules.get(rule.id.as_str()).map_or(&[][..], Vec::as_slice);
        let outcome = view::of_rule(rule, settings);
        let summary = findings.first().map_or("", |finding| &finding.message);
        let accepted = view::waiver_of(record, &rule.id);
        let outcome = match (outcome, accepted) {
            // Waived rules neither pass nor fail.
            (Outcome::Skipped(_), Some(waiver)) if rule.verdict == Verdict::Waived => {
                Outcome::Skipped(format!(
                    "waived until {}: {}",
                    waiver.expires, waiver.reason
                ))
            }
            (outcome, _) => outcome,
        };
        let mut case = case(&rule.id, "rules", &outcome, summary, &details(findings));
        let mut about = format!("{}\n{}, {}", rule.says, rule.level.word(), rule.source);
        if rule.judged > 0 {
            about += &format!(", judged {}×", rule.judged);
        }
        if let Some(waiver) = accepted {
            let findings = view::count(waiver.findings, "finding");
            about += &format!("\nwaived until {}: {findings}", waiver.expires);
        }
        if let Some(output) = &case.system_out {
            about += &format!("\n{}", output.as_str());
        }
        case.set_system_out(xml_text(about.trim_start()));
        suite(&mut suites, &rule.id, record).add_test_case(case);
    }
    let scenarios = view::by_scenario(record);
    for result in &record.scenarios {
        let findings = scenarios
            .get(result.id.as_str())
            .map_or(&[][..], Vec::as_slice);
        let outcome = view::of_scenario(result, findings, settings);
        let broken = breaks(findings, &result.reason);
        let mut case = case(&result.id, "scenarios", &outcome, &broken, "");
        for failure in &result.failed_before {
            let mut run = TestRerun::new(NonSuccessKind::Failure);
            run.set_type("failed-before");
            run.set_message(xml_text(failure));
            case.status.add_rerun(run);
        }
        case.set_time(duration(result.seconds));
        let suite = suite(&mut suites, &result.id, record);
        suite.set_time(suite.time.unwrap_or_default() + duration(result.seconds));
        suite.add_test_case(case);
    }
    suites
}

fn suite<'a, 'r>(
    suites: &'a mut BTreeMap<&'r str, TestSuite>,
    id: &'r str,
    record: &RunRecord,
) -> &'a mut TestSuite {
    let service = view::service(id);
    suites.entry(service).or_insert_with(|| {
        let mut suite = TestSuite::new(xml_text(service));
        if let Some(target) = record.targets.get(service) {
            suite.add_property(property("target", target));
        }
        suite.add_property(property("seed", &record.seed.to_string()));
        suite.add_property(property("rulebook", &record.rulebook.digest));
        suite.add_property(property("complete", &record.complete.to_string()));
        suite
    })
}

fn property(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), xml_text(value))
}

fn case(id: &str, kind: &str, outcome: &Outcome, message: &str, details: &str) -> TestCase {
    let non_success = |kind, ty: &str, message: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(xml_text(ty));
        status.set_message(xml_text(message));
        if !details.is_empty() {
            status.set_description(xml_text(details));
        }
        status
    };
    let (status, output) = match outcome {
        Outcome::Passed => (TestCaseStatus::success(), None),
        Outcome::Failed => (
            non_success(NonSuccessKind::Failure, "broken", message),
            None,
        ),
        Outcome::Warned => {
            let output = format!("warning: {message}\n{details}");
            (TestCaseStatus::success(), Some(output))
        }
        Outcome::Skipped(reason) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(xml_text(reason));
            let output = (!details.is_empty()).then(|| details.to_owned());
            (status, output)
        }
        Outcome::Errored(reason) => (non_success(NonSuccessKind::Error, "error", reason), None),
    };
    let mut case = TestCase::new(xml_text(id), status);
    case.set_classname(xml_text(&format!("{}.{kind}", view::service(id))));
    if let Some(output) = output {
        case.set_system_out(xml_text(&output));
    }
    case
}

fn details(findings: &[&Finding]) -> String {
    let mut out = String::new();
    for finding in findings.iter().take(FINDINGS_MAX) {
        for part in [&finding.message, "\n", &view::describe(finding), "\n"] {
            out += part;
        }
    }
    if findings.len() > FINDINGS_MAX {
        out += &view::count(findings.len() - FINDINGS_MAX, "more finding");
    }
    out
}

fn breaks(findings: &[&Finding], reason: &str) -> String {
    let rules: BTreeSet<&str> = findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect();
    if rules.is_empty() {
        return reason.to_owned();
    }
    format!(
        "breaks {}",
        rules.into_iter().collect::<Vec<_>>().join(", ")
    )
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Removes characters that XML 1.0 forbids; `quick-junit` keeps U+FFFE and U+FFFF.
fn xml_text(text: &str) -> String {
    text.chars().filter(|&c| is_xml_char(c)).collect()
}

/// The production `Char` of XML 1.0.
fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, every_text_is, sample};
    use quick_xml::Reader;
    use quick_xml::events::Event;

    fn rendered(record: &RunRecord) -> String {
        Format::Junit.render(record, Settings::default())
    }

    #[test]
    fn a_run_reads_like_this() {
        let xml = rendered(&sample());
        for line in [
            r#"<testsuites name="conformant" tests="14" failures="2" errors="1" time="1.250">"#,
            r#"<testsuite name="flow" tests="14" skipped="8" errors="1" failures="2" time="1.250">"#,
            r#"<property name="target" value="http://127.0.0.1:4010/flow"/>"#,
            r#"<testcase name="flow/execution/sid" classname="flow.rules">"#,
            "<system-out>What flow/execution/sid asks for.",
            "must, D3 &quot;Execution (FN)&quot;, line 37, judged 3×",
            r#"<failure message="/status is &quot;running&quot;, expected one of active, ended" type="broken">"#,
            r#"<failure message="breaks flow/execution/no-other-fields, flow/execution/status" type="broken"/>"#,
            r#"<skipped message="not-applicable: hook missing: end_execution"/>"#,
            r#"<skipped message="waived until 2027-01-31: known until 2.4"/>"#,
            r"waived until 2027-01-31: 3 findings",
            r#"<error message="error: predicate panicked" type="error"/>"#,
            r"warning: /shape is not a documented field",
            r#"<testcase name="flow/fetch-execution/happy" classname="flow.scenarios" time="0.250"/>"#,
        ] {
            assert!(xml.contains(line), "{line}\nis missing in\n{xml}");
        }
    }

    #[test]
    fn earlier_failures_are_listed() {
        let mut record = sample();
        record.scenarios[2].failed_before = vec!["a: b".to_owned(), "c: \u{fffe}<d>".to_owned()];
        let xml = rendered(&record);
        for line in [
            r#"<flakyFailure message="a: b" type="failed-before">"#,
            r#"<flakyFailure message="c: &lt;d&gt;" type="failed-before">"#,
        ] {
            assert!(xml.contains(line), "{line}\nis missing in\n{xml}");
        }
        assert!(xml.contains("failures=\"2\""), "{xml}");
    }

    #[test]
    fn hostile_texts_leave_the_file_well_formed() {
        for text in HOSTILE {
            let xml = rendered(&every_text_is(text));
            assert!(xml.chars().all(is_xml_char), "{text:?}");
            let mut reader = Reader::from_str(&xml);
            reader.config_mut().check_end_names = true;
            let mut cases = 0;
            loop {
                match reader
                    .read_event()
                    .unwrap_or_else(|e| panic!("{text:?}: {e}\n{xml}"))
                {
                    Event::Start(tag) | Event::Empty(tag) => {
                        for attribute in tag.attributes() {
                            attribute.unwrap_or_else(|e| panic!("{text:?}: {e}\n{xml}"));
                        }
                        cases += usize::from(tag.name().as_ref() == "testcase");
                    }
                    Event::Eof => break,
                    Event::End(_)
                    | Event::Text(_)
                    | Event::CData(_)
                    | Event::Comment(_)
                    | Event::Decl(_)
                    | Event::PI(_)
                    | Event::DocType(_)
                    | Event::GeneralRef(_) => {}
                }
            }
            assert_eq!(cases, 14, "{text:?}");
        }
    }

    #[test]
    fn the_xml_filter_follows_the_char_production() {
        assert_eq!(
            xml_text("a\0\u{1f}\u{7f}\u{fffe}\u{ffff}\u{fffd}\u{10ffff}\t"),
            "a\u{7f}\u{fffd}\u{10ffff}\t"
        );
    }
}
