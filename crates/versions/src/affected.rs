//! Scenarios and payloads that a change affects.
//!
//! Affected scenarios are worth running again; they need not fail.

use super::coordinates::What;
use super::ledger::{Change, Subject};
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::Step;
use conformant_rulebook::{Origin, Rulebook, Service};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum depth of groups.
const DEPTH_MAX: usize = 16;

/// Affected scenarios of the newer rulebook, by id.
pub fn affected_scenarios<'a>(
    changes: &[Change],
    rulebook: &Rulebook,
    scenarios: impl IntoIterator<Item = (&'a Service, &'a Scenario)>,
) -> Vec<String> {
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for (service, scenario) in scenarios {
        let mut uses = Uses {
            id: &scenario.id,
            ..Uses::default()
        };
        uses.steps(rulebook, service, &scenario.steps, 0);
        uses.representations(rulebook);
        // Changes of wording have no visible effect.
        let mut changes = changes
            .iter()
            .filter(|change| change.coordinates.what != What::Words);
        if changes.any(|change| uses.affected_by(&change.subject, rulebook)) {
            ids.insert(scenario.id.clone());
        }
    }
    ids.into_iter().collect()
}

/// Evidence that a scenario produces.
#[derive(Debug, Default)]
struct Uses<'a> {
    id: &'a str,
    operations: BTreeSet<(String, String)>,
    kinds: BTreeSet<String>,
    rules: BTreeSet<String>,
    events: bool,
}

impl Uses<'_> {
    fn steps(&mut self, rulebook: &Rulebook, service: &Service, steps: &[Step], depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        for step in steps {
            if let Some(call) = step.operation() {
                let (service, operation) = call
                    .split_once('/')
                    .unwrap_or((service.name.as_str(), call));
                self.operations
                    .insert((service.to_owned(), operation.to_owned()));
            }
            let mut hooks = step.hook().into_iter();
            self.events |= hooks.any(|hook| rulebook.index.collects_events(hook));
            self.kinds.extend(step.judge().cloned());
            self.rules
                .extend(step.accepted().into_iter().chain(step.rejected()).cloned());
            self.rules
                .extend(step.expect().iter().map(|expect| expect.rule.clone()));
            self.steps(rulebook, service, step.nested(), depth + 1);
            let group = step.group().and_then(|g| rulebook.group(service, &g.r#use));
            if let Some((owner, group)) = group {
                self.steps(rulebook, owner, &group.steps, depth + 1);
            }
        }
    }

    /// Representations that the operations return, with nested ones.
    fn representations(&mut self, rulebook: &Rulebook) {
        for (service, operation) in &self.operations {
            if let Some(operation) = rulebook.operation(service, operation) {
                self.kinds
                    .extend(operation.response.iter().chain(&operation.error).cloned());
            }
        }
        let inner: Vec<String> = self
            .kinds
            .iter()
            .filter_map(|kind| rulebook.kinds.get(kind)?.schema.get("$defs")?.as_object())
            .flat_map(|defs| defs.keys().map(|name| name.replace('.', "/")))
            .collect();
        self.kinds.extend(inner);
    }

    fn affected_by(&self, subject: &Subject, rulebook: &Rulebook) -> bool {
        let calls = |service: &str, operation: &str| {
            self.operations
                .contains(&(service.to_owned(), operation.to_owned()))
        };
        match subject {
            Subject::Representation { old, new, .. } => {
                let is_event = new.starts_with("events/");
                (is_event && self.events) || self.kinds.contains(old) || self.kinds.contains(new)
            }
            Subject::Operation { service, operation }
            | Subject::Parameter {
                service, operation, ..
            } => calls(service, operation),
            Subject::PathVersion { service, version } => {
                let begins = format!("/{version}/");
                self.operations.iter().any(|(s, operation)| {
                    s == service
                        && rulebook
                            .operation(s, operation)
                            .is_some_and(|o| o.path.starts_with(&begins))
                })
            }
            Subject::Rule(id) => self.rules.contains(id) || self.judged_by(id, rulebook),
            Subject::OpenPoint(id) => self.rules.contains(id),
            Subject::EventType(_) => self.events,
            Subject::Scenario(id) => {
                self.id == id
                    || self
                        .id
                        .strip_prefix(id.as_str())
                        .is_some_and(|rest| rest.starts_with('['))
            }
            // A sentence affects what its rules affect, and the comparison lists those as well.
            Subject::Statement { .. } => false,
        }
    }

    /// Whether a written rule judges these operations or representations. All predicates use the same parameter names.
    fn judged_by(&self, id: &str, rulebook: &Rulebook) -> bool {
        let Some(rule) = rulebook.rules.get(id) else {
            return false;
        };
        let check = match &rule.origin {
            Origin::Written(check) if self.kinds.iter().any(|kind| check.is_about(kind)) => {
                return true;
            }
            Origin::Written(check) => serde_json::to_value(check).unwrap_or_default(),
            Origin::Property { kind, .. } | Origin::NoOtherFields { kind } => {
                return self.kinds.contains(kind);
            }
            Origin::Operation { operation }
            | Origin::Parameter { operation, .. }
            | Origin::Credentials { operation }
            | Origin::ListKey { operation }
            | Origin::ListWalk { operation } => {
                return self
                    .operations
                    .contains(&(rule.service.clone(), operation.clone()));
            }
            Origin::Either => return false,
        };
        let parameters: Vec<&Value> = check
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::values)
            .collect();
        let named = |key: &str| {
            parameters
                .iter()
                .filter_map(|p| p.get(key))
                .flat_map(|v| {
                    v.as_array()
                        .map_or_else(|| vec![v], |list| list.iter().collect())
                })
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        named("kind").iter().any(|kind| self.kinds.contains(kind))
            || ["operation", "operations", "after"]
                .iter()
                .flat_map(|key| named(key))
                .any(|operation| self.operations.contains(&(rule.service.clone(), operation)))
    }
}

/// Ids of scenarios of the newer rulebook that are new or have changed steps, including those of their groups.
pub fn reworded_scenarios<'a>(
    old: (
        &Rulebook,
        impl IntoIterator<Item = (&'a Service, &'a Scenario)>,
    ),
    new: (
        &Rulebook,
        impl IntoIterator<Item = (&'a Service, &'a Scenario)>,
    ),
) -> Vec<String> {
    let before: SortedMap<&str, String> = old
        .1
        .into_iter()
        .map(|(service, scenario)| {
            (
                scenario.id.as_str(),
                changed_steps(old.0, service, scenario),
            )
        })
        .collect();
    new.1
        .into_iter()
        .filter(|(service, scenario)| {
            before.get(scenario.id.as_str()) != Some(&changed_steps(new.0, service, scenario))
        })
        .map(|(_, scenario)| scenario.id.clone())
        .collect()
}

/// All steps of a scenario as one text, for comparison.
fn changed_steps(rulebook: &Rulebook, service: &Service, scenario: &Scenario) -> String {
    let mut text = format!("{:?}", scenario.matrix);
    spell(&mut text, rulebook, service, &scenario.steps, 0);
    text
}

fn spell(text: &mut String, rulebook: &Rulebook, service: &Service, steps: &[Step], depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    for step in steps {
        write!(text, "{step:?}").expect("writing to a String succeeds");
        spell(text, rulebook, service, step.nested(), depth + 1);
        let group = step.group().and_then(|g| rulebook.group(service, &g.r#use));
        if let Some((owner, group)) = group {
            write!(text, "{:?}", group.with).expect("writing to a String succeeds");
            spell(text, rulebook, owner, &group.steps, depth + 1);
        }
    }
}

/// Whether a payload of the older representation contains the place of a change: the added or removed value, the
/// object with the new field, or any other content there.
pub fn affected_payload(change: &Change, kind: &str, payload: &Value) -> bool {
    let Subject::Representation { old, new, pointer } = &change.subject else {
        return false;
    };
    if kind != old && kind != new {
        return false;
    }
    let what = change.coordinates.what;
    let is_of_object = matches!(what, What::Property | What::ClosedProperty | What::Required);
    let place = match pointer.rsplit_once('/') {
        Some((parent, _)) if is_of_object => parent,
        _ => pointer,
    };
    let mut found = json::expand(payload, place).into_iter();
    found.any(|(_, found)| match &change.value {
        Some(value) if what == What::EnumValue => json::equal(found, value),
        _ if is_of_object => found.is_object(),
        _ => !matches!(what, What::EnumValue | What::Words),
    })
}
