//! What a run needs to judge more rules, and which scenarios would have exercised a rule: derived from how scenarios ended.
//!
//! Reads reasons and scenarios only. A need without a reason is left out; hooks are never guessed.

use super::plan;
use super::stop::ANOTHER_ORIGIN;
use conformant_judge::{Predicate, predicate_of};
use conformant_record::{ScenarioResult, Verdict};
use conformant_rulebook::step::Step;
use conformant_rulebook::{Origin, Rule, Rulebook, Service, Subject};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting of groups.
const GROUP_DEPTH_MAX: usize = 16;

/// Needs of the scenarios that did not apply.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Ids of scenarios by resource type, and by operation as `SERVICE/ID`.
    by_subject: BTreeMap<String, BTreeSet<String>>,
    /// The need of each scenario.
    by_scenario: BTreeMap<String, String>,
}

/// Collects the needs of the scenarios that did not apply.
pub(super) fn needs_of(rulebook: &Rulebook, scenarios: &[ScenarioResult]) -> Needs {
    let by_scenario: BTreeMap<String, String> = scenarios
        .iter()
        .filter(|scenario| scenario.verdict == Verdict::NotApplicable)
        .filter_map(|scenario| Some((scenario.id.clone(), need_in(&scenario.reason)?)))
        .collect();
    let ids = by_scenario.keys().map(String::as_str).collect();
    Needs {
        by_subject: by_subject(rulebook, &ids),
        by_scenario,
    }
}

/// The scenarios that stopped before their last step.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    /// By resource type, and by operation as `SERVICE/ID`; only what no other scenario used.
    by_subject: BTreeMap<String, BTreeSet<String>>,
    /// The same with what others used.
    with_used: BTreeMap<String, BTreeSet<String>>,
}

impl Stopped {
    /// The arguments are the ids of scenarios that stopped early, and of those that did not. A rule about an operation or a
    /// type that one of the latter used is not attributed: it was not exercised there either.
    pub(super) fn new(rulebook: &Rulebook, stopped: &[&str], ended: &[&str]) -> Self {
        let of = |ids: &[&str]| by_subject(rulebook, &ids.iter().copied().collect());
        let with_used = of(stopped);
        let mut of_stopped = with_used.clone();
        if !of_stopped.is_empty() {
            let of_ended = of(ended);
            of_stopped.retain(|subject, _| !of_ended.contains_key(subject));
        }
        Self {
            by_subject: of_stopped,
            with_used,
        }
    }

    /// The first scenario that would have exercised a rule.
    pub(super) fn before(&self, rule: &Rule) -> Option<&str> {
        let mut subjects: Vec<String> = subjects_of_rule(rule).collect();
        if let Some(predicate) = predicate_of(rule) {
            match predicate.subject() {
                Subject::Kind(kind) => subjects.push(kind),
                Subject::Operations(ids) => {
                    subjects.extend(ids.iter().map(|id| format!("{}/{id}", rule.service)));
                }
                Subject::Parameter(_) | Subject::Service | Subject::Steps => {}
            }
        }
        let ids = subjects
            .iter()
            .filter_map(|subject| self.by_subject.get(subject));
        ids.flatten().min().map(String::as_str)
    }
}

/// The scenarios that stopped because a link leads to another origin.
#[derive(Debug)]
pub(super) struct Elsewhere<'a> {
    stopped: Stopped,
    /// What to do, by scenario. It names the origin, not the single link.
    reasons: BTreeMap<&'a str, String>,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn new(rulebook: &Rulebook, scenarios: &'a [ScenarioResult]) -> Self {
        let reason = |scenario: &'a ScenarioResult| {
            let (_, advice) = scenario.reason.split_once(ANOTHER_ORIGIN)?;
            let reason = format!("links lead to another origin{advice}");
            Some((scenario.id.as_str(), reason))
        };
        let reasons: BTreeMap<&str, String> = scenarios.iter().filter_map(reason).collect();
        let ids: Vec<&str> = reasons.keys().copied().collect();
        let stopped = Stopped::new(rulebook, &ids, &[]);
        Self { stopped, reasons }
    }

    /// Why a rule was not judged that needs a followed link.
    pub(super) fn reason(&self, rulebook: &Rulebook, rule: &Rule) -> Option<&str> {
        let scenario = self.stopped.before(rule)?;
        follows_links(rulebook, rule).then(|| self.reasons[scenario].as_str())
    }
}

/// Whether a rule judges only what an address in a response leads to.
fn follows_links(rulebook: &Rulebook, rule: &Rule) -> bool {
    let is_of_page = if let Origin::Parameter {
        operation,
        parameter,
    } = &rule.origin
    {
        rulebook
            .operation(&rule.service, operation)
            .is_some_and(|operation| operation.paging.positions.contains(parameter))
    } else {
        false
    };
    is_of_page || predicate_of(rule).is_some_and(Predicate::follows_links)
}

/// The ids of these scenarios by what their steps call and receive.
fn by_subject(rulebook: &Rulebook, ids: &BTreeSet<&str>) -> BTreeMap<String, BTreeSet<String>> {
    let mut by_subject: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if ids.is_empty() {
        return by_subject;
    }
    for planned in plan::all(rulebook) {
        let id = &planned.scenario.id;
        if !ids.contains(id.as_str()) {
            continue;
        }
        let mut subjects = BTreeSet::new();
        for step in &planned.scenario.steps {
            subjects_of(rulebook, planned.service, step, 0, &mut subjects);
        }
        for subject in subjects {
            by_subject.entry(subject).or_default().insert(id.clone());
        }
    }
    by_subject
}

impl Needs {
    /// The needs of a rule, given the reason why it was not judged. None if more scenarios stopped early that would have
    /// judged it.
    pub(super) fn for_rule(&self, rule: &Rule, reason: &str, stopped: &Stopped) -> Vec<String> {
        if let Some(need) = need_in(reason) {
            return vec![need];
        }
        // Most operations are also called by scenarios that need nothing.
        let of_kind = |by_subject: &BTreeMap<String, BTreeSet<String>>| {
            let ids = rule.kind().and_then(|kind| by_subject.get(kind));
            ids.cloned().unwrap_or_default()
        };
        let ids = of_kind(&self.by_subject);
        if of_kind(&stopped.with_used).len() > ids.len() {
            return Vec::new();
        }
        let needs = ids.iter().filter_map(|id| self.by_scenario.get(id));
        let needs: BTreeSet<String> = needs.cloned().collect();
        needs.into_iter().collect()
    }
}

/// The resource type and the operation that a rule is about.
fn subjects_of_rule(rule: &Rule) -> impl Iterator<Item = String> {
    let operation = match &rule.origin {
        Origin::Operation { operation }
        | Origin::Parameter { operation, .. }
        | Origin::Credentials { operation }
        | Origin::ListKey { operation }
        | Origin::ListWalk { operation } => Some(format!("{}/{operation}", rule.service)),
        Origin::Property { .. }
        | Origin::NoOtherFields { .. }
        | Origin::Written(_)
        | Origin::Either => None,
    };
    rule.kind().map(str::to_owned).into_iter().chain(operation)
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
