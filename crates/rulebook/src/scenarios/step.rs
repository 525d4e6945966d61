//! Checks one step of a scenario: one verb, valid values, and names that resolve.

use super::checker::{ALWAYS, Checker, Scope, results};
use crate::draft::Draft;
use crate::expect::{Comparison, Expect};
use crate::model::{Operation, Origin, ParameterLocation};
use crate::scenario::{TokenSpec, Until};
use crate::spelling::{duration, interpolations, shift};
use crate::step::{Await, Call, Concurrently, Hook, Listen, Step, Use, Verb, Wait};
use conformant_base::json;
use conformant_yaml::{Node, Span};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks one step.
pub(super) struct StepChecker<'a> {
    pub(super) checker: &'a Checker<'a>,
    pub(super) at: &'a str,
    pub(super) node: &'a Node,
    pub(super) step: &'a Step,
}

impl StepChecker<'_> {
    pub(super) fn check(&self, draft: &mut Draft, scope: &mut Scope) {
        // The first use of a listening address is its own URL.
        if let Verb::Listen(listen) = &self.step.verb {
            scope.names.insert(listen.listen.clone());
            scope.listening.insert(listen.listen.clone());
        }
        let mut own = scope.clone();
        own.names.extend(self.step.capture().cloned());
        self.checker.texts(draft, self.node, &mut own);
        if let Verb::Call(call) = &self.step.verb {
            own.use_names_in(&call.with);
        }
        scope.used = own.used;
        match &self.step.verb {
            Verb::Call(call) => self.call(draft, call),
            Verb::Get(_) => {}
            Verb::Hook(hook) => self.hook(draft, hook),
            Verb::Listen(listen) => self.listen(draft, listen),
            Verb::Await(wait) => self.check_await(draft, wait, scope),
            Verb::Token(token) => self.token(draft, &token.token),
            Verb::Wait(wait) => {
                let text = Some(&wait.wait).filter(|text| *text != Wait::SETTLED);
                self.duration(draft, "wait", text);
            }
            Verb::Use(group) => self.group(draft, group, scope),
            Verb::Concurrently(race) => self.race(draft, race, scope),
        }
        self.kind(draft);
        self.statements(draft);
        if let Verb::Call(call) = &self.step.verb {
            let between = format!("{}/between", self.at);
            self.checker.steps(draft, &between, &call.between, scope);
        }
        if let Some(name) = self.step.capture() {
            if ALWAYS.contains(&name.as_str()) || matches!(name.as_str(), "with" | "matrix") {
                let message = format!("`{name}` is a reserved name");
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
        draft.refuse(self.checker.file.problem(&at, message).help(help));
    }

    fn duration(&self, draft: &mut Draft, key: &str, text: Option<&String>) {
        if let Some(text) = text.filter(|t| !t.contains("${") && duration(t).is_none()) {
            let message = format!("invalid duration `{text}`");
            self.problem(draft, key, message, "such as `250ms`, `3s`, `5m`");
        }
    }

    fn token(&self, draft: &mut Draft, token: &TokenSpec) {
        for (key, text) in [
            ("token/issued", &token.issued),
            ("token/expires", &token.expires),
        ] {
            if let Some(text) = text
                .as_ref()
                .filter(|t| !t.contains("${") && shift(t).is_none())
            {
                let message = format!("invalid duration `{text}`");
                self.problem(draft, key, message, "such as `-5m`, `10m`");
            }
        }
    }

    fn call(&self, draft: &mut Draft, call: &Call) {
        self.until(draft, call.until.as_ref());
        let id = &call.call;
        let Some(operation) = self.checker.operation(id) else {
            let known = self.checker.known(|s| s.operations.keys().collect());
            let known = known.iter().map(String::as_str);
            draft.unknown(self.checker.file, self.span("call"), "operation", id, known);
            return;
        };
        for name in call.with.keys() {
            let at = json::join(&format!("{}/with", self.at), name);
            self.checker.parameter(draft, &at, name, operation);
        }
        for parameter in operation
            .parameters
            .iter()
            .filter(|p| p.place == ParameterLocation::Path)
        {
            if !call.with.contains_key(&parameter.name) {
                let (message, help) = self.checker.missing(operation, parameter);
                self.problem(draft, "call", message, &help);
            }
        }
        if call.walk && operation.list_key.is_none() {
            let message = format!("`{id}` does not return a list");
            self.problem(
                draft,
                "walk",
                message,
                "only operations with `x-list-key` are walked",
            );
        }
    }

    fn until(&self, draft: &mut Draft, until: Option<&Until>) {
        let Some(until) = until else { return };
        self.duration(draft, "until/within", until.within.as_ref());
        self.duration(draft, "until/every", until.every.as_ref());
        if until.equals.is_some() && until.one_of.is_some() {
            let message = "`until` has two comparisons";
            self.problem(
                draft,
                "until",
                message,
                "expected either `equals` or `one-of`",
            );
        }
    }

    fn hook(&self, draft: &mut Draft, asked: &Hook) {
        let name = &asked.hook;
        let index = std::sync::Arc::clone(&draft.index);
        let Some(hook) = index.hook(name) else {
            let known = index.hooks().map(|hook| hook.name.as_str());
            draft.unknown(self.checker.file, self.span("hook"), "hook", name, known);
            return;
        };
        for missing in hook
            .required
            .iter()
            .filter(|r| !asked.with.contains_key(*r))
        {
            let message = format!("the hook `{name}` needs `{missing}`");
            self.problem(
                draft,
                "hook",
                message,
                "specs/README.md lists the arguments",
            );
        }
        for given in asked.with.keys() {
            let known = || {
                let known = hook.required.iter().chain(&hook.optional);
                known.map(String::as_str)
            };
            if !hook.open && !known().any(|k| k == given) {
                let at = json::join(&format!("{}/with", self.at), given);
                let span = self.checker.key_span(&at).unwrap_or_default();
                let what = format!("argument of {name}");
                draft.unknown(self.checker.file, span, &what, given, known());
            }
        }
    }

    fn group(&self, draft: &mut Draft, used: &Use, scope: &mut Scope) {
        let name = &used.r#use;
        let Some(group) = self.checker.group(name) else {
            let known = self.checker.known(|s| s.groups.keys().collect());
            let known = known.iter().map(String::as_str);
            draft.unknown(self.checker.file, self.span("use"), "group", name, known);
            return;
        };
        for given in used.with.keys().filter(|k| !group.with.contains_key(*k)) {
            let at = json::join(&format!("{}/with", self.at), given);
            let span = self.checker.key_span(&at).unwrap_or_default();
            let known = group.with.keys().map(String::as_str);
            let what = format!("parameter of the group {name}");
            draft.unknown(self.checker.file, span, &what, given, known);
        }
        if let Some(prefix) = &used.r#as {
            scope.names.insert(prefix.clone());
        } else {
            let mut names = BTreeSet::new();
            results(self.checker, name, &mut names, 0);
            scope.names.extend(names);
        }
    }

    /// Requests that are sent at the same time know nothing of each other.
    fn race(&self, draft: &mut Draft, race: &Concurrently, scope: &mut Scope) {
        let (size, sizes) = (race.size(), Concurrently::SIZES);
        if !sizes.contains(&size) {
            let message = format!(
                "`concurrently` sends {size} requests: expected {} to {}",
                sizes.start(),
                sizes.end()
            );
            let help = "repeat a call with `repeat`, or move other requests to steps of their own";
            self.problem(draft, "concurrently", message, help);
        }
        let before = scope.clone();
        for (n, step) in race.concurrently.iter().enumerate() {
            let key = format!("concurrently/{n}");
            let own = step.capture();
            let siblings = race.concurrently.iter().filter_map(Step::capture);
            let siblings: BTreeSet<&String> = siblings
                .filter(|name| own != Some(*name) && !before.names.contains(*name))
                .collect();
            let text = step.values().cloned().collect::<Value>().to_string();
            let read = interpolations(&text).unwrap_or_default();
            if let Some(read) = read.iter().find(|one| siblings.contains(&one.path[0])) {
                let message = format!(
                    "`${{{}}}` is captured by a request that is sent at the same time",
                    read.path[0]
                );
                let help = "capture it in an earlier step";
                self.problem(draft, &key, message, help);
                continue;
            }
            if let Some(message) = unfit_for_a_race(step) {
                let help = "state it in a step after `concurrently`";
                self.problem(draft, &key, message, help);
            }
            let at = format!("{}/{key}", self.at);
            if let Some(node) = crate::schemas::node_at(self.checker.file, &at) {
                let mut own = before.clone();
                let checker = StepChecker {
                    checker: self.checker,
                    at: &at,
                    node,
                    step,
                };
                checker.check(draft, &mut own);
                scope.names.append(&mut own.names);
                scope.captures.append(&mut own.captures);
                scope.used.append(&mut own.used);
            }
        }
    }

    fn listen(&self, draft: &mut Draft, listen: &Listen) {
        for (n, answer) in listen.answers.iter().enumerate() {
            if let Some(text) = answer.after.as_ref().filter(|t| duration(t).is_none()) {
                let (key, message) = (
                    format!("answers/{n}/after"),
                    format!("invalid duration `{text}`"),
                );
                self.problem(draft, &key, message, "such as `6s`");
            }
        }
    }

    fn check_await(&self, draft: &mut Draft, wait: &Await, scope: &Scope) {
        self.duration(draft, "within", wait.within.as_ref());
        self.duration(draft, "quiet", wait.quiet.as_ref());
        if !scope.names.contains(&wait.r#await) {
            let known = scope.listening.iter().map(String::as_str);
            let (file, span) = (self.checker.file, self.span("await"));
            draft.unknown(file, span, "listening address", &wait.r#await, known);
        }
    }

    fn kind(&self, draft: &mut Draft) {
        if let Some(kind) = self.step.judge()
            && !self.checker.kinds.contains_key(kind)
        {
            let known = self.checker.kinds.keys().map(String::as_str);
            draft.unknown(self.checker.file, self.span("judge"), "kind", kind, known);
        }
    }

    fn statements(&self, draft: &mut Draft) {
        for (n, expect) in self.step.expect().iter().enumerate() {
            self.expect(draft, &format!("expect/{n}"), expect);
        }
        for (n, rule) in self.step.shows().iter().enumerate() {
            let is_story = match draft.rules.get(rule).map(|r| &r.origin) {
                Some(Origin::Written(written)) => Some(written.is_scenario_rule()),
                Some(_) => Some(false),
                None => None,
            };
            if is_story == Some(true) {
                let message = format!("`{rule}` is a scenario rule, which only a statement judges");
                self.problem(
                    draft,
                    &format!("shows/{n}"),
                    message,
                    "state it in `expect`",
                );
            } else if is_story.is_none() {
                let known: Vec<String> = draft.rules.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                let span = self.span(&format!("shows/{n}"));
                draft.unknown(self.checker.file, span, "rule", rule, known);
            }
        }
        for (key, rule) in [
            ("accepted", self.step.accepted()),
            ("rejected", self.step.rejected()),
        ] {
            if let Some(rule) = rule
                && !draft.rules.contains_key(rule)
            {
                let known: Vec<String> = draft.rules.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                draft.unknown(self.checker.file, self.span(key), "rule", rule, known);
            }
        }
    }

    fn expect(&self, draft: &mut Draft, key: &str, expect: &Expect) {
        match draft.rules.get(&expect.rule).map(|r| &r.origin) {
            Some(Origin::Written(written)) if written.is_scenario_rule() => {}
            Some(_) => {
                let message = format!("`{}` is not a rule of scenarios", expect.rule);
                let help = "`expect` judges rules with `check: { scenario: {} }`";
                self.problem(draft, &format!("{key}/rule"), message, help);
            }
            None => {
                let known: Vec<String> = draft.rules.keys().cloned().collect();
                let known = known.iter().map(String::as_str);
                let span = self.span(&format!("{key}/rule"));
                draft.unknown(self.checker.file, span, "rule", &expect.rule, known);
            }
        }
        if !expect.at.is_empty() && !expect.at.starts_with('/') {
            let message = format!("invalid JSON Pointer `{}`", expect.at);
            let help = format!("write `/{}`", expect.at);
            self.problem(draft, &format!("{key}/at"), message, &help);
        }
        let (name, pattern) = if let Comparison::Matches(pattern) = &expect.is {
            ("matches", pattern)
        } else if let Comparison::Unlike(pattern) = &expect.is {
            ("unlike", pattern)
        } else {
            return;
        };
        if let Some(fault) = draft
            .pattern_fault(pattern)
            .filter(|_| !pattern.contains("${"))
        {
            let key = format!("{key}/{name}");
            self.problem(draft, &key, fault, "quote and escape it");
        }
    }
}

/// Why a step cannot be one of several that are taken at the same time.
fn unfit_for_a_race(step: &Step) -> Option<String> {
    let word = step.verb.word();
    let Verb::Call(call) = &step.verb else {
        let is_hook = step.hook().is_some();
        let states = is_hook && !step.expect().is_empty();
        return match (is_hook, states) {
            (false, _) => Some(format!(
                "`{word}` cannot be sent at the same time as another step"
            )),
            (true, true) => {
                Some("`expect` does not apply to requests sent at the same time".to_owned())
            }
            (true, false) => None,
        };
    };
    let unfit = [
        ("expect", !call.expect.is_empty()),
        ("until", call.until.is_some()),
        ("walk", call.walk),
        ("accepted", step.accepted().is_some()),
        ("rejected", step.rejected().is_some()),
    ];
    let (key, _) = unfit.into_iter().find(|(_, is_given)| *is_given)?;
    Some(format!(
        "`{key}` does not apply to requests sent at the same time"
    ))
}

/// Whether a case of that name can be derived from the operation (specs/README.md, Scenarios).
pub(super) fn is_case(case: &str, operation: &Operation) -> bool {
    let parameter = |name: &str| operation.parameters.iter().any(|p| p.name == name);
    let general = [
        "happy",
        "all-optional",
        "credentials-none",
        "credentials-wrong",
        "credentials-unknown",
        "credentials-account",
        "credentials-near",
        "credentials-mixed",
        "page-credentials-none",
        "url-credentials-none",
        "link-credentials-none",
        "walk",
        "page-urls",
        "beyond-a-page",
        "path-near",
        "in-turn",
        "refused-then-listed",
        "race-limit",
        "race-creations",
        "race-fields",
        "race-values",
        "race-deletion",
    ];
    let of_parameters = [
        "-foreign",
        "-at-max",
        "-over-max",
        "-at-min",
        "-under-min",
        "-near",
        "-other",
        "-elsewhere",
        "-second-wrong",
        "-rich",
    ];
    general.contains(&case)
        || ["without-", "optional-", "unknown-", "race-"]
            .iter()
            .any(|prefix| case.strip_prefix(prefix).is_some_and(parameter))
        || of_parameters
            .iter()
            .any(|suffix| case.strip_suffix(suffix).is_some_and(parameter))
        || case
            .split_once('=')
            .is_some_and(|(name, _)| parameter(name))
}
