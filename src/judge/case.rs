//! A case: evidence brought into the order in which predicates look at it, and what they conclude.
//!
//! Payload rules are judged first; a value that breaks its own rule is then hidden from every
//! other predicate, so that one defect brings one finding.

use super::acceptance::{Acceptance, acceptance};
use super::evidence::{Body, Evidence, Exchange, Outcome};
use super::reproduce::curl;
use crate::json;
use crate::rulebook::{Operation, Rulebook};
use crate::schema::Schemas;
use crate::text;
use crate::verdict::{Finding, Level};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Evidence of one story, prepared.
#[derive(Debug)]
pub struct Case<'a> {
    /// What is judged by.
    pub rulebook: &'a Rulebook,
    /// What is judged.
    pub evidence: &'a Evidence,
    /// Exchanges in order.
    pub seen: Vec<Seen<'a>>,
    /// Every representation with its kind, in order.
    pub representations: Vec<Representation<'a>>,
}

/// One exchange, prepared.
#[derive(Debug)]
pub struct Seen<'a> {
    /// As it was observed.
    pub exchange: &'a Exchange,
    /// Its operation, where it fits one.
    pub operation: Option<&'a Operation>,
    /// Whether the target accepted.
    pub acceptance: Acceptance,
    /// Pointers that broke a rule of their own.
    pub broken: Vec<String>,
}

/// One representation of a thing: an answer, an item of a list page, or a payload.
#[derive(Debug)]
pub struct Representation<'a> {
    /// `flow/execution`.
    pub kind: &'a str,
    /// The representation itself.
    pub value: &'a Value,
    /// Where it stands in its document.
    pub prefix: String,
    /// The exchange it came by.
    pub exchange: Option<usize>,
    /// Index into the evidence's payloads, where it came as one.
    pub payload: Option<usize>,
    /// Pointers of its document that broke a rule of their own.
    pub broken: Vec<String>,
}

/// What was concluded of a case.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// By rule id.
    pub tallies: BTreeMap<String, Tally>,
    /// In the order of the exchanges.
    pub findings: Vec<Finding>,
    /// Distinct value-free observations by open point.
    pub observed: BTreeMap<String, BTreeSet<String>>,
}

/// How often a rule was judged, and why it could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Times judged.
    pub judged: usize,
    /// Findings brought.
    pub findings: usize,
    /// Why it was inconclusive at times.
    pub inconclusive: BTreeSet<String>,
}

/// A finding's own part; the case fills in the rest.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// JSON Pointer into the judged document.
    pub pointer: String,
    /// Kind of difference.
    pub kind: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was there.
    pub actual: String,
    /// One sentence that says both; made of the two when empty.
    pub message: String,
}

impl<'a> Case<'a> {
    /// Prepares the evidence and judges every payload in it.
    pub fn new(
        rulebook: &'a Rulebook,
        schemas: &Schemas,
        evidence: &'a Evidence,
        judgement: &mut Judgement,
    ) -> Self {
        let mut case = Self { rulebook, evidence, seen: Vec::new(), representations: Vec::new() };
        for (index, exchange) in evidence.exchanges.iter().enumerate() {
            let operation = rulebook.operation(&exchange.service, &exchange.operation);
            let acceptance = acceptance(rulebook, exchange, operation);
            case.seen.push(Seen { exchange, operation, acceptance, broken: Vec::new() });
            let kind = match &case.seen[index].acceptance {
                Acceptance::Accepted => operation.and_then(|o| o.response.as_deref()),
                Acceptance::Rejected(_) => operation.and_then(|o| o.error.as_deref()),
                Acceptance::Inconclusive(_) => None,
            };
            if let (Some(kind), Some(value)) = (kind, exchange.document()) {
                let broken = case.judge_payload(schemas, kind, value, Some(index), None, judgement);
                case.seen[index].broken.clone_from(&broken);
                case.represent(kind, value, Some(index), None, &broken);
            }
        }
        for (index, payload) in evidence.payloads.iter().enumerate() {
            let broken = case
                .judge_payload(schemas, &payload.kind, &payload.value, None, Some(index), judgement);
            case.represent(&payload.kind, &payload.value, None, Some(index), &broken);
        }
        case
    }

    /// Judges one document by its schema and payload rules; returns the pointers that broke.
    fn judge_payload(
        &self,
        schemas: &Schemas,
        kind: &str,
        value: &Value,
        exchange: Option<usize>,
        payload: Option<usize>,
        judgement: &mut Judgement,
    ) -> Vec<String> {
        let outcome = super::payload::judge_payload(self.rulebook, schemas, kind, value);
        for rule in outcome.judged {
            judgement.tallies.entry(rule).or_default().judged += 1;
        }
        let mut broken = Vec::new();
        for violation in outcome.violations {
            if violation.level == Level::Must {
                broken.push(violation.pointer.clone());
            }
            let fact = Fact {
                pointer: violation.pointer,
                kind: violation.kind,
                expected: violation.expected,
                actual: violation.actual,
                message: violation.message,
            };
            let mut finding = self.finding(&violation.rule, exchange, fact);
            if let Some(index) = payload {
                finding.step = self.evidence.payloads[index].step;
                finding.diff = field_diff(value, &finding.pointer, &finding.expected);
            }
            judgement.add(finding);
        }
        broken
    }

    fn represent(
        &mut self,
        kind: &str,
        value: &'a Arc<Value>,
        exchange: Option<usize>,
        payload: Option<usize>,
        broken: &[String],
    ) {
        let Some(known) = self.rulebook.kinds.get(kind) else { return };
        let broken = broken.to_vec();
        let Some((item_kind, key)) = &known.page_of else {
            let prefix = String::new();
            self.representations.push(Representation {
                kind: &known.name, value, prefix, exchange, payload, broken,
            });
            return;
        };
        let key = key.as_deref().or_else(|| value.pointer("/meta/key").and_then(Value::as_str));
        let items = key.and_then(|k| value.get(k)).and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            self.representations.push(Representation {
                kind: item_kind,
                value: item,
                prefix: format!("/{}/{index}", json::escape(key.unwrap_or_default())),
                exchange,
                payload,
                broken: broken.clone(),
            });
        }
    }

    /// Representations of one kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Representation<'a>> {
        self.representations.iter().filter(move |r| r.kind == kind)
    }

    /// Exchanges of one service's operation with their index.
    pub fn of_operation(
        &self,
        service: &str,
        operation: &str,
    ) -> impl Iterator<Item = (usize, &Seen<'a>)> {
        self.seen.iter().enumerate().filter(move |(_, s)| {
            s.exchange.service == service && s.exchange.operation == operation
        })
    }

    /// A finding of `rule`, with everything the case knows filled in.
    pub fn finding(&self, rule: &str, exchange: Option<usize>, fact: Fact) -> Finding {
        let known = self.rulebook.rules.get(rule);
        let level = match known.map_or(Level::Must, |r| r.level) {
            Level::Must => "must",
            Level::Should | Level::May | Level::Open => "should",
        };
        let message = if fact.message.is_empty() {
            format!("expected {}, got {}", fact.expected, fact.actual)
        } else {
            fact.message
        };
        let mut finding = Finding {
            rule: rule.to_owned(),
            level: level.to_owned(),
            service: known.map_or_else(String::new, |r| r.service.clone()),
            scenario: self.evidence.scenario.clone(),
            pointer: fact.pointer,
            kind: fact.kind.to_owned(),
            expected: fact.expected,
            actual: fact.actual,
            message,
            ..Finding::default()
        };
        if let Some(index) = exchange {
            let exchange = &self.evidence.exchanges[index];
            finding.service.clone_from(&exchange.service);
            finding.operation.clone_from(&exchange.operation);
            finding.step = exchange.step;
            finding.exchange = index + 1;
            finding.reproduce = curl(exchange);
            finding.diff = exchange.document().map_or_else(
                || text::unified_diff(&finding.expected, &finding.actual),
                |value| field_diff(value, &finding.pointer, &finding.expected),
            );
        }
        finding
    }
}

impl Seen<'_> {
    /// The value at `pointer` in the accepted answer; nothing where it broke a rule of its own.
    pub fn value(&self, pointer: &str) -> Option<&Value> {
        if self.acceptance != Acceptance::Accepted || is_broken(&self.broken, pointer) {
            return None;
        }
        self.exchange.document()?.pointer(pointer)
    }

    /// Whether something that a pointer with `*` selects, or would select, broke a rule of its own.
    pub fn breaks(&self, pointer: &str) -> bool {
        self.broken.iter().any(|broken| json::overlap(pointer, broken))
    }

    /// The value at `pointer` in the accepted answer, whatever stands below it; nothing where it
    /// broke a rule itself.
    pub fn whole(&self, pointer: &str) -> Option<&Value> {
        let broken = self.broken.iter().any(|b| json::within(b, pointer));
        if self.acceptance != Acceptance::Accepted || broken {
            return None;
        }
        self.exchange.document()?.pointer(pointer)
    }

    /// The values that a pointer with `*` selects in the accepted answer, each with its own
    /// pointer; those that broke a rule of their own are left out.
    pub fn select(&self, pointer: &str) -> Vec<(String, &Value)> {
        if self.acceptance != Acceptance::Accepted {
            return Vec::new();
        }
        let Some(document) = self.exchange.document() else { return Vec::new() };
        let mut found = json::expand(document, pointer);
        found.retain(|(at, _)| !is_broken(&self.broken, at));
        found
    }

    /// Notes about the body: duplicate keys, a byte-order mark.
    pub fn notes(&self) -> &[String] {
        match &self.exchange.outcome {
            Outcome::Answered { body: Body::Document { notes, .. }, .. } => notes,
            Outcome::Answered { .. } | Outcome::Fault { .. } => &[],
        }
    }
}

impl Representation<'_> {
    /// The value at `pointer`; nothing where it broke a rule of its own.
    pub fn value(&self, pointer: &str) -> Option<&Value> {
        if is_broken(&self.broken, &format!("{}{pointer}", self.prefix)) {
            return None;
        }
        self.value.pointer(pointer)
    }

    /// The values at these pointers as one text; nothing where one is missing or broken.
    pub fn key(&self, pointers: &[String]) -> Option<String> {
        let mut key = String::new();
        for pointer in pointers {
            key.push_str(&self.value(pointer)?.to_string());
            key.push('\n');
        }
        Some(key)
    }
}

impl Judgement {
    /// Records that a rule was judged and nothing was found.
    pub fn judged(&mut self, rule: &str) {
        self.tallies.entry(rule.to_owned()).or_default().judged += 1;
    }

    /// Records that a rule could not be judged.
    pub fn inconclusive(&mut self, rule: &str, why: &str) {
        let tally = self.tallies.entry(rule.to_owned()).or_default();
        tally.inconclusive.insert(why.to_owned());
    }

    /// Records a finding.
    pub fn add(&mut self, finding: Finding) {
        self.tallies.entry(finding.rule.clone()).or_default().findings += 1;
        self.findings.push(finding);
    }

    /// Records that a rule was judged, with a finding where there is one.
    pub fn conclude(&mut self, rule: &str, finding: Option<Finding>) {
        self.judged(rule);
        if let Some(finding) = finding {
            self.add(finding);
        }
    }

    /// Takes up what another case concluded.
    pub fn merge(&mut self, other: Self) {
        for (rule, tally) in other.tallies {
            let mine = self.tallies.entry(rule).or_default();
            mine.judged += tally.judged;
            mine.findings += tally.findings;
            mine.inconclusive.extend(tally.inconclusive);
        }
        self.findings.extend(other.findings);
        for (point, seen) in other.observed {
            self.observed.entry(point).or_default().extend(seen);
        }
    }
}

/// True when `pointer`, something above it, or something below it broke.
fn is_broken(broken: &[String], pointer: &str) -> bool {
    broken.iter().any(|b| json::within(b, pointer) || json::within(pointer, b))
}

/// A unified diff between the document as it should be at `pointer` and as it is.
fn field_diff(value: &Value, pointer: &str, expected: &str) -> String {
    let mut wanted = value.clone();
    // A value is shown as itself, a description of values in brackets.
    let placeholder = serde_json::from_str::<Value>(expected)
        .unwrap_or_else(|_| Value::String(format!("<{expected}>")));
    if let Some(slot) = wanted.pointer_mut(pointer) {
        *slot = placeholder;
    } else if let Some((parent, name)) = pointer.rsplit_once('/') {
        // The field is missing: it stands in the wanted document alone.
        if let Some(Value::Object(members)) = wanted.pointer_mut(parent) {
            members.insert(name.replace("~1", "/").replace("~0", "~"), placeholder);
        }
    }
    text::unified_diff(&text::canonical_json(&wanted), &text::canonical_json(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_value_hides_what_is_above_and_below_it() {
        let broken = vec!["/a/b".to_owned()];
        for hidden in ["/a/b", "/a/b/c", "/a", ""] {
            assert!(is_broken(&broken, hidden), "{hidden}");
        }
        for shown in ["/a/bc", "/a/c", "/b"] {
            assert!(!is_broken(&broken, shown), "{shown}");
        }
    }
}
