//! Representations of the examples.

use crate::history::SETTLE;
use crate::predicates::prelude::*;

/// A member with these attributes, in examples.
pub(super) fn member(attributes: &str) -> Value {
    json!({
        "sid": sid("MB"), "account_sid": "AC1", "channel_sid": sid("CH"), "service_sid": sid("IS"),
        "identity": "ann", "role_sid": "RL1", "last_consumed_message_index": null,
        "last_consumption_timestamp": null, "date_created": "", "date_updated": "",
        "attributes": attributes, "url": "",
    })
}

pub(super) fn sid(prefix: &str) -> String {
    format!("{prefix}{}", "1".repeat(32))
}

/// An active execution with these parameters.
pub(super) fn execution(data: &Value) -> Value {
    json!({
        "sid": sid("FN"), "account_sid": "", "flow_sid": sid("FW"), "contact_sid": "",
        "contact_channel_address": "", "context": {"flow": {"data": data}}, "status": "active",
        "date_created": "", "date_updated": "", "url": "", "links": {},
    })
}

/// Two executions that are fetched later and show these parameters.
pub(super) fn two_executions(first: &Value, second: &Value) -> ExampleBuilder {
    let shown = json!({
        "of": "flow/create-execution",
        "shown": {"Parameters": {
            "kind": "flow/execution", "at": "/context/flow/data", "part": true, "by-value": true,
            "stays-while": {"/status": "active"}, "for-each": true,
        }},
    });
    let of = |digit: &str, data: &Value| {
        let mut shown = execution(data);
        shown["sid"] = json!(format!("FN{}", digit.repeat(32)));
        shown
    };
    let sent = json!({"FlowSid": sid("FW"), "To": "a", "From": "b", "Parameters": "{\"n\":2}"});
    let nothing = json!({});
    let made = Example::for_rule("flow", shown)
        .answered("create-execution", sent.clone(), of("2", &nothing))
        .answered("create-execution", sent, of("3", &nothing));
    // The first fetch comes after the consistency window. Each exchange of an example takes a second.
    let late = (0..=SETTLE.as_secs()).fold(made, |scene, _| {
        scene.refused("create-execution", json!({}))
    });
    let fetched = |scene: ExampleBuilder, digit: &str, data: &Value| {
        let shown = of(digit, data);
        let path = json!({"FlowSid": sid("FW"), "Sid": shown["sid"].clone()});
        scene.answered("fetch-execution", path, shown)
    };
    fetched(fetched(late, "2", first), "3", second)
}
