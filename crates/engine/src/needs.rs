//! What would let a rule be judged that was not: taken from the reasons why scenarios ended.
//!
//! Reads reasons and scenarios alone. What no reason names is left out: it never guesses a hook.

use super::plan;
use conformant_record::{ScenarioResult, Verdict};
use conformant_rulebook::step::Step;
use conformant_rulebook::{Origin, Rule, Rulebook, Service};
use std::collections::{BTreeMap, BTreeSet};

/// How deep groups are looked into.
const GROUP_DEPTH_MAX: usize = 16;

/// What scenarios that did not apply would have shown.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// By kind of representation, and by operation as `SERVICE/ID`.
    by_thing: BTreeMap<String, BTreeSet<String>>,
}

/// Collects them from the scenarios of a run that did not apply.
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
        let mut things = BTreeSet::new();
        for step in &planned.scenario.steps {
            things_of(rulebook, planned.service, step, 0, &mut things);
        }
        for thing in things {
            needs
                .by_thing
                .entry(thing)
                .or_default()
                .insert(need.clone());
        }
    }
    needs
}

impl Needs {
    /// What this rule needs, given the reason why it was not judged.
    pub(super) fn of(&self, rule: &Rule, reason: &str) -> Vec<String> {
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
        let things = rule.kind().into_iter().chain(operation);
        let mut needs: BTreeSet<&String> = BTreeSet::new();
        for thing in things {
            needs.extend(self.by_thing.get(thing).into_iter().flatten());
        }
        needs.into_iter().cloned().collect()
    }
}

/// What a reason asks for, as the record spells it.
fn need_in(reason: &str) -> Option<String> {
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

/// Operations that a step calls and kinds that it would show.
fn things_of(
    rulebook: &Rulebook,
    service: &Service,
    step: &Step,
    depth: usize,
    things: &mut BTreeSet<String>,
) {
    if let Some(call) = step.operation() {
        let (of, id) = call.split_once('/').unwrap_or((&service.name, call));
        if let Some(operation) = rulebook.operation(of, id) {
            things.insert(format!("{of}/{id}"));
            things.extend(operation.response.clone());
        }
    }
    let mut hooks = step.hook().into_iter();
    if hooks.any(|hook| rulebook.index.collects_events(hook)) {
        things.extend(rulebook.event_types.values().flatten().cloned());
    }
    things.extend(step.judge().cloned());
    let group = step.group().and_then(|g| rulebook.group(service, &g.r#use));
    if let Some((service, group)) = group.filter(|_| depth < GROUP_DEPTH_MAX) {
        for inner in &group.steps {
            things_of(rulebook, service, inner, depth + 1, things);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::need_in;

    #[test]
    fn reasons_name_what_would_change_them() {
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
