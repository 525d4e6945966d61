//! What all families share: the operation, its happy path, and how a case becomes a scenario.

use super::{
    credentials, later, lists, near, parameters, refusals, rest, rich, scope, second, several,
};
use conformant_rulebook::scenario::{HappyPath, Scenario};
use conformant_rulebook::step::{Call, Demand, Step};
use conformant_rulebook::{Operation, Parameter, Place, Rulebook, Service, interpolations, kebab};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Every derived scenario of a service, in the order of its operations.
pub(crate) fn derive(rulebook: &Rulebook, service: &Service) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for operation in service.operations.values() {
        if let Some(happy) = service.happy.get(&operation.id) {
            scenarios.append(&mut of_operation(rulebook, service, operation, happy));
        }
    }
    scenarios
}

/// Every derived scenario of an operation.
fn of_operation(
    rulebook: &Rulebook,
    service: &Service,
    operation: &Operation,
    happy: &HappyPath,
) -> Vec<Scenario> {
    let mut cases = Cases::of(rulebook, service, operation, happy);
    parameters::derive(&mut cases);
    credentials::derive(&mut cases);
    lists::derive(&mut cases);
    near::derive(&mut cases);
    scope::derive(&mut cases);
    several::derive(&mut cases);
    second::derive(&mut cases);
    rich::derive(&mut cases);
    refusals::derive(&mut cases);
    rest::derive(&mut cases);
    later::derive(&mut cases);
    cases.scenarios
}

/// The cases of one operation as they come to be.
pub(super) struct Cases<'a> {
    pub(super) rulebook: &'a Rulebook,
    pub(super) service: &'a Service,
    pub(super) operation: &'a Operation,
    pub(super) happy: &'a HappyPath,
    scenarios: Vec<Scenario>,
}

impl<'a> Cases<'a> {
    /// An operation and its happy path, without any cases yet.
    pub(super) fn of(
        rulebook: &'a Rulebook,
        service: &'a Service,
        operation: &'a Operation,
        happy: &'a HappyPath,
    ) -> Self {
        Self {
            rulebook,
            service,
            operation,
            happy,
            scenarios: Vec::new(),
        }
    }

    /// The rule that the documented request is accepted.
    pub(super) fn own_rule(&self) -> String {
        format!("{}/{}", self.operation.service, self.operation.id)
    }

    /// The rule that nobody gets in without credentials.
    pub(super) fn credentials_rule(&self) -> String {
        format!("{}/credentials", self.own_rule())
    }

    /// `OPERATION: what`, which is what a case says.
    pub(super) fn says(&self, what: &str) -> String {
        format!("{}: {what}.", self.operation.id)
    }

    /// Adds a case of one call behind the set-up: the happy one but for `with`.
    pub(super) fn add(&mut self, case: &str, what: &str, call: Call, with: &Map<String, Value>) {
        let call = self.call(call, with);
        self.after_setup(case, what, [call]);
    }

    /// Adds a case of these steps behind the set-up.
    pub(super) fn after_setup(
        &mut self,
        case: &str,
        what: &str,
        steps: impl IntoIterator<Item = Step>,
    ) {
        let mut all = self.setup();
        all.extend(steps);
        self.push(case, what, all);
    }

    /// Adds a case, unless the happy path says why not.
    pub(super) fn push(&mut self, case: &str, what: &str, steps: Vec<Step>) {
        // The rulebook spells parameters as the documents do, ids are in kebab-case.
        let mut left_out = self.happy.except.keys();
        if left_out.any(|name| kebab(name) == kebab(case)) {
            return;
        }
        self.scenarios.push(Scenario {
            id: format!("{}/{case}", self.own_rule()),
            says: self.says(what),
            matrix: BTreeMap::new(),
            steps,
        });
    }

    /// The set-up, whose failure accuses nobody.
    pub(super) fn setup(&self) -> Vec<Step> {
        let steps = self.happy.setup.iter().cloned();
        steps.map(Step::of_setup).collect()
    }

    /// A call of the operation with its happy parameters but for `with`.
    pub(super) fn call(&self, call: Call, with: &Map<String, Value>) -> Step {
        let mut all = self.happy.with.clone();
        all.extend(with.clone());
        let own = self
            .operation
            .parameters
            .iter()
            .filter(|p| with.contains_key(&p.name));
        for (other, values) in own.flat_map(|p| &p.beside) {
            let is_given =
                with.contains_key(other) || all.get(other).is_some_and(|v| values.contains(v));
            if !is_given {
                all.extend(values.first().map(|value| (other.clone(), value.clone())));
            }
        }
        Step::from(Call {
            call: self.operation.id.clone(),
            with: all,
            ..call
        })
    }

    /// A call of any operation of the service whose answer is only looked at.
    pub(super) fn look(operation: &Operation, with: Map<String, Value>) -> Step {
        Step::from(Call {
            call: operation.id.clone(),
            with,
            ..either()
        })
    }

    /// The name of the parameter with the number of items on a page, where the operation is a list.
    pub(super) fn page_size(&self) -> Option<String> {
        let size = self.operation.page_size()?;
        self.operation.list_key.as_ref()?;
        Some(size.name.clone())
    }

    /// Whether it makes a new thing in the scope that its path names.
    pub(super) fn makes(&self) -> bool {
        self.operation.method == "POST" && !self.operation.path.ends_with('}')
    }

    /// The operation that reads at the same path, where there is one.
    pub(super) fn reader(&self) -> Option<&Operation> {
        let mut others = self.service.operations.values();
        others.find(|o| o.method == "GET" && o.path == self.operation.path)
    }

    /// The path parameters that name things, outermost first.
    pub(super) fn path(&self) -> Vec<&'a Parameter> {
        let path = self.operation.parameters.iter();
        let path = path.filter(|p| p.place == Place::Path && p.schema.get("enum").is_none());
        let mut path: Vec<&'a Parameter> = path.collect();
        path.sort_by_key(|p| self.operation.path.find(&format!("{{{}}}", p.name)));
        path
    }

    /// The happy value of a parameter, be it required or not.
    pub(super) fn value_of(&self, name: &str) -> Option<&Value> {
        let value = self.happy.with.get(name);
        value.or_else(|| self.happy.optional.get(name))
    }

    /// What of `with` an operation at the same path takes in it.
    pub(super) fn path_of(operation: &Operation, with: &Map<String, Value>) -> Map<String, Value> {
        let path = operation.parameters.iter();
        let path = path.filter(|p| p.place == Place::Path);
        path.filter_map(|p| Some((p.name.clone(), with.get(&p.name)?.clone())))
            .collect()
    }

    /// How a thing that was just made and kept as `made` is looked at again: fetched, then listed.
    pub(super) fn seen_again(&self, made: &str, with: &Map<String, Value>) -> Vec<Step> {
        self.fetched_and_listed(made, with, &|_| either())
    }

    /// The same where the thing was the only one to be made, so that nothing but the fetch tells that it is there.
    pub(super) fn found_again(&self, made: &str, with: &Map<String, Value>) -> Vec<Step> {
        self.fetched_and_listed(made, with, &accepted)
    }

    fn fetched_and_listed(
        &self,
        made: &str,
        with: &Map<String, Value>,
        fetch: &dyn Fn(&str) -> Call,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some((operation, parameter, field)) = self.fetcher() {
            let mut with = Self::path_of(operation, with);
            with.insert(parameter, Value::String(format!("${{{made}{field}}}")));
            steps.push(Step::from(Call {
                call: operation.id.clone(),
                with,
                ..fetch(&format!("{}/{}", operation.service, operation.id))
            }));
        }
        if let Some(list) = self.reader() {
            steps.push(Self::look(list, Self::path_of(list, with)));
        }
        steps
    }

    /// The operation that fetches what this one makes, its parameter that names the thing, and the
    /// field of the answer that the name stands in, as `.approval_request.uuid`.
    fn fetcher(&self) -> Option<(&Operation, String, String)> {
        let mut fetchers = self
            .service
            .operations
            .values()
            .filter(|o| o.method == "GET" && o.list_key.is_none() && o.path.ends_with('}'));
        fetchers.find_map(|o| {
            let last = o.path.rsplit('{').next()?.trim_end_matches('}');
            let parameter = o.parameters.iter().find(|p| p.name == last)?;
            let below = o.path.strip_suffix(&format!("/{{{last}}}"))?;
            let is_below = below == self.operation.path && o.response == self.operation.response;
            let at = match &parameter.echo {
                Some(echo) => echo.at.clone(),
                None => self.key_of(o).unwrap_or_else(|| "/sid".to_owned()),
            };
            (is_below || self.answers_with(&at)).then(|| {
                let field = at.replace('/', ".");
                (o, last.to_owned(), field)
            })
        })
    }

    /// The field that identifies what an operation shows.
    pub(super) fn key_of(&self, operation: &Operation) -> Option<String> {
        let kind = self.rulebook.kinds.get(operation.response.as_ref()?)?;
        let [key] = &kind.about.identity.as_ref()?.key[..] else {
            return None;
        };
        Some(key.clone())
    }

    /// Whether a nested field, which no other kind has, is one of its answer's.
    fn answers_with(&self, at: &str) -> bool {
        let kind = self.operation.response.as_ref();
        let schema = kind.and_then(|kind| self.rulebook.kinds.get(kind));
        let place = at.replace('/', "/properties/");
        at.matches('/').count() > 1 && schema.is_some_and(|k| k.schema.pointer(&place).is_some())
    }

    /// The happy parameters of the `n`th thing that one case makes: its own names, where `n` is not 0.
    pub(super) fn again(&self, n: usize) -> Map<String, Value> {
        let with = &self.happy.with;
        if n == 0 || !self.makes() {
            return with.clone();
        }
        let renamed = |name: &str| {
            name.strip_prefix("unique.")
                .map(|word| format!("unique.{word}-{n}"))
        };
        with.iter()
            .map(|(name, value)| (name.clone(), rename(value, &renamed)))
            .collect()
    }
}

/// A value with other names in its interpolations, where `other` has one.
pub(super) fn rename(value: &Value, other: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => Value::String(rename_text(text, other)),
        Value::Array(items) => items.iter().map(|item| rename(item, other)).collect(),
        Value::Object(members) => Value::Object(rename_all(members, other)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Each member with other names in its interpolations.
pub(super) fn rename_all(
    members: &Map<String, Value>,
    other: &dyn Fn(&str) -> Option<String>,
) -> Map<String, Value> {
    let renamed = members.iter();
    renamed
        .map(|(name, value)| (name.clone(), rename(value, other)))
        .collect()
}

/// A text with other names in its interpolations.
pub(super) fn rename_text(text: &str, other: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for found in interpolations(text).unwrap_or_default() {
        out.push_str(&text[from..found.start]);
        let name = found.path.join(".");
        let name = other(&name).unwrap_or(name);
        out.push_str(&format!("${{{name}}}"));
        from = found.end;
    }
    out.push_str(&text[from..]);
    out
}

/// The names that the interpolations of a value begin with.
pub(super) fn roots(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let found = interpolations(&text).unwrap_or_default();
    found.into_iter().map(|one| one.path[0].clone()).collect()
}

/// A call that is expected to be accepted, else that rule is broken.
pub(super) fn accepted(rule: &str) -> Call {
    Call {
        demand: Demand::Accepted(rule.to_owned()),
        ..Call::default()
    }
}

/// A call that is expected to be refused, else that rule is broken.
pub(super) fn refused(rule: &str) -> Call {
    Call {
        demand: Demand::Rejected {
            rule: rule.to_owned(),
            unless: None,
        },
        ..Call::default()
    }
}

/// A call that may go either way.
pub(super) fn either() -> Call {
    Call {
        demand: Demand::Either,
        ..Call::default()
    }
}

/// One parameter.
pub(super) fn only(name: &str, value: impl Into<Value>) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value.into())])
}

/// A parameter's name in ids.
pub(super) fn slug(parameter: &Parameter) -> &str {
    parameter.rule.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// An exception fails when it is no longer needed. That an optional parameter has no value of its own
    /// to be tried with is one, too.
    #[test]
    fn every_exception_leaves_out_a_case_that_would_be_there() {
        let rulebook = conformant_judge::load::shared();
        for service in rulebook.services.values() {
            for operation in service.operations.values() {
                let Some(happy) = service.happy.get(&operation.id) else {
                    continue;
                };
                let whole = HappyPath {
                    except: BTreeMap::new(),
                    ..happy.clone()
                };
                let derived = of_operation(rulebook, service, operation, &whole);
                let cases: BTreeSet<&str> = derived
                    .iter()
                    .filter_map(|s| s.id.rsplit('/').next())
                    .collect();
                for case in happy.except.keys() {
                    let has_no_value = case
                        .strip_prefix("optional-")
                        .is_some_and(|name| !happy.optional.contains_key(name));
                    let is_derived = cases.iter().any(|c| kebab(c) == kebab(case));
                    assert!(is_derived || has_no_value, "{}: {case}", operation.id);
                }
            }
        }
    }

    /// The name of a case as specs/README.md has it: `PARAM-near`, `without-PARAM`, `walk`.
    fn documented(case: &str, operation: &Operation, told: &BTreeSet<&str>) -> String {
        let slugs = || operation.parameters.iter().map(slug);
        // A parameter is named Page, and pages have cases of their own.
        if told.contains(case) {
            return case.to_owned();
        }
        if case.contains('=') {
            return "PARAM=VALUE".to_owned();
        }
        for prefix in ["without-", "optional-", "unknown-", "page-urls-"] {
            let named = case.strip_prefix(prefix);
            if named.is_some_and(|name| slugs().any(|s| s == name)) {
                return format!("{prefix}PARAM");
            }
        }
        let longest = slugs()
            .filter(|s| {
                case.strip_prefix(s)
                    .is_some_and(|rest| rest.starts_with('-'))
            })
            .max_by_key(|s| s.len());
        longest.map_or_else(|| case.to_owned(), |s| format!("PARAM{}", &case[s.len()..]))
    }

    #[test]
    fn every_case_has_its_own_id_and_is_documented() {
        let rulebook = conformant_judge::load::shared();
        let readme = conformant_specs::text("README.md");
        let (_, table) = readme.split_once("### Derived cases").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let first = table
            .lines()
            .filter_map(|l| l.strip_prefix("| ")?.split(" | ").next());
        let told: BTreeSet<&str> = first
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let (mut ids, mut derived) = (BTreeSet::new(), BTreeSet::new());
        for service in rulebook.services.values() {
            for scenario in derive(rulebook, service) {
                let (operation, case) = scenario.id.rsplit_once('/').unwrap();
                let operation = rulebook.operation_by_id(operation).unwrap();
                derived.insert(documented(case, operation, &told));
                assert!(ids.insert(scenario.id.clone()), "{} twice", scenario.id);
            }
        }
        assert_eq!(
            derived.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            told
        );
    }

    #[test]
    fn names_in_interpolations_change_and_nothing_else() {
        let other = |name: &str| name.strip_prefix("a.").map(|rest| format!("b.{rest}"));
        let value = serde_json::json!({"x": ["${a.sid} and ${c.sid}", 1], "y": "a.sid"});
        assert_eq!(
            rename(&value, &other),
            serde_json::json!({"x": ["${b.sid} and ${c.sid}", 1], "y": "a.sid"})
        );
        assert_eq!(roots(&value), ["a", "c"]);
    }
}
