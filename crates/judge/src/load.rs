//! The registry of predicates, and rulebooks that are loaded with it.

use super::former;
use super::predicate::Registration;
use super::predicates::REGISTERED;
use conformant_rulebook::rules::RuleFile;
use conformant_rulebook::{
    Check, Model, ParameterError, Parameters, PredicateRegistry, Problems, Rulebook,
};
use conformant_schema::Schemas;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// All registered predicates.
struct All;

impl PredicateRegistry for All {
    fn names(&self) -> &'static [&'static str] {
        static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
            let mut names = Vec::new();
            for known in REGISTERED {
                if !names.contains(&known.name) {
                    names.push(known.name);
                }
            }
            names
        });
        &NAMES
    }

    fn renamed(&self, name: &str, parameters: &Value) -> Option<(&'static str, Option<Value>)> {
        former::renamed(name, parameters)
    }

    fn read(&self, predicate: &str, parameters: &Parameters<'_>) -> Result<Check, ParameterError> {
        let forms = || {
            let all = REGISTERED.iter().enumerate();
            all.filter(|(_, known)| known.name == predicate)
        };
        let is_selected = |(_, known): &(usize, &Registration)| {
            known.selected_by.iter().any(|key| parameters.has(key))
        };
        let is_general = |(_, known): &(usize, &Registration)| known.selected_by.is_empty();
        let form = forms()
            .find(is_selected)
            .or_else(|| forms().find(is_general))
            .or_else(|| forms().next());
        let (order, known) = form.expect("callers pass known names only");
        (known.read)(known.name, parameters, order)
    }

    fn applicable_subjects(&self, law: &str, model: &Model<'_>) -> Option<Vec<String>> {
        let mut forms = REGISTERED.iter().filter(|known| known.name == law);
        forms.find_map(|known| (known.fits)(model))
    }
}

/// The predicates that rules may use.
pub fn predicates() -> &'static dyn PredicateRegistry {
    &All
}

/// The rulebook that the binary was built with.
pub fn embedded() -> Result<Rulebook, Problems> {
    load(None, &[])
}

/// See [`Rulebook::load_unchecked`].
pub fn embedded_unchecked(with_scenarios: bool) -> Result<Rulebook, Problems> {
    Rulebook::load_unchecked(predicates(), with_scenarios)
}

/// The part of the embedded rulebook that validates representations of these services, with the digest of the whole.
pub fn embedded_shapes(services: &[&str]) -> Result<Rulebook, Problems> {
    Rulebook::load_shapes(predicates(), services)
}

/// See [`Rulebook::load_with_file`].
#[doc(hidden)]
pub fn embedded_with(path: &str, bytes: &[u8]) -> Result<Rulebook, Problems> {
    Rulebook::load_with_file(predicates(), path, bytes)
}

/// The embedded rulebook, read once per process.
///
/// # Panics
///
/// If it is invalid, which the project's tests rule out.
pub fn shared() -> &'static Rulebook {
    static RULEBOOK: LazyLock<Rulebook> =
        LazyLock::new(|| embedded().unwrap_or_else(|problems| panic!("{problems}")));
    &RULEBOOK
}

/// The schemas of the embedded rulebook, each compiled once per process.
pub fn shared_schemas() -> &'static Schemas {
    static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::default);
    &SCHEMAS
}

/// The rulebook in a folder.
pub fn from_dir(specs: &Path) -> Result<Rulebook, Problems> {
    load(Some(specs), &[])
}

/// The rulebook in a folder, or the embedded one, with additional scenarios.
/// Those are files as in `SERVICE/scenarios/`, in a folder with the name of the service.
pub fn load(specs: Option<&Path>, scenarios: &[PathBuf]) -> Result<Rulebook, Problems> {
    Rulebook::load_with(predicates(), specs, scenarios)
}

/// JSON Schema of a file of rules, with the parameters of every predicate.
pub fn rules_schema() -> Value {
    let mut generator = schemars::SchemaGenerator::default();
    let predicates: Vec<Value> = REGISTERED
        .iter()
        .map(|entry| {
            let parameters = (entry.schema)(&mut generator).to_value();
            json!({
                "type": "object",
                "properties": { entry.name: parameters },
                "required": [entry.name],
                "additionalProperties": false,
            })
        })
        .collect();
    let check = json!({
        "description": "The predicate with its parameters. `at` and its like are JSON Pointers into \
                        the response body; a segment `*` stands for every array item or every member.",
        "oneOf": predicates,
    });
    let mut whole = generator.into_root_schema_for::<RuleFile>().to_value();
    if let Some(slot) = whole.pointer_mut("/$defs/Rule/properties/check") {
        *slot = check;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_rules_takes_the_rules_there_are_and_no_others() {
        let schema = rules_schema();
        let validator = jsonschema::validator_for(&schema).expect("it compiles");
        let rule = |check: Value| {
            json!({"rules": [{
                "id": "flow/a/b",
                "source": {"section": "A", "lines": [1]},
                "says": "Something.",
                "check": check,
            }]})
        };
        let listed =
            json!({"operations": ["read-flows"], "at": "/flows", "size": "/meta/page_size"});
        assert!(validator.is_valid(&rule(json!({"scenario": {}}))));
        assert!(validator.is_valid(&rule(json!({"list-size": listed}))));
        assert!(!validator.is_valid(&rule(json!({"list-size": {}}))));
        assert!(!validator.is_valid(&rule(json!({"no-such-predicate": {}}))));
    }
}
