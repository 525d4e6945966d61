//! What a write sent, and how a shown value differs from it.

use crate::predicates::parameter_echo::differs;
use crate::predicates::prelude::*;
use conformant_rulebook::Operation;
use conformant_rulebook::rules::Comparison;
use serde_json::Map;

/// An accepted write of the operation.
pub(super) struct AcceptedWrite<'c> {
    pub(super) write: &'c Write<'c>,
    /// Its exchange.
    pub(super) index: usize,
    pub(super) operation: &'c Operation,
}

/// One sent value, and where later observations show it.
pub(super) struct ExpectedValue<'c> {
    /// The only resource type whose representations show it; `None` for each that has the pointer.
    pub(super) only_type: Option<&'c str>,
    pub(super) at: &'c str,
    pub(super) sent: &'c Value,
    /// The maximum length of the name of a member. Longer names may be shortened, so that they are not compared.
    pub(super) name_length_max: Option<u64>,
    /// The condition under which it stays once it was shown; `None` if the pointer may be missing later.
    pub(super) stays_while: Option<&'c BTreeMap<String, Value>>,
    /// Whether another resource shows its value.
    pub(super) is_shown_by_another: bool,
    pub(super) comparison: ValueComparison<'c>,
}

/// How a shown value is compared with the sent one.
#[derive(Clone, Copy)]
pub(super) enum ValueComparison<'c> {
    /// The values are equal by this comparison, or the shown value is one of the alternatives.
    Equal(Comparison, &'c [Value]),
    /// The shown object has every sent member, and possibly others.
    Contains { by_value: bool },
}

impl ExpectedValue<'_> {
    /// The same expectation for another sent value.
    pub(super) fn with_sent<'v>(&'v self, sent: &'v Value) -> ExpectedValue<'v> {
        ExpectedValue { sent, ..*self }
    }

    pub(super) fn not_kept(&self, representation: &Representation<'_>, why: &str) -> Fact {
        let got = representation.value(self.at);
        Fact {
            kind: "not-kept",
            expected: json::short(self.sent),
            actual: got.map_or_else(|| "nothing".to_owned(), json::short),
            message: why.to_owned(),
        }
    }

    /// Whether an object with members was sent.
    pub(super) fn has_members(&self) -> bool {
        let parsed = self.sent.as_str().and_then(json::parse_text);
        let sent = parsed.as_ref().unwrap_or(self.sent).as_object();
        sent.is_some_and(|members| !members.is_empty())
    }

    /// Where and how the shown value differs from the sent one; `None` if it does not. The place is relative to the value.
    pub(super) fn difference(&self, got: &Value, is_xml: bool) -> Option<(String, Fact)> {
        let fact = match self.comparison {
            ValueComparison::Equal(compare, or) if is_xml => {
                let (sent, got) = (normalized_spaces(self.sent), normalized_spaces(got));
                differs(&Value::String(sent), &Value::String(got), compare, or)
            }
            ValueComparison::Equal(compare, or) => differs(self.sent, got, compare, or),
            ValueComparison::Contains { by_value } => {
                return self.missing_member(got, is_xml, by_value);
            }
        };
        fact.map(|fact| (String::new(), fact))
    }

    /// The first sent member that the shown object lacks or has with another value. `None` for an empty object, because a
    /// service may show the members later.
    fn missing_member(&self, got: &Value, is_xml: bool, by_value: bool) -> Option<(String, Fact)> {
        let parsed = self.sent.as_str().and_then(json::parse_text);
        let sent = parsed.as_ref().unwrap_or(self.sent).as_object()?;
        let got = got.as_object().filter(|members| !members.is_empty())?;
        // Names of elements have no spaces; the documents do not define how other keys are changed.
        let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_short = |name: &str| {
            self.name_length_max
                .is_none_or(|max| name.chars().count() as u64 <= max)
        };
        let mut members = sent
            .iter()
            .filter(|(name, _)| is_short(name) && (!is_xml || is_name(name)));
        let (name, value, there) = members.find_map(|(name, value)| {
            let there = got.get(name);
            let is_there = there.is_some_and(|there| match value {
                _ if by_value && is_same_value(value, there) => true,
                Value::String(_) if is_xml => normalized_spaces(value) == normalized_spaces(there),
                // A sent text stays a text even if it looks like a number; null is equivalent to an empty text.
                Value::String(text) => {
                    there.as_str() == Some(text) || text.is_empty() && there.is_null()
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => json::equal(value, there),
            });
            (!is_there).then_some((name, value, there))
        })?;
        let actual = there.map_or_else(|| "nothing".to_owned(), json::short);
        let expected = json::short(value);
        let mut place = String::new();
        json::push(&mut place, name);
        let member = json::short(&Value::from(name.as_str()));
        let fact = Fact {
            kind: "not-kept",
            message: match there {
                Some(_) => format!("sent {expected} as {member}, came back as {actual}"),
                None => format!("sent {expected} as {member}, missing in the answer"),
            },
            expected,
            actual,
        };
        Some((place, fact))
    }
}

/// Whether both values are equal, where a number equals its text.
fn is_same_value(sent: &Value, got: &Value) -> bool {
    match (sent, got) {
        (Value::Number(number), Value::String(text))
        | (Value::String(text), Value::Number(number)) => text
            .parse()
            .is_ok_and(|n| json::equal(&Value::Number(n), &Value::Number(number.clone()))),
        (Value::Array(sent), Value::Array(got)) => {
            sent.len() == got.len() && sent.iter().zip(got).all(|(s, g)| is_same_value(s, g))
        }
        (Value::Object(sent), Value::Object(got)) => {
            let is_there = |(name, value): (&String, &Value)| {
                got.get(name).is_some_and(|got| is_same_value(value, got))
            };
            sent.len() == got.len() && sent.iter().all(is_there)
        }
        _ => json::equal(sent, got),
    }
}

/// Whether the shown value is empty. XML has an empty text in place of an empty object.
pub(super) fn is_empty(got: &Value) -> bool {
    got.is_null() || got == "" || got.as_object().is_some_and(Map::is_empty)
}

/// The text of a value, with one space in place of each run of spaces and line breaks, which XML may change.
fn normalized_spaces(value: &Value) -> String {
    let text = as_text(value);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
