//! Tests of message and operation events through the hooks alone.

use crate::{Fault, Reference, Settings, Variant};
use conformant_base::clock::VirtualClock;
use conformant_base::http::Request;
use serde_json::{Value, json};

const OPERATION: &[&str] = &["operation_id"];
const MESSAGE: &[&str] = &[
    "operation_id",
    "message_id",
    "attempt",
    "downstream_id",
    "from",
    "to",
    "tags",
];
const FAILURE: &[&str] = &[
    "operation_id",
    "message_id",
    "attempt",
    "downstream_id",
    "error_code",
    "from",
    "to",
    "tags",
];
const QUEUED: &[&str] = &[
    "account_sid",
    "operation_id",
    "message_id",
    "downstream_id",
    "attempt",
    "from",
    "to",
    "tags",
];

fn reference(faults: &[Fault], variants: &[Variant]) -> Reference {
    let settings = Settings {
        faults: faults.iter().copied().collect(),
        variants: variants.iter().copied().collect(),
        ..Settings::default()
    };
    Reference::new(settings, VirtualClock::default().now())
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
fn events(faults: &[Fault], variants: &[Variant], outcome: &str) -> Vec<Value> {
    let mut reference = reference(faults, variants);
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

fn all(faults: &[Fault], variants: &[Variant]) -> Vec<Vec<Value>> {
    let mut all = ["delivered", "failed", "undelivered", "read"]
        .map(|outcome| events(faults, variants, outcome))
        .to_vec();
    all.push(two_sends(faults, variants));
    all
}

/// The events of two sends over different channels, with tags that need care.
fn two_sends(faults: &[Fault], variants: &[Variant]) -> Vec<Value> {
    let mut reference = reference(faults, variants);
    for channel in ["sms", "rcs"] {
        let send = json!({
            "channel": channel, "to": ["+15550100001", "+15550100002"],
            "tags": {"a": " b ", "c": "😀"}, "outcome": "delivered",
        });
        hook(&mut reference, "send_bulk_message", &send);
    }
    let bare = json!({"channel": "sms", "to": ["+15550100001"]});
    hook(&mut reference, "send_bulk_message", &bare);
    let (_, collected) = hook(&mut reference, "collect_events", &json!({}));
    collected["events"].as_array().expect("a list").clone()
}

#[test]
fn each_kind_has_its_schema_and_exactly_its_fields() {
    for (kind, outcome, schema, fields) in [
        (
            "operation.scheduled",
            "read",
            Some("OperationScheduled/2"),
            OPERATION,
        ),
        (
            "operation.processing",
            "read",
            Some("OperationProcessing/2"),
            OPERATION,
        ),
        (
            "operation.completed",
            "read",
            Some("OperationCompleted/2"),
            OPERATION,
        ),
        ("message.queued", "read", Some("MessageQueued/3"), QUEUED),
        ("message.sent", "read", Some("MessageSent/4"), MESSAGE),
        (
            "message.delivered",
            "read",
            Some("MessageDelivered/4"),
            MESSAGE,
        ),
        ("message.failed", "failed", Some("MessageFailed/4"), FAILURE),
        (
            "message.undelivered",
            "undelivered",
            Some("MessageUndelivered/4"),
            FAILURE,
        ),
        ("message.read", "read", None, MESSAGE),
    ] {
        let events = events(&[], &[], outcome);
        let event = events
            .iter()
            .find(|event| event["type"] == json!(format!("com.svc.comms-api.{kind}")))
            .expect(kind);
        let schema = schema.map(|schema| json!(format!("CommsApi.{schema}")));
        assert_eq!(event.get("schema"), schema.as_ref(), "{kind}");
        let payload = event["payload"].as_object().expect("an object");
        assert_eq!(payload.keys().collect::<Vec<_>>(), fields, "{kind}");
        for (field, value) in payload {
            let is_object = matches!(field.as_str(), "from" | "to" | "tags");
            assert_eq!(
                (value.is_object(), value.is_string()),
                (is_object, !is_object),
                "{kind} {field}"
            );
        }
    }
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
        let types: Vec<String> = events(&[], &[], outcome)
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
fn messages_of_one_operation_share_its_id_only() {
    let events = events(&[], &[], "delivered");
    let distinct = |field: &str| {
        let values = events
            .iter()
            .filter_map(|event| event["payload"].get(field));
        values
            .map(Value::to_string)
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    assert_eq!((distinct("operation_id"), distinct("message_id")), (1, 2));
}

/// That each fault shows the self-test proves: a rule must notice it. Of a variant nothing is noticed.
#[test]
fn each_variant_changes_the_events() {
    let clean = all(&[], &[]);
    let mut seen = 0;
    for variant in Variant::ALL
        .iter()
        .filter(|variant| variant.id().starts_with("events/"))
    {
        seen += 1;
        assert_ne!(all(&[], &[*variant]), clean, "{variant:?}");
    }
    assert!(seen > 0, "{seen}");
}

#[test]
fn a_subscribed_url_receives_each_event() {
    let mut reference = reference(&[], &[]);
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
        let (status, body) = hook(&mut reference(&[], &[]), name, &args);
        assert_eq!(status, 422, "{args}");
        assert!(
            body["error"]
                .as_str()
                .is_some_and(|error| error.contains(word)),
            "{body}"
        );
    }
}
