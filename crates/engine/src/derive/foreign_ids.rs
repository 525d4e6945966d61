//! Foreign identifiers: each id below another existing parent, and a foreign id below our own.
//!
//! A resource is found only below its parent. A list may be empty and a deletion repeated, so these requests may be
//! accepted or rejected.

use super::boundary::is_sid;
use super::cases::{Cases, either, only, refused, slug};
use super::second_tenant::SecondTenant;
use super::witnesses;
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Operation, Parameter, ParameterLocation, Rule};
use serde_json::{Map, Value};

/// Each parent in the path, and each id in the body.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let path = cases.path();
    let parents = &path[..path.len().saturating_sub(1)];
    for (level, parent) in parents.iter().enumerate() {
        other_parent(cases, parent, &parents[..level]);
    }
    for parameter in &cases.operation.parameters {
        if parameter.place == ParameterLocation::Body && is_sid(parameter) {
            foreign_id(cases, parameter);
        }
    }
}

/// Our id below the second tenant's parent, and its id below ours.
fn other_parent(cases: &mut Cases<'_>, parameter: &Parameter, above: &[&Parameter]) {
    let ours = &cases.happy.with;
    let above = above.iter().filter_map(|p| ours.get(&p.name));
    let second_tenant = SecondTenant::sharing(cases, above);
    let Some(parent) = ours.get(&parameter.name) else {
        return;
    };
    let mut foreign = second_tenant.values(ours);
    let their_parent = only(&parameter.name, second_tenant.value(parent));
    if their_parent.values().eq([parent]) {
        return;
    }
    foreign.insert(parameter.name.clone(), parent.clone());
    let is_ruled = cases.rulebook.rules.contains_key(&parameter.rule);
    let may_be_empty = cases.operation.list_key.is_some() || cases.operation.method == "DELETE";
    // If an invariant covers the parent of a resource, it decides.
    let step = match is_ruled && !may_be_empty && !has_invariant(cases) {
        true => refused(&parameter.rule),
        false => either(),
    };
    let mut steps = cases.setup();
    steps.extend(second_tenant.steps.iter().cloned());
    if cases.operation.method == "GET" {
        steps.push(cases.call(Call::default(), &Map::new()));
    }
    let reader = cases.reader().filter(|_| cases.operation.method != "GET");
    let looks = reader.map(|reader| {
        let foreign = second_tenant.values(ours);
        [ours, &foreign].map(|with| Cases::look_at(reader, with))
    });
    steps.extend(looks.clone().into_iter().flatten());
    steps.push(cases.call(step.clone(), &their_parent));
    steps.push(cases.call(step, &foreign));
    steps.extend(looks.into_iter().flatten());
    let what = format!("{} names another that exists", parameter.name);
    cases.push(&format!("{}-other", slug(parameter)), &what, steps);
}

/// Whether an invariant states below which parents the operation finds its resource.
fn has_invariant(cases: &Cases<'_>) -> bool {
    let rules = cases.rulebook.rules.values();
    let mut rules = rules
        .filter_map(Rule::check)
        .filter(|check| check.predicate == "parent-scope");
    rules.any(|check| check.parameters["of"] == cases.own_rule())
}

/// An id that exists and belongs to another tenant.
fn foreign_id(cases: &mut Cases<'_>, parameter: &Parameter) {
    let Some(own) = cases.value_of(&parameter.name).cloned() else {
        return;
    };
    let second_tenant = SecondTenant::sharing(cases, []);
    let foreign = second_tenant.value(&own);
    if foreign == own {
        return;
    }
    let mut steps = cases.setup();
    steps.extend(second_tenant.steps.iter().cloned());
    // A creation or an update that is rejected for it leaves no trace.
    let witnesses = witnesses::looks(cases);
    let mut with = cases.optional();
    with.insert(parameter.name.clone(), foreign.clone());
    steps.extend(witnesses.clone());
    steps.push(cases.call(either(), &with));
    steps.extend(witnesses);
    steps.extend(fetch(cases, parameter, &foreign));
    // If the foreign id was rejected, our own one is used.
    steps.push(cases.call(either(), &only(&parameter.name, own)));
    steps.extend(cases.look_here(&cases.happy.with));
    let what = format!("{} names another's", parameter.name);
    cases.push(&format!("{}-elsewhere", slug(parameter)), &what, steps);
}

/// Fetches such an id in our own scope.
fn fetch(cases: &Cases<'_>, parameter: &Parameter, id: &Value) -> Option<Step> {
    let prefix = parameter.schema.get("pattern")?.as_str()?.get(1..3)?;
    let shows = |operation: &&Operation| {
        let kind = cases.shown_by(operation);
        let sid = kind.and_then(|kind| kind.schema.pointer("/properties/sid"));
        let sid = sid.map(Value::to_string).unwrap_or_default();
        let is_fetch = operation.method == "GET" && operation.list_key.is_none();
        is_fetch && (sid.contains(&format!("sid-{prefix}")) || sid.contains(&format!("^{prefix}")))
    };
    let fetch = cases.service.operations.values().find(shows)?;
    let mut with = Map::new();
    for parameter in fetch
        .parameters
        .iter()
        .filter(|p| p.place == ParameterLocation::Path)
    {
        let ours = cases.happy.with.get(&parameter.name);
        let is_last = fetch.path.ends_with(&format!("{{{}}}", parameter.name));
        let value = if is_last { Some(id) } else { ours };
        // A service is named `Sid` where it is updated, and `ServiceSid` below it.
        let value = value.or_else(|| cases.happy.with.get("Sid"));
        with.insert(parameter.name.clone(), value?.clone());
    }
    Some(Cases::look(fetch, with))
}
