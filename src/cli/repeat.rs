//! `run --repeat N`: collects several runs of one plan and finds what differs between them.
//!
//! The evidence of the first run is kept in memory, compressed; each later run is compared with it.

use super::config::Config;
use conformant_base::redact::Redactor;
use conformant_engine::evidence_file::Head;
use conformant_engine::{EvidenceWriter, RunEnd, evidence_of, first_difference};
use conformant_record::{ExchangeDifference, RunRecord, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The runs that ended so far. Without `--repeat` it is one.
pub(super) struct Repetition {
    requested: usize,
    runs: Vec<(String, RunRecord)>,
    first: Vec<u8>,
    /// The first differing exchange by rule.
    differences: BTreeMap<String, ExchangeDifference>,
    ended: RunEnd,
}

impl Repetition {
    pub(super) fn new(requested: usize) -> Self {
        Self {
            requested,
            runs: Vec::new(),
            first: Vec::new(),
            differences: BTreeMap::new(),
            ended: RunEnd::default(),
        }
    }

    /// Adds a run with its names and its evidence.
    pub(super) fn add(&mut self, names: &str, record: RunRecord, ended: RunEnd, evidence: Vec<u8>) {
        if self.runs.is_empty() {
            self.first = evidence;
        } else {
            self.compare_with_first(&record, &evidence);
        }
        let before = std::mem::replace(&mut self.ended, ended);
        self.ended.has_infrastructure_error |= before.has_infrastructure_error;
        self.runs.push((names.to_owned(), record));
    }

    /// Notes that the next run could not begin.
    pub(super) fn note_failed_start(&mut self) {
        self.ended.has_infrastructure_error = true;
    }

    /// Whether the last run was aborted, so that no other one can begin.
    pub(super) fn is_aborted(&self) -> bool {
        !self.ended.void_services().is_empty() || self.ended.gone.is_some()
    }

    /// The record of all runs, and how the last one ended. A single run keeps its record.
    pub(super) fn finish(mut self) -> Option<(RunRecord, RunEnd)> {
        if self.requested == 1 {
            return self.runs.pop().map(|(_, record)| (record, self.ended));
        }
        let mut record = conformant_versions::repeated(self.requested, self.runs)?;
        for rule in record.repeats.iter_mut().flat_map(|r| &mut r.rules) {
            rule.difference = self.differences.remove(&rule.rule);
        }
        Some((record, self.ended))
    }

    /// For each rule that passed in one run and failed in the other, finds the first differing exchange.
    fn compare_with_first(&mut self, now: &RunRecord, evidence: &[u8]) {
        let (_, first) = &self.runs[0];
        let differing = flipped(first, now)
            .into_iter()
            .filter(|flipped| !self.differences.contains_key(flipped.rule));
        let differing: Vec<Flipped<'_>> = differing.collect();
        if differing.is_empty() {
            return;
        }
        let scenarios: BTreeSet<&str> = differing.iter().map(|flipped| flipped.scenario).collect();
        let before = evidence_of(&self.first, &scenarios);
        let after = evidence_of(evidence, &scenarios);
        let run = self.runs.len() + 1;
        for Flipped {
            rule,
            scenario,
            fails_now,
        } in differing
        {
            let (Some(before), Some(after)) = (before.get(scenario), after.get(scenario)) else {
                continue;
            };
            let (passed, failed, runs) = match fails_now {
                true => (before, after, (1, run)),
                false => (after, before, (run, 1)),
            };
            if let Some(mut difference) = first_difference(passed, failed) {
                (difference.passed_run, difference.failed_run) = runs;
                self.differences.insert(rule.to_owned(), difference);
            }
        }
    }
}

/// A rule that passed in one of two runs and failed in the other.
struct Flipped<'a> {
    rule: &'a str,
    /// The scenario of its first finding.
    scenario: &'a str,
    fails_now: bool,
}

fn flipped<'a>(first: &'a RunRecord, now: &'a RunRecord) -> Vec<Flipped<'a>> {
    let before: BTreeMap<&str, Verdict> = first
        .rules
        .iter()
        .map(|rule| (rule.id.as_str(), rule.verdict))
        .collect();
    let rules = now.rules.iter();
    let flipped = rules.filter_map(|rule| {
        let (failed, fails_now) = match (before.get(rule.id.as_str())?, rule.verdict) {
            (Verdict::Pass, Verdict::Fail) => (now, true),
            (Verdict::Fail, Verdict::Pass) => (first, false),
            _ => return None,
        };
        let finding = failed.findings.iter().find(|f| f.rule == rule.id)?;
        Some(Flipped {
            rule: &rule.id,
            scenario: &finding.scenario,
            fails_now,
        })
    });
    flipped.collect()
}

/// An evidence file in memory.
#[derive(Clone, Default)]
pub(super) struct EvidenceBuffer(Arc<Mutex<Vec<u8>>>);

impl EvidenceBuffer {
    /// Begins a file.
    pub(super) fn begin(&self, config: &Config, head: &Head) -> Arc<EvidenceWriter> {
        let redactor = Redactor::new(&config.secrets);
        EvidenceWriter::begin(Box::new(self.clone()), redactor, head)
    }

    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl io::Write for EvidenceBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
