//! Checks scenarios, groups and happy paths as a whole: names in scope, unused captures, and an accepted call for each
//! rejection.
//!
//! Single steps are checked in [`super::step`].

use super::paths::PathKinds;
use super::section;
use super::step::{StepChecker, is_case};
use crate::draft::{Draft, File, items_of};
use crate::model::{Kind, Operation, Parameter, ParameterLocation, Service};
use crate::scenario::{Group, HappyPath, Scenario};
use crate::spelling::interpolations;
use crate::step::Step;
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_yaml::{Content, Node, Span};
use std::collections::BTreeSet;

/// Names that every text may interpolate.
pub(super) const ALWAYS: [&str; 4] = ["target", "unique", "now", "index"];

/// Names that a text may interpolate at one point of a list of steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) names: BTreeSet<String>,
    pub(super) used: BTreeSet<String>,
    /// Captures of this list, with their places.
    pub(super) captures: SortedMap<String, Span>,
    pub(super) listening: BTreeSet<String>,
}

impl Scope {
    /// Marks the interpolated names in parameters as used.
    pub(super) fn use_names_in(&mut self, with: &serde_json::Map<String, serde_json::Value>) {
        for text in with.values().filter_map(serde_json::Value::as_str) {
            let found = interpolations(text).unwrap_or_default();
            self.used
                .extend(found.into_iter().map(|one| one.path[0].clone()));
        }
    }

    fn knows(&self, name: &str) -> bool {
        ALWAYS.contains(&name) || self.names.contains(name)
    }
}

/// Checks the scenarios of one file.
#[derive(Clone, Copy)]
pub(super) struct Checker<'a> {
    pub(super) file: &'a File,
    pub(super) service: &'a Service,
    pub(super) services: &'a SortedMap<String, Service>,
    pub(super) kinds: &'a SortedMap<String, Kind>,
    pub(super) path_kinds: &'a PathKinds,
}

impl<'a> Checker<'a> {
    /// The service of a name, and the name there: `media/upload-media` is an
    /// operation of another service.
    fn owner<'n>(&self, name: &'n str) -> Option<(&'a Service, &'n str)> {
        match name.split_once('/') {
            Some((service, name)) => Some((self.services.get(service)?, name)),
            None => Some((self.service, name)),
        }
    }

    pub(super) fn operation(&self, name: &str) -> Option<&'a Operation> {
        let (service, name) = self.owner(name)?;
        service.operations.get(name)
    }

    pub(super) fn group(&self, name: &str) -> Option<&'a Group> {
        let (service, name) = self.owner(name)?;
        service.groups.get(name)
    }

    /// Names of operations or groups as this file would write them.
    pub(super) fn known(&self, of: impl Fn(&'a Service) -> Vec<&'a String>) -> Vec<String> {
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

    /// The steps of a group, in the context of its service.
    fn inside(&self, name: &str) -> Option<(Self, &'a [Step])> {
        let (service, _) = self.owner(name)?;
        let group = self.group(name)?;
        Some((Self { service, ..*self }, &group.steps))
    }

    pub(super) fn groups(&self, draft: &mut Draft) {
        for member in section(self.file, "groups") {
            let Some(group) = self.service.groups.get(&*member.key) else {
                continue;
            };
            let at = json::join("/groups", &member.key);
            let mut scope = Scope::default();
            scope.names.insert("with".to_owned());
            self.with_names(draft, &member.value, &group.with);
            self.steps(draft, &format!("{at}/steps"), &group.steps, &mut scope);
            if self.uses(&member.key, &mut BTreeSet::new()) {
                let message = format!("the group `{}` uses itself", member.key);
                draft.refuse(self.file.problem_at(member.key_span, message));
            }
        }
    }

    /// Checks that `${with.NAME}` in a group is one of its parameters.
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

    /// Whether the group uses itself.
    fn uses(&self, name: &str, seen: &mut BTreeSet<String>) -> bool {
        let steps = self.service.groups.get(name).map(|g| g.steps.as_slice());
        let groups = steps.unwrap_or_default().iter().filter_map(Step::group);
        for used in groups.map(|group| &group.r#use) {
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

    pub(super) fn happy_paths(&self, draft: &mut Draft) {
        for member in section(self.file, "operations") {
            let (Some(happy), Some(operation)) = (
                self.service.happy.get(&*member.key),
                self.service.operations.get(&*member.key),
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
            scope.use_names_in(&happy.with);
            self.steps(
                draft,
                &format!("{at}/more"),
                happy.more.as_deref().unwrap_or_default(),
                &mut scope,
            );
            self.unused(draft, &scope);
            self.happy_path(draft, &at, happy, operation);
        }
    }

    fn happy_path(&self, draft: &mut Draft, at: &str, happy: &HappyPath, operation: &Operation) {
        for parameter in operation.parameters.iter().filter(|p| p.required) {
            if happy.with.contains_key(&parameter.name) {
                continue;
            }
            let problem = if parameter.place == ParameterLocation::Path {
                let (message, help) = self.missing(operation, parameter);
                self.file.problem(at, message).help(help)
            } else {
                let message = format!("the required parameter `{}` is missing", parameter.name);
                let problem = self.file.problem(at, message);
                problem.help("`with` names every required parameter")
            };
            draft.refuse(problem);
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
            let message = format!("`{name}` is both in `with` and in `optional`");
            let at = json::join(&format!("{at}/optional"), name);
            draft.refuse(self.file.problem(&at, message));
        }
        for (case, reason) in &happy.except {
            let at = json::join(&format!("{at}/except"), case);
            if reason.trim().is_empty() {
                let message = format!("missing reason for the exception `{case}`");
                draft.refuse(self.file.problem(&at, message));
            }
            if !is_case(case, operation) {
                let message = format!("no case `{case}` is derived from `{}`", operation.id);
                draft.refuse(
                    self.file
                        .problem(&at, message)
                        .help("specs/README.md names the derived cases"),
                );
            }
        }
    }

    pub(super) fn scenarios(&self, draft: &mut Draft) {
        let items = items_of(&self.file.node, "scenarios");
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
            self.check_rejections(draft, &at, scenario);
            if scenario.steps.is_empty() {
                draft.refuse(self.file.problem(&at, "a scenario without steps"));
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
                draft.refuse(self.file.problem(&at, message));
            }
            if !used.contains(name) {
                let message = format!("the matrix `{name}` is never used");
                draft.refuse(self.file.problem(&at, message));
            }
        }
    }

    /// Checks that a rejection has an accepted call of the same operation.
    fn check_rejections(&self, draft: &mut Draft, at: &str, scenario: &Scenario) {
        let mut accepted = BTreeSet::new();
        self.accepted_calls(&scenario.steps, &mut accepted, 0);
        for (n, step) in scenario.steps.iter().enumerate() {
            if let (Some(operation), Some(_)) = (step.operation(), step.rejected())
                && !accepted.contains(&self.whole(operation))
            {
                let message = format!("the rejection of `{operation}` has no accepted call");
                draft.refuse(
                    self.file
                        .problem(&format!("{at}/steps/{n}/rejected"), message)
                        .help("add a valid request to the same scenario"),
                );
            }
        }
    }

    fn accepted_calls(&self, steps: &[Step], accepted: &mut BTreeSet<String>, depth: usize) {
        for step in steps {
            if step.rejected().is_none() && !step.is_either() {
                accepted.extend(step.operation().map(|call| self.whole(call)));
            }
            if let Some((inside, steps)) = step.group().and_then(|g| self.inside(&g.r#use))
                && depth < 16
            {
                inside.accepted_calls(steps, accepted, depth + 1);
            }
            self.accepted_calls(step.nested(), accepted, depth);
        }
    }

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
                draft.refuse(
                    self.file
                        .problem_at(*span, message)
                        .help("use or remove it"),
                );
            }
        }
    }

    pub(super) fn steps(&self, draft: &mut Draft, at: &str, steps: &[Step], scope: &mut Scope) {
        for (n, step) in steps.iter().enumerate() {
            let at = format!("{at}/{n}");
            let Some(node) = crate::schemas::node_at(self.file, &at) else {
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

    /// Resolves every interpolation in the texts of a node.
    pub(super) fn texts(&self, draft: &mut Draft, node: &Node, scope: &mut Scope) {
        for (span, text) in texts(node) {
            let found = match interpolations(&text) {
                Ok(found) => found,
                Err((_, reason)) => {
                    draft.refuse(self.file.problem_at(span, format!("in `{text}`: {reason}")));
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
        let index = std::sync::Arc::clone(&draft.index);
        let services = index.iter().map(|(name, _)| name);
        let known = services.chain(["people"]).collect::<Vec<_>>();
        match path.get(1) {
            Some(service) if path.len() > 2 => {
                if !known.contains(&service.as_str()) {
                    draft.unknown(self.file, span, "service", service, known);
                }
            }
            Some(_) | None => draft.refuse(
                self.file
                    .problem_at(span, "`target` is followed by a service and a key")
                    .help("such as `${target.flow.flow_sid}`"),
            ),
        }
    }

    pub(super) fn parameter(&self, draft: &mut Draft, at: &str, name: &str, operation: &Operation) {
        if !operation.parameters.iter().any(|p| p.name == name) {
            let span = self
                .key_span(at)
                .unwrap_or_else(|| self.file.node.place(at));
            let known = operation.parameters.iter().map(|p| p.name.as_str());
            let what = format!("parameter of {}", operation.id);
            draft.unknown(self.file, span, &what, name, known);
        }
    }

    /// The problem and the advice for a path parameter that is neither given nor filled.
    pub(super) fn missing(&self, operation: &Operation, parameter: &Parameter) -> (String, String) {
        let name = &parameter.name;
        match self.path_kinds.kind_of(operation, name) {
            Some(kind) => (
                format!(
                    "the path parameter `{name}` is missing, and no earlier step creates or names a {kind}"
                ),
                format!(
                    "give `{name}` under `with`, or add `capture` to an earlier step that creates a {kind}"
                ),
            ),
            None => (
                format!("the path parameter `{name}` is missing"),
                format!("give `{name}` under `with`"),
            ),
        }
    }

    pub(super) fn key_span(&self, at: &str) -> Option<Span> {
        let (parent, _) = at.rsplit_once('/')?;
        let key = json::segments(at).last()?;
        let node = crate::schemas::node_at(self.file, parent)?;
        let member = node.members().iter().find(|m| m.key == key)?;
        Some(member.key_span)
    }
}

fn texts(node: &Node) -> Vec<(Span, String)> {
    let mut found = Vec::new();
    collect_texts(node, &mut found);
    found
}

fn collect_texts(node: &Node, found: &mut Vec<(Span, String)>) {
    match &node.content {
        Content::Text(text) => found.push((node.span, text.to_string())),
        Content::List(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Content::Map(members) => members.iter().for_each(|m| collect_texts(&m.value, found)),
        Content::Null | Content::Bool(_) | Content::Number(_) => {}
    }
}

/// Names of a group's results after the `use` step.
pub(super) fn results(
    checker: &Checker<'_>,
    group: &str,
    names: &mut BTreeSet<String>,
    depth: usize,
) {
    let Some((inside, steps)) = checker.inside(group).filter(|_| depth < 16) else {
        return;
    };
    for step in steps {
        names.extend(step.names().cloned());
        if let Some(used) = step.group().filter(|group| group.r#as.is_none()) {
            results(&inside, &used.r#use, names, depth + 1);
        }
    }
}
