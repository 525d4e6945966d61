//! Approval requests from creation to their end.

use super::{World, keyed};
use crate::Fault;
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
        let mut world = World::new(&[], &[]);
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
fn parameters_of_approval_requests_have_their_bounds() {
    let logo = |res: &str, url: &str| json!({"message": "m", "logos": [{"res": res, "url": url}]});
    for (fault, refused) in [
        (Some(Fault::AuthMessageNotRequired), json!({})),
        (Some(Fault::AuthMessageNotRequired), json!({"message": ""})),
        (
            Some(Fault::AuthDetailsKey21Kept),
            json!({"message": "m", "details": keyed(21)}),
        ),
        (
            Some(Fault::AuthHiddenDetailsKey21Kept),
            json!({"message": "m", "hidden_details": keyed(21)}),
        ),
        (
            Some(Fault::AuthLogosWithoutDefaultAccepted),
            logo("low", "https://l.example"),
        ),
        (
            Some(Fault::AuthLogoHttpAccepted),
            logo("default", "http://l.example"),
        ),
        (
            Some(Fault::AuthLogoForeignResAccepted),
            json!({"message": "m", "logos": [
                {"res": "default", "url": "https://l.example"}, {"res": "tiny", "url": "https://l.example"},
            ]}),
        ),
        (None, json!({"message": "m", "details": 1})),
        (None, json!({"message": "m", "logos": "x"})),
        (None, json!({"message": "m", "seconds_to_expire": -1})),
        (None, json!({"message": "m", "seconds_to_expire": "soon"})),
    ] {
        assert!(
            World::new(&[], &[]).approval(&refused).is_err(),
            "{refused}"
        );
        if let Some(fault) = fault {
            assert!(
                World::new(&[fault], &[]).approval(&refused).is_ok(),
                "{fault:?}"
            );
        }
    }
    for (fault, accepted) in [
        (
            Fault::AuthDetailsKey20Refused,
            json!({"message": "m", "details": keyed(20)}),
        ),
        (
            Fault::AuthHiddenDetailsKey20Refused,
            json!({"message": "m", "hidden_details": keyed(20)}),
        ),
    ] {
        assert!(
            World::new(&[], &[]).approval(&accepted).is_ok(),
            "{accepted}"
        );
        assert!(
            World::new(&[fault], &[]).approval(&accepted).is_err(),
            "{fault:?}"
        );
    }
    assert!(
        World::new(&[], &[])
            .approval(&logo("default", "https://l.example"))
            .is_ok()
    );
}
