//! Reads the keywords of one schema: bounds, branches, types, values, fields. Nothing here refers to a comparison.

use super::canonical::{TYPES, WORDS, as_integer, named_types};
use super::coordinates::Action;
use conformant_base::json::equal;
use conformant_rulebook::{OTHER_FIELDS_KEY, RULE_KEY};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Lists of alternatives: another branch widens, unless it overlaps another one of a `oneOf`.
pub(super) const ANY: [&str; 2] = ["anyOf", "oneOf"];

/// One end of the accepted numbers.
pub(super) struct End<'a> {
    pub(super) key: &'static str,
    pub(super) value: &'a Value,
    is_open: bool,
}

impl<'a> End<'a> {
    pub(super) fn of(
        keywords: &'a Map<String, Value>,
        open: &'static str,
        shut: &'static str,
    ) -> Option<Self> {
        let end = |key: &'static str, is_open| {
            let value = keywords.get(key)?;
            Some(Self {
                key,
                value,
                is_open,
            })
        };
        end(open, true).or_else(|| end(shut, false))
    }

    /// Less if the other end accepts more numbers.
    pub(super) fn reach(&self, other: &Self, is_upper: bool) -> Ordering {
        let exactly = as_integer(self.value).zip(as_integer(other.value));
        let by_number = exactly.map(|(a, b)| a.cmp(&b)).or_else(|| {
            let (a, b) = (self.value.as_f64()?, other.value.as_f64()?);
            a.partial_cmp(&b)
        });
        let Some(by_number) = by_number else {
            return Ordering::Equal;
        };
        let by_number = if is_upper {
            by_number
        } else {
            by_number.reverse()
        };
        // An exclusive end accepts one number less.
        by_number.then((!self.is_open).cmp(&!other.is_open))
    }
}

/// The branches of a list, without their texts.
pub(super) fn branches(keywords: &Map<String, Value>, key: &str) -> Option<Vec<Value>> {
    let list = keywords.get(key)?.as_array()?;
    Some(list.iter().map(bare).collect())
}

/// How a list of branches changed; `None` if it has the same branches.
pub(super) fn by_branches(key: &str, old: &[Value], new: &[Value]) -> Option<Action> {
    let within = |a: &[Value], b: &[Value]| a.iter().all(|v| b.iter().any(|w| equal(v, w)));
    let is_wider_with_more = ANY.contains(&key);
    match (within(old, new), within(new, old)) {
        (true, true) => None,
        (false, false) => Some(Action::Changed),
        (is_more, _) if is_more == is_wider_with_more => Some(Action::Widened),
        _ => Some(Action::Narrowed),
    }
}

/// Whether a number is a multiple of another one, by their decimal digits.
pub(super) fn is_multiple(of: &Value, unit: &Value) -> bool {
    let exact = || {
        let ((a, a_places), (b, b_places)) = (decimal(of)?, decimal(unit)?);
        let places = a_places.max(b_places);
        let scaled = |n: i128, from: u32| n.checked_mul(10_i128.checked_pow(places - from)?);
        scaled(a, a_places)?.checked_rem(scaled(b, b_places)?)
    };
    let by_float = || Some(of.as_f64()? % unit.as_f64()? == 0.0);
    let exact = exact().map(|rest| rest == 0);
    exact.or_else(by_float).unwrap_or_default()
}

/// The digits of a number as an integer, and how many of them are decimal places.
fn decimal(value: &Value) -> Option<(i128, u32)> {
    let text = value.as_number()?.to_string();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()? - exponent.parse::<i32>().ok()?;
    match u32::try_from(places) {
        Ok(places) => Some((number, places)),
        Err(_) => {
            let zeros = 10_i128.checked_pow(places.unsigned_abs())?;
            Some((number.checked_mul(zeros)?, 0))
        }
    }
}

/// Direction in which a bound has moved.
pub(super) fn ordered(old: Option<&Value>, new: Option<&Value>, is_upper: bool) -> Action {
    let number = |v: Option<&Value>| v.and_then(Value::as_f64);
    match (number(old), number(new)) {
        (None, _) => Action::Narrowed,
        (_, None) => Action::Widened,
        (Some(a), Some(b)) if (a < b) == is_upper => Action::Widened,
        (Some(_), Some(_)) => Action::Narrowed,
    }
}

pub(super) fn is_closed(keywords: &Map<String, Value>) -> bool {
    keywords.get("additionalProperties") == Some(&Value::Bool(false))
}

/// Unlisted fields that an object accepts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Openness {
    Closed,
    Shaped,
    Open,
}

pub(super) fn openness(keywords: &Map<String, Value>) -> Openness {
    match keywords.get("additionalProperties") {
        Some(Value::Bool(false)) => Openness::Closed,
        Some(Value::Object(members)) if !members.is_empty() => Openness::Shaped,
        Some(
            Value::Object(_)
            | Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_),
        )
        | None => Openness::Open,
    }
}

/// A schema without keywords that do not restrict values: rule ids differ between versions of an event.
pub(super) fn bare(schema: &Value) -> Value {
    const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter().map(bare).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return schema.clone();
        }
    };
    let says = |key: &str| !WORDS.contains(&key) && key != RULE_KEY && key != OTHER_FIELDS_KEY;
    let mut out = Map::new();
    for (key, value) in members.iter().filter(|(key, _)| says(key)) {
        // Here the keys are names of fields, not keywords.
        let named = value.as_object().filter(|_| NAMED.contains(&key.as_str()));
        let value = match named {
            Some(named) => {
                let fields = named
                    .iter()
                    .map(|(name, schema)| (name.clone(), bare(schema)));
                Value::Object(fields.collect())
            }
            None => bare(value),
        };
        out.insert(key.clone(), value);
    }
    Value::Object(out)
}

/// A value in an id.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn required(keywords: &Map<String, Value>) -> BTreeSet<String> {
    let names = keywords.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Allowed types; `number` includes `integer`.
pub(super) fn types(keywords: &Map<String, Value>) -> BTreeSet<&'static str> {
    let named = named_types(keywords);
    let is_named =
        |name: &&str| named.contains(name) || *name == "integer" && named.contains(&"number");
    TYPES.into_iter().filter(is_named).collect()
}

/// Enumerated values; a constant is a list of one.
pub(super) fn enumerated(keywords: &Map<String, Value>) -> Option<Vec<Value>> {
    match (keywords.get("enum"), keywords.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        (_, None) => None,
    }
}
