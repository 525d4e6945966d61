//! Random mutations: the sampled mutation score of a run.
//!
//! The sample of a scenario depends on the seed and its id only.

use super::has_more_findings;
use super::survivors::SurvivingMutants;
use crate::evidence::{Evidence, Exchange, Expectation};
use crate::{Change, DocumentCache, Judgment, Mutation, Other, Site, judge_mutated};
use conformant_base::parallel::{lock, recovered};
use conformant_record::{RunRecord, Sample};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Mutex;

/// Mutations per run, distributed evenly over its scenarios.
const BUDGET: usize = 5_000;
/// Minimum and maximum per scenario.
const PER_STORY: (usize, usize) = (4, 200);
/// Attempts to draw one applicable mutation.
const DRAWS_MAX: usize = 6;

/// Draws mutations and collects their results.
#[derive(Debug)]
pub(super) struct Sampler {
    seed: u64,
    per_story: usize,
    survivors: Mutex<SurvivingMutants>,
}

impl Sampler {
    pub(super) fn new(seed: u64, scenarios: usize) -> Self {
        let (least, most) = PER_STORY;
        Self {
            seed,
            per_story: (BUDGET / scenarios.max(1)).clamp(least, most),
            survivors: Mutex::default(),
        }
    }

    /// Applies random mutations to one scenario, one at a time.
    pub(super) fn sample_scenario(
        &self,
        rulebook: &Rulebook,
        schemas: &Schemas,
        evidence: &mut Evidence,
        judgment: &Judgment,
        cache: &DocumentCache,
    ) {
        let digest = Sha256::digest(format!("{}/{}", self.seed, evidence.scenario));
        let mut drawn = Generator(ChaCha8Rng::from_seed(digest.into()));
        let mut survivors = SurvivingMutants::default();
        for _ in 0..self.per_story {
            let made = (0..DRAWS_MAX).find_map(|_| {
                let mutation = drawn.mutation(evidence)?;
                let undo = mutation.make(evidence)?;
                Some((mutation, undo))
            });
            let Some((mutation, undo)) = made else {
                continue;
            };
            let changed = judge_mutated(rulebook, schemas, evidence, cache);
            let is_noticed = has_more_findings(&changed, judgment);
            undo.restore(evidence);
            survivors.add(evidence, &mutation, is_noticed);
        }
        let mut all = lock(&self.survivors);
        all.merge(survivors);
    }

    /// The summary for the record.
    pub(super) fn finish(self, rulebook: &Rulebook, record: &RunRecord) -> Sample {
        let survivors = recovered(self.survivors.into_inner());
        Sample {
            per_story: self.per_story,
            ..survivors.sample(rulebook, record)
        }
    }
}

/// Pseudorandom choices, equal for equal seeds.
struct Generator(ChaCha8Rng);

impl Generator {
    fn below(&mut self, count: usize) -> usize {
        let draw = usize::try_from(self.0.next_u64() >> 1).unwrap_or_default();
        draw % count.max(1)
    }

    fn choose<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }

    /// A mutation of this evidence; it may turn out to change nothing.
    fn mutation(&mut self, evidence: &Evidence) -> Option<Mutation> {
        let exchanges = evidence.exchanges.len();
        let payloads = evidence.payloads.len();
        let waits: Vec<usize> = waits(evidence);
        let all = exchanges + payloads + waits.len();
        if all == 0 {
            return None;
        }
        let at = self.below(all);
        if let Some(statement) = at.checked_sub(exchanges + payloads) {
            let site = Site::result(waits[statement], "");
            let change = self.choose(&[Change::Lost, Change::Doubled])?.clone();
            return Some(Mutation::new(site, change));
        }
        let (whole, document) = match at.checked_sub(exchanges) {
            Some(payload) => (
                Site::payload(payload, ""),
                &evidence.payloads[payload].value,
            ),
            None => {
                let exchange = &evidence.exchanges[at];
                // One in five changes a whole response.
                if self.below(5) == 0 {
                    let change = self.choose(&response_changes(exchange))?.clone();
                    return Some(Mutation::new(Site::Exchange(at), change));
                }
                (Site::answer(at, ""), exchange.document()?)
            }
        };
        let places = places(document);
        let (pointer, value) = self.choose(&places)?;
        let change = self.change(&whole, pointer, value, &places)?;
        Some(Mutation::new(whole.below(pointer), change))
    }

    fn change(
        &mut self,
        whole: &Site,
        pointer: &str,
        value: &Value,
        places: &[(String, &Value)],
    ) -> Option<Change> {
        if value.is_array() {
            return self.choose(&[Change::Twice, Change::Swapped]).cloned();
        }
        Some(match self.below(6) {
            0 => Change::Gone,
            1 => Change::To(Value::Null),
            2 => {
                let other = Other::ALL[self.below(Other::ALL.len())];
                Change::OtherType((!other.is_of(value)).then_some(other)?)
            }
            3 => {
                let siblings: Vec<&str> = places
                    .iter()
                    .filter(|(at, there)| at != pointer && same_type(there, value))
                    .map(|(at, _)| at.as_str())
                    .collect();
                Change::As(whole.below(self.choose(&siblings)?))
            }
            4 => Change::Up,
            _ => Change::Near,
        })
    }
}

/// Changes of a whole response. Setup steps, and requests without an expectation, have fewer.
fn response_changes(exchange: &Exchange) -> Vec<Change> {
    let other = match &exchange.expectation {
        Expectation::Accepted(_) if !exchange.setup => Some(Change::Refused),
        Expectation::Rejected(_) => Some(Change::Accepted(None)),
        Expectation::Accepted(_) | Expectation::Either => None,
    };
    other.into_iter().chain([Change::PreviousAnswer]).collect()
}

fn same_type(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Statements about waits for callbacks that were received.
fn waits(evidence: &Evidence) -> Vec<usize> {
    let came = |result: &Value| {
        let requests = result.get("requests").and_then(Value::as_array);
        result.get("waited").is_some() && requests.is_some_and(|r| !r.is_empty())
    };
    let statements = evidence.statements.iter().enumerate();
    statements
        .filter(|(_, s)| came(&s.result))
        .map(|(n, _)| n)
        .collect()
}

/// All places of a document: leaf values, and non-empty lists.
fn places(document: &Value) -> Vec<(String, &Value)> {
    fn collect<'v>(at: &mut String, value: &'v Value, places: &mut Vec<(String, &'v Value)>) {
        let length = at.len();
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    conformant_base::json::push(at, name);
                    collect(at, member, places);
                    at.truncate(length);
                }
            }
            Value::Array(items) => {
                if !items.is_empty() {
                    places.push((at.clone(), value));
                }
                for (index, item) in items.iter().enumerate() {
                    conformant_base::json::push(at, &index.to_string());
                    // Items may also be removed.
                    if item.is_object() {
                        places.push((at.clone(), item));
                    }
                    collect(at, item, places);
                    at.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                places.push((at.clone(), value));
            }
        }
    }
    let mut places = Vec::new();
    collect(&mut String::new(), document, &mut places);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_places_of_a_document_are_candidates() {
        let document = json!({"a": 1, "l": [{"x": "y"}], "e": [], "o": {"n": null}});
        let at: Vec<String> = places(&document).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, ["/a", "/l", "/l/0", "/l/0/x", "/o/n"]);
    }
}
