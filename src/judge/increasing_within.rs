//! `increasing-within`: a number grows with each thing created in a scope; gaps are free.

use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;
use serde_json::Value;
use std::collections::BTreeMap;

/// Judges each creation after the first in its scope.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operation: &str,
    at: &str,
    scope: &[String],
    judgement: &mut Judgement,
) {
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for (index, seen) in case.of_operation(&rule.service, operation) {
        let Some(number) = seen.value(at).and_then(Value::as_i64) else {
            continue;
        };
        let scope: Option<Vec<String>> = scope
            .iter()
            .map(|s| seen.value(s).map(Value::to_string))
            .collect();
        let Some(scope) = scope else { continue };
        let Some(before) = last.insert(scope.join("\n"), number) else {
            continue;
        };
        let finding = (number <= before).then(|| {
            let fact = Fact {
                pointer: at.to_owned(),
                kind: "order",
                expected: format!("more than {before}"),
                actual: number.to_string(),
                ..Fact::default()
            };
            case.finding(&rule.id, Some(index), fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}
