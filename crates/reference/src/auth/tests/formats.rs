//! Unknown paths.

use super::World;
use serde_json::json;

#[test]
fn unknown_places_are_not_found() {
    let mut world = World::new(&[], &[]);
    for target in [
        "protected/yaml/users/new",
        "protected/json",
        "protected/json/users/99/status",
        "protected/json/users/x/status",
        "onetouch/json/approval_requests/none",
    ] {
        assert_eq!(world.send("GET", target, None).status, 404, "{target}");
    }
    let create = world.post(
        "onetouch/json/users/99/approval_requests",
        &json!({"message": "m"}),
    );
    assert_eq!(create.status, 404);
}
