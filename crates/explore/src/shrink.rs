//! Shrinks a sequence while it still breaks the same rule on the same operation.

use super::scenario::{self, Certainty, Shrunk};
use super::{Explorer, Found, Key, key_of};
use conformant_engine::derive::second_tenant::expand;
use conformant_engine::derive::sequence::without_idle_captures;
use conformant_engine::{Sessions, Stop};
use conformant_record::Finding;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::{Concurrently, Step};
use serde_json::Map;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of replays of a finding.
const REPLAYS_MAX: usize = 400;
const REPLAYS_LIVE_MAX: usize = 30;

pub(super) struct Shrink<'s> {
    explorer: &'s Explorer<'s>,
    sessions: &'s dyn Sessions,
    key: &'s Key,
    found: &'s Found,
    /// The name of the scenario.
    name: String,
    replays_left: Cell<usize>,
    interrupted: &'s AtomicBool,
}

/// Steps with the finding that they have.
type Failing = (Vec<Step>, Finding);

impl<'s> Shrink<'s> {
    pub(super) fn new(
        explorer: &'s Explorer<'s>,
        sessions: &'s dyn Sessions,
        (key, found): (&'s Key, &'s Found),
        interrupted: &'s AtomicBool,
    ) -> Self {
        let replays_max = match explorer.options.is_live {
            true => REPLAYS_LIVE_MAX,
            false => REPLAYS_MAX,
        };
        Self {
            explorer,
            sessions,
            key,
            found,
            name: scenario::name(&key.0, &key.1),
            replays_left: Cell::new(replays_max),
            interrupted,
        }
    }

    /// The shortest failing sequence that was found; the whole one if its first replay does not fail.
    pub(super) fn down(&self) -> Shrunk {
        let found = self.found;
        let shrunk = |steps, finding, certainty| Shrunk {
            scenario: scenario::scenario(&found.service, &self.name, steps),
            finding,
            sequence: found.sequence,
            certainty,
        };
        let first = match self.replay(&found.steps) {
            Replay::Fails(finding) => *finding,
            Replay::Holds(again) => {
                let first = found.transcript.clone();
                let flaky = Certainty::Flaky { first, again };
                return shrunk(found.steps.clone(), found.finding.clone(), flaky);
            }
            Replay::Untried => {
                let finding = found.finding.clone();
                return shrunk(found.steps.clone(), finding, Certainty::Untried);
            }
        };
        let mut best = (found.steps.clone(), first);
        self.drop_steps(&mut best);
        let before = best.0.len();
        self.shrink_races(&mut best);
        if best.0.len() != before {
            self.drop_steps(&mut best);
        }
        self.unfold(&mut best);
        self.simplify(&mut best);
        let (steps, finding) = best;
        // Once more in the form that is saved; if that one does not fail, in the form that did.
        let tidy = without_idle_captures(steps.clone());
        let service = self.explorer.rulebook.services.get(&found.service);
        let tidy = match service {
            Some(service) => scenario::with_twins(self.explorer.rulebook, service, tidy),
            None => tidy,
        };
        let is_tidied = format!("{tidy:?}") != format!("{steps:?}");
        let once_more = |steps: &[Step]| {
            self.replays_left.set(2);
            self.replay(steps)
        };
        let mut saved = tidy;
        let mut replay = once_more(&saved);
        if is_tidied && matches!(replay, Replay::Holds(_)) {
            replay = once_more(&steps);
            saved = steps;
        }
        match replay {
            Replay::Fails(finding) => shrunk(saved, *finding, Certainty::Sure),
            Replay::Holds(again) => {
                let first = found.transcript.clone();
                shrunk(saved, finding, Certainty::Flaky { first, again })
            }
            Replay::Untried => shrunk(saved, finding, Certainty::Untried),
        }
    }

    /// Expands groups if that leaves fewer steps.
    fn unfold(&self, best: &mut Failing) {
        let rulebook = self.explorer.rulebook;
        let has_group = best.0.iter().any(|step| step.group().is_some());
        let Some(service) = rulebook
            .services
            .get(&self.found.service)
            .filter(|_| has_group)
        else {
            return;
        };
        let steps = expand(rulebook, service, &best.0, &Map::new(), 0);
        if let Some(finding) = self.fails(&steps) {
            let mut unfolded = (steps, finding);
            self.drop_steps(&mut unfolded);
            if unfolded.0.len() < best.0.len() {
                *best = unfolded;
            }
        }
    }

    /// Removes blocks of steps, halved down to single steps (ddmin); from the end, because later steps depend on earlier ones.
    fn drop_steps(&self, best: &mut Failing) {
        let mut size = best.0.len().div_ceil(2);
        while size > 0 && self.replays_left.get() > 0 {
            let mut end = best.0.len();
            let mut is_shorter = false;
            while end > 0 {
                let start = end.saturating_sub(size);
                let mut fewer = best.0.clone();
                fewer.drain(start..end);
                if let Some(finding) = self.fails(&fewer) {
                    *best = (fewer, finding);
                    is_shorter = true;
                }
                end = start.min(best.0.len());
            }
            size = match (size, is_shorter) {
                (1, false) => 0,
                (1, true) => 1,
                (size, _) => size.div_ceil(2),
            };
        }
    }

    /// Sends the requests of a race one after another, or else as few of them at the same time as possible.
    fn shrink_races(&self, best: &mut Failing) {
        let mut index = 0;
        while index < best.0.len() {
            let simpler = best.0[index].race().map(|race| simpler(&race.concurrently));
            let smaller = simpler.into_iter().flatten().find_map(|steps| {
                let mut fewer = best.0.clone();
                fewer.splice(index..=index, steps);
                let finding = self.fails(&fewer)?;
                Some((fewer, finding))
            });
            match smaller {
                Some(smaller) => *best = smaller,
                None => index += 1,
            }
        }
    }

    /// Removes parameters, and other credentials than the default ones. Requests of a race stay as they are.
    fn simplify(&self, best: &mut Failing) {
        for index in 0..best.0.len() {
            let with = best.0[index].with();
            let names: Vec<String> = with.into_iter().flat_map(Map::keys).cloned().collect();
            for parameter in names {
                let mut simpler = best.0.clone();
                if let Some(with) = simpler[index].with_mut() {
                    with.shift_remove(&parameter);
                }
                if let Some(finding) = self.fails(&simpler) {
                    *best = (simpler, finding);
                }
            }
            if best.0[index].credentials() != Credentials::Default {
                let mut simpler = best.0.clone();
                simpler[index].carry_default_credentials();
                if let Some(finding) = self.fails(&simpler) {
                    *best = (simpler, finding);
                }
            }
        }
    }

    /// The finding, if these steps have it.
    fn fails(&self, steps: &[Step]) -> Option<Finding> {
        match self.replay(steps) {
            Replay::Fails(finding) => Some(*finding),
            Replay::Holds(_) | Replay::Untried => None,
        }
    }

    /// Result of these steps; on a live target it must occur twice in a row.
    fn replay(&self, steps: &[Step]) -> Replay {
        let rulebook = self.explorer.rulebook;
        let Some(service) = rulebook.services.get(&self.found.service) else {
            return Replay::Untried;
        };
        let is_live = self.explorer.options.is_live;
        let times = if is_live { 2 } else { 1 };
        let mut last = Replay::Untried;
        for time in 0..times {
            let left = self.replays_left.get();
            if left == 0 || self.interrupted.load(Ordering::Relaxed) {
                return Replay::Untried;
            }
            // A target keeps the names of earlier replays.
            let name = match is_live {
                true => format!("{}-{left}-{time}", self.name),
                false => self.name.clone(),
            };
            let scenario = scenario::scenario(&service.name, &name, steps.to_vec());
            if !scenario::is_sound(rulebook, service, &scenario) {
                return Replay::Holds(Vec::new());
            }
            self.replays_left.set(left - 1);
            let outcome =
                self.explorer
                    .run_scenario(service, &scenario, self.sessions, self.interrupted);
            if matches!(outcome.stop, Some(Stop::Unreachable(_) | Stop::Interrupted)) {
                return Replay::Untried;
            }
            let transcript = outcome.transcript();
            let mut findings = outcome.judgment.findings.into_iter();
            match findings.find(|finding| key_of(finding) == *self.key) {
                Some(finding) => last = Replay::Fails(Box::new(finding)),
                None => return Replay::Holds(transcript),
            }
        }
        last
    }
}

/// Result of a replay.
enum Replay {
    /// The same rule is broken on the same operation.
    Fails(Box<Finding>),
    /// It passed, or makes no sense: one request a line.
    Holds(Vec<String>),
    /// It was not run to the end.
    Untried,
}

/// What may stand in place of a race, the simplest first: its requests one after another; the race with one request fewer,
/// if at least two remain.
fn simpler(racers: &[Step]) -> Vec<Vec<Step>> {
    let single = |step: &Step| Step {
        repeat: None,
        ..step.clone()
    };
    let mut all = vec![racers.to_vec()];
    let fewer = racers.iter().enumerate().filter_map(|(place, step)| {
        let mut racers = racers.to_vec();
        match step.repeat {
            Some(times) if times > 2 => racers[place].repeat = Some(2),
            Some(_) => racers[place] = single(step),
            None => drop(racers.remove(place)),
        }
        let race = Concurrently {
            concurrently: racers,
        };
        Concurrently::SIZES
            .contains(&race.size())
            .then(|| vec![Step::from(race)])
    });
    all.extend(fewer);
    all
}
