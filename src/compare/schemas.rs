//! Two JSON Schemas of one representation: what one of them demands and the other does not.
//!
//! Keyword by keyword and field by field; validates no instance. What combines schemas (`anyOf`,
//! `not`, `if`…) is compared as a whole, for whether one such condition is narrower than another
//! cannot be decided in general.

use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use crate::json::{self, equal};
use crate::rulebook::{OTHER_FIELDS_KEY, RULE_KEY, Rulebook};
use crate::verdict::Level;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// References within references; a schema that is deeper describes itself.
const DEPTH_MAX: usize = 24;

/// Representations that the application writes and the service reads (D1, Registration without
/// personal data).
const WRITTEN_BY_CONSUMERS: [&str; 2] = ["auth/registration-token", "auth/registration-qr"];

/// Keywords that bound from below, then from above.
const LOWER: [&str; 5] = [
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
];
const UPPER: [&str; 5] = [
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
];
/// Bounds that have no order.
const UNORDERED: [&str; 2] = ["multipleOf", "uniqueItems"];
const FORMS: [&str; 4] = ["pattern", "format", "contentMediaType", "contentEncoding"];
/// Lists of schemas of which one must fit: a further branch widens.
const ANY: [&str; 2] = ["anyOf", "oneOf"];
/// Conditions whose presence narrows.
const CONDITIONS: [&str; 11] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "contentSchema",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "prefixItems",
];
const WORDS: [&str; 2] = ["title", "description"];
const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];

/// Every representation of either rulebook. A schema version of an event that is new is compared
/// with the one before it in `events`.
pub(super) fn kinds(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    let names: BTreeSet<&String> = old.kinds.keys().chain(new.kinds.keys()).collect();
    for name in names {
        match (old.kinds.get(name), new.kinds.get(name)) {
            (Some(_), Some(_)) => kind(ledger, (old, name), (new, name)),
            // A page comes and goes with its operation or its resource, an event version by itself.
            (Some(kind), None) | (None, Some(kind))
                if kind.page_of.is_some() || name.starts_with("events/") => {}
            (before, _) => {
                let action = if before.is_some() {
                    Action::Removed
                } else {
                    Action::Added
                };
                ledger.note(
                    &whole(name, name),
                    Note::new(What::Representation, action, direction(name)),
                );
            }
        }
    }
}

/// Which way a representation flows.
pub(super) fn direction(kind: &str) -> Direction {
    if WRITTEN_BY_CONSUMERS.contains(&kind) {
        Direction::Request
    } else {
        Direction::Response
    }
}

fn whole(old: &str, new: &str) -> Subject {
    Subject::Representation {
        old: old.to_owned(),
        new: new.to_owned(),
        pointer: String::new(),
    }
}

/// One representation, or two of different names.
pub(super) fn kind(ledger: &mut Ledger, old: (&Rulebook, &str), new: (&Rulebook, &str)) {
    let (Some(before), Some(after)) = (old.0.kinds.get(old.1), new.0.kinds.get(new.1)) else {
        return;
    };
    let place = |pointer: &str| Subject::Representation {
        old: old.1.to_owned(),
        new: new.1.to_owned(),
        pointer: pointer.to_owned(),
    };
    let mut walk = Walk {
        ledger,
        old: Side {
            rulebook: old.0,
            root: &before.schema,
        },
        new: Side {
            rulebook: new.0,
            root: &after.schema,
        },
        direction: direction(new.1),
        place: &place,
    };
    walk.schema("", &before.schema, &after.schema, true, 0);
}

/// The schemas of one parameter.
pub(super) fn parameter(
    ledger: &mut Ledger,
    old: (&Rulebook, &Value),
    new: (&Rulebook, &Value),
    place: &dyn Fn(&str) -> Subject,
    binding: bool,
) {
    let mut walk = Walk {
        ledger,
        old: Side {
            rulebook: old.0,
            root: old.1,
        },
        new: Side {
            rulebook: new.0,
            root: new.1,
        },
        direction: Direction::Request,
        place,
    };
    walk.schema("", old.1, new.1, binding, 0);
}

#[derive(Clone, Copy)]
struct Side<'a> {
    rulebook: &'a Rulebook,
    root: &'a Value,
}

impl Side<'_> {
    /// The keywords of a schema, those it refers to included; its own words come first.
    fn keywords(self, schema: &Value) -> Map<String, Value> {
        let mut keywords = match schema {
            Value::Bool(false) => [("not".to_owned(), Value::Bool(true))]
                .into_iter()
                .collect(),
            Value::Object(members) => members.clone(),
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        for _ in 0..DEPTH_MAX {
            let Some(Value::String(reference)) = keywords.remove("$ref") else {
                break;
            };
            let target = reference
                .strip_prefix('#')
                .and_then(|p| self.root.pointer(p));
            for (key, value) in target.and_then(Value::as_object).into_iter().flatten() {
                keywords.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        keywords
    }

    /// The resource that a schema refers to, where it does nothing else: it is compared by itself.
    fn resource(self, schema: &Value) -> Option<String> {
        let reference = schema.get("$ref")?.as_str()?;
        let name = reference
            .strip_prefix("#/$defs/")?
            .replace("~1", "/")
            .replace('.', "/");
        self.rulebook.kinds.contains_key(&name).then_some(name)
    }

    /// Whether the rule of a property is a duty.
    fn is_duty(self, keywords: &Map<String, Value>) -> Option<bool> {
        let id = keywords.get(RULE_KEY)?.as_str()?;
        Some(self.rulebook.rules.get(id)?.level == Level::Must)
    }
}

/// A walk over two schemas side by side.
struct Walk<'a> {
    ledger: &'a mut Ledger,
    old: Side<'a>,
    new: Side<'a>,
    direction: Direction,
    place: &'a dyn Fn(&str) -> Subject,
}

impl Walk<'_> {
    fn schema(&mut self, pointer: &str, old: &Value, new: &Value, binding: bool, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if let (Some(a), Some(b)) = (self.old.resource(old), self.new.resource(new))
            && a == b
        {
            return;
        }
        let (old, new) = (self.old.keywords(old), self.new.keywords(new));
        let duties = [self.old.is_duty(&old), self.new.is_duty(&new)];
        // Somebody may rely on it where it is a duty on either side.
        let binding = match duties {
            [None, None] => binding,
            [a, b] => a.unwrap_or_default() || b.unwrap_or_default(),
        };
        let mut at = Place {
            walk: self,
            pointer,
            old: &old,
            new: &new,
            binding,
        };
        at.words();
        at.types();
        at.enumeration();
        at.bounds();
        at.forms();
        at.default();
        at.conditions();
        at.required();
        at.other_fields();
        self.properties(pointer, &old, &new, binding, depth);
        self.inner(pointer, &old, &new, binding, depth);
    }

    fn properties(
        &mut self,
        pointer: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        binding: bool,
        depth: usize,
    ) {
        let of = |keywords: &Map<String, Value>| {
            keywords
                .get("properties")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let (before, after) = (of(old), of(new));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let below = json::join(pointer, name);
            let (a, b) = (before.get(name), after.get(name));
            // A field that is ruled out by name is no field of the object.
            let ruled_out = |schema: Option<&Value>, side: Side<'_>| {
                schema.is_some_and(|schema| is_impossible(&side.keywords(schema)))
            };
            let (no_a, no_b) = (ruled_out(a, self.old), ruled_out(b, self.new));
            match (a.filter(|_| !no_a), b.filter(|_| !no_b)) {
                (None, None) => {}
                (Some(before), Some(after)) => {
                    self.schema(&below, before, after, binding, depth + 1);
                }
                (before, after) => {
                    // The side that does not have the field decides what a stray one means.
                    let (action, other, side, schema) = match after {
                        Some(schema) => (Action::Added, old, self.new, schema),
                        None => (
                            Action::Removed,
                            new,
                            self.old,
                            before.unwrap_or(&Value::Null),
                        ),
                    };
                    let what = if is_closed(other) || no_a || no_b {
                        What::ClosedProperty
                    } else {
                        What::Property
                    };
                    let keywords = side.keywords(schema);
                    let shown = described(&keywords);
                    let (was, is) = match action {
                        Action::Added => (None, Some(shown)),
                        Action::Removed | Action::Narrowed | Action::Widened | Action::Changed => {
                            (Some(shown), None)
                        }
                    };
                    let duty = side.is_duty(&keywords).unwrap_or(binding);
                    let note = Note::new(what, action, self.direction)
                        .between(was, is)
                        .binding(duty);
                    self.ledger.note(&(self.place)(&below), note);
                }
            }
        }
    }

    /// Items, and members under free names.
    fn inner(
        &mut self,
        pointer: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        binding: bool,
        depth: usize,
    ) {
        for key in ["items", "additionalProperties"] {
            let schema =
                |side: &Map<String, Value>| side.get(key).filter(|s| s.is_object()).cloned();
            if let (Some(a), Some(b)) = (schema(old), schema(new)) {
                self.schema(&format!("{pointer}/*"), &a, &b, binding, depth + 1);
            }
        }
    }
}

/// Whether nothing can fit: `not: {}`, which `false` stands for.
fn is_impossible(keywords: &Map<String, Value>) -> bool {
    keywords.get("not").is_some_and(|not| match not {
        Value::Bool(allows) => *allows,
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    })
}

fn is_closed(keywords: &Map<String, Value>) -> bool {
    keywords.get("additionalProperties") == Some(&Value::Bool(false))
}

/// A schema in a few words, without texts.
fn described(keywords: &Map<String, Value>) -> String {
    let shaping: Map<String, Value> = keywords
        .iter()
        .filter(|(key, _)| {
            !WORDS.contains(&key.as_str()) && !key.starts_with("x-") && key.as_str() != "properties"
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    json::excerpt(&Value::Object(shaping), 200)
}

/// One place while its keywords are compared.
struct Place<'p, 'w> {
    walk: &'p mut Walk<'w>,
    pointer: &'p str,
    old: &'p Map<String, Value>,
    new: &'p Map<String, Value>,
    binding: bool,
}

impl Place<'_, '_> {
    fn note(&mut self, what: What, action: Action, tell: impl FnOnce(Note) -> Note) {
        let subject = (self.walk.place)(self.pointer);
        let note = Note::new(what, action, self.walk.direction).binding(self.binding);
        self.walk.ledger.note(&subject, tell(note));
    }

    fn pair(&self, key: &str) -> (Option<Value>, Option<Value>) {
        (self.old.get(key).cloned(), self.new.get(key).cloned())
    }

    /// Both values of a keyword where they differ.
    fn difference(&self, key: &str) -> Option<(Option<Value>, Option<Value>)> {
        let (old, new) = self.pair(key);
        let same = match (&old, &new) {
            (Some(a), Some(b)) => equal(&bare(a), &bare(b)),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (!same).then_some((old, new))
    }

    fn words(&mut self) {
        for key in WORDS {
            if let Some((old, new)) = self.difference(key) {
                self.note(What::Words, Action::Changed, |n| {
                    n.detail(key).values(old.as_ref(), new.as_ref())
                });
            }
        }
    }

    fn types(&mut self) {
        let (old, new) = (types(self.old), types(self.new));
        let action = match (old.is_subset(&new), new.is_subset(&old)) {
            (true, true) => return,
            (true, false) => Action::Widened,
            (false, true) => Action::Narrowed,
            (false, false) => Action::Changed,
        };
        let words = |types: BTreeSet<&'static str>| {
            Some(types.into_iter().collect::<Vec<_>>().join(" or "))
        };
        self.note(What::Type, action, |n| n.between(words(old), words(new)));
    }

    fn enumeration(&mut self) {
        let (old, new) = match (enumerated(self.old), enumerated(self.new)) {
            (None, None) => return,
            (None, Some(values)) => {
                let values = Value::Array(values);
                return self.note(What::Enumeration, Action::Narrowed, |n| {
                    n.values(None, Some(&values))
                });
            }
            (Some(values), None) => {
                let values = Value::Array(values);
                return self.note(What::Enumeration, Action::Widened, |n| {
                    n.values(Some(&values), None)
                });
            }
            (Some(old), Some(new)) => (old, new),
        };
        let lacks = |list: &[Value], value: &Value| !list.iter().any(|v| equal(v, value));
        for value in old.iter().filter(|v| lacks(&new, v)) {
            self.note(What::EnumValue, Action::Removed, |n| {
                n.detail(&plain(value))
                    .values(Some(value), None)
                    .value(value)
            });
        }
        for value in new.iter().filter(|v| lacks(&old, v)) {
            self.note(What::EnumValue, Action::Added, |n| {
                n.detail(&plain(value))
                    .values(None, Some(value))
                    .value(value)
            });
        }
    }

    fn bounds(&mut self) {
        let number = |v: &Option<Value>| v.as_ref().and_then(Value::as_f64);
        for (key, is_upper) in LOWER
            .map(|k| (k, false))
            .into_iter()
            .chain(UPPER.map(|k| (k, true)))
        {
            let Some((old, new)) = self.difference(key) else {
                continue;
            };
            let action = match (number(&old), number(&new)) {
                (None, _) => Action::Narrowed,
                (_, None) => Action::Widened,
                (Some(a), Some(b)) => match a.partial_cmp(&b) {
                    Some(Ordering::Less) if is_upper => Action::Widened,
                    Some(Ordering::Greater) if !is_upper => Action::Widened,
                    Some(Ordering::Less | Ordering::Greater) => Action::Narrowed,
                    // Too near for a float, or no number: not ordered here.
                    Some(Ordering::Equal) | None => Action::Changed,
                },
            };
            self.note(What::Bound, action, |n| {
                n.detail(key).values(old.as_ref(), new.as_ref())
            });
        }
        for key in UNORDERED {
            self.presence(What::Bound, key, &Value::Bool(false));
        }
    }

    fn forms(&mut self) {
        for key in FORMS {
            self.presence(What::Form, key, &Value::Null);
        }
    }

    /// A condition whose presence narrows; `nothing` is how it says that it asks for nothing.
    fn presence(&mut self, what: What, key: &str, nothing: &Value) {
        let Some((old, new)) = self.difference(key) else {
            return;
        };
        let asks = |v: &Option<Value>| v.as_ref().is_some_and(|v| v != nothing);
        let action = match (asks(&old), asks(&new)) {
            (false, false) => return,
            (false, true) => Action::Narrowed,
            (true, false) => Action::Widened,
            (true, true) => Action::Changed,
        };
        self.note(what, action, |n| {
            n.detail(key).values(old.as_ref(), new.as_ref())
        });
    }

    fn default(&mut self) {
        let Some((old, new)) = self.difference("default") else {
            return;
        };
        let action = match (&old, &new) {
            (None, _) => Action::Added,
            (_, None) => Action::Removed,
            (Some(_), Some(_)) => Action::Changed,
        };
        self.note(What::Default, action, |n| {
            n.values(old.as_ref(), new.as_ref())
        });
    }

    fn conditions(&mut self) {
        for key in CONDITIONS {
            self.presence(What::Shape, key, &Value::Null);
        }
        for (key, more_is_wider) in ANY.map(|k| (k, true)).into_iter().chain([("allOf", false)]) {
            let list = |keywords: &Map<String, Value>| {
                keywords
                    .get(key)
                    .and_then(Value::as_array)
                    .map(|branches| branches.iter().map(bare).collect::<Vec<_>>())
            };
            let within = |a: &[Value], b: &[Value]| a.iter().all(|v| b.iter().any(|w| equal(v, w)));
            let action = match (list(self.old), list(self.new)) {
                (None, None) => continue,
                (None, Some(_)) => Action::Narrowed,
                (Some(_), None) => Action::Widened,
                (Some(old), Some(new)) => match (within(&old, &new), within(&new, &old)) {
                    (true, true) => continue,
                    (true, false) if more_is_wider => Action::Widened,
                    (false, true) if !more_is_wider => Action::Widened,
                    (true, false) | (false, true) => Action::Narrowed,
                    (false, false) => Action::Changed,
                },
            };
            let (old, new) = self.pair(key);
            self.note(What::Shape, action, |n| {
                n.detail(key).values(old.as_ref(), new.as_ref())
            });
        }
    }

    /// Fields that must be there. One that is gone altogether is told of as a field; in a request
    /// its absence has to be taken as well.
    fn required(&mut self) {
        let (old, new) = (required(self.old), required(self.new));
        let listed = |keywords: &Map<String, Value>, name: &str| {
            keywords
                .get("properties")
                .is_some_and(|p| p.get(name).is_some())
        };
        for name in new.difference(&old) {
            self.required_of(name, Action::Added);
        }
        for name in old.difference(&new) {
            if self.walk.direction == Direction::Request || listed(self.new, name) {
                self.required_of(name, Action::Removed);
            }
        }
    }

    fn required_of(&mut self, name: &str, action: Action) {
        let property = |keywords: &Map<String, Value>| {
            keywords
                .get("properties")
                .and_then(|p| p.get(name))
                .cloned()
                .unwrap_or_default()
        };
        let duties = [
            self.walk
                .old
                .is_duty(&self.walk.old.keywords(&property(self.old))),
            self.walk
                .new
                .is_duty(&self.walk.new.keywords(&property(self.new))),
        ];
        let binding = match duties {
            [None, None] => self.binding,
            [a, b] => a.unwrap_or_default() || b.unwrap_or_default(),
        };
        let subject = (self.walk.place)(&json::join(self.pointer, name));
        let note = Note::new(What::Required, action, self.walk.direction).binding(binding);
        self.walk.ledger.note(&subject, note);
    }

    fn other_fields(&mut self) {
        let describes = |k: &Map<String, Value>| {
            k.contains_key("properties") || k.contains_key("additionalProperties")
        };
        if !describes(self.old) || !describes(self.new) {
            return;
        }
        let action = match (openness(self.old), openness(self.new)) {
            (a, b) if a == b => return,
            (a, b) if a < b => Action::Widened,
            _ => Action::Narrowed,
        };
        let word = |keywords: &Map<String, Value>| {
            let word = match openness(keywords) {
                Openness::Closed => "none",
                Openness::Shaped => "of a given shape",
                Openness::Open => "any",
            };
            Some(word.to_owned())
        };
        let (old, new) = (word(self.old), word(self.new));
        self.note(What::OtherFields, action, |n| n.between(old, new));
    }
}

/// Which fields an object may hold beyond its list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Closed,
    Shaped,
    Open,
}

fn openness(keywords: &Map<String, Value>) -> Openness {
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

/// A schema without what says nothing about values: rule ids differ between versions of an event.
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

/// A value as part of an id.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn required(keywords: &Map<String, Value>) -> BTreeSet<String> {
    let names = keywords.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Types that may stand there; `integer` beside `number`, which holds it.
fn types(keywords: &Map<String, Value>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut add = |name: &str| {
        if matches!(name, "integer" | "number") {
            found.insert("integer");
        }
        found.extend(TYPES.into_iter().filter(|t| *t == name));
    };
    match keywords.get("type") {
        Some(Value::String(name)) => add(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(add),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            TYPES.into_iter().for_each(add);
        }
    }
    found
}

/// Values that are enumerated; a constant is a list of one.
fn enumerated(keywords: &Map<String, Value>) -> Option<Vec<Value>> {
    match (keywords.get("enum"), keywords.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        (_, None) => None,
    }
}
