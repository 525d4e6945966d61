//! Tests of message and operation events through the hooks alone.

use crate::{Reference, Settings};
use conformant_base::clock::VirtualClock;
use conformant_base::http::Request;
use serde_json::{Value, json};

fn reference() -> Reference {
    Reference::new(Settings::default(), VirtualClock::default().now())
}

fn hook(reference: &mut Reference, name: &str, args: &Value) -> (u16, Value) {
    let mut request = Request::new("POST", format!("/_control/{name}"));
    request.body = args.to_string().into_bytes();
    let response = reference.handle(&request, VirtualClock::default().now());
    (
        response.status,
        serde_json::from_slice(&response.body).expect("JSON"),
    )
}

/// The events of one send with that outcome to two addresses.
fn events(outcome: &str) -> Vec<Value> {
    let mut reference = reference();
    let send = json!({
        "channel": "whatsapp", "to": ["+15550100001", "+15550100002"], "tags": {"a": "b"},
        "scheduled": true, "outcome": outcome,
    });
    let (_, sent) = hook(&mut reference, "send_bulk_message", &send);
    hook(&mut reference, "send_bulk_message", &send);
    let operation = json!({"operation_id": sent["operation_id"]});
    let (_, collected) = hook(&mut reference, "collect_events", &operation);
    collected["events"].as_array().expect("a list").clone()
}

#[test]
fn a_send_ends_as_its_outcome_says_for_each_message() {
    for (outcome, course) in [
        ("delivered", &["queued", "sent", "delivered"][..]),
        ("failed", &["queued", "failed"]),
        ("undelivered", &["queued", "sent", "undelivered"]),
        ("read", &["queued", "sent", "delivered", "read"]),
    ] {
        let mut expected = vec![
            "operation.scheduled".to_owned(),
            "operation.processing".to_owned(),
        ];
        for _ in 0..2 {
            expected.extend(course.iter().map(|kind| format!("message.{kind}")));
        }
        expected.push("operation.completed".to_owned());
        let types: Vec<String> = events(outcome)
            .iter()
            .map(|event| {
                event["type"]
                    .as_str()
                    .expect("text")
                    .replace("com.svc.comms-api.", "")
            })
            .collect();
        assert_eq!(types, expected, "{outcome}");
    }
}

#[test]
fn a_subscribed_url_receives_each_event() {
    let mut reference = reference();
    let subscription = json!({"kind": "events", "url": "http://127.0.0.1:9/events"});
    assert_eq!(hook(&mut reference, "set_callback", &subscription).0, 200);
    hook(
        &mut reference,
        "send_bulk_message",
        &json!({"channel": "sms", "to": ["+15550100001"]}),
    );
    let bodies: Vec<Value> = reference
        .take_callbacks()
        .iter()
        .map(|callback| serde_json::from_slice(&callback.request.body).expect("JSON"))
        .collect();
    let (_, collected) = hook(&mut reference, "collect_events", &json!({}));
    assert_eq!(json!(bodies), collected["events"]);
    assert_eq!(bodies.len(), 5);
}

#[test]
fn wrong_arguments_are_refused_with_the_reason() {
    for (name, args, word) in [
        (
            "send_bulk_message",
            json!({"channel": "voice", "to": ["x"]}),
            "voice",
        ),
        ("send_bulk_message", json!({"channel": "sms"}), "to"),
        (
            "send_bulk_message",
            json!({"channel": "sms", "to": []}),
            "to",
        ),
        (
            "send_bulk_message",
            json!({"channel": "sms", "to": ["x"], "tags": {"a": 1}}),
            "tags",
        ),
        (
            "send_bulk_message",
            json!({"channel": "sms", "to": ["x"], "outcome": "lost"}),
            "lost",
        ),
        (
            "set_callback",
            json!({"kind": "other", "url": "http://127.0.0.1:9"}),
            "other",
        ),
    ] {
        let (status, body) = hook(&mut reference(), name, &args);
        assert_eq!(status, 422, "{args}");
        assert!(
            body["error"]
                .as_str()
                .is_some_and(|error| error.contains(word)),
            "{body}"
        );
    }
}
