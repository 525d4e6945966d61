//! JSON Schema files: their lint, the rules that each property derives, and self-contained schemas.
//!
//! Validates no instance; `crate::schema` does.

use super::annotations;
use super::draft::{Derived, Draft, File, Files};
use super::model::Origin;
use super::problems::suggest;
use super::tree::{Content, Node};
use super::words::kebab;
use crate::json;
use crate::verdict::{Basis, Level};
use serde_json::{Map, Value, json};

/// Annotation of a bundled schema: the rule of the property that it describes.
pub const RULE_KEY: &str = "x-rule-id";
/// Annotation of a bundled schema: the rule that judges fields it does not list.
pub const OTHER_FIELDS_KEY: &str = "x-other-fields";

/// Keywords whose value is a schema.
const ONE: [&str; 9] = [
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];
/// Keywords whose value is a list of schemas.
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a mapping of schemas.
const NAMED: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
];
/// All other keywords.
const PLAIN: [&str; 32] = [
    "$schema",
    "$id",
    "$ref",
    "$comment",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "required",
    "dependentRequired",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minProperties",
    "maxProperties",
    "contentMediaType",
    "contentEncoding",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// Our extensions.
const EXTENSIONS: [&str; 17] = [
    "x-source",
    "x-rule",
    "x-partial",
    "x-list-key",
    "x-list-key-told",
    "x-echo",
    "x-echo-as",
    "x-echo-or",
    "x-beside",
    "x-identity",
    "x-parent",
    "x-immutable",
    "x-derived",
    "x-counts",
    "x-steps",
    "x-leads",
    "x-default-from",
];
/// Definitions that all services share.
const COMMON: &str = "common.yaml";
/// Formats that are asserted.
pub(crate) const FORMATS: [&str; 6] =
    ["date-time", "date", "uri", "uri-reference", "uuid", "email"];

/// Where in a representation a schema stands.
#[derive(Clone, Debug, Default)]
pub(super) struct At {
    /// Kind of the representation; empty where no rules are derived.
    pub(super) kind: String,
    /// Rule id of the enclosing property or representation.
    pub(super) prefix: String,
    /// Pointer into the representation, `*` for items.
    pub(super) instance: String,
    /// True inside `if`, `allOf` and their like, which only tighten what stands outside.
    pub(super) tightening: bool,
    /// The rule about fields that are not listed, and its level.
    pub(super) other: Option<(String, Level)>,
}

impl At {
    /// A schema that is laid beside a representation's own: it derives no rules, and its properties
    /// need not list what it requires.
    pub(super) fn aside() -> Self {
        Self {
            tightening: true,
            ..Self::default()
        }
    }

    /// The root of a representation.
    pub(super) fn root(kind: &str, prefix: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            prefix: prefix.to_owned(),
            ..Self::default()
        }
    }

    fn property(&self, name: &str) -> Self {
        Self {
            prefix: format!("{}/{}", self.prefix, kebab(name)),
            instance: json::join(&self.instance, name),
            ..self.clone()
        }
    }

    fn item(&self) -> Self {
        Self {
            instance: format!("{}/*", self.instance),
            ..self.clone()
        }
    }

    fn tighter(&self) -> Self {
        Self {
            tightening: true,
            ..self.clone()
        }
    }

    /// Which rule judges fields that this object does not list; enters it for what is below.
    fn enter(&mut self, node: &Node) -> Option<(String, Level)> {
        if self.kind.is_empty() || self.tightening {
            return None;
        }
        let closed = matches!(
            node.get("additionalProperties").map(|n| &n.content),
            Some(Content::Bool(false))
        );
        let open = node.get("additionalProperties").is_some() && !closed;
        let partial = is_partial(node) || open;
        let is_root = self.instance.is_empty();
        if partial {
            self.other = None;
        } else if closed
            && self
                .other
                .as_ref()
                .is_none_or(|(_, level)| *level != Level::Must)
        {
            self.other = Some((format!("{}/no-other-fields", self.prefix), Level::Must));
        } else if is_root {
            self.other = Some((format!("{}/no-other-fields", self.prefix), Level::Should));
        }
        let lists = node.get("properties").is_some() && !partial;
        self.other.clone().filter(|_| lists)
    }
}

fn is_partial(node: &Node) -> bool {
    matches!(
        node.get("x-partial").map(|n| &n.content),
        Some(Content::Bool(true))
    )
}

/// Where a reference leads: file path and pointer inside it.
pub(super) fn target(
    files: &Files,
    from: &str,
    reference: &str,
) -> Result<(String, String), String> {
    let (path, pointer) = reference.split_once('#').unwrap_or((reference, ""));
    let full = if path.is_empty() {
        from.to_owned()
    } else {
        join(from, path).ok_or_else(|| format!("`{reference}` leads out of the rulebook"))?
    };
    // Rules may name the common definitions without the way to them.
    let full = if path == COMMON && !files.contains_key(&full) {
        COMMON.to_owned()
    } else {
        full
    };
    let file = files
        .get(&full)
        .ok_or_else(|| format!("`{reference}` names the file `{full}`, which is not there"))?;
    let mut node = &file.node;
    for segment in json::segments(pointer) {
        node = node
            .get(&segment)
            .or_else(|| node.items().get(segment.parse::<usize>().ok()?))
            .ok_or_else(|| {
                let known = node.members().iter().map(|m| &*m.key);
                let help = suggest(&segment, known).map_or_else(String::new, |h| format!("; {h}"));
                format!("`{reference}` leads to nothing: there is no `{segment}` in {full}{help}")
            })?;
    }
    Ok((full, pointer.to_owned()))
}

/// A path relative to the folder of another one.
fn join(from: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains("://") {
        return None;
    }
    let mut names: Vec<&str> = from.split('/').collect();
    names.pop();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// The node that a pointer of a file leads to.
pub(super) fn node_at<'a>(file: &'a File, pointer: &str) -> Option<&'a Node> {
    json::segments(pointer).try_fold(&file.node, |node, segment| {
        node.get(&segment)
            .or_else(|| node.items().get(segment.parse::<usize>().ok()?))
    })
}

/// Checks a schema and adds the rules of its properties.
pub(super) fn derive(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    node: &Node,
    mut at: At,
) {
    match &node.content {
        Content::Map(_) => {}
        Content::Bool(_) => return,
        Content::Null | Content::Number(_) | Content::Text(_) | Content::List(_) => {
            draft
                .problems
                .push(file.problem(pointer, "expected a schema: a mapping, `true` or `false`"));
            return;
        }
    }
    lint(draft, files, file, pointer, node, &at);
    let above = at.other.clone();
    if at.enter(node).is_some() && at.other != above {
        derive_no_other_fields(draft, file, pointer, node, &at);
    }
    for member in node.members() {
        let key = &*member.key;
        let below = json::join(pointer, key);
        if key == "properties" {
            derive_properties(draft, files, file, &below, &member.value, &at);
        } else if NAMED.contains(&key) {
            for sub in member.value.members() {
                let at = if key == "$defs" {
                    At::default()
                } else {
                    at.tighter()
                };
                derive(
                    draft,
                    files,
                    file,
                    &json::join(&below, &sub.key),
                    &sub.value,
                    at,
                );
            }
        } else if ONE.contains(&key) {
            let at = match key {
                "items" | "additionalProperties" => at.item(),
                _ => at.tighter(),
            };
            derive(draft, files, file, &below, &member.value, at);
        } else if SEVERAL.contains(&key) {
            for (n, sub) in member.value.items().iter().enumerate() {
                derive(
                    draft,
                    files,
                    file,
                    &format!("{below}/{n}"),
                    sub,
                    at.tighter(),
                );
            }
        }
    }
}

fn derive_no_other_fields(draft: &mut Draft, file: &File, pointer: &str, node: &Node, at: &At) {
    let Some((id, level)) = at.other.clone() else {
        return;
    };
    // A page written inline has no source of its own; its list has.
    let listed = node
        .get("properties")
        .map(Node::members)
        .unwrap_or_default();
    let Some(source) = std::iter::once(node)
        .chain(listed.iter().map(|m| &m.value))
        .find(|n| n.get("x-source").is_some())
        .and_then(|n| draft.source(file, pointer, n, false))
    else {
        return;
    };
    let rule = Derived {
        id,
        says: "Only fields that are listed stand in it.".to_owned(),
        source,
        level,
        basis: if level == Level::Must {
            Basis::Stated
        } else {
            Basis::Inferred
        },
        origin: Origin::NoOtherFields {
            kind: at.kind.clone(),
        },
    };
    draft.add(file, pointer, rule.rule(file, pointer));
}

fn derive_properties(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    properties: &Node,
    at: &At,
) {
    for member in properties.members() {
        let below = json::join(pointer, &member.key);
        let inner = if at.kind.is_empty() {
            at.clone()
        } else {
            at.property(&member.key)
        };
        if !at.kind.is_empty() && (!at.tighter_only(&member.value)) {
            derive_property(draft, files, file, &below, &member.value, &inner);
        }
        derive(draft, files, file, &below, &member.value, inner);
    }
}

impl At {
    /// True for a property inside `if` and its like that only tightens another one.
    fn tighter_only(&self, node: &Node) -> bool {
        self.tightening && node.get("x-source").is_none()
    }
}

fn derive_property(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    node: &Node,
    at: &At,
) {
    let extension = draft.extension(file, node);
    // A bare reference to a resource speaks with the resource's own words and source.
    let referred = node
        .get("$ref")
        .and_then(Node::text)
        .and_then(|r| target(files, &file.path, r).ok())
        .and_then(|(path, inside)| files.get(&path).map(|f| (f, inside)));
    let (told, told_pointer, told_node) = match referred {
        Some((other, inside)) if node.get("x-source").is_none() => {
            let Some(target) = node_at(other, &inside) else {
                return;
            };
            (other, inside, target)
        }
        Some(_) | None => (file, pointer.to_owned(), node),
    };
    let named = if node.get("x-source").is_none() && told_node.get("x-source").is_none() {
        draft.source(file, pointer, node, true)
    } else {
        draft.source(told, &told_pointer, told_node, true)
    };
    let says = if node.get("description").is_some() {
        draft.says(file, pointer, node, "description")
    } else if told_node.get("description").is_some() && told.path != file.path {
        draft.says(told, &told_pointer, told_node, "description")
    } else {
        draft.says(file, pointer, node, "description")
    };
    let Some(source) = named else { return };
    let rule = Derived {
        id: at.prefix.clone(),
        says,
        source,
        level: extension.level.unwrap_or(Level::Must),
        basis: extension.basis.unwrap_or(Basis::Stated),
        origin: Origin::Property {
            kind: at.kind.clone(),
            pointer: at.instance.clone(),
        },
    };
    draft.add(file, pointer, rule.rule(file, pointer));
}

fn lint(draft: &mut Draft, files: &Files, file: &File, pointer: &str, node: &Node, at: &At) {
    if draft.is_sound {
        return;
    }
    for member in node.members() {
        let key = &*member.key;
        let known = || {
            ONE.iter()
                .chain(&SEVERAL)
                .chain(&NAMED)
                .chain(&PLAIN)
                .chain(&EXTENSIONS)
        };
        if !known().any(|k| *k == key) {
            let problem = file.problem_at(member.key_span, format!("unknown key `{key}`"));
            draft.problems.push(match suggest(key, known().copied()) {
                Some(help) => problem.help(help),
                None => problem.help("specs/README.md lists the extensions"),
            });
        }
    }
    let pattern_problem = node
        .get("pattern")
        .and_then(Node::text)
        .and_then(|pattern| draft.pattern_fault(pattern));
    let mut check = |key: &str, fault: Option<String>, help: Option<String>| {
        if let Some(fault) = fault {
            let problem = file.problem(&format!("{pointer}/{key}"), fault);
            draft.problems.push(match help {
                Some(help) => problem.help(help),
                None => problem,
            });
        }
    };
    if let Some(reference) = node.get("$ref") {
        let fault = match reference.text() {
            Some(text) => target(files, &file.path, text).err(),
            None => Some("expected a reference".to_owned()),
        };
        check("$ref", fault, None);
    }
    if pattern_problem.is_some() {
        check("pattern", pattern_problem, None);
    }
    if let Some(format) = node.get("format").and_then(Node::text) {
        let unknown = !FORMATS.contains(&format);
        check(
            "format",
            unknown.then(|| format!("unknown format `{format}`")),
            suggest(format, FORMATS),
        );
    }
    if let Some(types) = node.get("type") {
        let words: Vec<&str> = types
            .text()
            .into_iter()
            .chain(types.items().iter().filter_map(Node::text))
            .collect();
        let known = [
            "null", "boolean", "integer", "number", "string", "array", "object",
        ];
        let fault = if words.is_empty() {
            Some("expected a type or a list of types; `null` is written `\"null\"`".to_owned())
        } else {
            let wrong = words.iter().find(|w| !known.contains(w));
            wrong.map(|w| format!("unknown type `{w}`"))
        };
        check("type", fault, suggest(words.first().unwrap_or(&""), known));
    }
    if let (Some(required), Some(properties)) = (node.get("required"), node.get("properties"))
        && !at.tightening
    {
        for (n, name) in required.items().iter().enumerate() {
            let Some(name) = name.text() else { continue };
            if properties.get(name).is_none() {
                let known = properties.members().iter().map(|m| &*m.key);
                check(
                    &format!("required/{n}"),
                    Some(format!(
                        "`{name}` is required, but not among the properties"
                    )),
                    suggest(name, known),
                );
            }
        }
    }
}

/// Writes schemas that refer to nothing outside themselves.
pub(super) struct Bundler<'a> {
    files: &'a Files,
    defs: Map<String, Value>,
}

impl<'a> Bundler<'a> {
    /// A bundler over these files.
    pub(super) fn new(files: &'a Files) -> Self {
        Self {
            files,
            defs: Map::new(),
        }
    }

    /// The schema that stands there, self-contained.
    pub(super) fn bundle(mut self, file: &File, node: &Node, at: At) -> Value {
        let schema = self.convert(file, node, at);
        self.finish(schema)
    }

    /// Adds the definitions that were referred to.
    pub(super) fn finish(self, schema: Value) -> Value {
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

    /// A reference to a resource, whose schema comes into the definitions.
    pub(super) fn refer(&mut self, from: &str, reference: &str) -> Option<Value> {
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
                _ if NAMED.contains(&key) => member
                    .value
                    .members()
                    .iter()
                    .map(|m| {
                        (
                            m.key.to_string(),
                            self.convert(file, &m.value, at.tighter()),
                        )
                    })
                    .collect::<Map<_, _>>()
                    .into(),
                "items" | "additionalProperties" => self.convert(file, &member.value, at.item()),
                _ if ONE.contains(&key) => self.convert(file, &member.value, at.tighter()),
                _ if SEVERAL.contains(&key) => member
                    .value
                    .items()
                    .iter()
                    .map(|sub| self.convert(file, sub, at.tighter()))
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
            let rule = (!at.kind.is_empty() && !at.tighter_only(&member.value))
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

/// Kind and rule prefix of a file that describes a representation.
pub(super) fn owner(path: &str) -> Option<(String, String)> {
    let stem = path
        .strip_suffix(".yaml")
        .or_else(|| path.strip_suffix(".json"))?;
    match stem.split('/').collect::<Vec<_>>()[..] {
        [service, "schemas", name] => Some((
            format!("{service}/{name}"),
            format!("{service}/{}", kebab(name)),
        )),
        // Rules name the event: they outlive its versions.
        ["events", name, version] if version.bytes().all(|b| b.is_ascii_digit()) => Some((
            format!("events/{name}/{version}"),
            format!("events/{}", kebab(name)),
        )),
        _ => None,
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

/// A schema with every reference replaced by what it refers to, without our extensions.
pub(super) fn inline(files: &Files, file: &File, node: &Node) -> Value {
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
