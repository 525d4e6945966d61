//! Traffic judged while it passes: each exchange at once by the rules about one exchange, and all of
//! them by those about a history.
//!
//! It forwards nothing and prints nothing. A history is bounded: when it is full it is judged, and the
//! next one begins, so that a proxy may stand for weeks.

use super::traffic::{History, Observed, Operations};
use super::{FINDINGS_MAX, One, Surroundings};
use conformant_base::http::{Cause, Request, Response};
use conformant_engine::Recorder;
use conformant_judge::Judgement;
use conformant_judge::clients::Kept;
use conformant_judge::evidence::Span;
use conformant_record::{Finding, RunRecord};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use std::collections::BTreeSet;

/// A request that passed, and what came of it.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Origin that it went to: scheme, host and port.
    pub origin: String,
    /// As it was sent there, base address included.
    pub request: Request,
    /// The answer, or why there is none: a stable word, and one for a person.
    pub answer: Result<Response, (Cause, String)>,
    /// From when it was sent to when its answer was there.
    pub span: Span,
}

/// Judges traffic as it passes.
#[derive(Debug)]
pub struct Inline<'a> {
    /// What the record calls the traffic.
    name: &'static str,
    rulebook: &'a Rulebook,
    schemas: Schemas,
    surroundings: &'a Surroundings,
    operations: Operations<'a>,
    history: History,
    judgement: Judgement,
    /// Of the present history: what was told while it passed.
    told: BTreeSet<(String, usize, String)>,
    /// Requests so far.
    passed: usize,
    /// Those that belong to an operation.
    judged: usize,
    /// Findings that are counted and not kept.
    unlisted: usize,
    trouble: bool,
}

impl<'a> Inline<'a> {
    /// A judge of what goes to the targets in `surroundings`; `name` is what the record calls it.
    pub fn new(name: &'static str, rulebook: &'a Rulebook, surroundings: &'a Surroundings) -> Self {
        Self {
            name,
            rulebook,
            schemas: Schemas::default(),
            surroundings,
            operations: Operations::of(rulebook, surroundings),
            history: History::default(),
            judgement: Judgement::default(),
            told: BTreeSet::new(),
            passed: 0,
            judged: 0,
            unlisted: 0,
            trouble: false,
        }
    }

    /// Takes the next exchange; returns what is to be told of it, and of a history that is full now.
    pub fn take(&mut self, passed: Passed) -> Vec<Finding> {
        self.passed += 1;
        self.trouble |= passed.answer.is_err();
        let Some(found) = self.operations.find(&passed.origin, &passed.request) else {
            return Vec::new();
        };
        self.judged += 1;
        let one = One {
            rulebook: self.rulebook,
            schemas: &self.schemas,
            surroundings: self.surroundings,
            name: self.name,
        };
        let observed = Observed {
            number: self.passed,
            request: passed.request,
            answer: passed.answer,
            span: passed.span,
        };
        let exchange = one.exchange(found, observed);
        let client = one.client(&exchange, Kept::Whole);
        let mut alone = History::default();
        alone.take(exchange.clone());
        let told = alone.close(&one).findings;
        let sent_wrongly = client.findings.clone();
        self.keep(client);
        self.told.extend(told.iter().map(key));
        let is_full = self.history.take(exchange);
        let mut told: Vec<Finding> = sent_wrongly.into_iter().chain(told).collect();
        if is_full {
            told.extend(self.close());
        }
        told
    }

    /// Judges the history so far; returns what only a history shows.
    fn close(&mut self) -> Vec<Finding> {
        let one = One {
            rulebook: self.rulebook,
            schemas: &self.schemas,
            surroundings: self.surroundings,
            name: self.name,
        };
        let judgement = self.history.close(&one);
        let told = std::mem::take(&mut self.told);
        let new = judgement
            .findings
            .iter()
            .filter(|f| !told.contains(&key(f)));
        let new: Vec<Finding> = new.cloned().collect();
        self.keep(judgement);
        new
    }

    /// Takes up what was concluded, without more findings than can be kept.
    fn keep(&mut self, mut judgement: Judgement) {
        let room = FINDINGS_MAX.saturating_sub(self.judgement.findings.len());
        self.unlisted += judgement.findings.len().saturating_sub(room);
        judgement.findings.truncate(room);
        self.judgement.merge(judgement);
    }

    /// How many requests passed, and how many of them belong to no operation.
    pub fn counts(&self) -> (usize, usize) {
        (self.passed, self.passed - self.judged)
    }

    /// Findings that are counted with their rule and not listed, as there are too many.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// True when a target did not answer.
    pub fn met_trouble(&self) -> bool {
        self.trouble
    }

    /// Judges what is left; returns the record of all, and what is still to be told.
    pub fn finish(mut self) -> (RunRecord, Vec<Finding>) {
        let told = self.close();
        let targets = self.surroundings.targets.clone();
        let mut recorder = Recorder::new(self.rulebook, targets.clone(), 0);
        recorder.add_judgement(self.name, self.judgement);
        let mut record = recorder.finish_judged(|rule| targets.contains_key(&rule.service));
        record.summary.exchanges = self.judged;
        (record, told)
    }
}

fn key(finding: &Finding) -> (String, usize, String) {
    (
        finding.rule.clone(),
        finding.exchange,
        finding.pointer.clone(),
    )
}
