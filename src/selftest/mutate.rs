//! Generated changes of one property: what its schema forbids, one thing at a time.

use crate::json;
use crate::rulebook::Rulebook;
use serde_json::{Value, json};

/// One way to break a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mutation {
    /// Leave it out.
    Missing,
    /// Set it to null.
    Null,
    /// Set it to a value of a type that its schema does not admit.
    OtherType(Other),
    /// Set it to a word outside its enumeration.
    Foreign,
    /// Cut the last character off: a SID of 31 digits.
    Cut,
    /// Give a SID another prefix.
    Prefix,
    /// Set it to a text that has no such format.
    Format,
    /// Set it to a number above its bound.
    TooLarge,
    /// Set it to a number below its bound.
    TooSmall,
    /// Add a field that is not listed, beside it or in it.
    ExtraField,
}

/// A type that a property can be given against its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Other {
    Number,
    Text,
    Flag,
    List,
    Object,
}

impl Other {
    const ALL: [Self; 5] = [
        Self::Number,
        Self::Text,
        Self::Flag,
        Self::List,
        Self::Object,
    ];

    fn is_among(self, types: &[String]) -> bool {
        let names: &[&str] = match self {
            Self::Number => &["number", "integer"],
            Self::Text => &["string"],
            Self::Flag => &["boolean"],
            Self::List => &["array"],
            Self::Object => &["object"],
        };
        types.iter().any(|t| names.contains(&t.as_str()))
    }

    /// A value of that type, as close as can be to what stood there: the number as text, the text
    /// as a number.
    fn value(self, was: &Value) -> Value {
        match (self, was) {
            (Self::Number, _) => json!(7),
            (Self::Text, Value::Number(number)) => json!(number.to_string()),
            (Self::Text, Value::Bool(flag)) => json!(flag.to_string()),
            (Self::Text, _) => json!("7"),
            (Self::Flag, _) => json!(true),
            (Self::List, _) => json!([]),
            (Self::Object, _) => json!({}),
        }
    }
}

impl Mutation {
    /// The word in the kill matrix.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Null => "null",
            Self::OtherType(_) => "other-type",
            Self::Foreign => "foreign",
            Self::Cut => "cut",
            Self::Prefix => "prefix",
            Self::Format => "format",
            Self::TooLarge => "too-large",
            Self::TooSmall => "too-small",
            Self::ExtraField => "extra-field",
        }
    }

    /// Changes the document at `pointer` (with `*`), everywhere it leads to; false when it leads
    /// nowhere.
    pub(super) fn apply(self, document: &mut Value, pointer: &str) -> bool {
        let places: Vec<String> = match self {
            // The parent must be there; the field itself need not.
            Self::Missing => json::expand(document, pointer)
                .into_iter()
                .map(|(at, _)| at)
                .collect(),
            Self::Null
            | Self::OtherType(_)
            | Self::Foreign
            | Self::Cut
            | Self::Prefix
            | Self::Format
            | Self::TooLarge
            | Self::TooSmall => json::expand(document, pointer)
                .into_iter()
                .filter(|(_, value)| !value.is_null() || matches!(self, Self::OtherType(_)))
                .map(|(at, _)| at)
                .collect(),
            Self::ExtraField => json::expand(document, pointer)
                .into_iter()
                .filter(|(_, value)| value.is_object())
                .map(|(at, _)| at)
                .collect(),
        };
        for place in &places {
            if self == Self::Missing {
                remove(document, place);
            } else if let Some(slot) = document.pointer_mut(place) {
                self.change(slot);
            }
        }
        !places.is_empty()
    }

    fn change(self, slot: &mut Value) {
        match self {
            Self::Missing => {}
            Self::Null => *slot = Value::Null,
            Self::OtherType(other) => *slot = other.value(slot),
            Self::Foreign => *slot = json!("conformant-foreign"),
            Self::Cut => {
                if let Value::String(text) = slot {
                    text.pop();
                }
            }
            Self::Prefix => {
                if let Value::String(text) = slot {
                    *text = format!("ZZ{}", text.get(2..).unwrap_or_default());
                }
            }
            Self::Format => *slot = json!("not in its format"),
            Self::TooLarge => *slot = json!(1_000_000_007),
            Self::TooSmall => *slot = json!(-7),
            Self::ExtraField => {
                slot["conformant_extra"] = json!(1);
            }
        }
    }
}

fn remove(document: &mut Value, place: &str) {
    let Some((parent, name)) = place.rsplit_once('/') else {
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.shift_remove(&name);
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = name.parse::<usize>() {
                items.remove(index);
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

/// Every way in which the schema of this property can be broken.
pub(super) fn of_property(rulebook: &Rulebook, kind: &str, pointer: &str) -> Vec<Mutation> {
    let schema = rulebook.schema_of(kind);
    let Some(root) = schema else {
        return Vec::new();
    };
    let Some(found) = find(root, pointer) else {
        return Vec::new();
    };
    let mut mutations = Vec::new();
    if found.required {
        mutations.push(Mutation::Missing);
    }
    let types = found.types();
    let admits = |name: &str| types.is_empty() || types.iter().any(|t| t == name);
    if !types.is_empty() && !admits("null") {
        mutations.push(Mutation::Null);
    }
    // A number in place of a text and a text in place of a number come first: those are what
    // truthy comparisons let through.
    let other = Other::ALL.into_iter().find(|other| !other.is_among(&types));
    if let Some(other) = other.filter(|_| !types.is_empty()) {
        mutations.push(Mutation::OtherType(other));
    }
    if found.has("enum") {
        mutations.push(Mutation::Foreign);
    }
    if found
        .text("pattern")
        .is_some_and(|pattern| pattern.contains("{32}"))
    {
        mutations.push(Mutation::Cut);
        mutations.push(Mutation::Prefix);
    }
    if found.has("format") || found.has("contentMediaType") {
        mutations.push(Mutation::Format);
    }
    if found.has("maximum") {
        mutations.push(Mutation::TooLarge);
    }
    if found.has("minimum") {
        mutations.push(Mutation::TooSmall);
    }
    mutations
}

/// Where the object stands that the rule about unlisted fields closes.
pub(super) fn closed_at(rulebook: &Rulebook, kind: &str, rule: &str) -> String {
    let own = format!("{kind}/no-other-fields");
    if rule == own {
        return String::new();
    }
    let inner = rule
        .strip_prefix(kind)
        .and_then(|r| r.strip_suffix("/no-other-fields"))
        .unwrap_or_default();
    rulebook
        .rules
        .values()
        .filter(|r| r.id == format!("{kind}{inner}") && r.kind() == Some(kind))
        .find_map(|r| r.pointer().map(str::to_owned))
        .unwrap_or_default()
}

/// A property's schema with everything that is laid over it, and whether it must be there.
#[derive(Debug)]
struct Found<'a> {
    layers: Vec<&'a Value>,
    required: bool,
}

impl Found<'_> {
    fn has(&self, keyword: &str) -> bool {
        self.layers.iter().any(|layer| layer.get(keyword).is_some())
    }

    fn text(&self, keyword: &str) -> Option<&str> {
        self.layers
            .iter()
            .find_map(|layer| layer.get(keyword)?.as_str())
    }

    fn types(&self) -> Vec<String> {
        let of = |value: &Value| match value {
            Value::String(name) => vec![name.clone()],
            Value::Array(names) => names
                .iter()
                .filter_map(|n| n.as_str().map(str::to_owned))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        self.layers
            .iter()
            .find_map(|layer| layer.get("type").map(of))
            .unwrap_or_default()
    }
}

/// Walks down a schema along an instance pointer.
fn find<'a>(root: &'a Value, pointer: &str) -> Option<Found<'a>> {
    let mut found = Found {
        layers: layers(root, root),
        required: false,
    };
    for segment in json::segments(pointer) {
        let mut next = Vec::new();
        let mut required = false;
        for layer in &found.layers {
            let below = if segment == "*" {
                layer
                    .get("items")
                    .or_else(|| layer.get("additionalProperties"))
            } else {
                layer.get("properties").and_then(|p| p.get(&segment))
            };
            next.extend(below.into_iter().flat_map(|b| layers(root, b)));
            let names = layer.get("required").and_then(Value::as_array);
            required |= names.is_some_and(|n| n.iter().any(|name| name.as_str() == Some(&segment)));
        }
        found = Found {
            layers: next,
            required,
        };
    }
    (!found.layers.is_empty()).then_some(found)
}

/// A schema and what it refers to.
fn layers<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    const DEPTH_MAX: usize = 16;
    let mut layers = vec![schema];
    let mut current = schema;
    while let Some(reference) = current.get("$ref").and_then(Value::as_str) {
        let Some(target) = reference.strip_prefix('#').and_then(|p| root.pointer(p)) else {
            break;
        };
        layers.push(target);
        current = target;
        if layers.len() > DEPTH_MAX {
            break;
        }
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutation_changes_what_it_names_and_nothing_else() {
        let document = json!({"sid": "FW0", "n": 5, "list": [{"x": "a"}, {"x": "b"}]});
        for (mutation, pointer, changed) in [
            (
                Mutation::Missing,
                "/n",
                json!({"sid": "FW0", "list": [{"x": "a"}, {"x": "b"}]}),
            ),
            (
                Mutation::Null,
                "/sid",
                json!({"sid": null, "n": 5, "list": [{"x": "a"}, {"x": "b"}]}),
            ),
            (
                Mutation::Cut,
                "/sid",
                json!({"sid": "FW", "n": 5, "list": [{"x": "a"}, {"x": "b"}]}),
            ),
            (
                Mutation::OtherType(Other::Text),
                "/n",
                json!({"sid": "FW0", "n": "5", "list": [{"x": "a"}, {"x": "b"}]}),
            ),
            (
                Mutation::Foreign,
                "/list/*/x",
                json!({"sid": "FW0", "n": 5,
                "list": [{"x": "conformant-foreign"}, {"x": "conformant-foreign"}]}),
            ),
        ] {
            let mut copy = document.clone();
            assert!(mutation.apply(&mut copy, pointer), "{pointer}");
            assert_eq!(copy, changed);
        }
        assert!(!Mutation::Null.apply(&mut document.clone(), "/nowhere"));
    }
}
