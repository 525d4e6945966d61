//! Tests of `operations`.

use crate::edited::today;
use conformant_rulebook::Rulebook;
use conformant_versions::{What, rulebooks};

/// Sets the path of an operation.
fn put(book: &mut Rulebook, path: &str) {
    let service = book.services.get_mut("flow").expect("it is a service");
    let operation = service.operations.get_mut("read-flows");
    path.clone_into(&mut operation.expect("it is an operation").path);
}

#[test]
fn a_version_is_the_first_segment() {
    let (mut before, mut after) = (today(), today());
    // What changes between the two paths of an operation.
    let mut changed = |old: &str, new: &str| {
        put(&mut before, old);
        put(&mut after, new);
        let changes = rulebooks(("old", &before), ("new", &after)).changes;
        let both = changes
            .iter()
            .filter(|c| c.old.is_some() && c.new.is_some());
        both.map(|change| change.coordinates.what)
            .collect::<Vec<_>>()
    };
    for (old, new) in [
        ("/v3/Services/{Sid}", "/v2/Services/{Sid}"),
        ("/v2", "/v10"),
    ] {
        assert_eq!(changed(old, new), [What::PathVersion], "{old}");
    }
    for (old, new) in [
        ("/v2/a", "/v3/b"),
        ("", "/v3"),
        ("/", "/v3"),
        ("/vx/a", "/v3/a"),
        ("/v/a", "/v3/a"),
        ("/protected/{FORMAT}/v2", "/protected/{FORMAT}/v3"),
    ] {
        assert_eq!(changed(old, new), [What::Address], "{old}");
    }
}
