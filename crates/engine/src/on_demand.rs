//! Runs the scenarios of a plan one by one, in any order and on any thread, as a test runner requests them.
//!
//! Exclusive resources of the target are still held by one scenario at a time. There is no run record: each scenario
//! has its own result.

use super::concluded::{Concluded, VoidService};
use super::plan::Planned;
use super::scheduler::Scheduler;
use super::{Sessions, conclude};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Scenario;
use conformant_schema::Schemas;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sessions that a test runner's threads share.
pub type SharedSessions = Arc<dyn Sessions + Send + Sync>;

/// The scenarios of a plan, each of which runs at most once.
pub struct OnDemandRunner {
    rulebook: Arc<Rulebook>,
    schemas: Schemas,
    sessions: SharedSessions,
    scenarios: Vec<OwnedScenario>,
    scheduler: Scheduler<'static>,
    seed: u64,
    interrupted: Arc<AtomicBool>,
}

/// A scenario of a plan without a reference to the rulebook.
struct OwnedScenario {
    service: String,
    scenario: Scenario,
}

impl fmt::Debug for OnDemandRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemandRunner")
            .field("scenarios", &self.scenarios.len())
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl OnDemandRunner {
    /// Takes the planned scenarios; `interrupted` ends all of them.
    pub fn new(
        rulebook: &Arc<Rulebook>,
        planned: Vec<Planned<'_>>,
        sessions: SharedSessions,
        seed: u64,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let claims = planned.iter().map(|p| sessions.resource_claim(p)).collect();
        let owner = Arc::clone(&sessions);
        let scheduler = Scheduler::new(claims, false, Box::new(move || owner.phone_numbers()));
        let scenario = |planned: Planned<'_>| OwnedScenario {
            service: planned.service.name.clone(),
            scenario: planned.scenario,
        };
        Self {
            rulebook: Arc::clone(rulebook),
            schemas: Schemas::default(),
            sessions,
            scenarios: planned.into_iter().map(scenario).collect(),
            scheduler,
            seed,
            interrupted,
        }
    }

    /// Ids of the scenarios, in the plan's order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.scenarios
            .iter()
            .map(|scenario| scenario.scenario.id.as_str())
    }

    /// A service whose answers are not judged.
    pub fn void_service(&self) -> Option<VoidService> {
        self.sessions.services().void_services().into_iter().next()
    }

    /// Runs and judges a scenario once its resources are free; `None` for an unknown index or a scenario that ran
    /// before.
    pub fn run(&self, index: usize) -> Option<Concluded> {
        let scenario = self.scenarios.get(index)?;
        let planned = Planned {
            service: self.rulebook.services.get(&scenario.service)?,
            scenario: scenario.scenario.clone(),
        };
        let _entered = self.scheduler.start(index)?;
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
