//! `carries`: the events of a bulk send carry what the send was given. Says nothing of fields that an event
//! does not have.

use super::prelude::*;
use super::told::collected;
#[cfg(test)]
use super::told::{COLLECT, SEND};
use crate::compare::as_text;
use std::collections::{BTreeMap, BTreeSet};

/// A field of the events of a send has what the send was given there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Carries {
    /// Where in each payload.
    at: String,
    /// What of the send.
    of: Of,
    /// How the two relate.
    how: How,
}

/// What of a send its events carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Of {
    /// The identifier that it brought, which no other send has.
    Operation,
    /// The channel that was chosen.
    Channel,
    /// Whom it goes to.
    To,
    /// What it was tagged with.
    Tags,
}

/// How a field of an event relates to what was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// It is the same.
    Equal,
    /// It is one of them.
    OneOf,
    /// Each of them stands in some event of every type that has any, once the messages have arrived.
    Each,
}

/// What stands there in one event.
struct Stands<'a> {
    /// Which of them.
    event: usize,
    r#type: &'a str,
    value: &'a Value,
}

impl Predicate for Carries {
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
            let given = match self.of {
                Of::Operation => collected.operation().map(Value::from),
                Of::Channel => collected.sent.arguments.get("channel").cloned(),
                Of::To => collected.sent.arguments.get("to").cloned(),
                // A send without tags was given none.
                Of::Tags => Some(
                    collected
                        .sent
                        .arguments
                        .get("tags")
                        .cloned()
                        .unwrap_or(json!({})),
                ),
            };
            let is_over = collected.sent.arguments.get("outcome") == Some(&json!("delivered"));
            let Some(given) = given.filter(|_| self.how != How::Each || is_over) else {
                continue;
            };
            let there = collected.events().iter().enumerate();
            let there = there.filter_map(|(n, event)| {
                Some(Stands {
                    event: n,
                    r#type: event.get("type").and_then(Value::as_str).unwrap_or(""),
                    value: event.get("payload")?.pointer(&self.at)?,
                })
            });
            let there: Vec<Stands<'_>> = there.collect();
            let place =
                |n: usize| Site::hook(collected.event, format!("/events/{n}/payload{}", self.at));
            let all = Site::hook(collected.event, format!("/events/*/payload{}", self.at));
            let sites = match self.how {
                // One that is missing is missing from all of them.
                How::Each => Some(Sites::from(all)).filter(|_| !there.is_empty()),
                How::Equal | How::OneOf => {
                    Sites::of(there.iter().map(|stands| place(stands.event)))
                }
            };
            let Some(sites) = sites else {
                verdicts.trivial(rule, Trivial::Absent);
                continue;
            };
            let wrong = self.wrong(&given, &there);
            let wrong = wrong.map(|(n, fact)| (place(n), fact));
            verdicts.instance(rule, sites).conclude_at(wrong);
        }
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        let mut mutations = Mutation::of_sites(sites);
        let other = |site: &Site| Mutation::new(site.clone(), Change::To(json!("another")));
        mutations.extend(sites.iter().map(other));
        mutations
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sent = |parameters: Value, outcome: &str| {
            let arguments = json!({
                "channel": "sms", "to": ["+1", "+2"], "outcome": outcome, "tags": {"a": "b"},
            });
            Example::of("events", parameters).hook(SEND, arguments, json!({"operation_id": "o1"}))
        };
        let collected = |scene: Scene, payloads: &[Value]| {
            // The type is that of the payload where the example gives it one.
            let events: Vec<Value> = payloads
                .iter()
                .map(|p| json!({"type": p.get("kind").unwrap_or(&json!("x")), "payload": p}))
                .collect();
            scene.hook(
                COLLECT,
                json!({"operation_id": "o1"}),
                json!({"events": events}),
            )
        };
        let channel = json!({"at": "/to/channel", "of": "channel", "how": "equal"});
        let address = json!({"at": "/to/address", "of": "to", "how": "one-of"});
        let each = json!({"at": "/to/address", "of": "to", "how": "each"});
        let operation = json!({"at": "/operation_id", "of": "operation", "how": "equal"});
        let to = |address: &str| json!({"operation_id": "o1", "to": {"channel": "sms", "address": address}});
        let of = |kind: &str, address: &str| json!({"kind": kind, "to": {"address": address}});
        vec![
            collected(sent(channel.clone(), "read"), &[to("+1")]).passes(),
            collected(
                sent(channel.clone(), "read"),
                &[json!({"to": {"channel": "rcs"}})],
            )
            .fails("/events/0/payload/to/channel"),
            collected(sent(address.clone(), "read"), &[to("+2")]).passes(),
            collected(sent(address, "read"), &[to("+3")]).fails("/events/0/payload/to/address"),
            collected(sent(each.clone(), "delivered"), &[to("+2"), to("+1")]).passes(),
            collected(sent(each.clone(), "delivered"), &[to("+2")])
                .fails("/events/0/payload/to/address"),
            collected(
                sent(each, "delivered"),
                &[of("queued", "+1"), of("sent", "+1"), of("sent", "+2")],
            )
            .fails("/events/0/payload/to/address"),
            collected(sent(operation, "read"), &[to("+1")]).passes(),
            collected(sent(channel, "read"), &[json!({})]).not_judged(),
        ]
    }
}

impl Carries {
    /// The first event that has something else, or the last one where something stands nowhere.
    fn wrong(&self, given: &Value, there: &[Stands<'_>]) -> Option<(usize, Fact)> {
        let all: Vec<String> = match given.as_array() {
            Some(all) => all.iter().map(as_text).collect(),
            None => vec![as_text(given)],
        };
        let same = |value: &Value| match self.how {
            How::Equal if self.of == Of::Tags => json::equal(value, given) || value.is_null(),
            How::Equal => as_text(value) == as_text(given),
            How::OneOf | How::Each => all.contains(&as_text(value)),
        };
        let fact = |expected: String, actual: String| Fact {
            kind: "carries",
            expected,
            actual,
            ..Fact::default()
        };
        if self.how == How::Each {
            let mut of_types: BTreeMap<&str, (usize, BTreeSet<String>)> = BTreeMap::new();
            for stands in there {
                let (last, shown) = of_types.entry(stands.r#type).or_default();
                *last = stands.event;
                shown.insert(as_text(stands.value));
            }
            return of_types.into_iter().find_map(|(kind, (last, shown))| {
                let lacks = all.iter().find(|one| !shown.contains(*one))?;
                let told = format!("{} others", shown.len());
                Some((last, fact(format!("{lacks} in some event {kind}"), told)))
            });
        }
        let Stands { event, value, .. } = there.iter().find(|stands| !same(stands.value))?;
        Some((
            *event,
            fact(
                format!("{}, as the send has it", json::short(given)),
                json::short(value),
            ),
        ))
    }
}
