//! Attributes a defect to a rule: that of the deepest property on its path, or that of the missing field
//! that an unlisted one resembles.

use super::Violation;
use super::defect::Defect;
use conformant_base::json;
use conformant_record::Level;
use conformant_rulebook::{Place, RULE_KEY, Rulebook};
use serde_json::Value;
use std::collections::BTreeSet;

/// Lowest similarity, from 0 to 1, at which an unlisted name counts as a misspelled missing one.
const MISNAMED_LIKENESS: f32 = 0.8;

/// The defect as a violation of the deepest property rule on its path.
pub(super) fn attribute(
    rulebook: &Rulebook,
    root: &Value,
    value: &Value,
    defect: Defect,
) -> Option<Violation> {
    let rule = defect
        .rule
        .clone()
        .or_else(|| rule_at(root, value, &defect.pointer))?;
    let level = rulebook.rules.get(&rule)?.level;
    let counts = match level {
        Level::Must | Level::Should => true,
        Level::May | Level::Open => false,
    };
    counts.then(|| Violation {
        message: defect.message(),
        pointer: defect.pointer,
        rule,
        level,
        kind: defect.kind,
        expected: defect.expected,
        actual: defect.actual,
    })
}

/// Merges a missing field with an unlisted one of nearly the same name: one defect at the unlisted
/// field, under the rule of the missing one.
pub(super) fn name_misnamed(root: &Value, value: &Value, mut defects: Vec<Defect>) -> Vec<Defect> {
    let mut renamed = BTreeSet::new();
    // If an unlisted field has a defect of its own, the missing one is reported where it is missing.
    let reported: BTreeSet<String> = defects
        .iter()
        .filter(|d| d.kind == "extra-field")
        .map(|d| d.pointer.clone())
        .collect();
    for defect in defects.iter_mut().filter(|d| d.kind == "missing-field") {
        let misnamed = misnamed(root, value, &defect.pointer);
        if let Some(misnamed) = misnamed.filter(|pointer| !reported.contains(pointer)) {
            defect.rule = defect
                .rule
                .take()
                .or_else(|| rule_at(root, value, &defect.pointer));
            defect.misname(misnamed);
            renamed.insert(defect.pointer.clone());
        }
    }
    defects.retain(|d| d.kind != "extra-field" || !renamed.contains(&d.pointer));
    defects.sort_by(|a, b| (&a.pointer, a.rank()).cmp(&(&b.pointer, b.rank())));
    defects
}

/// Where the field missing at `pointer` occurs under a similar name that the schema `root` does not
/// list there.
fn misnamed(root: &Value, value: &Value, pointer: &str) -> Option<String> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let members = json::get(value, parent)?.as_object()?;
    let resolved = Place::root(root).any();
    let steps = resolved.clone().along(value, parent);
    let here = steps.last().unwrap_or(resolved);
    let names = members.keys().map(String::as_str);
    let unlisted: Vec<&str> = names.filter(|key| !here.lists(key)).collect();
    let name = json::unescape(name);
    let near = similar::get_close_matches(&*name, &unlisted, 1, MISNAMED_LIKENESS);
    near.first().map(|key| json::join(parent, key))
}

impl Defect {
    /// Reports the violation at the unlisted field with a similar name; `at` is the place of the judged
    /// value in the representation `whole` of the schema `root`.
    #[must_use]
    pub fn renamed_in(mut self, root: &Value, whole: &Value, at: &str) -> Self {
        self.pointer.insert_str(0, at);
        if self.kind == "missing-field"
            && let Some(misnamed) = misnamed(root, whole, &self.pointer)
        {
            self.misname(misnamed);
        }
        self
    }
}

/// Rule of the deepest property on the path. A document that is not an object breaks the rule of its
/// first required field.
fn rule_at(root: &Value, value: &Value, pointer: &str) -> Option<String> {
    let steps = Place::root(root).any().along(value, pointer);
    let rule = steps.filter_map(|place| place.rule()).last();
    rule.map(str::to_owned).or_else(|| first_rule(root))
}

/// The rule that a completely different document breaks: that of the first required field.
pub fn rule_of_whole(rulebook: &Rulebook, kind: &str) -> Option<String> {
    rulebook
        .kinds
        .get(kind)
        .and_then(|known| first_rule(&known.schema))
}

fn first_rule(root: &Value) -> Option<String> {
    let place = Place::root(root).any();
    let mut names = place.required().chain(place.listed());
    let rule = names.find_map(|name| {
        let mut properties = place.properties(name);
        properties.find_map(|(property, _)| property.get(RULE_KEY)?.as_str())
    });
    rule.map(str::to_owned)
}
