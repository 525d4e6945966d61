//! `event-emitted`: the outcome of a send is reported by an event of a type. Judges sends whose events were collected.
//! Does not judge the fields of an event.

use super::prelude::*;
use crate::evidence::{Event, HookCall};

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

/// A send with one of these outcomes is reported by an event of this type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventEmitted {
    /// Where the events come from.
    feed: Feed,
    /// The type of the event.
    r#type: String,
    /// Requested outcomes of the send, any of these.
    #[serde(default)]
    outcomes: Vec<String>,
    /// Whether the send is for later.
    #[serde(default)]
    scheduled: bool,
    /// In place of outcomes: events of these types, of which one shows that the send has come that far.
    #[serde(default)]
    after: Vec<String>,
    /// Whether each message of the send must have come that far.
    #[serde(default)]
    each: Option<Each>,
}

/// How the messages of a send are counted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Each {
    /// The argument of `send` with the recipients: one message for each.
    recipients: String,
    /// The field of an event that identifies the message: `/message_id`.
    message: String,
}

impl Each {
    /// Whether as many messages as the send has recipients are named by events of these types.
    fn has_come(&self, collected: &Collected<'_>, types: &[String]) -> bool {
        let recipients = collected.argument(&self.recipients);
        let recipients = recipients.and_then(Value::as_array).into_iter().flatten();
        let recipients: BTreeSet<String> = recipients.map(as_text).collect();
        let of_type = |event: &&Value| {
            let r#type = event.get("type").and_then(Value::as_str);
            r#type.is_some_and(|r#type| types.iter().any(|one| one == r#type))
        };
        let events = collected.events().iter().filter(of_type);
        let messages = events.filter_map(|event| event.get("payload")?.pointer(&self.message));
        let messages: BTreeSet<String> = messages.map(as_text).collect();
        !recipients.is_empty() && messages.len() >= recipients.len()
    }
}

impl Predicate for EventEmitted {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for collected in self.feed.collected(context) {
            let outcome = collected.argument(&self.feed.outcome).map(as_text);
            let is_later = collected.argument(&self.feed.scheduled) == Some(&Value::Bool(true));
            let came = |r#type: &str| {
                let mut events = collected.events().iter();
                events.any(|event| event.get("type").is_some_and(|t| *t == *r#type))
            };
            let fits = match outcome {
                _ if !self.after.is_empty() => match &self.each {
                    Some(each) => each.has_come(&collected, &self.after),
                    None => self.after.iter().any(|after| came(after)),
                },
                _ if self.scheduled => is_later,
                Some(outcome) => !is_later && self.outcomes.contains(&outcome),
                None => false,
            };
            if !fits {
                continue;
            }
            let fact = (!came(&self.r#type)).then(|| {
                Fact::new(
                    "not-told",
                    format!("an event {}", self.r#type),
                    types_with_counts(collected.events()),
                )
            });
            verdicts.conclude(Site::hook(collected.event, "/events"), fact);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        /// More messages than a send of a scenario has recipients.
        const MESSAGES: usize = 16;
        let events = |types: &[String]| {
            let message = self
                .each
                .as_ref()
                .map(|each| each.message.trim_start_matches('/'));
            let payload = |number: usize| match message {
                Some(message) => json!({message: number}),
                None => json!({}),
            };
            let of_type = |r#type: &String| {
                let events = (0..MESSAGES).map(|n| json!({"type": r#type, "payload": payload(n)}));
                events.collect::<Vec<_>>()
            };
            Change::To(types.iter().flat_map(of_type).collect())
        };
        vec![Mutation::new(sites.last().clone(), events(&self.after))]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sent = |parameters: &Value, arguments: Value| {
            let rule = Example::for_rule("events", parameters.clone());
            rule.hook(SEND, arguments, json!({"operation_id": "o1"}))
        };
        let typed = |kind: &str| json!({"type": kind, "payload": {}});
        let failed = json!({"feed": feed(), "type": "message.failed", "outcomes": ["failed"]});
        let failed = |outcome: &str| sent(&failed, json!({"to": ["+1"], "outcome": outcome}));
        let after =
            json!({"feed": feed(), "type": "operation.processing", "after": ["message.sent"]});
        let went_on = sent(&after, json!({"to": ["+1"], "scheduled": true}));
        let each = json!({
            "feed": feed(), "type": "completed", "after": ["failed"],
            "each": {"recipients": "to", "message": "/message_id"},
        });
        let finished = |messages: &[&str], others: &[&str]| {
            let failed = |id: &&str| json!({"type": "failed", "payload": {"message_id": id}});
            let others = others.iter().map(|kind| typed(kind));
            let events: Vec<Value> = messages.iter().map(failed).chain(others).collect();
            let scene = sent(&each, json!({"to": ["+1", "+2", "+1"], "scheduled": true}));
            collected(&scene, &events)
        };
        vec![
            collected(&failed("failed"), &[typed("message.failed")]).passes(),
            collected(&failed("failed"), &[typed("message.sent")]).fails("/events"),
            collected(&failed("delivered"), &[typed("message.sent")]).not_judged(),
            failed("failed").not_judged(),
            collected(&went_on, &[typed("message.sent")]).fails("/events"),
            collected(&went_on, &[typed("message.queued")]).not_judged(),
            collected(
                &went_on,
                &["operation.processing", "message.sent"].map(typed),
            )
            .passes(),
            finished(&["1", "2"], &[]).fails("/events"),
            finished(&["1", "2"], &["completed"]).passes(),
            finished(&["1"], &[]).not_judged(),
            finished(&["1", "1"], &[]).not_judged(),
        ]
    }
}

/// The types of events by name: `6× message.queued, 1× operation.completed`.
fn types_with_counts(events: &[Value]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for r#type in events
        .iter()
        .filter_map(|event| event.get("type")?.as_str())
    {
        *counts.entry(r#type).or_default() += 1;
    }
    let counts = counts
        .iter()
        .map(|(r#type, count)| format!("{count}× {type}"));
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() {
        return "no event".to_owned();
    }
    counts.join(", ")
}

/// The events of one send.
pub(super) struct Collected<'c> {
    /// The call of the hook that collected them, as an index into the evidence.
    pub(super) event: usize,
    sent: &'c HookCall,
    result: &'c Value,
}

impl Collected<'_> {
    /// The events as collected.
    pub(super) fn events(&self) -> &[Value] {
        let events = self.result.get("events").and_then(Value::as_array);
        events.map_or(&[], Vec::as_slice)
    }

    /// An argument of the send.
    pub(super) fn argument(&self, name: &str) -> Option<&Value> {
        self.sent.arguments.get(name)
    }

    /// A member of the send's result.
    pub(super) fn result(&self, name: &str) -> Option<&Value> {
        self.sent.result.as_ref().ok()?.get(name)
    }
}

impl Feed {
    pub(super) fn references(&self, references: &mut References) {
        references.hook("feed/send", &self.send);
        references.hook("feed/collect", &self.collect);
    }

    /// Whether the call collects events.
    fn collects(&self, call: &HookCall) -> bool {
        call.name == self.collect
    }

    /// Every collected event: the place of its collection in the evidence, its place there, and the event.
    pub(super) fn events<'c>(&self, context: &'c Context<'_>) -> Vec<(usize, usize, &'c Value)> {
        let mut found = Vec::new();
        for (index, happened) in context.evidence.events.iter().enumerate() {
            let Event::Hook(call) = happened else {
                continue;
            };
            let Ok(result) = &call.result else { continue };
            let events = result.get("events").and_then(Value::as_array);
            let events = events.filter(|_| self.collects(call)).into_iter().flatten();
            found.extend(events.enumerate().map(|(n, event)| (index, n, event)));
        }
        found
    }

    /// The requested outcome of the send.
    pub(super) fn outcome_of(&self, collected: &Collected<'_>) -> Option<String> {
        collected.argument(&self.outcome).map(as_text)
    }

    /// What identifies the send.
    pub(super) fn send_of(&self, collected: &Collected<'_>) -> Option<String> {
        collected.result(&self.id).map(as_text)
    }

    /// Whether the messages of the send were meant to be delivered.
    pub(super) fn is_delivered(&self, collected: &Collected<'_>) -> bool {
        self.outcome_of(collected).as_deref() == Some("delivered")
    }

    /// All collections of events for a send of this scenario.
    pub(super) fn collected<'c>(&self, context: &'c Context<'_>) -> Vec<Collected<'c>> {
        let mut sends: Vec<&HookCall> = Vec::new();
        let mut found = Vec::new();
        for (event, happened) in context.evidence.events.iter().enumerate() {
            let Event::Hook(call) = happened else {
                continue;
            };
            let Ok(result) = &call.result else { continue };
            if call.name == self.send {
                sends.push(call);
            }
            let asked = call.arguments.get(&self.id).map(as_text);
            let of = |sent: &&&HookCall| {
                let id = sent.result.as_ref().ok().and_then(|r| r.get(&self.id));
                asked.is_some() && id.map(as_text) == asked
            };
            if self.collects(call)
                && let Some(sent) = sends.iter().find(of)
            {
                found.push(Collected {
                    event,
                    sent,
                    result,
                });
            }
        }
        found
    }
}

#[cfg(test)]
pub(super) const SEND: &str = "send_bulk_message";
#[cfg(test)]
pub(super) const COLLECT: &str = "collect_events";

/// The events of the operation `o1`.
#[cfg(test)]
pub(super) fn collected(scene: &ExampleBuilder, events: &[Value]) -> ExampleBuilder {
    scene.hook(
        COLLECT,
        json!({"operation_id": "o1"}),
        json!({"events": events}),
    )
}

/// The feed of the examples.
#[cfg(test)]
pub(super) fn feed() -> Value {
    json!({
        "send": SEND, "collect": COLLECT, "id": "operation_id", "outcome": "outcome",
        "scheduled": "scheduled",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collected_types_are_counted_by_name() {
        let events = ["sent", "completed", "sent"].map(|kind| json!({"type": kind}));
        assert_eq!(types_with_counts(&events), "1× completed, 2× sent");
        assert_eq!(types_with_counts(&[]), "no event");
    }
}
