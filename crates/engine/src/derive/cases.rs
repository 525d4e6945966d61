//! Common parts of all derived scenarios: the operation, its happy path, and the conversion of a case to a scenario.

use super::second_tenant::expand;
use super::{
    boundary, credentials, foreign_ids, lists, other_account, parameters, partial_updates, races,
    refusals, repeated_reads, restored, second_entry, special_characters, two_tenants,
};
use conformant_base::sorted::SortedMap;
use conformant_rulebook::scenario::{HappyPath, Scenario};
use conformant_rulebook::step::{Call, Demand, Step};
use conformant_rulebook::{
    Kind, Operation, Parameter, ParameterLocation, Rulebook, Service, interpolations, kebab,
};
use serde_json::{Map, Value};

/// All derived scenarios of a service, in the order of its operations.
pub(crate) fn derive(rulebook: &Rulebook, service: &Service) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for operation in service.operations.values() {
        if let Some(happy) = service.happy.get(&operation.id) {
            scenarios.append(&mut of_operation(rulebook, service, operation, happy));
        }
    }
    scenarios
}

/// All derived scenarios of an operation.
fn of_operation(
    rulebook: &Rulebook,
    service: &Service,
    operation: &Operation,
    happy: &HappyPath,
) -> Vec<Scenario> {
    let mut cases = Cases::new(rulebook, service, operation, happy);
    parameters::derive(&mut cases);
    credentials::derive(&mut cases);
    lists::derive(&mut cases);
    boundary::derive(&mut cases);
    foreign_ids::derive(&mut cases);
    two_tenants::derive(&mut cases);
    other_account::derive(&mut cases);
    second_entry::derive(&mut cases);
    special_characters::derive(&mut cases);
    refusals::derive(&mut cases);
    partial_updates::derive(&mut cases);
    repeated_reads::derive(&mut cases);
    restored::derive(&mut cases);
    races::derive(&mut cases);
    cases.scenarios
}

/// Collects the cases of one operation.
pub(super) struct Cases<'a> {
    pub(super) rulebook: &'a Rulebook,
    pub(super) service: &'a Service,
    pub(super) operation: &'a Operation,
    pub(super) happy: &'a HappyPath,
    scenarios: Vec<Scenario>,
}

/// A call of an operation of the service, like `call` otherwise.
pub(super) fn calling(operation: &Operation, with: Map<String, Value>, call: Call) -> Step {
    Step::from(Call {
        call: operation.id.clone(),
        with,
        ..call
    })
}

impl<'a> Cases<'a> {
    /// No cases yet.
    pub(super) fn new(
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

    /// The rule that a request without credentials is rejected.
    pub(super) fn credentials_rule(&self) -> String {
        format!("{}/credentials", self.own_rule())
    }

    /// `OPERATION: what`, the description of a case.
    pub(super) fn says(&self, what: &str) -> String {
        format!("{}: {what}.", self.operation.id)
    }

    /// Adds a case with one call after the set-up: the happy path with the changes in `with`.
    pub(super) fn add(&mut self, case: &str, what: &str, call: Call, with: &Map<String, Value>) {
        let call = self.call(call, with);
        self.after_setup(case, what, [call]);
    }

    /// Adds a case with these steps after the set-up.
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

    /// Adds a case unless the happy path excludes it.
    pub(super) fn push(&mut self, case: &str, what: &str, steps: Vec<Step>) {
        // The rulebook uses the spelling of the documents; ids are in kebab-case.
        let mut left_out = self.happy.except.keys();
        if left_out.any(|name| kebab(name) == kebab(case)) {
            return;
        }
        self.scenarios.push(Scenario {
            id: format!("{}/{case}", self.own_rule()),
            says: self.says(what),
            matrix: SortedMap::new(),
            steps,
        });
    }

    /// The set-up, whose failures are not reported.
    pub(super) fn setup(&self) -> Vec<Step> {
        let steps = self.happy.setup.iter().cloned();
        steps.map(Step::of_setup).collect()
    }

    /// A call of the operation with its happy parameters and the changes in `with`.
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
        calling(self.operation, all, call)
    }

    /// A call of any operation of the service without expectations.
    pub(super) fn look(operation: &Operation, with: Map<String, Value>) -> Step {
        calling(operation, with, either())
    }

    /// A read of an operation with the path parameters in `with`.
    pub(super) fn look_at(operation: &Operation, with: &Map<String, Value>) -> Step {
        Self::look(operation, Self::path_of(operation, with))
    }

    /// A walk over a list with the path parameters in `with`.
    pub(super) fn walk(list: &Operation, with: &Map<String, Value>) -> Step {
        calling(list, Self::path_of(list, with), walking(either()))
    }

    /// The read of the same path with the path parameters in `with`, if there is one.
    pub(super) fn look_here(&self, with: &Map<String, Value>) -> Option<Step> {
        Some(Self::look_at(self.reader()?, with))
    }

    /// The type of what an operation answers with.
    pub(super) fn shown_by(&self, operation: &Operation) -> Option<&'a Kind> {
        self.rulebook.kinds.get(operation.response.as_ref()?)
    }

    /// The set-up with its groups replaced by their steps.
    pub(super) fn expanded_setup(&self) -> Vec<Step> {
        expand(
            self.rulebook,
            self.service,
            &self.happy.setup,
            &Map::new(),
            0,
        )
    }

    /// The name of the parameter with the number of items on a page, where the operation is a list.
    pub(super) fn page_size(&self) -> Option<String> {
        let size = self.operation.page_size()?;
        self.operation.list_key.as_ref()?;
        Some(size.name.clone())
    }

    /// Whether its requests carry a user name and a password.
    pub(super) fn has_user_names(&self) -> bool {
        let service = self.rulebook.index.get(&self.operation.service);
        service.is_some_and(|service| service.has_basic())
    }

    /// Whether it creates a resource in the scope of its path.
    pub(super) fn creates(&self) -> bool {
        self.operation.method == "POST" && !self.operation.path.ends_with('}')
    }

    /// The operation that reads the same path, if there is one.
    pub(super) fn reader(&self) -> Option<&Operation> {
        let mut others = self.service.operations.values();
        others.find(|o| o.method == "GET" && o.path == self.operation.path)
    }

    /// The path parameters that identify resources, outermost first.
    pub(super) fn path(&self) -> Vec<&'a Parameter> {
        let path = self.operation.parameters.iter();
        let path =
            path.filter(|p| p.place == ParameterLocation::Path && p.schema.get("enum").is_none());
        let mut path: Vec<&'a Parameter> = path.collect();
        path.sort_by_key(|p| self.operation.path.find(&format!("{{{}}}", p.name)));
        path
    }

    /// The happy value of a parameter, required or optional.
    pub(super) fn value_of(&self, name: &str) -> Option<&Value> {
        let value = self.happy.with.get(name);
        value.or_else(|| self.happy.optional.get(name))
    }

    /// The members of `with` that are path parameters of the operation.
    pub(super) fn path_of(operation: &Operation, with: &Map<String, Value>) -> Map<String, Value> {
        let path = operation.parameters.iter();
        let path = path.filter(|p| p.place == ParameterLocation::Path);
        path.filter_map(|p| Some((p.name.clone(), with.get(&p.name)?.clone())))
            .collect()
    }

    /// Fetches and lists a new resource, captured as `made`.
    pub(super) fn reread(&self, made: &str, with: &Map<String, Value>) -> Vec<Step> {
        self.fetch_and_list(made, with, false)
    }

    /// The same for the only new resource, whose fetch must succeed.
    pub(super) fn reread_found(&self, made: &str, with: &Map<String, Value>) -> Vec<Step> {
        self.fetch_and_list(made, with, true)
    }

    fn fetch_and_list(&self, made: &str, with: &Map<String, Value>, is_there: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some((operation, parameter, field)) = self.fetcher() {
            let mut with = Self::path_of(operation, with);
            with.insert(parameter, Value::String(format!("${{{made}{field}}}")));
            let fetch = match is_there {
                true => accepted(&format!("{}/{}", operation.service, operation.id)),
                false => either(),
            };
            steps.push(calling(operation, with, fetch));
        }
        steps.extend(self.look_here(with));
        steps
    }

    /// The operation that fetches the new resource, its parameter that identifies it, and the field of the answer with
    /// the identifier, such as `.approval_request.uuid`.
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
            (is_below || self.has_answer_field(&at)).then(|| {
                let field = at.replace('/', ".");
                (o, last.to_owned(), field)
            })
        })
    }

    /// The field that identifies what an operation shows.
    pub(super) fn key_of(&self, operation: &Operation) -> Option<String> {
        let [key] = &self.shown_by(operation)?.annotations.identity.as_ref()?.key[..] else {
            return None;
        };
        Some(key.clone())
    }

    /// Whether a nested field, which no other kind has, is one of its answer's.
    fn has_answer_field(&self, at: &str) -> bool {
        let kind = self.shown_by(self.operation);
        let place = at.replace('/', "/properties/");
        at.matches('/').count() > 1 && kind.is_some_and(|k| k.schema.pointer(&place).is_some())
    }

    /// The optional parameters whose values read no setting of the target. One that is not configured would stop the case.
    pub(super) fn optional(&self) -> Map<String, Value> {
        let mut optional = self.happy.optional.clone();
        optional.retain(|_, value| !reads_setting(value));
        optional
    }

    /// The happy parameters of the `n`th resource of a case, with separate names unless `n` is 0.
    pub(super) fn again(&self, n: usize) -> Map<String, Value> {
        let with = &self.happy.with;
        if n == 0 || !self.creates() {
            return with.clone();
        }
        rename_all(with, &unique(|word| format!("{word}-{n}")))
    }
}

/// Changes the word of a unique name and leaves other names.
pub(super) fn unique(other: impl Fn(&str) -> String) -> impl Fn(&str) -> Option<String> {
    move |name| Some(format!("unique.{}", other(name.strip_prefix("unique.")?)))
}

/// Renames the interpolations of a value for which `other` returns a name.
pub(super) fn rename(value: &Value, other: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => Value::String(rename_text(text, other)),
        Value::Array(items) => items.iter().map(|item| rename(item, other)).collect(),
        Value::Object(members) => Value::Object(rename_all(members, other)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Renames the interpolations of each member.
pub(super) fn rename_all(
    members: &Map<String, Value>,
    other: &dyn Fn(&str) -> Option<String>,
) -> Map<String, Value> {
    let renamed = members.iter();
    renamed
        .map(|(name, value)| (name.clone(), rename(value, other)))
        .collect()
}

/// Renames the interpolations of a text.
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

/// The first parts of the names of a value's interpolations.
pub(super) fn roots(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let found = interpolations(&text).unwrap_or_default();
    found.into_iter().map(|one| one.path[0].clone()).collect()
}

/// Whether a value reads no captures, such as those of the set-up of another operation.
pub(super) fn needs_nothing(value: &Value) -> bool {
    roots(value)
        .iter()
        .all(|root| matches!(root.as_str(), "unique" | "target" | "now"))
}

/// Whether a value reads a setting of a target, which may not be configured. The people of a run have default values.
fn reads_setting(value: &Value) -> bool {
    let named = interpolations(&value.to_string()).unwrap_or_default();
    let mut paths = named.iter().map(|name| name.path.as_slice());
    paths.any(|path| path[0] == "target" && path.get(1).is_some_and(|of| of != "people"))
}

/// The call with its result captured under a name.
pub(super) fn captured(name: &str, call: Call) -> Call {
    Call {
        capture: Some(name.to_owned()),
        ..call
    }
}

/// A call that must be accepted according to this rule.
pub(super) fn accepted(rule: &str) -> Call {
    Call {
        demand: Demand::Accepted(rule.to_owned()),
        ..Call::default()
    }
}

/// A call that must be rejected according to this rule.
pub(super) fn refused(rule: &str) -> Call {
    Call {
        demand: Demand::Rejected {
            rule: rule.to_owned(),
            unless: None,
        },
        ..Call::default()
    }
}

/// A call that may be accepted or rejected.
pub(super) fn either() -> Call {
    Call {
        demand: Demand::Either,
        ..Call::default()
    }
}

/// A call that reads all pages of a list.
pub(super) fn walking(call: Call) -> Call {
    Call { walk: true, ..call }
}

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

    /// An exception fails when it is no longer needed. It may also state that an optional parameter has no value to
    /// try.
    #[test]
    fn every_exception_leaves_out_a_case_that_would_be_there() {
        let rulebook = conformant_judge::load::shared();
        for service in rulebook.services.values() {
            for operation in service.operations.values() {
                let Some(happy) = service.happy.get(&operation.id) else {
                    continue;
                };
                let whole = HappyPath {
                    except: SortedMap::new(),
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

    /// The name of a case in specs/README.md: `PARAM-near`, `without-PARAM`, `walk`.
    fn documented(case: &str, operation: &Operation, documented_cases: &BTreeSet<&str>) -> String {
        let slugs = || operation.parameters.iter().map(slug);
        // One parameter is named Page, and pages have cases of their own.
        if documented_cases.contains(case) {
            return case.to_owned();
        }
        if case.contains('=') {
            return "PARAM=VALUE".to_owned();
        }
        for prefix in ["without-", "optional-", "unknown-", "page-urls-", "race-"] {
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
        let documented_cases: BTreeSet<&str> = first
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let (mut ids, mut derived) = (BTreeSet::new(), BTreeSet::new());
        for service in rulebook.services.values() {
            for scenario in derive(rulebook, service) {
                let (operation, case) = scenario.id.rsplit_once('/').unwrap();
                let operation = rulebook.operation_by_id(operation).unwrap();
                derived.insert(documented(case, operation, &documented_cases));
                assert!(ids.insert(scenario.id.clone()), "{} twice", scenario.id);
            }
        }
        assert_eq!(
            derived.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            documented_cases
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
