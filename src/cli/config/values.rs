//! Checks the settings of targets by the schemas of the parameters that carry them. A wrong value would be blamed on the target.

use super::run::Config;
use crate::cli::Failure;
use conformant_rulebook::step::Step;
use conformant_rulebook::{Parameter, Rulebook};
use serde_json::Value;
use std::collections::BTreeMap;

/// Rejects settings that do not match the pattern of a parameter.
pub(in crate::cli) fn check_values(rulebook: &Rulebook, config: &Config) -> Result<(), Failure> {
    let carriers = carriers(rulebook);
    let mut problems = Vec::new();
    for (service, target) in &config.settings.targets {
        for (key, value) in &target.values {
            let parameters = carriers.get(&(service.as_str(), key.as_str()));
            let mut parameters = parameters.into_iter().flatten();
            let wrong = parameters.find(|parameter| !parameter.has_form(value));
            let (Some(parameter), Some(text)) = (wrong, value.as_str()) else {
                continue;
            };
            let pattern = parameter.schema["pattern"].as_str().unwrap_or_default();
            problems.push(format!(
                "targets.{service}.{key}: invalid value `{text}`: {} must match {pattern}; `conformant explain targets.{service}.{key}` describes it",
                // `Configuration.FlowSid` is a member of a body.
                parameter.name.rsplit('.').next().unwrap_or_default()
            ));
        }
    }
    Failure::unless_empty(&problems)
}

/// The parameters with a pattern that carry a setting, by service and key.
fn carriers(rulebook: &Rulebook) -> BTreeMap<(&str, &str), Vec<&Parameter>> {
    let mut carriers: BTreeMap<(&str, &str), Vec<&Parameter>> = BTreeMap::new();
    for service in rulebook.services.values() {
        for operation in service.operations.values() {
            for parameter in operation.parameters.iter().filter(|p| has_pattern(p)) {
                if let Some(key) = &parameter.path_from {
                    let known = carriers.entry((&service.name, key)).or_default();
                    known.push(parameter);
                }
            }
        }
        let scenarios = service.scenarios.values();
        let steps = scenarios.flat_map(|(scenario, _)| &scenario.steps);
        let groups = service.groups.values().flat_map(|group| &group.steps);
        for step in steps.chain(groups) {
            let operation = step
                .operation()
                .map(|call| rulebook.called(&service.name, call));
            let Some(operation) = operation.flatten() else {
                continue;
            };
            for parameter in operation.parameters.iter().filter(|p| has_pattern(p)) {
                if let Some((owner, key)) = carried(step, &parameter.name) {
                    carriers.entry((owner, key)).or_default().push(parameter);
                }
            }
        }
    }
    carriers
}

fn has_pattern(parameter: &Parameter) -> bool {
    parameter.schema.get("pattern").is_some()
}

/// The setting that a step sends as a parameter: `${target.SERVICE.KEY}`.
fn carried<'a>(step: &'a Step, parameter: &str) -> Option<(&'a str, &'a str)> {
    let text = step.with()?.get(parameter).and_then(Value::as_str)?;
    let path = text.strip_prefix("${target.")?.strip_suffix('}')?;
    path.split_once('.')
}
