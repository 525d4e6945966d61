//! `write-persists` with `of`: later observations of a resource show the values that an accepted write sent.
//! With `operation`: `created_with.rs`.
//!
//! - Not judged: the response to the write itself, and values that something else may have changed since.
//! - Writes at the same time are rivals: for fields that show a parameter as it was sent (`x-echo`), later observations may
//!   show the value of any of them.
//! - Values with `stays-while` may appear late, but must then stay.

mod created_with;
mod expected;

pub(super) use created_with::CreatedWith;

use self::expected::{AcceptedWrite, ExpectedValue, ValueComparison, is_empty};
use super::prelude::*;
use crate::parameter::beyond;
use conformant_record::Level;
use conformant_rulebook::annotations::Derived;
use conformant_rulebook::rules::Comparison;
use conformant_rulebook::{Parameter, ParameterLocation};
use std::time::Duration;

/// Later observations of a resource show the values of a write of this operation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WritePersists {
    /// The operation with its service, which is that of the rule.
    of: OperationName,
    /// Where later observations show parameters, by name. If this has an entry, `x-echo` of all other parameters is
    /// ignored; if it is omitted, the parameters with `x-echo` are expected at their places.
    #[serde(default, rename = "shown")]
    shown_at: BTreeMap<String, ShownPlace>,
    /// Hooks that change the resource, but none of the sent values.
    #[serde(default)]
    through: Vec<String>,
}

/// Where and how later observations show a parameter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ShownPlace {
    /// The resource type of the representation that shows it.
    kind: String,
    /// The pointer to it in the representation.
    at: String,
    /// How the shown value is compared with the sent one. Not used with `part`.
    #[serde(default, rename = "as")]
    compare_as: Comparison,
    /// With `part`: whether a number may be shown as a text, and a text as a number.
    #[serde(default)]
    by_value: bool,
    /// Whether the shown object may have further members.
    #[serde(default)]
    part: bool,
    /// If this is omitted, the pointer may be missing in any observation, or the object empty. Otherwise a condition:
    /// members of the representation and their values, none for always. Once an observation has shown the sent value,
    /// each later one that meets the condition must show it, too.
    stays_while: Option<BTreeMap<String, Value>>,
    /// With `stays-while`, for sent objects with members: if one resource shows its value, all must.
    #[serde(default)]
    for_each: bool,
}

impl Predicate for WritePersists {
    fn references(&self, references: &mut References) {
        let mut operation = references.operation("of", self.of.name());
        for parameter in self.shown_at.keys() {
            operation.parameter("shown", parameter);
        }
        for (name, place) in &self.shown_at {
            let is_compared = place.compare_as != Comparison::default();
            for (is_ignored, member, message) in [
                (place.part && is_compared, "as", "not used with `part`"),
                (
                    !place.part && place.by_value,
                    "by-value",
                    "used with `part: true` only",
                ),
                (
                    place.for_each && place.stays_while.is_none(),
                    "for-each",
                    "used with `stays-while` only",
                ),
            ] {
                if is_ignored {
                    references.problem(&json::join(&json::join("shown", name), member), message);
                }
            }
            references
                .kind("kind", &place.kind)
                .pointer("at", &place.at);
        }
        for hook in &self.through {
            references.hook("through", hook);
        }
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| {
            let mut parameters = o.parameters.iter();
            matches!(
                o.does,
                Action::Makes | Action::FindsOrMakes | Action::Changes
            ) && parameters.any(|p| p.place == ParameterLocation::Body)
        }))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let mut writes = Vec::new();
        for (index, write) in context.writes_of(&verdicts.rule.service, self.of.id()) {
            if let Some(operation) = context.seen[index].operation
                && write.outcome == Outcome::Done
                && !context.history.returns_existing(context, index)
            {
                writes.push(AcceptedWrite {
                    write,
                    index,
                    operation,
                });
            }
        }
        let shown_elsewhere = self.shown_values(context, &writes);
        for write in &writes {
            self.evaluate_write(write, &shown_elsewhere, verdicts);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::of_sites_and(sites, &[Change::To(json!({"other": "member"}))])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = |of: &str| Example::for_rule("chat", json!({"of": of}));
        let made = |of: &str| {
            let sent = json!({"FriendlyName": " a "});
            rule(of).answered("create-service", sent, service("1", " a "))
        };
        let fetched = |scene: &ExampleBuilder, name: &str| {
            let sent = json!({"Sid": sid("IS", "1")});
            scene.answered("fetch-service", sent, service("1", name))
        };
        let renames = |scene: &ExampleBuilder, name: &str| {
            let sent = json!({"Sid": sid("IS", "1"), "FriendlyName": name});
            scene.answered("update-service", sent, service("1", name))
        };
        let created = made("chat/create-service");
        let at_once = renames(&renames(&made("chat/update-service"), "b"), "c").raced(2);
        let attributes = |shown: &str| {
            let mut member = member("1", "ann");
            member["attributes"] = json!(shown);
            member
        };
        let joins = |scene: &ExampleBuilder, sent: &str, shown: &str| {
            let sent = in_channel(json!({"Identity": "ann", "Attributes": sent}));
            scene.answered("create-member", sent, attributes(shown))
        };
        let looked = |scene: &ExampleBuilder, shown: &str| {
            let path = in_channel(json!({"Sid": sid("MB", "1")}));
            scene.answered("fetch-member", path, attributes(shown))
        };
        let (one, other) = ("{\"a\":1}", "{\"a\":2}");
        let joined = joins(&rule("chat/create-member"), one, one);
        // A flow shows the parameters of an execution as long as it is active, and then all executions do.
        let runs = |for_each: bool| {
            let place = json!({
                "kind": "flow/execution", "at": "/context/flow/data", "part": true, "by-value": true,
                "stays-while": {"/status": "active"}, "for-each": for_each,
            });
            let parameters = json!({"of": "flow/create-execution", "shown": {"Parameters": place}});
            Example::for_rule("flow", parameters)
        };
        let execution = |digit: &str, data: Value, status: &str| {
            json!({
                "sid": sid("FN", digit), "flow_sid": sid("FW", "1"), "context": {"flow": {"data": data}},
                "status": status,
            })
        };
        let starts = |scene: &ExampleBuilder, digit: &str| {
            let sent = json!({"FlowSid": sid("FW", "1"), "To": "a", "From": "b", "Parameters": "{\"n\":1.5}"});
            let shown = execution(digit, json!({}), "active");
            scene.answered("create-execution", sent, shown)
        };
        let later = |scene: &ExampleBuilder, digit: &str, data: Value, status: &str| {
            let path = json!({"FlowSid": sid("FW", "1"), "Sid": sid("FN", digit)});
            scene.answered("fetch-execution", path, execution(digit, data, status))
        };
        let started = starts(&runs(false), "1");
        let shows = |data: Value| later(&started, "1", data, "active");
        let begun = shows(json!({"n": 1.5}));
        let two = |first: Value, second: Value| {
            let both = starts(&starts(&runs(true), "1"), "2").late();
            later(&later(&both, "1", first, "active"), "2", second, "active")
        };
        vec![
            looked(&joined, other).fails("/attributes"),
            // A second creation may return the existing member unchanged.
            looked(&joins(&joined, other, one), one).not_judged(),
            fetched(&created, " a ").passes(),
            // The service may remove spaces around a name.
            fetched(&created, "a").passes(),
            fetched(&created, "b").fails("/friendly_name"),
            fetched(&renames(&created, "b"), "b").not_judged(),
            // Any of several updates at the same time may be the last one.
            fetched(&at_once, "b").passes(),
            fetched(&at_once, "c").passes(),
            fetched(&at_once, " a ").fails("/friendly_name"),
            shows(json!({"n": 1.5, "more": true})).passes(),
            shows(json!({"n": 1})).fails("/context/flow/data/n"),
            shows(json!({"n": "1.5"})).passes(),
            shows(json!({"n": "1.6"})).fails("/context/flow/data/n"),
            later(&begun, "1", json!({}), "active").fails("/context/flow/data"),
            later(&begun, "1", json!({}), "ended").passes(),
            later(&shows(json!({})), "1", json!({}), "active").passes(),
            two(json!({"n": 1.5}), json!({"n": 1.5})).passes(),
            two(json!({"n": 1.5}), json!({})).fails("/context/flow/data"),
            // No execution shows its parameters.
            two(json!({}), json!({})).passes(),
            created.not_judged(),
        ]
    }
}

impl WritePersists {
    fn evaluate_write(
        &self,
        &AcceptedWrite {
            write,
            index,
            operation,
        }: &AcceptedWrite<'_>,
        shown_elsewhere: &[(ResourceId, &str)],
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(id) = write.resource.filter(|&id| history.is_exclusive(id)) else {
            return;
        };
        let expected_values: Vec<ExpectedValue<'_>> = operation
            .parameters
            .iter()
            .filter_map(|p| self.expected_value(context, index, p))
            .map(|expected| ExpectedValue {
                is_shown_by_another: shown_elsewhere
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
                let later = LaterObservation::new(context, (id, write), observation, &self.through);
                later.evaluate(&expected_values, verdicts);
                later.evaluate_stays(&expected_values, &mut first_shown, verdicts);
            }
        }
    }

    /// The places of values with `for-each`, each with a resource that shows what its request sent.
    fn shown_values<'c>(
        &'c self,
        context: &Context<'_>,
        writes: &[AcceptedWrite<'_>],
    ) -> Vec<(ResourceId, &'c str)> {
        let mut found = Vec::new();
        for (name, place) in self.shown_at.iter().filter(|(_, place)| place.for_each) {
            for accepted in writes {
                let named = |p: &&Parameter| p.name == *name;
                let parameter = accepted.operation.parameters.iter().find(named);
                let (Some(id), Some(parameter)) = (accepted.write.resource, parameter) else {
                    continue;
                };
                let expected = self.expected_value(context, accepted.index, parameter);
                let Some(expected) = expected.filter(ExpectedValue::has_members) else {
                    continue;
                };
                let mut observations = context.history.resources.get(id).observations.iter();
                let is_shown = observations.any(|observation| {
                    let is_kind = observation.shown_type == place.kind;
                    let representation = observation.representation(context).filter(|_| is_kind);
                    let got =
                        representation.and_then(|representation| representation.value(expected.at));
                    got.is_some_and(|got| {
                        !is_empty(got) && expected.difference(got, false).is_none()
                    })
                });
                if is_shown {
                    found.push((id, place.at.as_str()));
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
        if let Some(place) = self.shown_at.get(&parameter.name) {
            return Some(ExpectedValue {
                only_type: Some(&place.kind),
                at: &place.at,
                sent,
                name_length_max,
                stays_while: place.stays_while.as_ref(),
                is_shown_by_another: false,
                comparison: match place.part {
                    true => ValueComparison::Contains {
                        by_value: place.by_value,
                    },
                    false => ValueComparison::Equal(place.compare_as, &[]),
                },
            });
        }
        let echo = parameter
            .echo
            .as_ref()
            .filter(|_| self.shown_at.is_empty() && is_binding)?;
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
        harmless_hooks: &[String],
    ) -> Self {
        let is_harmless = |other: &Write<'_>| {
            let call = other.hook(context.evidence);
            call.is_some_and(|call| harmless_hooks.contains(&call.name))
        };
        let moments = (&write.moment, &observation.moment);
        let between = context.history.writes_between(resource, moments);
        let between: Vec<&Write<'_>> = between
            .filter(|other| other.origin != write.origin && !is_harmless(other))
            .collect();
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
    fn evaluate(&self, expected_values: &[ExpectedValue<'_>], verdicts: &mut Verdicts<'_>) {
        let Some(representation) = self.observation.representation(self.context) else {
            return;
        };
        let mut sites = Vec::new();
        let mut wrong = None;
        // Values that no other write changed: the sent value must be shown.
        for expected in expected_values {
            let Some(got) = self
                .must_show(expected)
                .then(|| representation.value(expected.at))
                .flatten()
            else {
                continue;
            };
            let site = representation.site(expected.at);
            if verdicts.has_finding_at(&site) {
                continue;
            }
            if let Some((below, fact)) = expected.difference(got, self.is_xml()) {
                wrong.get_or_insert((site.below(&below), fact));
            }
            sites.push(site);
        }
        // Values that writes at the same time changed: one of the sent values must be shown.
        for expected in expected_values {
            let rivals = self.rival_values(expected);
            let got = representation
                .value(expected.at)
                .filter(|_| !rivals.is_empty());
            let site = representation.site(expected.at);
            let Some(got) = got.filter(|_| !verdicts.has_finding_at(&site)) else {
                continue;
            };
            let is_sent_by_one = expected.difference(got, self.is_xml()).is_none()
                || rivals.iter().any(|value| {
                    expected
                        .with_sent(value)
                        .difference(got, self.is_xml())
                        .is_none()
                });
            if !is_sent_by_one {
                let sent: Vec<String> = rivals.iter().map(|value| json::short(value)).collect();
                let fact = Fact::new(
                    "not-kept",
                    format!("{} or {}", json::short(expected.sent), sent.join(" or ")),
                    json::short(got),
                );
                wrong.get_or_insert((site.clone(), fact));
            }
            sites.push(site);
        }
        if let Some(sites) = Sites::collect(sites) {
            verdicts.conclude_at(sites, wrong);
        }
    }

    /// Judges values with `stays-while`, and records in `first_shown` which of them this observation shows first.
    fn evaluate_stays(
        &self,
        expected_values: &[ExpectedValue<'_>],
        first_shown: &mut [FirstShown<'c>],
        verdicts: &mut Verdicts<'_>,
    ) {
        let Some(representation) = self.observation.representation(self.context) else {
            return;
        };
        let is_xml = self.is_xml();
        for (expected, slot) in expected_values.iter().zip(first_shown) {
            let Some(condition) = expected.stays_while.filter(|_| self.must_show(expected)) else {
                continue;
            };
            let earlier = if is_xml {
                &mut slot.xml
            } else {
                &mut slot.json
            };
            let is_shown = representation
                .value(expected.at)
                .is_some_and(|got| expected.difference(got, is_xml).is_none() && !is_empty(got));
            let meets_condition = condition
                .iter()
                .all(|(at, value)| representation.value(at) == Some(value));
            let site = representation.site(expected.at);
            let unless_shown = |why| (!is_shown).then(|| expected.not_kept(representation, why));
            match *earlier {
                None if is_shown => *earlier = Some(self.observation),
                None if meets_condition && self.must_show_like_others(expected) => {
                    let why = "what was sent is not shown, although another resource shows it";
                    if !verdicts.has_finding_at(&site) {
                        verdicts.conclude(site, unless_shown(why));
                    }
                }
                Some(shown) if meets_condition && self.is_up_to_date(shown) => {
                    let why = "what was sent was shown before and is not any more";
                    let wrong = unless_shown(why).filter(|_| !verdicts.has_finding_at(&site));
                    verdicts.conclude(site, wrong);
                }
                None | Some(_) => {}
            }
        }
    }

    /// Whether this observation must show a value that none showed so far, because that of another resource is shown.
    fn must_show_like_others(&self, expected: &ExpectedValue<'_>) -> bool {
        let has_settled = self.write.moment.is_settled(&self.observation.moment);
        has_settled && expected.is_shown_by_another && expected.has_members()
    }

    /// Whether this observation is at least as new as the first one. A list may be outdated until the consistency window has
    /// passed.
    fn is_up_to_date(&self, first: &Observation<'_>) -> bool {
        match self.observation.shows {
            Appearance::Item(_) => first.moment.is_settled(&self.observation.moment),
            Appearance::Whole(_) | Appearance::NotFound => true,
        }
    }

    /// The values that writes at the same time sent for the field. The observation must show one of these or the sent value.
    /// Empty if there are no such writes, if a later write changed the field, or if this write is not the first of them.
    fn rival_values(&self, expected: &ExpectedValue<'_>) -> Vec<&'c Value> {
        let is_plain = matches!(expected.comparison, ValueComparison::Equal(..))
            && expected.only_type.is_none();
        let others = self
            .writes_between
            .iter()
            .flatten()
            .filter(|_| is_plain && self.shows(expected));
        let mut values = Vec::new();
        for other in others {
            let mut named = other
                .named
                .iter()
                .filter(|n| overlaps(&n.echo.at, expected.at));
            let Some(value) = named.next() else { continue };
            let is_rival = other.moment.overlaps(&self.write.moment)
                && other.moment.event > self.write.moment.event;
            if !is_rival || value.echo.at != expected.at || named.next().is_some() {
                return Vec::new();
            }
            values.push(value.value);
        }
        values
    }

    /// Whether this observation must show the sent value: no write since then changed the field.
    fn must_show(&self, expected: &ExpectedValue<'_>) -> bool {
        let changes = |other: &&Write<'_>| {
            other
                .named
                .iter()
                .any(|n| overlaps(&n.echo.at, expected.at))
        };
        let others = self.writes_between.as_ref();
        self.shows(expected) && others.is_some_and(|others| !others.iter().any(changes))
    }

    /// Whether this observation shows the value that a request sent for the field. It does not if the service derives the
    /// value of the field and may have done so since the write.
    fn shows(&self, expected: &ExpectedValue<'_>) -> bool {
        let shown_type = self.observation.shown_type;
        if let Some(only_type) = expected.only_type {
            return only_type == shown_type;
        }
        let about = self.context.about(shown_type);
        let may_have_changed = |derived: &Derived| {
            let moments = (&self.write.moment, &self.observation.moment);
            let history = &self.context.history;
            let by = &derived.by;
            by.is_empty()
                || history.moved_by(self.context, self.resource, by, moments, Duration::ZERO)
        };
        !about.is_some_and(|about| {
            let derived = about.derived_at(expected.at);
            about.is_derived(expected.at) && derived.is_none_or(may_have_changed)
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

/// Whether one place lies within another.
fn overlaps(one: &str, other: &str) -> bool {
    json::within(one, other) || json::within(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_effect_are_problems() {
        let problems = |place: Value| {
            let mut place = place;
            place["kind"] = json!("flow/execution");
            place["at"] = json!("/context");
            let predicate = json!({"of": "flow/create-execution", "shown": {"Parameters": place}});
            let predicate: WritePersists = serde_json::from_value(predicate).expect("it is whole");
            let mut references = References::default();
            predicate.references(&mut references);
            format!("{references:?}").matches("Problem(").count()
        };
        for (place, expected) in [
            (
                json!({"part": true, "by-value": true, "stays-while": {}, "for-each": true}),
                0,
            ),
            (json!({"by-value": true}), 1),
            (json!({"for-each": true}), 1),
            (json!({"part": true, "as": "json"}), 1),
            (json!({"as": "json"}), 0),
        ] {
            assert_eq!(problems(place.clone()), expected, "{place}");
        }
    }
}
