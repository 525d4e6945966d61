//! `event-fields` with `aspect`: the type of an event and the address of its schema belong together. Does not judge events of
//! unknown types, or events without an address.

use super::event_emitted::Feed;
#[cfg(test)]
use super::event_emitted::{collected, feed};
use super::prelude::*;

/// The address of an event's schema ends in a name and its version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSchemaAddress {
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
        let context = verdicts.context;
        for (index, n, event) in self.feed.events(context) {
            let schema = event.get("schema").and_then(Value::as_str);
            let of = event.get("type").and_then(Value::as_str);
            let Some(schema) = schema else { continue };
            let wrong = match self.compare(context, of, schema) {
                Announced::Unknown => continue,
                Announced::Right => None,
                Announced::Mismatch(expected) => {
                    Some(Fact::new("schema-address", expected, schema.to_owned()))
                }
            };
            let site = Site::hook(index, format!("/events/{n}/schema"));
            verdicts.conclude(site, wrong);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let site = sites.last();
        let others = ["no address", "https://example.com/api.Another/1"];
        let to = |text: &str| Mutation::new(site.clone(), Change::To(json!(text)));
        others.into_iter().map(to).collect()
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let event = |parameters: Value, kind: &str, schema: &str| {
            let kind = format!("com.svc.comms-api.message.{kind}");
            let rule = Example::for_rule("events", parameters);
            collected(
                &rule,
                &[json!({"type": kind, "schema": schema, "payload": {}})],
            )
        };
        let version =
            |schema: &str| event(json!({"feed": feed(), "aspect": "version"}), "sent", schema);
        let of_type = |kind: &str, schema: &str| {
            event(json!({"feed": feed(), "aspect": "type"}), kind, schema)
        };
        let prefixed = |schema: &str| {
            let parameters = json!({"feed": feed(), "aspect": "type", "prefix": "CommsApi."});
            event(parameters, "sent", schema)
        };
        let without = Example::for_rule("events", json!({"feed": feed(), "aspect": "type"}));
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

/// How an address compares with the table of event types.
enum Announced {
    /// Not in the table.
    Unknown,
    /// As in the table.
    Right,
    /// Different, with the expected text.
    Mismatch(String),
}

impl EventSchemaAddress {
    fn compare(&self, context: &Context<'_>, of: Option<&str>, schema: &str) -> Announced {
        let announced = name_and_version(schema);
        let types = &context.rulebook.event_types;
        match (self.aspect, announced) {
            (Aspect::Version, None) => {
                Announced::Mismatch("an address that ends in a name and a version".to_owned())
            }
            (Aspect::Version, Some((name, version))) => {
                let mut known = types.values().flatten().filter_map(|kind| named(kind));
                match known.find(|(known, _)| *known == name) {
                    Some((_, known)) if known != version => {
                        Announced::Mismatch(format!("{name}/{known}"))
                    }
                    Some(_) | None => Announced::Right,
                }
            }
            (Aspect::Type, announced) => {
                let kind = of.and_then(|of| types.get(of)?.as_deref());
                match (kind.and_then(named), announced) {
                    (Some((own, _)), Some((name, _))) if own != name => {
                        Announced::Mismatch(format!("the schema of {own}"))
                    }
                    (Some((own, version)), Some(_)) if !self.has_prefix(schema, own) => {
                        let prefix = self.prefix.as_deref().unwrap_or_default();
                        Announced::Mismatch(format!(
                            "an address that ends in {prefix}{own}/{version}"
                        ))
                    }
                    (Some(_), Some(_)) => Announced::Right,
                    _ => Announced::Unknown,
                }
            }
        }
    }
}

impl EventSchemaAddress {
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
