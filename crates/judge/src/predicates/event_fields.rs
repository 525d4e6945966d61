//! `event-fields`: the fields of a send's events. Does not judge fields that an event lacks.
//!
//! - With `of`: a field has the value that the send was given.
//! - With `recipient`: a field has the same value in all events of one message. Does not compare two messages.
//! - With `message`: a message has one recipient and belongs to one send. Does not judge events without the identifier of
//!   their message.
//! - With `type`: what every payload has in common, for an event type without a schema. Requires no field.
//! - With `aspect`: `schema_address.rs`.

mod schema_address;

pub(super) use schema_address::EventSchemaAddress;

#[cfg(test)]
use super::feed::examples::{collected, of_feed, sent};
use super::feed::{Collected, Collection, Feed};
use super::prelude::*;
use conformant_base::text;

/// Bytes of the values of events in a finding.
const SHOWN_BYTES_MAX: usize = 100;

/// A field of the events has the value of an argument or a result of the send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventFields {
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

impl Predicate for EventFields {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
        references.any_event("at", &self.at);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for collection in self.feed.collections(verdicts.context) {
            let given = collection
                .argument(&self.of)
                .or_else(|| collection.result(&self.of))
                .or(self.default.as_ref());
            let types = match self.how {
                Relation::Each => self.types_of(&collection),
                Relation::Equal | Relation::Contains | Relation::OneOf => Some(&[][..]),
            };
            let (Some(given), Some(types)) = (given, types) else {
                continue;
            };
            let events = collection.events.iter();
            let events = events.filter(|event| types.is_empty() || event.is_of(types));
            let shown: Vec<(&Collected<'_>, &Value)> = events
                .filter_map(|event| Some((event, event.field(&self.at)?)))
                .collect();
            let sites = match self.how {
                // A missing value is missing from all events.
                Relation::Each => {
                    let all = collection.site(&format!("/*/payload{}", self.at));
                    Some(Sites::from(all)).filter(|_| !shown.is_empty())
                }
                Relation::Equal | Relation::Contains | Relation::OneOf => {
                    Sites::collect(shown.iter().map(|(event, _)| event.field_site(&self.at)))
                }
            };
            let Some(sites) = sites else {
                verdicts.record_vacuous(Vacuity::Absent);
                continue;
            };
            let wrong = self.wrong(given, &shown);
            let wrong = wrong.map(|(event, fact)| (event.field_site(&self.at), fact));
            verdicts.conclude_at(sites, wrong);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::of_sites_and(sites, &[Change::To(json!("another"))])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = "/events/0/payload/to/address";
        let of = |parameters: Value, outcome: &str| {
            let arguments = json!({
                "channel": "sms", "to": ["+1", "+2"], "outcome": outcome, "tags": {"a": "b"},
            });
            sent(&of_feed(parameters), arguments)
        };
        let rule = |at: &str, of: &str, how: &str| json!({"at": at, "of": of, "how": how});
        let showing = |scene: &ExampleBuilder, payloads: &[Value]| {
            // `kind` in a payload is the type of its event.
            let event =
                |p: &Value| json!({"type": p.get("kind").unwrap_or(&json!("x")), "payload": p});
            collected(scene, &payloads.iter().map(event).collect::<Vec<_>>())
        };
        let to = |address: &str| json!({"operation_id": "o1", "to": {"channel": "sms", "address": address}});
        let typed = |kind: &str, address: &str| json!({"kind": kind, "to": {"address": address}});
        let channel = of(rule("/to/channel", "channel", "equal"), "read");
        let address = of(rule("/to/address", "to", "one-of"), "read");
        let each = of(rule("/to/address", "to", "each"), "delivered");
        let tags = of(rule("/tags", "tags", "contains"), "read");
        let operation = of(rule("/operation_id", "operation_id", "equal"), "read");
        let mut types = rule("/to/address", "to", "each");
        types["types"] = json!({"failed": ["failed"]});
        let failed = of(types.clone(), "failed");
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
                &[
                    typed("queued", "+1"),
                    typed("sent", "+1"),
                    typed("sent", "+2"),
                ],
            )
            .fails(at),
            showing(&failed, &[typed("failed", "+1"), typed("sent", "+2")]).fails(at),
            showing(
                &failed,
                &[
                    typed("failed", "+1"),
                    typed("failed", "+2"),
                    typed("sent", "+2"),
                ],
            )
            .passes(),
            showing(&of(types, "delivered"), &[typed("failed", "+1")]).not_judged(),
            showing(&tags, &[json!({"tags": {"a": "b", "c": "d"}})]).passes(),
            showing(&tags, &[json!({"tags": {}})]).fails("/events/0/payload/tags"),
            showing(&operation, &[to("+1")]).passes(),
            showing(&channel, &[json!({})]).not_judged(),
        ]
    }
}

impl EventFields {
    /// The types whose events cover each value after this send; none if its outcome is not judged.
    fn types_of(&self, collection: &Collection<'_>) -> Option<&[String]> {
        let outcome = self.feed.outcome_of(collection)?;
        match self.types.is_empty() {
            true => (outcome == "delivered").then_some(&[]),
            false => self.types.get(&outcome).map(Vec::as_slice),
        }
    }

    /// The first event with another value, or the last one if a value occurs in no event.
    fn wrong<'e, 'c>(
        &self,
        given: &Value,
        shown: &[(&'e Collected<'c>, &Value)],
    ) -> Option<(&'e Collected<'c>, Fact)> {
        let all: Vec<String> = match given.as_array() {
            Some(all) => all.iter().map(as_text).collect(),
            None => vec![as_text(given)],
        };
        let fact = |expected: String, actual: String| Fact::new("carries", expected, actual);
        if self.how == Relation::Each {
            let mut of_types: BTreeMap<&str, (&Collected<'_>, BTreeSet<String>)> = BTreeMap::new();
            for (event, value) in shown {
                let name = event.name().unwrap_or_default();
                let (last, texts) = of_types.entry(name).or_insert((event, BTreeSet::new()));
                *last = event;
                texts.insert(as_text(value));
            }
            return of_types.into_iter().find_map(|(name, (last, texts))| {
                let lacks = all.iter().find(|one| !texts.contains(*one))?;
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                let texts = text::excerpt(&texts.join(", "), SHOWN_BYTES_MAX).into_owned();
                Some((last, fact(format!("{lacks} in some event {name}"), texts)))
            });
        }
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
        let (event, value) = shown.iter().find(|(_, value)| !same(value))?;
        let expected = format!("{}, as sent", json::short(given));
        Some((event, fact(expected, json::short(value))))
    }
}

/// A field is the same in all events of a send to one recipient in one attempt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventFieldsAgree {
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
        for collection in self.feed.collections(verdicts.context) {
            let given = collection.texts(&self.recipients);
            let mut messages: BTreeMap<_, Vec<(&Collected<'_>, String)>> = BTreeMap::new();
            for event in &collection.events {
                let both = event.text(&self.recipient).zip(event.text(&self.at));
                let Some((to, value)) = both else { continue };
                // With two messages to one recipient, an event may be about either.
                if given.iter().filter(|one| **one == to).count() == 1 {
                    let attempt = event.text(&self.attempt).unwrap_or_default();
                    let message = messages.entry((to, attempt)).or_default();
                    message.push((event, value));
                }
            }
            for events in messages.values().filter(|events| events.len() > 1) {
                let (_, first) = &events[0];
                let other = events.iter().find(|(_, value)| value != first);
                let wrong = other.map(|(event, value)| {
                    let expected = format!("{first}, as in an earlier event of this message");
                    let fact = Fact::new("one-message", expected, value.clone());
                    (event.field_site(&self.at), fact)
                });
                let sites = Sites::from_slice(events, |(event, _)| event.field_site(&self.at));
                if let Some(sites) = sites {
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
            let rule = of_feed(json!({
                "at": "/message_id", "recipient": "/to/address", "recipients": "to",
                "attempt": "/attempt",
            }));
            collected(&sent(&rule, json!({"to": to})), events)
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

/// Two messages, to other recipients or of other sends, never have the same identifier.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventMessagesDiffer {
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
        let mut messages: BTreeMap<String, Message> = BTreeMap::new();
        for collection in self.feed.collections(verdicts.context) {
            let Some(send) = self.feed.send_of(&collection) else {
                continue;
            };
            for event in &collection.events {
                let Some(id) = event.text(&self.message) else {
                    continue;
                };
                let (to, site) = (event.text(&self.to), event.field_site(&self.message));
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
                    let expected = format!("another identifier than that of the message {other}");
                    let fact = Fact::new("not-unique", expected, id);
                    verdicts.conclude([known.site.clone(), site], Some(fact));
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
        let rule = of_feed(json!({"message": "/message_id", "to": "/to/address"}));
        let sent = |scene: &ExampleBuilder, operation: &str, events: &[Value]| {
            let operation = json!({"operation_id": operation});
            let to = json!({"to": ["+1", "+2"]});
            let scene = scene.hook("send_bulk_message", to, operation.clone());
            scene.hook("collect_events", operation, json!({"events": events}))
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

/// The payloads of one event type are well-formed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventPayload {
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
        for event in self.feed.events(verdicts.context) {
            let Some(payload) = event
                .member("payload")
                .filter(|_| event.name() == Some(&self.r#type))
            else {
                continue;
            };
            let wrong = self.wrong(payload);
            let wrong = wrong.map(|(at, fact)| (event.field_site(&at), fact));
            verdicts.conclude_at(event.field_site(""), wrong);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let mut payloads = vec![json!({"message_id": 1}), json!({"message_id": null})];
        payloads.extend(self.without.iter().map(|name| json!({name: "1"})));
        let unlisted = json!({"unlisted": "1"});
        payloads.extend(self.only.keys().map(|at| match at.strip_prefix('/') {
            Some(name) => json!({name: unlisted}),
            None => unlisted.clone(),
        }));
        Mutation::at(sites.last(), payloads.into_iter().map(Change::To))
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let other = json!({"type": "message.sent", "payload": {"attempt": 1}});
        let of = |mut parameters: Value, events: &[Value]| {
            parameters["type"] = json!("message.read");
            collected(&of_feed(parameters), events)
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
