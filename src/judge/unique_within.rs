//! `unique-within`: two things never share a value within one scope.

use super::case::{Case, Fact, Judgement};
use crate::json;
use crate::rulebook::Rule;
use serde_json::Value;
use std::collections::BTreeMap;

/// Judges each thing after the first in its scope.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    key: &str,
    at: &str,
    scope: &[String],
    judgement: &mut Judgement,
) {
    let mut owners: BTreeMap<(String, String), String> = BTreeMap::new();
    for thing in case.of_kind(kind) {
        // What was never set is no name, however it is written.
        let Some(value) = thing.value(at).filter(|v| !v.is_null() && *v != "") else {
            continue;
        };
        let (Some(identity), Some(scope)) =
            (thing.value(key).map(Value::to_string), thing.key(scope))
        else {
            continue;
        };
        let owner = owners
            .entry((scope, value.to_string()))
            .or_insert_with(|| identity.clone());
        let finding = (*owner != identity).then(|| {
            let fact = Fact {
                pointer: format!("{}{at}", thing.prefix),
                kind: "not-unique",
                expected: format!("a value that {owner} does not have"),
                actual: json::short(value),
                message: format!(
                    "{} belongs to {owner} and to {identity}",
                    json::short(value)
                ),
            };
            case.finding(&rule.id, thing.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}
