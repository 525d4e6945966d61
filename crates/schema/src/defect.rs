//! Something wrong at one place of a value, and what the validator's errors say of it in a person's
//! words.
//!
//! Knows no rule; [`super::attribution`] finds the one that a defect breaks.

use super::DEFECTS_MAX;
use conformant_base::json;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use std::fmt;

/// How many items of a list the validator sees at once, where some do not fit.
const PART_ITEMS: usize = 500;
/// How many unlisted fields of one object are reported.
pub(super) const EXTRA_FIELDS_MAX: usize = 50;
/// How much of a value a finding shows.
const SHOWN: usize = 160;

/// Something wrong at one place, not yet a rule's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// JSON Pointer into the value.
    pub pointer: String,
    /// As in `Violation::kind`.
    pub kind: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was there.
    pub actual: String,
    /// The rule, where it is known without looking at the place.
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

    /// The missing field stands here under another name.
    pub(super) fn misname(&mut self, pointer: String) {
        self.kind = "misnamed-field";
        self.actual = json::segments(&pointer)
            .last()
            .map(|name| format!("a field `{name}`"))
            .unwrap_or_default();
        self.pointer = pointer;
    }

    /// The same defect in the whole list of which a part was shown that begins at `from`.
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

    /// One sentence that says what was expected and what was there.
    pub fn message(&self) -> String {
        let place = if self.pointer.is_empty() {
            "the document".to_owned()
        } else {
            self.pointer.clone()
        };
        match self.kind {
            "missing-field" => format!("{place} is missing"),
            "extra-field" => format!("{place} is not listed"),
            "misnamed-field" => format!("{place} stands where {} is due", self.expected),
            _ => format!("{place} is {}, expected {}", self.actual, self.expected),
        }
    }

    /// What a person should hear of first, when several things are wrong at one place.
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

/// The defects of a document that does not fit. The validator lists all of them at once, which for
/// a page of a hundred thousand broken items is a thousand times the page: a long list is shown
/// to it in parts, until one does not fit.
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
    // No part of a list is at fault, but its length.
    listed(value)
}

/// The first defect of each place, by place.
pub(super) fn one_each(mut defects: Vec<Defect>) -> Vec<Defect> {
    defects.sort_by(|a, b| (&a.pointer, a.rank()).cmp(&(&b.pointer, b.rank())));
    defects.dedup_by(|a, b| a.pointer == b.pointer);
    defects
}

/// What one error of the validator says, at the places where a person would look.
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
            format!("one of {}", choices(options)),
        ),
        ValidationErrorKind::Constant { expected_value } => one(
            if actual.is_null() { "null" } else { "enum" },
            json::excerpt(expected_value, SHOWN),
        ),
        ValidationErrorKind::Format { format } => one("format", format!("the format {format}")),
        ValidationErrorKind::Pattern { pattern } => {
            one("pattern", format!("a text that matches {pattern}"))
        }
        ValidationErrorKind::ContentMediaType { .. } => {
            one("json-text", "a text that is JSON".to_owned())
        }
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

/// What the rarer keywords ask for, as a person would say it.
fn in_words(kind: &ValidationErrorKind) -> String {
    let ValidationErrorKind::Not { schema } = kind else {
        let words = match kind.keyword() {
            "contains" => "a list with an item of the shape that is shown",
            "propertyNames" => "field names of the form that is shown",
            "unevaluatedItems" => "no further items",
            "contentEncoding" => "a text in the encoding that is stated",
            _ => "the shape that is shown",
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
        format!("no {name}")
    } else {
        "another shape than this one".to_owned()
    }
}

/// Of several alternatives, what is wrong with the one that the value comes nearest to: of those
/// that allow its type, the one with the fewest defects.
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
                "exactly one of the shapes that are shown".to_owned()
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
