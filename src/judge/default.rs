//! `default`: when a parameter is left out, its stated default stands in the accepted answer.

use super::case::{Case, Fact, Judgement};
use crate::json;
use crate::rulebook::Rule;
use serde_json::Value;

/// Judges every exchange of these operations in which the parameter was left out.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operations: &[String],
    parameter: &str,
    at: &str,
    value: &Value,
    judgement: &mut Judgement,
) {
    for operation in operations {
        for (index, seen) in case.of_operation(&rule.service, operation) {
            if seen.exchange.sent.contains_key(parameter) {
                continue;
            }
            let Some(got) = seen.value(at) else { continue };
            let finding =
                differs(parameter, value, got, at).map(|f| case.finding(&rule.id, Some(index), f));
            judgement.conclude(&rule.id, finding);
        }
    }
}

/// What is wrong when `got` stands where the default should; nothing when it is right.
pub(super) fn differs(parameter: &str, default: &Value, got: &Value, at: &str) -> Option<Fact> {
    if json::equal(default, got) {
        return None;
    }
    let (expected, actual) = (json::short(default), json::short(got));
    Some(Fact {
        pointer: at.to_owned(),
        kind: "default",
        message: format!("{parameter} was left out: expected the default {expected}, got {actual}"),
        expected,
        actual,
    })
}
