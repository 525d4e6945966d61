//! When two values of evidence say the same: texts, JSON texts, instants, sets.

use conformant_base::clock::Timestamp;
use conformant_base::json;
use conformant_rulebook::rules::Comparison;
use serde_json::Value;
use std::borrow::Cow;

/// Whether a value that was sent came back as another one.
pub(super) fn agrees(compare: Comparison, sent: &Value, got: &Value) -> bool {
    match compare {
        Comparison::Text => spelled(sent) == spelled(got) || is_number(&spelled(sent), got),
        // What is no JSON may be refused or replaced; only JSON can come back as itself.
        Comparison::Json => match json::parse_text(&spelled(sent)) {
            Some(sent) => {
                json::parse_text(&spelled(got)).is_some_and(|got| json::equal(&sent, &got))
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
    }
}

/// Whether a text spells that number; JSON may spell it otherwise, as 2.0.
fn is_number(text: &str, got: &Value) -> bool {
    let number = || {
        text.parse()
            .is_ok_and(|n| json::equal(&Value::Number(n), got))
    };
    got.is_number() && number()
}

/// The same JSON value, or the same instant in two spellings.
pub(super) fn same(before: &Value, after: &Value) -> bool {
    json::equal(before, after)
        || matches!((instant(before), instant(after)), (Some(a), Some(b)) if a == b)
}

/// Whether a SID stands for no thing: where none applies it is null or empty, one as good as the other.
pub(super) fn names_nothing(pointer: &str, value: &Value) -> bool {
    pointer.ends_with("sid") && (value.is_null() || value.as_str().is_some_and(str::is_empty))
}

/// Whether a value says nothing in one face of a thing that another face could contradict: what does not
/// apply there is unset, or names nothing.
pub(super) fn leaves_open(pointer: &str, value: &Value) -> bool {
    value.is_null() || names_nothing(pointer, value)
}

/// A value by its spelling in a form: texts as they are, null as nothing, the rest as JSON.
pub(super) fn as_text(value: &Value) -> String {
    spelled(value).into_owned()
}

/// The same, borrowed where it is a text.
pub(super) fn spelled(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

/// An instant in any ISO 8601 spelling.
pub(super) fn instant(value: &Value) -> Option<Timestamp> {
    let text = value.as_str()?;
    text.parse()
        .ok()
        .or_else(|| conformant_base::instant::instant(text))
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
            (Comparison::Text, json!("3"), json!(3.0), json!(3.5)),
            (Comparison::Text, json!("03"), json!("03"), json!(3)),
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
            assert!(agrees(compare, &sent, &right), "{compare:?}");
            assert!(!agrees(compare, &sent, &wrong), "{compare:?}");
        }
    }

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
