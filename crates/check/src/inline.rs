//! Judges live traffic: each exchange at once by rules about one exchange, and all of them by rules about a history.
//!
//! Does not forward or print. Histories are bounded: a full one is judged and a new one begins, so that a proxy can run
//! for weeks.

use super::checker::FINDINGS_MAX;
use super::document::DocumentJudge;
use super::traffic::{History, Observed, Operations};
use super::{Sides, Surroundings};
use conformant_base::http::{Cause, Request, Response};
use conformant_engine::Recorder;
use conformant_judge::Judgment;
use conformant_judge::clients::Completeness;
use conformant_judge::evidence::Span;
use conformant_record::{Finding, RunRecord};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use std::collections::BTreeSet;

/// A request and its result.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Destination: scheme, host and port.
    pub origin: String,
    /// Request as sent, including the base path.
    pub request: Request,
    /// The response, or why there is none: a stable word, and a text for people.
    pub answer: Result<Response, (Cause, String)>,
    /// Times when it was sent and answered.
    pub span: Span,
}

/// Judge of live traffic.
#[derive(Debug)]
pub struct Inline<'a> {
    /// Name of the traffic in the record.
    name: &'static str,
    rulebook: &'a Rulebook,
    schemas: Schemas,
    surroundings: &'a Surroundings,
    operations: Operations<'a>,
    history: History,
    judgment: Judgment,
    /// Findings of the present history that were reported already.
    reported: BTreeSet<(String, usize, String)>,
    /// Number of requests.
    passed: usize,
    /// Number of requests of known operations.
    judged: usize,
    /// Number of findings that are counted only.
    unlisted: usize,
    infrastructure_error: bool,
}

impl<'a> Inline<'a> {
    /// A judge of traffic to the targets in `surroundings`; `name` is its name in the record.
    pub fn new(name: &'static str, rulebook: &'a Rulebook, surroundings: &'a Surroundings) -> Self {
        Self {
            name,
            rulebook,
            schemas: Schemas::default(),
            surroundings,
            operations: Operations::of(rulebook, surroundings),
            history: History::default(),
            judgment: Judgment::default(),
            reported: BTreeSet::new(),
            passed: 0,
            judged: 0,
            unlisted: 0,
            infrastructure_error: false,
        }
    }

    /// Adds an exchange; returns its findings, and those of a full history.
    pub fn take(&mut self, passed: Passed) -> Vec<Finding> {
        self.passed += 1;
        self.infrastructure_error |= passed.answer.is_err();
        let Some(found) = self.operations.find(&passed.origin, &passed.request) else {
            return Vec::new();
        };
        self.judged += 1;
        let one = self.one();
        let observed = Observed {
            number: self.passed,
            request: passed.request,
            answer: passed.answer,
            span: passed.span,
        };
        let exchange = one.exchange(found, observed);
        let client = one.client(&exchange, Completeness::Whole);
        let mut alone = History::default();
        alone.take(exchange.clone());
        let findings = alone.close(&one).findings;
        let sent_wrongly = client.findings.clone();
        self.keep(client);
        self.reported.extend(findings.iter().map(key));
        let is_full = self.history.take(exchange);
        let mut findings: Vec<Finding> = sent_wrongly.into_iter().chain(findings).collect();
        if is_full {
            findings.extend(self.close());
        }
        findings
    }

    fn one(&self) -> DocumentJudge<'_> {
        DocumentJudge {
            rulebook: self.rulebook,
            schemas: &self.schemas,
            surroundings: self.surroundings,
            name: self.name,
        }
    }

    /// Judges the history; returns findings that need a history.
    fn close(&mut self) -> Vec<Finding> {
        let mut history = std::mem::take(&mut self.history);
        let judgment = history.close(&self.one());
        let reported = std::mem::take(&mut self.reported);
        let new = judgment
            .findings
            .iter()
            .filter(|f| !reported.contains(&key(f)));
        let new: Vec<Finding> = new.cloned().collect();
        self.keep(judgment);
        new
    }

    /// Adds findings up to the limit.
    fn keep(&mut self, mut judgment: Judgment) {
        let room = FINDINGS_MAX.saturating_sub(self.judgment.findings.len());
        self.unlisted += judgment.findings.len().saturating_sub(room);
        judgment.findings.truncate(room);
        self.judgment.merge(judgment);
    }

    /// Number of requests, and of those without an operation.
    pub fn counts(&self) -> (usize, usize) {
        (self.passed, self.passed - self.judged)
    }

    /// The side that is judged.
    pub fn sides(&self) -> Sides {
        self.surroundings.sides
    }

    /// Number of findings that are counted by rule but not listed, because of the limit.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Whether a target failed to respond.
    pub fn had_infrastructure_error(&self) -> bool {
        self.infrastructure_error
    }

    /// Judges the rest; returns the record, and findings not reported yet.
    pub fn finish(mut self) -> (RunRecord, Vec<Finding>) {
        let findings = self.close();
        let targets = self.surroundings.targets.clone();
        let mut recorder = Recorder::new(self.rulebook, targets.clone(), 0);
        recorder.add_judgment(self.name, self.judgment);
        let mut record = recorder.finish_judged(|rule| targets.contains_key(&rule.service));
        record.summary.exchanges = self.judged;
        (record, findings)
    }
}

fn key(finding: &Finding) -> (String, usize, String) {
    (
        finding.rule.clone(),
        finding.exchange,
        finding.pointer.clone(),
    )
}
