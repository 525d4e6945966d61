//! Validates representations against their schemas: one finding per defect, with rule and place.
//!
//! Knows no exchange and no predicate; `judge` adds those.

mod attribution;
mod defect;
mod walk;

pub use attribution::rule_of_whole;
pub use defect::Defect;

use attribution::{attribute, name_misnamed};
use conformant_base::instant::{instant, is_date};
use conformant_record::Level;
use conformant_rulebook::{Rule, Rulebook, is_one_event};
use defect::{misfits_in_parts, one_each};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use walk::{Places, Walked};

/// Defects reported per document: a page whose items are all broken needs only the first ones.
pub const DEFECTS_MAX: usize = 500;

/// One broken rule at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer into the document.
    pub pointer: String,
    pub rule: String,
    /// `must` or `should`.
    pub level: Level,
    /// `missing-field`, `misnamed-field`, `extra-field`, `null`, `type`, `enum`, `format`, `json-text`, `pattern`,
    /// `bound`, `unique` or `shape`.
    pub kind: &'static str,
    pub expected: String,
    pub actual: String,
    /// One sentence with the expected and the actual value.
    pub message: String,
}

/// Result of validating a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// Rules that the document exercises, sorted.
    pub judged: Vec<String>,
    /// Sorted by pointer.
    pub violations: Vec<Violation>,
}

/// Compiled schemas of one rulebook, created on first use and shared between threads.
#[derive(Default)]
pub struct Schemas {
    compiled: Cache<Compiled>,
    payload_rules: OnceLock<BTreeMap<String, Vec<String>>>,
    /// Example documents by schema.
    examples: Cache<Value>,
}

type Cache<T> = RwLock<BTreeMap<String, Arc<T>>>;

/// The value of that name, made on first use. It is made without a lock, because this may take long.
fn once<T>(cache: &Cache<T>, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
    let known = cache.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(name) {
        return Arc::clone(known);
    }
    drop(known);
    let made = Arc::new(make());
    let mut cache = cache.write().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(cache.entry(name.to_owned()).or_insert(made))
}

/// One compiled schema.
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
    fn compiled(&self, name: &str, schema: &Value) -> Arc<Compiled> {
        once(&self.compiled, name, || Compiled {
            validator: compile(schema).expect("the loader refuses invalid schemas"),
            places: Places::new(schema),
        })
    }

    /// An example document of a schema, created on first use.
    pub fn example(&self, kind: &str, make: impl FnOnce() -> Value) -> Arc<Value> {
        once(&self.examples, kind, make)
    }

    /// Validates a document as a representation of `kind`; `None` if the kind is unknown.
    pub fn violations(&self, rulebook: &Rulebook, kind: &str, value: &Value) -> Vec<Violation> {
        self.walk(rulebook, kind, value, |_, _| ()).1
    }

    /// Validates a document and reports which rules it exercises.
    pub fn examine(&self, rulebook: &Rulebook, kind: &str, value: &Value) -> Examination {
        let judged = |places: &Places, walked: &Walked| places.judged(walked);
        let (judged, violations) = self.walk(rulebook, kind, value, judged);
        Examination { judged, violations }
    }

    /// The violations of a document, and a result derived from the walk.
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

    /// Ids of the written rules that apply to a single representation of that kind.
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

    /// True if a value is valid under a self-contained schema.
    pub fn fits(&self, name: &str, schema: &Value, value: &Value) -> bool {
        self.compiled(name, schema).validator.is_valid(value)
    }

    /// Where a value violates a self-contained schema, such as that of a written rule: pointers into the
    /// value, without rules. `name` identifies the schema.
    pub fn misfits(&self, name: &str, schema: &Value, value: &Value) -> Vec<Defect> {
        let Compiled { places, validator } = &*self.compiled(name, schema);
        let mut defects = places.walk(value).defects;
        if !validator.is_valid(value) {
            defects.extend(misfits_in_parts(validator, value));
        }
        one_each(defects)
    }
}

/// The kind whose single representations a rule applies to; `None` for other rules.
fn kind_of(rule: &Rule) -> Option<&str> {
    rule.check()?.payload_kind()
}

/// Compiles a self-contained schema: formats are asserted, patterns use the linear engine, and nothing
/// is fetched.
pub fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .with_format("date-time", is_date_time)
        .with_format("date", is_date)
        .offline()
        .build(schema)
}

/// ISO 8601 date and time with an offset, in any form of one instant.
pub fn is_date_time(text: &str) -> bool {
    instant(text).is_some()
}
