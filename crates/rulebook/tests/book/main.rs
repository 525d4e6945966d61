//! The rulebook of `specs/`, loaded with the predicates that there are.

use conformant_judge::load::{self, shared};
use conformant_rulebook::trace::check_lock;
use conformant_rulebook::{EvidenceSelection, Rule, Rulebook, Rules};
use std::collections::BTreeSet;
use std::path::Path;

mod bad_files;
mod definitions;
mod hooks;
mod paging;
mod path_parameters;
mod problems;
mod resolved;
mod services;
mod sources;
mod spelling;
mod step_format;
mod trace;
mod x_like;
mod xml;

const SPECS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs");

fn specs() -> Rulebook {
    load::from_dir(Path::new(SPECS)).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_rulebook_loads() {
    let rulebook = specs();
    assert!(rulebook.rules.len() > 100);
    assert!(rulebook.kinds.contains_key("flow/execution[]"));
}

#[test]
fn a_part_describes_its_services_as_the_whole_does() {
    let whole = load::embedded().unwrap();
    for services in [
        &["auth"][..],
        &["chat"],
        &["flow"],
        &["media"],
        &["events", "auth"],
    ] {
        let part = load::embedded_shapes(services).unwrap();
        assert_eq!(part.digest(), whole.digest());
        let of = |name: &str| services.contains(&name.split('/').next().unwrap_or_default());
        let kinds = |book: &Rulebook| -> Vec<String> {
            let kinds = book.kinds.iter().filter(|(name, _)| of(name));
            kinds.map(|(_, kind)| format!("{kind:?}")).collect()
        };
        assert_eq!(kinds(&part), kinds(&whole), "{services:?}");
        let rules = |book: &Rulebook| -> Vec<String> {
            let rules = book.rules.values().filter(|rule| of(&rule.service));
            rules.map(|rule| format!("{rule:?}")).collect()
        };
        assert_eq!(rules(&part), rules(&whole), "{services:?}");
    }
}

#[test]
fn what_is_taken_for_sound_is_the_rulebook_that_is_checked() {
    let unchecked = load::embedded_unchecked(true).unwrap();
    let checked = shared();
    assert_eq!(unchecked.digest(), checked.digest());
    let (unchecked, checked) = (format!("{unchecked:?}"), format!("{checked:?}"));
    assert!(unchecked == checked, "they differ");
}

#[test]
fn folder_and_binary_hold_the_same_rulebook() {
    assert_eq!(specs().digest(), shared().digest());
}

#[test]
fn what_came_by_brings_the_rules_that_bear_on_it_in_their_order() {
    let rulebook = shared();
    let rules = &rulebook.rules;
    let ids = |found: &mut dyn Iterator<Item = &Rule>| -> Vec<String> {
        found.map(|rule| rule.id.clone()).collect()
    };
    let all = ids(&mut rules.in_order());
    let nothing = ids(&mut rules.applicable_to(&EvidenceSelection::default()));
    let some = ids(&mut rules.applicable_to(&EvidenceSelection {
        operations: BTreeSet::from([("chat", "update-service")]),
        kinds: BTreeSet::from(["chat/service"]),
        stated: BTreeSet::new(),
    }));
    assert!(nothing.len() < some.len() && some.len() < all.len());
    assert!(nothing.iter().all(|id| some.contains(id)));
    let mut rest = all.iter();
    assert!(some.iter().all(|id| rest.any(|other| other == id)));
}

#[test]
fn rules_come_and_go_by_their_ids() {
    let rulebook = shared();
    let mut rules: Rules = rulebook.rules.values().take(3).cloned().collect();
    let first = rules.keys().next().cloned().expect("there are three");
    let rule = rules.remove(&first).expect("it is there");
    assert!(!rules.contains_key(&first) && rules.len() == 2);
    rules.insert(rule);
    assert_eq!(rules.keys().next(), Some(&first));
    assert_eq!(rules[first.as_str()].id, first);
}

#[test]
fn rules_that_wait_for_a_person_need_that_hook() {
    let rulebook = shared();
    let hook_rules = conformant_rulebook::hook_rules::rules_by_hook(rulebook);
    for hook in ["approve_request", "scan_registration", "register_binding"] {
        assert!(!hook_rules[hook].is_empty(), "{hook}");
    }
    assert!(
        hook_rules
            .keys()
            .all(|hook| rulebook.index.hook(hook).is_some())
    );
}

#[test]
fn the_lock_and_the_rulebook_agree() {
    let problems = check_lock(shared(), conformant_specs::text("documents.lock"));
    let changed: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        changed.is_empty(),
        "generate documents.lock again (trace::propose): {changed:#?}"
    );
}
