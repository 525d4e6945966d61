//! Visits every text of a record or event, for redaction and escaping.
//!
//! Walks the JSON form of the value, so that no new field is forgotten. A new field with a fixed list of words belongs in
//! [`WITHOUT_TEXTS`], otherwise the value cannot be read back; a new map whose keys are texts belongs in [`MAPS`].

use conformant_base::redact::Redactor;
use conformant_base::text;
#[cfg(test)]
use conformant_record::RunRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::mem::take;

/// Fields that contain words of a fixed list, or numbers.
const WITHOUT_TEXTS: [&str; 7] = [
    "basis",
    "document",
    "level",
    "schema_ids",
    "subject",
    "verdict",
    "verdicts",
];

/// Fields that contain a map, whose keys are texts as well.
const MAPS: [&str; 6] = [
    "first_seen",
    "places",
    "quotes",
    "scenarios",
    "services",
    "targets",
];
/// The same for a field of a name that has no map elsewhere, with the field above it.
const MAP_BELOW: (&str, &str) = ("proof", "rules");

/// Fields whose text may have several lines.
const BLOCKS: [&str; 9] = [
    "actual",
    "body",
    "diff",
    "expected",
    "received",
    "reproduce",
    "request_body",
    "response_body",
    "sent",
];

/// Whether a text may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Line,
    Block,
}

type Visit<'a> = &'a mut dyn FnMut(&mut String, Shape);

/// Redacts every text of a record, of a part of it, or of an event.
pub fn redact<T: Serialize + DeserializeOwned>(value: &mut T, redactor: &Redactor) {
    *value = visited(value, &mut |text, _| redactor.redact_in_place(text));
}

/// A record, or a part of it, with every text escaped for display; single lines stay single.
#[must_use]
pub fn escaped<T: Serialize + DeserializeOwned>(record: &T) -> T {
    visited(record, &mut |text, shape| {
        let escaped = match shape {
            Shape::Line => text::escape_line(text),
            Shape::Block => text::escape(text),
        };
        if let Cow::Owned(escaped) = escaped {
            *text = escaped;
        }
    })
}

/// A record in which every text is the given one.
#[cfg(test)]
pub(super) fn replaced(record: &RunRecord, replacement: &str) -> RunRecord {
    visited(record, &mut |text, _| replacement.clone_into(text))
}

/// The value after a visit of each of its texts.
fn visited<T: Serialize + DeserializeOwned>(value: &T, visit: Visit) -> T {
    let mut tree = serde_json::to_value(value).expect("map keys are strings");
    visit_tree(("", ""), &mut tree, visit);
    serde_json::from_value(tree).expect("only texts have changed")
}

/// Visits the texts of a value, which has this field above it and is in this field itself.
fn visit_tree((above, field): (&str, &str), value: &mut Value, visit: Visit) {
    match value {
        Value::String(text) if BLOCKS.contains(&field) => visit(text, Shape::Block),
        Value::String(text) => visit(text, Shape::Line),
        Value::Array(items) => {
            for item in items {
                visit_tree((field, ""), item, visit);
            }
        }
        Value::Object(map) if MAPS.contains(&field) || MAP_BELOW == (above, field) => {
            for (mut key, mut value) in take(map) {
                visit(&mut key, Shape::Line);
                visit_tree((field, ""), &mut value, visit);
                map.insert(key, value);
            }
        }
        Value::Object(fields) => {
            let fields = fields.iter_mut();
            let with_texts = fields.filter(|(field, _)| !WITHOUT_TEXTS.contains(&field.as_str()));
            for (name, value) in with_texts {
                visit_tree((field, name), value, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{every_text_is, sample};
    use conformant_base::text::is_deceptive;
    use std::collections::BTreeSet;

    /// Calls `found` with the name of each field below a schema, and the schemas that its value may have.
    fn each_field(schema: &Value, defs: &Value, found: &mut dyn FnMut(&str, &Value)) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in properties.into_iter().flatten() {
            let mut open = vec![value];
            while let Some(value) = open.pop() {
                let name_of = |text: &Value| text.as_str()?.rsplit('/').next().map(str::to_owned);
                let referred = value.get("$ref").and_then(name_of);
                open.extend(referred.map(|referred| &defs[referred]));
                open.extend(value.get("items"));
                for key in ["anyOf", "oneOf"] {
                    let options = value.get(key).and_then(Value::as_array);
                    open.extend(options.into_iter().flatten());
                }
                found(name, value);
            }
        }
    }

    #[test]
    fn each_field_of_the_record_has_texts_words_or_keys_as_stated() {
        let schema = schemars::schema_for!(RunRecord).to_value();
        let defs = &schema["$defs"];
        let (mut words, mut maps) = (BTreeSet::new(), BTreeSet::new());
        let all = defs.as_object().into_iter().flat_map(|defs| defs.values());
        for schema in all.chain([&schema]) {
            each_field(schema, defs, &mut |name, value| {
                let is_word = value.get("enum").or(value.get("const")).is_some();
                if is_word {
                    words.insert(name.to_owned());
                }
                let others = value.get("additionalProperties");
                if others.is_some_and(|others| others.is_object()) {
                    maps.insert(name.to_owned());
                }
            });
        }
        let stated = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let known: BTreeSet<String> = stated(&[&MAPS[..], &[MAP_BELOW.1]].concat());
        assert_eq!(maps, known);
        let known: BTreeSet<String> = stated(&WITHOUT_TEXTS);
        assert!(words.is_subset(&known), "{words:?}");
    }

    #[test]
    fn no_text_of_a_shown_record_deceives() {
        let shown = escaped(&every_text_is("\u{1b}[2J\n::error::x\u{202e}"));
        let json = serde_json::to_string(&shown).unwrap();
        assert!(!json.contains(is_deceptive), "{json}");
        assert!(!shown.rules[0].id.contains('\n'));
        assert!(shown.findings[0].actual.contains('\n'));
    }

    #[test]
    fn ordinary_records_are_shown_as_they_are() {
        assert_eq!(escaped(&sample()), sample());
    }
}
