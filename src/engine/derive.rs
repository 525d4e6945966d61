//! Derived scenarios: from each operation's happy path the cases that OpenAPI implies.
//!
//! A case is an ordinary scenario, so that nothing but the plan knows it was not written by hand.

use crate::rulebook::scenario::{Credentials, HappyPath, Scenario, Step};
use crate::rulebook::{Operation, Parameter, Place, Service, kebab};
use serde_json::{Map, Value, json};

/// A text that is no value of any enumeration.
const FOREIGN: &str = "conformant-foreign";

/// Every derived scenario of a service, in the order of its operations.
pub(super) fn derive(service: &Service) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for operation in service.operations.values() {
        if let Some(happy) = service.happy.get(&operation.id) {
            let mut cases = Cases {
                operation,
                happy,
                scenarios: Vec::new(),
            };
            cases.derive();
            scenarios.append(&mut cases.scenarios);
        }
    }
    scenarios
}

struct Cases<'a> {
    operation: &'a Operation,
    happy: &'a HappyPath,
    scenarios: Vec<Scenario>,
}

impl Cases<'_> {
    fn derive(&mut self) {
        let own_rule = format!("{}/{}", self.operation.service, self.operation.id);
        let says = format!("{}: the documented request is accepted.", self.operation.id);
        self.add("happy", says, accepted(&own_rule), &Map::new());
        for parameter in &self.operation.parameters {
            self.parameter(parameter);
        }
        if self.happy.optional.len() > 1 {
            let says = format!("{}: every optional parameter at once.", self.operation.id);
            self.add(
                "all-optional",
                says,
                accepted(&own_rule),
                &self.happy.optional,
            );
        }
        if self.operation.secured {
            self.credentials(&format!("{own_rule}/credentials"));
        }
        if self.operation.list_key.is_some() && self.takes("PageSize") {
            let says = format!("{}: a walk over small pages.", self.operation.id);
            let with = Map::from_iter([("PageSize".to_owned(), json!(2))]);
            self.add(
                "walk",
                says,
                Step {
                    walk: true,
                    ..accepted(&own_rule)
                },
                &with,
            );
        }
    }

    fn parameter(&mut self, parameter: &Parameter) {
        let slug = parameter
            .rule
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let name = &parameter.name;
        if parameter.required && parameter.place != Place::Path {
            let says = format!("{}: {name} is left out.", self.operation.id);
            let step = Step {
                rejected: Some(parameter.rule.clone()),
                ..Step::default()
            };
            self.add(
                &format!("without-{slug}"),
                says,
                step,
                &only(name, Value::Null),
            );
        }
        if parameter.names_a_thing(self.operation) {
            self.unknown(parameter, &slug);
        }
        for value in parameter
            .schema
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let word = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let says = format!("{}: {name} {word}.", self.operation.id);
            self.accept(&format!("{slug}={word}"), says, parameter, value.clone());
        }
        if parameter.schema.get("enum").is_some() {
            let says = format!("{}: {name} outside its enumeration.", self.operation.id);
            self.try_out(&format!("{slug}-foreign"), says, parameter, json!(FOREIGN));
        }
        self.bounds(parameter, &slug);
        if let Some(value) = self.happy.optional.get(name) {
            let says = format!("{}: with {name}.", self.operation.id);
            self.accept(&format!("optional-{slug}"), says, parameter, value.clone());
        }
    }

    /// A path that names nothing, behind its accepted twin.
    fn unknown(&mut self, parameter: &Parameter, slug: &str) {
        let call = Some(self.operation.id.clone());
        let twin = Step {
            call: call.clone(),
            with: self.happy.with.clone(),
            ..Step::default()
        };
        let mut with = self.happy.with.clone();
        with.insert(parameter.name.clone(), names_nothing(&parameter.schema));
        let step = Step {
            call,
            with,
            rejected: Some(parameter.rule.clone()),
            ..Step::default()
        };
        let mut steps = self.setup();
        steps.extend([twin, step]);
        let says = format!("{}: {} names nothing.", self.operation.id, parameter.name);
        self.push(&format!("unknown-{slug}"), says, steps);
    }

    fn bounds(&mut self, parameter: &Parameter, slug: &str) {
        let name = &parameter.name;
        let bound = |key: &str| parameter.schema.get(key).and_then(Value::as_i64);
        let text = |length: i64| {
            let seed = if parameter.schema.get("pattern").is_some() {
                String::new()
            } else {
                format!("${{unique.{slug}}}-")
            };
            json!({"$text": seed, "length": length})
        };
        if let Some(max) = bound("maxLength") {
            let says = |n: i64| format!("{}: {name} of {n} characters.", self.operation.id);
            let (at, over) = (says(max), says(max + 1));
            self.accept(&format!("{slug}-at-max"), at, parameter, text(max));
            self.try_out(&format!("{slug}-over-max"), over, parameter, text(max + 1));
        }
        let says = |n: i64| format!("{}: {name} {n}.", self.operation.id);
        if let Some(max) = bound("maximum") {
            let (at, over) = (says(max), says(max + 1));
            self.accept(&format!("{slug}-at-max"), at, parameter, json!(max));
            self.try_out(&format!("{slug}-over-max"), over, parameter, json!(max + 1));
        }
        let says = |n: i64| format!("{}: {name} {n}.", self.operation.id);
        if let Some(min) = bound("minimum") {
            let (at, under) = (says(min), says(min - 1));
            self.accept(&format!("{slug}-at-min"), at, parameter, json!(min));
            self.try_out(
                &format!("{slug}-under-min"),
                under,
                parameter,
                json!(min - 1),
            );
        }
    }

    fn credentials(&mut self, rule: &str) {
        for (case, credentials, says) in [
            ("credentials-none", Credentials::None, "without credentials"),
            (
                "credentials-wrong",
                Credentials::Wrong,
                "with a wrong password",
            ),
            (
                "credentials-unknown",
                Credentials::Unknown,
                "with another user name",
            ),
        ] {
            let says = format!("{}: {says}.", self.operation.id);
            let step = Step {
                rejected: Some(rule.to_owned()),
                credentials,
                ..Step::default()
            };
            self.add(case, says, step, &Map::new());
        }
        let says = format!(
            "{}: with the account SID and its auth token.",
            self.operation.id
        );
        let step = Step {
            credentials: Credentials::Account,
            ..accepted(rule)
        };
        self.add("credentials-account", says, step, &Map::new());
    }

    fn accept(&mut self, case: &str, says: String, parameter: &Parameter, value: Value) {
        self.add(
            case,
            says,
            accepted(&parameter.rule),
            &only(&parameter.name, value),
        );
    }

    fn try_out(&mut self, case: &str, says: String, parameter: &Parameter, value: Value) {
        let step = Step {
            either: true,
            ..Step::default()
        };
        self.add(case, says, step, &only(&parameter.name, value));
    }

    fn add(&mut self, case: &str, says: String, mut step: Step, with: &Map<String, Value>) {
        // The rulebook spells parameters as the documents do, ids are in kebab-case.
        if self
            .happy
            .except
            .keys()
            .any(|name| kebab(name) == kebab(case))
        {
            return;
        }
        let mut steps = self.setup();
        step.call = Some(self.operation.id.clone());
        step.with = self.happy.with.clone();
        step.with.extend(with.clone());
        steps.push(step);
        self.push(case, says, steps);
    }

    fn setup(&self) -> Vec<Step> {
        self.happy
            .setup
            .iter()
            .map(|step| Step {
                setup: true,
                ..step.clone()
            })
            .collect()
    }

    fn push(&mut self, case: &str, says: String, steps: Vec<Step>) {
        let id = format!("{}/{}/{case}", self.operation.service, self.operation.id);
        let matrix = std::collections::BTreeMap::new();
        self.scenarios.push(Scenario {
            id,
            says,
            matrix,
            steps,
        });
    }

    fn takes(&self, name: &str) -> bool {
        self.operation.parameters.iter().any(|p| p.name == name)
    }
}

/// A value of the right form that no thing has.
fn names_nothing(schema: &Value) -> Value {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let prefix = text("pattern").strip_prefix('^').and_then(|p| p.get(..2));
    match prefix {
        Some(prefix) if text("pattern").contains("{32}") => {
            json!(format!("{prefix}{}", "f".repeat(32)))
        }
        Some(_) | None if text("type") == "integer" => json!(999_999_999),
        Some(_) | None if text("format") == "uuid" => json!("00000000-0000-4000-8000-000000000000"),
        Some(_) | None => json!("${unique.nothing}"),
    }
}

fn accepted(rule: &str) -> Step {
    Step {
        accepted: Some(rule.to_owned()),
        ..Step::default()
    }
}

fn only(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}
