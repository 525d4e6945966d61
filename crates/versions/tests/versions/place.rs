//! Tests of `place`.

use crate::edited::of_schemas;
use conformant_versions::{Direction, schemas};
use serde_json::json;

#[test]
fn places_that_accept_nothing_in_both_versions_are_not_compared() {
    let of = |field: &str| {
        let properties = json!({"z": {"type": field}});
        json!({"type": "array", "items": {"not": {}, "properties": properties}})
    };
    let found = of_schemas(&of("string"), &of("integer"), Direction::Response);
    assert_eq!(found, []);
}

#[test]
fn another_condition_is_decided_by_two_witnesses() {
    let of = |value: &str| json!({"type": "string", "not": {"const": value}});
    let changes = schemas(&of("a"), &of("b"), Direction::Response).changes;
    let [change] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert!(!change.undecided && change.witnesses.len() == 2);
    assert!(
        change.message.starts_with(
            "condition `not` changed from {\"const\":\"a\"} to {\"const\":\"b\"}: breaking"
        ),
        "{}",
        change.message
    );
    let of = |key: &str| json!({"propertyNames": {"pattern": key}});
    let changes = schemas(&of("^(?!a)"), &of("^(?!bc)"), Direction::Response).changes;
    assert!(changes[0].undecided);
    let end = "undecided which version accepts more; counts as breaking";
    assert!(changes[0].message.ends_with(end), "{}", changes[0].message);
}

#[test]
fn each_of_several_bounds_has_a_witness_that_breaks_it() {
    let items = json!({"type": "integer"});
    let old = json!({"type": "array", "items": items});
    let new =
        json!({"type": "array", "items": items, "minItems": 1, "uniqueItems": true, "maxItems": 3});
    let changes = schemas(&old, &new, Direction::Response).changes;
    let found = changes
        .iter()
        .map(|change| (change.id.as_str(), change.witnesses[0].value.as_str()));
    let found: Vec<_> = found
        .map(|(id, value)| (id.rsplit('/').nth(1).unwrap_or_default(), value))
        .collect();
    assert_eq!(
        found,
        [
            ("max-items", "[1,1,1,1]"),
            ("min-items", "[]"),
            ("unique-items", "[1,1]")
        ]
    );
}
