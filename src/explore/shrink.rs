//! Shrinking: what can be left out of a sequence while it still breaks the same rule on the same operation.

use super::story::{self, Shrunk};
use super::{Explorer, Found, Key, key_of};
use crate::engine::Sessions;
use crate::engine::derive::moves::without_idle_captures;
use crate::rulebook::scenario::{Credentials, Step};
use crate::verdict::Finding;
use std::sync::atomic::{AtomicBool, Ordering};

/// Replays of one finding.
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
    /// The shortest sequence that is found; the whole one where it does not come again.
    pub(super) fn down(&self, found: Found) -> Shrunk {
        let name = story::name(&self.key.0, &self.key.1);
        let mut left = if self.is_live {
            REPLAYS_LIVE_MAX
        } else {
            REPLAYS_MAX
        };
        let Some(first) = self.fails(&found, &name, &found.steps, &mut left) else {
            let scenario = story::scenario(&found.service, &name, found.steps);
            return Shrunk::flaky(scenario, found.finding, found.sequence);
        };
        let mut best = (found.steps.clone(), first);
        self.drop_steps(&found, &name, &mut best, &mut left);
        self.simplify(&found, &name, &mut best, &mut left);
        let (steps, finding) = best;
        // Once more, as it will be saved.
        let steps = without_idle_captures(steps);
        let service = self.explorer.rulebook.services.get(&found.service);
        let steps = match service {
            Some(service) => story::with_twins(self.explorer.rulebook, service, steps),
            None => steps,
        };
        let scenario = story::scenario(&found.service, &name, steps.clone());
        let mut last = 1;
        match self.fails(&found, &name, &steps, &mut last) {
            Some(finding) => Shrunk::sure(scenario, finding, found.sequence),
            None => Shrunk::flaky(scenario, finding, found.sequence),
        }
    }

    /// Blocks of steps, halved until they are single steps (ddmin).
    fn drop_steps(
        &self,
        found: &Found,
        name: &str,
        best: &mut (Vec<Step>, Finding),
        left: &mut usize,
    ) {
        let mut size = best.0.len().div_ceil(2);
        while size > 0 && *left > 0 {
            let mut at = 0;
            while at < best.0.len() {
                let mut fewer = best.0.clone();
                fewer.drain(at..(at + size).min(best.0.len()));
                match self.fails(found, name, &fewer, left) {
                    Some(finding) => *best = (fewer, finding),
                    None => at += size,
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    /// Parameters that need not be sent, walks and repetitions that need not be.
    fn simplify(
        &self,
        found: &Found,
        name: &str,
        best: &mut (Vec<Step>, Finding),
        left: &mut usize,
    ) {
        for index in 0..best.0.len() {
            let names: Vec<String> = best.0[index].with.keys().cloned().collect();
            for parameter in names {
                let mut simpler = best.0.clone();
                simpler[index].with.shift_remove(&parameter);
                if let Some(finding) = self.fails(found, name, &simpler, left) {
                    *best = (simpler, finding);
                }
            }
            if best.0[index].credentials != Credentials::Default {
                let mut simpler = best.0.clone();
                simpler[index].credentials = Credentials::Default;
                if let Some(finding) = self.fails(found, name, &simpler, left) {
                    *best = (simpler, finding);
                }
            }
        }
    }

    /// The finding, where these steps bring it; on a target that lives on twice in a row.
    fn fails(
        &self,
        found: &Found,
        name: &str,
        steps: &[Step],
        left: &mut usize,
    ) -> Option<Finding> {
        let rulebook = self.explorer.rulebook;
        let service = rulebook.services.get(&found.service)?;
        let times = if self.is_live { 2 } else { 1 };
        let mut last = None;
        for time in 0..times {
            if *left == 0 || self.interrupted.load(Ordering::Relaxed) {
                return None;
            }
            *left -= 1;
            // A target remembers the names of earlier replays.
            let name = if self.is_live {
                format!("{name}-{left}-{time}")
            } else {
                name.to_owned()
            };
            let scenario = story::scenario(&found.service, &name, steps.to_vec());
            if !story::is_sound(rulebook, service, &scenario) {
                return None;
            }
            let played = self
                .explorer
                .play(service, &scenario, self.sessions, self.interrupted);
            let mut findings = played.judgement.findings.into_iter();
            last = Some(findings.find(|finding| key_of(finding) == *self.key)?);
        }
        last
    }
}
