//! Witnesses of a change: values that only one version accepts.
//!
//! Candidates are derived from both schemas and validated by both. Without a candidate that exactly one of them accepts,
//! there is no witness.

use super::canonical::{CONDITIONAL, accepted_texts, as_integer, named_types, number as integer};
use conformant_base::json;
use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Maximum length of a printed value, in bytes.
pub(super) const SHOWN_BYTES_MAX: usize = 400;
/// Maximum depth of a generated value.
const DEPTH_MAX: usize = 8;

/// A value that only one of two versions accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The value at the place of the change, as JSON; for a required field, the object without it.
    pub value: String,
    /// Whether the older version accepts it.
    pub was_right: bool,
    /// Whether the newer version accepts it.
    pub is_right: bool,
    /// The whole value.
    #[serde(skip)]
    pub whole: Value,
}

impl Witness {
    /// A value that only the older version accepts, and one that only the newer accepts.
    pub(super) fn of(value: &Value, was_right: bool) -> Self {
        Self {
            value: json::excerpt(value, SHOWN_BYTES_MAX),
            was_right,
            is_right: !was_right,
            whole: value.clone(),
        }
    }

    /// One line for people.
    pub fn words(&self) -> String {
        if self.was_right {
            format!("{} was valid and is now invalid", self.value)
        } else {
            format!("{} was invalid and is now valid", self.value)
        }
    }
}

/// Validators of both versions of one place.
pub(super) struct Probe {
    before: Validator,
    after: Validator,
    pool: Vec<Value>,
}

impl Probe {
    /// None if a schema cannot be compiled on its own. A schema has the root of its references.
    pub(super) fn new(before: (&Value, &Value), after: (&Value, &Value)) -> Option<Self> {
        Some(Self {
            before: compiled(before)?,
            after: compiled(after)?,
            pool: Vec::new(),
        })
    }

    /// Generates candidates.
    pub(super) fn propose(&mut self, values: impl IntoIterator<Item = Value>) {
        self.pool.extend(values);
    }

    /// Whether the older and the newer version accept a value.
    pub(super) fn takes(&self, value: &Value) -> (bool, bool) {
        (self.before.is_valid(value), self.after.is_valid(value))
    }

    /// The first candidates that only the older and only the newer version accept.
    pub(super) fn found(&self) -> (Option<Witness>, Option<Witness>) {
        let one = |was_right: bool| {
            let fits = |value: &&Value| {
                self.before.is_valid(value) == was_right && self.after.is_valid(value) != was_right
            };
            self.pool
                .iter()
                .find(fits)
                .map(|value| Witness::of(value, was_right))
        };
        (one(true), one(false))
    }

    /// The same, preferably candidates that also break these parts of the schemas: a lost value that of the newer version,
    /// a gained value that of the older one. Another change at the place may be why a version rejects the others.
    pub(super) fn found_by(
        &self,
        before: (&Value, &Value),
        after: (&Value, &Value),
    ) -> (Option<Witness>, Option<Witness>) {
        let broken = |part, was_right: bool| {
            let part = compiled(part)?;
            let breaks = |value: &&Value| {
                self.takes(value) == (was_right, !was_right) && !part.is_valid(value)
            };
            let value = self.pool.iter().find(breaks)?;
            Some(Witness::of(value, was_right))
        };
        let (lost, gained) = self.found();
        let lost = lost.map(|any| broken(after, true).unwrap_or(any));
        let gained = gained.map(|any| broken(before, false).unwrap_or(any));
        (lost, gained)
    }
}

/// A schema with its root, as one schema.
fn compiled((schema, root): (&Value, &Value)) -> Option<Validator> {
    let mut own = match schema {
        Value::Bool(allows) => return conformant_schema::compile(&json!(allows)).ok(),
        Value::Object(members) => members.clone(),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return None,
    };
    if let Some(definitions) = root.get("$defs") {
        own.insert("$defs".to_owned(), definitions.clone());
    }
    conformant_schema::compile(&Value::Object(own)).ok()
}

/// Values near the limits of a place.
pub(super) fn near(keywords: &Map<String, Value>, root: &Value) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    values.extend(
        keywords
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned(),
    );
    values.extend(keywords.get("const").cloned());
    for key in [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ] {
        let exact = keywords.get(key).and_then(as_integer).into_iter();
        values.extend(
            exact
                .flat_map(|n| [n, n.saturating_add(1), n.saturating_sub(1)])
                .filter_map(integer),
        );
        let Some(bound) = keywords.get(key).and_then(Value::as_f64) else {
            continue;
        };
        values.extend(
            [
                bound,
                bound + 1.0,
                bound - 1.0,
                bound + 0.5,
                bound - 0.5,
                bound * 2.0,
            ]
            .map(number),
        );
    }
    values.extend([0.0, 1.0, -1.0, 7.0, 0.5, 1e9, -1e9].map(number));
    values.extend(
        accepted_texts(keywords)
            .and_then(|texts| texts.one())
            .map(Value::from),
    );
    for key in ["minLength", "maxLength"] {
        let length = keywords
            .get(key)
            .and_then(Value::as_u64)
            .unwrap_or_default();
        let around = [length.saturating_sub(1), length, length + 1];
        let lengths = around.into_iter().filter_map(|n| usize::try_from(n).ok());
        values.extend(
            lengths
                .filter(|n| *n < 1 << 16)
                .map(|n| json!("a".repeat(n))),
        );
    }
    values.extend([
        json!(""),
        json!("a"),
        json!("2026-01-01T00:00:00Z"),
        Value::Null,
        json!(true),
        json!(false),
        json!({}),
    ]);
    values.extend(lists_near(keywords, root));
    let whole = made_up(&Value::Object(keywords.clone()), root, 0);
    values.extend(objects_near(keywords, &whole));
    values.push(whole);
    values
}

/// Values that meet or break a condition: those near its schemas, and objects of the place with members of these.
pub(super) fn near_conditions(keywords: &Map<String, Value>, root: &Value) -> Vec<Value> {
    let place = made_up(&Value::Object(keywords.clone()), root, 0);
    let mut values = Vec::new();
    for key in CONDITIONAL.into_iter().chain(["not"]) {
        let Some(condition @ Value::Object(members)) = keywords.get(key) else {
            continue;
        };
        values.extend(near(members, root));
        let made = made_up(condition, root, 0);
        if let (Value::Object(base), Value::Object(more)) = (&place, made) {
            let mut object = base.clone();
            object.extend(more);
            values.push(Value::Object(object));
        }
    }
    values
}

/// Lists with lengths near the limits.
fn lists_near(keywords: &Map<String, Value>, root: &Value) -> Vec<Value> {
    let mut values = Vec::new();
    let item = keywords
        .get("items")
        .map_or(json!("a"), |items| made_up(items, root, 0));
    let counts = ["minItems", "maxItems"].map(|key| {
        keywords
            .get(key)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    });
    for count in counts
        .into_iter()
        .flat_map(|n| [n.saturating_sub(1), n, n + 1])
        .chain([1, 2])
    {
        if let Some(count) = usize::try_from(count).ok().filter(|count| *count < 1 << 12) {
            values.push(Value::Array(vec![item.clone(); count]));
            // The same length with distinct items, if possible.
            let different = (0..count).map(|n| match &item {
                Value::String(text) => json!(format!("{text}{n}")),
                Value::Number(_) => json!(n),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => item.clone(),
            });
            values.push(different.collect());
        }
    }
    values
}

/// Objects with member counts near the limits, and objects with one member more or less than the given one.
fn objects_near(keywords: &Map<String, Value>, whole: &Value) -> Vec<Value> {
    let mut values = Vec::new();
    for count in ["minProperties", "maxProperties"]
        .into_iter()
        .filter_map(|key| keywords.get(key)?.as_u64())
    {
        for count in [count.saturating_sub(1), count, count + 1] {
            let mut object = whole.as_object().cloned().unwrap_or_default();
            let mut turn = 0;
            while (object.len() as u64) < count.min(1 << 10) {
                object.insert(format!("field_{turn}"), json!("a"));
                turn += 1;
            }
            values.push(Value::Object(object));
        }
    }
    if let Some(members) = whole.as_object() {
        for name in members.keys() {
            let mut without = members.clone();
            without.remove(name);
            values.push(Value::Object(without));
        }
        let mut with_more = members.clone();
        with_more.insert("unlisted_field".to_owned(), json!("a"));
        values.push(Value::Object(with_more));
    }
    values
}

fn number(n: f64) -> Value {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an integer of this size fits"
        )]
        let whole = n as i64;
        return json!(whole);
    }
    json!(n)
}

/// A value that a schema probably accepts: required members only.
pub(super) fn made_up(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(members) = schema.as_object() else {
        return json!("a");
    };
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    let reference = members
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| r.strip_prefix('#'));
    if let Some(target) = reference.and_then(|pointer| root.pointer(pointer)) {
        return made_up(target, root, depth + 1);
    }
    if let Some(value) = members.get("const") {
        return value.clone();
    }
    if let Some(value) = members.get("enum").and_then(|values| values.get(0)) {
        return value.clone();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(branch) = members.get(key).and_then(|branches| branches.get(0)) {
            return made_up(branch, root, depth + 1);
        }
    }
    let bound = |key: &str| members.get(key).and_then(Value::as_f64);
    let has = |key: &str| members.contains_key(key);
    let types = named_types(members);
    let is_object = has("properties") || has("required");
    let kind = if members.contains_key("type") {
        types
            .iter()
            .copied()
            .find(|name| *name != "null")
            .unwrap_or("null")
    } else if is_object {
        "object"
    } else {
        "string"
    };
    match kind {
        "null" => Value::Null,
        "boolean" => json!(true),
        "integer" | "number" => {
            let low = bound("minimum").or(bound("exclusiveMinimum").map(|n| n + 1.0));
            let high = bound("maximum").or(bound("exclusiveMaximum").map(|n| n - 1.0));
            number(low.or(high).unwrap_or(1.0))
        }
        "array" => {
            let count = members
                .get("minItems")
                .and_then(Value::as_u64)
                .unwrap_or_default();
            let item = members
                .get("items")
                .map_or(Value::Null, |items| made_up(items, root, depth + 1));
            let count = usize::try_from(count.min(1 << 10)).unwrap_or_default();
            Value::Array(vec![item; count])
        }
        "object" => {
            let properties = members.get("properties");
            let required = members.get("required").and_then(Value::as_array);
            let names = required.into_iter().flatten().filter_map(Value::as_str);
            let fields = names.map(|name| {
                let schema = properties.and_then(|properties| properties.get(name));
                let value = schema.map_or(json!("a"), |schema| made_up(schema, root, depth + 1));
                (name.to_owned(), value)
            });
            Value::Object(fields.collect())
        }
        _ => {
            if members
                .get("format")
                .is_some_and(|format| format == "date-time")
            {
                return json!("2026-01-01T00:00:00Z");
            }
            let texts = accepted_texts(members).unwrap_or_default();
            json!(texts.one().unwrap_or_else(|| "a".to_owned()))
        }
    }
}

/// A document with a value at a place, such as `/lines/*/sku`. Whether a version accepts it has to be checked.
pub(super) fn embedded(schema: &Value, root: &Value, place: &[String], value: &Value) -> Value {
    let [first, rest @ ..] = place else {
        return value.clone();
    };
    let found = below(schema, root, first, 0);
    let inner = embedded(
        found.map_or(&Value::Null, |(below, _)| below),
        root,
        rest,
        value,
    );
    if found.is_some_and(|(_, is_item)| is_item) {
        return json!([inner]);
    }
    let mut members = match made_up(schema, root, 0) {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    let name = if first == "*" { "a" } else { first };
    members.insert(name.to_owned(), inner);
    Value::Object(members)
}

/// The schema of a member or of the items, and whether it is that of the items.
fn below<'a>(
    schema: &'a Value,
    root: &'a Value,
    segment: &str,
    depth: usize,
) -> Option<(&'a Value, bool)> {
    if depth > DEPTH_MAX {
        return None;
    }
    let member = || schema.get("properties")?.get(segment);
    let others = || schema.get("additionalProperties").filter(|s| s.is_object());
    let own = match segment {
        "*" => {
            let items = schema.get("items").map(|items| (items, true));
            items.or_else(|| others().map(|others| (others, false)))
        }
        _ => member().map(|member| (member, false)),
    };
    let pointer = schema.get("$ref").and_then(Value::as_str);
    let target = pointer.and_then(|pointer| root.pointer(pointer.strip_prefix('#')?));
    let branches = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .flatten();
    own.or_else(|| {
        let mut inner = target.into_iter().chain(branches);
        inner.find_map(|inner| below(inner, root, segment, depth + 1))
    })
}

/// The document with another value at a place; none if it has no such place.
pub(super) fn replaced(document: &Value, place: &[String], value: &Value) -> Option<Value> {
    let [first, rest @ ..] = place else {
        return Some(value.clone());
    };
    let mut whole = document.clone();
    let slot = match &mut whole {
        Value::Array(items) => items.first_mut(),
        Value::Object(members) if first == "*" => members.values_mut().next(),
        Value::Object(members) if rest.is_empty() => {
            members.insert(first.clone(), value.clone());
            return Some(whole);
        }
        Value::Object(members) => members.get_mut(first),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }?;
    *slot = replaced(slot, rest, value)?;
    Some(whole)
}
