//! `event-fields` with `of`: a field of a send's events has the value that the send was given. Does not judge fields that an
//! event lacks.

use super::event_emitted::{Collected, Feed};
#[cfg(test)]
use super::event_emitted::{SEND, collected, feed};
use super::prelude::*;
use crate::compare::as_text;
use conformant_base::text;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the values of events in a finding.
const SHOWN_BYTES_MAX: usize = 100;

/// A field of the events has the value of an argument or a result of the send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFields {
    /// Where the events come from.
    feed: Feed,
    /// Where in each payload.
    at: String,
    /// An argument of the send, or a member of its result.
    of: String,
    /// Its value if the send does not give it.
    #[serde(default)]
    default: Option<Value>,
    /// How the two relate.
    how: Relation,
    /// With `each`: the outcomes of sends, and the types of which each value occurs in some event; an empty list stands for
    /// every collected type. If this is omitted, every type of a delivered send.
    #[serde(default)]
    types: BTreeMap<String, Vec<String>>,
}

/// How a field of an event relates to what was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Relation {
    /// The same value. Null represents an object.
    Equal,
    /// Every member with its value, and possibly more.
    Contains,
    /// One of the values.
    OneOf,
    /// Each value occurs in some event of every collected type.
    Each,
}

/// The field in one event.
struct FieldValue<'a> {
    /// The index of the event.
    event: usize,
    r#type: &'a str,
    value: &'a Value,
}

impl Predicate for EventFields {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
        references.any_event("at", &self.at);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for collected in self.feed.collected(context) {
            let given = collected
                .argument(&self.of)
                .or_else(|| collected.result(&self.of))
                .or(self.default.as_ref());
            let types = match self.how {
                Relation::Each => self.types_of(&collected),
                Relation::Equal | Relation::Contains | Relation::OneOf => Some(&[][..]),
            };
            let (Some(given), Some(types)) = (given, types) else {
                continue;
            };
            let there = collected.events().iter().enumerate();
            let there = there.filter_map(|(n, event)| {
                Some(FieldValue {
                    event: n,
                    r#type: event.get("type").and_then(Value::as_str).unwrap_or(""),
                    value: event.get("payload")?.pointer(&self.at)?,
                })
            });
            let there: Vec<FieldValue<'_>> = there
                .filter(|field| types.is_empty() || types.iter().any(|t| t == field.r#type))
                .collect();
            let place =
                |n: usize| Site::hook(collected.event, format!("/events/{n}/payload{}", self.at));
            let all = Site::hook(collected.event, format!("/events/*/payload{}", self.at));
            let sites = match self.how {
                // A missing value is missing from all events.
                Relation::Each => Some(Sites::from(all)).filter(|_| !there.is_empty()),
                Relation::Equal | Relation::Contains | Relation::OneOf => {
                    Sites::collect(there.iter().map(|stands| place(stands.event)))
                }
            };
            let Some(sites) = sites else {
                verdicts.record_vacuous(Vacuity::Absent);
                continue;
            };
            let wrong = self.wrong(given, &there);
            let wrong = wrong.map(|(n, fact)| (place(n), fact));
            verdicts.conclude_at(sites, wrong);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let mut mutations = Mutation::of_sites(sites);
        let other = |site: &Site| Mutation::new(site.clone(), Change::To(json!("another")));
        mutations.extend(sites.iter().map(other));
        mutations
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = "/events/0/payload/to/address";
        let sent = |mut parameters: Value, outcome: &str| {
            parameters["feed"] = feed();
            let arguments = json!({
                "channel": "sms", "to": ["+1", "+2"], "outcome": outcome, "tags": {"a": "b"},
            });
            let rule = Example::for_rule("events", parameters);
            rule.hook(SEND, arguments, json!({"operation_id": "o1"}))
        };
        let showing = |scene: &ExampleBuilder, payloads: &[Value]| {
            // `kind` in a payload is the type of its event.
            let event =
                |p: &Value| json!({"type": p.get("kind").unwrap_or(&json!("x")), "payload": p});
            collected(scene, &payloads.iter().map(event).collect::<Vec<_>>())
        };
        let to = |address: &str| json!({"operation_id": "o1", "to": {"channel": "sms", "address": address}});
        let of = |kind: &str, address: &str| json!({"kind": kind, "to": {"address": address}});
        let channel = sent(
            json!({"at": "/to/channel", "of": "channel", "how": "equal"}),
            "read",
        );
        let address = sent(
            json!({"at": "/to/address", "of": "to", "how": "one-of"}),
            "read",
        );
        let each = sent(
            json!({"at": "/to/address", "of": "to", "how": "each"}),
            "delivered",
        );
        let tags = sent(
            json!({"at": "/tags", "of": "tags", "how": "contains"}),
            "read",
        );
        let operation = sent(
            json!({"at": "/operation_id", "of": "operation_id", "how": "equal"}),
            "read",
        );
        let types = json!({"at": "/to/address", "of": "to", "how": "each", "types": {"failed": ["failed"]}});
        let failed = sent(types.clone(), "failed");
        vec![
            showing(&channel, &[to("+1")]).passes(),
            showing(&channel, &[json!({"to": {"channel": "rcs"}})])
                .fails("/events/0/payload/to/channel"),
            showing(&address, &[to("+2")]).passes(),
            showing(&address, &[to("+3")]).fails(at),
            showing(&each, &[to("+2"), to("+1")]).passes(),
            showing(&each, &[to("+2")]).fails(at),
            showing(
                &each,
                &[of("queued", "+1"), of("sent", "+1"), of("sent", "+2")],
            )
            .fails(at),
            showing(&failed, &[of("failed", "+1"), of("sent", "+2")]).fails(at),
            showing(
                &failed,
                &[of("failed", "+1"), of("failed", "+2"), of("sent", "+2")],
            )
            .passes(),
            showing(&sent(types, "delivered"), &[of("failed", "+1")]).not_judged(),
            showing(&tags, &[json!({"tags": {"a": "b", "c": "d"}})]).passes(),
            showing(&tags, &[json!({"tags": {}})]).fails("/events/0/payload/tags"),
            showing(&operation, &[to("+1")]).passes(),
            showing(&channel, &[json!({})]).not_judged(),
        ]
    }
}

impl EventFields {
    /// The types whose events cover each value after this send; none if its outcome is not judged.
    fn types_of(&self, collected: &Collected<'_>) -> Option<&[String]> {
        if self.types.is_empty() {
            return self.feed.is_delivered(collected).then_some(&[]);
        }
        let outcome = self.feed.outcome_of(collected)?;
        self.types.get(&outcome).map(Vec::as_slice)
    }

    /// The first event with another value, or the last one if a value occurs in no event.
    fn wrong(&self, given: &Value, there: &[FieldValue<'_>]) -> Option<(usize, Fact)> {
        let all: Vec<String> = match given.as_array() {
            Some(all) => all.iter().map(as_text).collect(),
            None => vec![as_text(given)],
        };
        let same = |value: &Value| match self.how {
            Relation::Equal if given.is_object() => json::equal(value, given) || value.is_null(),
            Relation::Equal => as_text(value) == as_text(given),
            Relation::Contains => {
                let mut members = given.as_object().into_iter().flatten();
                // Null has a rule of its own.
                value.is_null() || members.all(|(name, given)| value.get(name) == Some(given))
            }
            Relation::OneOf | Relation::Each => all.contains(&as_text(value)),
        };
        let fact = |expected: String, actual: String| Fact::new("carries", expected, actual);
        if self.how == Relation::Each {
            let mut of_types: BTreeMap<&str, (usize, BTreeSet<String>)> = BTreeMap::new();
            for stands in there {
                let (last, shown) = of_types.entry(stands.r#type).or_default();
                *last = stands.event;
                shown.insert(as_text(stands.value));
            }
            return of_types.into_iter().find_map(|(kind, (last, shown))| {
                let lacks = all.iter().find(|one| !shown.contains(*one))?;
                let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
                let shown = text::excerpt(&shown.join(", "), SHOWN_BYTES_MAX).into_owned();
                Some((last, fact(format!("{lacks} in some event {kind}"), shown)))
            });
        }
        let FieldValue { event, value, .. } = there.iter().find(|stands| !same(stands.value))?;
        Some((
            *event,
            fact(
                format!("{}, as sent", json::short(given)),
                json::short(value),
            ),
        ))
    }
}
