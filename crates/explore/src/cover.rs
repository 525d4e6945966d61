//! Coverage of exploration: operations, parameters, pairs of operations, rules, states.

use conformant_judge::evidence::Evidence;
use conformant_judge::{Acceptance, Judgment, acceptance};
use conformant_rulebook::{Rulebook, Service};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Coverage, each as reached and total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Called operations.
    pub operations: (usize, usize),
    /// Sent parameters.
    pub parameters: (usize, usize),
    /// Pairs of consecutive operations.
    pub pairs: (usize, usize),
    /// Judged rules.
    pub rules: (usize, usize),
    /// Observed values of enumerations.
    pub states: (usize, usize),
}

/// Names of what was reached.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Operations with their parameters and the operations that followed.
    operations: BTreeMap<String, Called>,
    rules: BTreeSet<String>,
    /// Types with the observed values of their fields.
    states: BTreeMap<String, BTreeSet<(String, String)>>,
}

/// How an operation was called.
#[derive(Debug, Default)]
struct Called {
    with: BTreeSet<String>,
    next: BTreeSet<String>,
}

/// Adds a name that is usually present.
fn note(names: &mut BTreeSet<String>, name: &str) {
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}

/// Returns the entry of a name that is usually present.
fn entry_of<'m, T: Default>(named: &'m mut BTreeMap<String, T>, name: &str) -> &'m mut T {
    if !named.contains_key(name) {
        named.insert(name.to_owned(), T::default());
    }
    named.get_mut(name).expect("it was just put there")
}

impl Seen {
    /// Adds a sequence.
    pub(super) fn add(&mut self, rulebook: &Rulebook, evidence: &Evidence, judgment: &Judgment) {
        let mut before: Option<String> = None;
        for exchange in &evidence.exchanges {
            let name = format!("{}/{}", exchange.service, exchange.operation);
            let called = entry_of(&mut self.operations, &name);
            let sent = exchange.sent.keys();
            sent.for_each(|parameter| note(&mut called.with, parameter));
            if let Some(before) = before.replace(name.clone()) {
                note(&mut entry_of(&mut self.operations, &before).next, &name);
            }
            let operation = rulebook.operation(&exchange.service, &exchange.operation);
            let is_accepted = acceptance(rulebook, exchange, operation) == Acceptance::Accepted;
            let kind = operation
                .and_then(|o| o.response.as_ref())
                .filter(|_| is_accepted);
            let Some((kind, document)) = kind.zip(exchange.document()) else {
                continue;
            };
            for (field, words) in states_of(rulebook, kind) {
                // Undocumented values are not states, and storing them would grow without limit.
                if let Some(word @ Value::String(text)) = document.get(field)
                    && words.contains(word)
                {
                    let state = (field.to_owned(), text.clone());
                    entry_of(&mut self.states, kind).insert(state);
                }
            }
        }
        let tallies = judgment.tallies.iter();
        let judged = tallies.filter(|(_, tally)| tally.judged() > 0);
        judged.for_each(|(rule, _)| note(&mut self.rules, rule));
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (name, called) in other.operations {
            let ours = entry_of(&mut self.operations, &name);
            ours.with.extend(called.with);
            ours.next.extend(called.next);
        }
        self.rules.extend(other.rules);
        for (kind, states) in other.states {
            entry_of(&mut self.states, &kind).extend(states);
        }
    }

    /// Coverage of these services.
    pub(super) fn coverage(&self, rulebook: &Rulebook, services: &[&Service]) -> Coverage {
        let operations = || {
            services
                .iter()
                .flat_map(|service| service.operations.values())
        };
        let count = operations().count();
        let known = |name: &str| rulebook.operation_by_id(name).is_some();
        let called = || self.operations.iter().filter(|(name, _)| known(name));
        let is_theirs = |id: &str| {
            services
                .iter()
                .any(|s| id.split('/').next() == Some(&s.name))
        };
        let kinds: BTreeSet<&String> = operations().filter_map(|o| o.response.as_ref()).collect();
        let words = kinds.iter().flat_map(|kind| states_of(rulebook, kind));
        Coverage {
            operations: (called().count(), count),
            parameters: (
                called().map(|(_, called)| called.with.len()).sum(),
                operations().map(|o| o.parameters.len()).sum(),
            ),
            pairs: (
                called()
                    .flat_map(|(_, called)| &called.next)
                    .filter(|next| known(next))
                    .count(),
                services.iter().map(|s| s.operations.len().pow(2)).sum(),
            ),
            rules: (
                self.rules.iter().filter(|rule| is_theirs(rule)).count(),
                rulebook.rules.keys().filter(|rule| is_theirs(rule)).count(),
            ),
            states: (
                self.states.values().map(BTreeSet::len).sum(),
                words
                    .flat_map(|(_, words)| words)
                    .filter(|word| word.is_string())
                    .count(),
            ),
        }
    }
}

/// Enumerated fields of a type with their values.
fn states_of<'r>(
    rulebook: &'r Rulebook,
    kind: &str,
) -> impl Iterator<Item = (&'r str, &'r [Value])> {
    let schema = rulebook.kinds.get(kind).map(|kind| &kind.schema);
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| {
            Some((name.as_str(), schema.get("enum")?.as_array()?.as_slice()))
        })
}
