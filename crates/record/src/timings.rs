//! Real time of a run by scenario and activity, and the shortest possible schedule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time of a scenario by activity, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Waiting for responses of the target.
    pub answers: f64,
    /// Waiting because of a rate limit of the target (429, 503).
    pub held_back: f64,
    /// Waiting for hooks.
    pub hooks: f64,
    /// Letting time pass that a rule requires.
    pub time: f64,
    /// Waiting for callbacks.
    pub callbacks: f64,
    /// Waiting for other scenarios: a job slot, a phone number, the target's clock.
    pub turn: f64,
    /// The rest: composing, judging, mutation testing.
    pub own: f64,
}

/// One part of [`Spent`].
pub type Part = fn(&mut Spent) -> &mut f64;

impl Spent {
    /// Each part with its name, in display order.
    pub const PARTS: [(&'static str, Part); 7] = [
        ("answers", |s| &mut s.answers),
        ("held back", |s| &mut s.held_back),
        ("hooks", |s| &mut s.hooks),
        ("time passing", |s| &mut s.time),
        ("callbacks", |s| &mut s.callbacks),
        ("other scenarios", |s| &mut s.turn),
        ("judging", |s| &mut s.own),
    ];

    /// Each part's name and seconds.
    pub fn parts(mut self) -> [(&'static str, f64); 7] {
        Self::PARTS.map(|(name, part)| (name, *part(&mut self)))
    }

    /// The parts that took noticeable time, the longest first.
    pub fn noticeable(&self) -> Vec<(&'static str, f64)> {
        const NOTICEABLE_SECONDS: f64 = 0.05;
        let mut slowest: Vec<(&str, f64)> = self
            .parts()
            .into_iter()
            .filter(|(_, seconds)| *seconds >= NOTICEABLE_SECONDS)
            .collect();
        slowest.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        slowest
    }

    pub fn all(&self) -> f64 {
        self.parts().into_iter().map(|(_, seconds)| seconds).sum()
    }

    /// The total without waiting for other scenarios.
    pub fn by_itself(&self) -> f64 {
        self.all() - self.turn
    }

    /// Adds another scenario or attempt.
    pub fn add(&mut self, other: &Self) {
        for ((_, part), (_, seconds)) in Self::PARTS.into_iter().zip(other.parts()) {
            *part(self) += seconds;
        }
    }
}

/// When a scenario ran and what it waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoryTime")]
pub struct ScenarioTime {
    /// Its id.
    pub scenario: String,
    /// Lane of the scenario, counted from 1; scenarios of a lane run one after the other.
    pub lane: usize,
    /// Start in seconds since the beginning of the run.
    pub began: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Time by activity.
    pub spent: Spent,
}

/// The schedule of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// Scenarios that could run at a time.
    pub jobs: usize,
    /// Total over all scenarios.
    pub spent: Spent,
    /// Lower bound of the duration of any schedule, in seconds.
    pub lower_bound: f64,
    /// Reason for the bound.
    pub because: String,
    /// Every scenario, by start.
    #[serde(rename = "stories")]
    pub scenarios: Vec<ScenarioTime>,
}
