//! `event-fields` with `aspect`: the type of an event and the address of its schema belong together. Does not judge events of
//! unknown types, or events without an address.

use crate::predicates::feed::Feed;
#[cfg(test)]
use crate::predicates::feed::examples::{collected, of_feed};
use crate::predicates::prelude::*;

/// The address of an event's schema ends in a name and its version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::predicates) struct EventSchemaAddress {
    /// Where the events come from.
    feed: Feed,
    /// What of the address.
    aspect: Aspect,
    /// The text before the name in the last segment but one.
    #[serde(default)]
    prefix: Option<String>,
}

/// The part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Aspect {
    /// It ends in a name and the version of that name.
    Version,
    /// Its name is that of the event's type.
    Type,
}

impl Predicate for EventSchemaAddress {
    fn references(&self, references: &mut References) {
        self.feed.references(references);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for event in self.feed.events(verdicts.context) {
            let Some(schema) = event.member("schema").and_then(Value::as_str) else {
                continue;
            };
            let Some(wrong) = self.compare(verdicts.context, event.name(), schema) else {
                continue;
            };
            let wrong = wrong.map(|expected| Fact::new("schema-address", expected, schema));
            verdicts.conclude(event.site("/schema"), wrong);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let others = ["no address", "https://example.com/api.Another/1"];
        Mutation::at(sites.last(), others.map(|text| Change::To(json!(text))))
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let of = |parameters: Value, kind: &str, schema: &str| {
            let kind = format!("com.svc.comms-api.message.{kind}");
            let event = json!({"type": kind, "schema": schema, "payload": {}});
            collected(&of_feed(parameters), &[event])
        };
        let version = |schema: &str| of(json!({"aspect": "version"}), "sent", schema);
        let of_type = |kind: &str, schema: &str| of(json!({"aspect": "type"}), kind, schema);
        let prefix = json!({"aspect": "type", "prefix": "CommsApi."});
        let prefixed = |schema: &str| of(prefix.clone(), "sent", schema);
        let without = of_feed(json!({"aspect": "type"}));
        let at = "/events/0/schema";
        vec![
            version("https://h/CommsApi.MessageSent/4").passes(),
            version("https://h/CommsApi.MessageScheduled/1").passes(),
            version("https://h/CommsApi.MessageSentAgain/1").passes(),
            version("https://h/CommsApi.OperationPaused/7").passes(),
            version("CommsApi.MessageQueued/3").passes(),
            version("CommsApi.MessageRead/9").passes(),
            version("https://h/CommsApi.MessageSent/5").fails(at),
            version("https://h/CommsApi.MessageSent/44").fails(at),
            version("https://h/CommsApi.MessageSent").fails(at),
            version("CommsApi.OperationCompleted/1").fails(at),
            of_type("sent", "https://h/CommsApi.MessageSent/4").passes(),
            of_type("sent", "https://h/CommsApi.MessageQueued/3").fails(at),
            of_type("read", "https://h/CommsApi.MessageQueued/3").not_judged(),
            prefixed("https://h/CommsApi.MessageSent/4").passes(),
            prefixed("CommsApi.MessageSent/4").passes(),
            prefixed("https://h/Other.MessageSent/4").fails(at),
            collected(&without, &[json!({"type": "x", "payload": {}})]).not_judged(),
        ]
    }
}

/// If an address is wrong: the expected one.
type OtherAddress = Option<String>;

impl EventSchemaAddress {
    /// The expected address if it differs from the table of event types; the outer `None` if it is not in the table.
    fn compare(
        &self,
        context: &Context<'_>,
        of: Option<&str>,
        schema: &str,
    ) -> Option<OtherAddress> {
        let announced = name_and_version(schema);
        let types = &context.rulebook.event_types;
        if self.aspect == Aspect::Version {
            let Some((name, version)) = announced else {
                let expected = "an address that ends in a name and a version";
                return Some(Some(expected.to_owned()));
            };
            let mut known = types.values().flatten().filter_map(|kind| named(kind));
            let known = known.find(|(known, _)| *known == name);
            let other = known.filter(|(_, known)| *known != version);
            return Some(other.map(|(_, known)| format!("{name}/{known}")));
        }
        let (own, version) = named(types.get(of?)?.as_deref()?)?;
        let (name, _) = announced?;
        let prefix = self.prefix.as_deref().unwrap_or_default();
        Some(if own != name {
            Some(format!("the schema of {own}"))
        } else if !self.has_prefix(schema, own) {
            Some(format!("an address that ends in {prefix}{own}/{version}"))
        } else {
            None
        })
    }

    /// Whether the prefix, if any, is all that stands before the name in its segment.
    fn has_prefix(&self, schema: &str, name: &str) -> bool {
        let Some(prefix) = &self.prefix else {
            return true;
        };
        let segment = schema.rsplit('/').nth(1).unwrap_or_default();
        segment.strip_prefix(prefix.as_str()) == Some(name)
    }
}

/// `events/MessageSent/4`: `MessageSent` and `4`.
fn named(kind: &str) -> Option<(&str, &str)> {
    kind.strip_prefix("events/")?.split_once('/')
}

/// `https://h/CommsApi.MessageSent/4`: `MessageSent` and `4`.
fn name_and_version(schema: &str) -> Option<(&str, &str)> {
    let (before, version) = schema.rsplit_once('/')?;
    let (_, name) = before.rsplit_once('.')?;
    let is_version = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_version && is_name).then_some((name, version))
}
