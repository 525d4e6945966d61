//! Unknown paths.

use crate::testing::Client;
use serde_json::json;

#[test]
fn unknown_places_are_not_found() {
    let mut world = Client::new(&[], &[]);
    for target in [
        "protected/yaml/users/new",
        "protected/json",
        "protected/json/users/99/status",
        "protected/json/users/x/status",
        "onetouch/json/approval_requests/none",
    ] {
        assert_eq!(world.auth("GET", target, None).status, 404, "{target}");
    }
    let create = world.post(
        "onetouch/json/users/99/approval_requests",
        &json!({"message": "m"}),
    );
    assert_eq!(create.status, 404);
}
