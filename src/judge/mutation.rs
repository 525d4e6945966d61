//! Mutations: one change of the evidence at one place, by which a rule shows that it can fail.
//!
//! The self-test breaks with them what a rule passed on. They know no rule.

use super::compare::instant;
use super::evidence::{Body, Evidence, Exchange, Outcome};
use super::sites::{Site, Sites};
use crate::clock::{self, Timestamp};
use crate::json::{self, Note};
use serde_json::{Value, json};
use std::sync::Arc;

/// How far a number is moved to be beyond any bound that a rule states.
const FAR: i64 = 1_000_000;
/// How far an instant is moved.
const FAR_MS: i64 = 24 * 3600 * 1000;

/// One change at one place of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// Where.
    pub site: Site,
    /// What.
    pub change: Change,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The value is missing.
    Gone,
    /// Another value stands there.
    To(Value),
    /// A value beside it: the last character, one more, the opposite.
    Near,
    /// A number or an instant far beyond it.
    Up,
    /// A number or an instant far below it.
    Down,
    /// The value that stands at another site.
    As(Site),
    /// A list holds each of its items twice.
    Twice,
    /// The answer is the one that the same operation last had when it was accepted.
    PreviousAnswer,
    /// The body is another text.
    Text(&'static str),
    /// The text begins with a byte order mark.
    Marked,
    /// The time of the target lies that many seconds later.
    Later(i64),
}

impl Mutation {
    /// A change at a place.
    pub fn new(site: Site, change: Change) -> Self {
        Self { site, change }
    }

    /// What breaks most rules at the places that decide, likeliest first.
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
            ];
            mutations.extend(changes.map(|change| Self::new(site.clone(), change)));
            let others = sites.iter().filter(|other| *other != site);
            mutations.extend(others.map(|o| Self::new(site.clone(), Change::As(o.clone()))));
        }
        mutations
    }

    /// Changes the evidence; false where there is nothing to change.
    pub fn apply(&self, evidence: &mut Evidence) -> bool {
        match &self.change {
            Change::Later(seconds) => {
                let Some(now) = evidence.now else {
                    return false;
                };
                evidence.now = Some(later(now, seconds.saturating_mul(1000)));
                true
            }
            Change::PreviousAnswer => previous_answer(evidence, &self.site),
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
                document_of(evidence, &self.site)
                    .is_some_and(|document| remove(Arc::make_mut(document), pointer))
            }
            Change::Near | Change::Up | Change::Down | Change::Twice => {
                each(evidence, &self.site, |value| moved(value, &self.change))
            }
        }
    }
}

/// The value moved as the change says; nothing where it cannot be moved so.
fn moved(value: &Value, change: &Change) -> Option<Value> {
    let way = match change {
        Change::Near => 1,
        Change::Up => FAR,
        Change::Down => -FAR,
        Change::Twice => {
            let items = value.as_array().filter(|items| !items.is_empty())?;
            return Some(items.iter().chain(items).cloned().collect());
        }
        Change::Gone
        | Change::To(_)
        | Change::As(_)
        | Change::PreviousAnswer
        | Change::Text(_)
        | Change::Marked
        | Change::Later(_) => return None,
    };
    match value {
        Value::Number(number) => Some(match number.as_i64() {
            Some(number) => json!(number.saturating_add(way)),
            None => json!(way),
        }),
        Value::Bool(flag) => Some(json!(!flag)),
        Value::String(text) => match instant(value) {
            Some(at) if way != 1 => Some(json!(later(at, way.signum() * FAR_MS).to_string())),
            Some(at) => Some(json!(later(at, 1000).to_string())),
            None if way == 1 => {
                let mut text = text.clone();
                let last = text.pop();
                text.push(if last == Some('0') { '1' } else { '0' });
                Some(json!(text))
            }
            None => None,
        },
        Value::Null if way == 1 => Some(json!("0")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn later(at: Timestamp, ms: i64) -> Timestamp {
    clock::from_unix_ms(at.as_millisecond().saturating_add(ms))
}

/// The document that a site leads into.
fn document_of<'e>(evidence: &'e mut Evidence, site: &Site) -> Option<&'e mut Arc<Value>> {
    match site {
        Site::Payload { payload, .. } => evidence.payloads.get_mut(*payload).map(|p| &mut p.value),
        Site::Result { statement, .. } => evidence
            .statements
            .get_mut(*statement)
            .map(|s| &mut s.result),
        Site::Exchange(_) | Site::Answer { .. } | Site::Walk(_) => {
            match &mut exchange_of(evidence, site)?.outcome {
                Outcome::Answered {
                    body: Body::Document { value, .. },
                    ..
                } => Some(value),
                Outcome::Answered { .. } | Outcome::Fault { .. } => None,
            }
        }
    }
}

fn exchange_of<'e>(evidence: &'e mut Evidence, site: &Site) -> Option<&'e mut Exchange> {
    let index = site.exchange(evidence)?;
    evidence.exchanges.get_mut(index)
}

fn notes_of<'e>(evidence: &'e mut Evidence, site: &Site) -> Option<&'e mut Vec<Note>> {
    if let Site::Payload { payload, .. } = site {
        return evidence.payloads.get_mut(*payload).map(|p| &mut p.notes);
    }
    match &mut exchange_of(evidence, site)?.outcome {
        Outcome::Answered {
            body: Body::Document { notes, .. },
            ..
        } => Some(notes),
        Outcome::Answered { .. } | Outcome::Fault { .. } => None,
    }
}

/// Changes every place that the site's pointer leads to.
fn each(evidence: &mut Evidence, site: &Site, change: impl Fn(&Value) -> Option<Value>) -> bool {
    let Some(document) = document_of(evidence, site) else {
        return false;
    };
    let changed: Vec<(String, Value)> = json::expand(document, site.pointer())
        .into_iter()
        .filter_map(|(at, value)| Some((at, change(value)?)))
        .collect();
    let document = Arc::make_mut(document);
    for (at, value) in &changed {
        if let Some(slot) = document.pointer_mut(at) {
            slot.clone_from(value);
        }
    }
    !changed.is_empty()
}

/// Sets a value; a member that is missing is added.
fn set(evidence: &mut Evidence, site: &Site, value: &Value) -> bool {
    if each(evidence, site, |_| Some(value.clone())) {
        return true;
    }
    let Some((above, name)) = site.pointer().rsplit_once('/') else {
        return false;
    };
    let Some(document) = document_of(evidence, site) else {
        return false;
    };
    match Arc::make_mut(document).pointer_mut(above) {
        Some(Value::Object(members)) => {
            members.insert(name.replace("~1", "/").replace("~0", "~"), value.clone());
            true
        }
        Some(_) | None => false,
    }
}

/// Takes away the first value that a pointer leads to.
fn remove(document: &mut Value, pointer: &str) -> bool {
    let Some((place, _)) = json::expand(document, pointer).into_iter().next() else {
        return false;
    };
    let Some((above, name)) = place.rsplit_once('/') else {
        return false;
    };
    match document.pointer_mut(above) {
        Some(Value::Object(members)) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            members.shift_remove(&name).is_some()
        }
        Some(Value::Array(items)) => match name.parse() {
            Ok(index) if items.len() > index => {
                items.remove(index);
                true
            }
            Ok(_) | Err(_) => false,
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => false,
    }
}

fn previous_answer(evidence: &mut Evidence, site: &Site) -> bool {
    let Site::Exchange(index) = site else {
        return false;
    };
    let Some((before, later)) = evidence.exchanges.split_at_mut_checked(*index) else {
        return false;
    };
    let Some(exchange) = later.first_mut() else {
        return false;
    };
    let accepted = |e: &&Exchange| e.status().is_some_and(|s| (200..300).contains(&s));
    let previous = before
        .iter()
        .rev()
        .filter(|e| e.operation == exchange.operation && e.service == exchange.service)
        .find(accepted);
    if let Some(previous) = previous {
        exchange.outcome = previous.outcome.clone();
    }
    previous.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_moves_to_one_that_differs() {
        for (value, change, wanted) in [
            (json!(1), Change::Near, json!(2)),
            (json!(1), Change::Down, json!(1 - FAR)),
            (json!(true), Change::Near, json!(false)),
            (json!("a0"), Change::Near, json!("a1")),
            (json!([1]), Change::Twice, json!([1, 1])),
            (
                json!("2026-01-01T00:00:00Z"),
                Change::Up,
                json!("2026-01-02T00:00:00Z"),
            ),
        ] {
            assert_eq!(moved(&value, &change), Some(wanted), "{value}");
        }
        assert_eq!(moved(&json!({}), &Change::Near), None);
        assert_eq!(moved(&json!([]), &Change::Twice), None);
    }
}
