//! Approval requests from creation to their end.

use super::{World, keyed};
use crate::{Fault, Variant};
use serde_json::{Value, json};

#[test]
fn approval_requests_end_as_the_user_or_time_decides() {
    for (hook, seconds, status, device) in [
        (Some("approve_request"), 0, "approved", true),
        (Some("deny_request"), 0, "denied", true),
        (None, 59, "pending", false),
        (None, 60, "expired", false),
    ] {
        let mut world = World::new(&[], &[]);
        let parameters =
            json!({"message": "m", "seconds_to_expire": 60, "details": null, "logos": []});
        let uuid = world.approval(&parameters).expect("accepted");
        assert_eq!(world.fetch(&uuid)["status"], json!("pending"));
        world.wait(seconds);
        if let Some(hook) = hook {
            world.hook(hook, &json!({ "uuid": uuid }));
        }
        for late in ["", "approve_request", "deny_request"] {
            if !late.is_empty() && status != "pending" {
                world.hook(late, &json!({ "uuid": uuid }));
            }
            let shown = world.fetch(&uuid);
            assert_eq!(shown["status"], json!(status), "{late}");
            assert_eq!(shown.get("device").is_some(), device, "{late}");
            assert_eq!(shown["seconds_to_expire"], json!(60));
        }
    }
}

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

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario from start to end")]
fn each_approval_fault_shows() {
    for (fault, seconds, hooks, pointer, right, wrong) in [
        (
            Fault::AuthApprovalNeverExpires,
            60,
            &[][..],
            "/status",
            json!("expired"),
            json!("pending"),
        ),
        (
            Fault::AuthApprovalExpiresEarly,
            30,
            &[],
            "/status",
            json!("pending"),
            json!("expired"),
        ),
        (
            Fault::AuthApprovalNotTaken,
            0,
            &["approve_request"],
            "/status",
            json!("approved"),
            json!("pending"),
        ),
        (
            Fault::AuthDenialNotTaken,
            0,
            &["deny_request"],
            "/status",
            json!("denied"),
            json!("pending"),
        ),
        (
            Fault::AuthDenialApproves,
            0,
            &["deny_request"],
            "/status",
            json!("denied"),
            json!("approved"),
        ),
        (
            Fault::AuthFinalStatusChanges,
            0,
            &["deny_request", "approve_request"],
            "/status",
            json!("denied"),
            json!("approved"),
        ),
        (
            Fault::AuthExpiredCanBeApproved,
            60,
            &["approve_request"],
            "/status",
            json!("expired"),
            json!("approved"),
        ),
        (
            Fault::AuthSecondsToExpireNotKept,
            0,
            &[],
            "/seconds_to_expire",
            json!(60),
            json!(120),
        ),
        (
            Fault::AuthHiddenDetailsLost,
            0,
            &[],
            "/hidden_details",
            json!({"ip": "h"}),
            json!({}),
        ),
        (
            Fault::AuthHiddenDetailsShown,
            0,
            &[],
            "/details/ip",
            Value::Null,
            json!("h"),
        ),
        (
            Fault::AuthDetailsTimestampMissing,
            0,
            &[],
            "/details/timestamp",
            json!("2026-01-01T00:00:00Z"),
            Value::Null,
        ),
        (
            Fault::AuthDeviceWhilePending,
            0,
            &[],
            "/device/id",
            Value::Null,
            json!(71_001),
        ),
        (
            Fault::AuthDeviceAfterExpiry,
            60,
            &[],
            "/device/id",
            Value::Null,
            json!(71_001),
        ),
        (
            Fault::AuthDeviceMissingWhenApproved,
            0,
            &["approve_request"],
            "/device/id",
            json!(71_001),
            Value::Null,
        ),
        (
            Fault::AuthDeviceMissingWhenDenied,
            0,
            &["deny_request"],
            "/device/id",
            json!(71_001),
            Value::Null,
        ),
        (
            Fault::AuthApprovalOtherAuthId,
            0,
            &[],
            "/_auth_id",
            json!(1001),
            json!(1002),
        ),
    ] {
        let seen = |faults: &[Fault]| {
            let mut world = World::new(faults, &[]);
            let parameters =
                json!({"message": "m", "seconds_to_expire": 60, "hidden_details": {"ip": "h"}});
            let uuid = world.approval(&parameters).expect("accepted");
            world.wait(seconds);
            for hook in hooks {
                world.hook(hook, &json!({ "uuid": uuid }));
            }
            world
                .fetch(&uuid)
                .pointer(pointer)
                .cloned()
                .unwrap_or_default()
        };
        assert_eq!((seen(&[]), seen(&[fault])), (right, wrong), "{fault:?}");
    }
}

#[test]
fn a_reaction_is_called_back_once_and_expiry_is_not() {
    for (faults, variants, hook, count) in [
        (&[][..], &[][..], Some("approve_request"), 1),
        (&[], &[], Some("deny_request"), 1),
        (&[], &[], None, 0),
        (&[], &[Variant::AuthExpiryCallback], None, 1),
        (&[], &[Variant::AuthCallbackTwice], Some("deny_request"), 2),
        (
            &[Fault::AuthApproveCallbackMissing],
            &[],
            Some("approve_request"),
            0,
        ),
        (
            &[Fault::AuthDenyCallbackMissing],
            &[],
            Some("deny_request"),
            0,
        ),
        (
            &[Fault::AuthDenyCallbackMissing],
            &[],
            Some("approve_request"),
            1,
        ),
    ] {
        let mut world = World::new(faults, variants);
        world.hook(
            "set_callback",
            &json!({"kind": "approval", "url": "http://127.0.0.1:9/x?y=1"}),
        );
        let uuid = world
            .approval(&json!({"message": "m", "seconds_to_expire": 60}))
            .expect("accepted");
        if let Some(hook) = hook {
            world.hook(hook, &json!({ "uuid": uuid }));
        }
        world.wait(60);
        world.fetch(&uuid);
        world.fetch(&uuid);
        let callbacks = world.callbacks();
        assert_eq!(callbacks.len(), count, "{faults:?} {variants:?} {hook:?}");
        for callback in callbacks {
            assert_eq!(
                (
                    callback.request.method.as_str(),
                    callback.request.target.as_str()
                ),
                ("POST", "/x?y=1")
            );
            let body: Value = serde_json::from_slice(&callback.request.body).expect("JSON");
            assert_eq!(body["uuid"], json!(uuid));
        }
    }
}
