//! Requests at the same time, where the rulebook states what holds afterwards: unique names, limits, counts, an order,
//! updates and deletions.
//!
//! - Requests of a race may be accepted or refused. Steps after it read the state, which the rules judge.
//! - What must exist for a race is created before it, one request after the other.

use super::cases::{
    Cases, calling, either, only, rename, rename_all, roots, slug, unique, walking,
};
use super::repeated_reads::{settled, walk};
use super::sequence::Draw;
use conformant_rulebook::expect::{Comparison, Expect};
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use conformant_rulebook::step::{Call, Concurrently, Step};
use conformant_rulebook::{Action, Check, Operation, Parameter, ParameterLocation};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Requests of one race.
const RACERS: usize = 4;
/// A limit beyond this is not filled.
const LIMIT_MAX: usize = 10;

/// The races of an operation.
pub(super) fn derive(cases: &mut Cases<'_>) {
    match cases.operation.does {
        Action::Makes | Action::FindsOrMakes => {
            equal_names(cases);
            one_name_in_several_scopes(cases);
            limits(cases);
            creations(cases);
        }
        Action::Changes => {
            updates(cases);
            counted_updates(cases);
        }
        Action::Ends => deletion(cases),
        Action::Shows | Action::Lists => {}
    }
}

/// Calls that are sent at the same time.
fn race(calls: impl IntoIterator<Item = Step>) -> Step {
    Step::from(Concurrently {
        concurrently: calls.into_iter().collect(),
    })
}

/// Equal creations under a name that is unique, then one more.
fn equal_names(cases: &mut Cases<'_>) {
    let names: Vec<&Parameter> = unique_names(cases);
    for parameter in names {
        let Some(value) = cases.value_of(&parameter.name) else {
            continue;
        };
        let with = only(&parameter.name, value.clone());
        let one = cases.call(either(), &with);
        let equal = Step {
            repeat: Some(RACERS),
            ..one.clone()
        };
        let mut steps = vec![race([equal]), one];
        steps.extend(list_of_scope(cases));
        cases.after_setup(
            &format!("race-{}", slug(parameter)),
            &format!(
                "several requests with the same {} at the same time",
                parameter.name
            ),
            steps,
        );
    }
}

/// Parameters that give a resource a name of its own within its scope.
fn unique_names<'a>(cases: &Cases<'a>) -> Vec<&'a Parameter> {
    let kind = cases.shown_by(cases.operation);
    let names = kind.and_then(|kind| kind.annotations.identity.as_ref());
    let names = names.map_or(&[][..], |identity| identity.names.as_slice());
    let is_unique = |at: &str| names.iter().any(|name| name == at);
    let parameters = cases.operation.parameters.iter();
    let is_name = |p: &&Parameter| p.echo.as_ref().is_some_and(|echo| is_unique(&echo.at));
    parameters.filter(is_name).collect()
}

/// Creations in several new scopes at the same time under one name of a resource that they share, then everything that
/// lists the scopes of that resource.
fn one_name_in_several_scopes(cases: &mut Cases<'_>) {
    const SCOPES: &str = "scopes";
    let Some((parameter, list, shared)) = shared_name(cases) else {
        return;
    };
    let Some((scope, maker)) = scope(cases) else {
        return;
    };
    let in_scope = |n: usize| format!("${{{SCOPES}.{n}.sid}}");
    let scopes = Step {
        repeat: Some(RACERS),
        ..Step::from(Call {
            call: maker.id.clone(),
            with: cases.service.happy[&maker.id].with.clone(),
            capture: Some(SCOPES.to_owned()),
            ..Call::default()
        })
        .of_setup()
    };
    let racers = (0..RACERS).map(|n| cases.call(either(), &only(&scope, in_scope(n))));
    let mut steps = vec![scopes, race(racers), settled()];
    let of_scope = cases.reader().filter(|o| o.list_key.is_some());
    for n in 0..RACERS {
        let mut with = cases.happy.with.clone();
        with.insert(scope.clone(), in_scope(n).into());
        steps.extend(of_scope.map(|list| Cases::look_at(list, &with)));
    }
    let mut with = Cases::path_of(list, &cases.happy.with);
    with.extend(
        cases
            .value_of(&parameter.name)
            .map(|name| (shared, name.clone())),
    );
    steps.push(calling(list, with, walking(either())));
    cases.after_setup(
        "race-scopes",
        &format!("one {} in several scopes at the same time", parameter.name),
        steps,
    );
}

/// A parameter that names a resource of another type, the list of what that resource belongs to, and its path parameter.
fn shared_name<'a>(cases: &Cases<'a>) -> Option<(&'a Parameter, &'a Operation, String)> {
    let kind_of = |name: &str| cases.rulebook.kinds.get(name);
    let own = cases.shown_by(cases.operation)?;
    let (_, scope) = own.annotations.parents.last()?;
    let has_name = |p: &&Parameter, kind: &str| {
        let names = kind_of(kind).and_then(|kind| kind.annotations.identity.as_ref());
        let at = p.echo.as_ref().map(|echo| &echo.at);
        p.required
            && names
                .zip(at)
                .is_some_and(|(identity, at)| identity.names.contains(at))
    };
    let mut lists = cases
        .service
        .operations
        .values()
        .filter(|o| o.does == Action::Lists);
    lists.find_map(|list| {
        let item = kind_of(list.resource.as_deref()?)?;
        let parents = &item.annotations.parents;
        let belongs = |(_, kind): &&(String, String)| kind == scope;
        parents.iter().find(belongs)?;
        let others = parents.iter().filter(|(_, kind)| kind != scope);
        others.rev().find_map(|(_, kind)| {
            let parameter = cases
                .operation
                .parameters
                .iter()
                .find(|p| has_name(p, kind))?;
            let last = list.path.rsplit('{').next()?.split('}').next()?;
            Some((parameter, list, last.to_owned()))
        })
    })
}

/// The path parameter of the scope that the operation creates in, and the operation that creates such scopes.
fn scope<'a>(cases: &Cases<'a>) -> Option<(String, &'a Operation)> {
    let kind = cases.shown_by(cases.operation)?;
    let (_, scope) = kind.annotations.parents.last()?;
    let last = cases.path().last()?.name.clone();
    let mut makers = cases.service.operations.values();
    let maker = makers.find(|o| o.does == Action::Makes && o.response.as_ref() == Some(scope))?;
    cases
        .service
        .happy
        .contains_key(&maker.id)
        .then_some((last, maker))
}

/// One resource fewer than a scope may have, then several at the same time, then as many as fit.
fn limits(cases: &mut Cases<'_>) {
    let Some((limit, accepts)) = limit(cases) else {
        return;
    };
    let Some(list) = cases.reader() else { return };
    let before = Step {
        repeat: Some(limit - 1),
        ..cases.call(Call::default(), &Map::new()).of_setup()
    };
    let look = |expect: Vec<Expect>| {
        Step::from(Call {
            call: list.id.clone(),
            with: Cases::path_of(list, &cases.happy.with),
            walk: true,
            expect,
            ..either()
        })
    };
    let filled = accepts.map(|rule| Expect {
        rule,
        at: "/items".to_owned(),
        is: Comparison::AtLeast(json!(limit)),
        among: None,
        or_absent: false,
    });
    let one = cases.call(either(), &Map::new());
    let more = Step {
        repeat: Some(limit),
        ..one.clone()
    };
    let racers = Step {
        repeat: Some(RACERS),
        ..one
    };
    let steps = [
        before,
        race([racers]),
        look(Vec::new()),
        more,
        look(filled.into_iter().collect()),
    ];
    cases.after_setup(
        "race-limit",
        "more requests at the same time than the limit leaves room for",
        steps,
    );
}

/// How many resources a scope may have, and the rule that it accepts so many.
fn limit(cases: &Cases<'_>) -> Option<(usize, Option<String>)> {
    let list = cases.reader()?;
    let rules = cases.rulebook.rules.values();
    let checks = rules.filter(|rule| rule.service == list.service);
    let mut limits = checks.filter_map(|rule| limit_in(rule.check()?, &list.id));
    limits.find(|(limit, _)| (1..=LIMIT_MAX).contains(limit))
}

fn limit_in(check: &Check, list: &str) -> Option<(usize, Option<String>)> {
    let operations = parameter(check, "list-size", "operations")?.as_array()?;
    let limit = check.parameters.get("at-most")?.as_u64()?;
    let accepts = check.parameters.get("accepts").and_then(Value::as_str);
    let is_this = operations.iter().any(|operation| operation == list);
    let limit = is_this.then(|| usize::try_from(limit).ok())??;
    Some((limit, accepts.map(str::to_owned)))
}

/// A parameter of a rule with that predicate.
fn parameter<'c>(check: &'c Check, predicate: &str, name: &str) -> Option<&'c Value> {
    let is_this = check.predicate == predicate;
    is_this.then(|| check.parameters.get(name)).flatten()
}

/// Creations of what is counted or numbered, then everything that shows the count.
fn creations(cases: &mut Cases<'_>) {
    let counters = counters(cases);
    if counters.is_empty() && !is_ordered(cases) {
        return;
    }
    let before = cases.call(either(), &Map::new());
    let racers = (1..=RACERS).map(|n| {
        let mut with = cases.again(n);
        with.extend(own_content(cases, n));
        cases.call(either(), &with)
    });
    let mut steps = vec![before, race(racers)];
    if !counters.is_empty() {
        steps.push(settled());
    }
    steps.extend(counters);
    steps.extend(list_of_scope(cases));
    steps.push(cases.call(either(), &cases.again(RACERS + 1)));
    cases.after_setup(
        "race-creations",
        "several requests at the same time, then the counts",
        steps,
    );
}

/// Optional JSON parameters with texts and numbers that only the `n`th request has.
fn own_content(cases: &Cases<'_>, n: usize) -> Map<String, Value> {
    let own = |value: &Value| match value {
        Value::String(text) => json!(format!("{text} {n}")),
        Value::Number(_) => json!(n),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.clone(),
    };
    let optional = cases.happy.optional.iter();
    let members = optional.filter_map(|(name, value)| {
        let content = value.get("$json")?.as_object()?;
        let own = content.iter().map(|(key, value)| (key.clone(), own(value)));
        Some((name.clone(), json!({"$json": own.collect::<Map<_, _>>()})))
    });
    members.collect()
}

/// Whether a rule orders what the operation creates: by a number, or in its list.
fn is_ordered(cases: &Cases<'_>) -> bool {
    let list = cases.reader().map(|list| json!(list.id));
    let rules = cases.rulebook.rules.values();
    let mut rules = rules.filter(|rule| rule.service == cases.operation.service);
    rules.any(|rule| {
        let check = rule.check();
        let of = check.and_then(|check| parameter(check, "order", "operation"));
        let is_by_number = check.is_some_and(|check| check.parameters.get("scope").is_some());
        match is_by_number {
            true => of == Some(&json!(cases.operation.id)),
            false => of.is_some() && of == list.as_ref(),
        }
    })
}

/// Requests that show how many of the created resources there are; one for each counting representation.
fn counters(cases: &Cases<'_>) -> Vec<Step> {
    let Some(resource) = cases.operation.resource.as_deref() else {
        return Vec::new();
    };
    let kinds = cases.rulebook.kinds.values();
    let counting = kinds.filter(|kind| {
        kind.annotations
            .counts
            .values()
            .any(|counts| counts.of == resource)
    });
    let counting: BTreeSet<&str> = counting.map(|kind| kind.name.as_str()).collect();
    let shows = |does: Action| {
        let operations = cases.service.operations.values();
        let shows = operations.filter(move |o| o.does == does && o.list_key.is_none());
        shows.filter_map(|operation| {
            let face = operation
                .response
                .as_deref()
                .filter(|f| counting.contains(f))?;
            Some((
                face,
                Cases::look(operation, sendable(cases, operation)?.clone()),
            ))
        })
    };
    let mut seen = BTreeSet::new();
    let reads = shows(Action::Shows).chain(shows(Action::Changes));
    reads
        .filter(|(face, _)| seen.insert(face.to_owned()))
        .map(|(_, step)| step)
        .collect()
}

/// The happy parameters of another operation, if the set-up of this one has all that they read.
fn sendable<'a>(cases: &Cases<'a>, other: &Operation) -> Option<&'a Map<String, Value>> {
    let own = &cases.happy;
    let given = own.with.values().chain(own.optional.values());
    let mut known: BTreeSet<String> = given.flat_map(roots).collect();
    known.extend(["unique", "target", "now"].map(str::to_owned));
    let with = &cases.service.happy.get(&other.id)?.with;
    let is_known = |value: &Value| roots(value).iter().all(|root| known.contains(root));
    with.values().all(is_known).then_some(with)
}

/// An update while resources are created that the updated one counts, then the counts and the update.
fn counted_updates(cases: &mut Cases<'_>) {
    /// Creations of one type; with an update at most as many requests as a race may have.
    const CREATIONS: usize = 3;
    let operation = cases.operation;
    let makers = makers_of_counted(cases);
    let other_field = operation.parameters.iter().find_map(|p| {
        let is_other =
            p.place == ParameterLocation::Body && !cases.happy.with.contains_key(&p.name);
        let value = cases.happy.optional.get(&p.name);
        Some((p, value.filter(|_| is_other && p.echo.is_some())?.clone()))
    });
    let racers = || {
        let creations = makers.iter().take(2).flat_map(|(maker, with)| {
            (1..=CREATIONS).map(|n| Cases::look(maker, rename_all(with, &numbered(n))))
        });
        let mut racers: Vec<Step> = creations.collect();
        // In each order of a race, creations begin before the update as well as after it.
        racers.insert(racers.len().min(2), cases.call(either(), &Map::new()));
        race(racers)
    };
    if makers.is_empty() {
        return;
    }
    let own = &cases.happy.with;
    let look = cases.look_here(own);
    let is_shown_elsewhere = look.is_some();
    let look = look.unwrap_or_else(|| cases.call(either(), &Map::new()));
    let lists = makers.iter().filter_map(|(maker, with)| {
        let mut others = cases.service.operations.values();
        let list = others.find(|o| o.does == Action::Lists && o.path == maker.path)?;
        Some(Cases::walk(list, with))
    });
    let mut steps = vec![racers(), settled(), look];
    steps.extend(lists);
    let kept = other_field
        .filter(|_| !is_shown_elsewhere)
        .map(|(field, value)| {
            let mut with = Cases::path_of(operation, own);
            with.insert(field.name.clone(), value);
            vec![racers(), Cases::look(operation, with)]
        });
    let what = "an update while what it counts is created, then the counts";
    cases.after_setup("race-counted", what, steps);
    if let Some(steps) = kept {
        let what = "an update while what it counts is created, then an update of another field";
        cases.after_setup("race-kept", what, steps);
    }
}

/// Operations that create what the answer of the operation counts, with their parameters.
fn makers_of_counted<'a>(cases: &Cases<'a>) -> Vec<(&'a Operation, &'a Map<String, Value>)> {
    let Some(kind) = cases.shown_by(cases.operation) else {
        return Vec::new();
    };
    let counted: BTreeSet<&str> = kind
        .annotations
        .counts
        .values()
        .map(|c| c.of.as_str())
        .collect();
    let makers = cases.service.operations.values().filter(|operation| {
        let resource = operation.resource.as_deref();
        operation.does == Action::Makes && resource.is_some_and(|of| counted.contains(of))
    });
    makers
        .filter_map(|maker| Some((maker, sendable(cases, maker)?)))
        .collect()
}

/// The unique names of the `n`th resource.
fn numbered(n: usize) -> impl Fn(&str) -> Option<String> {
    unique(move |word| format!("{word}-{n}"))
}

/// Updates of different fields at the same time, then updates of one field.
fn updates(cases: &mut Cases<'_>) {
    let is_change = cases.operation.method == "POST" && cases.operation.path.ends_with('}');
    if !is_change || cases.reader().is_none() {
        return;
    }
    let operation = cases.operation;
    let is_field =
        |p: &&Parameter| p.place == ParameterLocation::Body && p.echo.is_some() && !p.required;
    let fields: Vec<(&Parameter, &Value)> = operation
        .parameters
        .iter()
        .filter(is_field)
        .filter_map(|p| Some((p, cases.value_of(&p.name)?)))
        .collect();
    // Nothing but the path and this field.
    let update = |field: &Parameter, value: Value| {
        let mut with = Cases::path_of(operation, &cases.happy.with);
        with.insert(field.name.clone(), value);
        Cases::look(operation, with)
    };
    let of_fields = (fields.len() > 1).then(|| {
        let racers = fields.iter().take(RACERS);
        let racers = racers.map(|(field, value)| update(field, (*value).clone()));
        updated(cases, racers.collect())
    });
    let rivals = fields.iter().find_map(|(field, value)| {
        let values = different(field, value)?;
        Some((*field, values))
    });
    let of_values = rivals.map(|(field, values)| {
        let racers = values.into_iter().map(|value| update(field, value));
        let what = format!("updates of {} at the same time", field.name);
        (what, updated(cases, racers.collect()))
    });
    if let Some(steps) = of_fields {
        let what = "updates of different fields at the same time";
        cases.after_setup("race-fields", what, steps);
    }
    if let Some((what, steps)) = of_values {
        cases.after_setup("race-values", &what, steps);
    }
}

/// Updates at the same time, and the resource before and afterwards.
fn updated(cases: &Cases<'_>, racers: Vec<Step>) -> Vec<Step> {
    let own = &cases.happy.with;
    let look = cases.look_here(own);
    let mut steps: Vec<Step> = look.clone().into_iter().collect();
    steps.push(race(racers));
    steps.extend(look.clone());
    steps.extend(look);
    steps.extend(walk(cases, own));
    steps
}

/// Different values of a parameter, if there are some.
fn different(parameter: &Parameter, value: &Value) -> Option<Vec<Value>> {
    if let Some(words) = parameter.schema.get("enum").and_then(Value::as_array) {
        let words: Vec<Value> = words.iter().take(RACERS).cloned().collect();
        return (words.len() > 1).then_some(words);
    }
    let values: Vec<Value> = (1..=RACERS).map(|n| rename(value, &numbered(n))).collect();
    (values[0] != values[1]).then_some(values)
}

/// A deletion and reads at the same time, then what is left.
fn deletion(cases: &mut Cases<'_>) {
    let own = &cases.happy.with;
    let Some(look) = cases.look_here(own) else {
        return;
    };
    let look = || look.clone();
    let delete = cases.call(either(), &Map::new());
    let racers = [look(), delete.clone(), look(), delete, look(), look()];
    let mut steps = vec![look(), race(racers), look(), look()];
    steps.extend(walk(cases, own));
    cases.after_setup(
        "race-deletion",
        "two deletions and reads at the same time",
        steps,
    );
}

/// A walk over the list that the created resource is in.
fn list_of_scope(cases: &Cases<'_>) -> Option<Step> {
    let list: &Operation = cases.reader().filter(|o| o.list_key.is_some())?;
    Some(Cases::walk(list, &cases.happy.with))
}

/// Once in so many sequences two requests are sent at the same time.
const ONE_IN: usize = 4;

/// Sends two neighboring requests of a drawn sequence at the same time, now and then.
pub(super) fn at_once(steps: &mut Vec<Step>, draw: &mut Draw) {
    if draw.below(ONE_IN) > 0 {
        return;
    }
    let pairs: Vec<usize> = (1..steps.len())
        .filter(|&later| may_race(&steps[later - 1], &steps[later]))
        .collect();
    let Some(&later) = draw.pick(&pairs) else {
        return;
    };
    let mut second = steps.remove(later);
    let first = &mut steps[later - 1];
    first.demand_nothing();
    second.demand_nothing();
    let first = std::mem::replace(first, second.clone());
    steps[later - 1] = race([first, second]);
}

/// Whether two steps can be taken at the same time, at least one of which writes.
fn may_race(first: &Step, second: &Step) -> bool {
    let is_plain = |step: &Step| {
        let is_call = step.call().is_some_and(|call| {
            call.expect.is_empty()
                && call.until.is_none()
                && !call.walk
                && call.between.is_empty()
                && step.rejected().is_none()
        });
        let is_hook = step.hook().is_some_and(|hook| hook != ADVANCE_CLOCK);
        (is_call || is_hook) && step.expect().is_empty() && step.repeat.is_none() && !step.setup
    };
    let reads = |step: &Step, name: &String| step.values().any(|value| roots(value).contains(name));
    let is_apart = first.capture().is_none_or(|name| !reads(second, name));
    is_plain(first) && is_plain(second) && is_apart
}

#[cfg(test)]
mod tests {
    use crate::sessions::Offline;
    use crate::{Planned, ScenarioRun, conclude, plan, run_scenario};
    use conformant_judge::evidence::Event;
    use conformant_judge::load::{shared, shared_schemas};
    use conformant_record::Verdict;
    use conformant_rulebook::step::Concurrently;
    use std::sync::atomic::AtomicBool;

    fn races() -> Vec<Planned<'static>> {
        let all = plan::all(shared()).into_iter();
        all.filter(Planned::is_race).collect()
    }

    /// 200 seeds are 200 orders of the requests; the campaign draws more.
    #[test]
    fn no_order_of_the_requests_breaks_a_rule() {
        let (schemas, calm) = (shared_schemas(), AtomicBool::new(false));
        let worlds = Offline::faultless(0);
        for planned in races() {
            for seed in 0..3 {
                let concluded = conclude(shared(), schemas, &planned, &worlds, seed, &calm);
                let (result, findings) = (&concluded.result, &concluded.judgment.findings);
                let id = &planned.scenario.id;
                assert!(findings.is_empty(), "{id}: {findings:?}");
                assert_eq!(result.verdict, Verdict::Pass, "{id}: {}", result.reason);
            }
        }
    }

    #[test]
    fn evidence_of_a_race_is_in_the_order_of_the_scenario_and_overlaps() {
        let (schemas, calm) = (shared_schemas(), AtomicBool::new(false));
        let worlds = Offline::faultless(0);
        for planned in races() {
            let session = crate::Sessions::open(&worlds, &planned).unwrap();
            let scenario_run = ScenarioRun::new(shared(), schemas, &planned, (0, 0));
            let evidence = run_scenario(scenario_run, session.as_ref(), &calm).evidence;
            let raced: Vec<_> = evidence
                .events
                .iter()
                .filter_map(|event| match event {
                    Event::Exchange(index) => evidence.exchanges[*index].race,
                    Event::Hook(call) => call.race,
                    Event::Delivery(_) | Event::Passed(_) => None,
                })
                .collect();
            let id = &planned.scenario.id;
            assert!(!raced.is_empty(), "{id}");
            for race in raced.chunk_by(|one, other| one.number == other.number) {
                assert!(Concurrently::SIZES.contains(&race.len()), "{id}");
                let are_apart = |one: &_| race[0].is_before(one) == Some(false);
                assert!(race.iter().all(are_apart), "{id}");
            }
        }
    }
}
