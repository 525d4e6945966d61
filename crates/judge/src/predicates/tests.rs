//! The examples of every predicate: each has its stated result, a mutation breaks each that passes, and some rule uses
//! the predicate.

use super::REGISTERED;
use crate::evidence::Evidence;
use crate::examples::{Example, ExampleBuilder, ExpectedVerdict, RULE};
use crate::{DocumentCache, Judgment, Tally, judge_with_cache, predicate_of};
use conformant_base::sorted::SortedMap;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use conformant_rulebook::{Check, Origin, Rule, Rulebook, Rules};
use conformant_schema::Schemas;
use serde_json::{Value, json};

/// The rulebook's kinds and operations without its rules: nothing but the example's own rule
/// judges.
fn bare() -> Rulebook {
    let mut rulebook = crate::load::embedded().expect("the embedded rulebook is sound");
    rulebook.rules = Rules::default();
    rulebook.open_points = SortedMap::new();
    for kind in rulebook.kinds.values_mut() {
        loosen(&mut kind.schema);
    }
    rulebook
}

/// Takes away what a schema demands; what it describes stays.
fn loosen(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    let is_shape = |key: &str| {
        [
            "properties",
            "$defs",
            "items",
            "additionalProperties",
            "$ref",
            "allOf",
        ]
        .contains(&key)
            || key.starts_with("x-")
    };
    members.retain(|key, value| is_shape(key) && !value.is_boolean());
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(parts)) => parts.values_mut().for_each(loosen),
            ("allOf", Value::Array(parts)) => parts.iter_mut().for_each(loosen),
            ("items" | "additionalProperties", part) => loosen(part),
            (_, _) => {}
        }
    }
}

fn rule(example: &Example, predicate: &str) -> Rule {
    let registry = crate::load::predicates();
    let written = Check::from_json(registry, predicate, &example.parameters);
    Rule {
        id: RULE.to_owned(),
        service: example.service.to_owned(),
        level: Level::Must,
        basis: Basis::Stated,
        source: Source {
            document: "D1".parse().unwrap(),
            section: String::new(),
            lines: vec![1],
        },
        says: String::new(),
        place: String::new(),
        origin: Origin::Written(written),
    }
}

fn judged(rulebook: &Rulebook, evidence: &Evidence) -> Judgment {
    judge_with_cache(
        rulebook,
        &Schemas::default(),
        evidence,
        &DocumentCache::default(),
        usize::MAX,
    )
}

/// The difference from the result that the example states.
fn problem(rulebook: &Rulebook, example: &Example) -> Option<String> {
    let judgment = judged(rulebook, &example.evidence);
    let count = judgment.tallies.get(RULE).map_or(0, Tally::judged);
    let found = pointers(&judgment);
    let holds = match example.expected {
        ExpectedVerdict::Passes => count > 0 && found.is_empty(),
        ExpectedVerdict::Fails(pointer) => found == [pointer],
        ExpectedVerdict::NotJudged => count == 0 && found.is_empty(),
    };
    if !holds {
        return Some(format!("judged {count} times, found {found:?}"));
    }
    let is_broken =
        example.expected != ExpectedVerdict::Passes || can_be_broken(rulebook, example, &judgment);
    (!is_broken).then(|| "no change breaks it".to_owned())
}

fn pointers(judgment: &Judgment) -> Vec<&str> {
    let found = judgment.findings.iter().filter(|f| f.rule == RULE);
    found.map(|f| f.pointer.as_str()).collect()
}

fn can_be_broken(rulebook: &Rulebook, example: &Example, judgment: &Judgment) -> bool {
    let predicate = predicate_of(&rulebook.rules[RULE]).expect("it is a written rule");
    let examples = judgment.examples(RULE).iter();
    let mut mutations = examples.flat_map(|sites| predicate.mutations(sites));
    mutations.any(|mutation| {
        let mut changed = example.evidence.clone();
        mutation.apply(&mut changed) && !pointers(&judged(rulebook, &changed)).is_empty()
    })
}

#[test]
fn every_example_comes_to_what_it_says() {
    let mut rulebook = bare();
    let mut problems = Vec::new();
    for entry in REGISTERED {
        let examples = (entry.examples)();
        for wanted in ["Passes", "Fails", "NotJudged"] {
            let has = |e: &Example| format!("{:?}", e.expected).starts_with(wanted);
            assert!(
                examples.iter().any(has),
                "{}: no example {wanted}",
                entry.name
            );
        }
        for example in &examples {
            let rule = rule(example, entry.name);
            rulebook.rules.insert(rule);
            if let Some(why) = problem(&rulebook, example) {
                let of = (&example.parameters, example.expected);
                problems.push(format!("{}: {of:?}: {why}", entry.name));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn some_rule_uses_every_predicate() {
    let rulebook = crate::load::embedded().expect("the embedded rulebook is sound");
    for (order, entry) in REGISTERED.iter().enumerate() {
        let uses = |rule: &Rule| rule.check().is_some_and(|check| check.order == order);
        assert!(
            rulebook.rules.values().any(uses),
            "no rule uses `{}` {:?}: remove it",
            entry.name,
            entry.selected_by
        );
    }
}

#[test]
fn parameters_without_effect_are_problems() {
    let echo =
        json!({"operations": ["read-flows"], "parameter": "PageSize", "at": "/meta/page_size"});
    let presence = json!({"kind": "flow/step", "field": "/parent_step_sid", "when": "/name"});
    for (predicate, parameters, further, problems) in [
        ("parameter-echo", &echo, json!({"default": 50}), 0),
        ("parameter-echo", &echo, json!({"as": "json"}), 0),
        (
            "parameter-echo",
            &echo,
            json!({"default": 50, "as": "json"}),
            1,
        ),
        (
            "parameter-echo",
            &echo,
            json!({"default": 50, "or": [1]}),
            1,
        ),
        ("field-presence", &presence, json!({}), 0),
        (
            "field-presence",
            &presence,
            json!({"otherwise": "absent"}),
            1,
        ),
        (
            "field-presence",
            &presence,
            json!({"may-be-absent": true}),
            1,
        ),
    ] {
        let mut parameters = parameters.clone();
        let members = parameters.as_object_mut().expect("an object");
        members.extend(further.as_object().expect("an object").clone());
        let check = Check::from_json(crate::load::predicates(), predicate, &parameters);
        let found = format!("{:?}", check.references);
        assert_eq!(found.matches("Problem(").count(), problems, "{parameters}");
    }
}

#[test]
fn a_deletion_that_shows_what_it_ends_is_no_proof_that_it_exists() {
    let mut rulebook = bare();
    let chat = rulebook.services.get_mut("chat").expect("a service");
    let deletion = chat.operations.get_mut("delete-binding");
    deletion.expect("an operation").response = Some("chat/binding".to_owned());
    let [service, sid] = ["IS", "BS"].map(|prefix| format!("{prefix}{}", "1".repeat(32)));
    let binding = json!({"sid": sid, "service_sid": service});
    let path = json!({"ServiceSid": service, "Sid": sid});
    let page = json!({"bindings": [], "meta": {"next_page_url": null, "key": "bindings"}});
    let fetched = Example::for_rule("chat", json!({"of": "chat/read-bindings"})).answered(
        "fetch-binding",
        path.clone(),
        binding.clone(),
    );
    let listed = |scene: ExampleBuilder| {
        let late = (0..11).fold(scene, |scene, _| scene.refused("create-role", json!({})));
        late.answered("read-bindings", path.clone(), page.clone())
    };
    let deleted = fetched.answered("delete-binding", path.clone(), binding);
    for example in [
        listed(fetched).fails("/bindings"),
        listed(deleted).not_judged(),
    ] {
        rulebook.rules.insert(rule(&example, "list-complete"));
        assert_eq!(problem(&rulebook, &example), None, "{:?}", example.expected);
    }
}
