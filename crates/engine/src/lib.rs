//! The engine: plans scenarios, plays them side by side, has their evidence judged, and emits one
//! stream of run events.
//!
//! It prints nothing and writes no file; reports consume the events.

pub mod bearer;
pub mod body;
mod callbacks;
mod command;
pub mod derive;
mod gate;
pub mod kept;
pub mod link;
mod near;
mod needs;
pub mod plan;
mod provision;
pub mod race;
mod record;
pub mod request;
mod runner;
pub mod session;
pub mod sessions;
pub mod settings;
mod shown;
mod singly;
mod stage;
mod stop;
mod template;
#[cfg(test)]
mod tests;
mod timings;
pub mod token;

pub use command::CommandError;
pub use gate::{Conclusion, Demands, gate};
pub use kept::Keeper;
use kept::Played;
pub use link::split_url;
pub use plan::{Partition, Planned, Selection};
pub use settings::{Hook, HookWay, Options, Settings, Target};
pub use singly::{SharedSessions, Singly};
pub use stop::{SET_UP_FAILED, Stop};
pub use template::TemplateError;

use conformant_base::clock;
use conformant_base::http::Cause;
use conformant_judge::clients;
use conformant_judge::evidence::{Evidence, Exchange, Outcome};
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
use runner::Story;
pub use runner::{Telling, play};
use session::{OpenError, Session};
use stage::Stage;
pub use stage::{Company, Room, jobs_default};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use timings::Timekeeper;

/// Opens a session for each scenario.
pub trait Sessions: Sync {
    /// The world that the scenario talks to.
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, OpenError>;

    /// Base URL by service, for the record.
    fn targets(&self) -> BTreeMap<String, String>;

    /// What a story takes of the target while it is told.
    fn room(&self, planned: &Planned<'_>) -> Room {
        Room {
            length: planned.length(),
            ..Room::default()
        }
    }

    /// How many stories can have a person at a time.
    fn persons(&self) -> usize {
        usize::MAX
    }

    /// The service that answered nothing but refusals, for which the run was interrupted.
    fn denied_by(&self) -> Option<String> {
        None
    }

    /// What a target made stories wait for since this was last asked: the service, and why.
    fn waits(&self) -> Option<(String, String)> {
        None
    }

    /// How far the targets' clock went since the run began, where it is told.
    fn clock_seconds(&self) -> Option<f64> {
        None
    }

    /// Stories under way for that many jobs.
    fn threads(&self, jobs: usize) -> usize {
        jobs
    }
}

/// How a run ended, beside its record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// A target or a hook got in the way: unreachable, silent, not HTTP, redirecting, failing.
    pub trouble: bool,
    /// Why the run was given up: a service that answers nothing but 401 and 403, by its name.
    pub denied_by: Option<String>,
    /// When each story was told, and what it waited for; in real time.
    pub timings: Timings,
}

/// Fills in a value as steps are filled in, with these captures and nothing else: for those who try to
/// break it.
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

/// Runs a plan. Events come in the plan's order, whatever the number of jobs; `interrupted` ends
/// the run within a moment and leaves a record that is marked incomplete. `finish` may change the
/// record before it is emitted, which is how waivers come in; it hears how the run ended.
#[expect(clippy::too_many_arguments, reason = "each is a thing of its own")]
pub fn run(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &[Planned<'_>],
    sessions: &dyn Sessions,
    options: &Options,
    interrupted: &AtomicBool,
    emit: &mut dyn FnMut(RunEvent),
    finish: impl FnOnce(&mut RunRecord, &Ended),
) -> Ended {
    let targets = sessions.targets();
    emit(RunEvent::Started {
        scenarios: planned.len(),
        targets: targets.clone(),
    });
    let mut recorder = Recorder::new(rulebook, targets, options.seed);
    let (seed, stories) = (options.seed, planned.len());
    let prover = Prover::new(rulebook, schemas, options.prove, seed, stories);
    let started = clock::monotonic();
    let deadline = started + options.run_max;
    let (sender, receiver) = mpsc::channel();
    let mut complete = true;
    let mut ended = Ended::default();
    let timekeeper = Timekeeper::new();
    let tell = |index: usize, lane: usize, sender: &Sender<Progress>| {
        let entered = clock::monotonic();
        let (planned, seed) = (&planned[index], options.seed);
        if sender.send(Progress::Began(index)).is_err() {
            return false;
        }
        let beside = Beside::of(options, &prover, index);
        let concluded = conclude_beside(
            rulebook,
            schemas,
            planned,
            sessions,
            seed,
            interrupted,
            beside,
        );
        timekeeper.told((index, planned), lane, entered, &concluded.waited);
        sender
            .send(Progress::Ended(index, Box::new(concluded)))
            .is_ok()
    };
    let rooms = planned.iter().map(|p| sessions.room(p)).collect();
    let persons = || sessions.persons();
    let stage = Stage::new(rooms, options.shuffle, Box::new(persons));
    std::thread::scope(|scope| {
        let (tell, stage) = (&tell, &stage);
        for lane in 0..sessions.threads(options.jobs.max(1)).min(planned.len()) {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(entered) = stage.enter() {
                    if !tell(entered.index, lane, &sender) {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early: BTreeMap<usize, Concluded> = BTreeMap::new();
        let (mut due, mut said) = (0, 0);
        while let Some(progress) = next_of(&receiver, deadline, interrupted) {
            let seconds = started.elapsed().as_secs();
            if seconds > said {
                said = seconds;
                emit(RunEvent::Alive { seconds });
            }
            if let Some((service, why)) = sessions.waits() {
                emit(RunEvent::Waiting { service, why });
            }
            match progress {
                Progress::Alive => {}
                Progress::Began(index) => emit(RunEvent::ScenarioBegan {
                    id: planned[index].scenario.id.clone(),
                }),
                Progress::Ended(index, mut concluded) => {
                    recorder.settle(&mut concluded);
                    emit(RunEvent::ScenarioPlayed {
                        id: planned[index].scenario.id.clone(),
                        verdict: concluded.result.verdict,
                    });
                    early.insert(index, *concluded);
                }
            }
            while let Some(concluded) = early.remove(&due) {
                due += 1;
                ended.trouble |= concluded.trouble;
                complete &= !matches!(concluded.stopped, Some(Stop::Interrupted));
                emit(RunEvent::ScenarioEnded {
                    result: concluded.result.clone(),
                    findings: concluded.judgment.findings.clone(),
                    exchanges: concluded.exchanges,
                });
                recorder.add(concluded);
            }
        }
    });
    ended.denied_by = sessions.denied_by();
    ended.timings = timekeeper.finish(stage.rooms(), options.jobs.max(1), sessions.persons());
    // A story may have ended by itself although its last wait was cut short.
    complete &= !interrupted.load(Ordering::Relaxed);
    let mut record = recorded(recorder, planned, ended.denied_by.as_deref(), complete);
    prover.finish(&mut record);
    tell_the_time(&mut record, sessions, started);
    finish(&mut record, &ended);
    emit(RunEvent::Finished {
        record: Box::new(record),
    });
    ended
}

/// The record of all rules of the services that were played.
fn recorded(
    mut recorder: Recorder<'_>,
    planned: &[Planned<'_>],
    denied_by: Option<&str>,
    complete: bool,
) -> RunRecord {
    if let Some(service) = denied_by {
        recorder.turned_away_by(service);
    }
    let services: Vec<&str> = planned.iter().map(|p| p.service.name.as_str()).collect();
    recorder.finish(|rule| services.contains(&rule.service.as_str()), complete)
}

/// The record of stories that were told one by one, in the plan's order.
pub fn record_of(
    rulebook: &Rulebook,
    sessions: &dyn Sessions,
    planned: &[Planned<'_>],
    told: Vec<Concluded>,
) -> RunRecord {
    let mut recorder = Recorder::new(rulebook, sessions.targets(), 0);
    for concluded in told {
        recorder.add(concluded);
    }
    recorded(recorder, planned, None, true)
}

/// How long a run took, where time is real.
fn tell_the_time(record: &mut RunRecord, sessions: &dyn Sessions, started: Instant) {
    if record.is_live() {
        record.summary.seconds = started.elapsed().as_secs_f64();
        record.summary.clock_seconds = sessions.clock_seconds();
    }
}

/// What the jobs tell while they work.
enum Progress {
    /// Nothing for a while.
    Alive,
    /// A scenario of the plan begins.
    Began(usize),
    /// It ended.
    Ended(usize, Box<Concluded>),
}

/// How often a run says that it goes on.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// What happens next; when the run has taken too long, everything else is interrupted.
fn next_of(
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

/// Plays one scenario and has its evidence judged; a panic in it is our own fault and stays in it.
pub fn conclude(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
) -> Concluded {
    conclude_beside(
        rulebook,
        schemas,
        planned,
        sessions,
        seed,
        interrupted,
        Beside::default(),
    )
}

/// What a story showed, with what was concluded of its documents: for those who have it told again with something changed.
#[derive(Debug, Default)]
pub struct Told {
    evidence: Evidence,
    memo: DocumentCache,
    /// Whether nothing was found, in what came nor in what we sent.
    is_sound: bool,
}

impl Told {
    /// Exchanges whose requests were found to be decent.
    fn decent(&self) -> &[Exchange] {
        if self.is_sound {
            &self.evidence.exchanges
        } else {
            &[]
        }
    }
}

/// The same as [`conclude`], and keeps what was told; a prover looks on where there is one.
pub fn conclude_kept(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    prover: Option<&Prover<'_>>,
) -> (Concluded, Told) {
    let told = RefCell::default();
    let beside = Beside {
        prover,
        told: Some(&told),
        keeper: None,
    };
    let calm = AtomicBool::new(false);
    let concluded = conclude_beside(rulebook, schemas, planned, sessions, seed, &calm, beside);
    let told = told.into_inner();
    told.memo.close();
    (concluded, told)
}

/// Has a story told again, in a session of somebody else's, and judged: what is as it was is neither read nor judged
/// again. Concludes verdict and findings, and nothing of what a record wants to know besides.
pub fn conclude_again(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    session: &dyn Session,
    seed: u64,
    told: &Told,
) -> Concluded {
    let id = &planned.scenario.id;
    let work = || {
        let calm = AtomicBool::new(false);
        let telling = Telling {
            before: &told.evidence.exchanges,
            ..Telling::new(rulebook, schemas, planned, (seed, 0))
        };
        let Story { evidence, stop, .. } = play(telling, session, &calm);
        let judgment = conformant_judge::judge_mutated(rulebook, schemas, &evidence, &told.memo);
        let stop = match stop {
            None if judgment.findings.is_empty() => {
                misdeed(rulebook, schemas, &evidence, told.decent())
            }
            stop => stop,
        };
        ended(id, judgment, stop, evidence.exchanges.len(), 0.0)
    };
    guarded(id, work)
}

/// Who looks on while a story is told.
#[derive(Clone, Copy, Default)]
struct Beside<'b, 'p> {
    prover: Option<&'b Prover<'p>>,
    /// Where what was told goes.
    told: Option<&'b RefCell<Told>>,
    /// With the story's place in the plan.
    keeper: Option<(&'b Keeper, usize)>,
}

impl<'b, 'p> Beside<'b, 'p> {
    fn of(options: &'b Options, prover: &'b Prover<'p>, index: usize) -> Self {
        Self {
            prover: (options.prove != Mode::Off).then_some(prover),
            told: None,
            keeper: options.keeper.as_deref().map(|keeper| (keeper, index)),
        }
    }

    /// The story left nothing to keep.
    fn pass_over(&self) {
        if let Some((keeper, index)) = self.keeper {
            keeper.pass_over(index);
        }
    }
}

fn conclude_beside(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
    beside: Beside<'_, '_>,
) -> Concluded {
    let work = || {
        conclude_unguarded(
            rulebook,
            schemas,
            planned,
            sessions,
            seed,
            interrupted,
            beside,
        )
    };
    let mut is_done = false;
    let concluded = guarded(&planned.scenario.id, || {
        let concluded = work();
        is_done = true;
        concluded
    });
    if !is_done {
        beside.pass_over();
    }
    concluded
}

/// A panic in a story is our own fault and stays in it.
fn guarded(id: &str, work: impl FnOnce() -> Concluded) -> Concluded {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let stop = Stop::Error(format!("internal: {what}"));
        ended(id, Judgment::default(), Some(stop), 0, 0.0)
    })
}

fn conclude_unguarded(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
    beside: Beside<'_, '_>,
) -> Concluded {
    /// How often a story is told that others keep disturbing.
    const ATTEMPTS_MAX: usize = 5;
    let id = &planned.scenario.id;
    // Each attempt has names of its own.
    let (mut attempt, mut disturbances, mut round) = (0, 0, 1);
    let mut waited = Spent::default();
    loop {
        let asked = clock::monotonic();
        let session = match sessions.open(planned) {
            Ok(session) => session,
            Err(error) => {
                beside.pass_over();
                let stop = Stop::Error(format!("failed to {error}"));
                return ended(id, Judgment::default(), Some(stop), 0, 0.0);
            }
        };
        waited.turn += asked.elapsed().as_secs_f64();
        let began = session.now();
        let telling = Telling::new(rulebook, schemas, planned, (seed, attempt));
        let Story {
            mut evidence,
            stop,
            memo,
        } = play(telling, session.as_ref(), interrupted);
        let seconds = session.seconds_since(began);
        let examples = beside.prover.map_or(0, |_| EXAMPLES_MAX);
        let judgment =
            conformant_judge::judge_with_cache(rulebook, schemas, &evidence, &memo, examples);
        // Where something was found, what we sent may be what the target gave us.
        let stop = match stop {
            None if judgment.findings.is_empty() => misdeed(rulebook, schemas, &evidence, &[]),
            stop => stop,
        };
        let went_wrong = !judgment.findings.is_empty()
            || matches!(stop, Some(Stop::Unexpected | Stop::Inconclusive(_)));
        // A token may be refused for the time that somebody else moved on, which looks right.
        let hangs_on_time = planned.scenario.steps.iter().any(Step::is_token);
        let may_be_disturbed = went_wrong || hangs_on_time;
        let disturbed = session
            .cut_off()
            .or_else(|| may_be_disturbed.then(|| session.disturbed()).flatten());
        attempt += 1;
        waited.add(&session.waited());
        let may_go_on = !interrupted.load(Ordering::Relaxed);
        disturbances += usize::from(disturbed.is_some());
        if disturbed.is_some() && disturbances < ATTEMPTS_MAX && may_go_on {
            continue;
        }
        let is_sound = disturbed.is_none() && !went_wrong && stop.is_none();
        let rounds = || session.settings().rounds;
        if is_sound && may_go_on && planned.is_race() && round < rounds() {
            round += 1;
            continue;
        }
        if let Some(prover) = beside.prover.filter(|_| disturbed.is_none()) {
            let turn = sessions.room(planned).turn();
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
        let told = (judgment, stop.clone());
        let concluded = concluded_of(rulebook, scenario, &evidence, told, seconds);
        if let Some(told) = beside.told {
            let is_sound = concluded.stopped.is_none() && concluded.judgment.findings.is_empty();
            told.replace(Told {
                evidence,
                memo,
                is_sound,
            });
            return concluded;
        }
        if let Some((keeper, index)) = beside.keeper {
            let turned_away = turned_away.clone();
            keeper.keep(
                index,
                Played {
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

/// Why a story of ours accuses nobody: a request in it that was meant to be accepted is none that the
/// documents allow.
fn misdeed(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    decent: &[Exchange],
) -> Option<Stop> {
    let found = clients::find_invalid_requests(rulebook, schemas, evidence, decent);
    let first = found.first()?;
    Some(Stop::Error(format!(
        "step {} is not a valid request: {} ({})",
        first.step, first.message, first.rule
    )))
}

/// What a story comes to, with what else the record wants to know of it.
fn concluded_of(
    rulebook: &Rulebook,
    scenario: Option<&Scenario>,
    evidence: &Evidence,
    (judgment, stop): (Judgment, Option<Stop>),
    seconds: f64,
) -> Concluded {
    let exchanges = evidence.exchanges.len();
    let concluded = ended(&evidence.scenario, judgment, stop, exchanges, seconds);
    let got_in_the_way = |exchange: &Exchange| match &exchange.outcome {
        // A redirect to where nobody may follow says nothing of the target, nor does how much of a long list we keep.
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
        let asked = Asked::once(shown::milliseconds(exchange));
        services
            .entry(exchange.service.clone())
            .or_default()
            .add(asked);
    }
    let shown = shown::Shown::of(evidence, &concluded.judgment);
    let mut concluded = Concluded {
        trouble: evidence.exchanges.iter().any(got_in_the_way)
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
    if let Some(scenario) = scenario.filter(|_| shown::is_told(concluded.result.verdict)) {
        concluded.result.steps = shown::steps(scenario, evidence, &concluded.judgment);
    }
    concluded
}

fn ended(
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
        trouble: false,
        turned_away: None,
        operations,
        kinds,
        shown: shown::Shown::default(),
        waited: Spent::default(),
    }
}
