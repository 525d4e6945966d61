//! `told`: what became of a bulk send is told of by an event of that type. Judged where the events of that very
//! send were collected; says nothing of what an event carries.

use super::prelude::*;
use crate::compare::as_text;
use crate::evidence::{Event, HookCall};

/// The hook that has messages sent.
pub(super) const SEND: &str = "send_bulk_message";
/// The hook that brings the events of a send.
pub(super) const COLLECT: &str = "collect_events";

/// A send that came to this is told of by an event of this type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The type of the event.
    r#type: String,
    /// What the messages of the send come to, any of these.
    #[serde(default)]
    outcomes: Vec<String>,
    /// Whether the send is for later.
    #[serde(default)]
    scheduled: bool,
}

impl Predicate for Told {
        fn subject(&self) -> Subject {
        Subject::Service
    }

    fn references(&self, _: &mut References) {}

    fn needs(&self) -> &'static [Need] {
        &[Need::Hooks]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for collected in collected(case) {
            let said = |name: &str| collected.sent.arguments.get(name);
            let outcome = said("outcome").map(as_text);
            let is_later = said("scheduled") == Some(&Value::Bool(true));
            let fits = match outcome {
                _ if self.scheduled => is_later,
                Some(outcome) => !is_later && self.outcomes.contains(&outcome),
                None => false,
            };
            if !fits {
                continue;
            }
            let mut events = collected.events().iter();
            let came = events.any(|event| event.get("type").is_some_and(|t| *t == *self.r#type));
            let types = collected
                .events()
                .iter()
                .filter_map(|event| event.get("type")?.as_str());
            let fact = (!came).then(|| Fact {
                kind: "not-told",
                expected: format!("an event {}", self.r#type),
                actual: types.collect::<Vec<_>>().join(", "),
                ..Fact::default()
            });
            verdicts
                .instance(rule, Site::hook(collected.event, "/events"))
                .conclude(fact);
        }
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        let none = Change::To(json!([]));
        vec![Mutation::new(sites.last().clone(), none)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters = json!({"type": "message.failed", "outcomes": ["failed"]});
        let sent = |outcome: &str| {
            let arguments = json!({"channel": "sms", "to": ["+1"], "outcome": outcome});
            Example::of("events", parameters.clone()).hook(
                SEND,
                arguments,
                json!({"operation_id": "o1"}),
            )
        };
        let collected = |scene: Scene, kind: &str| {
            let events = json!({"events": [{"type": kind, "payload": {}}]});
            scene.hook(COLLECT, json!({"operation_id": "o1"}), events)
        };
        vec![
            collected(sent("failed"), "message.failed").passes(),
            collected(sent("failed"), "message.sent").fails("/events"),
            collected(sent("delivered"), "message.sent").not_judged(),
            sent("failed").not_judged(),
        ]
    }
}

/// The events of one send.
pub(super) struct Collected<'c> {
    /// The event in the evidence that brought them.
    pub(super) event: usize,
    /// The send.
    pub(super) sent: &'c HookCall,
    result: &'c Value,
}

impl Collected<'_> {
    /// As they were brought.
    pub(super) fn events(&self) -> &[Value] {
        let events = self.result.get("events").and_then(Value::as_array);
        events.map_or(&[], Vec::as_slice)
    }

    /// The identifier that the send brought.
    pub(super) fn operation(&self) -> Option<String> {
        let result = self.sent.result.as_ref().ok()?;
        result.get("operation_id").map(as_text)
    }
}

/// Every collection that names a send of this case.
pub(super) fn collected<'c>(case: &'c Case<'_>) -> Vec<Collected<'c>> {
    let mut sends: Vec<&HookCall> = Vec::new();
    let mut found = Vec::new();
    for (event, happened) in case.evidence.events.iter().enumerate() {
        let Event::Hook(call) = happened else {
            continue;
        };
        let Ok(result) = &call.result else { continue };
        if call.name == SEND {
            sends.push(call);
        }
        let asked = call.arguments.get("operation_id").map(as_text);
        let of = |sent: &&&HookCall| {
            let id = sent
                .result
                .as_ref()
                .ok()
                .and_then(|r| r.get("operation_id"));
            asked.is_some() && id.map(as_text) == asked
        };
        if call.name == COLLECT
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
