//! Approval requests from creation to their end.

use crate::testing::Client;
use serde_json::json;

#[test]
fn the_default_expiry_is_a_day_and_zero_is_never() {
    for (parameters, seconds, status) in [
        (json!({"message": "m"}), 86_399, "pending"),
        (json!({"message": "m"}), 86_400, "expired"),
        (
            json!({"message": "m", "seconds_to_expire": 0}),
            86_400_000,
            "pending",
        ),
        (
            json!({"message": "m", "seconds_to_expire": "0"}),
            86_400_000,
            "pending",
        ),
        (
            json!({"message": "m", "seconds_to_expire": u64::MAX}),
            86_400_000,
            "pending",
        ),
    ] {
        let mut world = Client::new(&[], &[]);
        let uuid = world.approval(&parameters).expect("accepted");
        world.wait(seconds);
        assert_eq!(
            world.fetch(&uuid)["status"],
            json!(status),
            "{parameters} {seconds}"
        );
    }
}

#[test]
fn parameters_of_approval_requests_of_another_type_are_refused() {
    for refused in [
        json!({"message": "m", "details": 1}),
        json!({"message": "m", "logos": "x"}),
        json!({"message": "m", "seconds_to_expire": -1}),
        json!({"message": "m", "seconds_to_expire": "soon"}),
    ] {
        assert!(
            Client::new(&[], &[]).approval(&refused).is_err(),
            "{refused}"
        );
    }
}
