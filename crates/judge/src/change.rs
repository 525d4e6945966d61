//! Single changes of a value, response or callback. Mutations in self-tests, examples and mutation testing use the same set.
//! Changes are independent of rules and evidence.

use super::compare::instant;
use super::sites::Site;
use conformant_base::clock::{self, Timestamp};
use conformant_base::json;
use conformant_rulebook::types;
use serde_json::{Value, json};

/// The difference that moves a number beyond any bound of a rule.
const FAR: i64 = 1_000_000;
/// The difference that moves an instant likewise.
const FAR_MS: i64 = 12 * 3600 * 1000;

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The value is missing; an item of a list is dropped.
    Gone,
    /// Another value.
    To(Value),
    /// A value of a type that the schema does not admit.
    OtherType(Other),
    /// A close value: last character changed, one more, the opposite.
    Near,
    /// A far greater number or later instant.
    Up,
    /// A far smaller number or earlier instant.
    Down,
    /// A value outside an enumeration.
    Foreign,
    /// The text without its last character: a SID of 31 digits.
    Cut,
    /// A SID with another prefix.
    Prefix,
    /// A text that violates its format.
    Format,
    /// A number above any bound.
    TooLarge,
    /// A number below any bound.
    TooSmall,
    /// An additional, unlisted field.
    ExtraField,
    /// The value at another site.
    As(Site),
    /// A list with each item twice.
    Twice,
    /// A list with its first and last item swapped.
    Swapped,
    /// The previous accepted response of the same operation.
    PreviousAnswer,
    /// Rejected instead of accepted.
    Refused,
    /// Accepted instead of rejected, with a response of the same operation, else with this document, else without a body.
    Accepted(Option<Value>),
    /// Without the last callback.
    Lost,
    /// With the last callback twice.
    Doubled,
    /// Another text as the body.
    Text(&'static str),
    /// Another media type.
    Typed(&'static str),
    /// The text begins with a byte order mark.
    Marked,
    /// The target's clock so many seconds later.
    Later(i64),
}

/// A JSON type that violates a property's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the types are JSON's")]
pub enum Other {
    Number,
    Text,
    Flag,
    List,
    Object,
}

impl Other {
    /// All types; those that truthy comparisons accept come first.
    pub const ALL: [Self; 5] = [
        Self::Number,
        Self::Text,
        Self::Flag,
        Self::List,
        Self::Object,
    ];

    /// Whether a schema of these types accepts it.
    pub(super) const fn is_among(self, types: u8) -> bool {
        let own = match self {
            Self::Number => types::INTEGER | types::FRACTION,
            Self::Text => types::STRING,
            Self::Flag => types::BOOLEAN,
            Self::List => types::ARRAY,
            Self::Object => types::OBJECT,
        };
        types & own != 0
    }

    /// Whether it is the type of the value.
    pub const fn is_of(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Self::Number, Value::Number(_))
                | (Self::Text, Value::String(_))
                | (Self::Flag, Value::Bool(_))
                | (Self::List, Value::Array(_))
                | (Self::Object, Value::Object(_))
        )
    }

    /// A value of that type, as close as possible to the previous value: the number as text, the text as a number.
    fn value(self, was: &Value) -> Value {
        match (self, was) {
            (Self::Number, _) => json!(7),
            (Self::Text, Value::Number(number)) => json!(number.to_string()),
            (Self::Text, Value::Bool(flag)) => json!(flag.to_string()),
            (Self::Text, _) => json!("7"),
            (Self::Flag, _) => json!(true),
            (Self::List, _) => json!([]),
            (Self::Object, _) => json!({}),
        }
    }
}

impl Change {
    /// The name in the kill matrix and in reports.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Gone => "missing",
            Self::To(Value::Null) => "null",
            Self::To(_) => "other-value",
            Self::OtherType(_) => "other-type",
            Self::Near => "near",
            Self::Up => "far-above",
            Self::Down => "far-below",
            Self::Foreign => "foreign",
            Self::Cut => "cut",
            Self::Prefix => "prefix",
            Self::Format => "format",
            Self::TooLarge => "too-large",
            Self::TooSmall => "too-small",
            Self::ExtraField => "extra-field",
            Self::As(_) => "another's-value",
            Self::Twice => "doubled",
            Self::Swapped => "swapped",
            Self::PreviousAnswer => "older-answer",
            Self::Refused => "refused",
            Self::Accepted(_) => "accepted",
            Self::Lost => "callback-lost",
            Self::Doubled => "callback-doubled",
            Self::Text(_) => "other-text",
            Self::Typed(_) => "other-type-of-file",
            Self::Marked => "byte-order-mark",
            Self::Later(_) => "later",
        }
    }

    /// Applies the change at each place that `pointer` (with `*`) selects. Returns false if nothing could be changed.
    pub fn everywhere(&self, document: &mut Value, pointer: &str) -> bool {
        if *self == Self::Gone {
            let places: Vec<String> = json::expand(document, pointer)
                .into_iter()
                .map(|(at, _)| at)
                .collect();
            // From the end, so that the indexes of earlier items stay valid.
            let removed = places.iter().rev().filter(|place| remove(document, place));
            return removed.count() > 0;
        }
        let changed: Vec<(String, Value)> = json::expand(document, pointer)
            .into_iter()
            .filter_map(|(at, value)| Some((at, self.of_value(value)?)))
            .collect();
        for (at, value) in &changed {
            if let Some(slot) = document.pointer_mut(at) {
                slot.clone_from(value);
            }
        }
        !changed.is_empty()
    }

    /// The changed value; `None` if the change does not apply to the value.
    pub(super) fn of_value(&self, value: &Value) -> Option<Value> {
        let unless_null = |changed: Value| (!value.is_null()).then_some(changed);
        let changed = match self {
            Self::To(other) => Some(other.clone()),
            Self::OtherType(other) => Some(other.value(value)),
            Self::Near => moved(value, 1),
            Self::Up => moved(value, FAR),
            Self::Down => moved(value, -FAR),
            Self::Foreign => unless_null(json!("conformant-foreign")),
            Self::Cut => {
                let mut text = value.as_str()?.to_owned();
                text.pop();
                Some(json!(text))
            }
            Self::Prefix => {
                let text = value.as_str()?;
                Some(json!(format!("ZZ{}", text.get(2..).unwrap_or_default())))
            }
            Self::Format => unless_null(json!("not in its format")),
            Self::TooLarge => unless_null(json!(1_000_000_007)),
            Self::TooSmall => unless_null(json!(-7)),
            Self::ExtraField => {
                let mut members = value.as_object()?.clone();
                members.insert("conformant_extra".to_owned(), json!(1));
                Some(Value::Object(members))
            }
            Self::Twice => {
                let items = value.as_array().filter(|items| !items.is_empty())?;
                Some(items.iter().chain(items).cloned().collect())
            }
            Self::Swapped => {
                let mut items = value.as_array().filter(|items| items.len() > 1)?.clone();
                let last = items.len() - 1;
                items.swap(0, last);
                Some(Value::Array(items))
            }
            Self::Gone
            | Self::As(_)
            | Self::PreviousAnswer
            | Self::Refused
            | Self::Accepted(_)
            | Self::Lost
            | Self::Doubled
            | Self::Text(_)
            | Self::Typed(_)
            | Self::Marked
            | Self::Later(_) => None,
        };
        changed.filter(|changed| changed != value)
    }
}

/// The value with a difference added; `None` if it is neither a number nor an instant.
fn moved(value: &Value, way: i64) -> Option<Value> {
    match value {
        Value::Number(number) => Some(match number.as_i64() {
            Some(number) => json!(number.saturating_add(way)),
            None => json!(way),
        }),
        Value::Bool(flag) => Some(json!(!flag)),
        Value::String(text) => match instant(value) {
            Some(at) if way != 1 => Some(json!(later(at, way.signum() * FAR_MS).to_string())),
            Some(at) => Some(json!(later(at, 1000).to_string())),
            None if way == 1 => {
                let mut text = text.clone();
                let last = text.pop();
                text.push(if last == Some('0') { '1' } else { '0' });
                Some(json!(text))
            }
            None => None,
        },
        Value::Null if way == 1 => Some(json!("0")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The instant, so many milliseconds later.
pub(super) fn later(at: Timestamp, ms: i64) -> Timestamp {
    clock::from_unix_ms(at.as_millisecond().saturating_add(ms))
}

/// Removes the member or item at a place.
pub(super) fn remove(document: &mut Value, place: &str) -> bool {
    let Some((above, name)) = place.rsplit_once('/') else {
        return false;
    };
    match document.pointer_mut(above) {
        Some(Value::Object(members)) => members.shift_remove(&*json::unescape(name)).is_some(),
        Some(Value::Array(items)) => match name.parse() {
            Ok(index) if items.len() > index => {
                items.remove(index);
                true
            }
            Ok(_) | Err(_) => false,
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_changes_to_one_that_differs() {
        for (value, change, wanted) in [
            (json!(1), Change::Near, json!(2)),
            (json!(1), Change::Down, json!(1 - FAR)),
            (json!(true), Change::Near, json!(false)),
            (json!("a0"), Change::Near, json!("a1")),
            (json!([1]), Change::Twice, json!([1, 1])),
            (json!([1, 2, 3]), Change::Swapped, json!([3, 2, 1])),
            (
                json!({"a": 1}),
                Change::ExtraField,
                json!({"a": 1, "conformant_extra": 1}),
            ),
            (
                json!("2026-01-01T00:00:00Z"),
                Change::Up,
                json!("2026-01-01T12:00:00Z"),
            ),
        ] {
            assert_eq!(change.of_value(&value), Some(wanted), "{value}");
        }
        assert_eq!(Change::Near.of_value(&json!({})), None);
        assert_eq!(Change::Twice.of_value(&json!([])), None);
        assert_eq!(Change::Swapped.of_value(&json!([1, 1])), None);
        assert_eq!(Change::To(json!(1)).of_value(&json!(1)), None);
    }

    #[test]
    fn a_change_applies_only_at_its_place() {
        let document = json!({"sid": "FW0", "n": 5, "list": [{"x": "a"}, {"x": "b"}]});
        for (change, pointer, at, after) in [
            (Change::To(Value::Null), "/sid", "/sid", json!(null)),
            (Change::Cut, "/sid", "/sid", json!("FW")),
            (Change::OtherType(Other::Text), "/n", "/n", json!("5")),
            (Change::Gone, "/list/*", "/list", json!([])),
            (
                Change::Foreign,
                "/list/1/x",
                "/list/1/x",
                json!("conformant-foreign"),
            ),
        ] {
            let (mut copy, mut changed) = (document.clone(), document.clone());
            assert!(change.everywhere(&mut copy, pointer), "{pointer}");
            assert!(json::set(&mut changed, at, after));
            assert_eq!(copy, changed);
        }
        let mut copy = document.clone();
        assert!(
            Change::Gone.everywhere(&mut copy, "/n")
                && Change::Foreign.everywhere(&mut copy, "/list/*/x")
        );
        let foreign = json!({"x": "conformant-foreign"});
        assert_eq!(copy, json!({"sid": "FW0", "list": [foreign, foreign]}));
        let nowhere = Change::To(Value::Null).everywhere(&mut document.clone(), "/nowhere");
        assert!(!nowhere);
    }
}
