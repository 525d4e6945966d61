//! Surviving mutants, and the test coverage that they lack.

use crate::evidence::Evidence;
use crate::{Mutation, Site};
use conformant_record::{Blind, Changes, RuleResult, RunRecord, Sample, Verdict};
use conformant_rulebook::{Rule, Rulebook};
use std::collections::{BTreeMap, BTreeSet};

/// Places in a record; further ones are counted.
const LISTED_MAX: usize = 100;
/// Suggestions for each place.
const WOULD_MAX: usize = 3;

/// The results of mutations, by operation or resource type and place.
#[derive(Debug, Default)]
pub(super) struct SurvivingMutants(BTreeMap<(String, String), PlaceCounts>);

#[derive(Debug, Default)]
struct PlaceCounts {
    made: usize,
    noticed: usize,
    /// The names of the changes that survived.
    missed: BTreeSet<&'static str>,
}

impl SurvivingMutants {
    /// Counts one mutation.
    pub(super) fn add(&mut self, evidence: &Evidence, mutation: &Mutation, is_noticed: bool) {
        let of = match (&mutation.site, mutation.site.exchange(evidence)) {
            (Site::Payload { payload, .. }, _) => evidence.payloads[*payload].kind.clone(),
            (Site::Result { statement, .. }, None) => {
                let rule = &evidence.statements[*statement].expect.rule;
                let service = rule.split('/').next().unwrap_or_default();
                format!("{service}/callbacks")
            }
            (_, Some(exchange)) => {
                let exchange = &evidence.exchanges[exchange];
                format!("{}/{}", exchange.service, exchange.operation)
            }
            (_, None) => return,
        };
        let here = self
            .0
            .entry((of, pattern(mutation.site.pointer())))
            .or_default();
        here.made += 1;
        here.noticed += usize::from(is_noticed);
        if !is_noticed {
            here.missed.insert(mutation.change.word());
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (at, theirs) in other.0 {
            let ours = self.0.entry(at).or_default();
            ours.made += theirs.made;
            ours.noticed += theirs.noticed;
            ours.missed.extend(theirs.missed);
        }
    }

    /// The summary for the record: places with most surviving mutants first.
    pub(super) fn sample(self, rulebook: &Rulebook, record: &RunRecord) -> Sample {
        let mut sample = Sample::default();
        for ((of, pointer), here) in self.0 {
            sample.made += here.made;
            sample.noticed += here.noticed;
            let service = of.split('/').next().unwrap_or_default();
            let changes = Changes {
                made: here.made,
                noticed: here.noticed,
                broke: 0,
            };
            sample
                .services
                .entry(service.to_owned())
                .or_default()
                .add(changes);
            if here.noticed < here.made {
                sample.blind.push(Blind {
                    of,
                    pointer,
                    changes: here.missed.into_iter().map(str::to_owned).collect(),
                    made: here.made,
                    noticed: here.noticed,
                    would: Vec::new(),
                });
            }
        }
        sample.blind.sort_by(|a, b| {
            let missed = |blind: &Blind| blind.made - blind.noticed;
            let by_place = (&a.of, &a.pointer).cmp(&(&b.of, &b.pointer));
            missed(b).cmp(&missed(a)).then(by_place)
        });
        sample.more = sample.blind.len().saturating_sub(LISTED_MAX);
        sample.blind.truncate(LISTED_MAX);
        for blind in &mut sample.blind {
            blind.would = suggestions(rulebook, record, blind);
        }
        sample
    }
}

/// The pointer with `*` in place of each index.
fn pattern(pointer: &str) -> String {
    let is_index =
        |segment: &str| !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
    let segments = pointer.split('/');
    let named: Vec<&str> = segments
        .map(|s| if is_index(s) { "*" } else { s })
        .collect();
    named.join("/")
}

/// Ways to detect a change there: what rules about it lack, else a scenario that sends the value and reads it.
fn suggestions(rulebook: &Rulebook, record: &RunRecord, blind: &Blind) -> Vec<String> {
    let subjects = subjects(rulebook, &blind.of);
    let is_about = |result: &RuleResult| {
        let kind = rulebook.rules.get(&result.id).and_then(Rule::kind);
        subjects.iter().any(|subject| {
            let rest = result.id.strip_prefix(subject.as_str());
            rest.is_some_and(|rest| rest.starts_with('/')) || kind == Some(subject)
        })
    };
    let lacks = record.rules.iter().filter(|rule| {
        let is_judged = matches!(
            rule.verdict,
            Verdict::Pass | Verdict::Fail | Verdict::Waived
        );
        !is_judged && is_about(rule)
    });
    let needs: BTreeSet<&String> = lacks
        .flat_map(|rule| &rule.needs)
        .filter(|n| *n != "check")
        .collect();
    if !needs.is_empty() {
        return needs.into_iter().take(WOULD_MAX).cloned().collect();
    }
    let mut scenarios = Vec::new();
    for service in rulebook.services.values() {
        for operation in service.operations.values() {
            let shows = operation
                .response
                .as_ref()
                .is_some_and(|kind| subjects.contains(kind));
            let mut sent = operation.parameters.iter().filter(|p| {
                let at = p.echo.as_ref().map(|echo| echo.at.as_str());
                shows && at.is_some_and(|at| blind.pointer.ends_with(at) && !at.is_empty())
            });
            let own = format!("{}/{}", operation.service, operation.id);
            if let Some(parameter) = sent.next().filter(|_| own != blind.of) {
                scenarios.push(format!(
                    "scenario: send {} by {own}, look here",
                    parameter.name
                ));
            }
        }
    }
    scenarios.truncate(1);
    scenarios
}

/// The operation, its resource type, and the type of its items.
fn subjects(rulebook: &Rulebook, of: &str) -> Vec<String> {
    let mut subjects = vec![of.to_owned()];
    let shown = rulebook
        .operation_by_id(of)
        .and_then(|o| o.response.clone());
    subjects.extend(shown.clone());
    let page = shown.and_then(|kind| rulebook.kinds.get(&kind)?.page_of.clone());
    subjects.extend(page.map(|(item, _)| item));
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_of_a_list_count_as_one_place() {
        assert_eq!(pattern("/flows/12/sid"), "/flows/*/sid");
        assert_eq!(pattern("/a1/x"), "/a1/x");
        assert_eq!(pattern(""), "");
    }
}
