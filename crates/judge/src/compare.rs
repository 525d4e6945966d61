//! Equality of two values of evidence: as texts, JSON texts, instants or sets.

use conformant_base::clock::Timestamp;
use conformant_base::json;
use conformant_rulebook::rules::Comparison;
use serde_json::Value;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization as _;

/// Characters of a name that come back as sent. The documents state no length for most texts.
const NAME_CHARS_KEPT: usize = 64;

/// Whether a returned value is the sent one.
pub(super) fn agrees(compare: Comparison, sent: &Value, got: &Value) -> bool {
    match compare {
        Comparison::Text => spelled(sent) == spelled(got) || is_number(&spelled(sent), got),
        Comparison::Name => {
            let (sent, shown) = (spelled(sent), spelled(got));
            sent.chars().count() > NAME_CHARS_KEPT
                || normalized(&sent) == normalized(&shown)
                || is_number(&sent, got)
        }
        Comparison::Phone => {
            let (sent, got) = (spelled(sent), spelled(got));
            sent == got || digits(&sent).is_some_and(|sent| digits(&got) == Some(sent))
        }
        // Texts that are not JSON may be rejected or replaced; only JSON must be returned as it is.
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
        // Beyond its bound, only the unchanged value is wrong; `parameter` judges that.
        Comparison::Limit => true,
    }
}

/// A name without outer white space, composed (NFC).
fn normalized(name: &str) -> String {
    name.trim().nfc().collect()
}

/// The digits of a phone number; `None` for other texts.
fn digits(phone: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || " +-.()".contains(c);
    let digits = || phone.chars().filter(char::is_ascii_digit).collect();
    (phone.starts_with('+') && phone.chars().all(is_part)).then(digits)
}

/// Whether a text is that number in any spelling. JSON may contain 2.0 for 2.
fn is_number(text: &str, got: &Value) -> bool {
    let number = || {
        text.parse()
            .is_ok_and(|n| json::equal(&Value::Number(n), got))
    };
    got.is_number() && number()
}

/// Whether two values are the same JSON value, or the same instant in two spellings.
pub(super) fn same(before: &Value, after: &Value) -> bool {
    json::equal(before, after)
        || matches!((instant(before), instant(after)), (Some(a), Some(b)) if a == b)
}

/// Whether a SID references no resource: null and the empty text are equivalent.
pub(super) fn references_no_resource(pointer: &str, value: &Value) -> bool {
    pointer.ends_with("sid") && (value.is_null() || value.as_str().is_some_and(str::is_empty))
}

/// Whether a value is unset, or references no resource, so that no other representation can contradict it.
pub(super) fn is_unspecified(pointer: &str, value: &Value) -> bool {
    value.is_null() || references_no_resource(pointer, value)
}

/// A value as form encoding spells it: texts unchanged, null as the empty text, other values as JSON.
pub(super) fn as_text(value: &Value) -> String {
    spelled(value).into_owned()
}

/// As `as_text`, borrowed if it is a text.
pub(super) fn spelled(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        Value::Number(number) => Cow::Owned(json::digits(number)),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Cow::Owned(value.to_string()),
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
    fn each_comparison_accepts_and_rejects() {
        for (compare, sent, right, wrong) in [
            (Comparison::Text, json!("3"), json!(3), json!(4)),
            (Comparison::Text, json!("3"), json!(3.0), json!(3.5)),
            (Comparison::Text, json!("03"), json!("03"), json!(3)),
            (
                Comparison::Name,
                json!(" e\u{301}a "),
                json!("\u{e9}a"),
                json!("ea"),
            ),
            (
                Comparison::Name,
                json!("ab".repeat(32)),
                json!("ab".repeat(32)),
                json!("ab".repeat(31)),
            ),
            (
                Comparison::Phone,
                json!("+12025550123"),
                json!("+1 (202) 555-0123"),
                json!("+12025550124"),
            ),
            (Comparison::Phone, json!("MG1"), json!("MG1"), json!("MG2")),
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
    fn one_instant_in_two_spellings_is_equal() {
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
