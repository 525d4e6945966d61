//! `state-transition` with `steps`: the observed states of a resource follow the stated transitions.

use super::prelude::*;
use std::collections::BTreeMap;

/// The observed states of one resource move only along these steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTransition {
    /// The representation.
    kind: String,
    /// What identifies the resource: `/sid`.
    key: String,
    /// The state: `/status`.
    at: String,
    /// Allowed steps as `[from, to]`; staying is always allowed.
    steps: Vec<(String, String)>,
}

impl Predicate for StateTransition {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("key", &self.key)
            .pointer("at", &self.at);
    }

    /// Judges each resource that was observed at least twice. Between two observations several steps may have
    /// been taken, so any state that can be reached will do.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        // The newest observations of each resource: several if they overlap.
        let mut last: BTreeMap<String, Vec<(&Representation<'_>, &str)>> = BTreeMap::new();
        for resource in context.of_kind(&self.kind) {
            let (Some(identity), Some(state)) = (
                resource.value(&self.key).map(Value::to_string),
                resource.value(&self.at).and_then(Value::as_str),
            ) else {
                continue;
            };
            let newest = last.entry(identity).or_default();
            if newest
                .iter()
                .any(|(other, _)| overlap(context, other, resource))
            {
                newest.push((resource, state));
                continue;
            }
            let earlier = std::mem::replace(newest, vec![(resource, state)]);
            let unreachable =
                |(_, before): &&(&Representation<'_>, &str)| !self.can_reach(before, state);
            let broken = earlier.iter().find(unreachable);
            let Some((compared, before)) = broken.or(earlier.first()) else {
                verdicts.record_vacuous(Vacuity::Alone);
                continue;
            };
            let sites = [compared.site(&self.at), resource.site(&self.at)];
            let fact = broken.is_some().then(|| Fact {
                kind: "transition",
                expected: format!("{before} or what follows it"),
                actual: state.to_owned(),
                message: format!("moved from {before} to {state}"),
            });
            verdicts.conclude(sites, fact);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "flow/execution";
        let rule = Example::for_rule(
            "flow",
            json!({
                "kind": kind, "key": "/sid", "at": "/status",
                "steps": [["waiting", "active"], ["active", "ended"]],
            }),
        );
        let execution = |status: &str| json!({"sid": "FN1", "status": status});
        let from = |from: &str, to: &str| {
            let first = rule.payload(kind, execution(from));
            first.payload(kind, execution(to))
        };
        let read = |scene: &ExampleBuilder, status: &str| {
            scene.shown("fetch-execution", execution(status))
        };
        // Reads at the same time may show the states in any order.
        let read_at_once = read(&read(&rule, "ended"), "active").raced(2);
        vec![
            from("active", "active").passes(),
            from("waiting", "ended").passes(),
            from("ended", "active").fails("/status"),
            from("active", "unheard-of").fails("/status"),
            read_at_once.not_judged(),
            read(&read_at_once, "ended").passes(),
            read(&read_at_once, "active").fails("/status"),
            rule.payload(kind, execution("active")).not_judged(),
        ]
    }
}

impl StateTransition {
    fn can_reach(&self, from: &str, to: &str) -> bool {
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(state) = reached.get(next).copied() {
            if state == to {
                return true;
            }
            for (before, after) in &self.steps {
                if before == state && !reached.contains(&after.as_str()) {
                    reached.push(after);
                }
            }
            next += 1;
        }
        false
    }
}

/// Whether neither of two observations is before the other.
fn overlap(context: &Context<'_>, one: &Representation<'_>, other: &Representation<'_>) -> bool {
    let moment = |one: &Representation<'_>| Some(context.history.moments[one.exchange?]);
    let both = moment(one).zip(moment(other));
    both.is_some_and(|(one, other)| one.overlaps(&other))
}
