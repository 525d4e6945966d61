//! `write-persists` with `of`: later responses show the values of an accepted write. Does not judge the response to the
//! write, nor values that something else changed since.

use super::prelude::*;
use crate::compare::as_text;
use crate::evidence::Event;
use crate::history::{Appearance, Observation, Origin, Outcome, ResourceId, Write};
use crate::parameter::beyond;
use crate::predicates::parameter_echo::differs;
use conformant_record::Level;
use conformant_rulebook::annotations::Derived;
use conformant_rulebook::rules::Comparison;
use conformant_rulebook::{Action, Operation, Parameter, ParameterLocation};
use serde_json::Map;
use std::collections::BTreeMap;
use std::time::Duration;

/// Later observations of a resource show the values of a write of this operation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WritePersists {
    /// The operation with its service.
    of: OperationName,
    /// Parameters that come back elsewhere than in the response, each with its place; if omitted, those
    /// with `x-echo`.
    #[serde(default)]
    shown: BTreeMap<String, Shown>,
    /// Hooks that change the resource, but none of the sent values.
    #[serde(default)]
    through: Vec<String>,
}

/// Pointer to an echoed parameter in a later observation, if there is one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Shown {
    /// The representation that shows it.
    kind: String,
    /// Where in it.
    at: String,
    /// How the two compare, unless it may have further members.
    #[serde(default, rename = "as")]
    compare: Comparison,
    /// Whether a number may stand there as a text, and a text as a number.
    #[serde(default)]
    by_value: bool,
    /// Whether it may have further members.
    #[serde(default)]
    part: bool,
    /// Members of the representation and their values while the sent value persists: once observed, it is in each
    /// later observation. Empty for always; omit it if the value may disappear at any time.
    stays_while: Option<BTreeMap<String, Value>>,
}

/// One sent value and its expected place.
struct Expected<'c> {
    kind: Option<&'c str>,
    at: &'c str,
    sent: &'c Value,
    /// How long a name of its members may be; a longer one may be cut.
    names_max: Option<u64>,
    /// What holds as long as it stays; `None` if it may disappear at any time.
    stays_while: Option<&'c BTreeMap<String, Value>>,
    how: Persistence<'c>,
}

enum Persistence<'c> {
    Echoed(Comparison, &'c [Value]),
    Part { by_value: bool },
}

impl Predicate for WritePersists {
    fn subject(&self) -> Subject {
        self.of.subject()
    }

    fn references(&self, references: &mut References) {
        let mut operation = references.operation("of", self.of.id());
        for parameter in self.shown.keys() {
            operation.parameter("shown", parameter);
        }
        for shown in self.shown.values() {
            references
                .kind("kind", &shown.kind)
                .pointer("at", &shown.at);
        }
        for hook in &self.through {
            references.hook("through", hook);
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        let services = model.services.values();
        let operations = services.flat_map(|service| service.operations.values());
        let writes = operations.filter(|o| {
            let writes = matches!(
                o.does,
                Action::Makes | Action::FindsOrMakes | Action::Changes
            );
            let mut bodies = o.parameters.iter();
            writes && o.resource.is_some() && bodies.any(|p| p.place == ParameterLocation::Body)
        });
        Some(writes.map(|o| format!("{}/{}", o.service, o.id)).collect())
    }

    fn evaluate(&self, context: &Context<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for write in &context.history.writes {
            let Some(index) = write.exchange() else {
                continue;
            };
            let seen = &context.seen[index];
            let is_this =
                seen.exchange.service == rule.service && seen.exchange.operation == self.of.id();
            if let Some(operation) = seen.operation.filter(|_| is_this)
                && write.outcome == Outcome::Done
                && !context.history.returns_existing(context, index)
            {
                self.evaluate_write(context, rule, (write, index, operation), verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let mut mutations = Mutation::of_sites(sites);
        let other =
            |site: &Site| Mutation::new(site.clone(), Change::To(json!({"other": "member"})));
        mutations.extend(sites.iter().map(other));
        mutations
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sid = |prefix: &str| format!("{prefix}{}", "1".repeat(32));
        let service = |name: &str| {
            json!({
                "sid": sid("IS"), "account_sid": "AC1", "friendly_name": name,
                "default_service_role_sid": "RL1", "default_channel_role_sid": "RL2",
                "default_channel_creator_role_sid": "RL3", "read_status_enabled": true,
                "reachability_enabled": false, "typing_indicator_timeout": 5,
                "consumption_report_interval": 10, "limits": {}, "date_created": "", "date_updated": "",
            })
        };
        let made = Example::for_rule("chat", json!({"of": "chat/create-service"})).answered(
            "create-service",
            json!({"FriendlyName": " a "}),
            service(" a "),
        );
        let fetched = |scene: ExampleBuilder, name: &str| {
            scene.answered("fetch-service", json!({"Sid": sid("IS")}), service(name))
        };
        let renamed_at_once = || {
            let update = |scene: ExampleBuilder, name: &str| {
                let sent = json!({"Sid": sid("IS"), "FriendlyName": name});
                scene.answered("update-service", sent, service(name))
            };
            let made = Example::for_rule("chat", json!({"of": "chat/update-service"})).answered(
                "create-service",
                json!({"FriendlyName": " a "}),
                service(" a "),
            );
            update(update(made, "b"), "c").raced(2)
        };
        let execution = |data: Value| {
            json!({
                "sid": sid("FN"), "account_sid": "", "flow_sid": sid("FW"), "contact_sid": "",
                "contact_channel_address": "", "context": {"flow": {"data": data}}, "status": "active",
                "date_created": "", "date_updated": "", "url": "", "links": {},
            })
        };
        let shown = json!({
            "of": "flow/create-execution",
            "shown": {"Parameters": {
                "kind": "flow/execution", "at": "/context/flow/data", "part": true, "by-value": true,
                "stays-while": {"/status": "active"},
            }},
        });
        let began = |data: Value| {
            let sent =
                json!({"FlowSid": sid("FW"), "To": "a", "From": "b", "Parameters": "{\"n\":1.5}"});
            let path = json!({"FlowSid": sid("FW"), "Sid": sid("FN")});
            Example::for_rule("flow", shown.clone())
                .answered("create-execution", sent, execution(json!({})))
                .answered("fetch-execution", path, execution(data))
        };
        let later = |scene: ExampleBuilder, data: Value, status: &str| {
            let path = json!({"FlowSid": sid("FW"), "Sid": sid("FN")});
            let mut shown = execution(data);
            shown["status"] = json!(status);
            scene.answered("fetch-execution", path, shown)
        };
        let joins = |scene: ExampleBuilder, attributes: &str, shown: &str| {
            let sent = json!({
                "ServiceSid": sid("IS"), "ChannelSid": sid("CH"), "Identity": "ann", "Attributes": attributes,
            });
            scene.answered("create-member", sent, member(shown))
        };
        let looked = |scene: ExampleBuilder, shown: &str| {
            let path = json!({"ServiceSid": sid("IS"), "ChannelSid": sid("CH"), "Sid": sid("MB")});
            scene.answered("fetch-member", path, member(shown))
        };
        let joined = || Example::for_rule("chat", json!({"of": "chat/create-member"}));
        let (one, other) = ("{\"a\":1}", "{\"a\":2}");
        vec![
            looked(joins(joined(), one, one), other).fails("/attributes"),
            // A second creation may bring what is there, unchanged.
            looked(joins(joins(joined(), one, one), other, one), one).not_judged(),
            fetched(made.clone(), " a ").passes(),
            // Spaces around a name may go.
            fetched(made.clone(), "a").passes(),
            fetched(made.clone(), "b").fails("/friendly_name"),
            fetched(
                made.clone().answered(
                    "update-service",
                    json!({"Sid": sid("IS"), "FriendlyName": "b"}),
                    service("b"),
                ),
                "b",
            )
            .not_judged(),
            // Of updates at the same time any may be the last.
            fetched(renamed_at_once(), "b").passes(),
            fetched(renamed_at_once(), "c").passes(),
            fetched(renamed_at_once(), " a ").fails("/friendly_name"),
            began(json!({"n": 1.5, "more": true})).passes(),
            began(json!({"n": 1})).fails("/context/flow/data"),
            began(json!({"n": "1.5"})).passes(),
            began(json!({"n": "1.6"})).fails("/context/flow/data"),
            later(began(json!({"n": 1.5})), json!({}), "active").fails("/context/flow/data"),
            later(began(json!({"n": 1.5})), json!({}), "ended").passes(),
            later(began(json!({})), json!({}), "active").passes(),
            made.not_judged(),
        ]
    }
}

impl WritePersists {
    fn evaluate_write(
        &self,
        context: &Context<'_>,
        rule: &Rule,
        (write, index, operation): (&Write<'_>, usize, &Operation),
        verdicts: &mut Verdicts<'_>,
    ) {
        let history = &context.history;
        let Some(id) = write.resource.filter(|&id| history.is_exclusive(id)) else {
            return;
        };
        let expected: Vec<Expected<'_>> = operation
            .parameters
            .iter()
            .filter_map(|p| self.expected(context, index, p))
            .filter(|e| !verdicts.has_finding_at(&Site::answer(index, e.at)))
            .collect();
        if expected.is_empty() {
            return;
        }
        let resource = history.resources.get(id);
        let mut first_shown = vec![FirstShown::default(); expected.len()];
        for sight in &resource.observations {
            let is_later = write.moment.is_before(&sight.moment) && !sight.is_attempt();
            // Another representation, or a list, may lag by an undocumented time.
            let is_own_face = operation.response.as_deref() == Some(sight.face);
            let is_whole = matches!(sight.shows, Appearance::Whole(_));
            let follows = write.does == Action::Changes && !(is_whole && is_own_face);
            if is_later && !follows {
                let since = Since::new(context, (write, id), sight, resource.kind, &self.through);
                since.evaluate(rule, &expected, verdicts);
                since.evaluate_unchanged_parts(rule, &expected, &mut first_shown, verdicts);
            }
        }
    }

    /// The value of a parameter and its expected place.
    fn expected<'c>(
        &'c self,
        context: &'c Context<'_>,
        index: usize,
        parameter: &'c Parameter,
    ) -> Option<Expected<'c>> {
        let all = &context.seen[index].exchange.sent;
        let sent = all
            .get(&parameter.name)
            .filter(|_| parameter.applies(all))?;
        let is_allowed = parameter.has_form(sent) && beyond(sent, &parameter.schema).is_none();
        let kind = context.rulebook.rules.get(&parameter.rule);
        let binds = kind.is_none_or(|rule| rule.level == Level::Must);
        if parameter.place != ParameterLocation::Body || !is_allowed {
            return None;
        }
        let names_max = json::get(&parameter.schema, "/propertyNames/maxLength");
        let names_max = names_max.and_then(Value::as_u64);
        if let Some(shown) = self.shown.get(&parameter.name) {
            return Some(Expected {
                kind: Some(&shown.kind),
                at: &shown.at,
                sent,
                names_max,
                stays_while: shown.stays_while.as_ref(),
                how: match shown.part {
                    true => Persistence::Part {
                        by_value: shown.by_value,
                    },
                    false => Persistence::Echoed(shown.compare, &[]),
                },
            });
        }
        let echo = parameter
            .echo
            .as_ref()
            .filter(|_| self.shown.is_empty() && binds)?;
        Some(Expected {
            kind: None,
            at: &echo.at,
            sent,
            names_max,
            stays_while: None,
            how: Persistence::Echoed(echo.compare, &echo.or),
        })
    }
}

/// The observations that showed a value first, one in each format: what one of them never shows the other may.
#[derive(Clone, Default)]
struct FirstShown<'c> {
    json: Option<&'c Observation<'c>>,
    xml: Option<&'c Observation<'c>>,
}

/// A observation some time after a write.
struct Since<'c> {
    context: &'c Context<'c>,
    sight: &'c Observation<'c>,
    /// The resource, and the write.
    of: (ResourceId, &'c Write<'c>),
    /// The writes meanwhile; `None` if they are unknown.
    others: Option<Vec<&'c Write<'c>>>,
}

impl<'c> Since<'c> {
    fn new(
        context: &'c Context<'c>,
        (write, id): (&'c Write<'c>, ResourceId),
        sight: &'c Observation<'c>,
        kind: &str,
        through: &[String],
    ) -> Self {
        let leaves = |other: &&Write<'_>| match other.origin {
            Origin::Hook(event) => match context.evidence.events.get(event) {
                Some(Event::Hook(call)) => through.contains(&call.name),
                Some(Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_)) | None => false,
            },
            Origin::Exchange(_) => false,
        };
        let meanwhile = |other: &&Write<'_>| {
            other.origin != write.origin
                && !other.moment.is_before(&write.moment)
                && !sight.moment.is_before(&other.moment)
                && other.may_touch(id, kind)
                && !leaves(other)
        };
        let others: Vec<&Write<'_>> = context.history.writes.iter().filter(meanwhile).collect();
        let is_known = |other: &&Write<'_>| {
            let sent = other.exchange().map(|index| &context.seen[index]);
            let Some((seen, operation)) = sent.and_then(|seen| Some((seen, seen.operation?)))
            else {
                return false;
            };
            let mut parameters = operation.parameters.iter();
            // What a parameter that never comes back changes is not known.
            let silent = parameters.any(|p| {
                p.echo.is_none()
                    && p.place == ParameterLocation::Body
                    && seen.exchange.sent.contains_key(&p.name)
            });
            other.outcome == Outcome::Done && other.does == Action::Changes && !silent
        };
        let others = others.iter().all(is_known).then_some(others);
        Self {
            context,
            sight,
            of: (id, write),
            others,
        }
    }

    fn evaluate(&self, rule: &Rule, expected: &[Expected<'_>], verdicts: &mut Verdicts<'_>) {
        let Some(shown) = self.sight.representation(self.context) else {
            return;
        };
        let mut sites = Vec::new();
        let mut wrong = None;
        for one in expected {
            let Some(got) = self.open(one).then(|| shown.value(one.at)).flatten() else {
                continue;
            };
            let site = shown.site(one.at);
            if verdicts.has_finding_at(&site) {
                continue;
            }
            if let Some(fact) = one.wrong(got, self.is_xml()) {
                wrong.get_or_insert((site.clone(), fact));
            }
            sites.push(site);
        }
        for one in expected {
            let rivals = self.rivals(one);
            let got = shown.value(one.at).filter(|_| !rivals.is_empty());
            let site = shown.site(one.at);
            let Some(got) = got.filter(|_| !verdicts.has_finding_at(&site)) else {
                continue;
            };
            let is_of_one = one.wrong(got, self.is_xml()).is_none()
                || rivals
                    .iter()
                    .any(|value| one.of(value).wrong(got, self.is_xml()).is_none());
            if !is_of_one {
                let sent: Vec<String> = rivals.iter().map(|value| json::short(value)).collect();
                let fact = Fact {
                    kind: "not-kept",
                    expected: format!("{} or {}", json::short(one.sent), sent.join(" or ")),
                    actual: json::short(got),
                    ..Fact::default()
                };
                wrong.get_or_insert((site.clone(), fact));
            }
            sites.push(site);
        }
        if let Some(sites) = Sites::collect(sites) {
            verdicts.instance(rule, sites).conclude_at(wrong);
        }
    }

    /// What an earlier observation has shown this one shows still; which one showed it first is noted.
    fn evaluate_unchanged_parts(
        &self,
        rule: &Rule,
        expected: &[Expected<'_>],
        first_shown: &mut [FirstShown<'c>],
        verdicts: &mut Verdicts<'_>,
    ) {
        let Some(shown) = self.sight.representation(self.context) else {
            return;
        };
        for (one, first) in expected.iter().zip(first_shown) {
            let Some(holds) = one.stays_while.filter(|_| self.open(one)) else {
                continue;
            };
            let is_xml = self.is_xml();
            let first = if is_xml {
                &mut first.xml
            } else {
                &mut first.json
            };
            let stands = shown
                .value(one.at)
                .is_some_and(|got| one.wrong(got, is_xml).is_none() && !is_empty(got));
            let has_followed = |first: &Observation<'_>| match self.sight.shows {
                Appearance::Item(_) => first.moment.is_settled(&self.sight.moment),
                Appearance::Whole(_) | Appearance::NotFound => true,
            };
            let stays = holds
                .iter()
                .all(|(at, value)| shown.value(at) == Some(value));
            match *first {
                None => *first = stands.then_some(self.sight),
                Some(first) if stays && has_followed(first) => {
                    let site = shown.site(one.at);
                    let wrong = (!stands && !verdicts.has_finding_at(&site)).then(|| {
                        let got = shown.value(one.at);
                        let fact = Fact {
                            kind: "not-kept",
                            message: "what was sent was shown before and is not any more"
                                .to_owned(),
                            expected: json::short(one.sent),
                            actual: got.map_or_else(|| "nothing".to_owned(), json::short),
                        };
                        (site.clone(), fact)
                    });
                    if let Some(sites) = Sites::collect([site]) {
                        verdicts.instance(rule, sites).conclude_at(wrong);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Values that other writes at the same time sent for the field: one of all these must be shown. None if another
    /// write named it later, or if this is not the first of them.
    fn rivals(&self, one: &Expected<'_>) -> Vec<&'c Value> {
        let (_, write) = self.of;
        let is_plain = matches!(one.how, Persistence::Echoed(..)) && one.kind.is_none();
        let others = self
            .others
            .iter()
            .flatten()
            .filter(|_| is_plain && self.shows(one));
        let mut values = Vec::new();
        for other in others {
            let mut named = other.named.iter().filter(|n| overlaps(&n.echo.at, one.at));
            let Some(value) = named.next() else { continue };
            let is_rival =
                other.moment.overlaps(&write.moment) && other.moment.event > write.moment.event;
            if !is_rival || value.echo.at != one.at || named.next().is_some() {
                return Vec::new();
            }
            values.push(value.value);
        }
        values
    }

    /// Whether this observation must contain the value: no other action named it meanwhile.
    fn open(&self, one: &Expected<'_>) -> bool {
        let named = |other: &&Write<'_>| other.named.iter().any(|n| overlaps(&n.echo.at, one.at));
        let others = self.others.as_ref();
        self.shows(one) && others.is_some_and(|others| !others.iter().any(named))
    }

    /// Whether this observation shows what requests sent for the field.
    fn shows(&self, one: &Expected<'_>) -> bool {
        let face = self.sight.face;
        let about = self
            .context
            .rulebook
            .kinds
            .get(face)
            .map(|kind| &kind.annotations);
        let moves = |how: &Derived| {
            let (id, write) = self.of;
            let moments = (&write.moment, &self.sight.moment);
            let history = &self.context.history;
            how.by.is_empty()
                || history.moved_by(self.context, id, &how.by, moments, Duration::ZERO)
        };
        let is_derived = about.is_some_and(|about| {
            about.is_derived(one.at) && about.derived_at(one.at).is_none_or(moves)
        });
        one.kind.is_none_or(|kind| kind == face) && (one.kind.is_some() || !is_derived)
    }

    fn is_xml(&self) -> bool {
        let exchange = self
            .sight
            .exchange
            .map(|index| self.context.seen[index].exchange);
        exchange.is_some_and(|e| e.sent.get("FORMAT").is_some_and(|format| *format == "xml"))
    }
}

/// A member with these attributes, in examples.
#[cfg(test)]
fn member(attributes: &str) -> Value {
    let sid = |prefix: &str| format!("{prefix}{}", "1".repeat(32));
    json!({
        "sid": sid("MB"), "account_sid": "AC1", "channel_sid": sid("CH"), "service_sid": sid("IS"),
        "identity": "ann", "role_sid": "RL1", "last_consumed_message_index": null,
        "last_consumption_timestamp": null, "date_created": "", "date_updated": "",
        "attributes": attributes, "url": "",
    })
}

/// Whether one place lies within another.
fn overlaps(one: &str, other: &str) -> bool {
    json::within(one, other) || json::within(other, one)
}

impl Expected<'_> {
    /// The same place with another value.
    fn of<'v>(&'v self, sent: &'v Value) -> Expected<'v> {
        Expected {
            kind: self.kind,
            at: self.at,
            sent,
            names_max: self.names_max,
            stays_while: self.stays_while,
            how: match self.how {
                Persistence::Echoed(compare, or) => Persistence::Echoed(compare, or),
                Persistence::Part { by_value } => Persistence::Part { by_value },
            },
        }
    }

    fn wrong(&self, got: &Value, is_xml: bool) -> Option<Fact> {
        match self.how {
            Persistence::Echoed(compare, or) if is_xml => {
                let (sent, got) = (spaced(self.sent), spaced(got));
                differs(&Value::String(sent), &Value::String(got), compare, or)
            }
            Persistence::Echoed(compare, or) => differs(self.sent, got, compare, or),
            Persistence::Part { by_value } => self.lacks(got, is_xml, by_value),
        }
    }

    /// The first sent member that is missing. If all are missing, the field may not be shown.
    fn lacks(&self, got: &Value, is_xml: bool, by_value: bool) -> Option<Fact> {
        let parsed = self.sent.as_str().and_then(json::parse_text);
        let sent = parsed.as_ref().unwrap_or(self.sent).as_object()?;
        let got = got.as_object().filter(|members| !members.is_empty())?;
        // Names of elements have no spaces; the documents do not define how other keys are changed.
        let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_short = |name: &str| {
            self.names_max
                .is_none_or(|max| name.chars().count() as u64 <= max)
        };
        let mut members = sent
            .iter()
            .filter(|(name, _)| is_short(name) && (!is_xml || is_name(name)));
        let (name, value, there) = members.find_map(|(name, value)| {
            let there = got.get(name);
            let is_there = there.is_some_and(|there| match value {
                _ if by_value && is_same_value(value, there) => true,
                Value::String(_) if is_xml => spaced(value) == spaced(there),
                // A sent text stays a text even if it looks like a number; null is equivalent to an empty text.
                Value::String(text) => {
                    there.as_str() == Some(text) || text.is_empty() && there.is_null()
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => json::equal(value, there),
            });
            (!is_there).then_some((name, value, there))
        })?;
        let actual = there.map_or_else(|| "nothing".to_owned(), json::short);
        let expected = json::short(value);
        Some(Fact {
            kind: "not-kept",
            message: format!(
                "sent {expected} as {}, came back as {actual}",
                json::short(&Value::from(name.as_str()))
            ),
            expected,
            actual,
        })
    }
}

/// Whether both are the same, where a number and its text are.
fn is_same_value(sent: &Value, got: &Value) -> bool {
    match (sent, got) {
        (Value::Number(number), Value::String(text))
        | (Value::String(text), Value::Number(number)) => text
            .parse()
            .is_ok_and(|n| json::equal(&Value::Number(n), &Value::Number(number.clone()))),
        (Value::Array(sent), Value::Array(got)) => {
            sent.len() == got.len() && sent.iter().zip(got).all(|(s, g)| is_same_value(s, g))
        }
        (Value::Object(sent), Value::Object(got)) => {
            let is_there = |(name, value): (&String, &Value)| {
                got.get(name).is_some_and(|got| is_same_value(value, got))
            };
            sent.len() == got.len() && sent.iter().all(is_there)
        }
        _ => json::equal(sent, got),
    }
}

/// Whether the field is empty, so that it contains nothing of what was sent; XML writes an empty object as an empty text.
fn is_empty(got: &Value) -> bool {
    got.is_null() || got == "" || got.as_object().is_some_and(Map::is_empty)
}

/// A text without what XML may do to its spaces.
fn spaced(value: &Value) -> String {
    let text = as_text(value);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
