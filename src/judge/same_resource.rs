//! `same-resource`: representations of one thing agree in what never changes, whichever operation
//! they came by.

use super::case::{Case, Fact, Judgement, Representation};
use super::echoes::instant;
use crate::json;
use crate::rulebook::Rule;
use serde_json::Value;
use std::collections::BTreeMap;

/// Judges each thing that was represented at least twice.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    key: &str,
    fields: &[String],
    judgement: &mut Judgement,
) {
    let mut first: BTreeMap<String, &Representation<'_>> = BTreeMap::new();
    for later in case.of_kind(kind) {
        let Some(identity) = later.value(key).map(Value::to_string) else {
            continue;
        };
        let Some(earlier) = first.get(&identity).copied() else {
            first.insert(identity, later);
            continue;
        };
        let wrong = fields.iter().find_map(|field| {
            let (before, after) = (earlier.value(field)?, later.value(field)?);
            (!same(before, after)).then_some((field, before, after))
        });
        let finding = wrong.map(|(field, before, after)| {
            let fact = Fact {
                pointer: format!("{}{field}", later.prefix),
                kind: "changed",
                expected: format!("{}, as before", json::short(before)),
                actual: json::short(after),
                ..Fact::default()
            };
            case.finding(&rule.id, later.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}

/// The same JSON value, or the same instant in two spellings.
fn same(before: &Value, after: &Value) -> bool {
    json::equal(before, after)
        || matches!((instant(before), instant(after)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::same;
    use serde_json::json;

    #[test]
    fn one_instant_in_two_spellings_is_the_same() {
        assert!(same(
            &json!("2026-01-01T00:00:00Z"),
            &json!("2026-01-01T00:00:00+00:00")
        ));
        assert!(!same(
            &json!("2026-01-01T00:00:00Z"),
            &json!("2026-01-01T00:00:01Z")
        ));
        assert!(!same(&json!("1"), &json!(1)));
    }
}
