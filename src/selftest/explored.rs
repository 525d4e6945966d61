//! What exploration finds by itself, without any story: which faults, by which sequence; and whether it accuses a variant.
//!
//! The list of what is found stands in a file and may only grow.

use super::{NotYet, Selftest};
use crate::engine::derive::deck::Deck;
use crate::engine::sessions::{Consulted, Offline};
use crate::engine::{Planned, conclude};
use crate::explore::numbered;
use crate::reference::{Fault, Variant};
use crate::verdict::Level;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Sequences of one fault or variant: those that ask about it, and about little else.
const PER_SWITCH_MAX: usize = 1_000;
/// Seed of the sample, and of whatever else the worlds draw.
const SEED: u64 = 0;

/// What exploration finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExploredBy {
    /// How many sequences were drawn.
    pub sequences: u64,
    /// How many percent of all named faults were found.
    pub percent: usize,
    /// How many percent of a small sample, which a test tries each time.
    pub sample_percent: usize,
    /// The faults.
    pub found: BTreeSet<String>,
}

/// The sample: sequences, and every so many faults.
const SAMPLE: (u64, usize) = (60, 16);

/// What came of exploring each fault and variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// What was found.
    pub by: ExploredBy,
    /// Variants that were accused, each with the sequence and the rule.
    pub accused: Vec<String>,
    /// What the clean reference was accused of.
    pub unclean: Vec<String>,
}

impl ExploredBy {
    /// The list as the file that keeps it.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# What exploration finds by itself, without any story. The share of all named faults may only rise;\n\
             # `BLESS=1 conformant selftest --explore {}` writes it anew.\n\
             sequences: {}\npercent: {}\nsample_percent: {}\nfound:\n",
            self.sequences, self.sequences, self.percent, self.sample_percent,
        );
        for fault in &self.found {
            let _ = writeln!(text, "  - {fault}");
        }
        text
    }
}

impl Explored {
    /// Whether nobody is accused without reason and no smaller share is found than is recorded.
    pub fn holds(&self, recorded: &ExploredBy) -> bool {
        let is_fair = self.accused.is_empty() && self.unclean.is_empty();
        is_fair && self.by.percent >= recorded.percent
    }

    /// Figures, then each accusation.
    pub fn render(&self, recorded: &ExploredBy) -> String {
        let mut text = format!(
            "found by exploration {} of {} faults ({} %), recorded {} %\nvariants accused     {}\n",
            self.by.found.len(),
            Fault::ALL.len(),
            self.by.percent,
            recorded.percent,
            self.accused.len(),
        );
        let missed = Fault::ALL.iter().map(|fault| fault.id());
        let missed: Vec<&str> = missed.filter(|id| !self.by.found.contains(*id)).collect();
        let _ = writeln!(text, "not found           {}", missed.join(" "));
        for line in self.unclean.iter().chain(&self.accused) {
            let _ = writeln!(text, "ACCUSED {line}");
        }
        text
    }
}

impl Selftest<'_> {
    /// Draws so many sequences, and plays on each fault and variant those that ask about it.
    pub fn explored(
        &self,
        (sequences, seed): (u64, u64),
        not_yet: &NotYet,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Explored {
        let switches: Vec<Switch> = Switch::all()
            .filter(|s| self.is_wanted(&s.name()))
            .filter(|s| !matches!(s, Switch::Variant(v) if not_yet.names_variant(v.id())))
            .collect();
        let mut explored = self.explored_with((sequences, seed), &switches, progress);
        explored.by.percent = 100 * explored.by.found.len() / Fault::ALL.len();
        explored.by.sample_percent = self.explored_sample();
        explored
    }

    /// The share of a fixed sample of faults that a few sequences find, in percent: it takes seconds.
    pub fn explored_sample(&self) -> usize {
        let (sequences, every) = SAMPLE;
        let faults = Fault::ALL
            .iter()
            .step_by(every)
            .map(|fault| Switch::Fault(*fault));
        let switches: Vec<Switch> = faults.collect();
        let explored = self.explored_with((sequences, SEED), &switches, &|_, _| {});
        100 * explored.by.found.len() / switches.len()
    }

    fn explored_with(
        &self,
        (sequences, seed): (u64, u64),
        switches: &[Switch],
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Explored {
        let services = self.rulebook.services.values().collect();
        let deck = Deck::shuffled(self.rulebook, services, seed, false);
        let consulted = Mutex::new(BTreeMap::new());
        let mut explored = Explored::default();
        let clean = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .consulting(&consulted);
        let mut asked: Vec<Consulted> = Vec::new();
        for number in 0..sequences {
            let found = self.sequence(&deck, number, &clean, Switch::None);
            explored
                .unclean
                .extend(found.map(|rule| format!("clean reference: sequence {number}: {rule}")));
            let mut all = consulted.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(
                std::mem::take(&mut *all)
                    .into_values()
                    .next()
                    .unwrap_or_default(),
            );
        }
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let found = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while let Some(switch) = switches.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let first = self.first_found(&deck, *switch, &asked);
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.extend(first.map(|(number, rule)| (*switch, number, rule)));
                        progress(done.fetch_add(1, Ordering::Relaxed) + 1, switches.len());
                    }
                });
            }
        });
        explored.by.sequences = sequences;
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(switch, ..)| switch.name());
        for (switch, number, rule) in found {
            match switch {
                Switch::None => {}
                Switch::Fault(fault) => {
                    explored.by.found.insert(fault.id().to_owned());
                }
                Switch::Variant(variant) => {
                    let line = format!("variant {}: sequence {number}: {rule}", variant.id());
                    explored.accused.push(line);
                }
            }
        }
        explored
    }

    fn first_found(
        &self,
        deck: &Deck<'_>,
        switch: Switch,
        asked: &[Consulted],
    ) -> Option<(u64, String)> {
        let sessions = match switch {
            Switch::None => self.sessions(BTreeSet::new(), BTreeSet::new()),
            Switch::Fault(fault) => self.sessions(BTreeSet::from([fault]), BTreeSet::new()),
            Switch::Variant(variant) => self.sessions(BTreeSet::new(), BTreeSet::from([variant])),
        };
        let asks = |consulted: &Consulted| match switch {
            Switch::None => true,
            Switch::Fault(fault) => consulted.faults.contains(&fault),
            Switch::Variant(variant) => consulted.variants.contains(&variant),
        };
        let numbers = (0_u64..)
            .zip(asked)
            .filter(|(_, consulted)| asks(consulted));
        let mut numbers: Vec<(u64, &Consulted)> = numbers.collect();
        numbers.sort_by_key(|(number, asked)| (asked.faults.len(), *number));
        let mut numbers = numbers
            .into_iter()
            .map(|(number, _)| number)
            .take(PER_SWITCH_MAX);
        numbers.find_map(|number| Some((number, self.sequence(deck, number, &sessions, switch)?)))
    }

    /// The first rule that a sequence breaks; whoever conforms is accused by must-rules alone.
    fn sequence(
        &self,
        deck: &Deck<'_>,
        number: u64,
        sessions: &Offline<'_>,
        switch: Switch,
    ) -> Option<String> {
        let (service, steps) = deck.draw(number)?;
        let planned = Planned {
            service,
            scenario: numbered(service, number, steps),
        };
        let calm = AtomicBool::new(false);
        let concluded = conclude(self.rulebook, self.schemas, &planned, sessions, SEED, &calm);
        let counts = |level: Level| matches!(switch, Switch::Fault(_)) || level == Level::Must;
        let mut findings = concluded.judgement.findings.into_iter();
        let finding = findings.find(|finding| counts(finding.level))?;
        Some(format!(
            "{} ({}): {}",
            finding.rule, finding.operation, finding.message
        ))
    }
}

#[derive(Clone, Copy, Debug)]
enum Switch {
    None,
    Fault(Fault),
    Variant(Variant),
}

impl Switch {
    fn all() -> impl Iterator<Item = Self> {
        let faults = Fault::ALL.iter().map(|fault| Self::Fault(*fault));
        faults.chain(Variant::ALL.iter().map(|variant| Self::Variant(*variant)))
    }

    fn name(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Fault(fault) => format!("fault {}", fault.id()),
            Self::Variant(variant) => format!("variant {}", variant.id()),
        }
    }
}
