//! Mutations: one change of the evidence at one place. A rule that passed must fail on some mutation.
//!
//! Used by self-tests and by mutation testing of runs. Mutations are independent of rules.

use super::change::{Change, later, remove};
use super::evidence::{Body, Event, Evidence, Exchange, Outcome};
use super::sites::{Site, Sites};
use conformant_base::clock::Timestamp;
use conformant_base::http::Response;
use conformant_base::json::{self, Note};
use serde_json::{Value, json};
use std::sync::Arc;

/// One change at one place of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    pub site: Site,
    pub change: Change,
}

/// The evidence before a mutation, without a copy of the whole.
#[derive(Debug)]
#[must_use = "the evidence stays changed until it is restored"]
pub struct Undo(Snapshot);

#[derive(Debug)]
enum Snapshot {
    Now(Option<Timestamp>),
    Outcome {
        exchange: usize,
        outcome: Box<Outcome>,
        results: Vec<(usize, Arc<Value>)>,
    },
    Notes(usize, Vec<Note>),
    Payload(usize, Arc<Value>),
    Results(Vec<(usize, Arc<Value>)>, Option<Vec<Event>>),
}

impl Undo {
    /// Restores the evidence.
    pub fn restore(self, evidence: &mut Evidence) {
        let results_are = |evidence: &mut Evidence, results: Vec<(usize, Arc<Value>)>| {
            for (statement, value) in results {
                evidence.statements[statement].result = value;
            }
        };
        match self.0 {
            Snapshot::Now(now) => evidence.now = now,
            Snapshot::Outcome {
                exchange,
                outcome,
                results,
            } => {
                evidence.exchanges[exchange].outcome = *outcome;
                results_are(evidence, results);
            }
            Snapshot::Notes(payload, notes) => evidence.payloads[payload].notes = notes,
            Snapshot::Payload(payload, value) => evidence.payloads[payload].value = value,
            Snapshot::Results(results, events) => {
                results_are(evidence, results);
                if let Some(events) = events {
                    evidence.events = events;
                }
            }
        }
    }
}

impl Mutation {
    pub fn new(site: Site, change: Change) -> Self {
        Self { site, change }
    }

    /// These changes at one site.
    pub fn at(site: &Site, changes: impl IntoIterator<Item = Change>) -> Vec<Self> {
        let changes = changes.into_iter();
        changes
            .map(|change| Self::new(site.clone(), change))
            .collect()
    }

    /// `of_sites`, and then these changes at each site.
    pub fn of_sites_and(sites: &Sites, changes: &[Change]) -> Vec<Self> {
        let mut mutations = Self::of_sites(sites);
        for change in changes {
            let with = |site: &Site| Self::new(site.clone(), change.clone());
            mutations.extend(sites.iter().map(with));
        }
        mutations
    }

    /// The changes that violate most rules, at the places that decide, likeliest first.
    pub fn of_sites(sites: &Sites) -> Vec<Self> {
        let mut mutations = Vec::new();
        for site in sites.iter() {
            let changes = [
                Change::Near,
                Change::Up,
                Change::Down,
                Change::Twice,
                Change::Gone,
                Change::To(Value::Null),
                Change::PreviousAnswer,
                Change::Swapped,
                Change::Lost,
                Change::Doubled,
                Change::Refused,
                Change::Accepted(None),
            ];
            mutations.extend(changes.map(|change| Self::new(site.clone(), change)));
            let others = sites.iter().filter(|other| *other != site);
            mutations.extend(others.map(|o| Self::new(site.clone(), Change::As(o.clone()))));
        }
        mutations
    }

    /// Applies the mutation and returns how to undo it; `None` if it changes nothing.
    pub fn make(&self, evidence: &mut Evidence) -> Option<Undo> {
        let was = self.was(evidence)?;
        let is_changed = self.apply(evidence);
        let undo = Undo(was);
        if is_changed {
            return Some(undo);
        }
        undo.restore(evidence);
        None
    }

    /// The parts of the evidence that it may change.
    fn was(&self, evidence: &Evidence) -> Option<Snapshot> {
        if let Change::Later(_) = self.change {
            return Some(Snapshot::Now(evidence.now));
        }
        if let Change::Lost | Change::Doubled = self.change {
            let results = evidence.statements.iter().enumerate();
            let results = results.map(|(n, s)| (n, Arc::clone(&s.result)));
            return Some(Snapshot::Results(
                results.collect(),
                Some(evidence.events.clone()),
            ));
        }
        match (&self.site, &self.change) {
            (Site::Payload { payload, .. }, Change::Marked) => {
                let notes = &evidence.payloads.get(*payload)?.notes;
                Some(Snapshot::Notes(*payload, notes.clone()))
            }
            (Site::Payload { payload, .. }, _) => {
                let value = &evidence.payloads.get(*payload)?.value;
                Some(Snapshot::Payload(*payload, Arc::clone(value)))
            }
            (Site::Result { statement, .. }, change) if !change.is_of_answer() => {
                let result = &evidence.statements.get(*statement)?.result;
                Some(Snapshot::Results(
                    vec![(*statement, Arc::clone(result))],
                    None,
                ))
            }
            (Site::Hook { .. } | Site::Delivery { .. }, _) => {
                let events = evidence.events.clone();
                Some(Snapshot::Results(Vec::new(), Some(events)))
            }
            (site, _) => {
                let exchange = site.exchange(evidence)?;
                let exchanged = evidence.exchanges.get(exchange)?;
                let results = exchanged.document().map(|d| shared(evidence, d));
                Some(Snapshot::Outcome {
                    exchange,
                    outcome: Box::new(exchanged.outcome.clone()),
                    results: results.unwrap_or_default(),
                })
            }
        }
    }

    /// Applies the mutation; returns false if it changes nothing. Statements about a changed response get the changed result.
    pub fn apply(&self, evidence: &mut Evidence) -> bool {
        let stated = self.site.exchange(evidence).and_then(|exchange| {
            let is_answer = !matches!(self.site, Site::Result { .. }) || self.change.is_of_answer();
            let document = evidence.exchanges.get(exchange)?.document()?;
            is_answer.then(|| (exchange, Arc::clone(document), shared(evidence, document)))
        });
        let is_changed = self.change_it(evidence);
        if let Some((exchange, before, statements)) = stated.filter(|_| is_changed) {
            let after = evidence.exchanges[exchange].document();
            let after = after.cloned().unwrap_or_default();
            if *after == *before {
                return !matches!(self.change, Change::PreviousAnswer);
            }
            for (statement, _) in statements {
                evidence.statements[statement].result = Arc::clone(&after);
            }
        }
        is_changed
    }

    fn change_it(&self, evidence: &mut Evidence) -> bool {
        match &self.change {
            Change::Later(seconds) => {
                let Some(now) = evidence.now else {
                    return false;
                };
                evidence.now = Some(later(now, seconds.saturating_mul(1000)));
                true
            }
            Change::PreviousAnswer => previous_answer(evidence, &self.site),
            Change::Refused => refused(evidence, &self.site),
            Change::Accepted(made) => accepted(evidence, &self.site, made.as_ref()),
            Change::Lost | Change::Doubled => callbacks(evidence, &self.site, &self.change),
            Change::Typed(media_type) => {
                match exchange_of(evidence, &self.site).map(|e| &mut e.outcome) {
                    Some(Outcome::Answered { response, .. }) => {
                        response.headers.set("Content-Type", *media_type);
                        true
                    }
                    Some(Outcome::Fault { .. }) | None => false,
                }
            }
            Change::Text(text) => {
                let exchange = exchange_of(evidence, &self.site);
                let Some(Outcome::Answered { response, .. }) = exchange.map(|e| &mut e.outcome)
                else {
                    return false;
                };
                response.body = text.as_bytes().to_vec();
                true
            }
            Change::Marked => match notes_of(evidence, &self.site) {
                Some(notes) => {
                    notes.push(Note::ByteOrderMark);
                    true
                }
                None => false,
            },
            Change::As(other) => {
                let value = document_of(evidence, other)
                    .and_then(|document| document.pointer(other.pointer()).cloned());
                value.is_some_and(|value| set(evidence, &self.site, &value))
            }
            Change::To(value) => set(evidence, &self.site, value),
            Change::Gone => {
                let pointer = self.site.pointer();
                document_of(evidence, &self.site).is_some_and(|document| {
                    let first = json::expand(document, pointer).into_iter().next();
                    let place = first.map(|(place, _)| place);
                    place.is_some_and(|place| remove(Arc::make_mut(document), &place))
                })
            }
            change @ (Change::OtherType(_)
            | Change::Near
            | Change::Up
            | Change::Down
            | Change::Foreign
            | Change::Cut
            | Change::Prefix
            | Change::Format
            | Change::TooLarge
            | Change::TooSmall
            | Change::ExtraField
            | Change::Twice
            | Change::Swapped) => {
                let pointer = self.site.pointer();
                document_of(evidence, &self.site).is_some_and(|document| {
                    let places = json::expand(document, pointer);
                    let can = places.iter().any(|(_, v)| change.of_value(v).is_some());
                    can && change.everywhere(Arc::make_mut(document), pointer)
                })
            }
        }
    }
}

impl Change {
    /// Whether it changes a whole response, not a place in it.
    const fn is_of_answer(&self) -> bool {
        matches!(
            self,
            Self::PreviousAnswer
                | Self::Refused
                | Self::Accepted(_)
                | Self::Text(_)
                | Self::Typed(_)
                | Self::Marked
        )
    }
}

/// The statements about this document.
fn shared(evidence: &Evidence, document: &Arc<Value>) -> Vec<(usize, Arc<Value>)> {
    let statements = evidence.statements.iter().enumerate();
    statements
        .filter(|(_, statement)| Arc::ptr_eq(&statement.result, document))
        .map(|(n, statement)| (n, Arc::clone(&statement.result)))
        .collect()
}

/// The document that a site is in.
fn document_of<'e>(evidence: &'e mut Evidence, site: &Site) -> Option<&'e mut Arc<Value>> {
    match site {
        Site::Payload { payload, .. } => evidence.payloads.get_mut(*payload).map(|p| &mut p.value),
        Site::Result { statement, .. } => evidence
            .statements
            .get_mut(*statement)
            .map(|s| &mut s.result),
        Site::Hook { event, .. } => match evidence.events.get_mut(*event)? {
            Event::Hook(call) => call.result.as_mut().ok(),
            Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_) => None,
        },
        Site::Delivery { .. } => None,
        Site::Exchange(_) | Site::Answer { .. } | Site::Walk(_) => {
            parsed_of(evidence, site).map(|(value, _)| value)
        }
    }
}

fn exchange_of<'e>(evidence: &'e mut Evidence, site: &Site) -> Option<&'e mut Exchange> {
    let index = site.exchange(evidence)?;
    evidence.exchanges.get_mut(index)
}

/// The document of a response, and its irregularities.
fn parsed_of<'e>(
    evidence: &'e mut Evidence,
    site: &Site,
) -> Option<(&'e mut Arc<Value>, &'e mut Vec<Note>)> {
    match &mut exchange_of(evidence, site)?.outcome {
        Outcome::Answered {
            body: Body::Document { value, notes },
            ..
        } => Some((value, notes)),
        Outcome::Answered { .. } | Outcome::Fault { .. } => None,
    }
}

fn notes_of<'e>(evidence: &'e mut Evidence, site: &Site) -> Option<&'e mut Vec<Note>> {
    if let Site::Payload { payload, .. } = site {
        return evidence.payloads.get_mut(*payload).map(|p| &mut p.notes);
    }
    parsed_of(evidence, site).map(|(_, notes)| notes)
}

/// Sets a value; a missing member is added.
fn set(evidence: &mut Evidence, site: &Site, value: &Value) -> bool {
    if let Site::Delivery { event, pointer } = site {
        let Some(Event::Delivery(delivery)) = evidence.events.get_mut(*event) else {
            return false;
        };
        let Some(method) = value.as_str().filter(|_| pointer == "/method") else {
            return false;
        };
        method.clone_into(&mut delivery.request.method);
        return true;
    }
    let Some(document) = document_of(evidence, site) else {
        return false;
    };
    let change = Change::To(value.clone());
    let there = json::expand(document, site.pointer());
    if !there.is_empty() {
        let can = there.iter().any(|(_, v)| change.of_value(v).is_some());
        return can && change.everywhere(Arc::make_mut(document), site.pointer());
    }
    json::set(Arc::make_mut(document), site.pointer(), value.clone())
}

fn is_success(exchange: &Exchange) -> bool {
    exchange.status().is_some_and(|s| (200..300).contains(&s))
}

fn same_operation(one: &Exchange, other: &Exchange) -> bool {
    one.operation == other.operation && one.service == other.service
}

fn previous_answer(evidence: &mut Evidence, site: &Site) -> bool {
    let Some(index) = site.exchange(evidence) else {
        return false;
    };
    let Some((before, later)) = evidence.exchanges.split_at_mut_checked(index) else {
        return false;
    };
    let Some(exchange) = later.first_mut() else {
        return false;
    };
    let mut earlier = before.iter().rev();
    let previous = earlier.find(|e| same_operation(e, exchange) && is_success(e));
    if let Some(previous) = previous {
        exchange.outcome = previous.outcome.clone();
    }
    previous.is_some()
}

/// Replaces an acceptance by a plain rejection.
fn refused(evidence: &mut Evidence, site: &Site) -> bool {
    let Some(exchange) = exchange_of(evidence, site).filter(|e| is_success(e)) else {
        return false;
    };
    exchange.outcome = Outcome::Answered {
        response: Response::new(400, "text/plain", "refused"),
        body: Body::Unreadable("no document".to_owned()),
    };
    true
}

/// Replaces a rejection by an acceptance of the same operation, or by a generated one.
fn accepted(evidence: &mut Evidence, site: &Site, made: Option<&Value>) -> bool {
    let Some(index) = site.exchange(evidence) else {
        return false;
    };
    let Some(exchange) = evidence.exchanges.get(index) else {
        return false;
    };
    if is_success(exchange) || exchange.status().is_none() {
        return false;
    }
    let mut others = evidence.exchanges.iter();
    let answer = others.find(|e| same_operation(e, exchange) && is_success(e));
    let answer = answer.map_or_else(
        || Outcome::Answered {
            response: Response::new(200, "application/json", ""),
            body: made.map_or(Body::Empty, |value| Body::of(value.clone())),
        },
        |e| e.outcome.clone(),
    );
    evidence.exchanges[index].outcome = answer;
    true
}

/// Removes or repeats the last callback of a wait, in all statements about that wait.
fn callbacks(evidence: &mut Evidence, site: &Site, change: &Change) -> bool {
    let Site::Result { statement, .. } = site else {
        return false;
    };
    let Some(result) = evidence.statements.get(*statement).map(|s| &s.result) else {
        return false;
    };
    let mut changed = Value::clone(result);
    let is_wait = changed.get("waited").is_some();
    let Some(requests) = changed.get_mut("requests").and_then(Value::as_array_mut) else {
        return false;
    };
    let Some(last) = requests.last().filter(|_| is_wait).cloned() else {
        return false;
    };
    if *change == Change::Lost {
        requests.pop();
    } else {
        requests.push(last);
    }
    changed["count"] = json!(changed["requests"].as_array().map_or(0, Vec::len));
    let before = Arc::clone(result);
    let changed = Arc::new(changed);
    for stated in &mut evidence.statements {
        if Arc::ptr_eq(&stated.result, &before) {
            stated.result = Arc::clone(&changed);
        }
    }
    let is_delivery = |event: &Event| matches!(event, Event::Delivery(_));
    if *change == Change::Lost
        && let Some(came) = evidence.events.iter().rposition(is_delivery)
    {
        evidence.events.remove(came);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Payload, Statement};
    use conformant_rulebook::expect::Expect;

    fn evidence() -> Evidence {
        let requests = json!({"count": 1, "requests": [{"method": "POST"}], "waited": "1s"});
        let expect: Expect =
            serde_json::from_value(json!({"rule": "a/b", "at": "/count", "at-least": 1}))
                .expect("a statement");
        Evidence {
            payloads: vec![Payload {
                kind: "flow/flow".to_owned(),
                value: Arc::new(json!({"list": [1, 2], "sid": "FW1"})),
                notes: Vec::new(),
                step: 1,
            }],
            statements: vec![Statement {
                expect,
                result: Arc::new(requests),
                step: 1,
                exchange: None,
            }],
            ..Evidence::default()
        }
    }

    #[test]
    fn a_mutation_is_undone_completely() {
        let result = |pointer: &str| Site::result(0, pointer);
        let seen = |e: &Evidence| (e.payloads[0].value.clone(), e.statements[0].result.clone());
        for mutation in [
            Mutation::new(Site::payload(0, "/list/0"), Change::Gone),
            Mutation::new(Site::payload(0, "/list"), Change::Swapped),
            Mutation::new(Site::payload(0, "/other"), Change::To(json!(1))),
            Mutation::new(result(""), Change::Lost),
            Mutation::new(result(""), Change::Doubled),
            Mutation::new(result("/count"), Change::Near),
        ] {
            let mut changed = evidence();
            let undo = mutation.make(&mut changed).expect("it can be made");
            assert_ne!(seen(&changed), seen(&evidence()), "{mutation:?}");
            undo.restore(&mut changed);
            assert_eq!(seen(&changed), seen(&evidence()), "{mutation:?}");
        }
        let nothing = Mutation::new(Site::payload(0, "/sid"), Change::Twice);
        assert!(nothing.make(&mut evidence()).is_none());
    }
}
