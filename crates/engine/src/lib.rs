//! Test engine: plans scenarios, runs them concurrently, has their evidence judged and emits run events.
//!
//! Prints nothing and writes no files. Reports consume the events.

pub mod bearer;
pub mod body;
mod boundary;
mod callbacks;
mod command;
pub mod derive;
mod difference;
pub mod evidence_file;
mod excerpt;
mod features;
mod gate;
pub mod link;
mod needs;
mod on_demand;
pub mod plan;
mod provision;
mod record;
pub mod request;
mod runner;
mod scheduler;
pub mod session;
pub mod sessions;
pub mod settings;
mod stop;
mod template;
#[cfg(test)]
mod tests;
mod timings;
pub mod token;

pub use command::CommandError;
pub use difference::{evidence_of, first_difference};
use evidence_file::EvidenceRecord;
pub use evidence_file::EvidenceWriter;
pub use features::{Features, features};
pub use gate::{Conclusion, Demands, gate};
pub use link::split_url;
pub use needs::need_in;
pub use on_demand::{OnDemandRunner, SharedSessions};
pub use plan::{Partition, Planned, Selection};
pub use settings::{Hook, HookTransport, Options, Settings, Target};
pub use stop::{SET_UP_FAILED, Stop};
pub use template::TemplateError;

use conformant_base::clock;
use conformant_base::http::Cause;
use conformant_judge::clients;
use conformant_judge::evidence::{Evidence, Exchange, Outcome, SkippedRule};
use conformant_judge::prove::{EXAMPLES_MAX, Mode, Prover};
use conformant_judge::{DocumentCache, Judgment};
use conformant_record::{
    Asked, Level, RunEvent, RunRecord, ScenarioResult, Spent, Timings, Verdict,
};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::Step;
use conformant_schema::Schemas;
pub use record::{Concluded, ONLY_IN_FILES, Recorder};
use runner::ScenarioOutcome;
pub use runner::{ScenarioRun, run_scenario};
use scheduler::Scheduler;
pub use scheduler::{Concurrency, ResourceClaim, jobs_default};
use session::{OpenError, Session};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use timings::Timekeeper;

/// Opens a session for each scenario.
pub trait Sessions: Sync {
    /// Opens the instance that the scenario runs against.
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, OpenError>;

    /// Base URL by service, for the record.
    fn targets(&self) -> BTreeMap<String, String>;

    /// The target resources that a scenario claims while it runs.
    fn resource_claim(&self, planned: &Planned<'_>) -> ResourceClaim {
        ResourceClaim {
            target_time: planned.length(),
            ..ResourceClaim::default()
        }
    }

    /// How many scenarios can use a phone number at the same time.
    fn phone_numbers(&self) -> usize {
        usize::MAX
    }

    /// The service that rejected every request, which interrupted the run.
    fn denied_by(&self) -> Option<String> {
        None
    }

    /// The service that stopped answering, which interrupted the run, and why.
    fn gone(&self) -> Option<(String, String)> {
        None
    }

    /// Ends the run if a service stops answering, until the run is done.
    fn watch(&self, _is_done: &dyn Fn() -> bool) {}

    /// The services that never answered, and why.
    fn never_reached(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The service that made scenarios wait since the last call, and the reason.
    fn waits(&self) -> Option<(String, String)> {
        None
    }

    /// How far the target's clock moved since the run began, where the target reports it.
    fn clock_seconds(&self) -> Option<f64> {
        None
    }

    /// The number of scenario threads for this number of jobs.
    fn threads(&self, jobs: usize) -> usize {
        jobs
    }
}

/// How a run ended, apart from its record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnd {
    /// A target or hook failed: unreachable, silent, not HTTP, redirecting or failing.
    pub has_infrastructure_error: bool,
    /// The service for which the run was aborted: it answers only 401 and 403.
    pub denied_by: Option<String>,
    /// The service for which the run was aborted: it was reached and refuses connections now. With the reason.
    pub gone: Option<(String, String)>,
    /// The services that never answered, with the reasons.
    pub never_reached: BTreeMap<String, String>,
    /// When each scenario ran and what it waited for, in real time.
    pub timings: Timings,
}

/// Fills in a value the way steps are filled in, with only these captures. For fuzz targets.
#[doc(hidden)]
pub fn filled(
    rulebook: &Rulebook,
    captures: &BTreeMap<String, serde_json::Value>,
    value: &serde_json::Value,
) -> Result<serde_json::Value, TemplateError> {
    let (schemas, target) = (Schemas::default(), serde_json::json!({}));
    let mut scope = template::Scope::new(rulebook, &schemas, target, String::new());
    for (name, captured) in captures {
        scope.capture(name, captured.clone(), None);
    }
    scope.fill(value)
}

/// Runs a plan and emits events in the plan's order, whatever the number of jobs.
///
/// - `interrupted` ends the run within a moment; the record is then marked incomplete.
/// - `finish` may change the record before it is emitted, for example to apply waivers.
#[expect(clippy::too_many_arguments, reason = "the arguments are independent")]
#[expect(clippy::too_many_lines, reason = "one loop over the events of a run")]
pub fn run(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &[Planned<'_>],
    sessions: &dyn Sessions,
    options: &Options,
    interrupted: &AtomicBool,
    emit: &mut dyn FnMut(RunEvent),
    finish: impl FnOnce(&mut RunRecord, &RunEnd),
) -> RunEnd {
    let targets = sessions.targets();
    emit(RunEvent::Started {
        scenarios: planned.len(),
        targets: targets.clone(),
    });
    let mut recorder = Recorder::new(rulebook, targets, options.seed);
    let (seed, scenarios) = (options.seed, planned.len());
    let prover = Prover::new(rulebook, schemas, options.prove, seed, scenarios);
    let started = clock::monotonic();
    let deadline = started + options.run_max;
    let (sender, receiver) = mpsc::channel();
    let mut complete = true;
    let mut ended = RunEnd::default();
    let timekeeper = Timekeeper::new();
    let run_scenario = |index: usize, lane: usize, sender: &Sender<Progress>| {
        let started_at = clock::monotonic();
        let (planned, seed) = (&planned[index], options.seed);
        if sender.send(Progress::ScenarioBegan(index)).is_err() {
            return false;
        }
        let observers = Observers::new(options, &prover, index);
        let concluded = conclude_observed(
            rulebook,
            schemas,
            planned,
            sessions,
            seed,
            interrupted,
            observers,
        );
        timekeeper.record((index, planned), lane, started_at, &concluded.waited);
        sender
            .send(Progress::ScenarioEnded(index, Box::new(concluded)))
            .is_ok()
    };
    let claims = planned.iter().map(|p| sessions.resource_claim(p)).collect();
    let phone_numbers = || sessions.phone_numbers();
    let scheduler = Scheduler::new(claims, options.shuffle, Box::new(phone_numbers));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends_the_watch = SetOnDrop(&is_done);
        scope.spawn(|| sessions.watch(&|| is_done.load(Ordering::Relaxed)));
        let (run_scenario, scheduler) = (&run_scenario, &scheduler);
        for lane in 0..sessions.threads(options.jobs.max(1)).min(planned.len()) {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(running) = scheduler.start_next() {
                    if !run_scenario(running.index, lane, &sender) {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early: BTreeMap<usize, Concluded> = BTreeMap::new();
        let (mut next, mut reported) = (0, 0);
        while let Some(progress) = next_progress(&receiver, deadline, interrupted) {
            let seconds = started.elapsed().as_secs();
            if seconds > reported {
                reported = seconds;
                emit(RunEvent::Alive { seconds });
            }
            if let Some((service, why)) = sessions.waits() {
                emit(RunEvent::Waiting { service, why });
            }
            match progress {
                Progress::Alive => {}
                Progress::ScenarioBegan(index) => emit(RunEvent::ScenarioBegan {
                    id: planned[index].scenario.id.clone(),
                }),
                Progress::ScenarioEnded(index, mut concluded) => {
                    recorder.settle(&mut concluded);
                    emit(concluded.run_event());
                    early.insert(index, *concluded);
                }
            }
            while let Some(concluded) = early.remove(&next) {
                next += 1;
                ended.has_infrastructure_error |= concluded.has_infrastructure_error;
                complete &= !matches!(concluded.stopped, Some(Stop::Interrupted));
                emit(concluded.ended_event());
                recorder.add(concluded);
            }
        }
    });
    ended.denied_by = sessions.denied_by();
    ended.gone = sessions.gone();
    ended.never_reached = sessions.never_reached();
    ended.has_infrastructure_error |= ended.gone.is_some() || ended.denied_by.is_some();
    ended.timings = timekeeper.finish(
        scheduler.claims(),
        options.jobs.max(1),
        sessions.phone_numbers(),
    );
    // A scenario may have finished although its last wait was cut short.
    complete &= !interrupted.load(Ordering::Relaxed);
    let mut record = assemble_record(recorder, planned, ended.denied_by.as_deref(), complete);
    prover.finish(&mut record);
    record_duration(&mut record, sessions, started);
    finish(&mut record, &ended);
    emit(RunEvent::Finished {
        record: Box::new(record),
    });
    ended
}

/// Sets a flag when it is dropped, also by a panic.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The record of all rules of the services that the plan covers.
fn assemble_record(
    mut recorder: Recorder<'_>,
    planned: &[Planned<'_>],
    denied_by: Option<&str>,
    complete: bool,
) -> RunRecord {
    if let Some(service) = denied_by {
        recorder.void_service(service);
    }
    let services: Vec<&str> = planned.iter().map(|p| p.service.name.as_str()).collect();
    recorder.finish(|rule| services.contains(&rule.service.as_str()), complete)
}

/// The record of scenarios that ran one by one, in the plan's order.
pub fn record_of(
    rulebook: &Rulebook,
    sessions: &dyn Sessions,
    planned: &[Planned<'_>],
    concluded: Vec<Concluded>,
) -> RunRecord {
    let mut recorder = Recorder::new(rulebook, sessions.targets(), 0);
    for concluded in concluded {
        recorder.add(concluded);
    }
    assemble_record(recorder, planned, None, true)
}

/// Records how long a run took, where time is real.
fn record_duration(record: &mut RunRecord, sessions: &dyn Sessions, started: Instant) {
    if record.is_live() {
        record.summary.seconds = started.elapsed().as_secs_f64();
        record.summary.clock_seconds = sessions.clock_seconds();
    }
}

/// Progress reports of the jobs.
enum Progress {
    /// Nothing happened for a while.
    Alive,
    /// A scenario of the plan began.
    ScenarioBegan(usize),
    /// It ended.
    ScenarioEnded(usize, Box<Concluded>),
}

/// The interval of [`RunEvent::Alive`].
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// The next progress report. Interrupts the run at its deadline.
fn next_progress(
    receiver: &mpsc::Receiver<Progress>,
    deadline: Instant,
    interrupted: &AtomicBool,
) -> Option<Progress> {
    let left = deadline.saturating_duration_since(clock::monotonic());
    match receiver.recv_timeout(left.min(ALIVE_EVERY)) {
        Ok(next) => Some(next),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            if left <= ALIVE_EVERY {
                interrupted.store(true, Ordering::Relaxed);
            }
            Some(Progress::Alive)
        }
    }
}

/// Runs one scenario and has its evidence judged. A panic becomes an internal error of that scenario.
pub fn conclude(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
) -> Concluded {
    conclude_observed(
        rulebook,
        schemas,
        planned,
        sessions,
        seed,
        interrupted,
        Observers::default(),
    )
}

/// The evidence of a run with cached validation results, so that a rerun with a change is judged incrementally.
#[derive(Debug, Default)]
pub struct RecordedRun {
    evidence: Evidence,
    memo: DocumentCache,
    /// Whether neither the responses nor the requests had a finding.
    is_sound: bool,
}

impl RecordedRun {
    /// Exchanges whose requests were found to be valid.
    fn valid_requests(&self) -> &[Exchange] {
        if self.is_sound {
            &self.evidence.exchanges
        } else {
            &[]
        }
    }
}

/// Same as [`conclude`], but also returns the evidence. The prover, if any, observes the run.
pub fn conclude_with_evidence(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    prover: Option<&Prover<'_>>,
) -> (Concluded, RecordedRun) {
    let recorded = RefCell::default();
    let observers = Observers {
        prover,
        recorded: Some(&recorded),
        evidence_writer: None,
    };
    let never_interrupted = AtomicBool::new(false);
    let concluded = conclude_observed(
        rulebook,
        schemas,
        planned,
        sessions,
        seed,
        &never_interrupted,
        observers,
    );
    let recorded = recorded.into_inner();
    recorded.memo.close();
    (concluded, recorded)
}

/// Reruns a scenario in the given session and judges it incrementally against the recorded run.
///
/// Returns verdict and findings only; the other fields of the result are empty.
pub fn conclude_again(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    session: &dyn Session,
    seed: u64,
    recorded: &RecordedRun,
) -> Concluded {
    let id = &planned.scenario.id;
    let work = || {
        let never_interrupted = AtomicBool::new(false);
        let scenario_run = ScenarioRun {
            earlier: &recorded.evidence.exchanges,
            ..ScenarioRun::new(rulebook, schemas, planned, (seed, 0))
        };
        let ScenarioOutcome { evidence, stop, .. } =
            run_scenario(scenario_run, session, &never_interrupted);
        let judgment =
            conformant_judge::judge_mutated(rulebook, schemas, &evidence, &recorded.memo);
        let stop = match stop {
            None if judgment.findings.is_empty() => {
                find_invalid_request(rulebook, schemas, &evidence, recorded.valid_requests())
            }
            stop => stop,
        };
        conclude_run(id, judgment, stop, evidence.exchanges.len(), 0.0)
    };
    guarded(id, work)
}

/// Optional observers of a scenario run.
#[derive(Clone, Copy, Default)]
struct Observers<'b, 'p> {
    prover: Option<&'b Prover<'p>>,
    /// Receives the evidence.
    recorded: Option<&'b RefCell<RecordedRun>>,
    /// With the scenario's index in the plan.
    evidence_writer: Option<(&'b EvidenceWriter, usize)>,
}

impl<'b, 'p> Observers<'b, 'p> {
    fn new(options: &'b Options, prover: &'b Prover<'p>, index: usize) -> Self {
        Self {
            prover: (options.prove != Mode::Off).then_some(prover),
            recorded: None,
            evidence_writer: options
                .evidence_writer
                .as_deref()
                .map(|evidence_writer| (evidence_writer, index)),
        }
    }

    /// Notes that the scenario left no evidence.
    fn skip(&self) {
        if let Some((evidence_writer, index)) = self.evidence_writer {
            evidence_writer.skip(index);
        }
    }
}

fn conclude_observed(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
    observers: Observers<'_, '_>,
) -> Concluded {
    let work = || {
        conclude_unguarded(
            rulebook,
            schemas,
            planned,
            sessions,
            seed,
            interrupted,
            observers,
        )
    };
    let mut is_done = false;
    let concluded = guarded(&planned.scenario.id, || {
        let concluded = work();
        is_done = true;
        concluded
    });
    if !is_done {
        observers.skip();
    }
    concluded
}

/// Turns a panic in a scenario into an internal error of that scenario.
fn guarded(id: &str, work: impl FnOnce() -> Concluded) -> Concluded {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let stop = Stop::Error(format!("internal: {what}"));
        conclude_run(id, Judgment::default(), Some(stop), 0, 0.0)
    })
}

#[expect(
    clippy::too_many_lines,
    reason = "one loop over the attempts of a scenario"
)]
fn conclude_unguarded(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
    observers: Observers<'_, '_>,
) -> Concluded {
    /// How often a scenario is retried that other clients of the target disturb.
    const ATTEMPTS_MAX: usize = 5;
    let id = &planned.scenario.id;
    // Each attempt has names of its own.
    let (mut attempt, mut disturbances, mut round) = (0, 0, 1);
    // What is missing is caused once more by fresh means. Missing again, it is a finding.
    let mut is_caused_again = false;
    let mut waited = Spent::default();
    if interrupted.load(Ordering::Relaxed) {
        return never_began(planned, observers);
    }
    loop {
        let asked = clock::monotonic();
        let session = match sessions.open(planned) {
            Ok(session) => session,
            Err(error) => {
                observers.skip();
                let stop = Some(Stop::Error(format!("failed to {error}")));
                return conclude_run(id, Judgment::default(), stop, 0, 0.0);
            }
        };
        waited.turn += asked.elapsed().as_secs_f64();
        if is_caused_again && planned.is_race() {
            session.shorten_callback_wait();
        }
        let began = session.now();
        let scenario_run = ScenarioRun {
            looks_early: planned.is_race() && round < session.settings().rounds,
            ..ScenarioRun::new(rulebook, schemas, planned, (seed, attempt))
        };
        let outcome = run_scenario(scenario_run, session.as_ref(), interrupted);
        let (mut evidence, stop, memo) = (outcome.evidence, outcome.stop, outcome.memo);
        let seconds = session.seconds_since(began);
        let examples = observers.prover.map_or(0, |_| EXAMPLES_MAX);
        let judgment =
            conformant_judge::judge_with_cache(rulebook, schemas, &evidence, &memo, examples);
        // An invalid request of ours may repeat a value that the target returned, so findings come first.
        let stop = match stop {
            None if judgment.findings.is_empty() => {
                find_invalid_request(rulebook, schemas, &evidence, &[])
            }
            stop => stop,
        };
        let went_wrong = !judgment.findings.is_empty()
            || matches!(stop, Some(Stop::Unexpected | Stop::Inconclusive(_)));
        let lost = find_loss(session.as_ref(), &evidence, &judgment);
        let disturbed = lost.or_else(|| find_disturbance(session.as_ref(), planned, went_wrong));
        attempt += 1;
        waited.add(&session.waited());
        let may_go_on = !interrupted.load(Ordering::Relaxed);
        disturbances += usize::from(disturbed.is_some());
        if disturbed.is_some() && disturbances < ATTEMPTS_MAX && may_go_on {
            continue;
        }
        // What an earlier run left under the given names is not broken under new ones.
        let has_given_names = attempt == 1 && session.is_live();
        if has_given_names
            && session.settings().are_names_given
            && !judgment.findings.is_empty()
            && may_go_on
        {
            continue;
        }
        if !is_caused_again && went_wrong && session.has_missed_callback() && may_go_on {
            is_caused_again = true;
            continue;
        }
        let is_sound = disturbed.is_none() && !went_wrong && stop.is_none();
        let rounds = || session.settings().rounds;
        if is_sound && may_go_on && planned.is_race() && round < rounds() {
            round += 1;
            continue;
        }
        if let Some(prover) = observers.prover.filter(|_| disturbed.is_none()) {
            let turn = sessions.resource_claim(planned).priority();
            prover.test_scenario(turn, &mut evidence, &judgment, &memo);
        }
        let judgment = judgment.without_examples();
        let broken = judgment.findings.iter().map(|f| f.rule.clone()).collect();
        let void = disturbed.clone();
        let (judgment, stop) = match disturbed {
            Some(why) => (judgment.void(&why), Some(Stop::Inconclusive(why))),
            None => (judgment, stop),
        };
        let turned_away = session.turned_away();
        let scenario = Some(&planned.scenario);
        let judged = (judgment, stop.clone());
        let concluded = summarize(rulebook, scenario, &evidence, judged, seconds);
        if let Some(recorded) = observers.recorded {
            let is_sound = concluded.stopped.is_none() && concluded.judgment.findings.is_empty();
            recorded.replace(RecordedRun {
                evidence,
                memo,
                is_sound,
            });
            return concluded;
        }
        if let Some((evidence_writer, index)) = observers.evidence_writer {
            let turned_away = turned_away.clone();
            evidence_writer.keep(
                index,
                EvidenceRecord {
                    evidence,
                    stop,
                    void,
                    turned_away,
                    seconds,
                    of_answers: Vec::new(),
                    broken,
                },
            );
        }
        return Concluded {
            turned_away,
            waited,
            ..concluded
        };
    }
}

/// The conclusion of a scenario that did not begin before the run ended. To open a session and to evaluate all rules would
/// delay the end.
fn never_began(planned: &Planned<'_>, observers: Observers<'_, '_>) -> Concluded {
    const WHY: &str = "the run ended before";
    let id = &planned.scenario.id;
    let mut judgment = Judgment::default();
    let mut evidence = Evidence {
        scenario: id.clone(),
        ..Evidence::default()
    };
    for rule in planned.scenario.steps.iter().flat_map(Step::rules) {
        judgment.inconclusive(rule, WHY);
        evidence.missed.push(SkippedRule::because(rule, WHY));
    }
    let stop = Some(Stop::Interrupted);
    if let Some((evidence_writer, index)) = observers.evidence_writer {
        let kept = EvidenceRecord {
            evidence,
            stop: stop.clone(),
            void: None,
            turned_away: None,
            seconds: 0.0,
            of_answers: Vec::new(),
            broken: BTreeSet::new(),
        };
        evidence_writer.keep(index, kept);
    }
    conclude_run(id, judgment, stop, 0, 0.0)
}

/// Why the findings of a scenario are unreliable: a service that it used stopped answering.
pub fn find_loss(
    session: &dyn Session,
    evidence: &Evidence,
    judgment: &Judgment,
) -> Option<String> {
    if judgment.findings.is_empty() {
        return None;
    }
    let services = evidence.exchanges.iter().map(|e| e.service.as_str());
    let services: BTreeSet<&str> = services.collect();
    session.lost(&Vec::from_iter(services))
}

/// What other clients of the target did to a scenario.
fn find_disturbance(
    session: &dyn Session,
    planned: &Planned<'_>,
    went_wrong: bool,
) -> Option<String> {
    // A token may be rejected because another client moved the clock, which looks correct.
    let depends_on_time = planned.scenario.steps.iter().any(Step::is_token);
    let may_be_disturbed = went_wrong || depends_on_time;
    session
        .cut_off()
        .or_else(|| may_be_disturbed.then(|| session.disturbed()).flatten())
}

/// Stops a scenario without findings if one of its requests that should be accepted breaks the documents.
fn find_invalid_request(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    valid_requests: &[Exchange],
) -> Option<Stop> {
    let found = clients::find_invalid_requests(rulebook, schemas, evidence, valid_requests);
    let first = found.first()?;
    Some(Stop::Error(format!(
        "step {} is not a valid request: {} ({})",
        first.step, first.message, first.rule
    )))
}

/// The result of a scenario, with the other facts that the record contains.
fn summarize(
    rulebook: &Rulebook,
    scenario: Option<&Scenario>,
    evidence: &Evidence,
    (judgment, stop): (Judgment, Option<Stop>),
    seconds: f64,
) -> Concluded {
    let exchanges = evidence.exchanges.len();
    let concluded = conclude_run(&evidence.scenario, judgment, stop, exchanges, seconds);
    let is_infrastructure_error = |exchange: &Exchange| match &exchange.outcome {
        // A redirect outside the target does not prove that the target failed, nor does an answer beyond our size limit.
        Outcome::Fault { cause, .. } => {
            !matches!(cause, Cause::Redirect | Cause::EvidenceOverLimit(_))
        }
        Outcome::Answered { response, .. } => (300..400).contains(&response.status),
    };
    let operations = evidence
        .exchanges
        .iter()
        .map(|e| format!("{}/{}", e.service, e.operation))
        .collect();
    let mut services: BTreeMap<String, Asked> = BTreeMap::new();
    for exchange in &evidence.exchanges {
        let asked = Asked::once(excerpt::milliseconds(exchange));
        services
            .entry(exchange.service.clone())
            .or_default()
            .add(asked);
    }
    let shown = excerpt::Shown::of(evidence, &concluded.judgment);
    let mut concluded = Concluded {
        has_infrastructure_error: evidence.exchanges.iter().any(is_infrastructure_error)
            || matches!(
                concluded.stopped,
                Some(Stop::HookFailed(_) | Stop::Unreachable(_))
            ),
        services,
        operations,
        kinds: conformant_judge::kinds_of(rulebook, evidence),
        shown,
        ..concluded
    };
    if let Some(scenario) = scenario.filter(|_| excerpt::has_steps(concluded.result.verdict)) {
        concluded.result.steps = excerpt::steps(scenario, evidence, &concluded.judgment);
    }
    concluded
}

fn conclude_run(
    id: &str,
    judgment: Judgment,
    stop: Option<Stop>,
    exchanges: usize,
    seconds: f64,
) -> Concluded {
    let failed = judgment.findings.iter().any(|f| f.level == Level::Must);
    let (verdict, reason) = match &stop {
        _ if failed => (Verdict::Fail, String::new()),
        None => (Verdict::Pass, String::new()),
        Some(Stop::NotApplicable(why)) => (Verdict::NotApplicable, why.clone()),
        Some(Stop::Inconclusive(why) | Stop::Unreachable(why) | Stop::HookFailed(why)) => {
            (Verdict::Inconclusive, why.clone())
        }
        Some(Stop::Interrupted) => (Verdict::Inconclusive, "the run ended before".to_owned()),
        Some(Stop::Masked(rule)) => (Verdict::Inconclusive, format!("masked by {rule}")),
        Some(Stop::Unexpected) => (
            Verdict::Inconclusive,
            "a step was answered against its expectation".to_owned(),
        ),
        Some(Stop::Error(why)) => (Verdict::Error, why.clone()),
    };
    let result = ScenarioResult {
        id: id.to_owned(),
        verdict,
        seconds,
        reason,
        failed_before: Vec::new(),
        steps: Vec::new(),
    };
    let (operations, kinds) = (BTreeSet::new(), BTreeSet::new());
    Concluded {
        result,
        judgment,
        stopped: stop,
        exchanges,
        services: BTreeMap::new(),
        has_infrastructure_error: false,
        turned_away: None,
        operations,
        kinds,
        shown: excerpt::Shown::default(),
        waited: Spent::default(),
    }
}
