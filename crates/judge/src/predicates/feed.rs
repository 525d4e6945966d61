//! A feed of events: a hook sends, and another one collects the events of a send.

use super::prelude::*;
use crate::evidence::HookCall;

/// A feed of events: the hook that sends, and the hook that collects the events of a send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Feed {
    /// The hook that sends.
    send: String,
    /// The hook whose result `events` holds the events, each with `type` and `payload`.
    collect: String,
    /// The member of the send's result, and the argument of `collect`, that identifies the send.
    id: String,
    /// The argument of `send` with the requested outcome.
    outcome: String,
    /// The argument of `send` that is true if the send is scheduled for later.
    scheduled: String,
}

/// A collected event.
pub(super) struct Collected<'c> {
    /// The call of the hook that collected it, as an index into the evidence.
    hook: usize,
    /// Its place among the events of that call.
    number: usize,
    value: &'c Value,
}

/// The events that one call of a hook collected for a send.
pub(super) struct Collection<'c> {
    hook: usize,
    sent: &'c HookCall,
    pub(super) events: Vec<Collected<'c>>,
}

impl<'c> Collected<'c> {
    /// Its type.
    pub(super) fn name(&self) -> Option<&'c str> {
        self.member("type")?.as_str()
    }

    /// Whether it has one of these types.
    pub(super) fn is_of(&self, types: &[String]) -> bool {
        self.name()
            .is_some_and(|name| types.iter().any(|one| one == name))
    }

    pub(super) fn member(&self, name: &str) -> Option<&'c Value> {
        self.value.get(name)
    }

    /// The field at a pointer into its payload.
    pub(super) fn field(&self, at: &str) -> Option<&'c Value> {
        self.member("payload")?.pointer(at)
    }

    /// As `field`, as a text.
    pub(super) fn text(&self, at: &str) -> Option<String> {
        self.field(at).map(as_text)
    }

    pub(super) fn site(&self, at: &str) -> Site {
        Site::hook(self.hook, format!("/events/{}{at}", self.number))
    }

    /// The site of a pointer into its payload.
    pub(super) fn field_site(&self, at: &str) -> Site {
        self.site("/payload").below(at)
    }
}

impl<'c> Collection<'c> {
    /// An argument of the send.
    pub(super) fn argument(&self, name: &str) -> Option<&'c Value> {
        self.sent.arguments.get(name)
    }

    /// An argument of the send that lists texts.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let listed = self.argument(name).and_then(Value::as_array);
        listed.into_iter().flatten().map(as_text).collect()
    }

    /// A member of the send's result.
    pub(super) fn result(&self, name: &str) -> Option<&'c Value> {
        self.sent.result.as_ref().ok()?.get(name)
    }

    pub(super) fn site(&self, at: &str) -> Site {
        Site::hook(self.hook, format!("/events{at}"))
    }
}

impl Feed {
    pub(super) fn references(&self, references: &mut References) {
        references.hook("feed/send", &self.send);
        references.hook("feed/collect", &self.collect);
    }

    /// The events that a call collected.
    fn events_of<'c>(&self, hook: usize, call: &'c HookCall) -> Vec<Collected<'c>> {
        let result = call.result.as_ref().ok();
        let events = result.and_then(|result| result.get("events")?.as_array());
        let events = events.filter(|_| call.name == self.collect);
        let events = events.into_iter().flatten().enumerate();
        let event = |(number, value)| Collected {
            hook,
            number,
            value,
        };
        events.map(event).collect()
    }

    /// Every collected event.
    pub(super) fn events<'c>(&self, context: &Context<'c>) -> Vec<Collected<'c>> {
        let calls = context.evidence.hooks();
        calls
            .flat_map(|(hook, call)| self.events_of(hook, call))
            .collect()
    }

    /// The requested outcome of a send.
    pub(super) fn outcome_of(&self, collection: &Collection<'_>) -> Option<String> {
        collection.argument(&self.outcome).map(as_text)
    }

    /// Whether a send is for later.
    pub(super) fn is_scheduled(&self, collection: &Collection<'_>) -> bool {
        collection.argument(&self.scheduled) == Some(&Value::Bool(true))
    }

    /// What identifies a send.
    pub(super) fn send_of(&self, collection: &Collection<'_>) -> Option<String> {
        collection.result(&self.id).map(as_text)
    }

    /// All collections of events for a send of this scenario.
    pub(super) fn collections<'c>(&self, context: &Context<'c>) -> Vec<Collection<'c>> {
        let mut sends: Vec<&HookCall> = Vec::new();
        let mut found = Vec::new();
        for (hook, call) in context.evidence.hooks() {
            if call.result.is_err() {
                continue;
            }
            if call.name == self.send {
                sends.push(call);
            }
            let asked = call.arguments.get(&self.id).map(as_text);
            let is_of = |sent: &&&HookCall| {
                let id = sent.result.as_ref().ok().and_then(|r| r.get(&self.id));
                asked.is_some() && id.map(as_text) == asked
            };
            if call.name == self.collect
                && let Some(sent) = sends.iter().find(is_of)
            {
                let events = self.events_of(hook, call);
                found.push(Collection { hook, sent, events });
            }
        }
        found
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;

    /// A rule about events with the feed of the examples.
    pub(crate) fn of_feed(mut parameters: Value) -> ExampleBuilder {
        parameters["feed"] = json!({
            "send": "send_bulk_message", "collect": "collect_events", "id": "operation_id",
            "outcome": "outcome", "scheduled": "scheduled",
        });
        Example::for_rule("events", parameters)
    }

    /// The operation `o1` is sent.
    pub(crate) fn sent(scene: &ExampleBuilder, arguments: Value) -> ExampleBuilder {
        let result = json!({"operation_id": "o1"});
        scene.hook("send_bulk_message", arguments, result)
    }

    /// Its events are collected.
    pub(crate) fn collected(scene: &ExampleBuilder, events: &[Value]) -> ExampleBuilder {
        let asked = json!({"operation_id": "o1"});
        scene.hook("collect_events", asked, json!({"events": events}))
    }
}
