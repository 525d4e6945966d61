//! Test engine: plans scenarios, runs them concurrently, has their evidence judged and emits run events.
//!
//! Prints nothing and writes no files. Reports consume the events.

pub mod bearer;
pub mod body;
mod boundary;
mod callbacks;
mod command;
mod conclude;
mod concluded;
pub mod derive;
mod difference;
pub mod evidence_file;
mod excerpt;
mod features;
mod gate;
mod hook_effects;
pub mod link;
mod needs;
mod on_demand;
pub mod plan;
pub mod probe;
mod provision;
mod record;
pub mod request;
mod runner;
mod scheduler;
pub mod session;
pub mod sessions;
pub mod settings;
mod shown_steps;
mod stop;
mod summary;
mod template;
#[cfg(test)]
mod tests;
mod timings;
pub mod token;

pub use command::CommandError;
use conclude::{Job, Observers};
pub use conclude::{RecordedRun, conclude, conclude_again, conclude_with_evidence, find_loss};
pub use difference::{evidence_of, first_difference};
pub use evidence_file::EvidenceWriter;
pub use features::{Features, NEW_CELLPHONE, features};
pub use gate::{Conclusion, Demands, gate};
pub use hook_effects::fetch_of_setting;
pub use link::split_url;
pub use needs::need_in;
pub use on_demand::{OnDemandRunner, SharedSessions};
pub use plan::{Partition, Planned, Selection};
pub use settings::{Hook, HookTransport, Options, Settings, Target};
pub use stop::{ENDED_BEFORE, SET_UP_FAILED, Stop};
pub use template::TemplateError;

pub use concluded::{Concluded, Unanswered, VoidService};
use conformant_base::clock;
use conformant_judge::prove::Prover;
use conformant_record::{RunEvent, RunRecord, Timings};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
pub use record::{ONLY_IN_FILES, Recorder};
pub use runner::{ScenarioRun, run_scenario};
use scheduler::Scheduler;
pub use scheduler::{Concurrency, ResourceClaim, jobs_default};
use session::{OpenError, Session};
use std::collections::{BTreeMap, BTreeSet};
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

    /// Sends the probe of each of these services that received no request, because their scenarios ended before their first
    /// one.
    fn probe_untried(&self, _services: &BTreeSet<String>) {}

    /// What is known so far about services that reject, lead elsewhere, serve nothing or never answered.
    fn services(&self) -> RunEnd {
        RunEnd::default()
    }

    /// The service that stopped answering, which interrupted the run, and why.
    fn gone(&self) -> Option<(String, String)> {
        None
    }

    /// Ends the run if a service stops answering, until the run is done.
    fn watch(&self, _is_done: &dyn Fn() -> bool) {}

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
    /// The services that answer only 401 and 403. The first one aborted the run.
    pub denied_by: Vec<String>,
    /// The services that accept the credentials for reads, and reject each request that writes.
    pub read_only: Vec<String>,
    /// The service that rejected the credentials of the second account.
    pub rejected_account: Option<String>,
    /// The service for which the run was aborted: it was reached and refuses connections now. With the reason.
    pub gone: Option<(String, String)>,
    /// The services whose address leads elsewhere, with the answer that shows it.
    pub wrong_addresses: Vec<(String, String)>,
    /// The services that served no request, with the status of their answers.
    pub unserved: Vec<(String, u16)>,
    /// The time limit of the run, if it ended the run.
    pub time_limit: Option<Duration>,
    /// The services that never answered, with the reasons.
    pub never_reached: BTreeMap<String, String>,
    /// The requests without an answer to judge.
    pub unanswered: Option<Unanswered>,
    /// When each scenario ran and what it waited for, in real time.
    pub timings: Timings,
}

impl RunEnd {
    /// The services that ended the run or never answered.
    fn of(sessions: &dyn Sessions) -> Self {
        let mut ended = sessions.services();
        ended.gone = sessions.gone();
        ended.has_infrastructure_error = ended.gone.is_some()
            || ended.rejected_account.is_some()
            || !ended.never_reached.is_empty()
            || !ended.void_services().is_empty();
        ended
    }

    /// The services whose answers are not judged, and why.
    pub fn void_services(&self) -> Vec<VoidService> {
        let denied = self.denied_by.iter().map(|name| VoidService::denied(name));
        let mut void: Vec<VoidService> = denied.collect();
        for (name, why) in &self.wrong_addresses {
            void.push(VoidService::elsewhere(name, why));
        }
        for (name, status) in &self.unserved {
            void.push(VoidService::unserved(name, *status));
        }
        void.extend(
            self.read_only
                .iter()
                .map(|name| VoidService::read_only(name)),
        );
        void
    }
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
#[expect(
    clippy::too_many_lines,
    reason = "one loop over the progress of the jobs"
)]
#[expect(clippy::too_many_arguments, reason = "the arguments are independent")]
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
    let mut has_infrastructure_error = false;
    let mut unanswered = None;
    let timekeeper = Timekeeper::new();
    let run_scenario = |index: usize, lane: usize, sender: &Sender<Progress>| {
        let started_at = clock::monotonic();
        let planned = &planned[index];
        if sender.send(Progress::ScenarioBegan(index)).is_err() {
            return false;
        }
        let observers = Observers::new(options, &prover, index);
        let job = Job {
            rulebook,
            schemas,
            planned,
            sessions,
            seed,
            interrupted,
        };
        let concluded = job.conclude(observers);
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
                has_infrastructure_error |= concluded.has_infrastructure_error;
                Unanswered::add(&mut unanswered, concluded.unanswered.clone());
                complete &= !matches!(concluded.stopped, Some(Stop::Interrupted));
                emit(concluded.ended_event(&void_so_far(sessions, &concluded)));
                recorder.add(concluded);
            }
        }
    });
    if !interrupted.load(Ordering::Relaxed) {
        sessions.probe_untried(&planned.iter().flat_map(Planned::touches).collect());
    }
    let mut ended = RunEnd::of(sessions);
    ended.has_infrastructure_error |= has_infrastructure_error;
    ended.unanswered = unanswered;
    ended.timings = timekeeper.finish(
        scheduler.claims(),
        options.jobs.max(1),
        sessions.phone_numbers(),
    );
    // A scenario may have finished although its last wait was cut short.
    complete &= !interrupted.load(Ordering::Relaxed);
    let is_late = !complete && clock::monotonic() >= deadline;
    if is_late && ended.void_services().is_empty() && ended.gone.is_none() {
        ended.time_limit = Some(options.run_max);
    }
    let mut record = assemble_record(
        rulebook,
        recorder,
        planned,
        &ended.void_services(),
        complete,
    );
    prover.finish(&mut record);
    record_duration(&mut record, sessions, started);
    finish(&mut record, &ended);
    emit(RunEvent::Finished {
        record: Box::new(record),
    });
    ended
}

/// The services whose answers to a scenario are not judged, as far as it is known.
fn void_so_far(sessions: &dyn Sessions, concluded: &Concluded) -> Vec<VoidService> {
    match concluded.turned_away {
        Some(_) => sessions.services().void_services(),
        None => Vec::new(),
    }
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
    rulebook: &Rulebook,
    mut recorder: Recorder<'_>,
    planned: &[Planned<'_>],
    void: &[VoidService],
    complete: bool,
) -> RunRecord {
    for void in void {
        recorder.void_service(void);
    }
    let services: Vec<&str> = planned.iter().map(|p| p.service.name.as_str()).collect();
    let mut record = recorder.finish(|rule| services.contains(&rule.service.as_str()), complete);
    for void in void {
        void.explain(rulebook, &mut record);
    }
    record
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
    assemble_record(rulebook, recorder, planned, &[], true)
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
