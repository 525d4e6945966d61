//! The must-rules that no scenario can judge without a hook, by hook.
//!
//! Only scenarios are read; rules that every response exercises need no hook.

use super::step::Step;
use super::{Rulebook, Service};
use conformant_base::sorted::SortedMap;
use conformant_record::Level;
use std::collections::BTreeSet;

/// By hook, in order: the rules that scenarios name only together with that hook.
pub fn rules_by_hook(rulebook: &Rulebook) -> SortedMap<String, Vec<String>> {
    let mut needed: SortedMap<&str, BTreeSet<&str>> = SortedMap::new();
    for service in rulebook.services.values() {
        for (scenario, _) in service.scenarios.values() {
            let mut hooks = BTreeSet::new();
            let mut rules = BTreeSet::new();
            collect(
                rulebook,
                service,
                &scenario.steps,
                &mut hooks,
                &mut rules,
                0,
            );
            for rule in rules {
                needed
                    .entry(rule)
                    .and_modify(|known| known.retain(|hook| hooks.contains(hook)))
                    .or_insert_with(|| hooks.clone());
            }
        }
    }
    let mut hook_rules: SortedMap<String, Vec<String>> = SortedMap::new();
    for (rule, hooks) in needed {
        let is_must = rulebook
            .rules
            .get(rule)
            .is_some_and(|r| r.level == Level::Must);
        for hook in hooks.into_iter().filter(|_| is_must) {
            hook_rules
                .entry(hook.to_owned())
                .or_default()
                .push(rule.to_owned());
        }
    }
    hook_rules
}

fn collect<'a>(
    rulebook: &'a Rulebook,
    service: &'a Service,
    steps: &'a [Step],
    hooks: &mut BTreeSet<&'a str>,
    rules: &mut BTreeSet<&'a str>,
    depth: usize,
) {
    /// Limit for groups that use themselves, before the check that reports them.
    const DEPTH_MAX: usize = 16;
    for step in steps {
        hooks.extend(step.hook());
        rules.extend(step.rules().map(String::as_str));
        collect(rulebook, service, step.nested(), hooks, rules, depth);
        let group = step.group().and_then(|g| rulebook.group(service, &g.r#use));
        if let Some((owner, group)) = group.filter(|_| depth < DEPTH_MAX) {
            collect(rulebook, owner, &group.steps, hooks, rules, depth + 1);
        }
    }
}
