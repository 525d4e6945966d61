//! A walk beside the schema, for what JSON Schema does not assert or not at the place we need.

use super::DEFECTS_MAX;
use super::defect::{Defect, EXTRA_FIELDS_MAX};
use crate::json;
use crate::rulebook::{OTHER_FIELDS_KEY, RULE_KEY, reach};
use serde_json::Value;
use std::collections::BTreeSet;

/// Finds what JSON Schema does not assert or not at the place we need: fields that are not listed,
/// texts that should hold JSON. Notes on the way which rules have something to judge.
pub(super) struct Walk<'a> {
    root: &'a Value,
    pub(super) judged: BTreeSet<String>,
    pub(super) defects: Vec<Defect>,
}

/// A property that must not be there is judged by its absence.
fn is_forbidden(schema: &Value) -> bool {
    schema
        .get("not")
        .and_then(Value::as_object)
        .is_some_and(serde_json::Map::is_empty)
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            judged: BTreeSet::new(),
            defects: Vec::new(),
        }
    }

    pub(super) fn visit(&mut self, pointer: &str, value: &Value, applying: &[&'a Value]) {
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
