//! Tests of message and operation events through the hooks alone.

use crate::testing::Client;
use serde_json::{Value, json};

/// The events of one send with that outcome to two addresses.
fn events(outcome: &str) -> Vec<Value> {
    let mut client = Client::new(&[], &[]);
    let send = json!({
        "channel": "whatsapp", "to": ["+15550100001", "+15550100002"], "tags": {"a": "b"},
        "scheduled": true, "outcome": outcome,
    });
    let sent = client.hook("send_bulk_message", &send);
    client.hook("send_bulk_message", &send);
    let operation = json!({"operation_id": sent["operation_id"]});
    let collected = client.hook("collect_events", &operation);
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
    let mut client = Client::new(&[], &[]);
    let subscription = json!({"kind": "events", "url": "http://127.0.0.1:9/events"});
    client.hook("set_callback", &subscription);
    let send = json!({"channel": "sms", "to": ["+15550100001"]});
    client.hook("send_bulk_message", &send);
    let bodies = client.callbacks();
    let collected = client.hook("collect_events", &json!({}));
    assert_eq!(json!(bodies), collected["events"]);
    assert_eq!(bodies.len(), 5);
}

#[test]
fn wrong_arguments_are_refused_with_the_reason() {
    for (args, word) in [
        (json!({"channel": "voice", "to": ["x"]}), "voice"),
        (json!({"channel": "sms"}), "to"),
        (json!({"channel": "sms", "to": []}), "to"),
        (
            json!({"channel": "sms", "to": ["x"], "tags": {"a": 1}}),
            "tags",
        ),
        (
            json!({"channel": "sms", "to": ["x"], "outcome": "lost"}),
            "lost",
        ),
        (
            json!({"kind": "other", "url": "http://127.0.0.1:9"}),
            "other",
        ),
    ] {
        let is_send = args.get("channel").is_some();
        let name = if is_send {
            "send_bulk_message"
        } else {
            "set_callback"
        };
        let (status, body) = Client::new(&[], &[]).try_hook(name, &args);
        assert_eq!(status, 422, "{args}");
        let error = body["error"].as_str();
        assert!(error.is_some_and(|error| error.contains(word)), "{body}");
    }
}
