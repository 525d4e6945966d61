//! Early looks: in all but the last round, a race reads the state at once instead of after the time that it may take to
//! settle.
//!
//! - The rules judge what was read as if that time had passed. Only a finding makes the scenario wait and read again.
//! - The second reading decides. What steps expected of the first one is dropped, because the state may have lagged; the
//!   exchanges stay in the evidence, with their times.

use super::Runner;
use crate::stop::Stop;
use crate::template::CONSISTENCY_WINDOW;
use conformant_rulebook::Action;
use conformant_rulebook::step::{Step, Wait};
use conformant_schema::Schemas;

/// The wait that a scenario skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyLook {
    /// Index of the step that waits.
    step: usize,
    /// Number of events in the evidence before this step.
    events_before: usize,
    /// Number of statements in the evidence before this step.
    statements_before: usize,
}

impl Runner<'_> {
    /// Whether a step only waits until an earlier race has settled.
    pub(super) fn can_skip(&self, step: &Step) -> bool {
        self.races > 0 && step.wait() == Some(Wait::SETTLED)
    }

    pub(super) fn begin_early_look(&self, step: usize) -> EarlyLook {
        EarlyLook {
            step,
            events_before: self.evidence.events.len(),
            statements_before: self.evidence.statements.len(),
        }
    }

    /// Waits and reads the state again if the early answers would break a rule after the wait.
    pub(super) fn look_again(
        &mut self,
        early: EarlyLook,
        steps: &[Step],
        schemas: &Schemas,
    ) -> Result<(), Stop> {
        self.evidence.now = Some(self.session.now());
        self.evidence.settled_from = Some(early.events_before);
        let judgment = conformant_judge::judge(self.rulebook, schemas, &self.evidence);
        self.evidence.settled_from = None;
        if judgment.findings.is_empty() {
            return Ok(());
        }
        self.evidence.statements.truncate(early.statements_before);
        self.pass(CONSISTENCY_WINDOW);
        for (index, step) in steps.iter().enumerate().skip(early.step) {
            if self.reads_state(step) {
                self.step = index + 1;
                self.step(step)?;
            }
        }
        self.poll_lagging_lists();
        Ok(())
    }

    /// Whether a step shows the state and may be repeated. An update counts: its answer shows the resource, and some
    /// resources are shown by nothing else.
    fn reads_state(&self, step: &Step) -> bool {
        let Some(call) = step.operation() else {
            return step.address().is_some();
        };
        self.operation(call).is_ok_and(|operation| {
            matches!(
                operation.does,
                Action::Shows | Action::Lists | Action::Changes
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CONSISTENCY_WINDOW;
    use crate::sessions::Offline;
    use crate::{Planned, ScenarioRun, Sessions, Target, plan, run_scenario};
    use conformant_judge::evidence::{Event, Evidence};
    use conformant_judge::load::{shared, shared_schemas};
    use conformant_reference::Fault;
    use conformant_rulebook::step::{Step, Wait};
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    /// Races that wait until the state has settled.
    fn races() -> Vec<Planned<'static>> {
        let settles = |step: &Step| step.wait() == Some(Wait::SETTLED);
        let all = plan::all(shared()).into_iter();
        all.filter(|p| p.is_race() && p.any_step(&settles))
            .collect()
    }

    fn evidence(worlds: &Offline<'_>, planned: &Planned<'_>, looks_early: bool) -> Evidence {
        let session = worlds.open(planned).unwrap();
        let scenario_run = ScenarioRun {
            looks_early,
            ..ScenarioRun::new(shared(), shared_schemas(), planned, (0, 0))
        };
        run_scenario(scenario_run, session.as_ref(), &AtomicBool::new(false)).evidence
    }

    fn waits(evidence: &Evidence) -> usize {
        let is_window =
            |event: &&Event| matches!(event, Event::Passed(time) if *time == CONSISTENCY_WINDOW);
        evidence.events.iter().filter(is_window).count()
    }

    #[test]
    fn a_correct_target_is_not_waited_for() {
        let worlds = Offline::faultless(0);
        for planned in races() {
            let id = &planned.scenario.id;
            assert_eq!(waits(&evidence(&worlds, &planned, true)), 0, "{id}");
            assert!(waits(&evidence(&worlds, &planned, false)) > 0, "{id}");
        }
    }

    /// Each scenario with the faults of its service.
    #[test]
    fn an_early_look_finds_what_a_late_one_finds() {
        let mut found = 0;
        for planned in races() {
            let (id, service) = (&planned.scenario.id, &planned.service.name);
            let of_service = format!("{service}/race-");
            for fault in Fault::ALL
                .iter()
                .filter(|f| f.id().starts_with(&of_service))
            {
                let switches = (BTreeSet::from([*fault]), BTreeSet::new());
                let targets = Target::all_of_reference();
                let worlds = Offline::in_process(0, switches.0, switches.1, targets);
                let broken = |looks_early| {
                    let evidence = evidence(&worlds, &planned, looks_early);
                    let judgment = conformant_judge::judge(shared(), shared_schemas(), &evidence);
                    let rules = judgment.findings.into_iter().map(|f| f.rule);
                    rules.collect::<BTreeSet<String>>()
                };
                let late = broken(false);
                found += late.len();
                assert_eq!(broken(true), late, "{}, {id}", fault.id());
            }
        }
        assert!(found > 0);
    }
}
