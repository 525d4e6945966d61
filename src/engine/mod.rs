//! The engine: plans scenarios, plays them side by side, has their evidence judged, and emits one
//! stream of run events.
//!
//! It prints nothing and writes no file; reports consume the events.

pub(crate) mod body;
mod callbacks;
mod derive;
pub(crate) mod link;
pub mod plan;
mod provision;
mod record;
pub mod request;
mod runner;
pub mod session;
pub mod sessions;
pub mod settings;
mod template;
#[cfg(test)]
mod tests;
pub mod token;

pub use plan::{Partition, Planned, Selection};
pub use runner::Stop;
pub(crate) use runner::split_url;
pub use settings::{Hook, Options, Settings, Target};

use crate::clock;
use crate::judge::evidence::Outcome;
use crate::judge::{self, Judgement};
use crate::rulebook::{Rule, Rulebook};
use crate::schema::Schemas;
use crate::verdict::{RunEvent, RunRecord, ScenarioResult, Verdict};
pub use record::{Concluded, Recorder};
use runner::Story;
pub(crate) use runner::play;
use session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

/// Opens a session for each scenario.
pub trait Sessions: Sync {
    /// The world that the scenario talks to.
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, String>;

    /// Base URL by service, for the record.
    fn targets(&self) -> BTreeMap<String, String>;
}

/// Runs a plan. Events come in the plan's order, whatever the number of jobs; `interrupted` ends
/// the run within a moment and leaves a record that is marked incomplete. `finish` may change the
/// record before it is emitted, which is how waivers come in. True when a target got in the way:
/// unreachable, silent, not HTTP, redirecting.
#[expect(
    clippy::too_many_arguments,
    reason = "each is a thing of its own, and there is one caller"
)]
pub fn run(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &[Planned<'_>],
    sessions: &dyn Sessions,
    options: &Options,
    interrupted: &AtomicBool,
    emit: &mut dyn FnMut(RunEvent),
    finish: impl FnOnce(&mut RunRecord),
) -> bool {
    let targets = sessions.targets();
    emit(RunEvent::Started {
        scenarios: planned.len(),
        targets: targets.clone(),
    });
    let mut recorder = Recorder::new(rulebook, targets, options.seed);
    let next = AtomicUsize::new(0);
    let deadline = clock::monotonic() + options.run_max;
    let (sender, receiver) = mpsc::channel();
    let mut complete = true;
    let mut trouble = false;
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, planned.len().max(1)) {
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(planned) = planned.get(index) else {
                        return;
                    };
                    let concluded = conclude(
                        rulebook,
                        schemas,
                        planned,
                        sessions,
                        options.seed,
                        interrupted,
                    );
                    if sender.send((index, concluded)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early: BTreeMap<usize, Concluded> = BTreeMap::new();
        let mut due = 0;
        while let Some((index, concluded)) = next_of(&receiver, deadline, interrupted) {
            early.insert(index, concluded);
            while let Some(concluded) = early.remove(&due) {
                due += 1;
                trouble |= concluded.trouble;
                complete &= !matches!(concluded.stopped, Some(Stop::Interrupted));
                emit(RunEvent::ScenarioEnded {
                    result: concluded.result.clone(),
                    findings: concluded.judgement.findings.clone(),
                    exchanges: concluded.exchanges,
                });
                recorder.add(concluded);
            }
        }
    });
    let services: Vec<&str> = planned.iter().map(|p| p.service.name.as_str()).collect();
    let mut record = recorder.finish(
        |rule: &Rule| services.contains(&rule.service.as_str()),
        complete,
    );
    finish(&mut record);
    emit(RunEvent::Finished {
        record: Box::new(record),
    });
    trouble
}

/// The next scenario that ended; when the run has taken too long, everything else is interrupted.
fn next_of<T>(
    receiver: &mpsc::Receiver<T>,
    deadline: Instant,
    interrupted: &AtomicBool,
) -> Option<T> {
    let left = deadline.saturating_duration_since(clock::monotonic());
    match receiver.recv_timeout(left) {
        Ok(next) => Some(next),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            interrupted.store(true, Ordering::Relaxed);
            receiver.recv().ok()
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
    let work = || conclude_unguarded(rulebook, schemas, planned, sessions, seed, interrupted);
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let stop = Stop::Error(format!("internal: {what}"));
        ended(
            &planned.scenario.id,
            Judgement::default(),
            Some(stop),
            0,
            0.0,
        )
    })
}

fn conclude_unguarded(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
) -> Concluded {
    let id = &planned.scenario.id;
    let session = match sessions.open(planned) {
        Ok(session) => session,
        Err(why) => return ended(id, Judgement::default(), Some(Stop::Error(why)), 0, 0.0),
    };
    let started = session.now();
    let story = runner::play(
        rulebook,
        schemas,
        planned.service,
        &planned.scenario,
        session.as_ref(),
        seed,
        interrupted,
    );
    let seconds = session.now().duration_since(started).as_secs_f64();
    let Story { evidence, stop } = story;
    let judgement = judge::judge(rulebook, schemas, &evidence);
    let trouble = evidence
        .exchanges
        .iter()
        .any(|exchange| match &exchange.outcome {
            Outcome::Fault { .. } => true,
            Outcome::Answered { response, .. } => (300..400).contains(&response.status),
        });
    let ended = ended(id, judgement, stop, evidence.exchanges.len(), seconds);
    let operations = evidence
        .exchanges
        .iter()
        .map(|e| format!("{}/{}", e.service, e.operation))
        .collect();
    let kinds = judge::kinds_of(rulebook, &evidence);
    Concluded {
        trouble,
        operations,
        kinds,
        ..ended
    }
}

fn ended(
    id: &str,
    judgement: Judgement,
    stop: Option<Stop>,
    exchanges: usize,
    seconds: f64,
) -> Concluded {
    let failed = judgement.findings.iter().any(|f| f.level == "must");
    let (verdict, reason) = match &stop {
        _ if failed => (Verdict::Fail, String::new()),
        None => (Verdict::Pass, String::new()),
        Some(Stop::NotApplicable(why)) => (Verdict::NotApplicable, why.clone()),
        Some(Stop::Inconclusive(why) | Stop::Unreachable(why)) => {
            (Verdict::Inconclusive, why.clone())
        }
        Some(Stop::Interrupted) => (Verdict::Inconclusive, "interrupted".to_owned()),
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
    };
    let (operations, kinds) = (BTreeSet::new(), BTreeSet::new());
    Concluded {
        result,
        judgement,
        stopped: stop,
        exchanges,
        trouble: false,
        operations,
        kinds,
    }
}
