//! What a run needs to judge more rules: derived from the reasons why scenarios ended.
//!
//! Reads reasons and scenarios only. A need without a reason is left out; hooks are never guessed.

use super::plan;
use conformant_record::{ScenarioResult, Verdict};
use conformant_rulebook::step::Step;
use conformant_rulebook::{Origin, Rule, Rulebook, Service};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting of groups.
const GROUP_DEPTH_MAX: usize = 16;

/// Needs of the scenarios that did not apply.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// By resource type, and by operation as `SERVICE/ID`.
    by_subject: BTreeMap<String, BTreeSet<String>>,
}

/// Collects the needs of the scenarios that did not apply.
pub(super) fn needs_of(rulebook: &Rulebook, scenarios: &[ScenarioResult]) -> Needs {
    let reasons: BTreeMap<&str, String> = scenarios
        .iter()
        .filter(|scenario| scenario.verdict == Verdict::NotApplicable)
        .filter_map(|scenario| Some((scenario.id.as_str(), need_in(&scenario.reason)?)))
        .collect();
    let mut needs = Needs::default();
    if reasons.is_empty() {
        return needs;
    }
    for planned in plan::all(rulebook) {
        let Some(need) = reasons.get(planned.scenario.id.as_str()) else {
            continue;
        };
        let mut subjects = BTreeSet::new();
        for step in &planned.scenario.steps {
            subjects_of(rulebook, planned.service, step, 0, &mut subjects);
        }
        for thing in subjects {
            needs
                .by_subject
                .entry(thing)
                .or_default()
                .insert(need.clone());
        }
    }
    needs
}

impl Needs {
    /// The needs of a rule, given the reason why it was not judged.
    pub(super) fn for_rule(&self, rule: &Rule, reason: &str) -> Vec<String> {
        if let Some(need) = need_in(reason) {
            return vec![need];
        }
        let operation = match &rule.origin {
            Origin::Operation { operation }
            | Origin::Parameter { operation, .. }
            | Origin::Credentials { operation }
            | Origin::ListKey { operation }
            | Origin::ListWalk { operation } => Some(operation.as_str()),
            Origin::Property { .. }
            | Origin::NoOtherFields { .. }
            | Origin::Written(_)
            | Origin::Either => None,
        };
        let subjects = rule.kind().into_iter().chain(operation);
        let mut needs: BTreeSet<&String> = BTreeSet::new();
        for thing in subjects {
            needs.extend(self.by_subject.get(thing).into_iter().flatten());
        }
        needs.into_iter().cloned().collect()
    }
}

/// The need that a reason names, in the spelling of the record.
pub fn need_in(reason: &str) -> Option<String> {
    let named = |prefix: &str| {
        let rest = reason.split_once(prefix)?.1;
        let name = rest.split([' ', ',', ';', ':', '`']).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    if let Some(hook) = named("hook missing: ") {
        return Some(format!("hook {hook}"));
    }
    if let Some(key) = named("not configured: target.").or_else(|| named("not configured: ")) {
        return Some(format!("key {key}"));
    }
    if reason.contains("callback listener") {
        return Some("callbacks".to_owned());
    }
    let service = reason
        .strip_prefix("service ")?
        .strip_suffix(" is not targeted")?;
    Some(format!("service {service}"))
}

/// Operations that a step calls and types that it would receive.
fn subjects_of(
    rulebook: &Rulebook,
    service: &Service,
    step: &Step,
    depth: usize,
    subjects: &mut BTreeSet<String>,
) {
    if let Some(call) = step.operation() {
        let (of, id) = call.split_once('/').unwrap_or((&service.name, call));
        if let Some(operation) = rulebook.operation(of, id) {
            subjects.insert(format!("{of}/{id}"));
            subjects.extend(operation.response.clone());
        }
    }
    let mut hooks = step.hook().into_iter();
    if hooks.any(|hook| rulebook.index.collects_events(hook)) {
        subjects.extend(rulebook.event_types.values().flatten().cloned());
    }
    subjects.extend(step.judge().cloned());
    let group = step.group().and_then(|g| rulebook.group(service, &g.r#use));
    if let Some((service, group)) = group.filter(|_| depth < GROUP_DEPTH_MAX) {
        for inner in &group.steps {
            subjects_of(rulebook, service, inner, depth + 1, subjects);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::need_in;

    #[test]
    fn reasons_map_to_needs() {
        for (reason, need) in [
            ("hook missing: end_execution", Some("hook end_execution")),
            (
                "not configured: target.flow.flow_sid",
                Some("key flow.flow_sid"),
            ),
            ("service media is not targeted", Some("service media")),
            ("no callback listener is configured", Some("callbacks")),
            ("timeout", None),
        ] {
            assert_eq!(need_in(reason).as_deref(), need, "{reason}");
        }
    }
}
