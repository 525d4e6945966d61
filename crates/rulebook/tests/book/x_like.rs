//! Tests of `x_like`.

use conformant_rulebook::{base_name, expand_json};
use serde_json::json;

#[test]
fn own_members_replace_those_of_the_base() {
    let base = json!({
        "title": "a", "required": ["x", "y"],
        "properties": {"x": {"type": "string"}, "y": {"type": "integer"}},
    });
    let own = json!({
        "x-like": "a.yaml", "title": "b", "required": ["x"],
        "properties": {"y": {"not": {}}, "z": {"type": "null"}},
    });
    assert_eq!(base_name(&own), Some("a.yaml"));
    assert_eq!(
        expand_json(&own, &base),
        json!({
            "title": "b", "required": ["x"],
            "properties": {"x": {"type": "string"}, "y": {"not": {}}, "z": {"type": "null"}},
        })
    );
}
