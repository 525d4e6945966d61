//! Events of a run as JSON lines, for scripts and bots: one object a line, written as the run goes.
//!
//! - A pipe or standard output gets each line at once. A file appears when the run has ended.
//! - Texts are cut. The JSON record has them in full.

use crate::destination::{Growing, WriteError, unless_closed};
use crate::{Consumer, Destination, Format, Report, Settings, view};
use conformant_base::text;
use conformant_record::{Finding, Level, RuleCounts, RunEvent, RunRecord, ScenarioResult, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const LINES_VERSION: u32 = 1;
/// Bytes of one text.
const TEXT_BYTES_MAX: usize = 2_000;
/// Lines about findings; later findings are counted.
const FINDINGS_MAX: usize = 10_000;

/// One line of `--report jsonl=PATH`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RunLine {
    /// Planning finished.
    RunStarted {
        /// Version of these lines.
        version: u32,
        /// Number of scenarios.
        scenarios: usize,
        /// Base URL by service.
        targets: BTreeMap<String, String>,
    },
    /// A scenario began; in no particular order.
    ScenarioStarted {
        /// Its id.
        scenario: String,
    },
    /// A finding of a scenario, before the line of its end.
    Finding(Box<FindingLine>),
    /// A scenario ended; in the plan's order.
    ScenarioEnded {
        /// Its id.
        scenario: String,
        /// Its verdict.
        verdict: Verdict,
        /// Seconds on the target's clock.
        seconds: f64,
        /// Number of findings.
        findings: usize,
        /// Reason of a missing verdict.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// The run ended; the last line.
    RunEnded {
        /// The conclusion in one line.
        verdict: String,
        /// The exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
        /// False if the run was interrupted.
        complete: bool,
        /// Why it failed apart from findings.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<String>,
        /// Rules by verdict.
        rules: RuleCounts,
        /// Titles of the defects, the first to fix first.
        defects: Vec<String>,
        /// Findings without a line.
        findings_left_out: usize,
    },
}

/// A finding in one line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FindingLine {
    /// The broken rule.
    pub rule: String,
    /// How binding the rule is.
    pub level: Level,
    /// The service.
    pub service: String,
    /// The operation, if the finding belongs to one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// The scenario.
    pub scenario: String,
    /// The step in its scenario, counted from 1.
    pub step: usize,
    /// JSON Pointer in the document.
    pub pointer: String,
    /// What was expected.
    pub expected: String,
    /// What was observed.
    pub actual: String,
    /// Both in one sentence.
    pub message: String,
    /// The command that repeats the request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reproduce: String,
    /// Why it is waived.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waived: String,
}

/// Writes the lines of one report.
pub struct EventLines {
    out: Box<dyn Write + Send>,
    /// A file that appears at the end.
    growing: Option<Growing>,
    path: PathBuf,
    settings: Settings,
    findings: usize,
    /// The first error; nothing is written after it.
    failed: io::Result<()>,
}

impl EventLines {
    /// Opens the destination of a report of this format; none for other formats.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn begin(report: &Report, settings: Settings) -> Option<Result<Self, WriteError>> {
        if report.format != Format::Jsonl {
            return None;
        }
        let (path, opened) = match &report.destination {
            Destination::Stdout => (
                Path::new("standard output"),
                Ok((Box::new(io::stdout()) as Box<dyn Write + Send>, None)),
            ),
            Destination::File(path) => (path.as_path(), open(path)),
        };
        let opened = opened.map_err(WriteError::of(Format::Jsonl, path));
        Some(opened.map(|(out, growing)| Self {
            out,
            growing,
            path: path.to_owned(),
            settings,
            findings: 0,
            failed: Ok(()),
        }))
    }

    /// Completes the report.
    ///
    /// # Errors
    /// If a line was not written. A closed pipe is not an error.
    pub fn finish(self) -> Result<(), WriteError> {
        let done = unless_closed(self.failed);
        let done = done.and_then(|()| self.growing.map_or(Ok(()), Growing::finish));
        done.map_err(WriteError::of(Format::Jsonl, &self.path))
    }

    fn write(&mut self, line: &RunLine) {
        if self.failed.is_ok() {
            let written = self.out.write_all(rendered(line).as_bytes());
            self.failed = written.and_then(|()| self.out.flush());
        }
    }
}

/// A file that grows next to its final path, or a device or pipe as it is.
fn open(path: &Path) -> io::Result<(Box<dyn Write + Send>, Option<Growing>)> {
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        let device = std::fs::OpenOptions::new().write(true).open(path)?;
        return Ok((Box::new(device), None));
    }
    let growing = Growing::begin(path)?;
    Ok((growing.file()?, Some(growing)))
}

impl Consumer for EventLines {
    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { scenarios, targets } => self.write(&RunLine::RunStarted {
                version: LINES_VERSION,
                scenarios: *scenarios,
                targets: targets.clone(),
            }),
            RunEvent::ScenarioBegan { id } => self.write(&RunLine::ScenarioStarted {
                scenario: id.clone(),
            }),
            RunEvent::ScenarioEnded {
                result, findings, ..
            } => {
                for finding in findings {
                    self.findings += 1;
                    if self.findings <= FINDINGS_MAX {
                        self.write(&of_finding(finding));
                    }
                }
                self.write(&ended(result, findings.len()));
            }
            RunEvent::Finished { record } => {
                let left_out = self.findings.saturating_sub(FINDINGS_MAX);
                self.write(&end(record, self.settings, left_out));
            }
            RunEvent::ScenarioPlayed { .. } | RunEvent::Waiting { .. } | RunEvent::Alive { .. } => {
            }
        }
    }
}

/// The lines of a finished run, without those of beginnings.
pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut out = rendered(&RunLine::RunStarted {
        version: LINES_VERSION,
        scenarios: record.scenarios.len(),
        targets: record.targets.clone(),
    });
    let findings = record.findings.iter().take(FINDINGS_MAX);
    let mut by_scenario: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let known = by_scenario.entry(&finding.scenario).or_default();
        known.push(finding);
    }
    for result in &record.scenarios {
        let findings = by_scenario.remove(result.id.as_str()).unwrap_or_default();
        for finding in &findings {
            out += &rendered(&of_finding(finding));
        }
        out += &rendered(&ended(result, findings.len()));
    }
    for finding in by_scenario.into_values().flatten() {
        out += &rendered(&of_finding(finding));
    }
    let left_out = record.findings.len().saturating_sub(FINDINGS_MAX);
    out + &rendered(&end(record, settings, left_out))
}

fn ended(result: &ScenarioResult, findings: usize) -> RunLine {
    RunLine::ScenarioEnded {
        scenario: result.id.clone(),
        verdict: result.verdict,
        seconds: result.seconds,
        findings,
        reason: cut(&result.reason),
    }
}

fn end(record: &RunRecord, settings: Settings, findings_left_out: usize) -> RunLine {
    let cards = crate::cards::cards(record, settings);
    RunLine::RunEnded {
        verdict: view::conclusion(record, settings),
        exit: record.exit,
        complete: record.complete,
        errors: view::errors(record, settings),
        rules: record.summary.rules.clone(),
        defects: cards.iter().map(|card| cut(&card.defect.title)).collect(),
        findings_left_out,
    }
}

fn of_finding(finding: &Finding) -> RunLine {
    RunLine::Finding(Box::new(FindingLine {
        rule: finding.rule.clone(),
        level: finding.level,
        service: finding.service.clone(),
        operation: finding.operation.clone(),
        scenario: finding.scenario.clone(),
        step: finding.step,
        pointer: cut(&finding.pointer),
        expected: cut(&finding.expected),
        actual: cut(&finding.actual),
        message: cut(&finding.message),
        reproduce: cut(&finding.reproduce),
        waived: finding.waived.clone(),
    }))
}

fn cut(text: &str) -> String {
    text::excerpt(text, TEXT_BYTES_MAX).into_owned()
}

/// One line of JSON in safe spelling.
fn rendered(line: &RunLine) -> String {
    let json = text::safe_json(line).expect("map keys are strings");
    // Within strings, line feeds are escapes: each line feed is layout.
    let line: String = json.lines().map(str::trim_start).collect();
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{HOSTILE, every_text_is, sample};
    use serde_json::Value;

    fn lines(text: &str) -> Vec<Value> {
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn names(lines: &[Value]) -> Vec<&str> {
        lines
            .iter()
            .filter_map(|line| line["event"].as_str())
            .collect()
    }

    #[test]
    fn events_are_written_at_once_to_a_device_and_as_a_whole_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let report: Report = format!("jsonl={}", path.display()).parse().unwrap();
        let mut out = EventLines::begin(&report, Settings::default())
            .unwrap()
            .unwrap();
        let record = sample();
        out.event(&RunEvent::Started {
            scenarios: 1,
            targets: BTreeMap::new(),
        });
        out.event(&RunEvent::ScenarioBegan { id: "a/b/c".into() });
        out.event(&RunEvent::ScenarioEnded {
            result: record.scenarios[0].clone(),
            findings: record.findings.clone(),
            exchanges: 4,
        });
        assert!(!path.exists(), "the run has not ended");
        out.event(&RunEvent::Finished {
            record: Box::new(record),
        });
        out.finish().unwrap();
        let lines = lines(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(lines[1]["scenario"], "a/b/c");
        assert_eq!(
            names(&lines)[2..6],
            ["finding"; 3]
                .into_iter()
                .chain(["scenario-ended"])
                .collect::<Vec<_>>()
        );
        assert_eq!(lines.last().unwrap()["event"], "run-ended");
    }

    #[test]
    fn hostile_texts_stay_in_their_line() {
        let harmless = render(&every_text_is("x"), Settings::default())
            .lines()
            .count();
        for text in HOSTILE {
            let written = render(&every_text_is(text), Settings::default());
            assert_eq!(lines(&written).len(), harmless, "{text:?}");
            assert!(!written.contains("##vso["));
        }
    }
}
