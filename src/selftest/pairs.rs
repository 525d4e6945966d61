//! Two at once: pairs of freedoms, which nothing may accuse, and pairs of a soft defect (of shape) and
//! a deep one (of behaviour), which must both be reported.
//!
//! Pairs are drawn by a seed. What is known to be owed is left out.

use super::mangle::{Mangler, Rewrite};
use super::{Clean, Recorded, Selftest, Trial};
use crate::engine::plan::{self, Planned};
use crate::engine::sessions::{Mangle, Offline};
use crate::reference::{Fault, Variant};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Scenarios that a pair of variants is tried on.
const SCENARIOS_PER_PAIR: usize = 25;
/// Soft defects that are tried beside a deep one until a pair is found.
const DRAWS_PER_PAIR: usize = 40;

/// What came of a number of pairs.
#[derive(Debug, Default)]
pub struct Pairs {
    /// Pairs of variants that were tried.
    pub variants: usize,
    /// Those that were accused, and by what.
    pub accused: Vec<String>,
    /// Pairs of defects that were tried.
    pub defects: usize,
    /// Those of which one was not reported beside the other.
    pub hidden: Vec<String>,
}

impl Pairs {
    /// The share of pairs of defects of which both were reported, in percent.
    pub fn reported_percent(&self) -> f64 {
        if self.defects == 0 {
            return 100.0;
        }
        let reported = self.defects - self.hidden.len();
        100.0 * f64::from(u32::try_from(reported).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(self.defects).unwrap_or(u32::MAX))
    }

    /// True when no pair of variants was accused, and nineteen of twenty pairs of defects were
    /// reported as two.
    pub fn holds(&self) -> bool {
        self.accused.is_empty() && self.reported_percent() >= 95.0
    }

    /// Figures, then each pair that is not as it should be.
    pub fn render(&self) -> String {
        let mut text = format!(
            "pairs of variants   {:>5} tried, {} accused\n\
             pairs of defects    {:>5} tried, both reported in {:.1} %\n",
            self.variants,
            self.accused.len(),
            self.defects,
            self.reported_percent()
        );
        for line in &self.accused {
            let _ = writeln!(text, "ACCUSED {line}");
        }
        for line in &self.hidden {
            let _ = writeln!(text, "HIDDEN {line}");
        }
        text
    }
}

/// What came of a pair of defects.
enum Together {
    /// No soft defect was found beside the deep one.
    Nothing,
    /// Both are reported.
    Both,
    /// One is not, as the line says.
    Hidden(String),
}

/// Rules that found something in one scenario.
type Found = BTreeSet<String>;

impl Selftest<'_> {
    /// Tries so many pairs of either sort.
    pub fn pairs(&self, count: usize, seed: u64, recorded: &Recorded) -> Pairs {
        let planned = plan::all(self.rulebook);
        let (clean, _) = self.clean(&planned);
        let mut drawn = Drawn(ChaCha8Rng::seed_from_u64(seed));
        let mut pairs = Pairs::default();
        let variants: Vec<Variant> = Variant::ALL
            .iter()
            .filter(|v| !recorded.not_yet.names_variant(v.id()))
            .copied()
            .collect();
        for _ in 0..count {
            let pair = [*drawn.of(&variants), *drawn.of(&variants)];
            pairs.variants += 1;
            pairs
                .accused
                .extend(self.accusation(pair, &planned, &clean, &mut drawn));
        }
        let faults: Vec<Fault> = Fault::ALL
            .iter()
            .filter(|f| !recorded.not_yet.names_fault(f.id()))
            .copied()
            .collect();
        let soft: Vec<Rewrite> = self.trials(&clean).into_iter().filter_map(soft).collect();
        for _ in 0..count {
            let fault = *drawn.of(&faults);
            match self.two_defects(fault, &soft, (&planned, &clean), &mut drawn) {
                Together::Nothing => {}
                Together::Both => pairs.defects += 1,
                Together::Hidden(line) => {
                    pairs.defects += 1;
                    pairs.hidden.push(line);
                }
            }
        }
        pairs
    }

    /// What a pair of variants is accused of.
    fn accusation(
        &self,
        pair: [Variant; 2],
        planned: &[Planned<'_>],
        clean: &[Clean],
        drawn: &mut Drawn,
    ) -> Option<String> {
        let sessions = self.sessions(BTreeSet::new(), BTreeSet::from(pair));
        let asks = |c: &Clean, v: &Variant| c.consulted.variants.contains(v);
        let mut touched: Vec<&Clean> = clean
            .iter()
            .filter(|c| pair.iter().all(|v| asks(c, v)))
            .collect();
        if touched.is_empty() {
            let any = |c: &&Clean| pair.iter().any(|v| asks(c, v));
            touched = clean.iter().filter(any).collect();
        }
        while touched.len() > SCENARIOS_PER_PAIR {
            touched.swap_remove(drawn.below(touched.len()));
        }
        let row = self.over(touched.into_iter(), planned, &sessions);
        let by: Vec<String> = row.failed_by.into_iter().chain(row.errors).collect();
        let [one, other] = pair.map(Variant::id);
        (!by.is_empty()).then(|| format!("{one} + {other}: {}", by.join(", ")))
    }

    /// Whether a deep defect and a soft one that it meets hide one another.
    fn two_defects(
        &self,
        fault: Fault,
        soft: &[Rewrite],
        (planned, clean): (&[Planned<'_>], &[Clean]),
        drawn: &mut Drawn,
    ) -> Together {
        let faults = BTreeSet::from([fault]);
        let deep = self.sessions(faults.clone(), BTreeSet::new());
        let touched = clean.iter().filter(|c| c.consulted.faults.contains(&fault));
        let caught = touched
            .map(|c| (c, self.found(c, planned, &deep)))
            .find(|(_, found)| !found.is_empty());
        let Some((place, by_deep)) = caught else {
            return Together::Nothing;
        };
        for _ in 0..DRAWS_PER_PAIR {
            let rewrite = drawn.of(soft);
            if !rewrite.touches(&place.operations, &place.kinds, &place.scenario) {
                continue;
            }
            let mangle = Mangler::new(self.rulebook, rewrite, &self.targets);
            let alone = self
                .sessions(BTreeSet::new(), BTreeSet::new())
                .mangled(&mangle as &dyn Mangle);
            let by_soft = self.found(place, planned, &alone);
            // A pair that one rule catches cannot be told apart by it.
            if by_soft.is_empty() || !by_soft.is_disjoint(&by_deep) {
                continue;
            }
            let both = self
                .sessions(faults, BTreeSet::new())
                .mangled(&mangle as &dyn Mangle);
            let found = self.found(place, planned, &both);
            let lost = match (found.is_disjoint(&by_deep), found.is_disjoint(&by_soft)) {
                (false, false) => return Together::Both,
                (true, _) => "the deep one",
                (false, true) => "the soft one",
            };
            return Together::Hidden(format!(
                "{} + {} in {}: {lost}",
                fault.id(),
                rewrite.id(),
                place.scenario
            ));
        }
        Together::Nothing
    }

    fn found(&self, clean: &Clean, planned: &[Planned<'_>], sessions: &Offline<'_>) -> Found {
        self.over(std::iter::once(clean), planned, sessions)
            .killed_by
    }
}

/// The rewriting of a representation, which leaves behaviour as it is.
fn soft(trial: Trial) -> Option<Rewrite> {
    match trial {
        Trial::Rewrite(rewrite @ Rewrite::Representation { .. }) => Some(rewrite),
        Trial::Rewrite(_)
        | Trial::Variant(_)
        | Trial::Fault(_)
        | Trial::Payload { .. }
        | Trial::Written { .. } => None,
    }
}

/// What chance gives, the same for the same seed.
struct Drawn(ChaCha8Rng);

impl Drawn {
    fn below(&mut self, count: usize) -> usize {
        let draw = usize::try_from(self.0.next_u64() >> 1).unwrap_or_default();
        draw % count.max(1)
    }

    fn of<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_of_twenty_are_enough_and_no_accusation_is() {
        let of = |accused: usize, hidden: usize| Pairs {
            variants: 9,
            accused: vec!["a + b: r".to_owned(); accused],
            defects: 20,
            hidden: vec!["f + g in s: the soft one".to_owned(); hidden],
        };
        assert!(of(0, 0).holds() && of(0, 1).holds());
        assert!(!of(0, 2).holds() && !of(1, 0).holds());
        assert!(of(1, 1).render().contains("both reported in 95.0 %"));
        assert!(Pairs::default().holds());
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed| {
            let mut drawn = Drawn(ChaCha8Rng::seed_from_u64(seed));
            [drawn.below(1000), drawn.below(1000), drawn.below(1000)]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
