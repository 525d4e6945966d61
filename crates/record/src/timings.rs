//! Where the real time of a run went, story by story, and how quick its schedule could have been.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the time of a story was spent on, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Waiting for answers of the target.
    pub answers: f64,
    /// Waiting because the target limits how often it is asked (429, 503).
    pub held_back: f64,
    /// Waiting for what people and devices do.
    pub hooks: f64,
    /// Letting time pass that a rule speaks of.
    pub time: f64,
    /// Listening for callbacks.
    pub callbacks: f64,
    /// Waiting for other stories: for a job, a person, the target's clock.
    pub turn: f64,
    /// Everything else: composing, judging, proving.
    pub own: f64,
}

/// One part of [`Spent`].
pub type Part = fn(&mut Spent) -> &mut f64;

impl Spent {
    /// Each part with its name, in the order in which they are shown.
    pub const PARTS: [(&'static str, Part); 7] = [
        ("answers", |s| &mut s.answers),
        ("held back", |s| &mut s.held_back),
        ("hooks", |s| &mut s.hooks),
        ("time passing", |s| &mut s.time),
        ("callbacks", |s| &mut s.callbacks),
        ("other stories", |s| &mut s.turn),
        ("judging", |s| &mut s.own),
    ];

    /// Each part's name and seconds.
    pub fn parts(mut self) -> [(&'static str, f64); 7] {
        Self::PARTS.map(|(name, part)| (name, *part(&mut self)))
    }

    /// The parts that took anything worth telling, the longest first.
    pub fn told(&self) -> Vec<(&'static str, f64)> {
        const WORTH_TELLING: f64 = 0.05;
        let mut told: Vec<(&str, f64)> = self
            .parts()
            .into_iter()
            .filter(|(_, seconds)| *seconds >= WORTH_TELLING)
            .collect();
        told.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        told
    }

    /// All of it.
    pub fn all(&self) -> f64 {
        self.parts().into_iter().map(|(_, seconds)| seconds).sum()
    }

    /// All of it, but for what others took.
    pub fn by_itself(&self) -> f64 {
        self.all() - self.turn
    }

    /// Adds what another story, or another attempt at it, spent.
    pub fn add(&mut self, other: &Self) {
        for ((_, part), (_, seconds)) in Self::PARTS.into_iter().zip(other.parts()) {
            *part(self) += seconds;
        }
    }
}

/// When a story was told, and what it waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoryTime {
    /// Its id.
    pub scenario: String,
    /// The line of stories it stands in, counted from 1: those of one line follow each other.
    pub lane: usize,
    /// When it began, in seconds from the run's beginning.
    pub began: f64,
    /// How long it took in seconds.
    pub seconds: f64,
    /// What that was spent on.
    pub spent: Spent,
}

/// The schedule of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// How many stories could work at a time.
    pub jobs: usize,
    /// What all stories took together.
    pub spent: Spent,
    /// No order of these stories would have ended sooner, in seconds.
    pub lower_bound: f64,
    /// Why not.
    pub because: String,
    /// Every story, as they began.
    pub stories: Vec<StoryTime>,
}
