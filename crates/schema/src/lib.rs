//! Representations against their schemas: which rule is broken at which place, one finding for one
//! defect.
//!
//! Knows no exchange and no written rule; `judge` adds those.

mod attribution;
mod defect;
mod walk;

#[cfg(test)]
mod tests;

pub use attribution::rule_of_whole;
pub use defect::Defect;

use attribution::{attribute, name_misnamed};
use conformant_base::instant::instant;
use conformant_record::Level;
use conformant_rulebook::{Rule, Rulebook, is_one_event};
use defect::{misfits_in_parts, one_each};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use walk::{Places, Walked};

/// How many defects of one document are looked for: a page of items that are all broken says it
/// with the first of them.
pub const DEFECTS_MAX: usize = 500;

/// One rule broken at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer into the document.
    pub pointer: String,
    /// Id of the rule.
    pub rule: String,
    /// How binding it is: `must` or `should`.
    pub level: Level,
    /// `missing-field`, `misnamed-field`, `extra-field`, `null`, `type`, `enum`, `format`, `json-text`, `pattern`,
    /// `bound`, `unique` or `shape`.
    pub kind: &'static str,
    /// What was expected, for a person.
    pub expected: String,
    /// What was there, excerpted.
    pub actual: String,
    /// One sentence that says both.
    pub message: String,
}

/// What a document was found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// Rules that the document gave something to judge for, sorted.
    pub judged: Vec<String>,
    /// By pointer.
    pub violations: Vec<Violation>,
}

/// Compiled schemas of one rulebook, made when first needed and shared between threads.
#[derive(Default)]
pub struct Schemas {
    compiled: RwLock<BTreeMap<String, Arc<Compiled>>>,
    payload_rules: OnceLock<BTreeMap<String, Vec<String>>>,
    /// Documents that were made of kinds.
    made: RwLock<BTreeMap<String, Arc<Value>>>,
}

/// One schema, ready to judge by.
struct Compiled {
    validator: Validator,
    places: Places,
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}

impl Schemas {
    /// The compiled schema of that name.
    fn compiled(&self, name: &str, schema: &Value) -> Arc<Compiled> {
        let known = self
            .compiled
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(Compiled {
                validator: compile(schema).expect("the loader refuses schemas that are none"),
                places: Places::of(schema),
            });
            let mut compiled = self
                .compiled
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(compiled.entry(name.to_owned()).or_insert(made))
        })
    }

    /// A document that stands for all of its kind, made when first asked for.
    pub fn made(&self, kind: &str, make: impl FnOnce() -> Value) -> Arc<Value> {
        let known = self
            .made
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(kind)
            .cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(make());
            let mut all = self.made.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(kind.to_owned()).or_insert(made))
        })
    }

    /// Judges a document as a representation of `kind`; nothing where the kind is unknown.
    pub fn violations(&self, rulebook: &Rulebook, kind: &str, value: &Value) -> Vec<Violation> {
        self.walk(rulebook, kind, value, |_, _| ()).1
    }

    /// Judges a document as a representation of `kind` and says which rules it gave something to
    /// judge for.
    pub fn examine(&self, rulebook: &Rulebook, kind: &str, value: &Value) -> Examination {
        let judged = |places: &Places, walked: &Walked| places.judged(walked);
        let (judged, violations) = self.walk(rulebook, kind, value, judged);
        Examination { judged, violations }
    }

    /// What a document violates, and what is made of the walk through it.
    fn walk<T: Default>(
        &self,
        rulebook: &Rulebook,
        kind: &str,
        value: &Value,
        made_of: impl FnOnce(&Places, &Walked) -> T,
    ) -> (T, Vec<Violation>) {
        let Some(known) = rulebook.kinds.get(kind) else {
            return Default::default();
        };
        let root = &known.schema;
        let Compiled { places, validator } = &*self.compiled(kind, root);
        let walked = places.walk(value);
        let made = made_of(places, &walked);
        let mut defects = walked.defects;
        if !validator.is_valid(value) {
            defects.extend(misfits_in_parts(validator, value));
        }
        let violations = name_misnamed(root, value, one_each(defects))
            .into_iter()
            .filter_map(|defect| attribute(rulebook, root, value, defect))
            .collect();
        (made, violations)
    }

    /// Ids of the written rules that judge one representation of that kind by itself.
    pub fn payload_rules(&self, rulebook: &Rulebook, kind: &str) -> &[String] {
        let by_kind = self.payload_rules.get_or_init(|| {
            let mut by_kind: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for rule in rulebook.rules.values() {
                let Some(kind) = kind_of(rule) else { continue };
                let others = rulebook.kinds.keys();
                let others = others.filter(|other| *other != kind && is_one_event(other, kind));
                for kind in others.map(String::as_str).chain([kind]) {
                    let rules = by_kind.entry(kind.to_owned()).or_default();
                    rules.push(rule.id.clone());
                }
            }
            by_kind
        });
        by_kind.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Whether a value fits a schema that stands for itself, by the letter of JSON Schema.
    pub fn fits(&self, name: &str, schema: &Value, value: &Value) -> bool {
        self.compiled(name, schema).validator.is_valid(value)
    }

    /// Where a value does not fit a schema that stands for itself, such as that of a written rule:
    /// pointers into the value, no rules. `name` identifies the schema.
    pub fn misfits(&self, name: &str, schema: &Value, value: &Value) -> Vec<Defect> {
        let Compiled { places, validator } = &*self.compiled(name, schema);
        let mut defects = places.walk(value).defects;
        if !validator.is_valid(value) {
            defects.extend(misfits_in_parts(validator, value));
        }
        one_each(defects)
    }
}

/// The kind whose representations a rule judges one by one; nothing for all other rules.
fn kind_of(rule: &Rule) -> Option<&str> {
    rule.check()?.payload_kind()
}

/// Compiles a self-contained schema: formats are asserted, patterns run on the linear engine, and
/// nothing is fetched.
pub fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .with_format("date-time", is_date_time)
        .offline()
        .build(schema)
}

/// ISO 8601 date and time with an offset, in any form that names one instant.
pub fn is_date_time(text: &str) -> bool {
    instant(text).is_some()
}
