//! What a self-test leaves out when it knows which rules caught each fault before.
//!
//! - A fault is tried only until these rules have caught it, and only in scenarios that judge one of the missing rules.
//! - A variation that has made a difference by itself is tried several at a time, and again alone if these are flagged.
//!   The seed draws which ones.
//!
//! So it finds that a recorded rule does not catch a fault any more, and that a variation is flagged. That a further rule
//! catches a fault is found only in the scenarios that it runs.

use super::matrix::Row;
use super::scenes::{Scenes, TrialOutcome};
use super::{Selftest, name};
use conformant_engine::{Concluded, Planned, RecordedRun};
use conformant_record::Verdict;
use conformant_reference::Switch;
use std::collections::{BTreeMap, BTreeSet};

/// Number of scenarios in which a variation makes a difference by itself before it is tried together with others.
const ALONE_MIN: usize = 2;

/// What is tried in a scenario besides the clean reference.
#[derive(Debug, Default)]
pub(super) struct Due<'a> {
    /// Faults and variations that are tried one by one. With rules, only where the clean run judges one of them.
    alone: BTreeMap<Switch, Option<Vec<&'a String>>>,
    /// Variations that are tried several at a time.
    together: BTreeSet<Switch>,
}

impl<'a> Due<'a> {
    /// All of them, in every scenario.
    pub(super) fn all(switches: impl IntoIterator<Item = Switch>) -> Self {
        Self {
            alone: switches.into_iter().map(|switch| (switch, None)).collect(),
            together: BTreeSet::new(),
        }
    }

    /// What to try after these results.
    fn after(rows: &BTreeMap<Switch, Row>, enough: &'a super::CaughtBy) -> Self {
        let mut due = Self::default();
        for (&switch, row) in rows {
            let recorded = enough.get(&name(switch));
            let missing = recorded.map(|rules| {
                let missing = rules.iter().filter(|rule| !row.killed_by.contains(*rule));
                missing.collect::<Vec<_>>()
            });
            match missing {
                // One that differs from what is advised is always tried alone.
                _ if row.is_variant && row.killed_by.is_empty() && row.differing >= ALONE_MIN => {
                    due.together.insert(switch);
                }
                Some(missing) if missing.is_empty() && !row.killed_by.is_empty() => {}
                Some(missing) if !missing.is_empty() => {
                    due.alone.insert(switch, Some(missing));
                }
                Some(_) | None => {
                    due.alone.insert(switch, None);
                }
            }
        }
        due
    }

    /// Whether to try a fault or variation by itself in a scenario with this clean run.
    pub(super) fn wants(&self, switch: Switch, clean: &Concluded) -> bool {
        let is_judged = |rule: &&String| clean.judgment.tallies.get(*rule).is_some();
        match self.alone.get(&switch) {
            None => self.together.contains(&switch),
            Some(None) => true,
            Some(Some(rules)) => rules.iter().any(is_judged),
        }
    }

    /// Those of these switches that are tried several at a time.
    pub(super) fn together(&self, switches: &[Switch]) -> Vec<Switch> {
        let together = switches.iter().filter(|s| self.together.contains(s));
        together.copied().collect()
    }
}

impl<'a> Selftest<'a> {
    /// What is tried in the next scenarios.
    pub(super) fn due(&self, rows: &BTreeMap<Switch, Row>) -> Due<'a> {
        match self.enough {
            Some(enough) => Due::after(rows, enough),
            None => Due::all(rows.keys().copied()),
        }
    }

    /// Those switches that are not flagged when several of them are on in one run of a scenario that passes, and the
    /// combinations that are flagged although no single switch is.
    pub(super) fn unflagged_together(
        &self,
        turn: usize,
        planned: &Planned<'_>,
        recorded: &RecordedRun,
        switches: &[Switch],
    ) -> (BTreeSet<Switch>, Vec<String>) {
        let (mut unflagged, mut refused) = (BTreeSet::new(), Vec::new());
        for on in self.groups(turn, switches) {
            let concluded = self.with_all(&on, planned, recorded);
            let is_clean = TrialOutcome::of(&concluded) == TrialOutcome::default();
            if is_clean && concluded.result.verdict == Verdict::Pass {
                unflagged.extend(on);
            } else {
                refused.extend(self.refused_combinations(planned, recorded, &on));
            }
        }
        (unflagged, refused)
    }

    /// Tries the faults that not all recorded rules have caught in all scenarios: a rule may be judged only with the fault.
    pub(super) fn try_left_over(&self, scenes: &mut Scenes, planned: &[Planned<'_>]) {
        let due = self.due(&scenes.rows).alone.into_iter();
        let due = due.filter_map(|(switch, missing)| Some((switch, missing?)));
        let due: Vec<(Switch, Vec<&String>)> = due.collect();
        let try_out = |turn: usize| {
            let (switch, missing) = &due[turn];
            let (faults, variants) = switch.alone();
            let sessions = self.sessions(faults, variants);
            let mut row = Row::default();
            for clean in &scenes.clean {
                if missing.iter().all(|rule| row.killed_by.contains(*rule)) {
                    break;
                }
                if clean.consulted.contains(switch) {
                    let concluded = self.run_scenario(clean, planned, &sessions);
                    row.add_scenario(&TrialOutcome::of(&concluded));
                }
            }
            row
        };
        let rows = self.parallel_map(due.len(), try_out, &|_| {});
        for ((switch, _), row) in due.into_iter().zip(rows) {
            scenes.rows.entry(switch).or_default().add(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_reference::{Fault, Variant};

    #[test]
    fn what_is_due_depends_on_the_results_so_far() {
        let fault = Switch::Fault(Fault::FlowNameNull);
        let variation = Switch::Variant(Variant::PrettyJson);
        let two = ["a", "b"].map(str::to_owned);
        let enough = BTreeMap::from([(name(fault), BTreeSet::from(two.clone()))]);
        let row = |killed_by: &[&str], differing| Row {
            killed_by: killed_by.iter().map(|&rule| rule.to_owned()).collect(),
            differing,
            ..Row::default()
        };
        let alone = |rows: BTreeMap<Switch, Row>| {
            let due = Due::after(&rows, &enough);
            let alone = due.alone.into_iter();
            let alone = alone.map(|(s, missing)| (s, missing.map(|all| all.len())));
            (alone.collect::<Vec<_>>(), due.together.len())
        };
        let of_fault = |killed_by: &[&str]| alone(BTreeMap::from([(fault, row(killed_by, 1))]));
        assert_eq!(of_fault(&[]), (vec![(fault, Some(2))], 0));
        assert_eq!(of_fault(&["a", "c"]), (vec![(fault, Some(1))], 0));
        assert_eq!(of_fault(&["a", "b"]), (vec![], 0));
        let of_variation = |killed_by: &[&str], differing| {
            let is_variant = true;
            let row = Row {
                is_variant,
                ..row(killed_by, differing)
            };
            alone(BTreeMap::from([(variation, row)]))
        };
        assert_eq!(
            of_variation(&[], ALONE_MIN - 1),
            (vec![(variation, None)], 0)
        );
        assert_eq!(of_variation(&["advice"], 9), (vec![(variation, None)], 0));
        assert_eq!(of_variation(&[], ALONE_MIN), (vec![], 1));
    }
}
