//! `one-message`: the events of one message say the same of it. Says nothing of what two messages may share.

use super::prelude::*;
use super::told::collected;
#[cfg(test)]
use super::told::{COLLECT, SEND};
use crate::compare::as_text;
use std::collections::BTreeMap;

/// A field is the same in all events of a send that go to one recipient at one attempt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneMessage {
    /// Where in each payload.
    at: String,
}

impl Predicate for OneMessage {
        fn subject(&self) -> Subject {
        Subject::Service
    }

    fn references(&self, references: &mut References) {
        references.any_event("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Hooks]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for collected in collected(case) {
            let given = collected.sent.arguments.get("to").and_then(Value::as_array);
            let given: Vec<String> = given.into_iter().flatten().map(as_text).collect();
            let mut messages: BTreeMap<(String, String), Vec<(usize, String)>> = BTreeMap::new();
            for (n, event) in collected.events().iter().enumerate() {
                let payload = event.get("payload");
                let text = |at: &str| payload?.pointer(at).map(as_text);
                let (Some(to), Some(value)) = (text("/to/address"), text(&self.at)) else {
                    continue;
                };
                // Whoever is sent two messages at once may be told of either.
                if given.iter().filter(|one| **one == to).count() == 1 {
                    let attempt = text("/attempt").unwrap_or_default();
                    messages.entry((to, attempt)).or_default().push((n, value));
                }
            }
            let place =
                |n: usize| Site::hook(collected.event, format!("/events/{n}/payload{}", self.at));
            for events in messages.values().filter(|events| events.len() > 1) {
                let (_, first) = &events[0];
                let other = events.iter().find(|(_, value)| value != first);
                let wrong = other.map(|(n, value)| {
                    let fact = Fact {
                        kind: "one-message",
                        expected: format!("{first}, as an earlier event of this message has it"),
                        actual: value.clone(),
                        ..Fact::default()
                    };
                    (place(*n), fact)
                });
                if let Some(sites) = Sites::of(events.iter().map(|(n, _)| place(*n))) {
                    verdicts.instance(rule, sites).conclude_at(wrong);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let event = |to: &str, attempt: &str, id: &str| {
            let to = json!({"address": to});
            json!({"type": "x", "payload": {"to": to, "attempt": attempt, "message_id": id}})
        };
        let collected = |to: &[&str], events: &[Value]| {
            let sent = json!({"channel": "sms", "to": to, "outcome": "delivered"});
            Example::of("events", json!({"at": "/message_id"}))
                .hook(SEND, sent, json!({"operation_id": "o1"}))
                .hook(
                    COLLECT,
                    json!({"operation_id": "o1"}),
                    json!({"events": events}),
                )
        };
        let one = event("+1", "1", "m1");
        vec![
            collected(&["+1"], &[one.clone(), one.clone()]).passes(),
            collected(
                &["+1", "+2"],
                &[one.clone(), one.clone(), event("+2", "1", "m2")],
            )
            .passes(),
            collected(&["+1"], &[one.clone(), event("+1", "1", "m2")])
                .fails("/events/1/payload/message_id"),
            collected(&["+1"], &[one.clone(), event("+1", "2", "m2")]).not_judged(),
            collected(&["+1", "+1"], &[one.clone(), event("+1", "1", "m2")]).not_judged(),
            collected(&["+1"], &[one]).not_judged(),
        ]
    }
}
