//! Faults that exploration finds without scenarios, and allowed variations that it flags.
//!
//! A file records the faults; their number must not fall.

use super::{KnownGaps, Selftest, name};
use conformant_base::parallel::recovered;
use conformant_engine::derive::deck::Deck;
use conformant_engine::sessions::{Offline, ReplayLog};
use conformant_engine::{Concluded, Planned, conclude};
use conformant_explore::numbered;
use conformant_record::Level;
use conformant_reference::{Fault, Switch};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Maximum number of sequences for a fault or variation: those that depend on it and on little else.
const PER_SWITCH_MAX: usize = 1_000;
/// Seed of the sample and of its reference instances.
const SEED: u64 = 0;

/// Record of the faults that exploration finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExploredBy {
    /// Number of sequences.
    pub sequences: u64,
    /// Percentage of all named faults that were found.
    pub percent: usize,
    /// Percentage of a small sample, which a test checks.
    pub sample_percent: usize,
    /// The found faults.
    pub found: BTreeSet<String>,
}

/// The sample: number of sequences, and every nth fault.
const SAMPLE: (u64, usize) = (60, 16);

/// Result of exploring all faults and variations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    pub by: ExploredBy,
    /// Flagged variations, each with sequence and rule.
    pub flagged: Vec<String>,
    /// Findings on the clean reference.
    pub unclean: Vec<String>,
}

impl ExploredBy {
    /// The content of the record file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# Faults that exploration finds without scenarios. The percentage of all named faults must not fall.\n\
             # `BLESS=1 conformant selftest --explore {}` writes this file.\n\
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
    /// Whether nothing valid is flagged and the percentage is not below the recorded one.
    pub fn holds(&self, recorded: &ExploredBy) -> bool {
        let is_fair = self.flagged.is_empty() && self.unclean.is_empty();
        is_fair && self.by.percent >= recorded.percent
    }

    /// Counts, then each false positive.
    pub fn render(&self, recorded: &ExploredBy) -> String {
        let mut text = format!(
            "found by exploration {} of {} faults ({} %), recorded {} %\nvariations flagged   {}\n",
            self.by.found.len(),
            Fault::ALL.len(),
            self.by.percent,
            recorded.percent,
            self.flagged.len(),
        );
        let missed = Fault::ALL.iter().map(|fault| fault.id());
        let missed: Vec<&str> = missed.filter(|id| !self.by.found.contains(*id)).collect();
        let _ = writeln!(text, "not found           {}", missed.join(" "));
        for line in self.unclean.iter().chain(&self.flagged) {
            let _ = writeln!(text, "FLAGGED {line}");
        }
        text
    }
}

/// A sequence on the clean reference.
struct Sequence {
    number: u64,
    track: Arc<ReplayLog>,
    consulted: BTreeSet<Switch>,
    /// Number of faults it depends on.
    faults: usize,
    /// Its observations, with and without fault.
    sighting: [Option<String>; 2],
}

impl Selftest<'_> {
    /// Draws sequences, and runs those that depend on a fault or variation with it.
    pub fn explored(
        &self,
        (sequences, seed): (u64, u64),
        known_gaps: &KnownGaps,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Explored {
        let switches: Vec<Switch> = Switch::all()
            .filter(|s| self.is_wanted(&name(*s)))
            .filter(|s| !matches!(s, Switch::Variant(v) if known_gaps.names_variant(v.id())))
            .collect();
        let mut explored = self.explored_with((sequences, seed), &switches, progress);
        explored.by.percent = 100 * explored.by.found.len() / Fault::ALL.len();
        explored.by.sample_percent = self.explored_sample();
        explored
    }

    /// Percentage of a fixed sample of faults that a few sequences find: takes seconds.
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
        let count = usize::try_from(sequences).unwrap_or(usize::MAX);
        let clean = self.parallel_map(
            count,
            |number| self.clean_sequence(&deck, number as u64),
            &|_| {},
        );
        let mut explored = Explored::default();
        for sequence in &clean {
            let (number, found) = (sequence.number, sequence.sighting[0].as_ref());
            let line = found.map(|rule| format!("clean reference: sequence {number}: {rule}"));
            explored.unclean.extend(line);
        }
        let first = |index: usize| self.first_found(&deck, switches[index], &clean);
        let all = self.parallel_map(switches.len(), first, &|done| {
            progress(done, switches.len());
        });
        explored.by.sequences = sequences;
        let mut found: Vec<_> = switches
            .iter()
            .zip(all)
            .filter_map(|(switch, found)| Some((*switch, found?)))
            .collect();
        found.sort_by_key(|(switch, _)| name(*switch));
        for (switch, (number, rule)) in found {
            match switch {
                Switch::Fault(fault) => {
                    explored.by.found.insert(fault.id().to_owned());
                }
                Switch::Variant(variant) => {
                    let line = format!("variant {}: sequence {number}: {rule}", variant.id());
                    explored.flagged.push(line);
                }
            }
        }
        explored
    }

    fn clean_sequence(&self, deck: &Deck<'_>, number: u64) -> Sequence {
        let tracks = Mutex::new(BTreeMap::new());
        let sessions = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .with_replay_logs(&tracks);
        let concluded = self.sequence(deck, number, &sessions);
        let sighting = [true, false].map(|conforms| first_sighting(concluded.as_ref(), conforms));
        let tracks = recovered(tracks.into_inner());
        let track = Arc::new(tracks.into_values().next().unwrap_or_default());
        let consulted: BTreeSet<Switch> = track.consulted().collect();
        let is_fault = |switch: &&Switch| matches!(switch, Switch::Fault(_));
        Sequence {
            number,
            track,
            faults: consulted.iter().filter(is_fault).count(),
            consulted,
            sighting,
        }
    }

    fn first_found(
        &self,
        deck: &Deck<'_>,
        switch: Switch,
        clean: &[Sequence],
    ) -> Option<(u64, String)> {
        let (faults, variants) = switch.alone();
        let sessions = self.sessions(faults, variants);
        let conforms = matches!(switch, Switch::Variant(_));
        let asking = clean.iter().filter(|s| s.consulted.contains(&switch));
        let mut asking: Vec<&Sequence> = asking.collect();
        asking.sort_by_key(|sequence| (sequence.faults, sequence.number));
        asking
            .into_iter()
            .take(PER_SWITCH_MAX)
            .find_map(|sequence| {
                let number = sequence.number;
                let sighting = if sequence.track.begin(Some(switch)).is_unchanged() {
                    sequence.sighting[usize::from(!conforms)].clone()
                } else {
                    first_sighting(self.sequence(deck, number, &sessions).as_ref(), conforms)
                };
                Some((number, sighting?))
            })
    }

    fn sequence(&self, deck: &Deck<'_>, number: u64, sessions: &Offline<'_>) -> Option<Concluded> {
        let (service, steps) = deck.draw(number)?;
        let planned = Planned {
            service,
            scenario: numbered(service, number, steps),
        };
        let calm = AtomicBool::new(false);
        let concluded = conclude(self.rulebook, self.schemas, &planned, sessions, SEED, &calm);
        Some(concluded)
    }
}

/// The first rule that a sequence breaks; for valid implementations, the first must-rule.
fn first_sighting(concluded: Option<&Concluded>, conforms: bool) -> Option<String> {
    let mut findings = concluded?.judgment.findings.iter();
    let finding = findings.find(|finding| !conforms || finding.level == Level::Must)?;
    Some(format!(
        "{} ({}): {}",
        finding.rule, finding.operation, finding.message
    ))
}
