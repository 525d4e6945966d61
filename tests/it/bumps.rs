//! Invented version bumps (`tests/bumps.yaml`): each is reported with its effect, in both directions and with valid
//! witnesses.
//!
//! The effect follows from the labels: a writer breaks when less is allowed, a reader when more may arrive. In a response
//! the producer writes and the consumer reads, in a request the other way around. Whether a producer must reject what a
//! narrower request excludes is not stated by a schema, and so not labelled.

use crate::program::one_in;
use conformant_rulebook::Compatibility;
use conformant_schema::Schemas;
use conformant_versions::{Change, Class, Direction, LevelVerdict, Relation};
use serde_json::Value;
use std::collections::BTreeSet;

/// One labelled change.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Bump {
    is: String,
    old: Value,
    new: Value,
    #[serde(default)]
    lost: Vec<Value>,
    #[serde(default)]
    gained: Vec<Value>,
    level: String,
    response: Option<BTreeSet<String>>,
    request: Option<BTreeSet<String>>,
}

impl Bump {
    fn breaks(&self, direction: Direction) -> BTreeSet<String> {
        let expected = match direction {
            Direction::Request => &self.request,
            Direction::Response | Direction::Neither => &self.response,
        };
        if let Some(expected) = expected {
            return expected.clone();
        }
        let mut sides = BTreeSet::new();
        let is_request = direction == Direction::Request;
        if !self.lost.is_empty() {
            let side = if is_request { "consumers" } else { "producers" };
            sides.insert(side.to_owned());
        }
        if !self.gained.is_empty() {
            let side = if is_request { "producers" } else { "consumers" };
            sides.insert(side.to_owned());
        }
        sides
    }

    /// The inverse bump; labels other than its effect are for one direction.
    fn back(&self) -> Option<Self> {
        (self.response.is_none() && self.request.is_none()).then(|| Self {
            is: format!("{}, back", self.is),
            old: self.new.clone(),
            new: self.old.clone(),
            lost: self.gained.clone(),
            gained: self.lost.clone(),
            ..self.clone()
        })
    }
}

fn bumps() -> Vec<Bump> {
    let text = include_str!("../bumps.yaml");
    serde_saphyr::from_str(text).expect("the file is a list of bumps")
}

fn sides(changes: &[Change]) -> BTreeSet<String> {
    let classes = changes.iter().flat_map(|change| &change.class);
    classes
        .filter_map(|class| match class {
            Class::BreakingForConsumers => Some("consumers".to_owned()),
            Class::BreakingForProducers => Some("producers".to_owned()),
            Class::Additive | Class::Clarified | Class::WasOpenNowStated => None,
        })
        .collect()
}

/// Errors in the report of one bump.
fn problems(bump: &Bump, direction: Direction) -> Vec<String> {
    let changes = conformant_versions::schemas(&bump.old, &bump.new, direction).changes;
    let descriptions: Vec<&str> = changes
        .iter()
        .map(|change| change.message.as_str())
        .collect();
    let mut problems = Vec::new();
    let (mut due, mut found) = (bump.breaks(direction), sides(&changes));
    if direction == Direction::Request && !bump.lost.is_empty() {
        due.remove("producers");
        found.remove("producers");
    }
    if due != found {
        problems.push(format!(
            "breaks {due:?}, reported {found:?}: {descriptions:?}"
        ));
    }
    let moved = changes.iter().filter(|change| change.is_breaking());
    let is_bare = |change: &&Change| change.witnesses.is_empty() && !change.undecided;
    let has_values = !bump.lost.is_empty() || !bump.gained.is_empty();
    for change in moved.filter(is_bare).filter(|_| has_values) {
        problems.push(format!("no witness: {}", change.message));
    }
    problems
}

#[test]
fn the_labels_hold_by_json_schema_alone() {
    let schemas = Schemas::default();
    let bumps = bumps();
    for bump in &bumps {
        for (values, was_right) in [(&bump.lost, true), (&bump.gained, false)] {
            for value in values {
                let old = schemas.fits(&format!("{} old", bump.is), &bump.old, value);
                let new = schemas.fits(&format!("{} new", bump.is), &bump.new, value);
                assert_eq!((old, new), (was_right, !was_right), "{}: {value}", bump.is);
            }
        }
    }
    let names: BTreeSet<&str> = bumps.iter().map(|bump| bump.is.as_str()).collect();
    assert_eq!(names.len(), bumps.len(), "two bumps have the same name");
    assert!(bumps.len() >= 160, "{}", bumps.len());
}

#[test]
fn each_bump_is_reported_with_its_effect() {
    let mut wrong = Vec::new();
    for bump in one_in(3, bumps()) {
        for bump in [Some(bump.clone()), bump.back()].into_iter().flatten() {
            for direction in [Direction::Response, Direction::Request] {
                let found = problems(&bump, direction);
                wrong.extend(
                    found
                        .into_iter()
                        .map(|p| format!("{} ({direction:?}): {p}", bump.is)),
                );
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn witnesses_are_valid() {
    let schemas = Schemas::default();
    let mut count = 0;
    for bump in bumps() {
        let changes =
            conformant_versions::schemas(&bump.old, &bump.new, Direction::Response).changes;
        for change in changes.iter().filter(|change| change.place == "schema") {
            for witness in &change.witnesses {
                // A long value is shortened.
                let Ok(value) = serde_json::from_str::<Value>(&witness.value) else {
                    continue;
                };
                let old = schemas.fits(&format!("{} old", bump.is), &bump.old, &value);
                let new = schemas.fits(&format!("{} new", bump.is), &bump.new, &value);
                assert_eq!(
                    (old, new),
                    (witness.was_right, witness.is_right),
                    "{}: {value}",
                    bump.is
                );
                count += 1;
            }
        }
    }
    assert!(count > 60, "{count}");
}

#[test]
fn each_bump_has_its_level_and_each_refusal_a_document() {
    use Compatibility::{Backward, Forward, Full};
    let mut wrong = Vec::new();
    for bump in bumps() {
        let values: Vec<Value> = [bump.lost.clone(), bump.gained.clone()].concat();
        let relation = Relation::new(("old", &bump.old), ("new", &bump.new), None, &values);
        if !relation.contradictions.is_empty() {
            wrong.push(format!("{}: {:?}", bump.is, relation.contradictions));
        }
        for level in [Backward, Forward, Full] {
            let verdict =
                LevelVerdict::new(level, "new", std::slice::from_ref(&relation), &|_| false);
            let expected = bump.level == "FULL" || bump.level == level.word();
            let is_shown = verdict.refusals.iter().any(|one| one.document.is_some());
            if verdict.holds != expected || is_shown == expected {
                wrong.push(format!(
                    "{} ({}): {:?}",
                    bump.is,
                    level.word(),
                    verdict.refusals
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
