//! Tests of `resolved`.

use conformant_rulebook::{Place, Resolved, types};
use serde_json::json;

#[test]
fn a_schema_that_leads_back_to_itself_is_read_once() {
    let schema = json!({
        "type": "object",
        "anyOf": [{"$ref": "#"}, {"required": ["a"]}],
        "allOf": [{"$ref": "#"}, {"minLength": 2}, {"maxLength": 9, "minLength": 3}],
    });
    let always = Place::root(&schema).always();
    assert_eq!(always.constraints().length, (3, Some(9)));
    assert_eq!(always.constraints().unknown.len(), 1, "the alternatives");
    let alternatives = Place::root(&schema).alternatives().unwrap();
    let requires = |place: &Resolved<'_>| place.requires("a");
    let required: Vec<bool> = alternatives.iter().map(requires).collect();
    assert_eq!(required, [false, true]);
    let limits = alternatives[0].constraints();
    assert_eq!((limits.types, limits.unknown.len()), (types::OBJECT, 0));
}

#[test]
fn pointers_reach_through_references_items_and_free_objects() {
    let schema = json!({
        "properties": {
            "meta": {"$ref": "#/$defs/meta"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "free": {"type": "object"},
        },
        "$defs": {
            "meta": {"properties": {"key": {"type": "string"}}},
            "item": {"anyOf": [{"properties": {"a": {}}}, {"type": "null"}],
                     "additionalProperties": {"type": "integer"}},
        },
    });
    for fine in [
        "",
        "/meta/key",
        "/list/*/a",
        "/list/0/a",
        "/free/x/y",
        "/*/key",
    ] {
        assert_eq!(Place::root(&schema).any().reaches(fine), Ok(()), "{fine}");
    }
    let (segment, known) = Place::root(&schema).any().reaches("/meta/kye").unwrap_err();
    assert_eq!((segment.as_str(), &known[..]), ("kye", &["key"][..]));
    assert!(
        Place::root(&schema)
            .any()
            .reaches("/meta/key/deeper")
            .is_err()
    );
}
