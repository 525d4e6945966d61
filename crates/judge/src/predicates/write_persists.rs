//! `write-persists`: later observations of a resource show the values that an accepted write sent.
//!
//! - Not judged: the response to the write itself, and values that something else may have changed since.
//! - Writes at the same time are rivals: later observations may show the value of any of them.
//! - Values with `stays-while` may appear late, but must then stay.

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
    /// Where later observations show parameters, by name. If this has an entry, `x-echo` of all other parameters is
    /// ignored; if it is omitted, the parameters with `x-echo` are expected at their places.
    #[serde(default)]
    shown: BTreeMap<String, Shown>,
    /// Hooks that change the resource, but none of the sent values.
    #[serde(default)]
    through: Vec<String>,
}

/// Where and how later observations show a parameter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Shown {
    /// The resource type of the representation that shows it.
    kind: String,
    /// The pointer to it in the representation.
    at: String,
    /// How the shown value is compared with the sent one. Not used with `part`.
    #[serde(default, rename = "as")]
    compare: Comparison,
    /// Whether a number may be shown as a text, and a text as a number.
    #[serde(default)]
    by_value: bool,
    /// Whether the shown object may have further members.
    #[serde(default)]
    part: bool,
    /// A condition: members of the representation and their values. Once an observation has shown the sent value, each
    /// later one that meets the condition must show it, too. An empty condition is always met. If this is omitted, the
    /// value may disappear at any time.
    stays_while: Option<BTreeMap<String, Value>>,
    /// With `stays-while`: whether each resource shows its value if another one shows its own.
    #[serde(default)]
    for_each: bool,
}

/// One sent value, and where later observations show it.
struct ExpectedValue<'c> {
    /// The only resource type whose representations show it; `None` for each that has the pointer.
    only_type: Option<&'c str>,
    at: &'c str,
    sent: &'c Value,
    /// The maximum length of the name of a member. Longer names may be shortened, so that they are not compared.
    name_length_max: Option<u64>,
    /// The condition under which it stays once it was shown; `None` if it may disappear at any time.
    stays_while: Option<&'c BTreeMap<String, Value>>,
    /// Whether another resource shows its value.
    is_shown_by_another: bool,
    comparison: ValueComparison<'c>,
}

/// How a shown value is compared with the sent one.
#[derive(Clone, Copy)]
enum ValueComparison<'c> {
    /// The values are equal by this comparison, or the shown value is one of the alternatives.
    Equal(Comparison, &'c [Value]),
    /// The shown object has every sent member, and possibly others.
    Contains { by_value: bool },
}

impl Predicate for WritePersists {
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
        let mut writes = Vec::new();
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
                writes.push((write, index, operation));
            }
        }
        let shown = self.shown_values(context, &writes);
        for write in writes {
            self.evaluate_write(context, rule, write, (&shown, verdicts));
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
                .answered("create-execution", sent, execution(&json!({})))
                .answered("fetch-execution", path, execution(&data))
        };
        let later = |scene: ExampleBuilder, data: Value, status: &str| {
            let path = json!({"FlowSid": sid("FW"), "Sid": sid("FN")});
            let mut shown = execution(&data);
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
            // A second creation may return the existing member unchanged.
            looked(joins(joins(joined(), one, one), other, one), one).not_judged(),
            fetched(made.clone(), " a ").passes(),
            // The service may remove spaces around a name.
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
            // Any of several updates at the same time may be the last one.
            fetched(renamed_at_once(), "b").passes(),
            fetched(renamed_at_once(), "c").passes(),
            fetched(renamed_at_once(), " a ").fails("/friendly_name"),
            began(json!({"n": 1.5, "more": true})).passes(),
            began(json!({"n": 1})).fails("/context/flow/data/n"),
            began(json!({"n": "1.5"})).passes(),
            began(json!({"n": "1.6"})).fails("/context/flow/data/n"),
            later(began(json!({"n": 1.5})), json!({}), "active").fails("/context/flow/data"),
            later(began(json!({"n": 1.5})), json!({}), "ended").passes(),
            later(began(json!({})), json!({}), "active").passes(),
            two_executions(&json!({"n": 2}), &json!({"n": 2})).passes(),
            two_executions(&json!({"n": 2}), &json!({})).fails("/context/flow/data"),
            // No execution shows its parameters.
            two_executions(&json!({}), &json!({})).passes(),
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
        (shown, verdicts): (&[(ResourceId, &str)], &mut Verdicts<'_>),
    ) {
        let history = &context.history;
        let Some(id) = write.resource.filter(|&id| history.is_exclusive(id)) else {
            return;
        };
        let expected_values: Vec<ExpectedValue<'_>> = operation
            .parameters
            .iter()
            .filter_map(|p| self.expected_value(context, index, p))
            .map(|expected| ExpectedValue {
                is_shown_by_another: shown
                    .iter()
                    .any(|(other, at)| *other != id && *at == expected.at),
                ..expected
            })
            .filter(|e| !verdicts.has_finding_at(&Site::answer(index, e.at)))
            .collect();
        if expected_values.is_empty() {
            return;
        }
        let resource = history.resources.get(id);
        let mut first_shown = vec![FirstShown::default(); expected_values.len()];
        for observation in &resource.observations {
            let is_later = write.moment.is_before(&observation.moment) && !observation.is_attempt();
            // After an update, other representations and lists may be outdated for an undocumented time.
            let is_own_type = operation.response.as_deref() == Some(observation.shown_type);
            let is_whole = matches!(observation.shows, Appearance::Whole(_));
            let may_be_outdated = write.does == Action::Changes && !(is_whole && is_own_type);
            if is_later && !may_be_outdated {
                let later = LaterObservation::new(
                    context,
                    (id, write),
                    observation,
                    resource.kind,
                    &self.through,
                );
                later.evaluate(rule, &expected_values, verdicts);
                later.evaluate_stays(rule, &expected_values, &mut first_shown, verdicts);
            }
        }
    }

    /// The places of values with `for-each`, each with a resource that shows what its request sent.
    fn shown_values<'c>(
        &'c self,
        context: &Context<'_>,
        writes: &[(&Write<'_>, usize, &Operation)],
    ) -> Vec<(ResourceId, &'c str)> {
        let mut found = Vec::new();
        for (name, shown) in self.shown.iter().filter(|(_, shown)| shown.for_each) {
            for (write, index, operation) in writes {
                let named = |p: &&Parameter| p.name == *name;
                let parameter = operation.parameters.iter().find(named);
                let (Some(id), Some(parameter)) = (write.resource, parameter) else {
                    continue;
                };
                let expected = self.expected_value(context, *index, parameter);
                let Some(expected) = expected.filter(ExpectedValue::has_members) else {
                    continue;
                };
                let mut observations = context.history.resources.get(id).observations.iter();
                let is_shown = observations.any(|observation| {
                    let is_kind = observation.shown_type == shown.kind;
                    let shown = observation.representation(context).filter(|_| is_kind);
                    let got = shown.and_then(|shown| shown.value(expected.at));
                    got.is_some_and(|got| {
                        !is_empty(got) && expected.difference(got, false).is_none()
                    })
                });
                if is_shown {
                    found.push((id, shown.at.as_str()));
                }
            }
        }
        found
    }

    /// The value of a parameter with its expected place; `None` if it was not sent, or need not be shown.
    fn expected_value<'c>(
        &'c self,
        context: &'c Context<'_>,
        index: usize,
        parameter: &'c Parameter,
    ) -> Option<ExpectedValue<'c>> {
        let all = &context.seen[index].exchange.sent;
        let sent = all
            .get(&parameter.name)
            .filter(|_| parameter.applies(all))?;
        let is_allowed = parameter.has_form(sent) && beyond(sent, &parameter.schema).is_none();
        let parameter_rule = context.rulebook.rules.get(&parameter.rule);
        let is_binding = parameter_rule.is_none_or(|rule| rule.level == Level::Must);
        if parameter.place != ParameterLocation::Body || !is_allowed {
            return None;
        }
        let name_length_max = json::get(&parameter.schema, "/propertyNames/maxLength");
        let name_length_max = name_length_max.and_then(Value::as_u64);
        if let Some(shown) = self.shown.get(&parameter.name) {
            return Some(ExpectedValue {
                only_type: Some(&shown.kind),
                at: &shown.at,
                sent,
                name_length_max,
                stays_while: shown.stays_while.as_ref(),
                is_shown_by_another: false,
                comparison: match shown.part {
                    true => ValueComparison::Contains {
                        by_value: shown.by_value,
                    },
                    false => ValueComparison::Equal(shown.compare, &[]),
                },
            });
        }
        let echo = parameter
            .echo
            .as_ref()
            .filter(|_| self.shown.is_empty() && is_binding)?;
        Some(ExpectedValue {
            only_type: None,
            at: &echo.at,
            sent,
            name_length_max,
            stays_while: None,
            is_shown_by_another: false,
            comparison: ValueComparison::Equal(echo.compare, &echo.or),
        })
    }
}

/// The first observation that showed a value, in each format. JSON and XML may show different parts of it, so that each is
/// compared with observations in the same format only.
#[derive(Clone, Default)]
struct FirstShown<'c> {
    json: Option<&'c Observation<'c>>,
    xml: Option<&'c Observation<'c>>,
}

/// An observation of a resource some time after a write.
struct LaterObservation<'c> {
    context: &'c Context<'c>,
    observation: &'c Observation<'c>,
    resource: ResourceId,
    write: &'c Write<'c>,
    /// The writes between the two; `None` if their effect is unknown.
    writes_between: Option<Vec<&'c Write<'c>>>,
}

impl<'c> LaterObservation<'c> {
    fn new(
        context: &'c Context<'c>,
        (resource, write): (ResourceId, &'c Write<'c>),
        observation: &'c Observation<'c>,
        resource_type: &str,
        harmless_hooks: &[String],
    ) -> Self {
        let is_harmless = |other: &&Write<'_>| match other.origin {
            Origin::Hook(event) => match context.evidence.events.get(event) {
                Some(Event::Hook(call)) => harmless_hooks.contains(&call.name),
                Some(Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_)) | None => false,
            },
            Origin::Exchange(_) => false,
        };
        let is_between = |other: &&Write<'_>| {
            other.origin != write.origin
                && !other.moment.is_before(&write.moment)
                && !observation.moment.is_before(&other.moment)
                && other.may_touch(resource, resource_type)
                && !is_harmless(other)
        };
        let between: Vec<&Write<'_>> = context.history.writes.iter().filter(is_between).collect();
        let has_known_effect = |other: &&Write<'_>| {
            let sent = other.exchange().map(|index| &context.seen[index]);
            let Some((seen, operation)) = sent.and_then(|seen| Some((seen, seen.operation?)))
            else {
                return false;
            };
            let mut parameters = operation.parameters.iter();
            // It is unknown what a parameter without `x-echo` changes.
            let has_unknown_parameter = parameters.any(|p| {
                p.echo.is_none()
                    && p.place == ParameterLocation::Body
                    && seen.exchange.sent.contains_key(&p.name)
            });
            other.outcome == Outcome::Done
                && other.does == Action::Changes
                && !has_unknown_parameter
        };
        let are_known = between.iter().all(has_known_effect);
        Self {
            context,
            observation,
            resource,
            write,
            writes_between: are_known.then_some(between),
        }
    }

    /// Compares the observation with the expected values.
    fn evaluate(&self, rule: &Rule, expected: &[ExpectedValue<'_>], verdicts: &mut Verdicts<'_>) {
        let Some(shown) = self.observation.representation(self.context) else {
            return;
        };
        let mut sites = Vec::new();
        let mut wrong = None;
        // Values that no other write changed: the sent value must be shown.
        for one in expected {
            let Some(got) = self.must_show(one).then(|| shown.value(one.at)).flatten() else {
                continue;
            };
            let site = shown.site(one.at);
            if verdicts.has_finding_at(&site) {
                continue;
            }
            if let Some((below, fact)) = one.difference(got, self.is_xml()) {
                wrong.get_or_insert((site.below(&below), fact));
            }
            sites.push(site);
        }
        // Values that writes at the same time changed: one of the sent values must be shown.
        for one in expected {
            let rivals = self.rival_values(one);
            let got = shown.value(one.at).filter(|_| !rivals.is_empty());
            let site = shown.site(one.at);
            let Some(got) = got.filter(|_| !verdicts.has_finding_at(&site)) else {
                continue;
            };
            let is_sent_by_one = one.difference(got, self.is_xml()).is_none()
                || rivals.iter().any(|value| {
                    one.with_sent(value)
                        .difference(got, self.is_xml())
                        .is_none()
                });
            if !is_sent_by_one {
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

    /// Checks values with `stays-while`: if an earlier observation showed the value, this one must show it, too. Otherwise
    /// records this observation in `first_shown` if it shows the value.
    fn evaluate_stays(
        &self,
        rule: &Rule,
        expected: &[ExpectedValue<'_>],
        first_shown: &mut [FirstShown<'c>],
        verdicts: &mut Verdicts<'_>,
    ) {
        let Some(shown) = self.observation.representation(self.context) else {
            return;
        };
        for (one, first) in expected.iter().zip(first_shown) {
            let Some(condition) = one.stays_while.filter(|_| self.must_show(one)) else {
                continue;
            };
            let is_xml = self.is_xml();
            let first = if is_xml {
                &mut first.xml
            } else {
                &mut first.json
            };
            let is_shown = shown
                .value(one.at)
                .is_some_and(|got| one.difference(got, is_xml).is_none() && !is_empty(got));
            // A list may be outdated until the consistency window after the first observation has passed.
            let is_up_to_date = |first: &Observation<'_>| match self.observation.shows {
                Appearance::Item(_) => first.moment.is_settled(&self.observation.moment),
                Appearance::Whole(_) | Appearance::NotFound => true,
            };
            let meets_condition = condition
                .iter()
                .all(|(at, value)| shown.value(at) == Some(value));
            let has_settled = self.write.moment.is_settled(&self.observation.moment);
            match *first {
                None if !is_shown
                    && meets_condition
                    && has_settled
                    && one.is_shown_by_another
                    && one.has_members() =>
                {
                    let site = shown.site(one.at);
                    if verdicts.has_finding_at(&site) {
                        continue;
                    }
                    let why = "what was sent is not shown, although another resource shows it";
                    let fact = one.not_kept(shown, why);
                    verdicts.instance(rule, site).conclude(Some(fact));
                }
                None => *first = is_shown.then_some(self.observation),
                Some(first) if meets_condition && is_up_to_date(first) => {
                    let site = shown.site(one.at);
                    let wrong = (!is_shown && !verdicts.has_finding_at(&site)).then(|| {
                        let why = "what was sent was shown before and is not any more";
                        (site.clone(), one.not_kept(shown, why))
                    });
                    if let Some(sites) = Sites::collect([site]) {
                        verdicts.instance(rule, sites).conclude_at(wrong);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// The values that writes at the same time sent for the field. The observation must show one of these or the sent one.
    /// Empty if there are no such writes, if a later write changed the field, or if this write is not the first of them.
    fn rival_values(&self, one: &ExpectedValue<'_>) -> Vec<&'c Value> {
        let is_plain =
            matches!(one.comparison, ValueComparison::Equal(..)) && one.only_type.is_none();
        let others = self
            .writes_between
            .iter()
            .flatten()
            .filter(|_| is_plain && self.shows(one));
        let mut values = Vec::new();
        for other in others {
            let mut named = other.named.iter().filter(|n| overlaps(&n.echo.at, one.at));
            let Some(value) = named.next() else { continue };
            let is_rival = other.moment.overlaps(&self.write.moment)
                && other.moment.event > self.write.moment.event;
            if !is_rival || value.echo.at != one.at || named.next().is_some() {
                return Vec::new();
            }
            values.push(value.value);
        }
        values
    }

    /// Whether this observation must show the sent value: no write since then changed the field.
    fn must_show(&self, one: &ExpectedValue<'_>) -> bool {
        let changes = |other: &&Write<'_>| other.named.iter().any(|n| overlaps(&n.echo.at, one.at));
        let others = self.writes_between.as_ref();
        self.shows(one) && others.is_some_and(|others| !others.iter().any(changes))
    }

    /// Whether this observation shows the value that a request sent for the field. It does not if the service derives the
    /// value of the field and may have done so since the write.
    fn shows(&self, one: &ExpectedValue<'_>) -> bool {
        let shown_type = self.observation.shown_type;
        if let Some(only_type) = one.only_type {
            return only_type == shown_type;
        }
        let kind = self.context.rulebook.kinds.get(shown_type);
        let may_have_changed = |derived: &Derived| {
            let moments = (&self.write.moment, &self.observation.moment);
            let history = &self.context.history;
            let by = &derived.by;
            by.is_empty()
                || history.moved_by(self.context, self.resource, by, moments, Duration::ZERO)
        };
        !kind.is_some_and(|kind| {
            let derived = kind.annotations.derived_at(one.at);
            kind.annotations.is_derived(one.at) && derived.is_none_or(may_have_changed)
        })
    }

    fn is_xml(&self) -> bool {
        let exchange = self
            .observation
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

impl ExpectedValue<'_> {
    /// The same expectation for another sent value.
    fn with_sent<'v>(&'v self, sent: &'v Value) -> ExpectedValue<'v> {
        ExpectedValue { sent, ..*self }
    }

    fn not_kept(&self, shown: &Representation<'_>, why: &str) -> Fact {
        let got = shown.value(self.at);
        Fact {
            kind: "not-kept",
            expected: json::short(self.sent),
            actual: got.map_or_else(|| "nothing".to_owned(), json::short),
            message: why.to_owned(),
        }
    }

    /// Whether an object with members was sent.
    fn has_members(&self) -> bool {
        let parsed = self.sent.as_str().and_then(json::parse_text);
        let sent = parsed.as_ref().unwrap_or(self.sent).as_object();
        sent.is_some_and(|members| !members.is_empty())
    }

    /// Where and how the shown value differs from the sent one; `None` if it does not. The place is relative to the value.
    fn difference(&self, got: &Value, is_xml: bool) -> Option<(String, Fact)> {
        let fact = match self.comparison {
            ValueComparison::Equal(compare, or) if is_xml => {
                let (sent, got) = (normalized_spaces(self.sent), normalized_spaces(got));
                differs(&Value::String(sent), &Value::String(got), compare, or)
            }
            ValueComparison::Equal(compare, or) => differs(self.sent, got, compare, or),
            ValueComparison::Contains { by_value } => {
                return self.missing_member(got, is_xml, by_value);
            }
        };
        fact.map(|fact| (String::new(), fact))
    }

    /// The first sent member that the shown object lacks or has with another value. `None` for an empty object, because a
    /// service may show the members later.
    fn missing_member(&self, got: &Value, is_xml: bool, by_value: bool) -> Option<(String, Fact)> {
        let parsed = self.sent.as_str().and_then(json::parse_text);
        let sent = parsed.as_ref().unwrap_or(self.sent).as_object()?;
        let got = got.as_object().filter(|members| !members.is_empty())?;
        // Names of elements have no spaces; the documents do not define how other keys are changed.
        let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_short = |name: &str| {
            self.name_length_max
                .is_none_or(|max| name.chars().count() as u64 <= max)
        };
        let mut members = sent
            .iter()
            .filter(|(name, _)| is_short(name) && (!is_xml || is_name(name)));
        let (name, value, there) = members.find_map(|(name, value)| {
            let there = got.get(name);
            let is_there = there.is_some_and(|there| match value {
                _ if by_value && is_same_value(value, there) => true,
                Value::String(_) if is_xml => normalized_spaces(value) == normalized_spaces(there),
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
        let mut place = String::new();
        json::push(&mut place, name);
        let fact = Fact {
            kind: "not-kept",
            message: format!(
                "sent {expected} as {}, came back as {actual}",
                json::short(&Value::from(name.as_str()))
            ),
            expected,
            actual,
        };
        Some((place, fact))
    }
}

/// Whether both values are equal, where a number equals its text.
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

/// Whether the shown value is empty. XML has an empty text in place of an empty object.
fn is_empty(got: &Value) -> bool {
    got.is_null() || got == "" || got.as_object().is_some_and(Map::is_empty)
}

/// The text of a value, with one space in place of each run of spaces and line breaks, which XML may change.
fn normalized_spaces(value: &Value) -> String {
    let text = as_text(value);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
fn sid(prefix: &str) -> String {
    format!("{prefix}{}", "1".repeat(32))
}

/// An active execution with these parameters.
#[cfg(test)]
fn execution(data: &Value) -> Value {
    json!({
        "sid": sid("FN"), "account_sid": "", "flow_sid": sid("FW"), "contact_sid": "",
        "contact_channel_address": "", "context": {"flow": {"data": data}}, "status": "active",
        "date_created": "", "date_updated": "", "url": "", "links": {},
    })
}

/// Two executions that are fetched later and show these parameters.
#[cfg(test)]
fn two_executions(first: &Value, second: &Value) -> ExampleBuilder {
    let shown = json!({
        "of": "flow/create-execution",
        "shown": {"Parameters": {
            "kind": "flow/execution", "at": "/context/flow/data", "part": true, "by-value": true,
            "stays-while": {"/status": "active"}, "for-each": true,
        }},
    });
    let of = |digit: &str, data: &Value| {
        let mut shown = execution(data);
        shown["sid"] = json!(format!("FN{}", digit.repeat(32)));
        shown
    };
    let sent = json!({"FlowSid": sid("FW"), "To": "a", "From": "b", "Parameters": "{\"n\":2}"});
    let nothing = json!({});
    let made = Example::for_rule("flow", shown)
        .answered("create-execution", sent.clone(), of("2", &nothing))
        .answered("create-execution", sent, of("3", &nothing));
    let late = (0..11).fold(made, |scene, _| {
        scene.refused("create-execution", json!({}))
    });
    let fetched = |scene: ExampleBuilder, digit: &str, data: &Value| {
        let shown = of(digit, data);
        let path = json!({"FlowSid": sid("FW"), "Sid": shown["sid"].clone()});
        scene.answered("fetch-execution", path, shown)
    };
    fetched(fetched(late, "2", first), "3", second)
}
