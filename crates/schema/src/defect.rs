//! A mismatch at one place of a value, and validator errors in plain words.
//!
//! Knows no rule; [`super::attribution`] finds the rule that a defect breaks.

use super::DEFECTS_MAX;
use conformant_base::json;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use std::fmt;

/// Items of a list validated at once if the whole list is invalid.
const PART_ITEMS: usize = 500;
/// Unlisted fields reported of one object.
pub(super) const EXTRA_FIELDS_MAX: usize = 50;
/// Characters of a value in a finding.
const SHOWN: usize = 160;

/// A mismatch at one place, not yet attributed to a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// JSON Pointer into the value.
    pub pointer: String,
    pub kind: &'static str,
    pub expected: String,
    pub actual: String,
    /// The rule, if it is known without the place.
    pub(super) rule: Option<String>,
}

impl Defect {
    pub(super) fn new(pointer: &str, kind: &'static str, expected: String, actual: &Value) -> Self {
        Self {
            pointer: pointer.to_owned(),
            kind,
            expected,
            actual: json::excerpt(actual, SHOWN),
            rule: None,
        }
    }

    /// Marks the missing field as present under another name.
    pub(super) fn misname(&mut self, pointer: String) {
        self.kind = "misnamed-field";
        self.actual = json::segments(&pointer)
            .last()
            .map(|name| format!("a field `{name}`"))
            .unwrap_or_default();
        self.pointer = pointer;
    }

    /// Moves a defect from a part of a list, which starts at `from`, to the whole list.
    fn shift(&mut self, list: &str, from: usize) {
        let below = self
            .pointer
            .strip_prefix(list)
            .and_then(|rest| rest.strip_prefix('/'));
        let Some(below) = below else { return };
        let (index, rest) = below.split_at(below.find('/').unwrap_or(below.len()));
        if let Ok(index) = index.parse::<usize>() {
            self.pointer = format!("{list}/{}{rest}", index + from);
        }
    }

    /// One sentence with the expected and the actual value.
    pub fn message(&self) -> String {
        let place = if self.pointer.is_empty() {
            "the document".to_owned()
        } else {
            self.pointer.clone()
        };
        match self.kind {
            "missing-field" => format!("{place} is missing"),
            "extra-field" => format!("{place} is not listed"),
            "misnamed-field" => format!("{place} found, expected {}", self.expected),
            _ => format!("{place} is {}, expected {}", self.actual, self.expected),
        }
    }

    /// Order of reporting if several defects are at one place.
    pub(super) fn rank(&self) -> usize {
        const ORDER: [&str; 11] = [
            "null",
            "type",
            "missing-field",
            "misnamed-field",
            "extra-field",
            "enum",
            "json-text",
            "format",
            "pattern",
            "bound",
            "unique",
        ];
        ORDER
            .iter()
            .position(|k| *k == self.kind)
            .unwrap_or(ORDER.len())
    }
}

/// The defects of an invalid document. The validator lists all of them at once: for a page of a hundred
/// thousand broken items that is a thousand times the page. A long list is therefore validated in parts
/// until one part fails.
pub(super) fn misfits_in_parts(validator: &Validator, value: &Value) -> Vec<Defect> {
    let listed = |value: &Value| -> Vec<Defect> {
        validator
            .iter_errors(value)
            .flat_map(|e| defects_of(&e))
            .take(DEFECTS_MAX)
            .collect()
    };
    let Some(members) = value.as_object() else {
        return listed(value);
    };
    let long = |member: &Value| {
        member
            .as_array()
            .is_some_and(|items| items.len() > PART_ITEMS)
    };
    if !members.values().any(long) {
        return listed(value);
    }
    let part = |name: &str, member: &Value, of: &str, from: usize| match member {
        Value::Array(items) => {
            let from = if name == of { from } else { 0 };
            Value::from(
                items
                    .iter()
                    .skip(from)
                    .take(PART_ITEMS)
                    .cloned()
                    .collect::<Vec<_>>(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            member.clone()
        }
    };
    for (of, items) in members
        .iter()
        .filter_map(|(name, m)| Some((name, m.as_array()?)))
    {
        for from in (0..items.len()).step_by(PART_ITEMS) {
            let shown = members
                .iter()
                .map(|(name, m)| (name.clone(), part(name, m, of, from)));
            let shown = Value::Object(shown.collect());
            if !validator.is_valid(&shown) {
                let mut found = listed(&shown);
                for defect in &mut found {
                    defect.shift(&json::join("", of), from);
                }
                return found;
            }
        }
    }
    // Only the length of the list is wrong.
    listed(value)
}

/// The first defect of each place, by place.
pub(super) fn one_each(mut defects: Vec<Defect>) -> Vec<Defect> {
    defects.sort_by(|a, b| (&a.pointer, a.rank()).cmp(&(&b.pointer, b.rank())));
    defects.dedup_by(|a, b| a.pointer == b.pointer);
    defects
}

/// Translates one validator error.
fn defects_of(error: &ValidationError<'_>) -> Vec<Defect> {
    let pointer = error.instance_path().as_str();
    let actual: &Value = error.instance();
    let one = |kind, expected| vec![Defect::new(pointer, kind, expected, actual)];
    let bound = |words: &str, limit: &dyn fmt::Display| one("bound", format!("{words} {limit}"));
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let mut defect = Defect::new(
                &json::join(pointer, name),
                "missing-field",
                format!("a field `{name}`"),
                actual,
            );
            "nothing".clone_into(&mut defect.actual);
            vec![defect]
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = types(kind);
            one(if actual.is_null() { "null" } else { "type" }, wanted)
        }
        ValidationErrorKind::Enum { options } => one(
            if actual.is_null() { "null" } else { "enum" },
            match options.as_array().map(Vec::as_slice) {
                Some([only]) => json::excerpt(only, SHOWN),
                _ => format!("one of {}", choices(options)),
            },
        ),
        ValidationErrorKind::Constant { expected_value } => one(
            if actual.is_null() { "null" } else { "enum" },
            json::excerpt(expected_value, SHOWN),
        ),
        ValidationErrorKind::Format { format } => one("format", format!("the format {format}")),
        ValidationErrorKind::Pattern { pattern } => {
            one("pattern", format!("a text that matches {pattern}"))
        }
        ValidationErrorKind::ContentMediaType { .. } => one("json-text", "a JSON text".to_owned()),
        ValidationErrorKind::Minimum { limit } => bound("at least", limit),
        ValidationErrorKind::Maximum { limit } => bound("at most", limit),
        ValidationErrorKind::ExclusiveMinimum { limit } => bound("more than", limit),
        ValidationErrorKind::ExclusiveMaximum { limit } => bound("less than", limit),
        ValidationErrorKind::MinLength { limit } => bound("characters, at least", limit),
        ValidationErrorKind::MaxLength { limit } => bound("characters, at most", limit),
        ValidationErrorKind::MinItems { limit } => bound("items, at least", limit),
        ValidationErrorKind::MaxItems { limit } => bound("items, at most", limit),
        ValidationErrorKind::AdditionalItems { limit } => bound("items, at most", limit),
        ValidationErrorKind::MinProperties { limit } => bound("fields, at least", limit),
        ValidationErrorKind::MaxProperties { limit } => bound("fields, at most", limit),
        ValidationErrorKind::MultipleOf { multiple_of } => bound("a multiple of", multiple_of),
        ValidationErrorKind::UniqueItems => one("unique", "items that all differ".to_owned()),
        ValidationErrorKind::AnyOf { context }
        | ValidationErrorKind::OneOfNotValid { context }
        | ValidationErrorKind::OneOfMultipleValid { context } => branches(pointer, actual, context),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .take(EXTRA_FIELDS_MAX)
            .map(|name| {
                let value = actual.get(name).unwrap_or(&Value::Null);
                let at = json::join(pointer, name);
                Defect::new(&at, "extra-field", "only listed fields".to_owned(), value)
            })
            .collect(),
        ValidationErrorKind::FalseSchema => one("extra-field", "nothing at this place".to_owned()),
        ValidationErrorKind::Contains
        | ValidationErrorKind::Not { .. }
        | ValidationErrorKind::PropertyNames { .. }
        | ValidationErrorKind::UnevaluatedItems { .. }
        | ValidationErrorKind::ContentEncoding { .. }
        | ValidationErrorKind::FromUtf8 { .. }
        | ValidationErrorKind::Custom { .. }
        | ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. }
        | ValidationErrorKind::Referencing(_) => one("shape", in_words(error.kind())),
    }
}

/// What rarer keywords require.
fn in_words(kind: &ValidationErrorKind) -> String {
    let ValidationErrorKind::Not { schema } = kind else {
        let words = match kind.keyword() {
            "contains" => "a list with an item of the documented shape",
            "propertyNames" => "field names of the documented form",
            "unevaluatedItems" => "no further items",
            "contentEncoding" => "a text in the encoding that is stated",
            _ => "the documented shape",
        };
        return words.to_owned();
    };
    let ruled_out = |name: &str| schema.get(name);
    if let Some(pattern) = ruled_out("pattern").and_then(Value::as_str) {
        format!("a text that does not match {pattern}")
    } else if let Some(options) = ruled_out("enum") {
        format!("none of {}", choices(options))
    } else if let Some(value) = ruled_out("const") {
        format!("another value than {}", json::excerpt(value, SHOWN))
    } else if let Some(Value::Array(names)) = ruled_out("required") {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        format!("no field {}", names.join(" and "))
    } else if let Some(name) = ruled_out("type").and_then(Value::as_str) {
        format!("not {name}")
    } else {
        "another shape than this one".to_owned()
    }
}

/// The defects against the closest alternative: of those that allow the type, the one with the fewest.
fn branches(
    pointer: &str,
    actual: &Value,
    context: &[Vec<ValidationError<'static>>],
) -> Vec<Defect> {
    let alternatives: Vec<Vec<Defect>> = context
        .iter()
        .map(|errors| one_each(errors.iter().flat_map(defects_of).collect()))
        .collect();
    let is_other_type = |d: &Defect| d.pointer == pointer && matches!(d.kind, "type" | "null");
    alternatives
        .iter()
        .filter(|defects| !defects.is_empty() && !defects.iter().any(is_other_type))
        .min_by_key(|defects| defects.len())
        .cloned()
        .unwrap_or_else(|| {
            let wanted: Vec<&str> = alternatives
                .iter()
                .flatten()
                .filter(|d| is_other_type(d))
                .map(|d| d.expected.as_str())
                .collect();
            let kind = if actual.is_null() { "null" } else { "type" };
            let expected = if wanted.is_empty() {
                "exactly one of the documented shapes".to_owned()
            } else {
                wanted.join(" or ")
            };
            vec![Defect::new(pointer, kind, expected, actual)]
        })
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            let names: Vec<String> = several.iter().map(|t| t.to_string()).collect();
            names.join(" or ")
        }
    }
}

fn choices(options: &Value) -> String {
    let words: Vec<String> = options
        .as_array()
        .into_iter()
        .flatten()
        .map(|option| json::excerpt(option, 40))
        .collect();
    words.join(", ")
}
