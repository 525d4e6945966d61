//! Compares the JSON Schemas of a representation.
//!
//! Traverses both field by field; `place` compares one place, `canonical` normalizes notation.

use super::canonical::{WORDS, canonical, named_types};
use super::coordinates::{Action, Direction, What};
use super::keywords::is_closed;
use super::ledger::{Ledger, Note, Subject};
use super::place::SchemaPlace;
use super::witness::{Probe, Witness, made_up, near};
use conformant_base::json;
use conformant_record::Level;
use conformant_rulebook::{RULE_KEY, Rulebook};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Maximum depth of references; deeper schemas are recursive.
const DEPTH_MAX: usize = 24;

/// Compares every representation of either rulebook. A new schema version of an event is compared with the previous
/// one in `events`.
pub(super) fn kinds(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    let names: BTreeSet<&String> = old.kinds.keys().chain(new.kinds.keys()).collect();
    for name in names {
        match (old.kinds.get(name), new.kinds.get(name)) {
            (Some(_), Some(_)) => kind(ledger, (old, name), (new, name)),
            // Pages belong to their operation or resource; event versions are compared separately.
            (Some(kind), None) | (None, Some(kind))
                if kind.page_of.is_some() || conformant_rulebook::event_version(name).is_some() => {
            }
            (before, _) => {
                let is_new = before.is_none();
                let note = Note::appears(What::Representation, is_new, direction(new, name));
                ledger.note(&Subject::representation(name, name, ""), note);
            }
        }
    }
}

/// The direction of a representation.
pub(super) fn direction(rulebook: &Rulebook, kind: &str) -> Direction {
    if rulebook.index.is_written_by_clients(kind) {
        Direction::Request
    } else {
        Direction::Response
    }
}

/// Compares one representation, or two of different names.
pub(super) fn kind(ledger: &mut Ledger, old: (&Rulebook, &str), new: (&Rulebook, &str)) {
    let (Some(before), Some(after)) = (old.0.kinds.get(old.1), new.0.kinds.get(new.1)) else {
        return;
    };
    let place = |pointer: &str| Subject::representation(old.1, new.1, pointer);
    let sides = [(old.0, &before.schema), (new.0, &after.schema)];
    let sides = sides.map(|(rulebook, root)| Side {
        rulebook: Some(rulebook),
        root,
    });
    compare(ledger, sides, direction(new.0, new.1), &place, true);
}

/// Compares two schemas without a rulebook.
pub(super) fn alone(
    ledger: &mut Ledger,
    (old, new): (&Value, &Value),
    direction: Direction,
    place: &dyn Fn(&str) -> Subject,
) {
    let sides = [old, new].map(|root| Side {
        rulebook: None,
        root,
    });
    compare(ledger, sides, direction, place, true);
}

/// Compares the schemas of a parameter.
pub(super) fn parameter(
    ledger: &mut Ledger,
    old: (&Rulebook, &Value),
    new: (&Rulebook, &Value),
    place: &dyn Fn(&str) -> Subject,
    binding: bool,
) {
    let sides = [old, new].map(|(rulebook, root)| Side {
        rulebook: Some(rulebook),
        root,
    });
    compare(ledger, sides, Direction::Request, place, binding);
}

fn compare(
    ledger: &mut Ledger,
    [old, new]: [Side<'_>; 2],
    direction: Direction,
    place: &dyn Fn(&str) -> Subject,
    binding: bool,
) {
    let mut walk = Walk {
        ledger,
        old,
        new,
        direction,
        place,
    };
    walk.schema("", old.root, new.root, binding, 0);
}

#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    /// The rulebook for references and rules, if any.
    rulebook: Option<&'a Rulebook>,
    pub(super) root: &'a Value,
}

impl Side<'_> {
    /// Canonical keywords of a schema. A branch that is a resource is kept.
    fn canonical(self, schema: &Value, depth: usize) -> Map<String, Value> {
        let resolved = |branch: &Value| match self.resource(branch) {
            Some(_) => branch.as_object().cloned().unwrap_or_default(),
            None if depth > DEPTH_MAX => self.keywords(branch),
            None => self.canonical(branch, depth + 1),
        };
        canonical(self.keywords(schema), &resolved)
    }

    /// Keywords of a schema and of its references; its own text comes first.
    pub(super) fn keywords(self, schema: &Value) -> Map<String, Value> {
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

    /// The resource of a plain reference, which is compared separately.
    fn resource(self, schema: &Value) -> Option<String> {
        let reference = schema.get("$ref")?.as_str()?;
        let name = reference
            .strip_prefix("#/$defs/")?
            .replace("~1", "/")
            .replace('.', "/");
        let known = self.rulebook?.kinds.contains_key(&name);
        known.then_some(name)
    }

    /// Whether the rule of a property is a requirement.
    pub(super) fn is_duty(self, keywords: &Map<String, Value>) -> Option<bool> {
        let id = keywords.get(RULE_KEY)?.as_str()?;
        Some(self.rulebook?.rules.get(id)?.level == Level::Must)
    }
}

/// A traversal of two schemas in parallel.
pub(super) struct Walk<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) old: Side<'a>,
    pub(super) new: Side<'a>,
    pub(super) direction: Direction,
    pub(super) place: &'a dyn Fn(&str) -> Subject,
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
        let schemas = (old, new);
        let (old, new) = (self.old.canonical(old, 0), self.new.canonical(new, 0));
        let duties = [self.old.is_duty(&old), self.new.is_duty(&new)];
        // Consumers may rely on it if it is required on either side.
        let binding = match duties {
            [None, None] => binding,
            [a, b] => a.unwrap_or_default() || b.unwrap_or_default(),
        };
        let mut at = SchemaPlace {
            walk: self,
            pointer,
            old: &old,
            new: &new,
            schemas,
            binding,
            probe: OnceCell::new(),
        };
        if !at.compare() {
            return;
        }
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
            // A field that is excluded by name does not belong to the object.
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
                    // The side without the field decides what an extra field means.
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
                    let schemas = (Value::Object(old.clone()), Value::Object(new.clone()));
                    let witnesses = self.with_field((&schemas.0, &schemas.1), name, schema, side);
                    let note = Note::new(what, action, self.direction)
                        .between(was, is)
                        .witnesses(witnesses)
                        .binding(duty);
                    self.ledger.note(&(self.place)(&below), note);
                }
            }
        }
    }

    /// An object with a field of one side that only one side accepts.
    fn with_field(
        &self,
        (old, new): (&Value, &Value),
        name: &str,
        schema: &Value,
        side: Side<'_>,
    ) -> Vec<Witness> {
        let Some(mut probe) = Probe::new((old, self.old.root), (new, self.new.root)) else {
            return Vec::new();
        };
        for (object, root) in [(old, self.old.root), (new, self.new.root)] {
            let mut object = made_up(object, root, 0);
            if let Some(members) = object.as_object_mut() {
                for value in [made_up(schema, side.root, 0), json!(7), json!("a")] {
                    members.insert(name.to_owned(), value);
                    probe.propose([Value::Object(members.clone())]);
                }
                members.remove(name);
                probe.propose([Value::Object(members.clone())]);
                for value in near(&side.keywords(schema), side.root) {
                    members.insert(name.to_owned(), value);
                    probe.propose([Value::Object(members.clone())]);
                }
            }
        }
        let (lost, gained) = probe.found();
        lost.into_iter().chain(gained).collect()
    }

    /// Items, and members with arbitrary names.
    fn inner(
        &mut self,
        pointer: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        binding: bool,
        depth: usize,
    ) {
        let key = "additionalProperties";
        let (a, b) = (old.get(key), new.get(key));
        if let (Some(a @ Value::Object(_)), Some(b @ Value::Object(_))) = (a, b) {
            self.schema(&format!("{pointer}/*"), a, b, binding, depth + 1);
        }
        // Items without a description can be anything.
        let any = Value::Bool(true);
        let holds = |side: &Map<String, Value>| named_types(side).contains(&"array");
        let is_said = |side: &Map<String, Value>| side.contains_key("items");
        if holds(old) && holds(new) && (is_said(old) || is_said(new)) {
            let (a, b) = (old.get("items"), new.get("items"));
            let (a, b) = (a.unwrap_or(&any), b.unwrap_or(&any));
            self.schema(&format!("{pointer}/*"), a, b, binding, depth + 1);
        }
    }
}

/// Whether nothing is valid: `false`, or `not: {}`.
pub(super) fn is_impossible(keywords: &Map<String, Value>) -> bool {
    keywords.get("not").is_some_and(|not| match not {
        Value::Bool(allows) => *allows,
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    })
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
