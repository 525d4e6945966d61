//! `filtered-by`: each listed item fits the filter that was sent.

use super::case::{Case, Fact, Judgement};
use super::echoes::{as_text, instant};
use crate::json;
use crate::rulebook::Rule;
use crate::rulebook::rules::Keeps;
use serde_json::Value;

/// Judges every page that was asked for with the filter.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operation: &str,
    parameter: &str,
    at: &str,
    keeps: Keeps,
    judgement: &mut Judgement,
) {
    for (index, seen) in case.of_operation(&rule.service, operation) {
        let Some(sent) = seen.exchange.sent.get(parameter) else {
            continue;
        };
        let values = seen.select(at);
        let wrong = values.iter().find(|(_, value)| !fits(sent, value, keeps));
        if values.is_empty() {
            continue;
        }
        let finding = wrong.map(|(pointer, value)| {
            let relation = match keeps {
                Keeps::AtOrAfter => "on or after",
                Keeps::Before => "before",
                Keeps::OneOf => "one of",
            };
            let fact = Fact {
                pointer: pointer.clone(),
                kind: "filter",
                expected: format!("{relation} {}, as {parameter} asks", json::short(sent)),
                actual: json::short(value),
                ..Fact::default()
            };
            case.finding(&rule.id, Some(index), fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}

fn fits(sent: &Value, value: &Value, keeps: Keeps) -> bool {
    let seconds = |v: &Value| instant(v).map(crate::clock::Timestamp::as_second);
    match keeps {
        Keeps::AtOrAfter => seconds(sent)
            .zip(seconds(value))
            .is_none_or(|(s, v)| v >= s),
        Keeps::Before => seconds(sent).zip(seconds(value)).is_none_or(|(s, v)| v < s),
        Keeps::OneOf => match sent {
            Value::Array(words) => words.iter().any(|word| as_text(word) == as_text(value)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => as_text(sent) == as_text(value),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bounds_are_inclusive_below_and_exclusive_above() {
        let sent = json!("2026-01-01T00:00:00-00:00");
        for (value, from, to) in [
            ("2025-12-31T23:59:59Z", false, true),
            ("2026-01-01T00:00:00Z", true, false),
            ("2026-01-01T00:00:01Z", true, false),
        ] {
            assert_eq!(
                fits(&sent, &json!(value), Keeps::AtOrAfter),
                from,
                "{value}"
            );
            assert_eq!(fits(&sent, &json!(value), Keeps::Before), to, "{value}");
        }
        assert!(fits(&json!(["apn", "fcm"]), &json!("fcm"), Keeps::OneOf));
        assert!(!fits(&json!("apn"), &json!("fcm"), Keeps::OneOf));
    }
}
