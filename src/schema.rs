//! Representations against their schemas: which rule is broken at which place, one finding for one
//! defect.
//!
//! Knows no exchange and no written rule; `judge` adds those.

use crate::json;
use crate::rulebook::rules::Check;
use crate::rulebook::{OTHER_FIELDS_KEY, Origin, RULE_KEY, Rule, Rulebook, reach};
use crate::verdict::Level;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// How many defects of one document are looked for: a page of items that are all broken says it
/// with the first of them.
pub const DEFECTS_MAX: usize = 500;

/// How many items of a list the validator sees at once, where some do not fit.
const PART_ITEMS: usize = 500;
/// How many unlisted fields of one object are reported.
const EXTRA_FIELDS_MAX: usize = 50;
/// How alike an unlisted name must be to a missing one to be taken for it, from 0 to 1.
const MISNAMED_LIKENESS: f32 = 0.8;
/// How much of a value a finding shows.
const SHOWN: usize = 160;

/// One rule broken at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer into the document.
    pub pointer: String,
    /// Id of the rule.
    pub rule: String,
    /// How binding it is: `must` or `should`.
    pub level: Level,
    /// `missing-field`, `misnamed-field`, `extra-field`, `null`, `type`, `enum`, `format`, `json-text`, `pattern`,
    /// `bound`, `unique` or `shape`.
    pub kind: &'static str,
    /// What was expected, for a person.
    pub expected: String,
    /// What was there, excerpted.
    pub actual: String,
    /// One sentence that says both.
    pub message: String,
}

/// What a document was found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// Rules that the document gave something to judge for, sorted.
    pub judged: Vec<String>,
    /// By pointer.
    pub violations: Vec<Violation>,
}

/// Compiled schemas of one rulebook, made when first needed and shared between threads.
#[derive(Default)]
pub struct Schemas {
    compiled: RwLock<BTreeMap<String, Arc<Validator>>>,
    payload_rules: OnceLock<BTreeMap<String, Vec<String>>>,
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}

impl Schemas {
    /// The compiled schema of that name.
    fn validator(&self, name: &str, schema: &Value) -> Arc<Validator> {
        let known = self
            .compiled
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(compile(schema).expect("the loader refuses schemas that are none"));
            let mut compiled = self
                .compiled
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(compiled.entry(name.to_owned()).or_insert(made))
        })
    }

    /// Judges a document as a representation of `kind`; nothing where the kind is unknown.
    pub fn violations(&self, rulebook: &Rulebook, kind: &str, value: &Value) -> Vec<Violation> {
        self.examine(rulebook, kind, value).violations
    }

    /// Judges a document as a representation of `kind` and says which rules it gave something to
    /// judge for.
    pub fn examine(&self, rulebook: &Rulebook, kind: &str, value: &Value) -> Examination {
        let Some(known) = rulebook.kinds.get(kind) else {
            return Examination::default();
        };
        let root = &known.schema;
        let mut walk = Walk::new(root);
        walk.visit("", value, &reach::beside(root, root));
        let validator = self.validator(kind, root);
        let mut defects = walk.defects;
        if !validator.is_valid(value) {
            defects.extend(misfits_in_parts(&validator, value));
        }
        let violations = name_misnamed(root, value, one_each(defects))
            .into_iter()
            .filter_map(|defect| attribute(rulebook, root, value, defect))
            .collect();
        Examination {
            judged: walk.judged.into_iter().collect(),
            violations,
        }
    }

    /// Ids of the written rules that judge one representation of that kind by itself.
    pub fn payload_rules(&self, rulebook: &Rulebook, kind: &str) -> &[String] {
        let by_kind = self.payload_rules.get_or_init(|| {
            let mut by_kind: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for rule in rulebook.rules.values() {
                if let Some(kind) = kind_of(rule) {
                    by_kind
                        .entry(kind.to_owned())
                        .or_default()
                        .push(rule.id.clone());
                }
            }
            by_kind
        });
        by_kind.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Where a value does not fit a schema that stands for itself, such as that of a written rule:
    /// pointers into the value, no rules. `name` identifies the schema.
    pub fn misfits(&self, name: &str, schema: &Value, value: &Value) -> Vec<Defect> {
        let mut walk = Walk::new(schema);
        walk.visit("", value, &reach::beside(schema, schema));
        let mut defects = walk.defects;
        let validator = self.validator(name, schema);
        if !validator.is_valid(value) {
            defects.extend(misfits_in_parts(&validator, value));
        }
        one_each(defects)
    }
}

impl Defect {
    /// The same, told at the unlisted field that has nearly the missing one's name; `at` is where
    /// the judged value stands in the representation `whole` of the schema `root`.
    #[must_use]
    pub fn renamed_in(mut self, root: &Value, whole: &Value, at: &str) -> Self {
        self.pointer.insert_str(0, at);
        if self.kind == "missing-field"
            && let Some(misnamed) = misnamed(root, whole, &self.pointer)
        {
            self.misname(misnamed);
        }
        self
    }
}

/// The kind whose representations a rule judges one by one; nothing for all other rules.
fn kind_of(rule: &Rule) -> Option<&str> {
    let Origin::Written(check) = &rule.origin else {
        return None;
    };
    match check {
        Check::Conforms { kind, .. } | Check::PresentOnlyWhen { kind, .. } => Some(kind),
        Check::Story {}
        | Check::Configured { .. }
        | Check::AtMostAfter { .. }
        | Check::Echoes { .. }
        | Check::Default { .. }
        | Check::OrderedBy { .. }
        | Check::FilteredBy { .. }
        | Check::Bounded { .. }
        | Check::InFormat { .. }
        | Check::NoLongerThan { .. }
        | Check::SameResource { .. }
        | Check::UniqueWithin { .. }
        | Check::IncreasingWithin { .. }
        | Check::Transition { .. }
        | Check::NeverAfter { .. }
        | Check::OneSpelling { .. } => None,
    }
}

/// Compiles a self-contained schema: formats are asserted, patterns run on the linear engine, and
/// nothing is fetched.
pub fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .with_format("date-time", is_date_time)
        .offline()
        .build(schema)
        .map_err(|error| error.to_string())
}

/// ISO 8601 date and time with an offset: `2026-01-01T00:00:00Z`, fractions and `+0000` included.
pub fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() >= 20
        && matches!(bytes[10], b'T' | b't')
        && bytes[..10].iter().all(|b| b.is_ascii_digit() || *b == b'-')
        && bytes[11..].iter().all(|b| {
            b.is_ascii_digit() || matches!(b, b':' | b'.' | b',' | b'+' | b'-' | b'Z' | b'z')
        });
    shape && text.parse::<jiff::Timestamp>().is_ok()
}

/// Something wrong at one place, not yet a rule's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// JSON Pointer into the value.
    pub pointer: String,
    /// As in [`Violation::kind`].
    pub kind: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was there.
    pub actual: String,
    /// The rule, where it is known without looking at the place.
    rule: Option<String>,
}

impl Defect {
    fn new(pointer: &str, kind: &'static str, expected: String, actual: &Value) -> Self {
        Self {
            pointer: pointer.to_owned(),
            kind,
            expected,
            actual: json::excerpt(actual, SHOWN),
            rule: None,
        }
    }

    /// The missing field stands here under another name.
    fn misname(&mut self, pointer: String) {
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
    fn rank(&self) -> usize {
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
fn misfits_in_parts(validator: &Validator, value: &Value) -> Vec<Defect> {
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
fn one_each(mut defects: Vec<Defect>) -> Vec<Defect> {
    defects.sort_by(|a, b| (&a.pointer, a.rank()).cmp(&(&b.pointer, b.rank())));
    defects.dedup_by(|a, b| a.pointer == b.pointer);
    defects
}

/// A field that is missing beside an unlisted one of nearly its name is one defect, not two: it
/// is told at the place of the unlisted one, by the rule of the missing one.
fn name_misnamed(root: &Value, value: &Value, mut defects: Vec<Defect>) -> Vec<Defect> {
    let mut renamed = BTreeSet::new();
    // Where an unlisted field is told of itself, the missing one is told where it is missing.
    let told: BTreeSet<String> = defects
        .iter()
        .filter(|d| d.kind == "extra-field")
        .map(|d| d.pointer.clone())
        .collect();
    for defect in defects.iter_mut().filter(|d| d.kind == "missing-field") {
        let misnamed = misnamed(root, value, &defect.pointer);
        if let Some(misnamed) = misnamed.filter(|pointer| !told.contains(pointer)) {
            defect.rule = defect
                .rule
                .take()
                .or_else(|| rule_at(root, value, &defect.pointer));
            defect.misname(misnamed);
            renamed.insert(defect.pointer.clone());
        }
    }
    defects.retain(|d| d.kind != "extra-field" || !renamed.contains(&d.pointer));
    defects.sort_by(|a, b| (&a.pointer, a.rank()).cmp(&(&b.pointer, b.rank())));
    defects
}

/// Where the field that is missing at `pointer` stands under nearly its name, a name that the
/// schema `root` does not list there.
fn misnamed(root: &Value, value: &Value, pointer: &str) -> Option<String> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let members = value.pointer(parent)?.as_object()?;
    let mut applying = reach::beside(root, root);
    let mut here = value;
    for segment in json::segments(parent) {
        applying = if here.is_array() {
            reach::items(root, &applying)
        } else {
            reach::member(root, &applying, &segment)
        };
        here = here.pointer(&json::join("", &segment))?;
    }
    let is_listed = |key: &str| {
        applying
            .iter()
            .any(|s| s.get("properties").is_some_and(|p| p.get(key).is_some()))
    };
    let unlisted: Vec<&str> = members
        .keys()
        .map(String::as_str)
        .filter(|key| !is_listed(key))
        .collect();
    let name = name.replace("~1", "/").replace("~0", "~");
    let near = similar::get_close_matches(name.as_str(), &unlisted, 1, MISNAMED_LIKENESS);
    near.first().map(|key| json::join(parent, key))
}

/// Finds what JSON Schema does not assert or not at the place we need: fields that are not listed,
/// texts that should hold JSON. Notes on the way which rules have something to judge.
struct Walk<'a> {
    root: &'a Value,
    judged: BTreeSet<String>,
    defects: Vec<Defect>,
}

/// A property that must not be there is judged by its absence.
fn is_forbidden(schema: &Value) -> bool {
    schema
        .get("not")
        .and_then(Value::as_object)
        .is_some_and(serde_json::Map::is_empty)
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            judged: BTreeSet::new(),
            defects: Vec::new(),
        }
    }

    fn visit(&mut self, pointer: &str, value: &Value, applying: &[&'a Value]) {
        match value {
            Value::Object(members) => {
                self.note_judged(members, applying);
                self.other_fields(pointer, members, applying);
                for (key, member) in members {
                    let below = reach::member(self.root, applying, key);
                    if !below.is_empty() {
                        self.visit(&json::join(pointer, key), member, &below);
                    }
                }
            }
            Value::Array(items) => {
                let below = reach::items(self.root, applying);
                if !below.is_empty() {
                    for (n, item) in items.iter().enumerate() {
                        self.visit(&format!("{pointer}/{n}"), item, &below);
                    }
                }
            }
            Value::String(text) => self.json_text(pointer, text, value, applying),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn note_judged(&mut self, members: &serde_json::Map<String, Value>, applying: &[&'a Value]) {
        for schema in applying {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |name: &str| {
                required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
            };
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if let Some(rule) = property.get(RULE_KEY).and_then(Value::as_str)
                    && (members.contains_key(name) || is_required(name) || is_forbidden(property))
                    && !self.judged.contains(rule)
                {
                    self.judged.insert(rule.to_owned());
                }
            }
        }
    }

    fn other_fields(
        &mut self,
        pointer: &str,
        members: &serde_json::Map<String, Value>,
        applying: &[&'a Value],
    ) {
        let Some(rule) = applying
            .iter()
            .find_map(|s| s.get(OTHER_FIELDS_KEY).and_then(Value::as_str))
        else {
            return;
        };
        self.judged.insert(rule.to_owned());
        let is_listed = |name: &str| {
            applying
                .iter()
                .any(|s| s.get("properties").is_some_and(|p| p.get(name).is_some()))
        };
        let left = DEFECTS_MAX.saturating_sub(self.defects.len());
        let extra = members.iter().filter(|(name, _)| !is_listed(name));
        for (name, value) in extra.take(EXTRA_FIELDS_MAX.min(left)) {
            let at = json::join(pointer, name);
            let mut defect =
                Defect::new(&at, "extra-field", "only listed fields".to_owned(), value);
            defect.rule = Some(rule.to_owned());
            self.defects.push(defect);
        }
    }

    fn json_text(&mut self, pointer: &str, text: &str, value: &Value, applying: &[&'a Value]) {
        let due = |s: &&Value| {
            s.get("contentMediaType").and_then(Value::as_str) == Some("application/json")
        };
        if self.defects.len() < DEFECTS_MAX
            && applying.iter().any(due)
            && let Err(fault) = json::parse(text.as_bytes(), json::Limits::default())
        {
            let expected = format!("a text that is JSON ({fault})");
            self.defects
                .push(Defect::new(pointer, "json-text", expected, value));
        }
    }
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
        | ValidationErrorKind::Referencing(_) => {
            one("shape", format!("what `{}` says", error.kind().keyword()))
        }
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

/// The defect as a violation of the deepest property rule on the way to it.
fn attribute(
    rulebook: &Rulebook,
    root: &Value,
    value: &Value,
    defect: Defect,
) -> Option<Violation> {
    let rule = defect
        .rule
        .clone()
        .or_else(|| rule_at(root, value, &defect.pointer))?;
    let level = rulebook.rules.get(&rule)?.level;
    let counts = match level {
        Level::Must | Level::Should => true,
        Level::May | Level::Open => false,
    };
    counts.then(|| Violation {
        message: defect.message(),
        pointer: defect.pointer,
        rule,
        level,
        kind: defect.kind,
        expected: defect.expected,
        actual: defect.actual,
    })
}

/// Rule of the deepest property on the way to a place. A document that is not even an object
/// breaks the rule of its first required field.
fn rule_at(root: &Value, value: &Value, pointer: &str) -> Option<String> {
    let mut applying = reach::beside(root, root);
    let mut rule = None;
    let mut here = Some(value);
    for segment in json::segments(pointer) {
        let is_array = here.is_some_and(Value::is_array);
        applying = if is_array {
            reach::items(root, &applying)
        } else {
            reach::member(root, &applying, &segment)
        };
        here = here.and_then(|v| v.pointer(&json::join("", &segment)));
        let named = |s: &&Value| s.get(RULE_KEY).and_then(Value::as_str).map(str::to_owned);
        rule = applying.iter().find_map(named).or(rule);
    }
    rule.or_else(|| first_rule(root))
}

/// The rule that a document breaks which is no document of this kind at all: that of its first
/// required field.
pub fn rule_of_whole(rulebook: &Rulebook, kind: &str) -> Option<String> {
    rulebook
        .kinds
        .get(kind)
        .and_then(|known| first_rule(&known.schema))
}

fn first_rule(root: &Value) -> Option<String> {
    let applying = reach::beside(root, root);
    let named = |schema: &&Value| {
        let properties = schema.get("properties")?.as_object()?;
        let required = schema.get("required").and_then(Value::as_array);
        let first = required.into_iter().flatten().find_map(Value::as_str);
        first
            .and_then(|name| properties.get(name))
            .into_iter()
            .chain(properties.values())
            .find_map(|p| p.get(RULE_KEY)?.as_str().map(str::to_owned))
    };
    applying.iter().find_map(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;
    use std::sync::OnceLock;

    fn rulebook() -> &'static Rulebook {
        static RULEBOOK: OnceLock<Rulebook> = OnceLock::new();
        RULEBOOK.get_or_init(|| {
            Rulebook::from_dir(Path::new("specs")).unwrap_or_else(|problems| panic!("{problems}"))
        })
    }

    fn execution() -> Value {
        let sid = |prefix: &str| format!("{prefix}{}", "0a".repeat(16));
        json!({
            "sid": sid("FN"), "account_sid": sid("AC"), "flow_sid": sid("FW"),
            "contact_sid": sid("FC"), "contact_channel_address": "+15005550006",
            "context": {}, "status": "active", "date_created": "2026-01-01T00:00:00Z",
            "date_updated": null, "url": "http://127.0.0.1/flow/v1/x",
            "links": {"steps": "http://127.0.0.1/flow/v1/x/Steps"},
        })
    }

    fn broken(kind: &str, value: &Value) -> Vec<(String, String, &'static str)> {
        Schemas::default()
            .violations(rulebook(), kind, value)
            .into_iter()
            .map(|v| (v.pointer, v.rule, v.kind))
            .collect()
    }

    /// One violation with this rule at this place.
    fn only(pointer: &str, rule: &str, kind: &'static str) -> Vec<(String, String, &'static str)> {
        vec![(pointer.to_owned(), rule.to_owned(), kind)]
    }

    #[test]
    fn a_representation_as_shown_breaks_nothing() {
        assert_eq!(broken("flow/execution", &execution()), []);
        let examined = Schemas::default().examine(rulebook(), "flow/execution", &execution());
        assert!(
            examined
                .judged
                .contains(&"flow/execution/status".to_owned())
        );
        assert!(
            examined
                .judged
                .contains(&"flow/execution/no-other-fields".to_owned())
        );
        assert!(
            !examined
                .judged
                .contains(&"flow/execution/links/execution-context".to_owned())
        );
    }

    #[test]
    fn one_defect_is_one_violation_of_the_deepest_rule() {
        let with = |field: &str, value: Value| {
            let mut execution = execution();
            execution[field] = value;
            broken("flow/execution", &execution)
        };
        let sid = "flow/execution/sid";
        assert_eq!(with("sid", Value::Null), only("/sid", sid, "null"));
        assert_eq!(with("sid", json!(1)), only("/sid", sid, "type"));
        assert_eq!(with("sid", json!("FN12")), only("/sid", sid, "pattern"));
        let status = "flow/execution/status";
        assert_eq!(
            with("status", json!("done")),
            only("/status", status, "enum")
        );
        let created = "flow/execution/date-created";
        assert_eq!(
            with("date_created", json!("today")),
            only("/date_created", created, "format")
        );
        let offset = json!("2026-01-01T00:00:00-05:00");
        assert_eq!(
            with("date_created", offset),
            only("/date_created", created, "pattern")
        );
        let updated = "flow/execution/date-updated";
        assert_eq!(
            with("date_updated", json!("x")),
            only("/date_updated", updated, "format")
        );
        assert_eq!(
            with("date_updated", json!(1)),
            only("/date_updated", updated, "type")
        );
        assert_eq!(
            with("links", json!({"steps": 1})),
            only("/links/steps", "flow/execution/links/steps", "type")
        );
        assert_eq!(with("links", json!({"anything": "x"})), []);
        assert_eq!(
            with("date_created", json!("2026-01-01T00:00:00.5+0000")),
            []
        );
    }

    #[test]
    fn missing_and_unlisted_fields_have_their_rules() {
        let mut value = execution();
        value.as_object_mut().unwrap().remove("status");
        assert_eq!(
            broken("flow/execution", &value),
            only("/status", "flow/execution/status", "missing-field")
        );
        let mut value = execution();
        value["a/b"] = json!(1);
        assert_eq!(
            broken("flow/execution", &value),
            only("/a~1b", "flow/execution/no-other-fields", "extra-field")
        );
    }

    #[test]
    fn items_of_a_page_are_judged_by_their_own_rules() {
        let mut item = execution();
        item["status"] = json!("done");
        let meta = json!({
            "page": 0, "page_size": 50, "first_page_url": "http://127.0.0.1/x", "url": "http://127.0.0.1/x",
            "previous_page_url": null, "next_page_url": null, "key": "executions",
        });
        let page = json!({"meta": meta, "executions": [execution(), item]});
        assert_eq!(
            broken("flow/execution[]", &page),
            only("/executions/1/status", "flow/execution/status", "enum")
        );
        assert_eq!(
            broken("flow/execution[]", &json!({"meta": meta})),
            only(
                "/executions",
                "flow/read-executions/executions",
                "missing-field"
            )
        );
        for root in [json!(42), json!(null), json!([])] {
            let found = broken("flow/execution[]", &root);
            assert_eq!(found.len(), 1, "{root}");
            assert_eq!(found[0].0, "");
        }
    }

    #[test]
    fn a_broken_item_far_behind_in_a_long_list_is_found() {
        let mut items = vec![execution(); 1_203];
        items[1_202]["status"] = json!("asleep");
        let meta = json!({
            "page": 0, "page_size": 50, "first_page_url": null, "previous_page_url": null,
            "url": "http://h/x", "next_page_url": null, "key": "executions",
        });
        let mut page = json!({"meta": meta, "executions": items});
        let one = only("/executions/1202/status", "flow/execution/status", "enum");
        assert_eq!(broken("flow/execution[]", &page), one);
        page["executions"] = json!(vec![json!({}); 100_000]);
        let found = broken("flow/execution[]", &page).len();
        assert!((1..=DEFECTS_MAX).contains(&found), "{found}");
    }

    #[test]
    fn a_text_that_should_hold_json_is_read() {
        let mut role = json!({"attributes": "{\"a\": "});
        let pick = |value: &Value| {
            broken("chat/user", value)
                .into_iter()
                .filter(|(at, _, _)| at == "/attributes")
                .collect::<Vec<_>>()
        };
        assert_eq!(
            pick(&role),
            only("/attributes", "chat/user/attributes", "json-text")
        );
        role["attributes"] = json!("{}");
        assert_eq!(pick(&role), []);
    }

    #[test]
    fn every_schema_compiles_and_names_rules_that_exist() {
        fn names(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(members) => {
                    for (key, value) in members {
                        match (key.as_str(), value.as_str()) {
                            (RULE_KEY | OTHER_FIELDS_KEY, Some(rule)) => {
                                found.push(rule.to_owned());
                            }
                            _ => names(value, found),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| names(item, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        for kind in rulebook().kinds.values() {
            compile(&kind.schema).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
            let mut found = Vec::new();
            names(&kind.schema, &mut found);
            for rule in found {
                assert!(
                    rulebook().rules.contains_key(&rule),
                    "{}: {rule}",
                    kind.name
                );
            }
        }
    }

    #[test]
    fn date_times_are_iso_8601_with_an_offset() {
        for fine in [
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.123456Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T00:00:00+0000",
            "2026-01-01t00:00:00z",
        ] {
            assert!(is_date_time(fine), "{fine}");
        }
        for wrong in [
            "2026-01-01",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00Z[UTC]",
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "",
        ] {
            assert!(!is_date_time(wrong), "{wrong}");
        }
    }
}
