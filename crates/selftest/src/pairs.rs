//! Two at once: pairs of freedoms, which nothing may accuse, and pairs of a soft defect (of shape) and
//! a deep one (of behaviour), which must both be reported.
//!
//! Pairs are drawn by a seed. What is known to be owed is left out.

use super::mangle::{Mangler, Rewrite};
use super::{Clean, Recorded, Selftest, Trial};
use conformant_base::json;
use conformant_engine::plan::{self, Planned};
use conformant_engine::sessions::{Mangle, Offline};
use conformant_reference::{Fault, Switch, Variant};
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
    /// Beside them, those of which one takes away what the other shows in: its story, which ends
    /// before it, its field, or what its thing is known by.
    pub stopped: Vec<String>,
}

impl Pairs {
    /// The share of pairs of defects of which both were reported, in percent: of those that meet.
    pub fn reported_percent(&self) -> f64 {
        share(self.defects - self.hidden.len(), self.defects)
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
             pairs of defects    {:>5} tried, both reported in {:.1} %\n\
             beside them         {:>5} of which one takes away the other's story, field or thing\n",
            self.variants,
            self.accused.len(),
            self.defects,
            self.reported_percent(),
            self.stopped.len()
        );
        for line in &self.accused {
            let _ = writeln!(text, "ACCUSED {line}");
        }
        for line in &self.hidden {
            let _ = writeln!(text, "HIDDEN {line}");
        }
        for line in &self.stopped {
            let _ = writeln!(text, "STOPPED {line}");
        }
        text
    }

    fn add(&mut self, tried: Tried) {
        match tried {
            Tried::Variants(accused) => {
                self.variants += 1;
                self.accused.extend(accused);
            }
            Tried::Defects(Together::Nothing) => {}
            Tried::Defects(Together::Both) => self.defects += 1,
            Tried::Defects(Together::Hidden(line)) => {
                self.defects += 1;
                self.hidden.push(line);
            }
            Tried::Defects(Together::Stopped(line)) => self.stopped.push(line),
        }
    }
}

/// What came of one pair of either sort.
enum Tried {
    /// Accused, as the line says, or of nothing.
    Variants(Option<String>),
    Defects(Together),
}

fn share(of: usize, all: usize) -> f64 {
    let number = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    if all == 0 {
        return 100.0;
    }
    100.0 * number(of) / number(all)
}

/// What came of a pair of defects.
enum Together {
    /// No soft defect was found beside the deep one.
    Nothing,
    /// Both are reported.
    Both,
    /// One is not, as the line says.
    Hidden(String),
    /// One is not, for the other takes away what would show it.
    Stopped(String),
}

/// What one scenario told.
struct Told {
    /// Rules that found something.
    found: BTreeSet<String>,
    /// Where each of the findings stands.
    places: Vec<(String, String)>,
    /// The story could not be played to its end.
    stopped: bool,
}

impl Told {
    /// Rules that found something here and nothing there.
    fn beyond<'t>(&'t self, other: &'t Self) -> impl Iterator<Item = &'t String> {
        self.found.difference(&other.found)
    }
}

/// One of two defects, over several scenarios.
#[derive(Default)]
struct Trace {
    /// Told where it is alone.
    alone: bool,
    /// Where it is told alone, first, in a story that the other does not end, and by which rules.
    within_reach: Option<String>,
    /// The places of these findings in their documents.
    places: Vec<String>,
    /// Told beside the other, by a rule that the other alone does not break there.
    beside: bool,
}

impl Trace {
    fn add(&mut self, place: &str, this: &Told, other: &Told, both: &Told) {
        let rules: Vec<&str> = this.beyond(other).map(String::as_str).collect();
        self.alone |= !rules.is_empty();
        if self.within_reach.is_none() && !rules.is_empty() && !other.stopped {
            self.within_reach = Some(format!("{place}, {}", rules.join(", ")));
            let told = this
                .places
                .iter()
                .filter(|(rule, _)| rules.contains(&rule.as_str()));
            self.places = told.map(|(_, at)| at.clone()).collect();
        }
        self.beside |= this.beyond(other).any(|rule| both.found.contains(rule));
    }
}

impl Selftest<'_> {
    /// Tries so many pairs of either sort on all jobs; what is told is how many of both were tried.
    pub fn pairs(
        &self,
        count: usize,
        seed: u64,
        recorded: &Recorded,
        tell: &(dyn Fn(usize) + Sync),
    ) -> Pairs {
        let planned = plan::all(self.rulebook);
        let clean = self.clean(&planned);
        let variants: Vec<Variant> = Variant::ALL
            .iter()
            .filter(|v| !recorded.not_yet.names_variant(v.id()))
            .copied()
            .collect();
        let faults: Vec<Fault> = Fault::ALL
            .iter()
            .filter(|f| !recorded.not_yet.names_fault(f.id()))
            .copied()
            .collect();
        let soft: Vec<Rewrite> = self.trials(&clean).into_iter().filter_map(soft).collect();
        let try_out = |turn: usize| {
            let mut drawn = Drawn::for_turn(seed, turn);
            if turn.is_multiple_of(2) {
                let pair = [*drawn.of(&variants), *drawn.of(&variants)];
                Tried::Variants(self.accusation(pair, &planned, &clean, &mut drawn))
            } else {
                let fault = *drawn.of(&faults);
                Tried::Defects(self.two_defects(fault, &soft, (&planned, &clean), &mut drawn))
            }
        };
        let mut pairs = Pairs::default();
        for tried in self.parallel_map(2 * count, try_out, tell) {
            pairs.add(tried);
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
        let asks = |c: &Clean, v: &Variant| c.consulted.contains(&Switch::Variant(*v));
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

    /// Whether a run reports a deep defect and a soft one that it meets.
    fn two_defects(
        &self,
        fault: Fault,
        soft: &[Rewrite],
        (planned, clean): (&[Planned<'_>], &[Clean]),
        drawn: &mut Drawn,
    ) -> Together {
        let deep = self.sessions(BTreeSet::from([fault]), BTreeSet::new());
        let asks = |c: &&Clean| c.consulted.contains(&Switch::Fault(fault));
        let caught = clean
            .iter()
            .filter(asks)
            .find(|c| !self.told(c, planned, &deep).found.is_empty());
        let Some(place) = caught else {
            return Together::Nothing;
        };
        for _ in 0..DRAWS_PER_PAIR {
            let rewrite = drawn.of(soft);
            let shows = |c: &&Clean| rewrite.touches(&c.operations, &c.kinds, &c.scenario);
            if !shows(&place) {
                continue;
            }
            // Where they meet, then where either is alone: a run plays them all.
            let met = clean.iter().filter(|c| asks(c) && shows(c));
            let apart = clean.iter().filter(|c| asks(c) != shows(c));
            let over: Vec<&Clean> = std::iter::once(place).chain(met).chain(apart).collect();
            match self.both(fault, rewrite, planned, &over) {
                Together::Nothing => {}
                told @ (Together::Both | Together::Hidden(_) | Together::Stopped(_)) => {
                    return told;
                }
            }
        }
        Together::Nothing
    }

    /// Plays scenarios until both defects are told, each by a finding that the other alone does not
    /// bring there.
    fn both(
        &self,
        fault: Fault,
        rewrite: &Rewrite,
        planned: &[Planned<'_>],
        over: &[&Clean],
    ) -> Together {
        let mangle = Mangler::new(self.rulebook, rewrite, &self.targets);
        let faults = BTreeSet::from([fault]);
        let deep = self.sessions(faults.clone(), BTreeSet::new());
        let soft = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .mangled(&mangle as &dyn Mangle);
        let both = self
            .sessions(faults, BTreeSet::new())
            .mangled(&mangle as &dyn Mangle);
        let (mut of_deep, mut of_soft) = (Trace::default(), Trace::default());
        for place in over {
            let [by_deep, by_soft, by_both] =
                [&deep, &soft, &both].map(|sessions| self.told(place, planned, sessions));
            of_deep.add(&place.scenario, &by_deep, &by_soft, &by_both);
            of_soft.add(&place.scenario, &by_soft, &by_deep, &by_both);
            if of_deep.beside && of_soft.beside {
                return Together::Both;
            }
        }
        // A pair that the same rules catch cannot be told apart by them.
        if !of_deep.alone || !of_soft.alone {
            return Together::Nothing;
        }
        let pair = format!("{} + {}", fault.id(), rewrite.id());
        let lost = [("the deep one", &of_deep), ("the soft one", &of_soft)];
        let mut lost = lost.into_iter().filter(|(_, trace)| !trace.beside);
        let told = lost.find_map(|(which, trace)| {
            let place = trace.within_reach.as_ref()?;
            let stands = |at: &String| !self.takes_away(rewrite, at, &of_deep.places);
            let is_left = trace.places.iter().any(stands);
            is_left.then(|| format!("{pair}: {which}, alone told in {place}"))
        });
        told.map_or(Together::Stopped(pair), Together::Hidden)
    }

    /// Whether a soft defect takes away the place of a finding, by its field or by what the thing is
    /// known by; or a deep one the field of the soft one.
    fn takes_away(&self, rewrite: &Rewrite, finding: &str, deep: &[String]) -> bool {
        let Rewrite::Representation { kind, pointer, .. } = rewrite else {
            return false;
        };
        let is_at = |outer: &str, inner: &str| !outer.is_empty() && json::overlap(outer, inner);
        // Items stand below the array of their page.
        let item = finding.splitn(4, '/').nth(3).map(|rest| format!("/{rest}"));
        let mut stands = std::iter::once(finding).chain(item.as_deref());
        let known = self.rulebook.kinds.get(kind).map(|kind| &kind.about);
        let identity = known.and_then(|about| about.identity.as_ref());
        let mut keys = identity.into_iter().flat_map(|identity| &identity.key);
        keys.any(|key| json::within(pointer, key))
            || stands.any(|at| is_at(pointer, at))
            || deep.iter().any(|at| is_at(at, pointer))
    }

    fn told(&self, clean: &Clean, planned: &[Planned<'_>], sessions: &Offline<'_>) -> Told {
        let concluded = self.play(clean, planned, sessions);
        let findings = concluded.judgement.findings.into_iter();
        let places: Vec<_> = findings.map(|f| (f.rule, f.pointer)).collect();
        Told {
            found: places.iter().map(|(rule, _)| rule.clone()).collect(),
            places,
            stopped: concluded.stopped.is_some(),
        }
    }
}

/// The rewriting of a representation, which leaves behaviour as it is.
fn soft(trial: Trial) -> Option<Rewrite> {
    match trial {
        Trial::Rewrite(rewrite @ Rewrite::Representation { .. }) => Some(rewrite),
        Trial::Rewrite(_) | Trial::Payload { .. } | Trial::Written { .. } => None,
    }
}

/// What chance gives, the same for the same seed.
struct Drawn(ChaCha8Rng);

impl Drawn {
    /// Each turn draws for itself, so that it draws the same beside others.
    fn for_turn(seed: u64, turn: usize) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        chance.set_stream(turn as u64);
        Self(chance)
    }

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
            hidden: vec!["f + g: the soft one".to_owned(); hidden],
            stopped: vec!["f + h: the deep one".to_owned()],
        };
        assert!(of(0, 0).holds() && of(0, 1).holds());
        assert!(!of(0, 2).holds() && !of(1, 0).holds());
        assert!(of(1, 1).render().contains("both reported in 95.0 %"));
        assert!(Pairs::default().holds());
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed, turn| {
            let mut drawn = Drawn::for_turn(seed, turn);
            [drawn.below(1000), drawn.below(1000), drawn.below(1000)]
        };
        assert_eq!(draw(1, 7), draw(1, 7));
        assert_ne!(draw(1, 7), draw(2, 7));
        assert_ne!(draw(1, 7), draw(1, 8));
    }
}
