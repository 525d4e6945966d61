//! Runner: executes one scenario step by step and records evidence.
//!
//! Draws no conclusions; the judge evaluates the evidence.

mod callback_steps;
mod calls;
mod early_look;
mod hooks;
mod links;
mod polling;
mod race;
mod statements;
mod walks;

use crate::plan::Planned;
use crate::session::{Callbacks, Session};
use crate::stop::Stop;
use crate::template::{Scope, wait_of};
use crate::{provision, token};
use conformant_base::clock::Timestamp;
use conformant_base::json::Note;
use conformant_judge::evidence::{Event, Evidence, Exchange, Payload};
use conformant_judge::{Acceptance, DocumentCache};
use conformant_rulebook::scenario::Group;
use conformant_rulebook::step::{Step, Use, Verb};
use conformant_rulebook::{Rulebook, Service};
use conformant_schema::Schemas;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum nesting of groups.
const GROUP_DEPTH_MAX: usize = 16;

/// The outcome of one scenario.
#[derive(Debug)]
pub struct ScenarioOutcome {
    pub evidence: Evidence,
    /// Why it ended early, if it did.
    pub stop: Option<Stop>,
    /// Cached validation results of documents that later steps read.
    pub memo: DocumentCache,
}

/// The input of a scenario run.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioRun<'a> {
    pub rulebook: &'a Rulebook,
    pub schemas: &'a Schemas,
    pub planned: &'a Planned<'a>,
    /// Seed and attempt. Both determine the generated names.
    pub attempt: (u64, usize),
    /// The exchanges of an earlier run. An equal document at the same position shares its validation results.
    pub earlier: &'a [Exchange],
    /// Whether a race reads the state at once, and waits for it only if it breaks a rule.
    pub looks_early: bool,
}

impl<'a> ScenarioRun<'a> {
    /// A run without an earlier one.
    pub fn new(
        rulebook: &'a Rulebook,
        schemas: &'a Schemas,
        planned: &'a Planned<'a>,
        attempt: (u64, usize),
    ) -> Self {
        Self {
            rulebook,
            schemas,
            planned,
            attempt,
            earlier: &[],
            looks_early: false,
        }
    }
}

/// Runs a scenario in `session`.
pub fn run_scenario(
    run: ScenarioRun<'_>,
    session: &dyn Session,
    interrupted: &AtomicBool,
) -> ScenarioOutcome {
    let ScenarioRun {
        rulebook,
        schemas,
        planned,
        attempt: (seed, attempt),
        earlier,
        looks_early,
    } = run;
    let Planned { service, scenario } = planned;
    let names = &session.settings().names;
    let name_seed = match attempt {
        0 => format!("{names}{seed}/{}", scenario.id),
        again => format!("{names}{seed}/{}/{again}", scenario.id),
    };
    let mut target = provision::values(session.settings());
    if let Some((value, exclusive)) = session.phone_number().zip(session.settings().exclusive()) {
        target[exclusive.service][exclusive.key] = json!(value);
    }
    let configured = target.clone();
    let mut runner = Runner {
        rulebook,
        service,
        session,
        interrupted,
        earlier,
        scope: Scope::new(rulebook, schemas, target, name_seed),
        evidence: Evidence {
            scenario: scenario.id.clone(),
            configured,
            alone: session.is_alone(),
            ..Evidence::default()
        },
        step: 0,
        attempt,
        races: 0,
        looks_early,
        body_bytes: 0,
        depth: 0,
        setup: false,
        soft_stop: None,
        captured_at: BTreeMap::new(),
        refused: BTreeSet::new(),
        judged_as: BTreeMap::new(),
        listeners: Vec::new(),
        callbacks_checked_at: session.now(),
    };
    let first_number = planned.first_number(rulebook, &format!("{names}{seed}"), attempt);
    runner.scope.set_first_number(first_number);
    let matrix: Map<String, Value> = scenario
        .matrix
        .iter()
        .filter_map(|(name, values)| Some((name.clone(), values.first()?.clone())))
        .collect();
    runner
        .scope
        .set_local("matrix", Some(Value::Object(matrix)));
    let (mut stop, mut early) = (session.withheld(), None);
    if let Some(why) = &stop {
        runner.record_missed(&scenario.steps, why);
    }
    let steps = scenario.steps.iter().enumerate();
    for (index, step) in steps.take_while(|_| stop.is_none()) {
        if looks_early && runner.can_skip(step) {
            early.get_or_insert_with(|| runner.begin_early_look(index));
            continue;
        }
        runner.step = index + 1;
        if let Err(why) = runner.step(step) {
            runner.record_missed(&scenario.steps[index..], &why);
            stop = Some(why);
            break;
        }
    }
    if stop.is_none() {
        runner.poll_lagging_lists();
        let again = early.map(|early| runner.look_again(early, &scenario.steps, schemas));
        stop = again.and_then(Result::err);
    }
    runner.evidence.now = Some(session.now());
    let stop = stop.or(runner.soft_stop);
    ScenarioOutcome {
        evidence: runner.evidence,
        stop,
        memo: runner.scope.into_memo(),
    }
}

struct Runner<'a> {
    rulebook: &'a Rulebook,
    service: &'a Service,
    session: &'a dyn Session,
    interrupted: &'a AtomicBool,
    /// The exchanges of an earlier run.
    earlier: &'a [Exchange],
    scope: Scope<'a>,
    evidence: Evidence,
    step: usize,
    /// Races so far.
    races: usize,
    looks_early: bool,
    /// Number of earlier attempts of the scenario in this run.
    attempt: usize,
    /// Bytes of all bodies so far.
    body_bytes: usize,
    depth: usize,
    /// Whether this is a group or set-up, where a failure makes the scenario inconclusive.
    setup: bool,
    /// The first statement that could not be evaluated; the scenario continued.
    soft_stop: Option<Stop>,
    /// Index of the exchange of each capture, by name.
    captured_at: BTreeMap<String, usize>,
    /// Captures of calls that may be rejected, and were. Steps that need them are skipped.
    refused: BTreeSet<String>,
    /// Schema type of the callbacks, by name of the callback address.
    judged_as: BTreeMap<String, String>,
    listeners: Vec<Listener>,
    /// When callbacks were last checked.
    callbacks_checked_at: Timestamp,
}

/// A callback address of this scenario.
struct Listener {
    name: String,
    url: String,
    /// For each callback that is recorded as an event: the last operation called before it.
    operations_before: Vec<Option<String>>,
}

/// The result of a call.
struct Called {
    /// Index of the exchange.
    exchange: usize,
    acceptance: Acceptance,
    value: Arc<Value>,
    /// The type that the answer is judged as.
    kind: Option<String>,
    /// The rule broken by a value that the request reuses.
    taint: Option<String>,
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
            // An interruption of the run says nothing about the target.
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

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether a parameter reads a capture of a rejected call.
    fn needs_refused(&self, step: &Step) -> bool {
        let reads = |value: &Value| {
            let text = value.to_string();
            let names = conformant_rulebook::interpolations(&text).unwrap_or_default();
            names.iter().any(|one| self.refused.contains(&one.path[0]))
        };
        let link = step.address().map(Value::from);
        !self.refused.is_empty() && step.values().chain(link.as_ref()).any(reads)
    }

    fn repeatedly(&mut self, step: &Step, times: usize) -> Result<(), Stop> {
        let mut results = Vec::new();
        for index in 0..times {
            let before = self.scope.set_local("index", Some(json!(index)));
            let name = step.capture().map_or("result", String::as_str);
            let known = self.scope.captures();
            let mut single = step.clone();
            if let Some(capture) = single.capture_mut() {
                *capture = Some(name.to_owned());
            }
            let done = self.once(&single);
            self.scope.set_local("index", before);
            done?;
            results.extend(self.scope.take_since(&known, name));
        }
        if let Some(name) = step.capture() {
            self.scope.capture(name, Value::Array(results), None);
        }
        Ok(())
    }

    fn once(&mut self, step: &Step) -> Result<(), Stop> {
        match &step.verb {
            Verb::Call(call) => self.call_step(call),
            Verb::Get(get) => self.get_step(get),
            Verb::Hook(hook) => self.hook_step(hook),
            Verb::Listen(listen) => self.listen_step(listen),
            Verb::Await(come) => self.await_step(come),
            Verb::Token(token) => {
                let settings = self.session.settings();
                let now = self.session.now();
                let built = token::build(&token.token, &self.scope, settings, now)?;
                self.finish((token.capture.as_ref(), &[]), built, None, None)
            }
            Verb::Wait(wait) => {
                let text = self.scope.fill_text(&wait.wait)?;
                let time = text.as_str().and_then(wait_of);
                let time = time.ok_or_else(|| Stop::Error(format!("not a duration: {text}")))?;
                self.pass(time);
                Ok(())
            }
            Verb::Use(group) => self.use_step(group),
            Verb::Concurrently(race) => self.race_step(race),
        }
    }

    fn use_step(&mut self, used: &Use) -> Result<(), Stop> {
        let name = &used.r#use;
        let (service, group) = self.group(name)?;
        if self.depth >= GROUP_DEPTH_MAX {
            return Err(Stop::Error(format!(
                "groups are nested too deeply at {name}"
            )));
        }
        let mut with = group.with.clone();
        with.extend(used.with.clone());
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
        if let Some(prefix) = &used.r#as {
            for name in self.scope.captures().difference(&known) {
                if let Some(exchange) = self.captured_at.remove(name) {
                    let longer = format!("{prefix}.{name}");
                    self.captured_at.insert(longer, exchange);
                }
            }
            self.scope.prefix_since(&known, prefix);
        }
        Ok(())
    }

    /// A group and the service that it belongs to.
    fn group(&self, name: &str) -> Result<(&'a Service, &'a Group), Stop> {
        let found = self.rulebook.group(self.service, name);
        found.ok_or_else(|| Stop::Error(format!("no group is named {name}")))
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        self.session.wait(time);
        self.passed(time);
    }

    /// Lets time pass between polls.
    fn pass_between_polls(&mut self, time: Duration) {
        self.session.wait_between_polls(time);
        self.passed(time);
    }

    /// Keeps a payload to be judged as `kind`.
    fn keep_payload(&mut self, kind: &str, mut value: Arc<Value>, notes: Vec<Note>) -> Arc<Value> {
        self.session.mutate_payload(kind, Arc::make_mut(&mut value));
        self.evidence.payloads.push(Payload {
            kind: kind.to_owned(),
            value: Arc::clone(&value),
            notes,
            step: self.step,
        });
        value
    }

    /// The receiver of callbacks.
    fn callbacks(&self) -> Result<&'a Callbacks, Stop> {
        let none = || Stop::NotApplicable("no callback listener is configured".to_owned());
        self.session.callbacks().ok_or_else(none)
    }

    fn passed(&mut self, time: Duration) {
        self.evidence.events.push(Event::Passed(time));
        self.note_deliveries();
    }
}
