//! Optional features: what scenarios need besides the address and credentials of their service.
//!
//! - Features have the names that a record uses for needs: `hook NAME`, `key targets.SERVICE.KEY`, `callbacks`.
//! - A setting with a default, or with a hook or a request that provides it, does not count as a feature.

use super::plan::{self, Planned};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::{Step, Verb};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Scenarios by service and feature.
pub type Features = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The only key of `people` without a default.
pub const NEW_CELLPHONE: &str = "people.new_cellphone";

/// The optional features of every service, each with the scenarios that need it.
pub fn features(rulebook: &Rulebook) -> Features {
    let mut features = Features::new();
    for service in rulebook.services.keys() {
        features.entry(service.clone()).or_default();
    }
    for planned in plan::all(rulebook) {
        let of_service = features.entry(planned.service.name.clone()).or_default();
        for feature in features_of(rulebook, &planned) {
            let scenarios = of_service.entry(feature).or_default();
            scenarios.push(planned.scenario.id.clone());
        }
    }
    features
}

/// The features that a scenario needs.
fn features_of(rulebook: &Rulebook, planned: &Planned<'_>) -> BTreeSet<String> {
    let found = RefCell::new(BTreeSet::new());
    planned.any_step(&|step| {
        let mut found = found.borrow_mut();
        if matches!(step.verb, Verb::Listen(_)) {
            found.insert("callbacks".to_owned());
        }
        let of_other = [
            Credentials::OtherAccount,
            Credentials::OtherUser,
            Credentials::OtherPassword,
        ];
        if of_other.contains(&step.credentials()) {
            found.insert("key accounts".to_owned());
        }
        found.extend(step.hook().map(|hook| format!("hook {hook}")));
        found.extend(keys_of(rulebook, step));
        false
    });
    found.into_inner()
}

/// The settings that the parameters of a step name and that nothing else provides.
fn keys_of(rulebook: &Rulebook, step: &Step) -> Vec<String> {
    const START: &str = "${target.";
    let mut keys = Vec::new();
    for text in step.values().map(ToString::to_string) {
        let mut rest = text.as_str();
        while let Some(at) = rest.find(START) {
            rest = &rest[at + START.len()..];
            let name = rest.split(['}', '/']).next().unwrap_or_default();
            let Some((service, key)) = name.split_once('.') else {
                continue;
            };
            if name == NEW_CELLPHONE {
                keys.push(format!("key {NEW_CELLPHONE}"));
            }
            let file = rulebook.index.get(service);
            // A member of a group is configured with it.
            let group = key.split('.').next().unwrap_or_default();
            let setting = file.and_then(|file| file.setting(group));
            if setting.is_some_and(|one| one.default.is_none() && one.provisioned.is_none()) {
                keys.push(format!("key targets.{service}.{key}"));
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_settings_and_callbacks_are_features_of_a_service() {
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let features = features(&rulebook);
        let flow = &features["flow"];
        assert!(!flow["hook end_execution"].is_empty(), "{flow:?}");
        assert!(!features["auth"]["key people.new_cellphone"].is_empty());
        assert!(!features["chat"]["callbacks"].is_empty());
        assert!(!flow.contains_key("key targets.flow.flow_sid"));
        assert!(features["media"].values().all(|ids| !ids.is_empty()));
    }
}
