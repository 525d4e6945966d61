//! Reads of everything that the set-up of a case created, and of what the service derives from it.
//!
//! Two rounds around a rejected write show whether the write had an effect. No document shows a fetch operation for some
//! of these resources, so that each read goes either way.

use super::cases::Cases;
use super::credentials::{follow, has_url};
use conformant_rulebook::step::Step;
use conformant_rulebook::{Operation, interpolations};
use serde_json::Value;
use std::collections::BTreeMap;

/// One read of each resource that the set-up captures, by its `url`, and of each representation that counts others.
pub(super) fn looks(cases: &Cases<'_>) -> Vec<Step> {
    let setup = cases.expanded_setup();
    let captured: BTreeMap<&String, String> = setup
        .iter()
        .filter(|step| step.repeat.is_none())
        .filter_map(|step| Some((step.capture()?, kind_of(cases, step)?)))
        .collect();
    let urls = captured
        .iter()
        .filter(|(_, kind)| cases.rulebook.kinds.get(kind.as_str()).is_some_and(has_url))
        .map(|(name, _)| Step::from(follow(&format!("${{{name}.url}}"))));
    let sent: Vec<&Value> = setup.iter().flat_map(Step::values).collect();
    let is_known = |value: &Value| {
        let text = value.to_string();
        let found = interpolations(&text).unwrap_or_default();
        !found.is_empty()
            && found.iter().all(|name| match name.path[0].as_str() {
                "unique" => sent.contains(&value),
                root => captured.keys().any(|captured| *captured == root),
            })
    };
    let counting = cases.service.operations.values().filter_map(|operation| {
        let happy = cases.service.happy.get(&operation.id)?;
        let with = Cases::path_of(operation, &happy.with);
        let is_derived = counts(cases, operation) && !is_captured(&captured, operation);
        (is_derived && with.values().all(is_known)).then(|| Cases::look(operation, with))
    });
    urls.chain(counting).collect()
}

/// Whether a resource in the set-up counts others, so that its reads agree only once they have caught up.
pub(super) fn have_counts(cases: &Cases<'_>) -> bool {
    let setup = cases.expanded_setup();
    let mut kinds = setup.iter().filter_map(|step| kind_of(cases, step));
    kinds.any(|kind| {
        let kind = cases.rulebook.kinds.get(&kind);
        kind.is_some_and(|kind| !kind.annotations.counts.is_empty())
    })
}

/// The resource type that a set-up call returns, if the service of the case has it.
fn kind_of(cases: &Cases<'_>, step: &Step) -> Option<String> {
    let (service, operation) = step.call()?.call.split_once('/')?;
    let operation = cases.service.operations.get(operation)?;
    (service == cases.service.name).then(|| operation.response.clone())?
}

/// Whether an operation fetches a representation with a number of other resources.
fn counts(cases: &Cases<'_>, operation: &Operation) -> bool {
    let kind = cases.shown_by(operation);
    let is_fetch = operation.method == "GET" && operation.list_key.is_none();
    is_fetch && kind.is_some_and(|kind| !kind.annotations.counts.is_empty())
}

fn is_captured(captured: &BTreeMap<&String, String>, operation: &Operation) -> bool {
    let kind = operation.response.as_ref();
    kind.is_some_and(|kind| captured.values().any(|captured| captured == kind))
}
