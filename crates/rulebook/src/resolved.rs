//! What a schema means at a place of an instance: the one reader of references, `allOf`, alternatives and keywords.
//!
//! - A [`Place`] has the schemas that are written for a place; [`Resolved`] those with what they refer to and combine.
//!   Both borrow the bundled schema and are made for the places that a reader visits, so that loading costs nothing.
//! - [`Resolved::constraints`] has the keywords of all these schemas as one set of typed limits, and the names of those
//!   that it does not know, so that a reader can refuse to decide.
//!
//! It is in this crate, below `conformant-schema`, because pointers of rules and XML documents are read with it.

use crate::{OTHER_FIELDS_KEY, RULE_KEY};
use conformant_base::json;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keywords that lead to other places.
const FOLLOWED: [&str; 7] = [
    "properties",
    "required",
    "additionalProperties",
    "items",
    "contains",
    "propertyNames",
    "allOf",
];
/// Keywords without effect on what is accepted.
const ANNOTATIONS: [&str; 11] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// JSON types, one bit each. An integer is also a number.
pub mod types {
    pub const NONE: u8 = 0;
    pub const NULL: u8 = 1;
    pub const BOOLEAN: u8 = 2;
    pub const INTEGER: u8 = 4;
    /// Numbers that are not integers.
    pub const FRACTION: u8 = 8;
    pub const STRING: u8 = 16;
    pub const ARRAY: u8 = 32;
    pub const OBJECT: u8 = 64;
    pub const ALL: u8 = 127;
}

/// The types of a value.
pub fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => types::NULL,
        Value::Bool(_) => types::BOOLEAN,
        Value::Number(n) if n.is_i64() || n.is_u64() => types::INTEGER | types::FRACTION,
        Value::Number(_) => types::FRACTION,
        Value::String(_) => types::STRING,
        Value::Array(_) => types::ARRAY,
        Value::Object(_) => types::OBJECT,
    }
}

/// The value of `type`; none if it names another type.
fn types_of(value: &Value) -> Option<u8> {
    let one = |name: &Value| {
        Some(match name.as_str()? {
            "null" => types::NULL,
            "boolean" => types::BOOLEAN,
            "integer" => types::INTEGER,
            "number" => types::INTEGER | types::FRACTION,
            "string" => types::STRING,
            "array" => types::ARRAY,
            "object" => types::OBJECT,
            _ => return None,
        })
    };
    match value.as_array() {
        Some(names) => names.iter().try_fold(0, |all, name| Some(all | one(name)?)),
        None => one(value),
    }
}

/// How a schema applies to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Stated,
    /// As a condition on the value of one field that is not met.
    Denied,
    /// As a condition on an item, which has the fields that it lists.
    Present,
}

/// One schema, with the document of its references.
#[derive(Clone, Copy, Debug)]
struct Layer<'a> {
    root: &'a Value,
    schema: &'a Value,
    mode: Mode,
}

impl<'a> Layer<'a> {
    fn get(&self, keyword: &str) -> Option<&'a Value> {
        let is_read = self.mode != Mode::Denied || keyword == "properties";
        self.schema.get(keyword).filter(|_| is_read)
    }

    fn is_among(&self, layers: &[Self]) -> bool {
        let is_same = |l: &Self| std::ptr::eq(l.schema, self.schema) && l.mode == self.mode;
        layers.iter().any(is_same)
    }

    fn property(&self, name: &str) -> Option<&'a Value> {
        self.schema.get("properties")?.get(name)
    }

    fn required(&self) -> impl Iterator<Item = &'a str> {
        let names = self.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// A schema inside this one, or with it.
    fn with(&self, schema: &'a Value) -> Self {
        let mode = match self.mode {
            Mode::Denied => Mode::Denied,
            Mode::Stated | Mode::Present => Mode::Stated,
        };
        Self {
            schema,
            mode,
            ..*self
        }
    }

    fn target(&self) -> Option<Self> {
        let pointer = self.get("$ref")?.as_str()?.strip_prefix('#')?;
        Some(self.with(json::get(self.root, pointer)?))
    }

    fn list(&self, keyword: &str) -> impl DoubleEndedIterator<Item = Self> {
        let schemas = self.get(keyword).and_then(Value::as_array);
        schemas
            .into_iter()
            .flatten()
            .map(|schema| self.with(schema))
    }

    /// The branches of `anyOf`, `oneOf` and `if`: of each, one list of schemas applies.
    fn branches(&self) -> Result<Vec<Vec<Vec<Self>>>, String> {
        let lists = ["anyOf", "oneOf"].into_iter();
        let mut all: Vec<Vec<Vec<Self>>> = lists
            .filter(|keyword| self.get(keyword).is_some_and(Value::is_array))
            .map(|keyword| self.list(keyword).map(|branch| vec![branch]).collect())
            .collect();
        if let Some(condition) = self.get("if") {
            if !is_deniable(condition) {
                return Err(format!("the condition {condition}"));
            }
            let met = self.with(condition);
            let denied = Self {
                mode: Mode::Denied,
                ..met
            };
            let branch = |one: Self, keyword: &str| {
                let rest = self.get(keyword).map(|schema| self.with(schema));
                std::iter::once(one).chain(rest).collect()
            };
            all.push(vec![branch(met, "then"), branch(denied, "else")]);
        }
        Ok(all)
    }
}

/// Whether the negation of a condition is known: it is about the values of one field.
fn is_deniable(condition: &Value) -> bool {
    if condition.get("const").is_some() || condition.get("enum").is_some() {
        return true;
    }
    let properties = condition.get("properties").and_then(Value::as_object);
    properties.is_some_and(|fields| fields.len() == 1 && fields.values().all(is_deniable))
}

/// The schemas that are written for one place.
#[derive(Clone, Debug, Default)]
pub struct Place<'a>(Vec<Layer<'a>>);

impl<'a> Place<'a> {
    /// The place of a whole instance.
    pub fn root(schema: &'a Value) -> Self {
        Self::within(schema, schema)
    }

    /// The place of a schema inside a document.
    pub fn within(root: &'a Value, schema: &'a Value) -> Self {
        Self(vec![Layer {
            root,
            schema,
            mode: Mode::Stated,
        }])
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The place with the schemas of another one, too.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// All schemas that may apply: with references, and the branches of `allOf`, `anyOf`, `oneOf`, `then` and `else`.
    pub fn any(self) -> Resolved<'a> {
        self.resolved(Follow::Any)
    }

    /// The schemas that always apply: with references and the branches of `allOf`. Alternatives remain keywords.
    pub fn always(self) -> Resolved<'a> {
        self.resolved(Follow::Always)
    }

    fn resolved(self, follow: Follow) -> Resolved<'a> {
        let (lists, single): (&[&str], &[&str]) = match follow {
            Follow::Any => (&["allOf", "anyOf", "oneOf"], &["then", "else"]),
            Follow::Always | Follow::Branch => (&["allOf"], &[]),
        };
        let mut layers: Vec<Layer<'a>> = Vec::new();
        for written in self.0 {
            let mut waiting = vec![written];
            while let Some(layer) = waiting.pop() {
                if layer.is_among(&layers) || *layer.schema == Value::Bool(true) {
                    continue;
                }
                layers.push(layer);
                waiting.extend(layer.target());
                waiting.extend(lists.iter().flat_map(|keyword| layer.list(keyword)));
                let single = single.iter().filter_map(|keyword| layer.get(keyword));
                waiting.extend(single.map(|schema| layer.with(schema)));
            }
        }
        Resolved { layers, follow }
    }

    /// Each combination of branches that may apply; an error names what cannot be decided.
    pub fn alternatives(mut self) -> Result<Vec<Resolved<'a>>, String> {
        self.0.reverse();
        let mut done = Vec::new();
        let mut open = vec![(self.0, Vec::new())];
        while let Some((mut waiting, mut layers)) = open.pop() {
            let Some(layer) = waiting.pop() else {
                done.push(Resolved {
                    layers,
                    follow: Follow::Branch,
                });
                continue;
            };
            match layer.schema {
                Value::Bool(false) => continue,
                // A schema that leads back to itself demands nothing more.
                Value::Object(_) if layer.is_among(&layers) => {
                    open.push((waiting, layers));
                    continue;
                }
                Value::Bool(true) => {}
                Value::Object(_) => layers.push(layer),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    return Err("a value that is not a schema".to_owned());
                }
            }
            if let (Some(reference), None) = (layer.get("$ref"), layer.target()) {
                return Err(format!("the reference {reference}"));
            }
            waiting.extend(layer.list("allOf").rev());
            waiting.extend(layer.target());
            let mut chosen: Vec<Vec<Layer<'a>>> = vec![Vec::new()];
            for branches in layer.branches()? {
                let with = |before: &Vec<Layer<'a>>| {
                    let each = branches.iter();
                    let each = each.map(|branch| [&before[..], &branch[..]].concat());
                    each.collect::<Vec<_>>()
                };
                chosen = chosen.iter().flat_map(with).collect();
            }
            for branch in chosen.into_iter().rev() {
                let branch = branch.into_iter().rev();
                let waiting = waiting.iter().copied().chain(branch).collect();
                open.push((waiting, layers.clone()));
            }
        }
        Ok(done)
    }
}

/// The schemas of a place without references.
#[derive(Clone, Debug)]
pub struct Resolved<'a> {
    layers: Vec<Layer<'a>>,
    follow: Follow,
}

/// Which schemas, in addition to the written ones, are part of a [`Resolved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follow {
    Any,
    Always,
    /// One branch of each alternative.
    Branch,
}

impl<'a> Resolved<'a> {
    /// The place of a member; that of unlisted members if its name is not listed.
    pub fn member(&self, name: &str) -> Place<'a> {
        self.below(|layer| {
            let unlisted = || layer.get("additionalProperties");
            layer.property(name).or_else(unlisted)
        })
    }

    /// The place of members that are not listed.
    pub fn others(&self) -> Place<'a> {
        self.below(|layer| layer.get("additionalProperties"))
    }

    pub fn items(&self) -> Place<'a> {
        self.below(|layer| layer.get("items"))
    }

    /// The place of an item that `contains` asks for. A condition on a field requires that field.
    pub fn contained(&self) -> Place<'a> {
        let mut place = self.below(|layer| layer.get("contains"));
        for layer in &mut place.0 {
            layer.mode = Mode::Present;
        }
        place
    }

    fn below(&self, inside: impl Fn(&Layer<'a>) -> Option<&'a Value>) -> Place<'a> {
        let layers = self.layers.iter();
        Place(layers.filter_map(|l| Some(l.with(inside(l)?))).collect())
    }

    /// The places along a pointer into a value. A segment names an item where the value has an array.
    pub fn along(self, value: &Value, pointer: &str) -> impl Iterator<Item = Self> {
        let (mut here, mut place) = (Some(value), self);
        json::segments(pointer).map(move |segment| {
            place = match here {
                Some(Value::Array(_)) => place.items().any(),
                _ => place.member(&segment).any(),
            };
            here = here.and_then(|value| json::get(value, &json::join("", &segment)));
            place.clone()
        })
    }

    /// All that follows a member or item named by a segment of a pointer; `*` stands for all of them.
    fn step(&self, segment: &str) -> Place<'a> {
        let is_index = !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
        let mut place = self.member(segment);
        if segment == "*" || is_index {
            place = place.and(self.items());
        }
        if segment == "*" {
            let properties = self.layers.iter().flat_map(|layer| {
                let fields = layer.get("properties").and_then(Value::as_object);
                let fields = fields.into_iter().flat_map(Map::values);
                fields.map(|schema| layer.with(schema))
            });
            place.0.extend(properties);
        }
        place
    }

    /// The place that a pointer leads to, with `*` for any item or unlisted member.
    #[must_use]
    pub fn at(self, pointer: &str) -> Self {
        json::segments(pointer).fold(self, |place, segment| {
            let below = match segment.as_str() {
                "*" => place.items().and(place.others()),
                name => place.member(name),
            };
            below.resolved(place.follow)
        })
    }

    /// Checks that a pointer, with `*` for items and members, leads to a described or unrestricted place.
    /// Returns the segment that does not resolve, with the known names there.
    pub fn reaches(mut self, pointer: &str) -> Result<(), (String, Vec<&'a str>)> {
        for segment in json::segments(pointer) {
            if self.is_free() {
                return Ok(());
            }
            let next = self.step(&segment).any();
            if next.is_empty() && !self.lists(&segment) {
                return Err((segment, self.listed()));
            }
            self = next;
        }
        Ok(())
    }

    /// Whether no schema restricts the content.
    fn is_free(&self) -> bool {
        const SHAPING: [&str; 4] = ["properties", "items", "additionalProperties", "prefixItems"];
        let is_scalar = |layer: &Layer<'_>| {
            let types = layer.get("type").map(|t| types_of(t).unwrap_or_default());
            types.is_some_and(|types| types & (types::OBJECT | types::ARRAY) == 0)
        };
        !SHAPING.iter().any(|keyword| self.has(keyword)) && !self.layers.iter().any(is_scalar)
    }

    /// Whether no schema describes the place.
    pub fn is_empty(&self) -> bool {
        !self.layers.iter().any(|layer| layer.schema.is_object())
    }

    /// The identity of the set of schemas.
    pub fn key(&self) -> Vec<*const Value> {
        let layers = self.layers.iter();
        layers.map(|l| std::ptr::from_ref(l.schema)).collect()
    }

    /// The schemas that are part of the document `root`.
    #[must_use]
    pub fn of(&self, root: &Value) -> Self {
        let mut own = self.clone();
        own.layers.retain(|layer| std::ptr::eq(layer.root, root));
        own
    }

    /// The values of a keyword.
    pub fn all(&self, keyword: &str) -> impl Iterator<Item = &'a Value> {
        self.layers.iter().filter_map(move |l| l.get(keyword))
    }

    pub fn has(&self, keyword: &str) -> bool {
        self.all(keyword).next().is_some()
    }

    /// The first value of a keyword that is a text.
    pub fn text(&self, keyword: &str) -> Option<&'a str> {
        self.all(keyword).find_map(Value::as_str)
    }

    /// The rule of this property.
    pub fn rule(&self) -> Option<&'a str> {
        self.text(RULE_KEY)
    }

    /// The rule that forbids unlisted members.
    pub fn rule_of_others(&self) -> Option<&'a str> {
        self.text(OTHER_FIELDS_KEY)
    }

    /// The schemas of a listed member, each with whether the schema around it requires that member.
    pub fn properties(&self, name: &str) -> impl Iterator<Item = (&'a Value, bool)> {
        let layers = self.layers.iter();
        layers.filter_map(move |l| Some((l.property(name)?, l.required().any(|n| n == name))))
    }

    pub fn lists(&self, name: &str) -> bool {
        self.properties(name).next().is_some()
    }

    /// Names of the listed members, in the order of the schemas.
    pub fn listed(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let fields = self.all("properties").filter_map(Value::as_object);
        let names = fields.flat_map(Map::keys).map(String::as_str);
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Names of the required members.
    pub fn required(&self) -> impl Iterator<Item = &'a str> {
        let present = self.layers.iter().filter(|l| l.mode == Mode::Present);
        let fields = present.filter_map(|l| l.get("properties")?.as_object());
        let names = self.layers.iter().flat_map(Layer::required);
        names.chain(fields.flat_map(Map::keys).map(String::as_str))
    }

    pub fn requires(&self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// Maximum length of the names of members.
    pub fn name_length(&self) -> Option<usize> {
        let limits = self.all("propertyNames");
        limits
            .filter_map(|names| count(names.get("maxLength")?))
            .min()
    }

    /// The types that any of the schemas names; none if they name none.
    pub fn possible_types(&self) -> u8 {
        let named = self.all("type").filter_map(types_of);
        let values = self.all("enum").filter_map(Value::as_array).flatten();
        let values = values.chain(self.all("const")).map(type_of);
        let members = self.all("properties").map(|_| types::OBJECT);
        named
            .chain(values)
            .chain(members)
            .fold(types::NONE, |all, one| all | one)
    }

    /// The combined limits of all schemas. Only exact for schemas that all apply.
    pub fn constraints(&self) -> Constraints<'a> {
        let mut constraints = Constraints::default();
        for layer in &self.layers {
            match layer.schema {
                Value::Object(_) if layer.mode == Mode::Denied => constraints.exclude(layer.schema),
                Value::Object(keywords) => {
                    for (keyword, value) in keywords {
                        let is_decided = match keyword.as_str() {
                            "anyOf" | "oneOf" | "if" | "then" | "else" => {
                                self.follow == Follow::Branch
                            }
                            "$ref" => layer.target().is_some(),
                            _ => constraints.fold(keyword, value).is_some(),
                        };
                        if !is_decided {
                            constraints.unknown.push((keyword, value));
                        }
                    }
                }
                Value::Bool(_)
                | Value::Null
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => constraints.types = types::NONE,
            }
        }
        constraints
    }
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// The combined limits of one place.
#[derive(Clone, Debug)]
pub struct Constraints<'a> {
    /// Allowed types, as bits of [`types`].
    pub types: u8,
    /// Allowed values.
    pub values: Option<Vec<&'a Value>>,
    /// Values that are not allowed.
    pub excluded: Vec<&'a Value>,
    pub patterns: Vec<&'a str>,
    /// Patterns that must not match.
    pub refused: Vec<&'a str>,
    pub formats: Vec<&'a str>,
    /// Minimum and maximum length.
    pub length: (usize, Option<usize>),
    /// Minimum and maximum value, of integers.
    pub range: (Option<i64>, Option<i64>),
    /// Minimum and maximum number of items.
    pub items: (usize, Option<usize>),
    /// True for a text that contains JSON.
    pub is_json: bool,
    /// Keywords that are not in these fields and may restrict values.
    pub unknown: Vec<(&'a str, &'a Value)>,
}

impl Default for Constraints<'_> {
    fn default() -> Self {
        Self {
            types: types::ALL,
            values: None,
            excluded: Vec::new(),
            patterns: Vec::new(),
            refused: Vec::new(),
            formats: Vec::new(),
            length: (0, None),
            range: (None, None),
            items: (0, None),
            is_json: false,
            unknown: Vec::new(),
        }
    }
}

impl<'a> Constraints<'a> {
    /// Adds a keyword; none if its meaning is unknown.
    fn fold(&mut self, keyword: &str, value: &'a Value) -> Option<()> {
        let most = |old: Option<usize>| old.into_iter().chain(count(value)).min();
        match keyword {
            "type" => self.types &= types_of(value)?,
            "enum" => self.keep(value.as_array()?.iter().collect()),
            "const" => self.keep(vec![value]),
            "not" => return self.refuse(value),
            "pattern" => self.patterns.push(value.as_str()?),
            "format" => self.formats.push(value.as_str()?),
            "minLength" => self.length.0 = self.length.0.max(count(value)?),
            "maxLength" => self.length.1 = Some(most(self.length.1)?),
            "minItems" => self.items.0 = self.items.0.max(count(value)?),
            "maxItems" => self.items.1 = Some(most(self.items.1)?),
            "minimum" => self.range.0 = self.range.0.into_iter().chain(value.as_i64()).max(),
            "maximum" => self.range.1 = self.range.1.into_iter().chain(value.as_i64()).min(),
            "contentMediaType" => self.is_json |= value == "application/json",
            other => {
                let is_known = FOLLOWED.contains(&other) || ANNOTATIONS.contains(&other);
                return (is_known || other.starts_with("x-")).then_some(());
            }
        }
        Some(())
    }

    fn keep(&mut self, values: Vec<&'a Value>) {
        self.values = Some(match self.values.take() {
            None => values,
            Some(old) => old.into_iter().filter(|v| values.contains(v)).collect(),
        });
    }

    /// Adds the values that a schema accepts to those that are not allowed.
    fn exclude(&mut self, schema: &'a Value) {
        let values = schema.get("enum").and_then(Value::as_array);
        let values = values.into_iter().flatten().chain(schema.get("const"));
        self.excluded.extend(values);
    }

    fn refuse(&mut self, schema: &'a Value) -> Option<()> {
        // Annotations do not restrict values.
        let keywords = schema.as_object()?.iter();
        let keywords: Vec<_> = keywords.filter(|(key, _)| *key != "examples").collect();
        match keywords.as_slice() {
            [] => self.types = types::NONE,
            // Only strings can fail a pattern, so its negation requires a string.
            [(key, pattern)] if key.as_str() == "pattern" => {
                self.types &= types::STRING;
                self.refused.push(pattern.as_str()?);
            }
            [(key, types)] if key.as_str() == "type" => self.types &= !types_of(types)?,
            _ if schema.get("const").is_some() || schema.get("enum").is_some() => {
                self.exclude(schema);
            }
            _ => return None,
        }
        Some(())
    }
}
