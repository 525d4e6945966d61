//! Registration without personal data, and its webhooks.

use super::super::application;
use super::{World, qr, registration};
use crate::{Callback, Fault, Variant};
use serde_json::{Value, json};

#[test]
fn registrations_are_pending_until_scanned_or_expired() {
    for (faults, seconds, scans, status) in [
        (&[][..], 0, false, "pending"),
        (&[], 899, false, "pending"),
        (&[], 900, false, "expired"),
        (&[], 899, true, "completed"),
        (&[], 900, true, "expired"),
        (
            &[Fault::AuthRegistrationNeverExpires],
            900,
            false,
            "pending",
        ),
        (&[Fault::AuthScanStaysPending], 0, true, "pending"),
        (&[Fault::AuthCompletedWithoutScan], 0, false, "completed"),
        (&[Fault::AuthTokenExpiredAccepted], 900, true, "completed"),
    ] {
        let mut world = World::new(faults, &[]);
        let qr = qr(&world, "u-1", 900);
        world.hook("announce_registration", &json!({"custom_user_id": "u-1"}));
        world.wait(seconds);
        if scans {
            let is_late = status == "expired";
            let scanned = world.hook("scan_registration", &json!({ "qr": qr }));
            assert_eq!(scanned, json!({"registered": !is_late}), "{faults:?}");
        }
        let seen = registration(&mut world, "u-1");
        assert_eq!(
            seen["registration"]["status"],
            json!(status),
            "{faults:?} {seconds} {scans}"
        );
        let has_id = seen["registration"]["auth_id"].is_u64();
        assert_eq!(
            has_id,
            status == "completed",
            "{faults:?} {seconds} {scans}"
        );
    }
}

#[test]
fn a_registration_expires_with_the_token_that_was_shown() {
    let mut world = World::new(&[], &[]);
    let shown = qr(&world, "u-1", 60);
    world.hook(
        "announce_registration",
        &json!({"custom_user_id": "u-1", "qr": shown}),
    );
    world.wait(59);
    assert_eq!(
        registration(&mut world, "u-1")["registration"]["status"],
        json!("pending")
    );
    world.wait(1);
    assert_eq!(
        registration(&mut world, "u-1")["registration"]["status"],
        json!("expired")
    );
}

#[test]
fn an_unknown_id_may_be_anything_but_completed() {
    for (variants, status) in [
        (&[][..], Value::Null),
        (&[Variant::AuthUnknownRegistrationPending], json!("pending")),
        (&[Variant::AuthUnknownRegistrationExpired], json!("expired")),
    ] {
        let seen = registration(&mut World::new(&[], variants), "u-9");
        assert_eq!(seen["registration"]["status"], status, "{variants:?}");
    }
}

#[test]
fn a_scan_belongs_to_the_user_of_the_phone() {
    for (faults, is_same) in [
        (&[][..], true),
        (&[Fault::AuthRegistrationOtherAuthId][..], false),
    ] {
        let mut world = World::new(faults, &[]);
        let auth_id = world.user("a@b.example", "555-010-0001");
        let (known, unknown) = (qr(&world, "u-1", 60), qr(&world, "u-2", 60));
        world.hook(
            "scan_registration",
            &json!({"qr": known, "cellphone": "5550100001", "country_code": "1"}),
        );
        world.hook("scan_registration", &json!({"qr": unknown}));
        assert_eq!(
            registration(&mut world, "u-1")["registration"]["auth_id"] == json!(auth_id),
            is_same
        );
        assert_ne!(
            registration(&mut world, "u-2")["registration"]["auth_id"],
            json!(auth_id)
        );
    }
}

/// Method and body of the webhooks for one completed and one failed scan.
fn webhooks() -> Vec<(String, Value)> {
    let mut world = World::new(&[], &[]);
    world.hook(
        "set_callback",
        &json!({"kind": "registration", "url": "http://127.0.0.1:9/hook"}),
    );
    let (right, late) = (qr(&world, "u-1", 60), qr(&world, "u-2", 0));
    world.hook(
        "scan_registration",
        &json!({"qr": right, "cellphone": "5550100001"}),
    );
    world.hook("scan_registration", &json!({ "qr": late }));
    let read = |callback: Callback| {
        let body = serde_json::from_slice(&callback.request.body).unwrap_or_default();
        (callback.request.method, body)
    };
    world.callbacks().into_iter().map(read).collect()
}

#[test]
fn webhooks_have_the_documented_shape() {
    let webhooks = webhooks();
    let [(method, completed), (_, failed)] = webhooks.as_slice() else {
        panic!("two webhooks: {webhooks:?}");
    };
    assert_eq!(method, "POST");
    let event = &completed["params"]["events"][0];
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys(completed), ["method", "url", "params"]);
    assert_eq!(keys(&completed["params"]), ["webhook_id", "events"]);
    assert_eq!(
        keys(event),
        ["event", "time", "objects", "request", "public"]
    );
    assert_eq!(event["event"], json!("user_registration_completed"));
    assert_eq!(event["time"], json!("2026-01-01T00:00:00Z"));
    assert_eq!(keys(&event["objects"]), ["app", "registration", "user"]);
    assert_eq!(
        event["objects"]["registration"],
        json!({"s_app_id": application::ID, "s_auth_id": 1001, "s_custom_id": "u-1"})
    );
    assert_eq!(event["objects"]["user"]["as_auth_ids"], json!(["1001"]));
    assert!(
        !completed.to_string().contains("5550100001"),
        "the phone is hashed"
    );
    let event = &failed["params"]["events"][0];
    assert_eq!(event["event"], json!("user_registration_failed"));
    assert_eq!(keys(&event["objects"]), ["app", "error"]);
    assert_eq!(event["objects"]["error"], json!({"s_code": "60000"}));
}
