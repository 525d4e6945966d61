//! Tests of `content`.

use conformant_versions::Content;
use serde_json::json;

/// A schema, and documents that its closed form accepts and rejects.
#[test]
fn closed_objects_accept_the_fields_that_any_part_lists() {
    let listed = json!({ "properties": { "a": { "properties": { "b": true } } } });
    let parts = json!({
        "$defs": { "base": { "type": "object", "properties": { "a": { "type": "string" } } } },
        "allOf": [{ "$ref": "#/$defs/base" }, { "properties": { "b": true } }],
    });
    let either =
        json!({ "anyOf": [{ "type": "object", "properties": { "a": true } }, { "type": "null" }] });
    let map = json!({ "type": "object", "additionalProperties": { "properties": { "a": true } } });
    let table = [
        (
            &listed,
            json!({ "a": { "b": 1 } }),
            json!({ "a": { "c": 1 } }),
        ),
        (&listed, json!({}), json!({ "b": 1 })),
        (
            &parts,
            json!({ "a": "x", "b": 1 }),
            json!({ "a": "x", "c": 1 }),
        ),
        (&parts, json!({ "b": 1 }), json!({ "a": 1 })),
        (&either, json!({ "a": 1 }), json!({ "b": 1 })),
        (&either, json!(null), json!(1)),
        (&map, json!({ "x": { "a": 1 } }), json!({ "x": { "b": 1 } })),
    ];
    for (schema, accepted, rejected) in table {
        let closed = conformant_schema::compile(&Content::Closed.applied(schema)).unwrap();
        assert!(closed.is_valid(&accepted), "{accepted} by {schema}");
        assert!(!closed.is_valid(&rejected), "{rejected} by {schema}");
        assert_eq!(Content::Open.applied(schema), *schema);
    }
}
