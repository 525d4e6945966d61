//! Content models: whether objects that do not say so accept unlisted fields.

use super::canonical::named_types;
use conformant_rulebook::Place;
use serde_json::{Map, Value, json};

/// Maximum depth of references that are folded in.
const DEPTH_MAX: usize = 24;
const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Further keywords whose schemas apply to the same object.
const IN_PLACE: [&str; 2] = ["then", "else"];
/// Keywords with a schema for each name.
const NAMED: [&str; 4] = [
    "properties",
    "patternProperties",
    "$defs",
    "dependentSchemas",
];

/// Meaning of objects without `additionalProperties`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// They accept unlisted fields, as JSON Schema says.
    Open,
    /// They reject unlisted fields.
    Closed,
}

impl Content {
    /// The schema with that meaning written out.
    pub fn applied(self, schema: &Value) -> Value {
        match self {
            Self::Open => schema.clone(),
            Self::Closed => Closing { root: schema }.schema(schema, true, 0),
        }
    }
}

struct Closing<'a> {
    root: &'a Value,
}

impl Closing<'_> {
    /// Closes the objects of a schema. A branch is part of an object that closes as a whole (`is_whole`: false).
    fn schema(&self, schema: &Value, is_whole: bool, depth: usize) -> Value {
        let Value::Object(members) = schema else {
            return schema.clone();
        };
        // The target of a reference is closed by itself, unless it is only a part of an object.
        if let Some(target) = self.target(schema)
            && (is_whole || depth < DEPTH_MAX)
        {
            return match is_whole {
                true => schema.clone(),
                false => self.schema(target, false, depth + 1),
            };
        }
        let closes =
            is_whole && is_object(members) && !members.contains_key("additionalProperties");
        let closes_inside = is_whole && !closes;
        let mut out = Map::new();
        for (key, value) in members {
            let value = match (key.as_str(), value) {
                (key, Value::Object(named)) if NAMED.contains(&key) => {
                    let is_whole = key != "dependentSchemas";
                    let each = named
                        .iter()
                        .map(|(name, inner)| (name.clone(), self.schema(inner, is_whole, depth)));
                    Value::Object(each.collect())
                }
                (key, Value::Array(branches)) if BRANCHES.contains(&key) => {
                    let is_whole = closes_inside && key != "allOf";
                    let each = branches.iter();
                    each.map(|branch| self.schema(branch, is_whole, depth))
                        .collect()
                }
                (key, inner) if IN_PLACE.contains(&key) => self.schema(inner, false, depth),
                ("items" | "additionalProperties" | "contains", inner) => {
                    self.schema(inner, true, depth)
                }
                ("prefixItems", Value::Array(items)) => items
                    .iter()
                    .map(|item| self.schema(item, true, depth))
                    .collect(),
                (_, other) => other.clone(),
            };
            out.insert(key.clone(), value);
        }
        if closes {
            let mut names = Place::within(self.root, schema).any().listed();
            names.sort_unstable();
            let listed = out.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(listed) = listed {
                for name in names {
                    listed.entry(name.to_owned()).or_insert(Value::Bool(true));
                }
            }
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        Value::Object(out)
    }

    fn target(&self, schema: &Value) -> Option<&Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }
}

/// Whether a schema describes objects: by its fields, its type or all of its parts.
fn is_object(schema: &Map<String, Value>) -> bool {
    let is_named = schema.contains_key("type") && named_types(schema).contains(&"object");
    is_named || schema.contains_key("properties") || schema.contains_key("allOf")
}
