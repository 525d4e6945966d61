//! Scenario files: read, and every name in them looked up.
//!
//! Runs nothing.

use super::draft::{Draft, File, Files};
use super::hooks::{self, HOOKS};
use super::model::{Kind, Operation, Origin, Place, Service};
use super::problems::Span;
use super::rules::Check;
use super::scenario::{Expect, Group, HappyPath, Scenario, Step};
use super::words::{duration, interpolations, shift};
use super::written::{check_id, only};
use super::yaml::{Content, Node};
use crate::json;
use std::collections::{BTreeMap, BTreeSet};

/// Names that every text may interpolate.
const ALWAYS: [&str; 4] = ["target", "unique", "now", "index"];

/// Reads all scenario files and checks what they name.
pub(super) fn read(
    draft: &mut Draft,
    files: &[&File],
    services: &mut BTreeMap<String, Service>,
    kinds: &BTreeMap<String, Kind>,
) {
    for file in files {
        only(draft, file, &["groups", "operations", "scenarios"]);
        read_groups(draft, file, services);
        read_happy_paths(draft, file, services);
        read_scenarios(draft, file, services);
    }
    for file in files {
        let Some(service) = services.get(file.service()) else {
            continue;
        };
        let checker = Checker {
            file,
            service,
            services,
            kinds,
        };
        checker.groups(draft);
        checker.happy_paths(draft);
        checker.scenarios(draft);
    }
}

fn section<'a>(file: &'a File, key: &str) -> &'a [super::yaml::Member] {
    file.node.get(key).map(Node::members).unwrap_or_default()
}

fn read_groups(draft: &mut Draft, file: &File, services: &mut BTreeMap<String, Service>) {
    for member in section(file, "groups") {
        let Some(group) = draft.typed::<Group>(file, &member.value) else {
            continue;
        };
        let service = services
            .get_mut(file.service())
            .expect("a role names a service");
        if service.groups.insert(member.key.clone(), group).is_some() {
            let message = format!("the group `{}` is there twice", member.key);
            draft
                .problems
                .push(file.problem_at(member.key_span, message));
        }
    }
}

fn read_happy_paths(draft: &mut Draft, file: &File, services: &mut BTreeMap<String, Service>) {
    for member in section(file, "operations") {
        let Some(happy) = draft.typed::<HappyPath>(file, &member.value) else {
            continue;
        };
        let service = services
            .get_mut(file.service())
            .expect("a role names a service");
        if !service.operations.contains_key(&member.key) {
            let known = service.operations.keys().map(String::as_str);
            draft.unknown(file, member.key_span, "operation", &member.key, known);
        } else if service.happy.insert(member.key.clone(), happy).is_some() {
            let message = format!("`{}` has two happy paths", member.key);
            draft
                .problems
                .push(file.problem_at(member.key_span, message));
        }
    }
}

fn read_scenarios(draft: &mut Draft, file: &File, services: &mut BTreeMap<String, Service>) {
    let items = file
        .node
        .get("scenarios")
        .map(Node::items)
        .unwrap_or_default();
    for (n, node) in items.iter().enumerate() {
        let at = format!("/scenarios/{n}");
        let Some(scenario) = draft.typed::<Scenario>(file, node) else {
            continue;
        };
        check_id(draft, file, &at, &scenario.id);
        let service = services
            .get_mut(file.service())
            .expect("a role names a service");
        if let Some((_, place)) = service.scenarios.get(&scenario.id) {
            let message = format!("the scenario `{}` is in {place} already", scenario.id);
            draft
                .problems
                .push(file.problem(&format!("{at}/id"), message));
            continue;
        }
        let place = file.place(&at);
        service
            .scenarios
            .insert(scenario.id.clone(), (scenario, place));
    }
}

/// What only the whole rulebook shows: operations without a happy path, rules without a story.
pub(super) fn check_whole(draft: &mut Draft, files: &Files, services: &BTreeMap<String, Service>) {
    for service in services.values() {
        let Some(file) = files.get(&format!("{}/openapi.yaml", service.name)) else {
            continue;
        };
        for id in service
            .operations
            .keys()
            .filter(|id| !service.happy.contains_key(*id))
        {
            let span = operation_span(file, id).unwrap_or_default();
            draft.problems.push(
                file.problem_at(span, format!("the operation `{id}` has no happy path"))
                    .help(format!(
                        "add `operations: {{ {id}: … }}` to a file in {}/scenarios",
                        service.name
                    )),
            );
        }
    }
    let told = named_rules(services);
    let untold: Vec<_> = draft
        .rules
        .values()
        .filter(|r| matches!(r.origin, Origin::Written(Check::Story {})) && !told.contains(&r.id))
        .map(|r| (r.id.clone(), r.place.clone()))
        .collect();
    for (id, place) in untold {
        let path = place
            .rsplit_once(':')
            .map_or(place.as_str(), |(path, _)| path);
        let Some(file) = files.get(path) else {
            continue;
        };
        let items = file.node.get("rules").map(Node::items).unwrap_or_default();
        let span = items
            .iter()
            .find_map(|r| r.get("id").filter(|i| i.text() == Some(&id)))
            .map(|n| n.span)
            .unwrap_or_default();
        draft.problems.push(
            file.problem_at(span, format!("no scenario names the story rule `{id}`"))
                .help("name it in `expect`, `accepted` or `rejected` of a step"),
        );
    }
}

fn operation_span(file: &File, id: &str) -> Option<Span> {
    file.node.get("paths")?.members().iter().find_map(|path| {
        path.value.members().iter().find_map(|method| {
            let node = method.value.get("operationId")?;
            (node.text() == Some(id)).then_some(node.span)
        })
    })
}

/// Every rule that some step names.
fn named_rules(services: &BTreeMap<String, Service>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for service in services.values() {
        let steps = service
            .groups
            .values()
            .flat_map(|g| &g.steps)
            .chain(service.happy.values().flat_map(|h| &h.setup))
            .chain(service.scenarios.values().flat_map(|(s, _)| &s.steps));
        for step in steps.flat_map(|s| std::iter::once(s).chain(&s.between)) {
            named.extend(step.expect.iter().map(|e| e.rule.clone()));
            named.extend(step.accepted.clone());
            named.extend(step.rejected.clone());
        }
    }
    named
}

/// Names that a text may interpolate at one point of a list of steps.
#[derive(Clone, Debug, Default)]
struct Scope {
    names: BTreeSet<String>,
    used: BTreeSet<String>,
    /// Captures of this very list, with their places.
    captures: BTreeMap<String, Span>,
    listening: BTreeSet<String>,
}

impl Scope {
    fn knows(&self, name: &str) -> bool {
        ALWAYS.contains(&name) || self.names.contains(name)
    }
}

/// One file's scenarios while they are checked.
#[derive(Clone, Copy)]
struct Checker<'a> {
    file: &'a File,
    service: &'a Service,
    services: &'a BTreeMap<String, Service>,
    kinds: &'a BTreeMap<String, Kind>,
}

impl<'a> Checker<'a> {
    /// The service that a name belongs to, and the name there: `media/upload-media` names an
    /// operation of another service.
    fn owner<'n>(&self, name: &'n str) -> Option<(&'a Service, &'n str)> {
        match name.split_once('/') {
            Some((service, name)) => Some((self.services.get(service)?, name)),
            None => Some((self.service, name)),
        }
    }

    fn operation(&self, name: &str) -> Option<&'a Operation> {
        let (service, name) = self.owner(name)?;
        service.operations.get(name)
    }

    fn group(&self, name: &str) -> Option<&'a Group> {
        let (service, name) = self.owner(name)?;
        service.groups.get(name)
    }

    /// Names of operations or groups as this file would write them.
    fn known(&self, of: impl Fn(&'a Service) -> Vec<&'a String>) -> Vec<String> {
        self.services
            .values()
            .flat_map(|service| {
                let own = service.name == self.service.name;
                of(service).into_iter().map(move |name| {
                    if own {
                        name.clone()
                    } else {
                        format!("{}/{name}", service.name)
                    }
                })
            })
            .collect()
    }

    /// The steps of a group, looked at from the service that it belongs to.
    fn inside(&self, name: &str) -> Option<(Self, &'a [Step])> {
        let (service, _) = self.owner(name)?;
        let group = self.group(name)?;
        Some((Self { service, ..*self }, &group.steps))
    }

    fn groups(&self, draft: &mut Draft) {
        for member in section(self.file, "groups") {
            let Some(group) = self.service.groups.get(&member.key) else {
                continue;
            };
            let at = json::join("/groups", &member.key);
            let mut scope = Scope::default();
            scope.names.insert("with".to_owned());
            self.with_names(draft, &member.value, &group.with);
            self.steps(draft, &format!("{at}/steps"), &group.steps, &mut scope);
            if self.uses(&member.key, &mut BTreeSet::new()) {
                let message = format!("the group `{}` uses itself", member.key);
                draft
                    .problems
                    .push(self.file.problem_at(member.key_span, message));
            }
        }
    }

    /// `${with.NAME}` in a group names one of its parameters.
    fn with_names(
        &self,
        draft: &mut Draft,
        node: &Node,
        with: &serde_json::Map<String, serde_json::Value>,
    ) {
        for (span, text) in texts(node) {
            for found in interpolations(&text).unwrap_or_default() {
                if let [first, name, ..] = &found.path[..]
                    && first == "with"
                    && !with.contains_key(name)
                {
                    let known = with.keys().map(String::as_str);
                    draft.unknown(self.file, span, "parameter of the group", name, known);
                }
            }
        }
    }

    /// True when the group leads back to itself.
    fn uses(&self, name: &str, seen: &mut BTreeSet<String>) -> bool {
        let steps = self.service.groups.get(name).map(|g| g.steps.as_slice());
        for used in steps
            .unwrap_or_default()
            .iter()
            .filter_map(|s| s.r#use.as_ref())
        {
            if seen.contains(used) {
                return true;
            }
            seen.insert(used.clone());
            if self.uses(used, seen) {
                return true;
            }
            seen.remove(used);
        }
        false
    }

    fn happy_paths(&self, draft: &mut Draft) {
        for member in section(self.file, "operations") {
            let (Some(happy), Some(operation)) = (
                self.service.happy.get(&member.key),
                self.service.operations.get(&member.key),
            ) else {
                continue;
            };
            let at = json::join("/operations", &member.key);
            let mut scope = Scope::default();
            self.steps(draft, &format!("{at}/setup"), &happy.setup, &mut scope);
            for key in ["with", "optional"] {
                if let Some(node) = member.value.get(key) {
                    self.texts(draft, node, &mut scope);
                }
            }
            self.unused(draft, &scope);
            self.happy_path(draft, &at, happy, operation);
        }
    }

    fn happy_path(&self, draft: &mut Draft, at: &str, happy: &HappyPath, operation: &Operation) {
        for parameter in operation.parameters.iter().filter(|p| p.required) {
            if !happy.with.contains_key(&parameter.name) {
                let message = format!("the required parameter `{}` is missing", parameter.name);
                draft.problems.push(
                    self.file
                        .problem(at, message)
                        .help("`with` names every required parameter"),
                );
            }
        }
        for (key, given) in [("with", &happy.with), ("optional", &happy.optional)] {
            for name in given.keys() {
                self.parameter(
                    draft,
                    &json::join(&format!("{at}/{key}"), name),
                    name,
                    operation,
                );
            }
        }
        for name in happy
            .optional
            .keys()
            .filter(|n| happy.with.contains_key(*n))
        {
            let message = format!("`{name}` is given twice, in `with` and in `optional`");
            let at = json::join(&format!("{at}/optional"), name);
            draft.problems.push(self.file.problem(&at, message));
        }
        for (case, reason) in &happy.except {
            let at = json::join(&format!("{at}/except"), case);
            if reason.trim().is_empty() {
                let message = format!("`{case}` is left out without a reason");
                draft.problems.push(self.file.problem(&at, message));
            }
            if !is_case(case, operation) {
                let message = format!("no case `{case}` is derived from `{}`", operation.id);
                draft.problems.push(
                    self.file
                        .problem(&at, message)
                        .help("specs/README.md names the derived cases"),
                );
            }
        }
    }

    fn scenarios(&self, draft: &mut Draft) {
        let items = self
            .file
            .node
            .get("scenarios")
            .map(Node::items)
            .unwrap_or_default();
        for (n, node) in items.iter().enumerate() {
            let id = node.get("id").and_then(Node::text).unwrap_or_default();
            let at = format!("/scenarios/{n}");
            let Some((scenario, place)) = self.service.scenarios.get(id) else {
                continue;
            };
            if *place != self.file.place(&at) {
                continue;
            }
            let mut scope = Scope::default();
            if !scenario.matrix.is_empty() {
                scope.names.insert("matrix".to_owned());
            }
            self.matrix(draft, node, &at, scenario);
            self.steps(draft, &format!("{at}/steps"), &scenario.steps, &mut scope);
            self.unused(draft, &scope);
            self.twins(draft, &at, scenario);
            if scenario.steps.is_empty() {
                draft
                    .problems
                    .push(self.file.problem(&at, "a scenario without steps"));
            }
        }
    }

    fn matrix(&self, draft: &mut Draft, node: &Node, at: &str, scenario: &Scenario) {
        let mut used = BTreeSet::new();
        for (span, text) in texts(node) {
            for found in interpolations(&text).unwrap_or_default() {
                if let [first, name, ..] = &found.path[..]
                    && first == "matrix"
                {
                    used.insert(name.clone());
                    if !scenario.matrix.contains_key(name) {
                        let known = scenario.matrix.keys().map(String::as_str);
                        draft.unknown(self.file, span, "matrix name", name, known);
                    }
                }
            }
        }
        for (name, values) in &scenario.matrix {
            let at = json::join(&format!("{at}/matrix"), name);
            if values.is_empty() {
                let message = format!("the matrix `{name}` has no values");
                draft.problems.push(self.file.problem(&at, message));
            }
            if !used.contains(name) {
                let message = format!("the matrix `{name}` is never used");
                draft.problems.push(self.file.problem(&at, message));
            }
        }
    }

    /// A refusal stands beside an accepted call of the same operation.
    fn twins(&self, draft: &mut Draft, at: &str, scenario: &Scenario) {
        let mut accepted = BTreeSet::new();
        self.accepted_calls(&scenario.steps, &mut accepted, 0);
        for (n, step) in scenario.steps.iter().enumerate() {
            if let (Some(operation), Some(_)) = (&step.call, &step.rejected)
                && !accepted.contains(&self.whole(operation))
            {
                let message = format!("the refusal of `{operation}` has no accepted twin");
                draft.problems.push(
                    self.file
                        .problem(&format!("{at}/steps/{n}/rejected"), message)
                        .help("call it in the same scenario in a way that is accepted, too"),
                );
            }
        }
    }

    fn accepted_calls(&self, steps: &[Step], accepted: &mut BTreeSet<String>, depth: usize) {
        for step in steps {
            if step.rejected.is_none() && !step.either {
                accepted.extend(step.call.as_ref().map(|call| self.whole(call)));
            }
            if let Some((inside, steps)) = step.r#use.as_ref().and_then(|u| self.inside(u))
                && depth < 16
            {
                inside.accepted_calls(steps, accepted, depth + 1);
            }
            self.accepted_calls(&step.between, accepted, depth);
        }
    }

    /// The name with its service.
    fn whole(&self, name: &str) -> String {
        if name.contains('/') {
            name.to_owned()
        } else {
            format!("{}/{name}", self.service.name)
        }
    }

    fn unused(&self, draft: &mut Draft, scope: &Scope) {
        for (name, span) in &scope.captures {
            if !scope.used.contains(name) {
                let message = format!("the capture `{name}` is never used");
                draft.problems.push(
                    self.file
                        .problem_at(*span, message)
                        .help("use it or leave it out"),
                );
            }
        }
    }

    fn steps(&self, draft: &mut Draft, at: &str, steps: &[Step], scope: &mut Scope) {
        for (n, step) in steps.iter().enumerate() {
            let at = format!("{at}/{n}");
            let Some(node) = super::schemas::node_at(self.file, &at) else {
                continue;
            };
            StepChecker {
                checker: self,
                at: &at,
                node,
                step,
            }
            .check(draft, scope);
        }
    }

    /// Looks up every interpolation in the texts of a node.
    fn texts(&self, draft: &mut Draft, node: &Node, scope: &mut Scope) {
        for (span, text) in texts(node) {
            let found = match interpolations(&text) {
                Ok(found) => found,
                Err((_, reason)) => {
                    draft
                        .problems
                        .push(self.file.problem_at(span, format!("in `{text}`: {reason}")));
                    continue;
                }
            };
            for one in found {
                let name = &one.path[0];
                scope.used.insert(name.clone());
                if !scope.knows(name) {
                    let known = scope.names.iter().map(String::as_str).chain(ALWAYS);
                    draft.unknown(self.file, span, "name", name, known);
                } else if name == "target" {
                    self.target(draft, span, &one.path);
                }
            }
        }
    }

    fn target(&self, draft: &mut Draft, span: Span, path: &[String]) {
        let known = super::draft::SERVICES.map(|(name, _)| name);
        match path.get(1) {
            Some(service) if path.len() > 2 => {
                if !known.contains(&service.as_str()) {
                    draft.unknown(self.file, span, "service", service, known);
                }
            }
            Some(_) | None => draft.problems.push(
                self.file
                    .problem_at(span, "`target` is followed by a service and a key")
                    .help("such as `${target.flow.flow_sid}`"),
            ),
        }
    }

    fn parameter(&self, draft: &mut Draft, at: &str, name: &str, operation: &Operation) {
        if !operation.parameters.iter().any(|p| p.name == name) {
            let span = self
                .key_span(at)
                .unwrap_or_else(|| self.file.node.place(at));
            let known = operation.parameters.iter().map(|p| p.name.as_str());
            let what = format!("parameter of {}", operation.id);
            draft.unknown(self.file, span, &what, name, known);
        }
    }

    fn key_span(&self, at: &str) -> Option<Span> {
        let (parent, _) = at.rsplit_once('/')?;
        let key = json::segments(at).last()?;
        let node = super::schemas::node_at(self.file, parent)?;
        let member = node.members().iter().find(|m| m.key == key)?;
        Some(member.key_span)
    }
}

/// Every text in a node, with its place.
fn texts(node: &Node) -> Vec<(Span, String)> {
    let mut found = Vec::new();
    collect_texts(node, &mut found);
    found
}

fn collect_texts(node: &Node, found: &mut Vec<(Span, String)>) {
    match &node.content {
        Content::Text(text) => found.push((node.span, text.clone())),
        Content::List(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Content::Map(members) => members.iter().for_each(|m| collect_texts(&m.value, found)),
        Content::Null | Content::Bool(_) | Content::Number(_) => {}
    }
}

/// Names under which a group's results are known afterwards.
fn results(checker: &Checker<'_>, group: &str, names: &mut BTreeSet<String>, depth: usize) {
    let Some((inside, steps)) = checker.inside(group).filter(|_| depth < 16) else {
        return;
    };
    for step in steps {
        names.extend(step.capture.clone());
        names.extend(step.listen.clone());
        match (&step.r#use, &step.r#as) {
            (Some(_), Some(prefix)) => {
                names.insert(prefix.clone());
            }
            (Some(used), None) => results(&inside, used, names, depth + 1),
            (None, _) => {}
        }
    }
}

/// True when a case of that name can be derived from the operation (specs/README.md, Scenarios).
fn is_case(case: &str, operation: &Operation) -> bool {
    let parameter = |name: &str| operation.parameters.iter().any(|p| p.name == name);
    let general = [
        "happy",
        "all-optional",
        "credentials-none",
        "credentials-wrong",
        "credentials-unknown",
        "credentials-account",
        "walk",
    ];
    general.contains(&case)
        || ["without-", "optional-", "unknown-"]
            .iter()
            .any(|prefix| case.strip_prefix(prefix).is_some_and(parameter))
        || ["-foreign", "-at-max", "-over-max", "-at-min", "-under-min"]
            .iter()
            .any(|suffix| case.strip_suffix(suffix).is_some_and(parameter))
        || case
            .split_once('=')
            .is_some_and(|(name, _)| parameter(name))
}

/// One step while it is checked.
struct StepChecker<'a> {
    checker: &'a Checker<'a>,
    at: &'a str,
    node: &'a Node,
    step: &'a Step,
}

impl StepChecker<'_> {
    fn check(&self, draft: &mut Draft, scope: &mut Scope) {
        self.verb(draft);
        self.belongs(draft);
        self.durations(draft);
        // What a listening address is told first is its own URL.
        if let Some(name) = &self.step.listen {
            scope.names.insert(name.clone());
            scope.listening.insert(name.clone());
        }
        let mut own = scope.clone();
        own.names.extend(self.step.capture.clone());
        self.checker.texts(draft, self.node, &mut own);
        scope.used = own.used;
        self.call(draft);
        self.hook(draft);
        self.group(draft, scope);
        self.callback(draft, scope);
        self.statements(draft);
        let between = format!("{}/between", self.at);
        self.checker
            .steps(draft, &between, &self.step.between, scope);
        if let Some(name) = &self.step.capture {
            if ALWAYS.contains(&name.as_str()) || matches!(name.as_str(), "with" | "matrix") {
                let message = format!("`{name}` has a meaning of its own");
                self.problem(draft, "capture", message, "name the capture otherwise");
            }
            let span = self.span("capture");
            scope.names.insert(name.clone());
            scope.captures.entry(name.clone()).or_insert(span);
        }
    }

    fn span(&self, key: &str) -> Span {
        self.checker.file.node.place(&format!("{}/{key}", self.at))
    }

    fn problem(&self, draft: &mut Draft, key: &str, message: impl Into<String>, help: &str) {
        let at = if key.is_empty() {
            self.at.to_owned()
        } else {
            format!("{}/{key}", self.at)
        };
        draft
            .problems
            .push(self.checker.file.problem(&at, message).help(help));
    }

    fn verbs(&self) -> Vec<&'static str> {
        let step = self.step;
        [
            ("call", step.call.is_some()),
            ("get", step.get.is_some()),
            ("hook", step.hook.is_some()),
            ("listen", step.listen.is_some()),
            ("await", step.r#await.is_some()),
            ("token", step.token.is_some()),
            ("wait", step.wait.is_some()),
            ("use", step.r#use.is_some()),
        ]
        .into_iter()
        .filter_map(|(verb, given)| given.then_some(verb))
        .collect()
    }

    fn verb(&self, draft: &mut Draft) {
        let verbs = self.verbs();
        if verbs.len() != 1 {
            let message = if verbs.is_empty() {
                "a step without a verb".to_owned()
            } else {
                format!("a step with {} verbs: {}", verbs.len(), verbs.join(", "))
            };
            let help = "exactly one of call, get, hook, listen, await, token, wait, use";
            self.problem(draft, "", message, help);
        }
    }

    /// Keys that go with certain verbs only.
    fn belongs(&self, draft: &mut Draft) {
        let verbs = self.verbs();
        let [verb] = verbs[..] else { return };
        let allowed: &[(&str, &[&str])] = &[
            ("with", &["call", "hook", "use"]),
            ("credentials", &["call", "get"]),
            ("as", &["use"]),
            ("accepted", &["call", "get"]),
            ("rejected", &["call", "get"]),
            ("either", &["call", "get"]),
            ("until", &["call", "get", "hook"]),
            ("walk", &["call"]),
            ("answers", &["listen"]),
            ("judge", &["listen", "call"]),
            ("between", &["call"]),
            ("count", &["await"]),
            ("within", &["await"]),
            ("quiet", &["await"]),
            ("capture", &["call", "get", "hook", "await", "token"]),
            ("expect", &["call", "get", "hook", "await"]),
        ];
        for (key, with) in allowed {
            if self.node.get(key).is_some() && !with.contains(&verb) {
                let message = format!("`{key}` does not go with `{verb}`");
                self.problem(
                    draft,
                    key,
                    message,
                    &format!("it goes with {}", with.join(", ")),
                );
            }
        }
        let exclusive = [
            ("accepted", self.step.accepted.is_some()),
            ("rejected", self.step.rejected.is_some()),
            ("either", self.step.either),
        ];
        if exclusive.iter().filter(|(_, given)| *given).count() > 1 {
            let message = "only one of `accepted`, `rejected` and `either`";
            self.problem(
                draft,
                "",
                message,
                "a call is expected to be accepted unless said",
            );
        }
    }

    fn durations(&self, draft: &mut Draft) {
        let step = self.step;
        let until = step.until.as_ref();
        let plain = [
            ("wait", step.wait.as_ref()),
            ("within", step.within.as_ref()),
            ("quiet", step.quiet.as_ref()),
            ("until/within", until.and_then(|u| u.within.as_ref())),
            ("until/every", until.and_then(|u| u.every.as_ref())),
        ];
        for (key, text) in plain {
            if let Some(text) = text.filter(|t| !t.contains("${") && duration(t).is_none()) {
                self.problem(
                    draft,
                    key,
                    format!("`{text}` is no duration"),
                    "such as `250ms`, `3s`, `5m`",
                );
            }
        }
        for (n, answer) in step.answers.iter().enumerate() {
            if let Some(text) = answer.after.as_ref().filter(|t| duration(t).is_none()) {
                let key = format!("answers/{n}/after");
                self.problem(
                    draft,
                    &key,
                    format!("`{text}` is no duration"),
                    "such as `6s`",
                );
            }
        }
        let token = step.token.as_ref();
        let shifts = [
            ("token/issued", token.and_then(|t| t.issued.as_ref())),
            ("token/expires", token.and_then(|t| t.expires.as_ref())),
        ];
        for (key, text) in shifts {
            if let Some(text) = text.filter(|t| !t.contains("${") && shift(t).is_none()) {
                self.problem(
                    draft,
                    key,
                    format!("`{text}` is no duration"),
                    "such as `-5m`, `10m`",
                );
            }
        }
    }

    fn call(&self, draft: &mut Draft) {
        let Some(id) = &self.step.call else { return };
        let Some(operation) = self.checker.operation(id) else {
            let known = self.checker.known(|s| s.operations.keys().collect());
            let known = known.iter().map(String::as_str);
            draft.unknown(self.checker.file, self.span("call"), "operation", id, known);
            return;
        };
        for name in self.step.with.keys() {
            let at = json::join(&format!("{}/with", self.at), name);
            self.checker.parameter(draft, &at, name, operation);
        }
        for parameter in operation
            .parameters
            .iter()
            .filter(|p| p.place == Place::Path)
        {
            if !self.step.with.contains_key(&parameter.name) {
                let message = format!("the path parameter `{}` is missing", parameter.name);
                self.problem(draft, "call", message, "give it under `with`");
            }
        }
        if self.step.walk && operation.list_key.is_none() {
            let message = format!("`{id}` is no list to walk");
            self.problem(
                draft,
                "walk",
                message,
                "only operations with `x-list-key` are walked",
            );
        }
    }

    fn hook(&self, draft: &mut Draft) {
        let Some(name) = &self.step.hook else { return };
        let Some(hook) = hooks::find(name) else {
            let known = HOOKS.iter().map(|h| h.name);
            draft.unknown(self.checker.file, self.span("hook"), "hook", name, known);
            return;
        };
        for missing in hook
            .required
            .iter()
            .filter(|r| !self.step.with.contains_key(**r))
        {
            let message = format!("the hook `{name}` needs `{missing}`");
            self.problem(
                draft,
                "hook",
                message,
                "specs/README.md lists the arguments",
            );
        }
        for given in self.step.with.keys() {
            let known = || hook.required.iter().chain(hook.optional).copied();
            if !hook.open && !known().any(|k| k == given) {
                let at = json::join(&format!("{}/with", self.at), given);
                let span = self.checker.key_span(&at).unwrap_or_default();
                let what = format!("argument of {name}");
                draft.unknown(self.checker.file, span, &what, given, known());
            }
        }
    }

    fn group(&self, draft: &mut Draft, scope: &mut Scope) {
        let Some(name) = &self.step.r#use else { return };
        let Some(group) = self.checker.group(name) else {
            let known = self.checker.known(|s| s.groups.keys().collect());
            let known = known.iter().map(String::as_str);
            draft.unknown(self.checker.file, self.span("use"), "group", name, known);
            return;
        };
        for given in self
            .step
            .with
            .keys()
            .filter(|k| !group.with.contains_key(*k))
        {
            let at = json::join(&format!("{}/with", self.at), given);
            let span = self.checker.key_span(&at).unwrap_or_default();
            let known = group.with.keys().map(String::as_str);
            let what = format!("parameter of the group {name}");
            draft.unknown(self.checker.file, span, &what, given, known);
        }
        if let Some(prefix) = &self.step.r#as {
            scope.names.insert(prefix.clone());
        } else {
            let mut names = BTreeSet::new();
            results(self.checker, name, &mut names, 0);
            scope.names.extend(names);
        }
    }

    fn callback(&self, draft: &mut Draft, scope: &Scope) {
        if let Some(name) = &self.step.r#await
            && !scope.names.contains(name)
        {
            let known = scope.listening.iter().map(String::as_str);
            draft.unknown(
                self.checker.file,
                self.span("await"),
                "listening address",
                name,
                known,
            );
        }
        if let Some(kind) = &self.step.judge
            && !self.checker.kinds.contains_key(kind)
        {
            let known = self.checker.kinds.keys().map(String::as_str);
            draft.unknown(self.checker.file, self.span("judge"), "kind", kind, known);
        }
    }

    fn statements(&self, draft: &mut Draft) {
        for (n, expect) in self.step.expect.iter().enumerate() {
            self.expect(draft, &format!("expect/{n}"), expect);
        }
        for (key, rule) in [
            ("accepted", &self.step.accepted),
            ("rejected", &self.step.rejected),
        ] {
            if let Some(rule) = rule
                && !draft.rules.contains_key(rule)
            {
                let known: Vec<String> = draft.rules.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                draft.unknown(self.checker.file, self.span(key), "rule", rule, known);
            }
        }
        if let Some(until) = &self.step.until
            && until.equals.is_some()
            && until.one_of.is_some()
        {
            let message = "`until` compares with one thing";
            self.problem(draft, "until", message, "either `equals` or `one-of`");
        }
    }

    fn expect(&self, draft: &mut Draft, key: &str, expect: &Expect) {
        match draft.rules.get(&expect.rule).map(|r| &r.origin) {
            Some(Origin::Written(Check::Story {})) => {}
            Some(_) => {
                let message = format!("`{}` is no story rule", expect.rule);
                let help = "`expect` judges rules with `check: { story: {} }`";
                self.problem(draft, &format!("{key}/rule"), message, help);
            }
            None => {
                let known: Vec<String> = draft.rules.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                let span = self.span(&format!("{key}/rule"));
                draft.unknown(self.checker.file, span, "rule", &expect.rule, known);
            }
        }
        let given = [
            expect.equals.is_some(),
            expect.differs.is_some(),
            expect.one_of.is_some(),
            expect.absent.is_some(),
            expect.includes.is_some(),
            expect.excludes.is_some(),
            expect.at_least.is_some(),
            expect.at_most.is_some(),
            expect.same_json.is_some(),
            expect.matches.is_some(),
            expect.unlike.is_some(),
            expect.not_before.is_some(),
        ];
        let count = given.iter().filter(|g| **g).count();
        if count != 1 {
            let message = format!("`expect` with {count} comparisons");
            let help = "exactly one of equals, differs, one-of, absent, includes, excludes, \
                        at-least, at-most, same-json, matches, unlike, not-before";
            self.problem(draft, key, message, help);
        }
        if !expect.at.is_empty() && !expect.at.starts_with('/') {
            let message = format!("`{}` is no JSON Pointer", expect.at);
            let help = format!("write `/{}`", expect.at);
            self.problem(draft, &format!("{key}/at"), message, &help);
        }
        for (name, pattern) in [("matches", &expect.matches), ("unlike", &expect.unlike)] {
            let fault = pattern
                .as_deref()
                .filter(|p| !p.contains("${"))
                .and_then(|p| draft.pattern_fault(p));
            if let Some(fault) = fault {
                let key = format!("{key}/{name}");
                self.problem(draft, &key, fault, "quote and escape it");
            }
        }
    }
}
