//! Concludes scenarios: runs one in a session, judges its evidence, and repeats it where another attempt can settle the
//! result.

use super::concluded::Concluded;
use super::evidence_file::EvidenceRecord;
use super::hook_effects;
use super::runner::{ScenarioOutcome, ScenarioRun, run_scenario};
use super::session::Session;
use super::stop::{ENDED_BEFORE, Stop};
use super::summary::{conclude_run, summarize};
use super::{EvidenceWriter, Options, Planned, Sessions};
use conformant_base::clock;
use conformant_judge::clients;
use conformant_judge::evidence::{Evidence, Exchange, SkippedRule};
use conformant_judge::prove::{EXAMPLES_MAX, Mode, Prover};
use conformant_judge::{DocumentCache, Judgment};
use conformant_record::{Finding, Spent};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::Step;
use conformant_schema::Schemas;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs one scenario and has its evidence judged. A panic becomes an internal error of that scenario.
pub fn conclude(
    rulebook: &Rulebook,
    schemas: &Schemas,
    planned: &Planned<'_>,
    sessions: &dyn Sessions,
    seed: u64,
    interrupted: &AtomicBool,
) -> Concluded {
    let job = Job {
        rulebook,
        schemas,
        planned,
        sessions,
        seed,
        interrupted,
    };
    job.conclude(Observers::default())
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
    let job = Job {
        rulebook,
        schemas,
        planned,
        sessions,
        seed,
        interrupted: &AtomicBool::new(false),
    };
    let concluded = job.conclude(observers);
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
pub(super) struct Observers<'b, 'p> {
    prover: Option<&'b Prover<'p>>,
    /// Receives the evidence. Then none is written.
    recorded: Option<&'b RefCell<RecordedRun>>,
    /// The writer of evidence, and the index of the scenario in the plan.
    evidence_writer: Option<(&'b EvidenceWriter, usize)>,
}

impl<'b, 'p> Observers<'b, 'p> {
    pub(super) fn new(options: &'b Options, prover: &'b Prover<'p>, index: usize) -> Self {
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

/// A scenario to conclude.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) rulebook: &'a Rulebook,
    pub(super) schemas: &'a Schemas,
    pub(super) planned: &'a Planned<'a>,
    pub(super) sessions: &'a dyn Sessions,
    pub(super) seed: u64,
    pub(super) interrupted: &'a AtomicBool,
}

impl Job<'_> {
    pub(super) fn conclude(self, observers: Observers<'_, '_>) -> Concluded {
        let mut is_done = false;
        let concluded = guarded(&self.planned.scenario.id, || {
            let concluded = attempt_until_settled(self, observers);
            is_done = true;
            concluded
        });
        if !is_done {
            observers.skip();
        }
        concluded
    }
}

/// Turns a panic in a scenario into an internal error of that scenario.
pub(super) fn guarded(id: &str, work: impl FnOnce() -> Concluded) -> Concluded {
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

/// The loop over the attempts of a scenario: runs and judges each, and concludes the one that settles the result.
fn attempt_until_settled(job: Job<'_>, observers: Observers<'_, '_>) -> Concluded {
    let Job {
        rulebook,
        planned,
        sessions,
        interrupted,
        ..
    } = job;
    if interrupted.load(Ordering::Relaxed) {
        return never_began(rulebook, &planned.scenario, observers);
    }
    let mut attempts = Attempts::default();
    let mut waited = Spent::default();
    loop {
        let asked = clock::monotonic();
        let session = match sessions.open(planned) {
            Ok(session) => session,
            Err(error) => {
                observers.skip();
                let stop = Some(Stop::Error(format!("failed to {error}")));
                return conclude_run(&planned.scenario.id, Judgment::default(), stop, 0, 0.0);
            }
        };
        waited.turn += asked.elapsed().as_secs_f64();
        if attempts.confirms_missing_callback && planned.is_race() {
            session.confirm_missing_callback();
        }
        let scenario_run = ScenarioRun {
            looks_early: planned.is_race()
                && attempts.rounds_before + 1 < session.settings().rounds,
            ..ScenarioRun::new(rulebook, job.schemas, planned, (job.seed, attempts.count))
        };
        let examples = observers.prover.map_or(0, |_| EXAMPLES_MAX);
        let attempt = Attempt::new(scenario_run, session.as_ref(), interrupted, examples);
        waited.add(&session.waited());
        let may_go_on = !interrupted.load(Ordering::Relaxed);
        if attempts.go_on(&attempt, session.as_ref(), planned) && may_go_on {
            continue;
        }
        let mut attempt = attempts.outcome(attempt);
        attempt.check_hooks(rulebook, session.as_ref());
        if let Some(prover) = observers
            .prover
            .filter(|_| attempt.unreliable_because.is_none())
        {
            let turn = sessions.resource_claim(planned).priority();
            prover.test_scenario(
                turn,
                &mut attempt.evidence,
                &attempt.judgment,
                &attempt.memo,
                interrupted,
            );
        }
        let concluded = attempt.conclude(
            rulebook,
            &planned.scenario,
            session.turned_away(),
            observers,
        );
        return Concluded {
            waited,
            ..concluded
        };
    }
}

/// One attempt of a scenario with what was seen in it.
struct Attempt {
    evidence: Evidence,
    memo: DocumentCache,
    judgment: Judgment,
    stop: Option<Stop>,
    /// Why its findings are unreliable.
    unreliable_because: Option<String>,
    /// Whether something happened that a disturbance could explain.
    went_wrong: bool,
    seconds: f64,
}

impl Attempt {
    fn new(
        scenario_run: ScenarioRun<'_>,
        session: &dyn Session,
        interrupted: &AtomicBool,
        examples: usize,
    ) -> Self {
        let (rulebook, schemas) = (scenario_run.rulebook, scenario_run.schemas);
        let planned = scenario_run.planned;
        let began = session.now();
        let ScenarioOutcome {
            evidence,
            stop,
            memo,
        } = run_scenario(scenario_run, session, interrupted);
        let seconds = session.seconds_since(began);
        let judgment =
            conformant_judge::judge_with_cache(rulebook, schemas, &evidence, &memo, examples);
        // A request of ours may be invalid because the target returned a bad value. Then the finding is the cause.
        let stop = match stop {
            None if judgment.findings.is_empty() => {
                find_invalid_request(rulebook, schemas, &evidence, &[])
            }
            stop => stop,
        };
        let went_wrong = !judgment.findings.is_empty()
            || matches!(stop, Some(Stop::Unexpected | Stop::Inconclusive(_)));
        let is_unreachable = matches!(stop, Some(Stop::Unreachable(_)));
        let is_affected = is_unreachable || !judgment.findings.is_empty();
        let lost = is_affected.then(|| find_loss(session, &evidence));
        let lost = lost.flatten();
        let unreliable_because = lost.or_else(|| find_disturbance(session, planned, went_wrong));
        Self {
            evidence,
            memo,
            judgment,
            stop,
            unreliable_because,
            went_wrong,
            seconds,
        }
    }

    /// Whether hooks had their effect, where that could explain what went wrong on a live target.
    fn check_hooks(&mut self, rulebook: &Rulebook, session: &dyn Session) {
        let is_affected = self.went_wrong && self.unreliable_because.is_none();
        if !is_affected || !session.is_live() {
            return;
        }
        if let Some(why) = hook_effects::missing_setting(rulebook, &self.evidence, session) {
            self.stop = Some(Stop::Misconfigured(why.clone()));
            self.unreliable_because = Some(why);
            return;
        }
        let missing = hook_effects::missing_creation(rulebook, &self.evidence, session);
        let failed = missing.or_else(|| hook_effects::clock_stood_still(&self.evidence));
        if let Some(why) = failed {
            self.stop = Some(Stop::HookFailed(why.clone()));
            self.unreliable_because = Some(why);
            return;
        }
        let is_unseen = session.has_moved_the_clock_unseen();
        for finding in &mut self.judgment.findings {
            hook_effects::name_cause(rulebook, &self.evidence, is_unseen, finding);
        }
    }

    fn is_sound(&self) -> bool {
        self.unreliable_because.is_none() && !self.went_wrong && self.stop.is_none()
    }

    /// The conclusion of a scenario whose last attempt this is.
    fn conclude(
        self,
        rulebook: &Rulebook,
        scenario: &Scenario,
        turned_away: Option<String>,
        observers: Observers<'_, '_>,
    ) -> Concluded {
        let (evidence, memo, seconds) = (self.evidence, self.memo, self.seconds);
        let judgment = self.judgment.without_examples();
        let broken = judgment.findings.iter().map(|f| f.rule.clone()).collect();
        let void = self.unreliable_because.clone();
        let (judgment, stop) = match self.unreliable_because {
            Some(why) => {
                let void = judgment.void(&why);
                let known = [Stop::HookFailed, Stop::Misconfigured].map(|of| of(why.clone()));
                let stop = self.stop.filter(|stop| known.contains(stop));
                (void, Some(stop.unwrap_or(Stop::Inconclusive(why))))
            }
            None => (judgment, self.stop),
        };
        let judged = (judgment, stop.clone());
        let concluded = summarize(rulebook, Some(scenario), &evidence, judged, seconds);
        if let Some(recorded) = observers.recorded {
            let is_sound = concluded.stopped.is_none() && concluded.judgment.findings.is_empty();
            recorded.replace(RecordedRun {
                evidence,
                memo,
                is_sound,
            });
        } else if let Some((evidence_writer, index)) = observers.evidence_writer {
            let kept = EvidenceRecord {
                evidence,
                stop,
                void,
                turned_away: turned_away.clone(),
                seconds,
                of_answers: Vec::new(),
                broken,
            };
            evidence_writer.keep(index, kept);
        }
        Concluded {
            turned_away,
            ..concluded
        }
    }
}

/// The attempts of a scenario so far. Each has names of its own.
#[derive(Default)]
struct Attempts {
    count: usize,
    disturbances: usize,
    /// Attempts with other drawn numbers.
    redrawn: usize,
    /// The rounds of a race before this one.
    rounds_before: usize,
    /// Whether this attempt checks whether a callback is missing again, which is then a finding.
    confirms_missing_callback: bool,
    /// The findings of the attempt that lacked a callback first.
    without_callback: Vec<Finding>,
    /// Whether the attempt with the names of `--names` had findings.
    has_failed_with_given_names: bool,
}

impl Attempts {
    /// Whether a further attempt follows this one.
    fn go_on(&mut self, last: &Attempt, session: &dyn Session, planned: &Planned<'_>) -> bool {
        /// The maximum number of attempts of a scenario that other clients of the target disturb.
        const DISTURBED_ATTEMPTS_MAX: usize = 5;
        /// The maximum number of attempts with other drawn numbers.
        const REDRAWN_MAX: usize = 4;
        self.count += 1;
        if last.unreliable_because.is_some() {
            self.disturbances += 1;
            if self.disturbances < DISTURBED_ATTEMPTS_MAX {
                return true;
            }
        }
        // An earlier run may have used the drawn numbers.
        let may_be_taken = planned.draws_numbers()
            && session.is_live()
            && (last.went_wrong || matches!(last.stop, Some(Stop::HookFailed(_))));
        if may_be_taken && self.redrawn < REDRAWN_MAX {
            self.redrawn += 1;
            return true;
        }
        let settings = session.settings();
        let has_given_names = self.count == 1 && session.is_live() && settings.are_names_given;
        if has_given_names && !last.judgment.findings.is_empty() {
            self.has_failed_with_given_names = true;
            return true;
        }
        if !self.confirms_missing_callback && last.went_wrong && session.has_missed_callback() {
            self.confirms_missing_callback = true;
            self.without_callback.clone_from(&last.judgment.findings);
            return true;
        }
        if last.is_sound() && planned.is_race() && self.rounds_before + 1 < settings.rounds {
            self.rounds_before += 1;
            return true;
        }
        false
    }

    /// The last attempt. A scenario that failed with the given names and passes with new ones is inconclusive: an earlier run
    /// may have left something under these names, or the defect is intermittent.
    fn outcome(&self, mut last: Attempt) -> Attempt {
        if self.redrawn > 0
            && let Some(Stop::HookFailed(why)) = &mut last.stop
        {
            *why = format!(
                "{why}; with {} other numbers it failed too: those of `people.new_cellphone` may be in use",
                self.redrawn
            );
        }
        for finding in &mut last.judgment.findings {
            let place = |f: &Finding| (f.rule.clone(), f.step, f.pointer.clone());
            let mut first = self.without_callback.iter();
            let first = first.find(|first| place(first) == place(finding));
            if let Some(first) = first.filter(|first| first.actual != finding.actual) {
                finding.message += &format!(" (first attempt: got {})", first.actual);
            }
        }
        if !self.has_failed_with_given_names || !last.is_sound() {
            return last;
        }
        let why = "it failed with the names of --names and passed with new ones: an earlier run may have used these names";
        Attempt {
            unreliable_because: Some(why.to_owned()),
            ..last
        }
    }
}

/// The conclusion of a scenario that did not begin before the run ended. It opens no session and evaluates no rules, so
/// that the run ends quickly.
fn never_began(
    rulebook: &Rulebook,
    scenario: &Scenario,
    observers: Observers<'_, '_>,
) -> Concluded {
    let mut judgment = Judgment::default();
    let mut evidence = Evidence {
        scenario: scenario.id.clone(),
        ..Evidence::default()
    };
    for rule in scenario.steps.iter().flat_map(Step::rules) {
        judgment.inconclusive(rule, ENDED_BEFORE);
        let missed = SkippedRule::because(rule, ENDED_BEFORE);
        evidence.missed.push(missed);
    }
    let attempt = Attempt {
        evidence,
        memo: DocumentCache::default(),
        judgment,
        stop: Some(Stop::Interrupted),
        unreliable_because: None,
        went_wrong: false,
        seconds: 0.0,
    };
    attempt.conclude(rulebook, scenario, None, observers)
}

/// Why the result of a scenario is unreliable: a service that it used stopped answering. Waits until that is known.
pub fn find_loss(session: &dyn Session, evidence: &Evidence) -> Option<String> {
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
pub(super) fn find_invalid_request(
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
