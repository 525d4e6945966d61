//! `event-fields` with `type`: what every payload has in common, for an event type without a schema. Requires no field.

use super::event_emitted::Feed;
#[cfg(test)]
use super::event_emitted::{collected, feed};
use super::prelude::*;
use std::collections::BTreeMap;

/// The payloads of one event type are well-formed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventPayload {
    /// Where the events come from.
    feed: Feed,
    /// The type of the events.
    r#type: String,
    /// Whether every scalar value other than null is a text.
    #[serde(default)]
    texts: bool,
    /// Whether no value is null.
    #[serde(default)]
    without_nulls: bool,
    /// The only members of an object, by its pointer.
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
    /// Members that the payload does not have.
    #[serde(default)]
    without: Vec<String>,
}

impl Predicate for EventPayload {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (index, n, event) in self.feed.events(context) {
            let is_type = event.get("type").is_some_and(|t| *t == *self.r#type);
            let Some(payload) = event.get("payload").filter(|_| is_type) else {
                continue;
            };
            let site = |at: &str| Site::hook(index, format!("/events/{n}/payload{at}"));
            let wrong = self.wrong(payload).map(|(at, fact)| (site(&at), fact));
            verdicts.conclude_at(site(""), wrong);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let site = sites.last();
        let mut payloads = vec![json!({"message_id": 1}), json!({"message_id": null})];
        payloads.extend(self.without.iter().map(|name| json!({name: "1"})));
        let unlisted = json!({"unlisted": "1"});
        payloads.extend(self.only.keys().map(|at| match at.strip_prefix('/') {
            Some(name) => json!({name: unlisted}),
            None => unlisted.clone(),
        }));
        let to = |payload| Mutation::new(site.clone(), Change::To(payload));
        payloads.into_iter().map(to).collect()
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let other = json!({"type": "message.sent", "payload": {"attempt": 1}});
        let of = |mut parameters: Value, events: &[Value]| {
            parameters["feed"] = feed();
            parameters["type"] = json!("message.read");
            collected(&Example::for_rule("events", parameters), events)
        };
        let read = |parameters: &Value, payload: Value| {
            let read = json!({"type": "message.read", "payload": payload});
            of(parameters.clone(), &[other.clone(), read])
        };
        let texts = json!({"texts": true});
        let nulls = json!({"without_nulls": true});
        let members = json!({"only": {"/to": ["address"]}, "without": ["account_sid"]});
        vec![
            read(&texts, json!({"attempt": "1", "to": {"address": null}})).passes(),
            read(&texts, json!({"attempt": 1})).fails("/events/1/payload/attempt"),
            read(&texts, json!({"tags": {"a": true}})).fails("/events/1/payload/tags/a"),
            read(&nulls, json!({"attempt": 1})).passes(),
            read(&nulls, json!({"to": {"address": null}})).fails("/events/1/payload/to/address"),
            read(&members, json!({"to": {"address": 1}})).passes(),
            read(&members, json!({"to": {"name": "x"}})).fails("/events/1/payload/to/name"),
            read(&members, json!({"account_sid": "AC1"})).fails("/events/1/payload/account_sid"),
            of(texts.clone(), std::slice::from_ref(&other)).not_judged(),
        ]
    }
}

impl EventPayload {
    /// The first place that is wrong.
    fn wrong(&self, payload: &Value) -> Option<(String, Fact)> {
        let fact = |expected: &str, actual: &Value| {
            Fact::new("payload", expected.to_owned(), json::short(actual))
        };
        for name in &self.without {
            if let Some(value) = payload.get(name) {
                return Some((format!("/{name}"), fact("no such field", value)));
            }
        }
        for (at, names) in &self.only {
            let members = payload.pointer(at).and_then(Value::as_object);
            let unlisted = |(name, _): &(&String, &Value)| !names.contains(name);
            if let Some((name, value)) = members.into_iter().flatten().find(unlisted) {
                let expected = format!("only {}", names.join(", "));
                return Some((format!("{at}/{name}"), fact(&expected, value)));
            }
        }
        let mut first = None;
        json::visit_leaves(payload, &mut |at, value| {
            let is_wrong = match value {
                Value::Null => self.without_nulls,
                Value::Bool(_) | Value::Number(_) => self.texts,
                Value::String(_) | Value::Array(_) | Value::Object(_) => false,
            };
            if is_wrong {
                first.get_or_insert_with(|| (at.to_owned(), fact("a string", value)));
            }
        });
        first
    }
}
