//! Scenario files: reads them, and resolves all names.

mod checker;
mod paths;
mod rules;
mod step;

use super::check::{Check, PredicateRegistry};
use super::draft::{Draft, File, Files, items_of, members_of};
use super::model::{Kind, Service};
use super::rule_files::{check_id, only};
use super::scenario::{Group, HappyPath, Scenario};
use super::service::ServiceIndex;
use checker::Checker;
use conformant_base::sorted::SortedMap;
use conformant_yaml::{Member, Span};
use paths::PathKinds;
use std::collections::BTreeSet;

/// Reads the rules that scenario files define.
pub(super) fn read_rules(draft: &mut Draft, files: &[&File], registry: &dyn PredicateRegistry) {
    for file in files {
        rules::read(draft, file, registry);
    }
}

/// Reads all scenario files.
pub(super) fn read(draft: &mut Draft, files: &[&File], services: &mut SortedMap<String, Service>) {
    for file in files {
        only(draft, file, &["groups", "operations", "scenarios"]);
        read_groups(draft, file, services);
        read_happy_paths(draft, file, services);
        read_scenarios(draft, file, services);
    }
}

/// Fills omitted path parameters; all files must have been read.
pub(super) fn fill_paths(
    index: &ServiceIndex,
    services: &mut SortedMap<String, Service>,
    kinds: &SortedMap<String, Kind>,
) {
    let path_kinds = PathKinds::from_services(services, kinds);
    paths::fill(services, kinds, index, &path_kinds);
}

/// Checks the names in scenario files; all of them must have been read.
pub(super) fn check_names(
    draft: &mut Draft,
    files: &[&File],
    services: &SortedMap<String, Service>,
    kinds: &SortedMap<String, Kind>,
) {
    let path_kinds = PathKinds::from_services(services, kinds);
    for file in files {
        let Some(service) = services.get(file.service()) else {
            continue;
        };
        let checker = Checker {
            file,
            service,
            services,
            kinds,
            path_kinds: &path_kinds,
        };
        checker.groups(draft);
        checker.happy_paths(draft);
        checker.scenarios(draft);
    }
}

fn section<'a>(file: &'a File, key: &str) -> &'a [Member] {
    members_of(&file.node, key)
}

fn read_groups(draft: &mut Draft, file: &File, services: &mut SortedMap<String, Service>) {
    for member in section(file, "groups") {
        let Some(group) = draft.deserialize::<Group>(file, &member.value) else {
            continue;
        };
        let service = services
            .get_mut(file.service())
            .expect("a role names a service");
        if service
            .groups
            .insert(member.key.to_string(), group)
            .is_some()
        {
            let message = format!("duplicate group `{}`", member.key);
            draft.refuse(file.problem_at(member.key_span, message));
        }
    }
}

fn read_happy_paths(draft: &mut Draft, file: &File, services: &mut SortedMap<String, Service>) {
    for member in section(file, "operations") {
        let Some(happy) = draft.deserialize::<HappyPath>(file, &member.value) else {
            continue;
        };
        let service = services
            .get_mut(file.service())
            .expect("a role names a service");
        if !service.operations.contains_key(&*member.key) {
            let known = service.operations.keys().map(String::as_str);
            draft.unknown(file, member.key_span, "operation", &member.key, known);
        } else if service
            .happy
            .insert(member.key.to_string(), happy)
            .is_some()
        {
            let message = format!("`{}` has two happy paths", member.key);
            draft.refuse(file.problem_at(member.key_span, message));
        }
    }
}

fn read_scenarios(draft: &mut Draft, file: &File, services: &mut SortedMap<String, Service>) {
    let items = items_of(&file.node, "scenarios");
    for (n, node) in items.iter().enumerate() {
        let at = format!("/scenarios/{n}");
        let Some(scenario) = draft.deserialize::<Scenario>(file, node) else {
            continue;
        };
        check_id(draft, file, &at, &scenario.id);
        let service = services
            .get_mut(file.service())
            .expect("a role names a service");
        if let Some((_, place)) = service.scenarios.get(&scenario.id) {
            let message = format!("the scenario `{}` is in {place} already", scenario.id);
            draft.refuse(file.problem(&format!("{at}/id"), message));
            continue;
        }
        let place = file.place(&at);
        service
            .scenarios
            .insert(scenario.id.clone(), (scenario, place));
    }
}

/// Checks of the whole rulebook: operations without a happy path, rules without a scenario.
pub(super) fn check_whole(draft: &mut Draft, files: &Files, services: &SortedMap<String, Service>) {
    for service in services.values() {
        let Some(file) = files.get(&format!("{}/openapi.yaml", service.name)) else {
            continue;
        };
        for id in service
            .operations
            .keys()
            .filter(|id| !service.happy.contains_key(*id))
        {
            let span = operation_span(file, id).unwrap_or_default();
            draft.refuse(
                file.problem_at(span, format!("the operation `{id}` has no happy path"))
                    .help(format!(
                        "add `operations: {{ {id}: … }}` to a file in {}/scenarios",
                        service.name
                    )),
            );
        }
    }
    let with_scenario = named_rules(services);
    let without_scenario: Vec<_> = draft
        .rules
        .values()
        .filter(|r| {
            r.check().is_some_and(Check::is_scenario_rule) && !with_scenario.contains(&r.id)
        })
        .map(|r| (r.id.clone(), r.place.clone()))
        .collect();
    for (id, place) in without_scenario {
        let path = place
            .rsplit_once(':')
            .map_or(place.as_str(), |(path, _)| path);
        let Some(file) = files.get(path) else {
            continue;
        };
        let items = items_of(&file.node, "rules");
        let span = items
            .iter()
            .find_map(|r| r.get("id").filter(|i| i.text() == Some(&id)))
            .map(|n| n.span)
            .unwrap_or_default();
        draft.refuse(
            file.problem_at(span, format!("no scenario names the rule `{id}`"))
                .help("name it in `expect`, `accepted` or `rejected` of a step"),
        );
    }
}

fn operation_span(file: &File, id: &str) -> Option<Span> {
    file.node.get("paths")?.members().iter().find_map(|path| {
        path.value.members().iter().find_map(|method| {
            let node = method.value.get("operationId")?;
            (node.text() == Some(id)).then_some(node.span)
        })
    })
}

/// Every rule that a step names.
fn named_rules(services: &SortedMap<String, Service>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for service in services.values() {
        let steps = service
            .groups
            .values()
            .flat_map(|g| &g.steps)
            .chain(service.happy.values().flat_map(|h| &h.setup))
            .chain(service.scenarios.values().flat_map(|(s, _)| &s.steps));
        for step in steps.flat_map(|s| std::iter::once(s).chain(s.nested())) {
            named.extend(step.expect().iter().map(|e| e.rule.clone()));
            named.extend(step.accepted().cloned());
            named.extend(step.rejected().cloned());
        }
    }
    named
}
