//! Stories told one at a time, in whatever order and on whatever threads a test runner asks for them.
//!
//! What a target has only one of is still one story's at a time. No record comes of it: each story's
//! conclusion is its own.

use super::plan::Planned;
use super::record::Concluded;
use super::stage::Stage;
use super::{Sessions, conclude};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Scenario;
use conformant_schema::Schemas;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sessions that a test runner's threads share.
pub type SharedSessions = Arc<dyn Sessions + Send + Sync>;

/// The stories of a plan, each to be told once.
pub struct Singly {
    rulebook: Arc<Rulebook>,
    schemas: Schemas,
    sessions: SharedSessions,
    stories: Vec<Story>,
    stage: Stage<'static>,
    seed: u64,
    interrupted: Arc<AtomicBool>,
}

/// A story of a plan, without the rulebook that it was planned by.
struct Story {
    service: String,
    scenario: Scenario,
}

impl fmt::Debug for Singly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Singly")
            .field("stories", &self.stories.len())
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Singly {
    /// These stories of the rulebook, by their index; `interrupted` ends all of them.
    pub fn new(
        rulebook: &Arc<Rulebook>,
        planned: Vec<Planned<'_>>,
        sessions: SharedSessions,
        seed: u64,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let rooms = planned.iter().map(|p| sessions.room(p)).collect();
        let owner = Arc::clone(&sessions);
        let stage = Stage::new(rooms, false, Box::new(move || owner.persons()));
        let story = |planned: Planned<'_>| Story {
            service: planned.service.name.clone(),
            scenario: planned.scenario,
        };
        Self {
            rulebook: Arc::clone(rulebook),
            schemas: Schemas::default(),
            sessions,
            stories: planned.into_iter().map(story).collect(),
            stage,
            seed,
            interrupted,
        }
    }

    /// Ids of the stories, in the plan's order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.stories.iter().map(|story| story.scenario.id.as_str())
    }

    /// The service that answers nothing but refusals, for which the others were given up.
    pub fn denied_by(&self) -> Option<String> {
        self.sessions.denied_by()
    }

    /// Tells a story and has it judged, once what it needs alone is free; nothing where it is no story of
    /// the plan, or was told before.
    pub fn play(&self, index: usize) -> Option<Concluded> {
        let story = self.stories.get(index)?;
        let planned = Planned {
            service: self.rulebook.services.get(&story.service)?,
            scenario: story.scenario.clone(),
        };
        let _entered = self.stage.enter_as(index)?;
        Some(conclude(
            &self.rulebook,
            &self.schemas,
            &planned,
            self.sessions.as_ref(),
            self.seed,
            &self.interrupted,
        ))
    }
}
