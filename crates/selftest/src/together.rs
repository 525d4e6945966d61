//! Combinations: allowed variations that are on in one run. A conforming target may have any combination of them.

use super::pairs::Generator;
use super::{Selftest, complaint};
use conformant_engine::{Concluded, Planned, RecordedRun};
use conformant_record::{Level, Verdict};
use conformant_reference::{Switch, Variant};

/// Number of variations in one run.
const TOGETHER: usize = 8;

impl Selftest<'_> {
    /// Divides the variations of a scenario into groups: with another seed, into others.
    pub(super) fn groups(&self, turn: usize, switches: &[Switch]) -> Vec<Vec<Switch>> {
        let mut drawn = Generator::for_turn(self.seed, turn);
        let mut left = switches.to_vec();
        let mut groups = vec![Vec::new(); left.len().div_ceil(TOGETHER)];
        let mut next = (0..groups.len()).cycle();
        while let (Some(next), false) = (next.next(), left.is_empty()) {
            groups[next].push(left.swap_remove(drawn.below(left.len())));
        }
        groups
    }

    /// The smallest combinations of these variations that a scenario does not pass although it passes with fewer of them,
    /// each with what came.
    pub(super) fn refused_combinations(
        &self,
        planned: &Planned<'_>,
        recorded: &RecordedRun,
        on: &[Switch],
    ) -> Vec<String> {
        let refusing = |on: &[Switch]| {
            let came = self.with_all(on, planned, recorded);
            (!is_passed(on, &came)).then_some(came)
        };
        let all = smallest(on, refusing).into_iter();
        let several = all.filter(|(least, _)| least.len() > 1);
        let text = |(least, came): (Vec<Switch>, Concluded)| {
            let names = least.iter().flat_map(|switch| switch.alone().1);
            let names: Vec<&str> = names.map(Variant::id).collect();
            complaint(&names.join(" + "), &came)
        };
        several.map(text).collect()
    }

    /// Runs a scenario again with all these variations.
    pub(super) fn with_all(
        &self,
        on: &[Switch],
        planned: &Planned<'_>,
        recorded: &RecordedRun,
    ) -> Concluded {
        let faults = on.iter().flat_map(|switch| switch.alone().0).collect();
        let variants = on.iter().flat_map(|switch| switch.alone().1).collect();
        self.run_again(recorded, planned, &self.sessions(faults, variants))
    }
}

/// Whether a scenario was judged completely and nothing fails it. What differs from what is advised may be reported.
fn is_passed(on: &[Switch], concluded: &Concluded) -> bool {
    let mut findings = concluded.judgment.findings.iter();
    // What stays unanswered depends on the number of requests, which any other variation changes.
    let may_stop = on.contains(&Switch::Variant(Variant::RateLimited));
    let verdict = concluded.result.verdict;
    let is_complete = verdict == Verdict::Pass || may_stop && verdict == Verdict::Inconclusive;
    is_complete && !findings.any(|f| f.level == Level::Must)
}

/// The smallest parts of a list that are refused, each with what came.
fn smallest<T: Copy + PartialEq, C>(
    on: &[T],
    refusing: impl Fn(&[T]) -> Option<C>,
) -> Vec<(Vec<T>, C)> {
    let mut on = on.to_vec();
    let mut refused = Vec::new();
    while let Some(mut came) = refusing(&on) {
        let mut least = on.clone();
        for one in &on {
            let mut fewer = least.clone();
            fewer.retain(|other| other != one);
            if let Some(outcome) = refusing(&fewer) {
                (least, came) = (fewer, outcome);
            }
        }
        let first = least.first().copied();
        refused.push((least, came));
        // Others may be refused without one of these.
        let Some(first) = first else { break };
        on.retain(|one| *one != first);
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_smallest_refused_part_is_found() {
        let refusing = |on: &[u8]| {
            let has = |all: &[u8]| all.iter().all(|one| on.contains(one));
            (has(&[1, 4]) || has(&[2, 3, 5]) || has(&[6])).then_some(())
        };
        let mut parts: Vec<Vec<u8>> = smallest(&[1, 2, 3, 4, 5, 6, 7], refusing)
            .into_iter()
            .map(|(least, ())| least)
            .collect();
        parts.sort();
        assert_eq!(parts, [vec![1, 4], vec![2, 3, 5], vec![6]]);
        assert_eq!(smallest(&[1, 2, 3], refusing), []);
    }
}
