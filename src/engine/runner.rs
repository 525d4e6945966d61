//! One scenario, step by step: sends, waits, captures, and leaves evidence.
//!
//! It concludes nothing: what the evidence means is the judge's business.

use super::request::{self, BuildError};
use super::session::{SendFault, Session};
use super::template::{Scope, TemplateError, wait_of};
use super::{body, callbacks, provision, token};
use crate::http::{Request, Response};
use crate::json::{self, Parsed};
use crate::judge::evidence::{
    Body, Evidence, Exchange, Expectation, Outcome, Payload, Statement, Walk, WalkEnd,
};
use crate::judge::{Acceptance, acceptance};
use crate::rulebook::scenario::{Scenario, Step, Until};
use crate::rulebook::{Operation, Rulebook, Service};
use crate::schema::Schemas;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pages of one walk, and items over all its pages. A list may be longer, so that a walk that comes so
/// far accuses nobody.
const WALK_PAGES_MAX: usize = 1_000;
const WALK_ITEMS_MAX: usize = 100_000;
/// Empty pages in a row at the end of so many pages that are no list any more.
const WALK_IDLE_PAGES_MAX: usize = 100;
/// Bytes of all answers of one scenario.
const EVIDENCE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Bytes of an answer's body that are kept beside the document that was read from it.
const BODY_EXCERPT_BYTES: usize = 64 * 1024;
/// Groups within groups.
const GROUP_DEPTH_MAX: usize = 16;

/// Why a scenario went no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It does not apply here, and why.
    NotApplicable(String),
    /// It could not be carried on, and why; nobody is accused.
    Inconclusive(String),
    /// A step was refused or accepted against its expectation; the judge says by which rule.
    Unexpected,
    /// The run was interrupted.
    Interrupted,
    /// The target could not be reached at all.
    Unreachable(String),
    /// Our own fault: scenario or configuration.
    Error(String),
}

/// What came of one scenario.
#[derive(Debug)]
pub(crate) struct Story {
    /// All that was observed.
    pub evidence: Evidence,
    /// Why it ended early, where it did.
    pub stop: Option<Stop>,
}

/// Plays a scenario of `service` in `session`.
pub(crate) fn play(
    rulebook: &Rulebook,
    schemas: &Schemas,
    service: &Service,
    scenario: &Scenario,
    session: &dyn Session,
    seed: u64,
    interrupted: &AtomicBool,
) -> Story {
    let salt = format!("{seed}/{}", scenario.id);
    let target = provision::values(session.settings());
    let configured = target.clone();
    let mut runner = Runner {
        rulebook,
        service,
        session,
        interrupted,
        scope: Scope::new(rulebook, schemas, target, salt),
        evidence: Evidence {
            scenario: scenario.id.clone(),
            configured,
            ..Evidence::default()
        },
        step: 0,
        body_bytes: 0,
        depth: 0,
        setup: false,
        soft_stop: None,
        refused: BTreeSet::new(),
        judged_as: BTreeMap::new(),
    };
    let matrix: Map<String, Value> = scenario
        .matrix
        .iter()
        .filter_map(|(name, values)| Some((name.clone(), values.first()?.clone())))
        .collect();
    runner
        .scope
        .set_local("matrix", Some(Value::Object(matrix)));
    let mut stop = None;
    for (index, step) in scenario.steps.iter().enumerate() {
        runner.step = index + 1;
        if let Err(why) = runner.step(step) {
            runner.miss(&scenario.steps[index..], &why);
            stop = Some(why);
            break;
        }
    }
    runner.evidence.now = Some(session.now());
    let stop = stop.or(runner.soft_stop);
    Story {
        evidence: runner.evidence,
        stop,
    }
}

struct Runner<'a> {
    rulebook: &'a Rulebook,
    service: &'a Service,
    session: &'a dyn Session,
    interrupted: &'a AtomicBool,
    scope: Scope<'a>,
    evidence: Evidence,
    step: usize,
    /// Bytes of all bodies so far.
    body_bytes: usize,
    depth: usize,
    /// Within a group or set-up: failures accuse nobody.
    setup: bool,
    /// Something could not be stated, but the story went on.
    soft_stop: Option<Stop>,
    /// Captures of calls that were free to be refused and were; steps that need them are skipped.
    refused: BTreeSet<String>,
    /// Kind that the callbacks at a listening address are judged as.
    judged_as: BTreeMap<String, String>,
}

/// What a call brought.
struct Called {
    /// Index of the exchange.
    exchange: usize,
    acceptance: Acceptance,
    value: Arc<Value>,
    kind: Option<String>,
}

impl From<TemplateError> for Stop {
    fn from(error: TemplateError) -> Self {
        match error {
            TemplateError::Missing(ref name) if name.starts_with("target.") => {
                Self::NotApplicable(format!("not configured: {}", configuration_key(name)))
            }
            TemplateError::Missing(_) | TemplateError::Broken { .. } => {
                Self::Inconclusive(error.to_string())
            }
            TemplateError::Malformed(why) => Self::Error(why),
        }
    }
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Unconfigured { .. } | BuildError::NoCredentials(_) => {
                Self::NotApplicable(error.to_string())
            }
            BuildError::PathParameter(_)
            | BuildError::UnknownParameter(_)
            | BuildError::Unsendable { .. } => Self::Error(error.to_string()),
        }
    }
}

impl<'a> Runner<'a> {
    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        if self.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        if self.needs_refused(step) {
            return Ok(());
        }
        self.scope.set_now(self.session.now());
        let outer = self.setup;
        self.setup = outer || step.setup;
        let done = match step.repeat {
            None => self.once(step),
            Some(times) => self.repeatedly(step, times),
        };
        self.setup = outer;
        done.map_err(|why| match why {
            // What ends early because the run does says nothing about the target.
            Stop::Inconclusive(_) | Stop::Unreachable(_) if self.is_interrupted() => {
                Stop::Interrupted
            }
            Stop::NotApplicable(_)
            | Stop::Inconclusive(_)
            | Stop::Unexpected
            | Stop::Interrupted
            | Stop::Unreachable(_)
            | Stop::Error(_) => why,
        })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// True when a parameter reads what a refused call did not bring.
    fn needs_refused(&self, step: &Step) -> bool {
        let reads = |value: &Value| {
            let text = value.to_string();
            let names = crate::rulebook::interpolations(&text).unwrap_or_default();
            names.iter().any(|one| self.refused.contains(&one.path[0]))
        };
        !self.refused.is_empty() && step.with.values().any(reads)
    }

    fn repeatedly(&mut self, step: &Step, times: usize) -> Result<(), Stop> {
        let mut results = Vec::new();
        for index in 0..times {
            let before = self.scope.set_local("index", Some(json!(index)));
            let name = step.capture.as_deref().unwrap_or("result");
            let known = self.scope.captures();
            let single = Step {
                capture: Some(name.to_owned()),
                ..step.clone()
            };
            let done = self.once(&single);
            self.scope.set_local("index", before);
            done?;
            let mut new = self.scope.collect_since(&known);
            results.extend(new.remove(name));
        }
        if let Some(name) = &step.capture {
            self.scope.capture(name, Value::Array(results), None);
        }
        Ok(())
    }

    fn once(&mut self, step: &Step) -> Result<(), Stop> {
        if let Some(operation) = &step.call {
            self.call_step(step, operation)
        } else if let Some(url) = &step.get {
            self.get_step(step, url)
        } else if let Some(hook) = &step.hook {
            self.hook_step(step, hook)
        } else if let Some(name) = &step.listen {
            self.listen_step(step, name)
        } else if let Some(name) = &step.r#await {
            self.await_step(step, name)
        } else if let Some(spec) = &step.token {
            let application = self.session.settings().targets.get("auth");
            let built = token::build(spec, &self.scope, application, self.session.now())?;
            self.finish(step, built, None, None)
        } else if let Some(text) = &step.wait {
            let text = self.scope.fill_text(text)?;
            let wait = text.as_str().and_then(wait_of);
            self.session
                .wait(wait.ok_or_else(|| Stop::Error(format!("not a duration: {text}")))?);
            Ok(())
        } else if let Some(group) = &step.r#use {
            self.use_step(step, group)
        } else {
            Err(Stop::Error("a step without a verb".to_owned()))
        }
    }

    fn use_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        let (service, group_name) = match name.split_once('/') {
            Some((service, group)) => (self.rulebook.services.get(service), group),
            None => (Some(self.service), name),
        };
        let service = service.ok_or_else(|| Stop::Error(format!("no service for group {name}")))?;
        let group = service
            .groups
            .get(group_name)
            .ok_or_else(|| Stop::Error(format!("no group is named {name}")))?;
        if self.depth >= GROUP_DEPTH_MAX {
            return Err(Stop::Error(format!(
                "groups are nested too deeply at {name}"
            )));
        }
        let mut with = group.with.clone();
        with.extend(step.with.clone());
        let with = self.scope.fill_map(&with)?;
        let known = self.scope.captures();
        let outer_with = self.scope.set_local("with", Some(Value::Object(with)));
        let outer = (self.setup, self.service);
        self.setup = true;
        self.service = service;
        self.depth += 1;
        let done = group.steps.iter().try_for_each(|inner| self.step(inner));
        self.depth -= 1;
        (self.setup, self.service) = outer;
        self.scope.set_local("with", outer_with);
        done?;
        if let Some(prefix) = &step.r#as {
            let new = self.scope.collect_since(&known);
            self.scope.capture(prefix, Value::Object(new), None);
        }
        Ok(())
    }

    fn call_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        let operation = self.operation(name)?;
        if !self
            .session
            .settings()
            .targets
            .contains_key(&operation.service)
        {
            return Err(Stop::NotApplicable(format!(
                "service {} is not targeted",
                operation.service
            )));
        }
        provision::provide(&mut self.scope, self.session, step)?;
        let called = match &step.until {
            Some(until) => self.poll(step, operation, until)?,
            None => self.call(step, operation)?,
        };
        let mut value = Arc::clone(&called.value);
        let mut kind = called.kind.clone();
        if step.walk {
            value = Arc::new(self.walk(step, operation, &called)?);
            kind = None;
        }
        let expected = self.as_expected(step, &called);
        if matches!(called.acceptance, Acceptance::Rejected(_)) {
            if let Some(kind) = &step.judge {
                self.session.mangle_payload(kind, Arc::make_mut(&mut value));
                let value = Arc::clone(&value);
                self.evidence.payloads.push(Payload {
                    kind: kind.clone(),
                    value,
                    notes: Vec::new(),
                    step: self.step,
                });
            }
            if step.either {
                self.refused.extend(step.capture.clone());
                return expected;
            }
        }
        if let Some(name) = &step.capture {
            self.refused.remove(name);
        }
        self.finish(step, value, kind, Some(called.exchange))?;
        expected
    }

    fn operation(&self, name: &str) -> Result<&'a Operation, Stop> {
        let found = match name.split_once('/') {
            Some((service, id)) => self.rulebook.operation(service, id),
            None => self.rulebook.operation(&self.service.name, name),
        };
        found.ok_or_else(|| Stop::Error(format!("no operation is named {name}")))
    }

    fn call(&mut self, step: &Step, operation: &Operation) -> Result<Called, Stop> {
        let with = self.scope.fill_map(&step.with)?;
        let settings = self.session.settings();
        let target = &settings.targets[&operation.service];
        let mut built = request::build(operation, target, &with, step.credentials)?;
        let (origin, prefix) = split_url(&target.url);
        built.request.target = format!("{prefix}{}", built.request.target);
        let own_rule = format!("{}/{}", operation.service, operation.id);
        let expectation = match (&step.rejected, &step.accepted) {
            (Some(rule), _) => Expectation::Rejected(rule.clone()),
            (None, Some(rule)) => Expectation::Accepted(rule.clone()),
            (None, None) if step.either => Expectation::Either,
            (None, None) => Expectation::Accepted(own_rule),
        };
        let exchange = Exchange {
            step: self.step,
            service: operation.service.clone(),
            operation: operation.id.clone(),
            sent: built.sent,
            credentials: step.credentials,
            base: origin.to_owned(),
            credentials_hint: request::curl_credentials(target, step.credentials),
            outcome: Outcome::Fault {
                cause: String::new(),
                detail: String::new(),
            },
            expectation,
            at: self.session.now(),
            setup: self.setup,
            request: built.request,
        };
        self.exchange(exchange, operation)
    }

    /// Sends, and keeps what came of it.
    fn exchange(&mut self, mut exchange: Exchange, operation: &Operation) -> Result<Called, Stop> {
        let answer = self.session.send(&exchange.service, &exchange.request);
        let answer = answer.and_then(|response| self.within_budget(response));
        let unreachable = matches!(&answer, Err(fault) if fault.unreachable);
        let detail = answer
            .as_ref()
            .err()
            .map(|f| format!("{}: {}", f.cause, f.detail));
        exchange.outcome = outcome(answer, operation, self.rulebook);
        let acceptance = acceptance(self.rulebook, &exchange, Some(operation));
        let value = exchange
            .document()
            .map_or_else(|| Arc::new(Value::Null), Arc::clone);
        let kind = match &acceptance {
            Acceptance::Accepted => operation.response.clone(),
            Acceptance::Rejected(_) => operation.error.clone(),
            Acceptance::Inconclusive(_) => None,
        };
        let index = self.evidence.exchanges.len();
        self.evidence.exchanges.push(exchange);
        if unreachable {
            return Err(Stop::Unreachable(detail.unwrap_or_default()));
        }
        Ok(Called {
            exchange: index,
            acceptance,
            value,
            kind,
        })
    }

    /// Evidence is kept until the scenario is judged, so there is an end to how much.
    fn within_budget(&mut self, response: Response) -> Result<Response, SendFault> {
        self.body_bytes += response.body.len();
        if self.body_bytes <= EVIDENCE_BYTES_MAX {
            return Ok(response);
        }
        Err(SendFault {
            cause: format!("evidence-over-limit({} MiB)", EVIDENCE_BYTES_MAX >> 20),
            detail: "the answers of this scenario are larger in all".to_owned(),
            unreachable: false,
        })
    }

    fn poll(&mut self, step: &Step, operation: &Operation, until: &Until) -> Result<Called, Stop> {
        let time = |text: &Option<String>, default| {
            text.as_deref()
                .map_or(Some(default), wait_of)
                .ok_or_else(|| Stop::Error("not a duration".to_owned()))
        };
        let within = time(&until.within, Duration::from_secs(10))?;
        let every = time(&until.every, Duration::from_secs(1))?.max(Duration::from_millis(10));
        let wanted: Vec<Value> = until
            .equals
            .iter()
            .chain(until.one_of.iter().flatten())
            .cloned()
            .collect();
        let wanted: Vec<Value> = wanted
            .iter()
            .map(|v| self.scope.fill(v))
            .collect::<Result<_, _>>()?;
        let mut waited = Duration::ZERO;
        loop {
            let called = self.call(step, operation)?;
            let there = called.value.pointer(&until.at);
            let arrived = there.is_some_and(|v| match wanted.is_empty() {
                true => !v.is_null(),
                false => wanted.iter().any(|w| json::equal(v, w)),
            });
            if arrived || waited >= within || self.is_interrupted() {
                return Ok(called);
            }
            self.session.wait(every);
            waited += every;
        }
    }

    /// Follows `next_page_url` from the first page; the result is `{pages, items}`.
    fn walk(&mut self, step: &Step, operation: &Operation, first: &Called) -> Result<Value, Stop> {
        let key = operation
            .list_key
            .as_deref()
            .ok_or_else(|| Stop::Error(format!("{} is no list", operation.id)))?;
        let mut pages = vec![first.exchange];
        // Copied for those who look at them alone: a long list is large.
        let wants_items = step.capture.is_some() || !step.expect.is_empty();
        let kept = |page: &Value| {
            if wants_items {
                items_of(page, key).to_vec()
            } else {
                Vec::new()
            }
        };
        let mut items: Vec<Value> = kept(&first.value);
        let mut count = items_of(&first.value, key).len();
        // Pages in a row that hold nothing.
        let mut idle = 0;
        let mut page = Arc::clone(&first.value);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut acceptance = first.acceptance.clone();
        for between in &step.between {
            self.step(between)?;
        }
        let end = loop {
            if let Acceptance::Rejected(why) | Acceptance::Inconclusive(why) = &acceptance {
                break WalkEnd::Broken(why.clone());
            }
            let next = page.pointer("/meta/next_page_url").and_then(Value::as_str);
            let Some(next) = next.filter(|n| !n.is_empty()).map(str::to_owned) else {
                break WalkEnd::Complete;
            };
            let short = crate::text::excerpt(&next, 200).into_owned();
            if !seen.insert(next.clone()) {
                break WalkEnd::Endless(format!("a cycle at {short}"));
            }
            if pages.len() >= WALK_PAGES_MAX || count > WALK_ITEMS_MAX {
                let so_far = format!("{} pages, {count} items, and no end", pages.len());
                break if idle >= WALK_IDLE_PAGES_MAX {
                    WalkEnd::Endless(format!("{so_far}; the last {idle} pages hold nothing"))
                } else {
                    WalkEnd::Cut(format!("paging cap reached: {so_far}"))
                };
            }
            let previous = &self.evidence.exchanges[pages[pages.len() - 1]];
            let target = match super::link::target_of(&previous.base, &next) {
                Ok(target) => target,
                Err(why) => break WalkEnd::Unfollowable(format!("{short}: {why}")),
            };
            let mut exchange = unanswered(previous);
            exchange.request.target = target;
            exchange
                .sent
                .extend(page_parameters(operation, &exchange.request));
            exchange.at = self.session.now();
            if let Some(token) = operation.parameters.iter().find(|p| p.name == "PageToken") {
                exchange.expectation = Expectation::Accepted(token.rule.clone());
            }
            let called = self.exchange(exchange, operation)?;
            acceptance = called.acceptance;
            pages.push(called.exchange);
            items.extend(kept(&called.value));
            let brought = items_of(&called.value, key).len();
            idle = if brought == 0 { idle + 1 } else { 0 };
            count += brought;
            page = called.value;
        };
        let cut = match &end {
            WalkEnd::Cut(why) => Some(why.clone()),
            WalkEnd::Complete
            | WalkEnd::Endless(_)
            | WalkEnd::Unfollowable(_)
            | WalkEnd::Broken(_) => None,
        };
        let result = json!({"pages": pages.len(), "items": items});
        let service = operation.service.clone();
        let operation = operation.id.clone();
        // A list that is changed meanwhile is judged by the step's statements alone.
        if step.between.is_empty() {
            self.evidence.walks.push(Walk {
                service,
                operation,
                pages,
                end,
                step: self.step,
            });
        }
        // Half a list shows neither what it holds nor what it lacks. The first page's own refusal
        // is the caller's business.
        if let Some(why) = cut {
            return Err(Stop::Inconclusive(why));
        }
        match acceptance {
            Acceptance::Inconclusive(why) => {
                Err(Stop::Inconclusive(format!("a page of the walk: {why}")))
            }
            Acceptance::Rejected(_) if first.acceptance == Acceptance::Accepted => {
                Err(Stop::Unexpected)
            }
            Acceptance::Accepted | Acceptance::Rejected(_) => Ok(result),
        }
    }

    /// Whether the story can go on after this answer.
    fn as_expected(&self, step: &Step, called: &Called) -> Result<(), Stop> {
        let name = step.call.as_deref().unwrap_or("the call");
        match &called.acceptance {
            Acceptance::Inconclusive(why) => Err(Stop::Inconclusive(format!("{name}: {why}"))),
            Acceptance::Rejected(why) if step.rejected.is_none() && !step.either => {
                if self.setup {
                    Err(Stop::Inconclusive(format!(
                        "set-up failed: {name} was refused: {why}"
                    )))
                } else {
                    Err(Stop::Unexpected)
                }
            }
            Acceptance::Accepted | Acceptance::Rejected(_) => Ok(()),
        }
    }

    fn get_step(&mut self, step: &Step, url: &str) -> Result<(), Stop> {
        let url = self.scope.fill_text(url)?;
        let url = url.as_str().unwrap_or_default().to_owned();
        let settings = self.session.settings();
        let name = self.service.name.clone();
        let target = settings
            .targets
            .get(&name)
            .ok_or_else(|| Stop::NotApplicable(format!("service {name} is not targeted")))?;
        let (origin, _) = split_url(&target.url);
        let path = super::link::target_of(origin, &url).map_err(|why| {
            Stop::Inconclusive(format!("{}: {why}", crate::text::excerpt(&url, 200)))
        })?;
        let mut request = Request::new("GET", path);
        request::authorize(target, step.credentials, &mut request)?;
        let mut exchange = Exchange {
            step: self.step,
            service: name.clone(),
            operation: String::new(),
            sent: std::collections::BTreeMap::new(),
            credentials: step.credentials,
            base: origin.to_owned(),
            credentials_hint: request::curl_credentials(target, step.credentials),
            outcome: Outcome::Fault {
                cause: String::new(),
                detail: String::new(),
            },
            expectation: Expectation::Either,
            at: self.session.now(),
            setup: self.setup,
            request,
        };
        let result = match self.session.send(&name, &exchange.request) {
            Ok(response) => {
                let view = body::view(&response);
                exchange.outcome = Outcome::Answered {
                    response,
                    body: Body::Empty,
                };
                view
            }
            Err(fault) => {
                exchange.outcome = Outcome::Fault {
                    cause: fault.cause.clone(),
                    detail: fault.detail.clone(),
                };
                self.evidence.exchanges.push(exchange);
                return Err(Stop::Inconclusive(format!(
                    "{}: {}",
                    fault.cause, fault.detail
                )));
            }
        };
        self.evidence.exchanges.push(exchange);
        let index = self.evidence.exchanges.len() - 1;
        self.finish(step, result, None, Some(index))
    }

    fn hook_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        if !self.session.has_hook(name) {
            return Err(Stop::NotApplicable(format!("hook missing: {name}")));
        }
        provision::provide(&mut self.scope, self.session, step)?;
        let arguments = Value::Object(self.scope.fill_map(&step.with)?);
        let result = self
            .session
            .hook(name, &arguments)
            .map_err(|why| Stop::Inconclusive(format!("hook {name} failed: {why}")))?;
        if name == "collect_events" {
            self.collect_events(&result);
        }
        self.finish(step, result, None, None)
    }

    /// Each collected event is judged by the schema of its type.
    fn collect_events(&mut self, result: &Value) {
        let events = result.get("events").and_then(Value::as_array);
        for event in events.into_iter().flatten() {
            let kind = event
                .get("type")
                .and_then(Value::as_str)
                .and_then(|t| self.rulebook.event_types.get(t));
            if let (Some(Some(kind)), Some(payload)) = (kind, event.get("payload")) {
                let mut payload = payload.clone();
                self.session.mangle_payload(kind, &mut payload);
                let value = Arc::new(payload);
                self.evidence.payloads.push(Payload {
                    kind: kind.clone(),
                    value,
                    notes: Vec::new(),
                    step: self.step,
                });
            }
        }
    }

    fn listen_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        let callbacks = self
            .session
            .callbacks()
            .ok_or_else(|| Stop::NotApplicable("no callback listener is configured".to_owned()))?;
        let result = callbacks::listen(callbacks, name, step)?;
        if let Some(kind) = &step.judge {
            self.judged_as.insert(name.to_owned(), kind.clone());
        }
        self.scope.capture(name, result, None);
        Ok(())
    }

    fn await_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        let callbacks = self
            .session
            .callbacks()
            .ok_or_else(|| Stop::NotApplicable("no callback listener is configured".to_owned()))?;
        let (result, payloads) = callbacks::wait_for(callbacks, self.session, name, step)?;
        if let Some(kind) = self.judged_as.get(name) {
            let step = self.step;
            for Parsed { mut value, notes } in payloads {
                self.session.mangle_payload(kind, &mut value);
                self.evidence.payloads.push(Payload {
                    kind: kind.clone(),
                    value: Arc::new(value),
                    notes,
                    step,
                });
            }
        }
        self.finish(step, result, None, None)
    }

    fn finish(
        &mut self,
        step: &Step,
        value: impl Into<Arc<Value>>,
        kind: Option<String>,
        exchange: Option<usize>,
    ) -> Result<(), Stop> {
        // A wait that was cut short shows nothing of what would have come.
        if self.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let result: Arc<Value> = value.into();
        if let Some(name) = &step.capture {
            self.scope.capture(name, Value::clone(&result), kind);
        }
        for expect in &step.expect {
            match self.fill_expect(expect) {
                Ok(expect) => self.evidence.statements.push(Statement {
                    expect,
                    result: Arc::clone(&result),
                    step: self.step,
                    exchange,
                }),
                Err(error) => {
                    self.evidence
                        .missed
                        .push((expect.rule.clone(), error.to_string()));
                    self.soft_stop.get_or_insert(Stop::from(error));
                }
            }
        }
        Ok(())
    }

    fn fill_expect(
        &self,
        expect: &crate::rulebook::scenario::Expect,
    ) -> Result<crate::rulebook::scenario::Expect, TemplateError> {
        let mut filled = expect.clone();
        for value in [
            &mut filled.equals,
            &mut filled.differs,
            &mut filled.includes,
            &mut filled.excludes,
            &mut filled.same_json,
        ]
        .into_iter()
        .flatten()
        {
            *value = self.scope.fill(value)?;
        }
        for value in filled.one_of.iter_mut().flatten() {
            *value = self.scope.fill(value)?;
        }
        for pattern in [&mut filled.matches, &mut filled.unlike]
            .into_iter()
            .flatten()
        {
            // What is put into a pattern stands for itself.
            let value = self.scope.fill_text(pattern)?;
            let value = value.as_str().unwrap_or_default();
            if value != pattern {
                *pattern = regex::escape(value);
            }
        }
        if let Some(text) = &filled.not_before {
            filled.not_before = self.scope.fill_text(text)?.as_str().map(str::to_owned);
        }
        Ok(filled)
    }

    /// Rules that the rest of the story would have judged.
    fn miss(&mut self, rest: &[Step], why: &Stop) {
        let reason = match why {
            Stop::NotApplicable(why)
            | Stop::Inconclusive(why)
            | Stop::Unreachable(why)
            | Stop::Error(why) => why.clone(),
            Stop::Unexpected => "an earlier step went wrong".to_owned(),
            Stop::Interrupted => "interrupted".to_owned(),
        };
        for (offset, step) in rest.iter().enumerate() {
            let current = offset == 0;
            let rules = step
                .expect
                .iter()
                .map(|e| &e.rule)
                .chain(&step.accepted)
                .chain(&step.rejected);
            for rule in rules {
                // The step that was answered against its expectation has been judged already.
                if !(current && *why == Stop::Unexpected) {
                    self.evidence.missed.push((rule.clone(), reason.clone()));
                }
            }
        }
    }
}

fn outcome(
    answer: Result<Response, SendFault>,
    operation: &Operation,
    rulebook: &Rulebook,
) -> Outcome {
    match answer {
        Ok(mut response) => {
            let kind = operation
                .response
                .as_deref()
                .and_then(|k| rulebook.kinds.get(k));
            let body = body::receive(&response, operation, kind);
            if response.body.len() > BODY_EXCERPT_BYTES {
                response.body.truncate(BODY_EXCERPT_BYTES);
                response.body.shrink_to_fit();
            }
            Outcome::Answered { response, body }
        }
        Err(fault) => Outcome::Fault {
            cause: fault.cause,
            detail: fault.detail,
        },
    }
}

/// Where the configuration has what scenarios read as `target.SERVICE.KEY`.
fn configuration_key(name: &str) -> String {
    name.strip_prefix("target.people.").map_or_else(
        || format!("targets.{}", name.trim_start_matches("target.")),
        |key| format!("people.{key}"),
    )
}

/// The same request before anything came of it; what did may be large.
fn unanswered(exchange: &Exchange) -> Exchange {
    Exchange {
        outcome: Outcome::Fault {
            cause: String::new(),
            detail: String::new(),
        },
        sent: exchange.sent.clone(),
        request: exchange.request.clone(),
        service: exchange.service.clone(),
        operation: exchange.operation.clone(),
        base: exchange.base.clone(),
        credentials_hint: exchange.credentials_hint.clone(),
        expectation: exchange.expectation.clone(),
        step: exchange.step,
        credentials: exchange.credentials,
        at: exchange.at,
        setup: exchange.setup,
    }
}

fn items_of<'a>(page: &'a Value, key: &str) -> &'a [Value] {
    page.get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Query parameters as a page link has them; the first page's stay where the link is silent.
fn page_parameters<'a>(
    operation: &'a Operation,
    request: &Request,
) -> impl Iterator<Item = (String, Value)> + use<'a> {
    let query = request.query_pairs();
    operation
        .parameters
        .iter()
        .filter_map(move |p| Some((p.name.clone(), request::repeated(&query, &p.name)?)))
}

/// Scheme, host and port of a base URL, and its path without a trailing slash.
pub(crate) fn split_url(url: &str) -> (&str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..]
        .find('/')
        .map_or(url.len(), |at| authority + at);
    (&url[..path], url[path..].trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::split_url;

    #[test]
    fn base_urls_split_into_origin_and_prefix() {
        for (url, origin, prefix) in [
            ("http://127.0.0.1:1/flow", "http://127.0.0.1:1", "/flow"),
            ("https://h", "https://h", ""),
            ("https://h/", "https://h", ""),
            ("https://h/a/b/", "https://h", "/a/b"),
        ] {
            assert_eq!(split_url(url), (origin, prefix));
        }
    }
}
