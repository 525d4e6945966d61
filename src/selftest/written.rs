//! Written rules about representations that no exchange carries: broken on an example.

use super::matrix::Row;
use crate::clock;
use crate::fixtures::{Plan, subjects};
use crate::judge::evidence::{Evidence, Payload};
use crate::judge::judge;
use crate::rulebook::rules::Check;
use crate::rulebook::{Origin, Rulebook};
use crate::schema::Schemas;
use serde_json::{Value, json};
use std::sync::Arc;

/// A valid instance: the schema's own example, else a fixture.
pub(super) fn example(rulebook: &Rulebook, kind: &str) -> Option<Value> {
    let schema = &rulebook.kinds.get(kind)?.schema;
    if let Some(example) = schema.pointer("/examples/0") {
        return Some(example.clone());
    }
    let subject = subjects(rulebook).into_iter().find(|s| s.name == kind)?;
    Plan::new(&subject).ok()?.documents(0).value(0).ok()
}

/// Whether a rule of this form can be broken on an example.
pub(super) fn can_break(check: &Check) -> bool {
    matches!(
        check,
        Check::Configured { .. } | Check::AtMostAfter { .. } | Check::Conforms { .. }
    )
}

/// Breaks the rule on an example of its kind.
pub(super) fn try_out(rulebook: &Rulebook, schemas: &Schemas, rule: &str) -> Row {
    let mut row = Row::default();
    let known = rulebook.rules.get(rule);
    let Some(Origin::Written(check)) = known.map(|r| &r.origin) else {
        return row;
    };
    let Some(example) = check.kind().and_then(|kind| example(rulebook, kind)) else {
        row.errors
            .push(format!("{rule}: no example of what it judges"));
        return row;
    };
    let service = known.map(|r| r.service.clone()).unwrap_or_default();
    for evidence in broken(check, &example, &service) {
        row.scenarios += 1;
        let judgement = judge(rulebook, schemas, &evidence);
        for finding in judgement.findings {
            if finding.level == "must" {
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

/// Evidence in which the rule is broken; several ways where one of them will do.
fn broken(check: &Check, example: &Value, service: &str) -> Vec<Evidence> {
    let seconds = |at: &str| {
        example
            .pointer(at)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    match check {
        Check::Configured { kind, at, key } => {
            let mut configured = json!({});
            let mut slot = &mut configured[service];
            for part in key.split('.') {
                slot = &mut slot[part];
            }
            *slot = example.pointer(at).cloned().unwrap_or_default();
            vec![Evidence {
                configured,
                ..with(kind, changed(example, at, &json!("conformant-foreign")))
            }]
        }
        Check::AtMostAfter {
            kind,
            at,
            after,
            seconds: most,
        } => {
            let beyond = i64::try_from(*most).unwrap_or(i64::MAX / 2) + 1000;
            let evidence = match (at, after) {
                (Some(at), Some(after)) => {
                    with(kind, changed(example, at, &json!(seconds(after) + beyond)))
                }
                (Some(at), None) => Evidence {
                    now: Some(clock::from_unix_ms((seconds(at) - beyond) * 1000)),
                    ..with(kind, example.clone())
                },
                (None, Some(after)) => Evidence {
                    now: Some(clock::from_unix_ms((seconds(after) + beyond) * 1000)),
                    ..with(kind, example.clone())
                },
                (None, None) => return Vec::new(),
            };
            vec![evidence]
        }
        Check::Conforms { kind, at, .. } => [
            json!(null),
            json!(true),
            json!("someone@example.com"),
            json!(7),
            json!({}),
        ]
        .iter()
        .map(|value| with(kind, changed(example, at, value)))
        .collect(),
        Check::Story {}
        | Check::PresentOnlyWhen { .. }
        | Check::Echoes { .. }
        | Check::Default { .. }
        | Check::OrderedBy { .. }
        | Check::FilteredBy { .. }
        | Check::Bounded { .. }
        | Check::InFormat { .. }
        | Check::PlainJson {}
        | Check::NoLongerThan { .. }
        | Check::SameResource { .. }
        | Check::UniqueWithin { .. }
        | Check::IncreasingWithin { .. }
        | Check::Transition { .. }
        | Check::NeverAfter { .. }
        | Check::OneSpelling { .. } => Vec::new(),
    }
}

fn changed(example: &Value, at: &str, value: &Value) -> Value {
    let mut document = example.clone();
    let places: Vec<String> = crate::json::expand(example, at)
        .into_iter()
        .map(|(place, _)| place)
        .collect();
    for place in places {
        if let Some(slot) = document.pointer_mut(&place) {
            *slot = value.clone();
        }
    }
    document
}

fn with(kind: &str, value: Value) -> Evidence {
    let payload = Payload {
        kind: kind.to_owned(),
        value: Arc::new(value),
        notes: Vec::new(),
        step: 0,
    };
    Evidence {
        payloads: vec![payload],
        ..Evidence::default()
    }
}
