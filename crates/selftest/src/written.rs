//! Tests written rules about representations that no exchange contains, with an example.

use super::matrix::Row;
use conformant_fixtures::{Plan, subjects};
use conformant_judge::{DocumentCache, judge, judge_with_cache, predicate_of};
use conformant_record::Level;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use serde_json::Value;

/// A valid instance: the example of the schema, otherwise a fixture.
pub(super) fn example(rulebook: &Rulebook, kind: &str) -> Option<Value> {
    let schema = &rulebook.kinds.get(kind)?.schema;
    if let Some(example) = schema.pointer("/examples/0") {
        return Some(example.clone());
    }
    let subject = subjects(rulebook).into_iter().find(|s| s.name == kind)?;
    Plan::new(&subject).ok()?.documents(0).value(0).ok()
}

/// Breaks the rule on an example: it passes first, then mutations are tried until one breaks it.
pub(super) fn try_out(rulebook: &Rulebook, schemas: &Schemas, rule: &str) -> Row {
    let mut row = Row::default();
    let Some(known) = rulebook.rules.get(rule) else {
        return row;
    };
    let (Some(predicate), Some(kind)) = (predicate_of(known), known.kind()) else {
        return row;
    };
    let Some(example) = example(rulebook, kind) else {
        row.errors.push(format!("{rule}: no example of its type"));
        return row;
    };
    let evidence = predicate.example_evidence(known, kind, example);
    let judgment = judge_with_cache(
        rulebook,
        schemas,
        &evidence,
        &DocumentCache::default(),
        usize::MAX,
    );
    let examples = judgment.examples(rule).iter();
    let mutations = examples.flat_map(|sites| predicate.mutations(sites));
    for mutation in mutations {
        let mut changed = evidence.clone();
        if !mutation.apply(&mut changed) {
            continue;
        }
        row.scenarios += 1;
        for finding in judge(rulebook, schemas, &changed).findings {
            if finding.level == Level::Must {
                row.failed_by.insert(finding.rule.clone());
            }
            row.killed_by.insert(finding.rule);
        }
        if row.killed_by.contains(rule) {
            break;
        }
        row.killed_by.clear();
        row.failed_by.clear();
    }
    row
}
