//! What exploration reached: operations, parameters, pairs of operations, rules, states.

use crate::judge::evidence::Evidence;
use crate::judge::{Acceptance, Judgement, acceptance};
use crate::rulebook::{Rulebook, Service};
use serde_json::Value;
use std::collections::BTreeSet;

/// Counts of what was reached, each beside what there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Operations that were called.
    pub operations: (usize, usize),
    /// Parameters that were sent.
    pub parameters: (usize, usize),
    /// Pairs of operations, one after the other.
    pub pairs: (usize, usize),
    /// Rules that were judged.
    pub rules: (usize, usize),
    /// Words of enumerations that things showed.
    pub states: (usize, usize),
}

/// What was reached, by name.
#[derive(Debug, Default)]
pub(super) struct Seen {
    operations: BTreeSet<String>,
    parameters: BTreeSet<(String, String)>,
    pairs: BTreeSet<(String, String)>,
    rules: BTreeSet<String>,
    states: BTreeSet<(String, String, String)>,
}

impl Seen {
    pub(super) fn of(rulebook: &Rulebook, evidence: &Evidence, judgement: &Judgement) -> Self {
        let mut seen = Self::default();
        let mut before: Option<String> = None;
        for exchange in &evidence.exchanges {
            let name = format!("{}/{}", exchange.service, exchange.operation);
            let sent = exchange
                .sent
                .keys()
                .map(|parameter| (name.clone(), parameter.clone()));
            seen.parameters.extend(sent);
            seen.pairs.extend(
                before
                    .replace(name.clone())
                    .map(|before| (before, name.clone())),
            );
            let operation = rulebook.operation(&exchange.service, &exchange.operation);
            seen.operations.insert(name);
            let is_accepted = acceptance(rulebook, exchange, operation) == Acceptance::Accepted;
            let kind = operation
                .and_then(|o| o.response.as_ref())
                .filter(|_| is_accepted);
            let Some((kind, document)) = kind.zip(exchange.document()) else {
                continue;
            };
            for (field, _) in states_of(rulebook, kind) {
                if let Some(Value::String(word)) = document.get(&field) {
                    seen.states.insert((kind.clone(), field, word.clone()));
                }
            }
        }
        let judged = judgement
            .tallies
            .iter()
            .filter(|(_, tally)| tally.judged() > 0);
        seen.rules.extend(judged.map(|(rule, _)| rule.clone()));
        seen
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.operations.extend(other.operations);
        self.parameters.extend(other.parameters);
        self.pairs.extend(other.pairs);
        self.rules.extend(other.rules);
        self.states.extend(other.states);
    }

    /// How much that is of what these services have.
    pub(super) fn coverage(&self, rulebook: &Rulebook, services: &[&Service]) -> Coverage {
        let operations = || {
            services
                .iter()
                .flat_map(|service| service.operations.values())
        };
        let count = operations().count();
        let known = |name: &String| rulebook.operation_by_id(name).is_some();
        let is_theirs = |id: &str| {
            services
                .iter()
                .any(|s| id.split('/').next() == Some(&s.name))
        };
        let kinds: BTreeSet<&String> = operations().filter_map(|o| o.response.as_ref()).collect();
        let words = kinds.iter().flat_map(|kind| states_of(rulebook, kind));
        Coverage {
            operations: (self.operations.iter().filter(|o| known(o)).count(), count),
            parameters: (
                self.parameters.iter().filter(|(o, _)| known(o)).count(),
                operations().map(|o| o.parameters.len()).sum(),
            ),
            pairs: (
                self.pairs
                    .iter()
                    .filter(|(a, b)| known(a) && known(b))
                    .count(),
                services.iter().map(|s| s.operations.len().pow(2)).sum(),
            ),
            rules: (
                self.rules.iter().filter(|rule| is_theirs(rule)).count(),
                rulebook.rules.keys().filter(|rule| is_theirs(rule)).count(),
            ),
            states: (self.states.len(), words.map(|(_, words)| words).sum()),
        }
    }
}

/// Fields of a kind with an enumeration, and how many words that has.
fn states_of(rulebook: &Rulebook, kind: &str) -> Vec<(String, usize)> {
    let schema = rulebook.kinds.get(kind).map(|kind| &kind.schema);
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let properties = properties.into_iter().flatten();
    properties
        .filter_map(|(name, schema)| {
            let words = schema.get("enum")?.as_array()?;
            Some((
                name.clone(),
                words.iter().filter(|word| word.is_string()).count(),
            ))
        })
        .collect()
}
