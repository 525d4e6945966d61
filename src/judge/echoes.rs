//! `echoes`: a sent parameter comes back in the accepted answer.

use super::case::{Case, Fact, Judgement};
use crate::json;
use crate::rulebook::Rule;
use crate::rulebook::rules::Comparison;
use serde_json::Value;

/// Where and how a parameter comes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    /// JSON Pointer into the answer.
    pub at: &'a str,
    /// How the two are compared.
    pub compare: Comparison,
    /// Other values that may stand there.
    pub or: &'a [Value],
}

/// Judges every exchange of these operations in which the parameter was sent.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operations: &[String],
    parameter: &str,
    way: &Way<'_>,
    judgement: &mut Judgement,
) {
    for operation in operations {
        for (index, seen) in case.of_operation(&rule.service, operation) {
            let Some(sent) = seen.exchange.sent.get(parameter) else {
                continue;
            };
            let values = seen.select(way.at);
            if values.is_empty() {
                continue;
            }
            let fact = values
                .iter()
                .find_map(|(at, got)| differs(sent, got, &Way { at, ..*way }));
            judgement.conclude(
                &rule.id,
                fact.map(|fact| case.finding(&rule.id, Some(index), fact)),
            );
        }
    }
}

/// What is wrong when `sent` came back as `got`; nothing when it is right.
pub(super) fn differs(sent: &Value, got: &Value, way: &Way<'_>) -> Option<Fact> {
    let same = match way.compare {
        Comparison::Text => as_text(sent) == as_text(got),
        // What is no JSON may be refused or replaced; only JSON can come back as itself.
        Comparison::Json => match json::parse_text(&as_text(sent)) {
            Some(sent) => {
                json::parse_text(&as_text(got)).is_some_and(|got| json::equal(&sent, &got))
            }
            None => true,
        },
        Comparison::Instant => match (instant(sent), instant(got)) {
            (Some(sent), Some(got)) => sent.as_second() == got.as_second(),
            (_, _) => false,
        },
        Comparison::Set => as_set(sent) == as_set(got),
        // Beyond its bound only the value in full is wrong; `parameter` looks after that.
        Comparison::Limit => true,
    };
    if same || way.or.contains(got) {
        return None;
    }
    let expected = json::short(sent);
    let actual = json::short(got);
    Some(Fact {
        pointer: way.at.to_owned(),
        kind: "not-honoured",
        message: format!("sent {expected}, came back as {actual}"),
        expected,
        actual,
    })
}

/// A value by its spelling in a form: texts as they are, null as nothing, the rest as JSON.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// An instant in any ISO 8601 spelling.
pub(super) fn instant(value: &Value) -> Option<crate::clock::Timestamp> {
    value.as_str()?.parse().ok()
}

fn as_set(value: &Value) -> Vec<String> {
    let mut set: Vec<String> = match value {
        Value::Array(items) => items.iter().map(as_text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![as_text(value)]
        }
    };
    set.sort();
    set.dedup();
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_comparison_holds_and_bites() {
        for (compare, sent, right, wrong) in [
            (Comparison::Text, json!("3"), json!(3), json!(4)),
            (Comparison::Text, json!("true"), json!(true), json!(false)),
            (
                Comparison::Json,
                json!("{\"a\":1, \"b\":2}"),
                json!("{\"b\":2,\"a\":1}"),
                json!("{}"),
            ),
            (
                Comparison::Instant,
                json!("2026-01-01T00:00:00-00:00"),
                json!("2026-01-01T00:00:00.5Z"),
                json!("2026-01-01T00:00:01Z"),
            ),
            (
                Comparison::Set,
                json!(["a", "b"]),
                json!(["b", "a"]),
                json!(["a"]),
            ),
            (Comparison::Set, json!("a"), json!(["a"]), json!([])),
        ] {
            let way = Way {
                at: "/x",
                compare,
                or: &[],
            };
            assert_eq!(
                differs(&sent, &right, &way).map(|f| f.message),
                None,
                "{compare:?}"
            );
            assert!(differs(&sent, &wrong, &way).is_some(), "{compare:?}");
            assert!(
                differs(
                    &sent,
                    &wrong,
                    &Way {
                        or: std::slice::from_ref(&wrong),
                        ..way
                    }
                )
                .is_none()
            );
        }
    }
}
