//! One scenario, step by step: sends, waits, captures, and leaves evidence.
//!
//! It concludes nothing: what the evidence means is the judge's business.

mod again;

use super::link::{Leads, LinkError, leads, target_of};
use super::request::{self, BuildError};
use super::session::{HookFault, SendFault, Session};
use super::settings::Target;
use super::template::{Origin, Scope, TemplateError, wait_of};
use super::{body, callbacks, provision, token};
use crate::clock::Timestamp;
use crate::http::{Request, Response};
use crate::json::{self, Parsed};
use crate::judge::evidence::{
    Body, Delivery, Event, Evidence, Exchange, Expectation, Missed, Outcome, Payload, Span,
    Statement, Via, Walk, WalkEnd,
};
use crate::judge::{self, Acceptance, acceptance};
use crate::rulebook::scenario::{Credentials, Expect, Group, Scenario, Step, Until};
use crate::rulebook::{Operation, Rulebook, Service};
use crate::schema::Schemas;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a reason begins where the ground of a scenario could not be laid.
pub const SET_UP_FAILED: &str = "set-up failed";

/// Pages of one walk, and items over all its pages. A list may be longer, so that a walk that comes so
/// far accuses nobody.
const WALK_PAGES_MAX: usize = 1_000;
const WALK_ITEMS_MAX: usize = 100_000;
/// Pages after which a walk begins anew with larger ones where it may, and how large.
const WALK_PAGES_SMALL: usize = 20;
const PAGE_SIZE_LARGE: u64 = 100;
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
    /// A hook that is configured did not do what it is there for.
    HookFailed(String),
    /// Our own fault: scenario or configuration.
    Error(String),
    /// A step needs what a broken rule withholds; the story goes on without it.
    Masked(String),
}

/// What came of one scenario.
#[derive(Debug)]
pub(crate) struct Story {
    /// All that was observed.
    pub evidence: Evidence,
    /// Why it ended early, where it did.
    pub stop: Option<Stop>,
}

/// Plays a scenario of `service` in `session`; each attempt has names of its own.
pub(crate) fn play(
    rulebook: &Rulebook,
    schemas: &Schemas,
    service: &Service,
    scenario: &Scenario,
    session: &dyn Session,
    (seed, attempt): (u64, usize),
    interrupted: &AtomicBool,
) -> Story {
    let salt = match attempt {
        0 => format!("{seed}/{}", scenario.id),
        again => format!("{seed}/{}/{again}", scenario.id),
    };
    let mut target = provision::values(session.settings());
    if let Some(person) = session.person() {
        target["flow"]["to"] = json!(person);
    }
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
            alone: session.is_alone(),
            ..Evidence::default()
        },
        step: 0,
        body_bytes: 0,
        depth: 0,
        setup: false,
        soft_stop: None,
        captured_at: BTreeMap::new(),
        refused: BTreeSet::new(),
        judged_as: BTreeMap::new(),
        listeners: Vec::new(),
        looked: session.now(),
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
    if stop.is_none() {
        runner.look_again();
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
    /// Exchanges that brought what was captured, by name.
    captured_at: BTreeMap<String, usize>,
    /// Captures of calls that were free to be refused and were; steps that need them are skipped.
    refused: BTreeSet<String>,
    /// Kind that the callbacks at a listening address are judged as.
    judged_as: BTreeMap<String, String>,
    listeners: Vec<Listener>,
    /// When it was last looked for callbacks.
    looked: Timestamp,
}

/// An address of this story.
struct Listener {
    name: String,
    url: String,
    /// Callbacks that are events already.
    noted: usize,
}

/// What a call brought.
struct Called {
    /// Index of the exchange.
    exchange: usize,
    acceptance: Acceptance,
    value: Arc<Value>,
    origin: Option<Origin>,
    /// The rule that a value breaks which it was built of.
    taint: Option<String>,
}

impl Stop {
    /// What a hook that brought no result means for the story.
    pub(super) fn of_hook(name: &str, fault: &HookFault) -> Self {
        match fault {
            HookFault::Unsupported => Self::NotApplicable(format!("hook {name}: {fault}")),
            HookFault::Failed(why) => Self::HookFailed(format!("hook {name} failed: {why}")),
        }
    }
}

impl From<TemplateError> for Stop {
    fn from(error: TemplateError) -> Self {
        match error {
            TemplateError::Missing(ref name) if name.starts_with("target.") => {
                Self::NotApplicable(format!("not configured: {}", configuration_key(name)))
            }
            TemplateError::Missing(_) => Self::Inconclusive(error.to_string()),
            TemplateError::Masked { rule, .. } => Self::Masked(rule),
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
            | BuildError::Unsendable { .. }
            | BuildError::Bearer(_) => Self::Error(error.to_string()),
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
        self.scope.take_taint();
        let outer = self.setup;
        self.setup = outer || step.setup;
        let done = match step.repeat {
            None => self.once(step),
            Some(times) => self.repeatedly(step, times),
        };
        self.setup = outer;
        match done {
            // What ends early because the run does says nothing about the target.
            Err(Stop::Inconclusive(_) | Stop::Unreachable(_) | Stop::HookFailed(_))
                if self.is_interrupted() =>
            {
                Err(Stop::Interrupted)
            }
            Err(Stop::Masked(rule)) => {
                self.mask(step, &rule);
                Ok(())
            }
            done => done,
        }
    }

    /// Leaves a step out because a rule was broken: what it would have brought is missing, and what
    /// it would have shown is judged by nobody.
    fn mask(&mut self, step: &Step, rule: &str) {
        for named in step.rules() {
            self.evidence.missed.push(Missed::behind(named, rule));
        }
        let group = step.r#use.as_deref().and_then(|name| self.group(name).ok());
        match (&step.r#as, group) {
            (Some(prefix), _) => self.scope.mask(prefix, rule),
            (None, Some((_, group))) => {
                for name in group
                    .steps
                    .iter()
                    .filter_map(|inner| inner.capture.as_ref())
                {
                    self.scope.mask(name, rule);
                }
            }
            (None, None) => {}
        }
        for name in step.capture.iter().chain(&step.listen) {
            self.scope.mask(name, rule);
        }
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
        let link = step.get.as_deref().map(Value::from);
        !self.refused.is_empty() && step.with.values().chain(link.as_ref()).any(reads)
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
            results.extend(self.scope.take_since(&known, name));
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
            let wait = wait.ok_or_else(|| Stop::Error(format!("not a duration: {text}")))?;
            self.pass(wait);
            Ok(())
        } else if let Some(group) = &step.r#use {
            self.use_step(step, group)
        } else {
            Err(Stop::Error("a step without a verb".to_owned()))
        }
    }

    fn use_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        let (service, group) = self.group(name)?;
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
            self.scope.prefix_since(&known, prefix);
        }
        Ok(())
    }

    /// A group and the service that it belongs to.
    fn group(&self, name: &str) -> Result<(&'a Service, &'a Group), Stop> {
        let (service, group_name) = match name.split_once('/') {
            Some((service, group)) => (self.rulebook.services.get(service), group),
            None => (Some(self.service), name),
        };
        let service = service.ok_or_else(|| Stop::Error(format!("no service for group {name}")))?;
        let group = service.groups.get(group_name);
        let group = group.ok_or_else(|| Stop::Error(format!("no group is named {name}")))?;
        Ok((service, group))
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
        self.provide(step)?;
        let mut called = match &step.until {
            Some(until) => self.poll(step, operation, until)?,
            None => self.call(step, operation)?,
        };
        let mut tries = 0;
        while matches!(called.acceptance, Acceptance::Rejected(_))
            && step.rejected.is_none()
            && self.person_was_busy(operation, called.exchange, tries)?
        {
            // Refused with reason: a person may be in a flow once.
            self.evidence.exchanges[called.exchange].expectation = Expectation::Either;
            called = self.call(step, operation)?;
            tries += 1;
        }
        let (mut value, mut called) = self.result(step, operation, called)?;
        if operation.list_key.is_some() && step.until.is_none() && step.between.is_empty() {
            (value, called) = self.look_until_stated(step, operation, (value, called))?;
        }
        let origin = called.origin.clone().filter(|_| !step.walk);
        let expected = self.as_expected(step, &called);
        let exchange = &self.evidence.exchanges[called.exchange];
        if matches!(called.acceptance, Acceptance::Rejected(_)) && judge::is_plain_error(exchange) {
            let why = format!("answered {}", exchange.status().unwrap_or_default());
            let missed = step.expect.iter();
            let missed = missed.map(|e| Missed::because(&e.rule, why.clone()));
            self.evidence.missed.extend(missed);
            if step.either {
                self.refused.extend(step.capture.clone());
            }
            return expected;
        }
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
        if let Some(rule) = called.taint {
            if expected == Err(Stop::Unexpected) {
                return Err(Stop::Masked(rule));
            }
            let named = step.accepted.iter().chain(&step.rejected);
            let missed = named.map(|named| Missed::behind(named, &rule));
            self.evidence.missed.extend(missed);
        }
        self.finish(step, value, origin, Some(called.exchange))?;
        expected
    }

    /// What a call brings: its answer, or the whole list that begins with it.
    fn result(
        &mut self,
        step: &Step,
        operation: &Operation,
        called: Called,
    ) -> Result<(Arc<Value>, Called), Stop> {
        let value = match step.walk {
            true => Arc::new(self.walk(step, operation, &called)?),
            false => Arc::clone(&called.value),
        };
        Ok((value, called))
    }

    /// Makes what the step reads and nobody has configured.
    fn provide(&mut self, step: &Step) -> Result<(), Stop> {
        let mut hooks = Vec::new();
        let done = provision::provide(&mut self.scope, self.session, self.step, step, &mut hooks);
        self.evidence
            .events
            .extend(hooks.into_iter().map(Event::Hook));
        done
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        self.session.wait(time);
        self.evidence.events.push(Event::Passed(time));
        self.note_deliveries();
    }

    /// Makes events of the callbacks that came since it was last looked.
    fn note_deliveries(&mut self) {
        let now = self.session.now();
        let span = Span {
            began: self.looked,
            ended: now,
        };
        self.looked = now;
        let Some(callbacks) = self.session.callbacks() else {
            return;
        };
        for listener in &mut self.listeners {
            let came = callbacks.sink.callbacks(&callbacks.name_of(&listener.name));
            for callback in came.iter().skip(listener.noted) {
                let delivery = Delivery {
                    step: self.step,
                    listener: listener.name.clone(),
                    subscription: subscription(&self.evidence, &listener.url),
                    request: callback.request.clone(),
                    document: callbacks::document(&callback.request).map(|p| Arc::new(p.value)),
                    answered: callback.answered.status,
                    span,
                };
                self.evidence.events.push(Event::Delivery(delivery));
            }
            listener.noted = came.len();
        }
    }

    fn operation(&self, name: &str) -> Result<&'a Operation, Stop> {
        let found = self.rulebook.called(&self.service.name, name);
        found.ok_or_else(|| Stop::Error(format!("no operation is named {name}")))
    }

    fn call(&mut self, step: &Step, operation: &Operation) -> Result<Called, Stop> {
        let with = self.scope.fill_map(&step.with)?;
        let taint = self.scope.take_taint();
        let settings = self.session.settings();
        let target = &settings.targets[&operation.service];
        let mut built = request::build(operation, target, &with, step.credentials)?;
        let (origin, prefix) = split_url(&target.url);
        built.request.target = format!("{prefix}{}", built.request.target);
        let own_rule = format!("{}/{}", operation.service, operation.id);
        let expectation = match (&step.rejected, &step.accepted) {
            // What is built of a broken value may be refused.
            _ if taint.is_some() => Expectation::Either,
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
            shell: Arc::clone(&target.shell),
            outcome: Outcome::Fault {
                cause: String::new(),
                detail: String::new(),
            },
            expectation,
            span: Span::at(self.session.now()),
            via: None,
            is_attempt: false,
            setup: self.setup,
            request: built.request,
        };
        let called = self.exchange(exchange, operation)?;
        self.note_execution(&called);
        self.accept_existing(step, &called)?;
        Ok(Called { taint, ..called })
    }

    /// Tells the session of an execution that was made, for somebody is in a flow now.
    fn note_execution(&self, called: &Called) {
        let exchange = &self.evidence.exchanges[called.exchange];
        let is_made = exchange.service == "flow"
            && exchange.operation == "create-execution"
            && called.acceptance == Acceptance::Accepted;
        let flow_sid = exchange.sent.get("FlowSid").and_then(Value::as_str);
        let sid = called.value.get("sid").and_then(Value::as_str);
        if let (true, Some(flow_sid), Some(sid)) = (is_made, flow_sid, sid) {
            self.session.made_execution(flow_sid, sid);
        }
    }

    /// Whether a refused execution is of somebody who was in the flow already, and is no longer.
    fn person_was_busy(
        &self,
        operation: &Operation,
        exchange: usize,
        tries: usize,
    ) -> Result<bool, Stop> {
        let is_execution = operation.service == "flow" && operation.id == "create-execution";
        let sent = &self.evidence.exchanges[exchange].sent;
        let text = |name: &str| sent.get(name).and_then(Value::as_str);
        match (text("FlowSid"), text("To")) {
            (Some(flow_sid), Some(to)) if is_execution => {
                provision::end_executions_of(self.session, flow_sid, to, tries)
            }
            _ => Ok(false),
        }
    }

    /// An answer that shows what exists already stands for a refusal.
    fn accept_existing(&mut self, step: &Step, called: &Called) -> Result<(), Stop> {
        let (Some(rule), Some(existing)) = (&step.rejected, &step.unless) else {
            return Ok(());
        };
        let value = self.scope.fill(&existing.equals)?;
        let there = called.value.pointer(&existing.at);
        if called.acceptance == Acceptance::Accepted
            && there.is_some_and(|v| json::equal(v, &value))
        {
            self.evidence.exchanges[called.exchange].expectation =
                Expectation::Accepted(rule.clone());
        }
        Ok(())
    }

    /// Keeps an exchange that has just ended.
    fn keep(&mut self, mut exchange: Exchange) -> usize {
        exchange.span.ended = self.session.now();
        if let Some(status) = exchange.status()
            && exchange.credentials == Credentials::Default
        {
            let (service, operation) = (&exchange.service, &exchange.operation);
            self.session.answered(service, operation, status);
        }
        let index = self.evidence.exchanges.len();
        self.evidence.exchanges.push(exchange);
        self.evidence.events.push(Event::Exchange(index));
        self.note_deliveries();
        index
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
        let sent = exchange.sent.clone();
        let origin = kind.map(|kind| Origin { kind, sent });
        let index = self.keep(exchange);
        if unreachable {
            return Err(Stop::Unreachable(detail.unwrap_or_default()));
        }
        Ok(Called {
            exchange: index,
            acceptance,
            value,
            origin,
            taint: None,
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
            let there = json::expand(&called.value, &until.at);
            let arrived = there.iter().any(|(_, v)| match wanted.is_empty() {
                true => !v.is_null(),
                false => wanted.iter().any(|w| json::equal(v, w)),
            });
            if arrived || waited >= within || self.is_interrupted() {
                return Ok(called);
            }
            self.evidence.exchanges[called.exchange].is_attempt = true;
            self.pass(every);
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
            if pages.len() == WALK_PAGES_SMALL
                && step.between.is_empty()
                && let Some(wider) = self.with_larger_pages(step, operation)
            {
                let called = self.call(&wider, operation)?;
                return self.walk(&wider, operation, &called);
            }
            if pages.len() >= WALK_PAGES_MAX || count > WALK_ITEMS_MAX {
                let so_far = format!("{} pages, {count} items, and no end", pages.len());
                break if idle >= WALK_IDLE_PAGES_MAX {
                    WalkEnd::Endless(format!("{so_far}; the last {idle} pages hold nothing"))
                } else {
                    WalkEnd::Cut(format!("paging cap reached: {so_far}"))
                };
            }
            let shown_by = pages[pages.len() - 1];
            let previous = &self.evidence.exchanges[shown_by];
            let home = &self.session.settings().targets[&previous.service];
            let target = match target_of(home, &previous.request.target, &next) {
                Ok(target) => target,
                Err(why @ LinkError::Broken(_)) => {
                    break WalkEnd::Unfollowable(format!("{short}: {why}"));
                }
                Err(why @ LinkError::Elsewhere(_)) => {
                    break WalkEnd::Cut(format!("{short}: {why}"));
                }
            };
            let mut exchange = unanswered(previous);
            exchange.request.target = target;
            exchange
                .sent
                .extend(page_parameters(operation, &exchange.request));
            exchange.span = Span::at(self.session.now());
            exchange.via = Some(Via {
                exchange: shown_by,
                pointer: "/meta/next_page_url".to_owned(),
            });
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
        let moved = end == WalkEnd::Complete && self.was_added_to(operation, &pages)?;
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
                moved,
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

    /// The same walk in fewer pages: a target that lives on has long lists.
    fn with_larger_pages(&self, step: &Step, operation: &Operation) -> Option<Step> {
        let size = operation.parameters.iter().find(|p| p.name == "PageSize")?;
        let most = size.schema.get("maximum").and_then(Value::as_u64);
        let larger = most.unwrap_or(PAGE_SIZE_LARGE).min(PAGE_SIZE_LARGE);
        let asked = step.with.get("PageSize").and_then(Value::as_u64);
        if !self.session.is_live() || asked.is_none_or(|asked| asked >= larger) {
            return None;
        }
        let mut wider = step.clone();
        wider.with.insert("PageSize".to_owned(), json!(larger));
        Some(wider)
    }

    /// Whether others added to a list while it was walked: an item came twice, and the first page now
    /// begins with another.
    fn was_added_to(&mut self, operation: &Operation, pages: &[usize]) -> Result<bool, Stop> {
        let Some(key) = operation
            .list_key
            .as_deref()
            .filter(|_| self.session.is_live())
        else {
            return Ok(false);
        };
        let items = |exchange: &Exchange| -> Vec<Value> {
            let page = exchange.document().map_or(&Value::Null, |page| page);
            items_of(page, key).to_vec()
        };
        let mut seen = BTreeSet::new();
        let walked = pages
            .iter()
            .flat_map(|&page| items(&self.evidence.exchanges[page]));
        let is_twice = walked
            .map(|item| item.to_string())
            .any(|item| !seen.insert(item));
        if !is_twice {
            return Ok(false);
        }
        let first = &self.evidence.exchanges[pages[0]];
        let before = items(first);
        let mut again = unanswered(first);
        again.span = Span::at(self.session.now());
        let again = self.exchange(again, operation)?.exchange;
        Ok(items(&self.evidence.exchanges[again]).first() != before.first())
    }

    /// Whether the story can go on after this answer.
    fn as_expected(&self, step: &Step, called: &Called) -> Result<(), Stop> {
        let name = step.call.as_deref().unwrap_or("the call");
        match &called.acceptance {
            Acceptance::Inconclusive(why) => Err(Stop::Inconclusive(format!("{name}: {why}"))),
            Acceptance::Rejected(why) if step.rejected.is_none() && !step.either => {
                if self.setup {
                    Err(Stop::Inconclusive(format!(
                        "{SET_UP_FAILED}: {name} was refused: {why}"
                    )))
                } else {
                    Err(Stop::Unexpected)
                }
            }
            Acceptance::Accepted | Acceptance::Rejected(_) => Ok(()),
        }
    }

    fn get_step(&mut self, step: &Step, url: &str) -> Result<(), Stop> {
        let read = url;
        let url = self.scope.fill_text(read)?;
        let url = url.as_str().unwrap_or_default().to_owned();
        let masked = self.scope.take_taint();
        if url.is_empty() && step.either {
            self.refused.extend(step.capture.clone());
            return Ok(());
        }
        let inconclusive = |why: String| match &masked {
            Some(rule) => Stop::Masked(rule.clone()),
            None => Stop::Inconclusive(why),
        };
        let settings = self.session.settings();
        let name = self.service.name.clone();
        let target = settings
            .targets
            .get(&name)
            .ok_or_else(|| Stop::NotApplicable(format!("service {name} is not targeted")))?;
        let (origin, _) = split_url(&target.url);
        let via = super::link::shown_in(&self.evidence.exchanges, &url, read, &self.captured_at);
        let shown_by = via
            .as_ref()
            .map(|via| &self.evidence.exchanges[via.exchange]);
        let from = shown_by.map_or("/", |exchange| exchange.request.target.as_str());
        let led = leads(target, &Leads::Home(from.to_owned()), &url)
            .map_err(|why| inconclusive(format!("{}: {why}", crate::text::excerpt(&url, 200))))?;
        let (base, found, request, credentials) = match &led {
            Leads::Home(path) => {
                let mut request = Request::new("GET", path.as_str());
                request::authorize(target, step.credentials, &mut request)?;
                let found = self.recognise(origin, &request);
                (origin, found, request, step.credentials)
            }
            Leads::Content(origin, path) => {
                let request = Request::new("GET", path.as_str());
                (origin.as_str(), None, request, Credentials::None)
            }
        };
        let (service, operation, mut sent) = match &found {
            Some((operation, sent)) => (&operation.service, operation.id.clone(), sent.clone()),
            None => (&name, String::new(), BTreeMap::new()),
        };
        // A page of the same list: where its address is silent, what was asked for stays.
        if let Some(page) = shown_by.filter(|page| page.operation == operation) {
            for (name, value) in &page.sent {
                sent.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let mut exchange = Exchange {
            step: self.step,
            service: service.clone(),
            operation,
            sent,
            credentials,
            base: base.to_owned(),
            shell: Arc::clone(&target.shell),
            outcome: Outcome::Fault {
                cause: String::new(),
                detail: String::new(),
            },
            expectation: match &step.rejected {
                Some(rule) => Expectation::Rejected(rule.clone()),
                None => Expectation::Either,
            },
            span: Span::at(self.session.now()),
            via,
            is_attempt: false,
            setup: self.setup,
            request,
        };
        let answer = self.follow(&name, target, led, &exchange.request);
        match answer.and_then(|response| self.within_budget(response)) {
            Ok(response) => {
                let view = body::view(&response);
                exchange.outcome = match found {
                    Some((operation, _)) => outcome(Ok(response), operation, self.rulebook),
                    // A file: what the step shows of it is all that is read.
                    None => Outcome::Answered {
                        response: kept(response),
                        body: Body::Empty,
                    },
                };
                let index = self.keep(exchange);
                self.finish(step, view, None, Some(index))
            }
            Err(fault) => {
                let why = format!("{}: {}", fault.cause, fault.detail);
                exchange.outcome = Outcome::Fault {
                    cause: fault.cause,
                    detail: fault.detail,
                };
                self.keep(exchange);
                Err(inconclusive(why))
            }
        }
    }

    /// The operation that a request to this origin belongs to, with its parameters.
    fn recognise(
        &self,
        origin: &str,
        request: &Request,
    ) -> Option<(&'a Operation, BTreeMap<String, Value>)> {
        let targets = &self.session.settings().targets;
        let found = targets.iter().filter_map(|(service, target)| {
            let (home, prefix) = split_url(&target.url);
            let path = request.path().strip_prefix(prefix);
            let path = path.filter(|path| home == origin && path.starts_with('/'))?;
            let operations = self.rulebook.services.get(service)?.operations.values();
            let found = request::recognise(operations, request, path, &target.values)?;
            Some((prefix.len(), found))
        });
        found
            .max_by_key(|(prefix, _)| *prefix)
            .map(|(_, found)| found)
    }

    /// Gets what a link leads to, through redirects, and without credentials from the first one on: as a
    /// browser does.
    fn follow(
        &self,
        service: &str,
        target: &Target,
        mut at: Leads,
        request: &Request,
    ) -> Result<Response, SendFault> {
        const HOPS_MAX: usize = 5;
        let mut asked = request.clone();
        for _ in 0..HOPS_MAX {
            let response = match &at {
                Leads::Home(_) => self.session.send(service, &asked)?,
                Leads::Content(origin, _) => self.session.get_elsewhere(origin, &asked)?,
            };
            let is_redirect = (300..400).contains(&response.status);
            let Some(location) = response.headers.get("Location").filter(|_| is_redirect) else {
                return Ok(response);
            };
            at = leads(target, &at, location).map_err(|why| SendFault {
                cause: "redirect".to_owned(),
                detail: format!("{}: {why}", crate::text::excerpt(location, 200)),
                unreachable: false,
            })?;
            let (Leads::Home(path) | Leads::Content(_, path)) = &at;
            asked = Request::new("GET", path.as_str());
        }
        Err(SendFault {
            cause: "redirect".to_owned(),
            detail: format!("{HOPS_MAX} redirects, and no end"),
            unreachable: false,
        })
    }

    fn hook_step(&mut self, step: &Step, name: &str) -> Result<(), Stop> {
        if !self.session.has_hook(name) {
            return Err(Stop::NotApplicable(format!("hook missing: {name}")));
        }
        self.provide(step)?;
        let arguments = Value::Object(self.scope.fill_map(&step.with)?);
        let taint = self.scope.take_taint();
        let mut hooks = Vec::new();
        let done = provision::hook(self.session, self.step, name, arguments, &mut hooks);
        self.evidence
            .events
            .extend(hooks.into_iter().map(Event::Hook));
        self.note_deliveries();
        let result = done.map_err(|fault| match taint {
            Some(rule) => Stop::Masked(rule),
            None => Stop::of_hook(name, &fault),
        })?;
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
        let url = result["url"].as_str().unwrap_or_default().to_owned();
        match self.listeners.iter_mut().find(|known| known.name == name) {
            Some(known) => known.url = url,
            None => self.listeners.push(Listener {
                noted: callbacks.sink.callbacks(&callbacks.name_of(name)).len(),
                name: name.to_owned(),
                url,
            }),
        }
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
        let waiting = self.session.now();
        let stated: Vec<Expect> = step
            .expect
            .iter()
            .filter_map(|expect| self.fill_expect(expect).ok())
            .collect();
        let wait = callbacks::Wait {
            callbacks,
            session: self.session,
            holds: &|result| stated.iter().all(|expect| judge::holds(expect, result)),
        };
        let (result, payloads) = wait.come(name, step)?;
        let waited = self.session.now().duration_since(waiting);
        let waited = Duration::try_from(waited).unwrap_or_default();
        self.evidence.events.push(Event::Passed(waited));
        self.note_deliveries();
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
        origin: Option<Origin>,
        exchange: Option<usize>,
    ) -> Result<(), Stop> {
        // A wait that was cut short shows nothing of what would have come.
        if self.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let result: Arc<Value> = value.into();
        if let Some(name) = &step.capture {
            self.scope.capture(name, Arc::clone(&result), origin);
            match exchange {
                Some(exchange) => self.captured_at.insert(name.clone(), exchange),
                None => self.captured_at.remove(name),
            };
        }
        for expect in &step.expect {
            let filled = self.fill_expect(expect);
            // What a broken value would be compared with was not promised.
            let filled = match (self.scope.take_taint(), filled) {
                (Some(rule), Ok(_)) => {
                    let name = expect.rule.clone();
                    Err(TemplateError::Masked { name, rule })
                }
                (_, filled) => filled,
            };
            match filled {
                Err(TemplateError::Masked { rule, .. }) => {
                    self.evidence
                        .missed
                        .push(Missed::behind(&expect.rule, &rule));
                }
                Ok(expect) => self.evidence.statements.push(Statement {
                    expect,
                    result: Arc::clone(&result),
                    step: self.step,
                    exchange,
                }),
                Err(error) => {
                    let missed = Missed::because(&expect.rule, error.to_string());
                    self.evidence.missed.push(missed);
                    self.soft_stop.get_or_insert(Stop::from(error));
                }
            }
        }
        Ok(())
    }

    fn fill_expect(&self, expect: &Expect) -> Result<Expect, TemplateError> {
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
        let accused = self.evidence.exchanges.last().map(|e| &e.expectation);
        let missed: Box<dyn Fn(&String) -> Missed> = match (why, accused) {
            (Stop::Unexpected, Some(Expectation::Accepted(rule))) => {
                let rule = rule.clone();
                Box::new(move |named| Missed::behind(named, &rule))
            }
            (Stop::Unexpected, _) => {
                Box::new(|named| Missed::because(named, "an earlier step went wrong"))
            }
            (Stop::Interrupted, _) => Box::new(|named| Missed::because(named, "interrupted")),
            (Stop::Masked(rule), _) => Box::new(move |named| Missed::behind(named, rule)),
            (
                Stop::NotApplicable(why)
                | Stop::Inconclusive(why)
                | Stop::Unreachable(why)
                | Stop::HookFailed(why)
                | Stop::Error(why),
                _,
            ) => Box::new(move |named| Missed::because(named, why)),
        };
        for (offset, step) in rest.iter().enumerate() {
            // The step that was answered against its expectation has been judged already.
            if offset > 0 || *why != Stop::Unexpected {
                let rules = step.rules().map(&missed);
                self.evidence.missed.extend(rules);
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
        Ok(response) => {
            let kind = operation
                .response
                .as_deref()
                .and_then(|k| rulebook.kinds.get(k));
            let body = body::receive(&response, operation, kind);
            Outcome::Answered {
                response: kept(response),
                body,
            }
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

/// An answer as far as it is kept beside what was read of it.
fn kept(mut response: Response) -> Response {
    if response.body.len() > BODY_EXCERPT_BYTES {
        response.body.truncate(BODY_EXCERPT_BYTES);
        response.body.shrink_to_fit();
    }
    response
}

/// The event that told the target of an address: the last one that sent it.
fn subscription(evidence: &Evidence, url: &str) -> Option<usize> {
    let holds = |value: &Value| match value {
        Value::String(text) => text.starts_with(url),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::Array(_) | Value::Object(_) => value.to_string().contains(url),
    };
    evidence.events.iter().rposition(|event| match event {
        Event::Exchange(index) => evidence.exchanges[*index].sent.values().any(holds),
        Event::Hook(call) => holds(&call.arguments),
        Event::Delivery(_) | Event::Passed(_) => false,
    })
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
        shell: Arc::clone(&exchange.shell),
        expectation: exchange.expectation.clone(),
        step: exchange.step,
        credentials: exchange.credentials,
        span: exchange.span,
        via: None,
        is_attempt: false,
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
