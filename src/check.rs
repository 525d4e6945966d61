//! Payload files judged offline: one document, or NDJSON with one document a line.
//!
//! The same payload rules as in a run; rules that need an exchange are not judged.

use crate::json::{self, Limits};
use crate::judge::evidence::{Evidence, Payload};
use crate::judge::judge;
use crate::rulebook::Rulebook;
use crate::schema::Schemas;
use crate::verdict::{Finding, RunRecord};
use std::sync::Arc;

/// What files are judged as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A representation of the rulebook: `flow/execution`, `chat/channel[]`, `events/MessageSent/4`.
    Representation(String),
}

impl Kind {
    /// Reads what `--as` says; an event type stands for its current schema.
    pub fn parse(rulebook: &Rulebook, text: &str) -> Result<Self, String> {
        if rulebook.kinds.contains_key(text) {
            return Ok(Self::Representation(text.to_owned()));
        }
        match rulebook.event_types.get(text) {
            Some(Some(kind)) => return Ok(Self::Representation(kind.clone())),
            Some(None) => return Err(format!("no document shows the payload of {text}, so nothing can be judged")),
            None => {}
        }
        let mut known: Vec<&str> = rulebook.kinds.keys().map(String::as_str).collect();
        known.extend(rulebook.event_types.keys().map(String::as_str));
        let near = crate::text::did_you_mean(text, &known);
        let help = near.map_or_else(
            || "see `conformant list kinds`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(format!("--as {text}: no such kind; {help}"))
    }
}

/// Judges files of one kind, one after the other.
#[derive(Debug)]
pub struct Checker<'a> {
    rulebook: &'a Rulebook,
    schemas: Schemas,
    kind: Kind,
    recorder: crate::engine::Recorder<'a>,
    judged: usize,
}

impl<'a> Checker<'a> {
    /// A checker for this kind.
    pub fn new(rulebook: &'a Rulebook, kind: Kind) -> Self {
        let recorder = crate::engine::Recorder::new(rulebook, std::collections::BTreeMap::new(), 0);
        Self { rulebook, schemas: Schemas::default(), kind, recorder, judged: 0 }
    }

    /// Judges a file: one document, or one a line where its name says so.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        let by_line = name.ends_with(".ndjson") || name.ends_with(".jsonl");
        if by_line {
            for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
                if !line.iter().all(u8::is_ascii_whitespace) {
                    self.document(name, index + 1, line);
                }
            }
        } else {
            self.document(name, 0, bytes);
        }
    }

    /// The record of all files, and how many documents were judged.
    pub fn finish(self) -> (RunRecord, usize) {
        let Kind::Representation(kind) = &self.kind;
        let service = kind.split('/').next().unwrap_or_default().to_owned();
        let selects = |rule: &crate::rulebook::Rule| rule.service == service;
        (self.recorder.finish_judged(selects), self.judged)
    }

    fn document(&mut self, name: &str, line: usize, bytes: &[u8]) {
        self.judged += 1;
        let Kind::Representation(kind) = &self.kind;
        let judgement = match json::parse(bytes, Limits::default()) {
            Ok(parsed) => {
                let payload = Payload { kind: kind.clone(), value: Arc::new(parsed.value), step: line };
                let evidence = Evidence {
                    scenario: name.to_owned(),
                    payloads: vec![payload],
                    ..Evidence::default()
                };
                judge(self.rulebook, &self.schemas, &evidence)
            }
            Err(fault) => {
                let mut judgement = crate::judge::Judgement::default();
                judgement.add(unreadable(name, line, kind, &fault.to_string()));
                judgement
            }
        };
        self.recorder.add_judgement(name, judgement);
    }
}

/// A document that is none: no rule is broken but the one that there is a document.
fn unreadable(name: &str, line: usize, kind: &str, why: &str) -> Finding {
    Finding {
        rule: format!("{kind}/readable"),
        level: "must".to_owned(),
        service: kind.split('/').next().unwrap_or_default().to_owned(),
        scenario: name.to_owned(),
        step: line,
        kind: "unreadable".to_owned(),
        expected: "a JSON document".to_owned(),
        actual: why.to_owned(),
        message: format!("not a readable document: {why}"),
        ..Finding::default()
    }
}
