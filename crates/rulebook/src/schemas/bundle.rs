//! Self-contained schemas: with definitions of referenced schemas, or with those inlined.

use super::at::At;
use super::keywords::{SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMA};
use super::references::{node_at, owner, target};
use super::{COMMON, OTHER_FIELDS_KEY, RULE_KEY};
use crate::annotations;
use crate::draft::{File, Files};
use conformant_base::json;
use conformant_yaml::{Content, Node};
use serde_json::{Map, Value, json};

/// Builds self-contained schemas.
pub(crate) struct Bundler<'a> {
    files: &'a Files,
    defs: Map<String, Value>,
}

impl<'a> Bundler<'a> {
    /// A bundler over these files.
    pub(crate) fn new(files: &'a Files) -> Self {
        Self {
            files,
            defs: Map::new(),
        }
    }

    /// The schema of a node, self-contained.
    pub(crate) fn bundle(mut self, file: &File, node: &Node, at: At) -> Value {
        let schema = self.convert(file, node, at);
        self.finish(schema)
    }

    /// Adds the referenced definitions.
    pub(crate) fn finish(self, schema: Value) -> Value {
        let Value::Object(mut members) = schema else {
            return schema;
        };
        members.remove("$schema");
        let mut whole = Map::new();
        whole.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        whole.extend(members);
        if !self.defs.is_empty() {
            whole.insert("$defs".to_owned(), Value::Object(self.defs));
        }
        Value::Object(whole)
    }

    /// A reference to a resource type, whose schema is added to the definitions.
    pub(crate) fn refer(&mut self, from: &str, reference: &str) -> Option<Value> {
        let (path, pointer) = target(self.files, from, reference).ok()?;
        let file = self.files.get(&path)?;
        let node = node_at(file, &pointer)?;
        let name = definition_name(&path, &pointer);
        if !self.defs.contains_key(&name) {
            self.defs.insert(name.clone(), Value::Bool(true));
            let at = owner(&path)
                .filter(|_| pointer.is_empty())
                .map_or_else(At::default, |(kind, prefix)| At::root(&kind, &prefix));
            let mut schema = self.convert(file, node, at);
            if let Value::Object(members) = &mut schema {
                members.remove("$schema");
                members.remove("$defs");
            }
            self.defs.insert(name.clone(), schema);
        }
        Some(json!(format!("#/$defs/{}", json::escape(&name))))
    }

    fn convert(&mut self, file: &File, node: &Node, mut at: At) -> Value {
        if node.members().is_empty() {
            return node.to_json();
        }
        let other = at.enter(node);
        let mut out = Map::new();
        for member in node.members() {
            let key = &*member.key;
            let value = match key {
                "$ref" => {
                    let reference = member.value.text().unwrap_or_default();
                    match self.refer(&file.path, reference) {
                        Some(reference) => reference,
                        None => continue,
                    }
                }
                "properties" => self.properties(file, &member.value, &at),
                "$defs" | "x-source" | "x-rule" => continue,
                _ if annotations::EXTENSIONS.contains(&key) => continue,
                _ if SCHEMA_MAPS.contains(&key) => member
                    .value
                    .members()
                    .iter()
                    .map(|m| {
                        (
                            m.key.to_string(),
                            self.convert(file, &m.value, at.restricting()),
                        )
                    })
                    .collect::<Map<_, _>>()
                    .into(),
                "items" | "additionalProperties" => self.convert(file, &member.value, at.item()),
                _ if SINGLE_SCHEMA.contains(&key) => {
                    self.convert(file, &member.value, at.restricting())
                }
                _ if SCHEMA_LISTS.contains(&key) => member
                    .value
                    .items()
                    .iter()
                    .map(|sub| self.convert(file, sub, at.restricting()))
                    .collect(),
                _ => member.value.to_json(),
            };
            out.insert(member.key.to_string(), value);
        }
        if let Some((rule, _)) = other {
            out.insert(OTHER_FIELDS_KEY.to_owned(), json!(rule));
        }
        Value::Object(out)
    }

    fn properties(&mut self, file: &File, properties: &Node, at: &At) -> Value {
        let mut out = Map::new();
        for member in properties.members() {
            let inner = if at.kind.is_empty() {
                at.clone()
            } else {
                at.property(&member.key)
            };
            let rule = (!at.kind.is_empty() && !at.is_restriction_only(&member.value))
                .then(|| inner.prefix.clone());
            let mut schema = self.convert(file, &member.value, inner);
            if let (Some(rule), Value::Object(members)) = (rule, &mut schema) {
                members.insert(RULE_KEY.to_owned(), json!(rule));
            }
            out.insert(member.key.to_string(), schema);
        }
        Value::Object(out)
    }
}

fn definition_name(path: &str, pointer: &str) -> String {
    if let Some((kind, _)) = owner(path).filter(|_| pointer.is_empty()) {
        return kind.replace('/', ".");
    }
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let stem = path.trim_end_matches(".yaml").replace('/', ".");
    if path == COMMON && pointer.starts_with("/$defs/") {
        return last.to_owned();
    }
    format!("{stem}{}", pointer.replace('/', "."))
}

/// A schema with all references inlined, without our extensions.
pub(crate) fn inline(files: &Files, file: &File, node: &Node) -> Value {
    inline_within(files, file, node, 16)
}

fn inline_within(files: &Files, file: &File, node: &Node, depth: usize) -> Value {
    let mut out = Map::new();
    match &node.content {
        Content::Map(members) => {
            for member in members {
                let key = &*member.key;
                if key.starts_with("x-") {
                    continue;
                }
                if key != "$ref" {
                    let value = inline_within(files, file, &member.value, depth);
                    out.insert(key.to_owned(), value);
                    continue;
                }
                let reached = member
                    .value
                    .text()
                    .filter(|_| depth > 0)
                    .and_then(|r| target(files, &file.path, r).ok())
                    .and_then(|(path, inside)| {
                        let file = files.get(&path)?;
                        Some((file, node_at(file, &inside)?))
                    });
                if let Some((other, target)) = reached
                    && let Value::Object(members) = inline_within(files, other, target, depth - 1)
                {
                    for (key, value) in members {
                        out.entry(key).or_insert(value);
                    }
                }
            }
            Value::Object(out)
        }
        Content::List(items) => items
            .iter()
            .map(|item| inline_within(files, file, item, depth))
            .collect(),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => node.to_json(),
    }
}
