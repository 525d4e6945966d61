//! `event-fields` with `message`: a message has one recipient and belongs to one send. Does not judge events without the
//! identifier of their message.

use super::event_emitted::Feed;
#[cfg(test)]
use super::event_emitted::{COLLECT, SEND, feed};
use super::prelude::*;
use crate::compare::as_text;
use std::collections::BTreeMap;

/// Two messages, to other recipients or of other sends, never have the same identifier.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventMessagesDiffer {
    /// Where the events come from.
    feed: Feed,
    /// The identifier of the message in each payload.
    message: String,
    /// The recipient in each payload.
    to: String,
}

/// What the first event with an identifier says about its message.
struct Message {
    send: String,
    to: Option<String>,
    site: Site,
}

impl Predicate for EventMessagesDiffer {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
        references.any_event("message", &self.message);
        references.any_event("to", &self.to);
    }

    /// Judges each message when it is first observed after another one.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let mut messages: BTreeMap<String, Message> = BTreeMap::new();
        for collected in self.feed.collected(context) {
            let Some(send) = self.feed.send_of(&collected) else {
                continue;
            };
            for (n, event) in collected.events().iter().enumerate() {
                let text = |at: &str| event.get("payload")?.pointer(at).map(as_text);
                let Some(id) = text(&self.message) else {
                    continue;
                };
                let at = format!("/events/{n}/payload{}", self.message);
                let site = Site::hook(collected.event, at);
                let to = text(&self.to);
                let Some(known) = messages.get_mut(&id) else {
                    let others = messages.values().map(|message| &message.site);
                    if let Some(sites) = Sites::first_with_last(others, site.clone()) {
                        verdicts.conclude(sites, None);
                    }
                    let send = send.clone();
                    messages.insert(id, Message { send, to, site });
                    continue;
                };
                let other = match (&known.to, &to) {
                    _ if known.send != send => Some(format!("of {}", known.send)),
                    (Some(known), Some(to)) if known != to => Some(format!("to {known}")),
                    _ => None,
                };
                if let Some(other) = other {
                    let fact = Fact::new(
                        "not-unique",
                        format!("another identifier than that of the message {other}"),
                        id,
                    );
                    let sites = [known.site.clone(), site];
                    verdicts.conclude(sites, Some(fact));
                } else if known.to.is_none() {
                    known.to = to;
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let event = |to: &str, id: &str| {
            json!({
                "type": "x", "payload": {"to": {"address": to}, "message_id": id},
            })
        };
        let parameters = json!({"feed": feed(), "message": "/message_id", "to": "/to/address"});
        let rule = Example::for_rule("events", parameters);
        let sent = |scene: &ExampleBuilder, operation: &str, events: &[Value]| {
            let operation = json!({"operation_id": operation});
            let scene = scene.hook(SEND, json!({"to": ["+1", "+2"]}), operation.clone());
            scene.hook(COLLECT, operation, json!({"events": events}))
        };
        let one = event("+1", "m1");
        let first = sent(&rule, "o1", std::slice::from_ref(&one));
        vec![
            sent(&rule, "o1", &[one.clone(), event("+2", "m2")]).passes(),
            sent(&rule, "o1", &[one.clone(), event("+2", "m1")])
                .fails("/events/1/payload/message_id"),
            sent(&first, "o2", &[event("+1", "m2")]).passes(),
            sent(&first, "o2", std::slice::from_ref(&one)).fails("/events/0/payload/message_id"),
            sent(&rule, "o1", &[one.clone(), one]).not_judged(),
        ]
    }
}
