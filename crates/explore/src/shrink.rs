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
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of replays of a finding.
const REPLAYS_MAX: usize = 400;
const REPLAYS_LIVE_MAX: usize = 30;

pub(super) struct Shrink<'s> {
    pub(super) explorer: &'s Explorer<'s>,
    pub(super) sessions: &'s dyn Sessions,
    pub(super) key: &'s Key,
    pub(super) is_live: bool,
    pub(super) interrupted: &'s AtomicBool,
}

impl Shrink<'_> {
    /// The shortest failing sequence that was found; the whole one if its first replay does not fail.
    pub(super) fn down(&self, found: &Found) -> Shrunk {
        let name = scenario::name(&self.key.0, &self.key.1);
        let mut replays_left = if self.is_live {
            REPLAYS_LIVE_MAX
        } else {
            REPLAYS_MAX
        };
        let shrunk = |steps, finding, certainty| {
            let scenario = scenario::scenario(&found.service, &name, steps);
            Shrunk::new(scenario, finding, found.sequence, certainty)
        };
        let first = match self.replay(found, &name, &found.steps, &mut replays_left) {
            Replay::Fails(finding) => *finding,
            Replay::Holds(again) => {
                let first = found.transcript.clone();
                let flaky = Certainty::Flaky { first, again };
                return shrunk(found.steps.clone(), found.finding.clone(), flaky);
            }
            Replay::Untried => {
                return shrunk(
                    found.steps.clone(),
                    found.finding.clone(),
                    Certainty::Untried,
                );
            }
        };
        let mut best = (found.steps.clone(), first);
        self.drop_steps(found, &name, &mut best, &mut replays_left);
        let before = best.0.len();
        self.shrink_races(found, &name, &mut best, &mut replays_left);
        if best.0.len() != before {
            self.drop_steps(found, &name, &mut best, &mut replays_left);
        }
        self.unfold(found, &name, &mut best, &mut replays_left);
        self.simplify(found, &name, &mut best, &mut replays_left);
        let (steps, finding) = best;
        // Once more in the form that is saved; if that one does not fail, in the form that did.
        let tidy = without_idle_captures(steps.clone());
        let service = self.explorer.rulebook.services.get(&found.service);
        let tidy = match service {
            Some(service) => scenario::with_twins(self.explorer.rulebook, service, tidy),
            None => tidy,
        };
        let is_tidied = format!("{tidy:?}") != format!("{steps:?}");
        let once_more = |steps: &[Step]| self.replay(found, &name, steps, &mut 2);
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
    fn unfold(
        &self,
        found: &Found,
        name: &str,
        best: &mut (Vec<Step>, Finding),
        replays_left: &mut usize,
    ) {
        let rulebook = self.explorer.rulebook;
        let has_group = best.0.iter().any(|step| step.group().is_some());
        let Some(service) = rulebook.services.get(&found.service).filter(|_| has_group) else {
            return;
        };
        let steps = expand(rulebook, service, &best.0, &Map::new(), 0);
        if let Some(finding) = self.fails(found, name, &steps, replays_left) {
            let mut unfolded = (steps, finding);
            self.drop_steps(found, name, &mut unfolded, replays_left);
            if unfolded.0.len() < best.0.len() {
                *best = unfolded;
            }
        }
    }

    /// Removes blocks of steps, halved down to single steps (ddmin); from the end, because later steps depend on earlier ones.
    fn drop_steps(
        &self,
        found: &Found,
        name: &str,
        best: &mut (Vec<Step>, Finding),
        replays_left: &mut usize,
    ) {
        let mut size = best.0.len().div_ceil(2);
        while size > 0 && *replays_left > 0 {
            let mut end = best.0.len();
            let mut is_shorter = false;
            while end > 0 {
                let start = end.saturating_sub(size);
                let mut fewer = best.0.clone();
                fewer.drain(start..end);
                if let Some(finding) = self.fails(found, name, &fewer, replays_left) {
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
    fn shrink_races(
        &self,
        found: &Found,
        name: &str,
        best: &mut (Vec<Step>, Finding),
        replays_left: &mut usize,
    ) {
        let mut index = 0;
        while index < best.0.len() {
            let simpler = best.0[index].race().map(|race| simpler(&race.concurrently));
            let smaller = simpler.into_iter().flatten().find_map(|steps| {
                let mut fewer = best.0.clone();
                fewer.splice(index..=index, steps);
                let finding = self.fails(found, name, &fewer, replays_left)?;
                Some((fewer, finding))
            });
            match smaller {
                Some(smaller) => *best = smaller,
                None => index += 1,
            }
        }
    }

    /// Removes parameters, and other credentials than the default ones. Requests of a race stay as they are.
    fn simplify(
        &self,
        found: &Found,
        name: &str,
        best: &mut (Vec<Step>, Finding),
        replays_left: &mut usize,
    ) {
        for index in 0..best.0.len() {
            let with = best.0[index].with();
            let names: Vec<String> = with.into_iter().flat_map(Map::keys).cloned().collect();
            for parameter in names {
                let mut simpler = best.0.clone();
                if let Some(with) = simpler[index].with_mut() {
                    with.shift_remove(&parameter);
                }
                if let Some(finding) = self.fails(found, name, &simpler, replays_left) {
                    *best = (simpler, finding);
                }
            }
            if best.0[index].credentials() != Credentials::Default {
                let mut simpler = best.0.clone();
                simpler[index].carry_default_credentials();
                if let Some(finding) = self.fails(found, name, &simpler, replays_left) {
                    *best = (simpler, finding);
                }
            }
        }
    }

    /// The finding, if these steps have it.
    fn fails(
        &self,
        found: &Found,
        name: &str,
        steps: &[Step],
        replays_left: &mut usize,
    ) -> Option<Finding> {
        match self.replay(found, name, steps, replays_left) {
            Replay::Fails(finding) => Some(*finding),
            Replay::Holds(_) | Replay::Untried => None,
        }
    }

    /// Result of these steps; on a live target it must occur twice in a row.
    fn replay(
        &self,
        found: &Found,
        name: &str,
        steps: &[Step],
        replays_left: &mut usize,
    ) -> Replay {
        let rulebook = self.explorer.rulebook;
        let Some(service) = rulebook.services.get(&found.service) else {
            return Replay::Untried;
        };
        let times = if self.is_live { 2 } else { 1 };
        let mut last = Replay::Untried;
        for time in 0..times {
            if *replays_left == 0 || self.interrupted.load(Ordering::Relaxed) {
                return Replay::Untried;
            }
            // A target keeps the names of earlier replays.
            let name = if self.is_live {
                format!("{name}-{replays_left}-{time}")
            } else {
                name.to_owned()
            };
            let scenario = scenario::scenario(&found.service, &name, steps.to_vec());
            if !scenario::is_sound(rulebook, service, &scenario) {
                return Replay::Holds(Vec::new());
            }
            *replays_left -= 1;
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
