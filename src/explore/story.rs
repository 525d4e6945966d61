//! What exploration found as a scenario: its name, its file, and whether a loader would take it.

use crate::rulebook::scenario::{Scenario, Step};
use crate::rulebook::{Place, Rulebook, Service, interpolations, kebab};
use crate::verdict::Finding;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A finding with the shortest sequence that brings it.
#[derive(Debug)]
pub struct Shrunk {
    /// The sequence.
    pub scenario: Scenario,
    /// The finding.
    pub finding: Finding,
    /// The sequence that it came by first.
    pub sequence: u64,
    /// Whether it did not come again when the same was sent again.
    pub is_flaky: bool,
}

impl Shrunk {
    pub(super) fn sure(scenario: Scenario, finding: Finding, sequence: u64) -> Self {
        Self {
            scenario,
            finding,
            sequence,
            is_flaky: false,
        }
    }

    pub(super) fn flaky(scenario: Scenario, finding: Finding, sequence: u64) -> Self {
        Self {
            is_flaky: true,
            ..Self::sure(scenario, finding, sequence)
        }
    }

    /// The sequence as a person reads it, a step a line.
    pub fn told(&self) -> String {
        let mut text = String::new();
        for (index, step) in self.scenario.steps.iter().enumerate() {
            let _ = writeln!(text, "  {}. {}", index + 1, step.summary());
        }
        text
    }
}

/// `flow/execution/status` on `flow/fetch-execution` is `execution-status-on-fetch-execution`.
pub(super) fn name(rule: &str, operation: &str) -> String {
    let behind = |id: &str| {
        id.split_once('/')
            .map_or(id, |(_, rest)| rest)
            .replace('/', "-")
    };
    kebab(format!("{}-on-{}", behind(rule), behind(operation)).trim_end_matches('-'))
}

/// A scenario of these steps.
pub(super) fn scenario(service: &str, name: &str, steps: Vec<Step>) -> Scenario {
    Scenario {
        id: format!("{service}/explored/{name}"),
        says: "A sequence that exploration drew.".to_owned(),
        matrix: BTreeMap::new(),
        steps,
    }
}

/// Whether what each step reads is there before it, and each path is whole.
pub(super) fn is_sound(rulebook: &Rulebook, service: &Service, scenario: &Scenario) -> bool {
    let mut known: BTreeSet<String> = ["target", "unique", "now", "index", "with"]
        .map(str::to_owned)
        .into();
    scenario.steps.iter().all(|step| {
        let reads =
            Value::Object(step.with.clone()).to_string() + step.get.as_deref().unwrap_or_default();
        let found = interpolations(&reads).unwrap_or_default();
        let is_known = found.iter().all(|one| known.contains(&one.path[0]));
        let operation = step
            .call
            .as_ref()
            .and_then(|call| match call.split_once('/') {
                Some((of, id)) => rulebook.operation(of, id),
                None => service.operations.get(call),
            });
        let mut path = operation
            .iter()
            .flat_map(|o| &o.parameters)
            .filter(|p| p.place == Place::Path);
        let is_whole = path.all(|p| step.with.contains_key(&p.name));
        known.extend(
            step.capture
                .iter()
                .chain(&step.listen)
                .chain(&step.r#as)
                .cloned(),
        );
        let group = step
            .r#use
            .as_ref()
            .and_then(|name| match name.split_once('/') {
                Some((of, name)) => rulebook.services.get(of)?.groups.get(name),
                None => service.groups.get(name),
            });
        if step.r#as.is_none() {
            let inner = group.iter().flat_map(|group| &group.steps);
            known.extend(
                inner
                    .flat_map(|inner| inner.capture.iter().chain(&inner.r#as))
                    .cloned(),
            );
        }
        is_known && is_whole
    })
}

/// The file that `run --scenarios DIR` reads, with its path below the folder.
pub fn file_of(shrunk: &Shrunk) -> (String, String) {
    let Shrunk {
        scenario, finding, ..
    } = shrunk;
    let (service, name) = scenario
        .id
        .split_once("/explored/")
        .unwrap_or(("", &scenario.id));
    let says = format!(
        "Broke {}: {}",
        finding.rule,
        crate::text::excerpt(&finding.message, 160)
    );
    let mut text = format!(
        "# Found by exploration and shrunk; it states nothing: the rules judge it.\nscenarios:\n  - id: {}\n    says: {}\n    steps:\n",
        scenario.id,
        json!(says),
    );
    for step in &scenario.steps {
        let _ = writeln!(text, "      - {}", written(step));
    }
    (format!("{service}/{name}.yaml"), text)
}

/// A step as one line of a scenario file, without what says nothing.
fn written(step: &Step) -> Value {
    let whole = serde_json::to_value(step).unwrap_or_default();
    let Value::Object(members) = whole else {
        return Value::Null;
    };
    let mut kept = Map::new();
    for (name, value) in members {
        let value = if name == "with" { value } else { pruned(value) };
        let is_empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        let is_usual = name == "credentials" && value == json!("default");
        let says_nothing = value.is_null() || value == json!(false) || is_empty || is_usual;
        if !says_nothing {
            kept.insert(name, value);
        }
    }
    Value::Object(kept)
}

/// Without members that were not given.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members
                .into_iter()
                .filter(|(_, v)| !v.is_null() && *v != json!(false));
            Value::Object(kept.map(|(name, value)| (name, pruned(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(pruned).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}
