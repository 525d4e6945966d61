//! `immutable`: a field that never changes is equal in every observation of its resource.
//!
//! Does not judge absent fields, a resource that was deleted and created again, nor a key that two creations returned: it does
//! not name one resource.
//!
//! `immutable` with `key`: all representations with one key have the same values in these fields.
//!
//! `immutable` with `at`: all observations of a resource show the same instant, in every representation and format.
//!
//! Does not judge times that are not in ISO 8601, nor a difference of one second.

use super::prelude::*;
use crate::compare::{is_unspecified, references_no_resource, same};
use conformant_base::clock::Timestamp;
use jiff::SignedDuration;

/// These fields of a resource are equal in every observation of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Immutable {
    /// The resource type that shows them; other representations of the resource may show them earlier.
    of: String,
    /// Those marked `x-immutable` if omitted.
    #[serde(default)]
    fields: Vec<String>,
}

impl Predicate for Immutable {
    fn references(&self, references: &mut References) {
        references
            .kind("of", &self.of)
            .pointers("fields", &self.fields);
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        let kinds = model.kinds.values();
        let marked = kinds.filter(|kind| !kind.annotations.immutable.is_empty());
        Some(marked.map(|kind| kind.name.clone()).collect())
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let Some(about) = context.about(&self.of) else {
            return;
        };
        let resource_type = about.of().unwrap_or(&self.of);
        let fields = match self.fields.as_slice() {
            [] => &about.immutable,
            _ => &self.fields,
        };
        let history = &context.history;
        let ends_unseen = history.has_unobserved_actions
            && context.rulebook.index.does(Action::Ends, resource_type);
        let created_twice = created_twice(context);
        for (id, resource) in history.resources.of_kind(resource_type) {
            if created_twice.contains(&id) {
                continue;
            }
            let ended = resource.ended.map(|write| &history.writes[write].moment);
            let is_after_end = |observation: &Observation<'_>| {
                ended.is_some_and(|e| !observation.moment.is_before(e))
            };
            // If people may have deleted it unobserved, each creation may begin a new lifetime.
            let creations_before = |observation: &Observation<'_>| {
                let made = history.writes.iter().filter(|write| {
                    write.does.may_make()
                        && write.resource == Some(id)
                        && write.moment.event <= observation.moment.event
                });
                if ends_unseen { made.count() } else { 0 }
            };
            let life = |observation: &Observation<'_>| {
                (is_after_end(observation), creations_before(observation))
            };
            let all = resource.observations.iter();
            for later in all.filter(|observation| observation.shown_type == self.of) {
                let same_life = resource.observations.iter();
                let same_life = same_life.filter(|observation| life(observation) == life(later));
                evaluate_observation((same_life, later), fields, verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let (start, later) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        let fetched = |scene: &ExampleBuilder, digit: &str, created: &str| {
            let flow = json!({"sid": sid("FW", digit), "date_created": created});
            scene.answered("fetch-flow", json!({"Sid": sid("FW", digit)}), flow)
        };
        let parameters = json!({"of": "flow/flow", "fields": ["/date_created"]});
        let rule = Example::for_rule("flow", parameters);
        let first = fetched(&rule, "1", start);
        let made_twice = |second: &str| {
            let service = |created: &str| json!({"sid": sid("IS", "1"), "date_created": created});
            let parameters = json!({"of": "chat/service", "fields": ["/date_created"]});
            let made =
                Example::for_rule("chat", parameters).shown("create-service", service(start));
            made.shown("create-service", service(second))
        };
        let in_two_types = |first: &str, second: &str| {
            let binding = |user: &str| json!({"sid": sid("BS", "1"), "user_sid": user});
            let parameters = json!({"of": "chat/user-binding", "fields": ["/user_sid"]});
            let first =
                Example::for_rule("chat", parameters).shown("fetch-binding", binding(first));
            first.shown("fetch-user-binding", binding(second))
        };
        vec![
            fetched(&first, "1", "2026-01-01T00:00:00+00:00").passes(),
            fetched(&first, "1", later).fails("/date_created"),
            fetched(&first, "2", later).not_judged(),
            made_twice(later).not_judged(),
            made_twice(start).not_judged(),
            in_two_types("", "US1").not_judged(),
            in_two_types("US2", "US1").fails("/user_sid"),
            first.not_judged(),
        ]
    }
}

/// The resources that two accepted requests of operations that create returned.
fn created_twice(context: &Context<'_>) -> BTreeSet<ResourceId> {
    let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for write in &context.history.writes {
        let operation = write
            .exchange()
            .and_then(|request| context.seen[request].operation);
        let makes = operation.is_some_and(|operation| operation.does == Action::Makes);
        if let Some(id) = write.resource
            && write.outcome == Outcome::Done
            && makes
            && !once.insert(id)
        {
            twice.insert(id);
        }
    }
    twice
}

/// A field in an observation, and the value that was shown before.
struct Compared<'a> {
    field: &'a String,
    before: &'a Value,
    after: &'a Value,
    /// The exchange that showed it before.
    earlier: Option<usize>,
}

/// Compares an observation with the first one of the same life that shows the field. The first one itself has nothing to be
/// compared with.
fn evaluate_observation<'s>(
    (of_its_life, later): (
        impl Iterator<Item = &'s Observation<'s>> + Clone,
        &Observation<'_>,
    ),
    fields: &'s [String],
    verdicts: &mut Verdicts<'_>,
) {
    let context = verdicts.context;
    let Some(shown) = later.representation(context) else {
        return;
    };
    let before = |field: &'s String| {
        let first = of_its_life.clone().find_map(|observation| {
            let representation = observation.representation(context)?;
            Some((observation, representation.value(field)?))
        });
        let (first, value) = first?;
        let after = shown.value(field)?;
        // A field that is unset in one representation may not apply there.
        let applies = first.shown_type == later.shown_type
            || !(is_unspecified(field, value) || is_unspecified(field, after));
        (first.shows != later.shows && applies).then_some(Compared {
            field,
            before: value,
            after,
            earlier: first.exchange,
        })
    };
    let compared: Vec<Compared<'_>> = fields.iter().filter_map(before).collect();
    let Some(sites) = Sites::from_slice(&compared, |one| shown.site(one.field)) else {
        verdicts.record_vacuous(Vacuity::Alone);
        return;
    };
    let wrong = compared.iter().find(|one| {
        !is_equivalent(one.before, one.after) && !verdicts.has_finding_in(shown, one.field)
    });
    let earlier = wrong.and_then(|one| one.earlier);
    let wrong = wrong.map(|one| {
        let expected = format!("{}, as before", json::short(one.before));
        let fact = Fact::new("changed", expected, json::short(one.after));
        (shown.site(one.field), fact)
    });
    verdicts.instance(sites).after(earlier).conclude_at(wrong);
}

/// Within one run of a scenario, representations of the same resource (same `key`) agree in these
/// fields, whichever operation they came from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImmutableByKey {
    /// The representation.
    kind: String,
    /// What identifies the resource: `/sid`.
    key: String,
    /// Fields that never change.
    fields: Vec<String>,
    /// Whether people may change them. Not judged after they did, or may have.
    #[serde(default)]
    changed_by_people: bool,
}

impl Predicate for ImmutableByKey {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("key", &self.key)
            .pointers("fields", &self.fields);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        if self.changed_by_people && context.history.changed_by_people(&self.kind) {
            return;
        }
        let mut first: BTreeMap<String, &Representation<'_>> = BTreeMap::new();
        for later in context.of_kind(&self.kind) {
            let key = later
                .value(&self.key)
                .filter(|key| !references_no_resource(&self.key, key));
            let Some(identity) = key.map(Value::to_string) else {
                continue;
            };
            let Some(earlier) = first.get(&identity).copied() else {
                verdicts.record_vacuous(Vacuity::Alone);
                first.insert(identity, later);
                continue;
            };
            let both = |field: &String| Some((named(earlier, field)?, named(later, field)?));
            let fields = self.fields.iter().filter(|field| both(field).is_some());
            let Some(sites) = Sites::collect(fields.map(|field| later.site(field))) else {
                continue;
            };
            let wrong = self.fields.iter().find_map(|field| {
                let (before, after) = both(field)?;
                let expected = format!("{}, as before", json::short(before));
                let fact = Fact::new("changed", expected, json::short(after));
                (!same(before, after)).then(|| (later.site(field), fact))
            });
            let earlier = earlier.site(&self.key).exchange(context.evidence);
            verdicts.instance(sites).after(earlier).conclude_at(wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let shown = |kind: &str, field: &str, representations: [Value; 2]| {
            let service = if kind == "flow/flow" { "flow" } else { "chat" };
            let parameters = json!({"kind": kind, "key": "/sid", "fields": [field]});
            let [first, later] = representations;
            let rule = Example::for_rule(service, parameters);
            rule.payload(kind, first).payload(kind, later)
        };
        let flows = |first: &str, later: &str, created: &str| {
            let first = json!({"sid": first, "date_created": "2026-01-01T00:00:00Z"});
            let later = json!({"sid": later, "date_created": created});
            shown("flow/flow", "/date_created", [first, later])
        };
        let bindings = ["", "US1"].map(|user| json!({"sid": "BS1", "user_sid": user}));
        let undated = [
            json!({"sid": "FW1", "date_created": ""}),
            json!({"sid": "FW1"}),
        ];
        vec![
            flows("FW1", "FW1", "2026-01-01T00:00:00+00:00").passes(),
            flows("FW1", "FW1", "2026-01-01T00:00:01Z").fails("/date_created"),
            flows("FW1", "FW2", "2026-01-01T00:00:01Z").not_judged(),
            shown("flow/flow", "/date_created", undated).not_judged(),
            // A binding at the service may name no user.
            shown("chat/binding", "/user_sid", bindings).not_judged(),
            // Without a key, the resource is unknown.
            flows("", "", "2026-01-01T00:00:01Z").not_judged(),
        ]
    }
}

/// What it shows there, but for the SID of no resource.
fn named<'r>(shown: &'r Representation<'_>, field: &str) -> Option<&'r Value> {
    let value = shown.value(field)?;
    (!references_no_resource(field, value)).then_some(value)
}

/// The tolerance between two representations: one of them may have whole seconds.
const ROUNDING: SignedDuration = SignedDuration::from_secs(1);

/// A time is the same in every observation of its resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImmutableInstant {
    /// The representation that shows it; what else shows the resource may show it earlier.
    of: String,
    /// Where.
    at: String,
}

impl Predicate for ImmutableInstant {
    fn references(&self, references: &mut References) {
        references.kind("of", &self.of).pointer("at", &self.at);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let Some(about) = context.about(&self.of) else {
            return;
        };
        let of = about.of().unwrap_or(&self.of);
        for (_, resource) in context.history.resources.of_kind(of) {
            let mut first: Option<(Site, Timestamp)> = None;
            for observation in &resource.observations {
                let Some(shown) = observation.representation(context) else {
                    continue;
                };
                let site = shown.site(&self.at);
                let Some(at) = shown.value(&self.at).and_then(instant) else {
                    continue;
                };
                let is_this = observation.shown_type == self.of;
                let Some((before, was)) = &first else {
                    first = Some((site, at));
                    if is_this {
                        verdicts.record_vacuous(Vacuity::Alone);
                    }
                    continue;
                };
                if !is_this || verdicts.has_finding_at(&site) {
                    continue;
                }
                let fact = || {
                    let expected = format!("{was}, as before");
                    Fact::new("another-instant", expected, at.to_string())
                };
                let wrong = at.duration_since(*was).abs() > ROUNDING;
                verdicts
                    .instance([before.clone(), site])
                    .after(before.exchange(context.evidence))
                    .conclude(wrong.then(fact));
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::at(sites.last(), [Change::Up])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = "/approval_request/created_at";
        let shown =
            |created: &str| json!({"approval_request": {"uuid": "u1", "created_at": created}});
        let parameters = json!({"of": "auth/approval-request-fetch", "at": at});
        let rule = Example::for_rule("auth", parameters);
        let made = |created: &str| rule.shown("create-approval-request", shown(created));
        let fetched = |scene: &ExampleBuilder, format: &str, created: &str| {
            let path = json!({"FORMAT": format, "PUSH_UUID": "u1"});
            scene.answered("fetch-approval-request", path, shown(created))
        };
        let noon = "2026-01-01T12:00:00.25Z";
        let today = fetched(&made("today"), "json", noon);
        vec![
            fetched(&made(noon), "json", "2026-01-01T12:00:00+00:00").passes(),
            fetched(&made(noon), "json", "2026-01-01T13:00:00Z").fails(at),
            fetched(&today, "xml", "2026-01-01T12:01:00Z").fails(at),
            fetched(&made(noon), "xml", "1767268800").not_judged(),
            made(noon).not_judged(),
        ]
    }
}
