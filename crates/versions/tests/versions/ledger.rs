//! Tests of `ledger`.

use crate::edited::today;
use conformant_record::Level;
use conformant_versions::{Class, Direction, rulebooks, schemas};
use serde_json::json;

#[test]
fn ids_stay_apart_and_in_place_whatever_else_changes() {
    let ids = |removed: &[&str]| {
        let of = |values: Vec<&str>| json!({"properties": {"a": {"enum": values}}});
        let more = [removed, &["kept"]].concat();
        let changes = schemas(&of(more), &of(vec!["kept"]), Direction::Response).changes;
        changes.into_iter().map(|c| c.id).collect::<Vec<_>>()
    };
    let both = ids(&["user_id", "userId", "*", "+", ""]);
    let unique: std::collections::BTreeSet<_> = both.iter().collect();
    assert_eq!(unique.len(), 5, "{both:?}");
    let again = ids(&["", "+", "*", "userId", "user_id"]);
    assert_eq!(both, again);
}

#[test]
fn a_recommendation_breaks_nothing() {
    let (mut old, mut new) = (today(), today());
    let schema = &mut new.kinds.get_mut("flow/execution").unwrap().schema;
    let values = schema["properties"]["status"]["enum"].as_array_mut();
    assert!(values.and_then(Vec::pop).is_some());
    for (level, class) in [
        (Level::Must, Class::BreakingForProducers),
        (Level::Should, Class::Clarified),
    ] {
        for book in [&mut old, &mut new] {
            book.rules.get_mut("flow/execution/status").unwrap().level = level;
        }
        let changes = rulebooks(("old", &old), ("new", &new)).changes;
        let removed = changes
            .iter()
            .find(|c| c.id.ends_with("/enum-value-removed"));
        assert_eq!(removed.unwrap().class, [class]);
    }
}
