//! Checks the comparison of versions with generated documents: each event against each other one, in both content models.

use conformant_rulebook::{Rulebook, event_version};
use conformant_versions::{Content, Relation};
use serde_json::Value;

/// Number of generated documents of each event.
const SAMPLES: u64 = 40;

/// Generated documents that the comparison does not account for.
pub(super) fn contradictions(rulebook: &Rulebook) -> Vec<String> {
    let events: Vec<(&str, &Value, Vec<Value>)> = rulebook
        .kinds
        .values()
        .filter(|kind| event_version(&kind.name).is_some())
        .map(|kind| {
            let documents = conformant_fixtures::samples(rulebook, &kind.name, SAMPLES);
            (kind.name.as_str(), &kind.schema, documents)
        })
        .collect();
    let mut found = Vec::new();
    for (n, (old, before, documents)) in events.iter().enumerate() {
        for (new, after, more) in events.iter().skip(n + 1) {
            let all = [documents.as_slice(), more.as_slice()].concat();
            for content in [Content::Open, Content::Closed] {
                let relation = Relation::new((old, before), (new, after), Some(content), &all);
                found.extend(relation.contradictions);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_events_do_not_contradict_the_comparison() {
        let rulebook = conformant_judge::load::embedded().unwrap_or_else(|p| panic!("{p}"));
        assert_eq!(super::contradictions(&rulebook), Vec::<String>::new());
    }
}
