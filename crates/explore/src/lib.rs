//! Exploration: random sequences of requests, judged by the rules of scenarios.
//!
//! A sequence depends on the seed and its number only. A finding is shrunk to the shortest sequence that still has it, as a
//! scenario for `run --scenarios`.

mod cover;
mod reproduced;
mod scenario;
mod shrink;

pub use cover::Coverage;
pub use reproduced::{Chain, ReproduceError, findings_of};
pub use scenario::{Certainty, Shrunk, file_of};

use conformant_base::clock;
use conformant_base::parallel::{lock, recovered};
use conformant_engine::derive::deck::Deck;
use conformant_engine::derive::second_tenant::DISPOSABLE_FLOW;
use conformant_engine::{Planned, ScenarioRun, Sessions, SetOnDrop, Stop, find_loss, run_scenario};
use conformant_judge::evidence::{Evidence, Exchange, Outcome};
use conformant_judge::{Judgment, judge};
use conformant_record::Finding;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::Step;
use conformant_rulebook::{Rulebook, Service};
use conformant_schema::Schemas;
use cover::Seen;
use shrink::Shrink;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

/// Consecutive sequences that do not reach the target before exploration stops.
const UNREACHED_MAX: usize = 3;
/// Maximum number of findings that are shrunk; others are only named.
const SHRUNK_MAX: usize = 50;

/// Longest real time that a sequence on a live target may wait. Longer pauses need the hook that moves the clock.
const REAL_TIME_MAX: Duration = Duration::from_secs(15);

/// Limit of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Number of sequences: the output is reproducible.
    Sequences(u64),
    /// Time.
    Time(Duration),
}

/// Options of an exploration.
#[derive(Clone, Debug)]
pub struct ExploreOptions {
    pub seed: u64,
    pub budget: Budget,
    /// Number of sequences in parallel.
    pub jobs: usize,
    /// Send only requests that write nothing.
    pub only_safe: bool,
    /// Services; empty for all targeted ones.
    pub services: Vec<String>,
    /// Whether the target is live: fewer replays, and findings that occur once are marked.
    pub is_live: bool,
}

/// Result of an exploration.
#[derive(Debug, Default)]
pub struct Explored {
    /// Each broken rule of each operation, with the shortest sequence.
    pub found: Vec<Shrunk>,
    /// Number of findings that were not shrunk.
    pub more: usize,
    /// Number of sequences.
    pub sequences: u64,
    /// Number of judged requests.
    pub exchanges: usize,
    pub coverage: Coverage,
    /// Number of sequences whose findings are left out, because another client moved the clock of the target.
    pub in_doubt: u64,
    /// Why it stopped early.
    pub given_up: Option<String>,
}

/// Explores targets.
#[derive(Debug)]
pub struct Explorer<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    options: ExploreOptions,
    sequences: AtomicU64,
    exchanges: AtomicU64,
    shrinking: AtomicU64,
    has_found: AtomicBool,
    /// Held alone by a sequence that moves the target's clock.
    clock: RwLock<()>,
}

/// Progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of sequences.
    pub sequences: u64,
    /// Number of judged requests.
    pub exchanges: u64,
    /// Number of the finding that is being shrunk, from 1; 0 before.
    pub shrinking: u64,
}

/// Result of a sequence.
pub struct ScenarioOutcome {
    pub judgment: Judgment,
    pub stop: Option<Stop>,
    evidence: Evidence,
    /// Whether its findings are left out.
    in_doubt: bool,
}

impl ScenarioOutcome {
    /// Requests and responses, one a line.
    fn transcript(&self) -> Vec<String> {
        self.evidence.exchanges.iter().map(exchange_line).collect()
    }
}

/// Identity of a finding: rule and operation.
pub type Key = (String, String);

pub fn key_of(finding: &Finding) -> Key {
    let operation = format!("{}/{}", finding.service, finding.operation);
    (finding.rule.clone(), operation)
}

/// A sequence as a scenario.
pub fn numbered(service: &Service, number: u64, steps: Vec<Step>) -> Scenario {
    scenario::scenario(&service.name, &format!("sequence-{number}"), steps)
}

impl<'a> Explorer<'a> {
    /// An explorer.
    pub fn new(rulebook: &'a Rulebook, schemas: &'a Schemas, options: ExploreOptions) -> Self {
        Self {
            rulebook,
            schemas,
            options,
            sequences: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
            shrinking: AtomicU64::new(0),
            has_found: AtomicBool::new(false),
            clock: RwLock::new(()),
        }
    }

    /// The progress, for any thread.
    pub fn progress(&self) -> Progress {
        Progress {
            sequences: self.sequences.load(Ordering::Relaxed),
            exchanges: self.exchanges.load(Ordering::Relaxed),
            shrinking: self.shrinking.load(Ordering::Relaxed),
        }
    }

    /// Explores until the budget is spent, then shrinks the findings. Findings before an interruption are kept.
    pub fn explore(&self, sessions: &dyn Sessions, interrupted: &AtomicBool) -> Explored {
        let (seed, only_safe) = (self.options.seed, self.options.only_safe);
        let deck = Deck::shuffled(self.rulebook, self.services(sessions), seed, only_safe);
        let next = AtomicU64::new(0);
        let began = clock::monotonic();
        // The rest of the time is for shrinking, if there is anything to shrink.
        let (until, end) = match self.options.budget {
            Budget::Time(time) => (
                Some([began + time * 3 / 4, began + time * 19 / 20]),
                Some(began + time),
            ),
            Budget::Sequences(_) => (None, None),
        };
        let (stopped, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watch = || watch((interrupted, end), (&stopped, &is_done));
            scope.spawn(watch);
            scope.spawn(|| sessions.watch(&|| is_done.load(Ordering::Relaxed)));
            let _ends_the_watch = SetOnDrop(&is_done);
            self.explore_until(&deck, sessions, &next, until, &stopped)
        })
    }

    fn explore_until(
        &self,
        deck: &Deck<'a>,
        sessions: &dyn Sessions,
        next: &AtomicU64,
        until: Option<[Instant; 2]>,
        interrupted: &AtomicBool,
    ) -> Explored {
        let services = self.services(sessions);
        let all = Mutex::new(Whole::default());
        std::thread::scope(|scope| {
            for _ in 0..self.options.jobs.max(1) {
                scope.spawn(|| self.work(deck, sessions, next, until, &all, interrupted));
            }
        });
        let whole = recovered(all.into_inner());
        let mut explored = Explored {
            sequences: whole.sequences,
            exchanges: whole.exchanges,
            in_doubt: whole.in_doubt,
            coverage: whole.seen.coverage(self.rulebook, &services),
            given_up: whole.given_up,
            ..Explored::default()
        };
        let gone = sessions.gone();
        let gone = gone.map(|(service, why)| format!("{service}: {why}"));
        explored.given_up = gone.or(explored.given_up);
        let mut found: Vec<(Key, Found)> = whole.found.into_iter().collect();
        // In the order of a sequential run.
        found.sort_by(|(a, one), (b, other)| (one.sequence, a).cmp(&(other.sequence, b)));
        explored.more = found.len().saturating_sub(SHRUNK_MAX);
        found.truncate(SHRUNK_MAX);
        // Nothing more is sent to a target that does not respond.
        let gone = AtomicBool::new(true);
        let interrupted = match explored.given_up {
            Some(_) => &gone,
            None => interrupted,
        };
        for (key, found) in &found {
            self.shrinking.fetch_add(1, Ordering::Relaxed);
            let shrink = Shrink::new(self, sessions, (key, found), interrupted);
            explored.found.push(shrink.down());
        }
        explored
    }

    fn services(&self, sessions: &dyn Sessions) -> Vec<&'a Service> {
        let targets = sessions.targets();
        let wanted = |name: &String| {
            let named = &self.options.services;
            targets.contains_key(name) && (named.is_empty() || named.contains(name))
        };
        let services = self.rulebook.services.values();
        services.filter(|service| wanted(&service.name)).collect()
    }

    fn work(
        &self,
        deck: &Deck<'a>,
        sessions: &dyn Sessions,
        next: &AtomicU64,
        until: Option<[Instant; 2]>,
        all: &Mutex<Whole>,
        interrupted: &AtomicBool,
    ) {
        let mut mine = Whole::default();
        let mut unreached = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_spent = match self.options.budget {
                Budget::Sequences(count) => number >= count,
                Budget::Time(_) => until.is_some_and(|[with_findings, without]| {
                    let has_found = self.has_found.load(Ordering::Relaxed);
                    clock::monotonic() >= if has_found { with_findings } else { without }
                }),
            };
            if is_spent || interrupted.load(Ordering::Relaxed) {
                break;
            }
            let Some((service, steps)) = deck.draw(number) else {
                if deck.is_empty() {
                    break;
                }
                continue;
            };
            let steps = match self.options.is_live {
                true => with_what_is_there_once(steps),
                false => steps,
            };
            let mut scenario = numbered(service, number, steps);
            if self.options.is_live {
                leave_out_long_waits(service, &mut scenario, sessions);
            }
            let outcome = self.run_scenario(service, &scenario, sessions, interrupted);
            if let Some(Stop::Unreachable(why)) = &outcome.stop {
                unreached += 1;
                if unreached >= UNREACHED_MAX {
                    mine.given_up = Some(why.clone());
                    next.store(u64::MAX / 2, Ordering::Relaxed);
                    break;
                }
            } else {
                unreached = 0;
            }
            let has_found = !outcome.judgment.findings.is_empty();
            self.has_found.fetch_or(has_found, Ordering::Relaxed);
            mine.add(self.rulebook, number, service, &scenario, &outcome);
            self.sequences.fetch_add(1, Ordering::Relaxed);
            let exchanges = outcome.evidence.exchanges.len() as u64;
            self.exchanges.fetch_add(exchanges, Ordering::Relaxed);
        }
        lock(all).merge(mine);
    }

    /// Runs and judges a sequence.
    pub fn run_scenario(
        &self,
        service: &Service,
        scenario: &Scenario,
        sessions: &dyn Sessions,
        interrupted: &AtomicBool,
    ) -> ScenarioOutcome {
        let planned = Planned {
            service,
            scenario: scenario.clone(),
        };
        // A sequence that moves the target's clock runs alone, so that it disturbs no other one of this run.
        let moves_the_clock = sessions.resource_claim(&planned).moves_the_clock;
        let (_alone, _with_others) = match moves_the_clock {
            true => (Some(self.clock.write()), None),
            false => (None, Some(self.clock.read())),
        };
        let session = match sessions.open(&planned) {
            Ok(session) => session,
            Err(error) => {
                return ScenarioOutcome {
                    judgment: Judgment::default(),
                    stop: Some(Stop::Unreachable(format!("failed to {error}"))),
                    evidence: Evidence::default(),
                    in_doubt: false,
                };
            }
        };
        let scenario_run = ScenarioRun::new(
            self.rulebook,
            self.schemas,
            &planned,
            (self.options.seed, 0),
        );
        let outcome = run_scenario(scenario_run, session.as_ref(), interrupted);
        let mut judgment = judge(self.rulebook, self.schemas, &outcome.evidence);
        // Parallel sequences and other runs share one clock. After an interruption its value can no longer be checked.
        let is_in_doubt = || {
            (self.options.is_live && interrupted.load(Ordering::Relaxed))
                || find_loss(session.as_ref(), &outcome.evidence).is_some()
                || session.disturbed().is_some()
        };
        let in_doubt = !judgment.findings.is_empty() && is_in_doubt();
        if in_doubt {
            judgment = Judgment::default();
        }
        ScenarioOutcome {
            judgment,
            stop: outcome.stop,
            evidence: outcome.evidence,
            in_doubt,
        }
    }
}

/// Removes the pauses of a sequence that would take longer in real time than it may.
fn leave_out_long_waits(service: &Service, scenario: &mut Scenario, sessions: &dyn Sessions) {
    let claim = sessions.resource_claim(&Planned {
        service,
        scenario: scenario.clone(),
    });
    if !claim.moves_the_clock && claim.real_time > REAL_TIME_MAX {
        scenario.steps.retain(|step| step.wait().is_none());
    }
}

/// Sets `stopped` at an interruption or at the end of the budget, until the exploration is done.
fn watch(
    (interrupted, end): (&AtomicBool, Option<Instant>),
    (stopped, is_done): (&AtomicBool, &AtomicBool),
) {
    const LOOK_EVERY: Duration = Duration::from_millis(20);
    while !is_done.load(Ordering::Relaxed) {
        let is_over = end.is_some_and(|end| clock::monotonic() >= end);
        if is_over || interrupted.load(Ordering::Relaxed) {
            stopped.store(true, Ordering::Relaxed);
            return;
        }
        clock::sleep(LOOK_EVERY);
    }
}

/// The steps for a live target: an earlier sequence may have deleted a singleton, so that its deletion may be
/// refused.
fn with_what_is_there_once(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        let is_once = step
            .values()
            .any(|value| value.to_string().contains(DISPOSABLE_FLOW));
        if is_once && step.call().is_some_and(|call| call.demand.is_acceptance()) {
            step.demand_nothing();
        }
    }
    steps
}

/// `2. chat/create-channel 201`: step, operation, response.
fn exchange_line(exchange: &Exchange) -> String {
    let (step, service) = (exchange.step, &exchange.service);
    let called = match exchange.operation.as_str() {
        "" => &exchange.request.method,
        operation => operation,
    };
    let came = match &exchange.outcome {
        Outcome::Answered { response, .. } => response.status.to_string(),
        Outcome::Fault { cause, .. } => cause.to_string(),
    };
    format!("{step}. {service}/{called} {came}")
}

/// Results of all sequences; memory grows with findings and coverage only.
#[derive(Debug, Default)]
struct Whole {
    found: BTreeMap<Key, Found>,
    sequences: u64,
    exchanges: usize,
    seen: Seen,
    in_doubt: u64,
    given_up: Option<String>,
}

/// A finding with its first sequence.
#[derive(Debug)]
pub struct Found {
    pub sequence: u64,
    pub service: String,
    pub steps: Vec<Step>,
    pub finding: Finding,
    /// Requests and responses, one a line.
    pub transcript: Vec<String>,
}

impl Whole {
    fn add(
        &mut self,
        rulebook: &Rulebook,
        number: u64,
        service: &Service,
        scenario: &Scenario,
        outcome: &ScenarioOutcome,
    ) {
        self.sequences += 1;
        self.exchanges += outcome.evidence.exchanges.len();
        self.in_doubt += u64::from(outcome.in_doubt);
        self.seen
            .add(rulebook, &outcome.evidence, &outcome.judgment);
        for finding in &outcome.judgment.findings {
            let found = Found {
                sequence: number,
                service: service.name.clone(),
                steps: scenario.steps.clone(),
                finding: finding.clone(),
                transcript: outcome.transcript(),
            };
            self.keep(found);
        }
    }

    fn keep(&mut self, found: Found) {
        let key = key_of(&found.finding);
        let is_first = self
            .found
            .get(&key)
            .is_none_or(|known| found.sequence < known.sequence);
        if is_first {
            self.found.insert(key, found);
        }
    }

    fn merge(&mut self, other: Self) {
        self.sequences += other.sequences;
        self.exchanges += other.exchanges;
        self.in_doubt += other.in_doubt;
        self.seen.merge(other.seen);
        self.given_up = self.given_up.take().or(other.given_up);
        other.found.into_values().for_each(|found| self.keep(found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_rulebook::step::Call;
    use serde_json::json;

    #[test]
    fn what_is_there_once_is_not_demanded_of_a_target_that_lives_on() {
        let calling = |sid: &str| {
            let with = json!({ "Sid": format!("${{target.flow.{sid}}}") });
            Step::from(Call {
                call: "delete-flow".to_owned(),
                with: with.as_object().cloned().unwrap_or_default(),
                ..Call::default()
            })
        };
        let steps = vec![calling("disposable_flow_sid"), calling("flow_sid")];
        let either: Vec<bool> = with_what_is_there_once(steps)
            .iter()
            .map(Step::is_either)
            .collect();
        assert_eq!(either, [true, false]);
    }
}
