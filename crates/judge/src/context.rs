//! The context of one scenario: its evidence in the form that predicates use.
//!
//! Payload rules are evaluated first. A value that violates its own rule is then hidden from all other predicates, so that one
//! defect causes one finding.

use super::acceptance::{Acceptance, acceptance_among, is_plain_error};
use super::cache::DocumentCache;
use super::evidence::{Event, Evidence, Exchange};
use super::history::{History, Write};
use super::payload;
use super::race;
use super::reproduce::curl;
use super::sites::Site;
use super::verdicts::{Fact, Judgment, Recorder};
use conformant_base::diff::unified_diff;
use conformant_base::json;
use conformant_base::text;
use conformant_record::{Finding, Level};
use conformant_rulebook::annotations::{Annotations, Identity};
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::{EvidenceSelection, Operation, Rulebook, items_at};
use conformant_schema::{DEFECTS_MAX, Schemas};
use serde_json::Value;
use std::sync::Arc;

/// Documents with more values are not shown whole in a diff.
const DIFF_NODES_MAX: usize = 2_000;

/// The evidence of one scenario, prepared for predicates.
#[derive(Debug)]
pub struct Context<'a> {
    pub rulebook: &'a Rulebook,
    pub evidence: &'a Evidence,
    /// Exchanges in order.
    pub seen: Vec<Seen<'a>>,
    /// Every representation with its resource type, in order.
    pub representations: Vec<Representation<'a>>,
    /// Resources, the actions on them, and lists.
    pub history: History<'a>,
    detail: Detail,
}

/// How much of the result is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Every instance, and findings with a diff.
    Whole,
    /// Only which rules are violated and where: enough to detect a mutation.
    Broken,
}

/// An exchange with its operation and acceptance.
#[derive(Debug)]
pub struct Seen<'a> {
    pub exchange: &'a Exchange,
    /// `None` if it matches no operation.
    pub operation: Option<&'a Operation>,
    pub acceptance: Acceptance,
    /// Pointers with a violated rule.
    pub broken: Vec<String>,
}

/// One representation of a resource: a response, an item of a list page, or a payload.
#[derive(Debug)]
pub struct Representation<'a> {
    /// The resource type: `flow/execution`.
    pub kind: &'a str,
    pub value: &'a Value,
    /// The pointer to it in its document.
    pub prefix: String,
    /// The exchange that returned it.
    pub exchange: Option<usize>,
    /// Index into the evidence's payloads, if it is one.
    pub payload: Option<usize>,
    /// Pointers of its document with a violated rule.
    pub broken: Vec<String>,
}

impl<'a> Context<'a> {
    /// Prepares the evidence and validates every payload in it.
    pub fn new(
        rulebook: &'a Rulebook,
        schemas: &Schemas,
        evidence: &'a Evidence,
        judgment: &mut Judgment,
    ) -> Self {
        Self::with_cache(rulebook, schemas, evidence, (None, Detail::Whole), judgment)
    }

    /// As `new`, but documents in the cache are not validated again.
    pub(super) fn with_cache(
        rulebook: &'a Rulebook,
        schemas: &Schemas,
        evidence: &'a Evidence,
        (cache, detail): (Option<&DocumentCache>, Detail),
        judgment: &mut Judgment,
    ) -> Self {
        Self::prepare(rulebook, evidence, detail, |context, kind, value, whole| {
            context.validate_payload((schemas, cache), kind, value, &whole, judgment)
        })
    }

    /// Prepares the evidence for its history without validation.
    pub fn without_validation(rulebook: &'a Rulebook, evidence: &'a Evidence) -> Self {
        Self::prepare(rulebook, evidence, Detail::Whole, |_, _, _, _| Vec::new())
    }

    /// Prepares the evidence. `validate` returns the violated pointers of a document.
    fn prepare<V>(
        rulebook: &'a Rulebook,
        evidence: &'a Evidence,
        detail: Detail,
        mut validate: V,
    ) -> Self
    where
        V: FnMut(&Self, &str, &Arc<Value>, Site) -> Vec<String>,
    {
        let mut context = Self {
            rulebook,
            evidence,
            detail,
            seen: Vec::new(),
            representations: Vec::new(),
            history: History::default(),
        };
        for (index, exchange) in evidence.exchanges.iter().enumerate() {
            let operation = rulebook.operation(&exchange.service, &exchange.operation);
            let acceptance = acceptance_among(rulebook, exchange, operation, &evidence.exchanges);
            let mut seen = Seen {
                exchange,
                operation,
                acceptance,
                broken: Vec::new(),
            };
            // What another account is shown is a matter of `account-scope` alone.
            let shown = shown_type(exchange, operation, &seen.acceptance);
            if let (Some(kind), Some(value)) =
                (shown.filter(|_| seen.is_ours()), exchange.document())
            {
                seen.broken = validate(&context, kind, value, Site::answer(index, ""));
                context.add_representations(kind, value, Some(index), None, &seen.broken);
            }
            context.seen.push(seen);
        }
        for (index, payload) in evidence.payloads.iter().enumerate() {
            let (kind, value) = (&payload.kind, &payload.value);
            let broken = validate(&context, kind, value, Site::payload(index, ""));
            context.add_representations(kind, value, None, Some(index), &broken);
        }
        context.history = History::from_context(&context);
        context
    }

    /// Validates one document by its schema and payload rules. Returns the violated pointers.
    fn validate_payload(
        &self,
        (schemas, cache): (&Schemas, Option<&DocumentCache>),
        kind: &str,
        value: &Arc<Value>,
        whole: &Site,
        judgment: &mut Judgment,
    ) -> Vec<String> {
        let judge = || payload::validate_payload(self.rulebook, schemas, kind, value);
        let outcome = match (cache, self.detail) {
            (Some(cache), Detail::Whole) => cache.get_or_validate(kind, value, judge),
            (None, Detail::Whole) => Arc::new(judge()),
            // Partial results are not cached.
            (cache, Detail::Broken) => cache
                .and_then(|cache| cache.get(kind, value))
                .unwrap_or_else(|| {
                    Arc::new(payload::Examination {
                        judged: Vec::new(),
                        violations: payload::violations(self.rulebook, schemas, kind, value),
                    })
                }),
        };
        let notes = match whole {
            Site::Payload { payload, .. } => &self.evidence.payloads[*payload].notes[..],
            Site::Answer { exchange, .. } => self.evidence.exchanges[*exchange].notes(),
            Site::Exchange(_)
            | Site::Hook { .. }
            | Site::Delivery { .. }
            | Site::Result { .. }
            | Site::Walk(_) => &[],
        };
        let twice = super::duplicates::violations(
            self.rulebook,
            schemas,
            kind,
            value,
            notes,
            &outcome.violations,
        );
        let violations = || outcome.violations.iter().chain(&twice);
        let mut verdicts = Recorder::new(self, judgment);
        if self.detail == Detail::Whole {
            for rule in &outcome.judged {
                verdicts.sound(rule, whole);
            }
        }
        let mut broken = Vec::new();
        if violations().count() >= DEFECTS_MAX {
            // Other violations are unknown, so nothing else is concluded from this document.
            broken.push(String::new());
        }
        for violation in violations().cloned() {
            if violation.level == Level::Must {
                broken.push(violation.pointer.clone());
            }
            let fact = Fact {
                kind: violation.kind,
                expected: violation.expected,
                actual: violation.actual,
                message: violation.message,
            };
            let site = whole.below(&violation.pointer);
            verdicts.broken(&violation.rule, &site, fact);
        }
        broken
    }

    fn add_representations(
        &mut self,
        kind: &str,
        value: &'a Arc<Value>,
        exchange: Option<usize>,
        payload: Option<usize>,
        broken: &[String],
    ) {
        let Some(known) = self.rulebook.kinds.get(kind) else {
            return;
        };
        if broken.iter().any(String::is_empty) {
            return;
        }
        let Some((item_kind, key)) = &known.page_of else {
            let (prefix, broken) = (String::new(), broken.to_vec());
            self.representations.push(Representation {
                kind: &known.name,
                value,
                prefix,
                exchange,
                payload,
                broken,
            });
            return;
        };
        let key = key
            .as_deref()
            .or_else(|| json::get(value, "/meta/key").and_then(Value::as_str));
        let at = key.map(items_at);
        let items = at.as_ref().and_then(|at| json::get(value, at));
        let items = items.and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            let prefix = format!("{}/{index}", at.as_deref().unwrap_or_default());
            let here = |b: &&String| json::within(b, &prefix) || json::within(&prefix, b);
            let broken = broken.iter().filter(here).cloned().collect();
            self.representations.push(Representation {
                kind: item_kind,
                value: item,
                prefix,
                exchange,
                payload,
                broken,
            });
        }
    }

    /// The evidence as rules select it.
    pub(super) fn selection(&self) -> EvidenceSelection<'_> {
        let mut selection = EvidenceSelection::default();
        for seen in &self.seen {
            let exchange = seen.exchange;
            let operation = (exchange.service.as_str(), exchange.operation.as_str());
            selection.operations.insert(operation);
            let about = seen
                .operation
                .and_then(|operation| operation.resource.as_deref());
            selection.kinds.extend(about);
        }
        let kinds = self.representations.iter().map(|r| r.kind);
        selection.kinds.extend(kinds);
        let statements = self.evidence.statements.iter();
        let stated = statements.map(|statement| statement.expect.rule.as_str());
        selection.stated.extend(stated);
        selection
    }

    /// Whether two exchanges of a recording have different credentials, which may be those of two accounts.
    pub fn is_by_another(&self, shown: usize, requested: usize) -> bool {
        let authorization = |index: usize| {
            let exchange: &Exchange = self.seen[index].exchange;
            exchange.request.headers.get("Authorization")
        };
        self.evidence.has_unobserved_actions && authorization(shown) != authorization(requested)
    }

    /// What the rulebook says about a resource type.
    pub fn about(&self, kind: &str) -> Option<&'a Annotations> {
        Some(&self.rulebook.kinds.get(kind)?.annotations)
    }

    /// What identifies the resources of a type.
    pub fn identity(&self, kind: &str) -> Option<&'a Identity> {
        self.about(kind)?.identity.as_ref()
    }

    /// Representations of one kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Representation<'a>> {
        self.representations.iter().filter(move |r| r.kind == kind)
    }

    /// Writes of one operation with the index of their exchange.
    pub fn writes_of(
        &self,
        service: &str,
        operation: &str,
    ) -> impl Iterator<Item = (usize, &Write<'a>)> {
        self.history.writes.iter().filter_map(move |write| {
            let index = write.exchange()?;
            let exchange = self.seen[index].exchange;
            (exchange.service == service && exchange.operation == operation)
                .then_some((index, write))
        })
    }

    /// Exchanges of one operation with their index.
    pub fn of_operation(
        &self,
        service: &str,
        operation: &str,
    ) -> impl Iterator<Item = (usize, &Seen<'a>)> {
        self.seen.iter().enumerate().filter(move |(_, s)| {
            s.exchange.service == service && s.exchange.operation == operation && s.is_ours()
        })
    }

    /// A finding of `rule` at a place, with all context filled in.
    pub(super) fn finding(&self, rule: &str, site: &Site, fact: Fact) -> Finding {
        let known = self.rulebook.rules.get(rule);
        let message = if fact.message.is_empty() {
            format!("expected {}, got {}", fact.expected, fact.actual)
        } else {
            fact.message
        };
        let mut finding = Finding {
            rule: rule.to_owned(),
            level: known.map_or(Level::Must, |r| r.level.of_finding()),
            service: known.map_or_else(String::new, |r| r.service.clone()),
            scenario: self.evidence.scenario.clone(),
            pointer: site.pointer().to_owned(),
            kind: fact.kind.to_owned(),
            expected: fact.expected,
            actual: fact.actual,
            message,
            ..Finding::default()
        };
        if let Some(index) = site.exchange(self.evidence) {
            let exchange = &self.evidence.exchanges[index];
            finding.service.clone_from(&exchange.service);
            finding.operation.clone_from(&exchange.operation);
            finding.step = exchange.step;
            finding.exchange = index + 1;
        }
        if self.detail == Detail::Broken {
            return finding;
        }
        if let Some(index) = site.exchange(self.evidence) {
            let exchange = &self.evidence.exchanges[index];
            match race::description(self.evidence, index) {
                None => finding.reproduce = curl(exchange),
                Some((says, commands)) => {
                    finding.message = format!("{} ({says})", finding.message);
                    finding.reproduce = commands;
                }
            }
            finding.diff = exchange.document().map_or_else(
                || unified_diff(&finding.expected, &finding.actual),
                |value| field_diff(value, &finding.pointer, &finding.expected),
            );
        }
        match site {
            Site::Payload { payload, .. } => {
                let payload = &self.evidence.payloads[*payload];
                finding.step = payload.step;
                finding.diff = field_diff(&payload.value, &finding.pointer, &finding.expected);
            }
            Site::Result { statement, .. } => {
                finding.step = self.evidence.statements[*statement].step;
            }
            Site::Hook { event, .. } => {
                if let Some(Event::Hook(call)) = self.evidence.events.get(*event) {
                    finding.step = call.step;
                    finding.event = *event + 1;
                    if let Ok(result) = &call.result {
                        finding.diff = field_diff(result, &finding.pointer, &finding.expected);
                    }
                }
            }
            Site::Delivery { event, .. } => {
                if let Some(Event::Delivery(delivery)) = self.evidence.events.get(*event) {
                    finding.step = delivery.step;
                    finding.event = *event + 1;
                }
            }
            Site::Exchange(_) | Site::Answer { .. } | Site::Walk(_) => {}
        }
        finding
    }
}

impl Seen<'_> {
    /// Whether it was sent with credentials of the account whose resources the history follows.
    pub fn is_ours(&self) -> bool {
        self.exchange.credentials != Credentials::OtherAccount
    }

    /// The value at `pointer` in the accepted response; `None` if it violates its own rule.
    pub fn value(&self, pointer: &str) -> Option<&Value> {
        if self.acceptance != Acceptance::Accepted || is_broken(&self.broken, pointer) {
            return None;
        }
        json::get(self.exchange.document()?, pointer)
    }

    /// Whether the object that would contain the value at `pointer` is null.
    pub fn is_null_above(&self, pointer: &str) -> bool {
        let above = pointer.rsplit_once('/').map_or("", |(above, _)| above);
        !above.is_empty() && self.whole(above).is_some_and(Value::is_null)
    }

    /// Whether a value that a pointer with `*` selects, or would select, violates its own rule.
    pub fn breaks(&self, pointer: &str) -> bool {
        self.broken
            .iter()
            .any(|broken| json::overlap(pointer, broken))
    }

    /// The value at `pointer` in the accepted response, including violations below it; `None` if it violates a rule
    /// itself.
    pub fn whole(&self, pointer: &str) -> Option<&Value> {
        let broken = self.broken.iter().any(|b| json::within(b, pointer));
        if self.acceptance != Acceptance::Accepted || broken {
            return None;
        }
        json::get(self.exchange.document()?, pointer)
    }

    /// The values that a pointer with `*` selects in the accepted response, each with its own pointer, without those
    /// that violate their own rule.
    pub fn select(&self, pointer: &str) -> Vec<(String, &Value)> {
        if self.acceptance != Acceptance::Accepted {
            return Vec::new();
        }
        let Some(document) = self.exchange.document() else {
            return Vec::new();
        };
        let mut found = json::expand(document, pointer);
        found.retain(|(at, _)| !is_broken(&self.broken, at));
        found
    }
}

impl<'a> Representation<'a> {
    /// The site of a pointer into it.
    pub fn site(&self, pointer: &str) -> Site {
        let pointer = format!("{}{pointer}", self.prefix);
        match (self.exchange, self.payload) {
            (None, Some(payload)) => Site::payload(payload, pointer),
            (exchange, _) => Site::answer(exchange.unwrap_or_default(), pointer),
        }
    }

    /// The value at `pointer`; `None` if it violates its own rule.
    pub fn value(&self, pointer: &str) -> Option<&'a Value> {
        (!self.hides(pointer))
            .then(|| json::get(self.value, pointer))
            .flatten()
    }

    /// Whether the value at `pointer`, above it or below it violates its own rule.
    pub fn hides(&self, pointer: &str) -> bool {
        // Fast path: usually there are no violations.
        !self.broken.is_empty() && is_broken(&self.broken, &format!("{}{pointer}", self.prefix))
    }

    /// The values at these pointers as one text; `None` if one is missing or violates a rule.
    pub fn key(&self, pointers: &[String]) -> Option<String> {
        let mut key = String::new();
        for pointer in pointers {
            key.push_str(&self.value(pointer)?.to_string());
            key.push('\n');
        }
        Some(key)
    }
}

/// The resource type of the document in a response.
pub(super) fn shown_type<'o>(
    exchange: &Exchange,
    operation: Option<&'o Operation>,
    acceptance: &Acceptance,
) -> Option<&'o str> {
    match acceptance {
        Acceptance::Accepted => operation?.response.as_deref(),
        Acceptance::Rejected(_) if !is_plain_error(exchange) => operation?.error.as_deref(),
        Acceptance::Rejected(_) | Acceptance::Inconclusive(_) => None,
    }
}

/// Whether `pointer`, a place above it or a place below it is in the list.
fn is_broken(broken: &[String], pointer: &str) -> bool {
    broken
        .iter()
        .any(|b| json::within(b, pointer) || json::within(pointer, b))
}

/// A unified diff between the expected and the actual document at `pointer`. Empty for an expectation in words: a
/// document cannot contain it.
fn field_diff(value: &Value, pointer: &str, expected: &str) -> String {
    let (value, pointer) = surroundings(value, pointer);
    if !json::has_at_most(value, DIFF_NODES_MAX) {
        return String::new();
    }
    let Ok(expected) = serde_json::from_str::<Value>(expected) else {
        return String::new();
    };
    let mut wanted = value.clone();
    // A missing field is only in the expected document.
    json::set(&mut wanted, pointer, expected);
    unified_diff(&text::canonical_json(&wanted), &text::canonical_json(value))
}

/// The largest part of a document around a place that fits into a diff, and the pointer within that part.
fn surroundings<'v, 'p>(document: &'v Value, pointer: &'p str) -> (&'v Value, &'p str) {
    let (mut value, mut left) = (document, pointer);
    while !json::has_at_most(value, DIFF_NODES_MAX) {
        let end = left[left.len().min(1)..].find('/').map(|at| at + 1);
        let Some((segment, rest)) = end.map(|end| left.split_at(end)) else {
            break;
        };
        let Some(member) = json::get(value, segment) else {
            break;
        };
        (value, left) = (member, rest);
    }
    (value, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    #[test]
    fn a_large_document_is_reduced_to_the_surroundings_of_the_place() {
        let item = |n: usize| json!({"sid": n, "more": [1, 2, 3]});
        let page = json!({"flows": (0..5_000).map(item).collect::<Vec<_>>()});
        assert_eq!(surroundings(&page, "/flows/7/sid"), (&item(7), "/sid"));
        assert_eq!(surroundings(&item(7), "/more/1"), (&item(7), "/more/1"));
        assert_eq!(surroundings(&page, "/flows").1, "/flows");
        assert_eq!(surroundings(&page, ""), (&page, ""));
        let diff = field_diff(&page, "/flows/7/sid", "\"a text\"");
        assert!(
            diff.contains("-  \"sid\": \"a text\"\n") && diff.len() < 1_000,
            "{diff}"
        );
        assert_eq!(field_diff(&page, "/flows", "[]"), "");
        // A document cannot contain an expectation in words.
        assert_eq!(field_diff(&page, "/flows/7/sid", "one of 1, 2"), "");
    }

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
