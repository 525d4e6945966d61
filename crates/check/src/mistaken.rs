//! Recognizes a document of another type than the one that `--as` names, by the fields that only the other type has.

use conformant_rulebook::{Kind, Place, Rulebook};
use serde_json::{Map, Value};

/// The name of the type that a document of another type looks like, for `--as`.
pub(super) fn other_kind(rulebook: &Rulebook, kind: &str, bytes: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let has = |pointer: &str| document.pointer(pointer).is_some();
    if document
        .pointer("/log/entries")
        .is_some_and(Value::is_array)
    {
        return Some("har".to_owned());
    }
    if has("/specversion") && has("/type") && kind.starts_with("events/") {
        return Some("events".to_owned());
    }
    let is_page = document
        .pointer("/meta/key")
        .and_then(Value::as_str)
        .is_some_and(|key| document.get(key).is_some_and(Value::is_array));
    let other = match (kind.strip_suffix("[]"), is_page) {
        (None, true) => format!("{kind}[]"),
        (Some(item), false) if has("/sid") => item.to_owned(),
        _ => return by_fields(rulebook, kind, document.as_object()?),
    };
    rulebook.kinds.contains_key(&other).then_some(other)
}

/// The only other type that lists every field of the document and requires none that it lacks; `None` if the given type
/// does so as well.
fn by_fields(rulebook: &Rulebook, kind: &str, document: &Map<String, Value>) -> Option<String> {
    let has_its_fields = |kind: &&Kind| {
        let root = Place::root(&kind.schema);
        let (all, always) = (root.clone().any(), root.always());
        let mut required = always.required().peekable();
        required.peek().is_some()
            && required.all(|name| document.contains_key(name))
            && document.keys().all(|name| all.lists(name))
    };
    if rulebook
        .kinds
        .get(kind)
        .is_some_and(|given| has_its_fields(&given))
    {
        return None;
    }
    let mut others = rulebook.kinds.values().filter(has_its_fields);
    let other = others.next()?;
    others.next().is_none().then(|| other.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_judge::load::shared as rulebook;

    #[test]
    fn the_only_type_with_the_fields_of_a_document_is_recognized() {
        let rulebook = rulebook();
        let with_required = |kind: &str, more: &str| {
            let required = Place::root(&rulebook.kinds[kind].schema).always();
            let names = required
                .required()
                .chain((!more.is_empty()).then_some(more));
            let fields = names.map(|name| (name.to_owned(), Value::Null));
            Value::Object(fields.collect()).to_string()
        };
        for (kind, document, wanted) in [
            (
                "flow/flow",
                with_required("flow/execution", ""),
                Some("flow/execution"),
            ),
            (
                "flow/execution[]",
                with_required("flow/execution", ""),
                Some("flow/execution"),
            ),
            ("flow/execution", with_required("flow/execution", ""), None),
            ("flow/flow", with_required("flow/execution", "new"), None),
            ("flow/flow", "{}".to_owned(), None),
        ] {
            let found = other_kind(rulebook, kind, document.as_bytes());
            assert_eq!(found.as_deref(), wanted, "{kind} {document}");
        }
    }

    #[test]
    fn a_page_a_resource_a_recording_and_an_event_are_recognized() {
        let page = r#"{"flows":[],"meta":{"key":"flows"}}"#;
        for (kind, document, wanted) in [
            ("flow/flow", page, Some("flow/flow[]")),
            ("flow/flow[]", page, None),
            ("flow/flow[]", r#"{"sid":"FW0"}"#, Some("flow/flow")),
            ("flow/flow", r#"{"sid":"FW0"}"#, None),
            ("flow/flow", r#"{"log":{"entries":[]}}"#, Some("har")),
            (
                "events/MessageSent/4",
                r#"{"specversion":"1.0","type":"t","data":{}}"#,
                Some("events"),
            ),
            ("events/MessageSent/4", page, None),
            ("flow/flow", "{", None),
        ] {
            let found = other_kind(rulebook(), kind, document.as_bytes());
            assert_eq!(found.as_deref(), wanted, "{kind} {document}");
        }
    }
}
