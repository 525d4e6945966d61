//! `event-fields` with `recipient`: a field has the same value in all events of one message. Does not compare two messages.

use super::event_emitted::Feed;
#[cfg(test)]
use super::event_emitted::{SEND, collected, feed};
use super::prelude::*;
use crate::compare::as_text;
use std::collections::BTreeMap;

/// A field is the same in all events of a send to one recipient in one attempt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFieldsAgree {
    /// Where the events come from.
    feed: Feed,
    /// Where in each payload.
    at: String,
    /// The recipient in each payload.
    recipient: String,
    /// The argument of the send that lists the recipients.
    recipients: String,
    /// The number of the attempt in each payload.
    attempt: String,
}

impl Predicate for EventFieldsAgree {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
        references.any_event("at", &self.at);
        references.any_event("recipient", &self.recipient);
        references.any_event("attempt", &self.attempt);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for collected in self.feed.collected(context) {
            let given = collected
                .argument(&self.recipients)
                .and_then(Value::as_array);
            let given: Vec<String> = given.into_iter().flatten().map(as_text).collect();
            let mut messages: BTreeMap<(String, String), Vec<(usize, String)>> = BTreeMap::new();
            for (n, event) in collected.events().iter().enumerate() {
                let payload = event.get("payload");
                let text = |at: &str| payload?.pointer(at).map(as_text);
                let (Some(to), Some(value)) = (text(&self.recipient), text(&self.at)) else {
                    continue;
                };
                // With two messages to one recipient, an event may be about either.
                if given.iter().filter(|one| **one == to).count() == 1 {
                    let attempt = text(&self.attempt).unwrap_or_default();
                    messages.entry((to, attempt)).or_default().push((n, value));
                }
            }
            let place =
                |n: usize| Site::hook(collected.event, format!("/events/{n}/payload{}", self.at));
            for events in messages.values().filter(|events| events.len() > 1) {
                let (_, first) = &events[0];
                let other = events.iter().find(|(_, value)| value != first);
                let wrong = other.map(|(n, value)| {
                    let fact = Fact::new(
                        "one-message",
                        format!("{first}, as in an earlier event of this message"),
                        value.clone(),
                    );
                    (place(*n), fact)
                });
                if let Some(sites) = Sites::collect(events.iter().map(|(n, _)| place(*n))) {
                    verdicts.conclude_at(sites, wrong);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let event = |to: &str, attempt: &str, id: &str| {
            json!({
                "type": "x",
                "payload": {"to": {"address": to}, "attempt": attempt, "message_id": id},
            })
        };
        let shown = |to: &[&str], events: &[Value]| {
            let parameters = json!({
                "feed": feed(), "at": "/message_id", "recipient": "/to/address", "recipients": "to",
                "attempt": "/attempt",
            });
            let rule = Example::for_rule("events", parameters);
            let sent = rule.hook(SEND, json!({"to": to}), json!({"operation_id": "o1"}));
            collected(&sent, events)
        };
        let one = event("+1", "1", "m1");
        let other = event("+1", "1", "m2");
        let to_another = event("+2", "1", "m2");
        vec![
            shown(&["+1"], &[one.clone(), one.clone()]).passes(),
            shown(&["+1", "+2"], &[one.clone(), one.clone(), to_another]).passes(),
            shown(&["+1"], &[one.clone(), other.clone()]).fails("/events/1/payload/message_id"),
            shown(&["+1"], &[one.clone(), event("+1", "2", "m2")]).not_judged(),
            shown(&["+1", "+1"], &[one.clone(), other]).not_judged(),
            shown(&["+1"], &[one]).not_judged(),
        ]
    }
}
