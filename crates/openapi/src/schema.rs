//! Schemas of the document in the form of the rulebook: references and `allOf` folded in, OpenAPI 3.0 written as JSON Schema.
//!
//! - What the rulebook's schemas cannot say is left out: formats that are not checked, patterns of other regular expressions.
//! - It reads the tree of the document, not `Resolved`, because it writes a schema: each part that is left out is a
//!   problem with its line, and OpenAPI 3.0 has other keywords.
//! - A schema that contains itself is cut where it begins again. Work is limited for the document as a whole.

use crate::document::{Document, Part};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Schemas within schemas, at most.
const DEPTH_MAX: usize = 20;
/// Schemas that are written for the whole document, at most. References repeat what they lead to.
const SCHEMAS_MAX: usize = 400_000;
/// Schemas in one representation, at most.
const PARTS_MAX: usize = 2_000;

/// Formats that the rulebook checks.
const FORMATS: [&str; 6] = ["date-time", "date", "uri", "uri-reference", "uuid", "email"];
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// Which way a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The service returns it.
    Answer,
    /// A client sends it.
    Request,
}

/// Writes schemas.
pub(crate) struct Schemas<'d> {
    pub(crate) doc: &'d Document,
    written: Cell<usize>,
    /// How many may be written before the present representation is cut.
    until: Cell<usize>,
}

/// Where a schema stands.
#[derive(Clone)]
struct Walk {
    side: Side,
    /// What the value belongs to, such as `an order`.
    owner: String,
    /// The way to it, such as `lines.sku`.
    field: String,
    /// Whether its properties are rules, with a text and a source.
    is_ruled: bool,
    /// Pointers of the references that led here.
    within: Vec<String>,
    depth: usize,
}

impl Walk {
    fn new(side: Side, owner: &str) -> Self {
        Self {
            side,
            owner: owner.to_owned(),
            field: String::new(),
            is_ruled: side == Side::Answer,
            within: Vec::new(),
            depth: 0,
        }
    }

    fn deeper(&self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    fn unruled(&self) -> Self {
        Self {
            is_ruled: false,
            ..self.deeper()
        }
    }

    fn field(&self, name: &str) -> Self {
        let field = match self.field.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.field),
        };
        Self {
            field,
            ..self.deeper()
        }
    }
}

impl<'d> Schemas<'d> {
    pub(crate) fn new(doc: &'d Document) -> Self {
        Self {
            doc,
            written: Cell::new(0),
            until: Cell::new(0),
        }
    }

    /// A representation or a part of one, whose properties are rules.
    pub(crate) fn answer(&self, part: &Part<'d>, owner: &str) -> Map<String, Value> {
        self.schema(part, &Walk::new(Side::Answer, owner))
    }

    /// What a client sends.
    pub(crate) fn request(&self, part: &Part<'d>) -> Map<String, Value> {
        self.schema(part, &Walk::new(Side::Request, ""))
    }

    /// What is sent or returned, without rules.
    pub(crate) fn plain(&self, part: &Part<'d>, side: Side) -> Map<String, Value> {
        let walk = Walk {
            is_ruled: false,
            ..Walk::new(side, "")
        };
        self.schema(part, &walk)
    }

    fn ruled(&self, part: &Part<'d>, walk: &Walk) -> Map<String, Value> {
        let mut out = self.schema(part, walk);
        let says = format!("The {} of {} is {}.", walk.field, walk.owner, shape(&out));
        out.insert("description".to_owned(), says.into());
        out.insert("x-source".to_owned(), self.doc.source(part));
        out
    }

    fn schema(&self, part: &Part<'d>, walk: &Walk) -> Map<String, Value> {
        use conformant_yaml::Content;
        let count = self.written.get();
        if walk.depth == 0 {
            self.until.set((count + PARTS_MAX).min(SCHEMAS_MAX));
        }
        if walk.depth > DEPTH_MAX || count >= self.until.get() {
            if walk.depth > DEPTH_MAX || count == self.until.get() {
                let message =
                    "left out: the schema is nested too deeply, or references repeat it too often";
                self.doc.problem(part, message);
            }
            // Reported once for each representation.
            self.written.set(count.max(self.until.get() + 1));
            return Map::new();
        }
        self.written.set(count + 1);
        match &part.node.content {
            Content::Map(_) => {}
            Content::Bool(true) | Content::Null => return Map::new(),
            Content::Bool(false) => return object(json!({ "not": {} })),
            Content::Number(_) | Content::Text(_) | Content::List(_) => {
                self.doc.problem(part, "expected a schema");
                return Map::new();
            }
        }
        let mut out = match part.node.get("$ref") {
            Some(_) => match self.referred(part, walk) {
                Some(out) => out,
                None => return Map::new(),
            },
            None => Map::new(),
        };
        self.keywords(part, walk, &mut out);
        for branch in part.get("allOf").into_iter().flat_map(|all| all.items()) {
            let keywords = self.schema(&branch, &walk.deeper());
            self.add(&branch, &mut out, keywords);
        }
        self.alternatives(part, walk, &mut out);
        if part.is_true("nullable") {
            allow_null(&mut out);
        }
        let names: Option<Vec<String>> = out
            .get("properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().cloned().collect());
        if let (Some(names), Some(Value::Array(required))) = (names, out.get_mut("required")) {
            required.retain(|name| names.iter().any(|known| name == known));
        }
        if out.get("required").is_some_and(|r| *r == json!([])) {
            out.shift_remove("required");
        }
        out
    }

    fn referred(&self, part: &Part<'d>, walk: &Walk) -> Option<Map<String, Value>> {
        let target = self.doc.resolve(part)?;
        if walk.within.contains(&target.pointer) {
            let message = format!(
                "the schema `#{}` contains itself; its inner occurrence accepts any value",
                target.pointer
            );
            self.doc.problem(part, message);
            return Some(Map::new());
        }
        let mut inner = walk.deeper();
        inner.within.push(target.pointer.clone());
        Some(self.schema(&target, &inner))
    }

    fn keywords(&self, part: &Part<'d>, walk: &Walk, out: &mut Map<String, Value>) {
        for (key, value) in part.members() {
            let found = match key {
                "type" => self.types(&value),
                "enum" => {
                    Some(value.to_json()).filter(|v| v.as_array().is_some_and(|a| !a.is_empty()))
                }
                "const" | "default" => Some(value.to_json()),
                "properties" => self.properties(&value, walk),
                "required" => self.names(&value),
                "items" => Some(Value::Object(self.schema(&value, &walk.deeper()))),
                "additionalProperties" => match value.as_bool() {
                    Some(is_open) => (!is_open).then_some(Value::Bool(false)),
                    None => Some(Value::Object(self.schema(&value, &walk.deeper()))),
                },
                "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                    Some(Value::Object(self.schema(&value, &walk.unruled())))
                }
                "prefixItems" => {
                    let items = value.items();
                    let items =
                        items.map(|item| Value::Object(self.schema(&item, &walk.unruled())));
                    Some(items.collect())
                }
                "pattern" => self.pattern(&value),
                "format" => {
                    let known = value.node.text().filter(|f| FORMATS.contains(f));
                    known.map(Value::from)
                }
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" => self.number(&value, |n| n.is_u64()),
                "minimum" | "maximum" => self.bound(part, key, &value, out),
                "exclusiveMinimum" | "exclusiveMaximum" => match value.as_bool() {
                    // OpenAPI 3.0: a flag of the adjacent bound.
                    Some(_) => None,
                    None => self.number(&value, |n| n.is_number()),
                },
                "multipleOf" => self.number(&value, |n| n.as_f64().is_some_and(|n| n > 0.0)),
                "uniqueItems" => part.is_true(key).then_some(Value::Bool(true)),
                "contentMediaType" | "contentEncoding" => value.node.text().map(Value::from),
                "patternProperties"
                | "dependentSchemas"
                | "dependentRequired"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "minContains"
                | "maxContains"
                | "contentSchema"
                | "$dynamicRef"
                // Of earlier drafts.
                | "additionalItems"
                | "dependencies"
                | "$recursiveRef" => {
                    let message = format!("`{key}` is not checked");
                    self.doc.problem(&value, message);
                    None
                }
                _ => None,
            };
            if let Some(found) = found {
                self.add(part, out, Map::from_iter([(key.to_owned(), found)]));
            }
        }
    }

    /// `minimum` and `maximum`; with the flag of OpenAPI 3.0 they exclude the bound itself.
    fn bound(
        &self,
        part: &Part<'d>,
        key: &str,
        value: &Part<'d>,
        out: &mut Map<String, Value>,
    ) -> Option<Value> {
        let number = self.number(value, |n| n.is_number())?;
        let exclusive = match key {
            "minimum" => "exclusiveMinimum",
            _ => "exclusiveMaximum",
        };
        if part.is_true(exclusive) {
            out.insert(exclusive.to_owned(), number);
            return None;
        }
        Some(number)
    }

    fn number(&self, part: &Part<'d>, is_fine: impl Fn(&Value) -> bool) -> Option<Value> {
        let value = part.to_json();
        if is_fine(&value) {
            return Some(value);
        }
        let key = part.pointer.rsplit('/').next().unwrap_or_default();
        self.doc
            .problem(part, format!("invalid value {value} of `{key}`"));
        None
    }

    fn types(&self, part: &Part<'d>) -> Option<Value> {
        let written: Vec<&str> = match part.node.text() {
            Some(one) => vec![one],
            None => part
                .node
                .items()
                .iter()
                .filter_map(|item| item.text())
                .collect(),
        };
        let known: Vec<&str> = written
            .iter()
            .copied()
            .filter(|t| TYPES.contains(t))
            .collect();
        if known.len() != written.len() || known.is_empty() {
            self.doc
                .problem(part, format!("unknown type {}", part.to_json()));
            return None;
        }
        Some(match known[..] {
            [one] => Value::from(one),
            _ => known.into_iter().collect(),
        })
    }

    fn names(&self, part: &Part<'d>) -> Option<Value> {
        let names = part.to_json();
        let is_list = names
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string));
        if !is_list {
            self.doc
                .problem(part, "`required` of a schema is a list of names");
        }
        is_list.then_some(names)
    }

    fn properties(&self, part: &Part<'d>, walk: &Walk) -> Option<Value> {
        let mut out = Map::new();
        for (name, property) in part.members() {
            let hidden = match walk.side {
                Side::Answer => "writeOnly",
                Side::Request => "readOnly",
            };
            let is_hidden = property.is_true(hidden)
                || property.node.get("$ref").is_some()
                    && self
                        .doc
                        .resolve(&property)
                        .is_some_and(|target| target.is_true(hidden));
            if is_hidden {
                continue;
            }
            let inner = walk.field(name);
            let schema = match walk.is_ruled {
                true => self.ruled(&property, &inner),
                false => self.schema(&property, &inner),
            };
            out.insert(name.to_owned(), schema.into());
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn pattern(&self, part: &Part<'d>) -> Option<Value> {
        const BYTES_MAX: usize = 2_000;
        let pattern = part.node.text()?;
        let why = if pattern.len() > BYTES_MAX {
            format!("longer than {BYTES_MAX} bytes")
        } else {
            match regex::Regex::new(pattern) {
                Ok(_) => return Some(Value::from(pattern)),
                Err(regex::Error::CompiledTooBig(_)) => {
                    "its repetitions need too much memory".to_owned()
                }
                // The last line of several names the reason: look-around, back references and others.
                Err(error) => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    last.trim_start_matches("error: ").to_owned()
                }
            }
        };
        let message = format!("the pattern `{pattern}` is not checked");
        self.doc.problem_with_help(part, message, &why);
        None
    }

    /// `oneOf` and `anyOf`. Parts that are left out may make branches alike, so that one of them is enough.
    fn alternatives(&self, part: &Part<'d>, walk: &Walk, out: &mut Map<String, Value>) {
        for key in ["oneOf", "anyOf"] {
            let Some(branches) = part.get(key) else {
                continue;
            };
            let (mut found, mut is_nullable) = (Vec::new(), false);
            for branch in branches.items() {
                if branch.text("type") == Some("null") {
                    is_nullable = true;
                } else {
                    found.push(branch);
                }
            }
            if let [only] = &found[..] {
                self.add(only, out, self.schema(only, &walk.deeper()));
                if is_nullable {
                    allow_null(out);
                }
                continue;
            }
            let mut schemas: Vec<Value> = found
                .iter()
                .map(|branch| Value::Object(self.schema(branch, &walk.unruled())))
                .collect();
            if is_nullable || part.is_true("nullable") {
                schemas.push(json!({ "type": "null" }));
            }
            if schemas.len() > 1 && !schemas.contains(&json!({})) {
                self.add(part, out, object(json!({ "anyOf": schemas })));
            }
        }
    }

    /// Adds the keywords of another schema, and reports those that are lost.
    fn add(&self, part: &Part<'d>, out: &mut Map<String, Value>, other: Map<String, Value>) {
        for key in merge(out, other) {
            let message = format!(
                "`{key}` is not checked: another schema of the same value has a different `{key}`"
            );
            self.doc.problem(part, message);
        }
    }
}

/// Adds null to the types and values of a schema.
fn allow_null(schema: &mut Map<String, Value>) {
    let mut types: Vec<Value> = types_of(schema).into_iter().map(Value::from).collect();
    if !types.is_empty() && !types.contains(&json!("null")) {
        types.push(json!("null"));
        schema.insert("type".to_owned(), types.into());
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum")
        && !words.contains(&Value::Null)
    {
        words.push(Value::Null);
    }
}

/// Adds what another schema demands. Where both have a keyword, the first one stays; returns the restrictions that
/// are lost by this.
fn merge(into: &mut Map<String, Value>, other: Map<String, Value>) -> BTreeSet<String> {
    const TEXTS: [&str; 3] = ["description", "default", "x-source"];
    let mut lost = BTreeSet::new();
    for (key, value) in other {
        match (into.get_mut(&key), value) {
            (None, value) => {
                into.insert(key, value);
            }
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                let new: Vec<Value> = more
                    .into_iter()
                    .filter(|name| !known.contains(name))
                    .collect();
                known.extend(new);
            }
            (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => {
                for (name, schema) in more {
                    match (known.get_mut(&name), schema) {
                        (Some(Value::Object(known)), Value::Object(schema)) => {
                            lost.extend(merge(known, schema));
                        }
                        (Some(_), _) => {}
                        (None, schema) => {
                            known.insert(name, schema);
                        }
                    }
                }
            }
            (Some(known), value) => {
                if *known != value && !TEXTS.contains(&key.as_str()) {
                    lost.insert(key);
                }
            }
        }
    }
    lost
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    let Value::Object(members) = value else {
        return Map::new();
    };
    members
}

/// The types of a schema.
pub(crate) fn types_of(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a value of the schema is neither an object nor an array.
pub(crate) fn is_single(schema: &Map<String, Value>) -> bool {
    let types = types_of(schema);
    !types.contains(&"object") && !types.contains(&"array")
}

/// What a schema demands, in words: `a string or null`.
pub(crate) fn shape(schema: &Map<String, Value>) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = words.iter().take(6).map(Value::to_string).collect();
        let count = schema["enum"].as_array().map_or(0, Vec::len);
        let more = if count > words.len() { ", …" } else { "" };
        return format!("one of {}{more}", words.join(", "));
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    let types = types_of(schema);
    if types.is_empty() {
        return "as the schema states".to_owned();
    }
    let format = schema.get("format").and_then(Value::as_str);
    let named = types.iter().map(|one| match (*one, format) {
        ("string", Some("date-time")) => "a date-time",
        ("string", Some("date")) => "a date",
        ("string", Some("uuid")) => "a UUID",
        ("string", Some("email")) => "an e-mail address",
        ("string", Some(_)) => "a URI",
        ("string", None) => "a string",
        ("integer", _) => "an integer",
        ("number", _) => "a number",
        ("boolean", _) => "a boolean",
        ("array", _) => "an array",
        ("object", _) => "an object",
        _ => "null",
    });
    named.collect::<Vec<_>>().join(" or ")
}
