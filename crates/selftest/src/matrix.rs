//! Kill matrix: the rules that catch each fault, and the recorded ones.

use super::known_gaps::{GapState, KnownGaps};
use conformant_record::{Level, Proof};
use conformant_rulebook::{Origin, Rule, Rulebook};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// All rows of a self-test.
#[derive(Debug, Default)]
pub struct Matrix {
    /// By name: `fault flow/…`, `variant …`, `generated …`.
    pub rows: BTreeMap<String, Row>,
    /// Findings and errors of the clean reference, and contradictions in the comparison of versions.
    pub unclean: Vec<String>,
    /// Rules that no fault breaks.
    pub dead: Vec<String>,
    /// Rules that the clean reference does not exercise.
    pub idle: Vec<String>,
    /// Result of mutation testing on the clean reference; only for a complete self-test.
    pub proof: Option<Proof>,
}

/// Scenarios with a finding that a report lists for each fault.
const FOUND_IN_MAX: usize = 16;

/// Result of one fault or variation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// True for an allowed variation, which must not be flagged.
    pub is_variant: bool,
    /// Number of scenarios.
    pub scenarios: usize,
    /// Number of scenarios in which responses or callbacks differed from those of the clean reference.
    #[serde(skip)]
    pub differing: usize,
    /// The first scenarios by id that have a finding.
    pub found_in: BTreeSet<String>,
    /// Rules with a finding, of any level.
    pub killed_by: BTreeSet<String>,
    /// Must-rules with a finding.
    pub failed_by: BTreeSet<String>,
    /// Internal errors.
    pub errors: Vec<String>,
}

impl Row {
    /// Adds the result of another scenario.
    pub(super) fn add(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.differing += other.differing;
        self.add_found_in(other.found_in);
        self.killed_by.extend(other.killed_by);
        self.failed_by.extend(other.failed_by);
        self.errors.extend(other.errors);
    }

    /// Adds scenarios with a finding, up to a limit.
    pub(super) fn add_found_in(&mut self, scenarios: impl IntoIterator<Item = String>) {
        self.found_in.extend(scenarios);
        while self.found_in.len() > FOUND_IN_MAX {
            self.found_in.pop_last();
        }
    }
}

/// State of a row relative to the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Caught by exactly the recorded rules; for a variation: not flagged.
    Killed,
    /// Caught by further or other rules than recorded; for a variation: flagged.
    OverKilled,
    /// Not caught, or flagged, and listed as a known gap.
    KnownGaps,
    /// Listed as a known gap without need.
    StaleEntry,
    /// Not caught; for a variation: no scenario shows it.
    Silent,
    /// Internal error.
    Error,
}

impl State {
    /// True if nothing has to be done, or the gap is known.
    pub fn is_expected(self) -> bool {
        matches!(self, Self::Killed | Self::KnownGaps)
    }

    /// Name in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::OverKilled => "over-killed",
            Self::KnownGaps => "known gap",
            Self::StaleEntry => "stale entry",
            Self::Silent => "silent",
            Self::Error => "error",
        }
    }
}

/// Recorded rules by row. A generated row that is not recorded is caught by exactly the rule in its name.
pub type CaughtBy = BTreeMap<String, BTreeSet<String>>;

/// Records to compare a self-test with.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Kill matrix: `specs/kill-matrix.yaml`.
    pub caught_by: CaughtBy,
    /// Known gaps: `specs/not-yet-caught.yaml`.
    pub known_gaps: KnownGaps,
}

impl Matrix {
    /// Finds the rules that no fault has killed. A variation may kill a rule of level `should`: what such a rule advises
    /// against is allowed.
    pub(super) fn find_dead(&mut self, rulebook: &Rulebook) {
        let killed_by = |is_variant: bool| -> BTreeSet<&String> {
            let rows = self.rows.values().filter(|r| r.is_variant == is_variant);
            rows.flat_map(|r| &r.killed_by).collect()
        };
        let (killed, advised_against) = (killed_by(false), killed_by(true));
        self.dead = rulebook
            .rules
            .values()
            .filter(|rule| matches!(rule.level, Level::Must | Level::Should))
            .filter(|rule| !killed.contains(&rule.id))
            .filter(|rule| rule.level == Level::Must || !advised_against.contains(&rule.id))
            .map(|rule| rule.id.clone())
            .collect();
    }

    /// Finds the rules about visible behavior that no response of the reference exercises.
    pub(super) fn find_idle(
        &mut self,
        rulebook: &Rulebook,
        judged: &BTreeSet<String>,
        shown: &BTreeSet<&String>,
    ) {
        let is_shown = |rule: &&Rule| rule.kind().is_none_or(|k| shown.iter().any(|s| *s == k));
        self.idle = rulebook
            .rules
            .values()
            .filter(|rule| matches!(rule.level, Level::Must | Level::Should))
            .filter(|rule| !matches!(rule.origin, Origin::Either))
            .filter(is_shown)
            .filter(|rule| !judged.contains(&rule.id))
            .map(|rule| rule.id.clone())
            .collect();
    }

    /// The state of a row.
    pub fn state(&self, name: &str, recorded: &Recorded) -> State {
        let Some(row) = self.rows.get(name) else {
            return State::Silent;
        };
        if !row.errors.is_empty() {
            return State::Error;
        }
        match recorded.known_gaps.gap_state(name, row) {
            GapState::Yes => return State::KnownGaps,
            GapState::NoLonger => return State::StaleEntry,
            GapState::No => {}
        }
        if row.is_variant {
            // A variation that changes nothing cannot show that it is allowed.
            return match (row.failed_by.is_empty(), row.differing) {
                (false, _) => State::OverKilled,
                (true, 0) => State::Silent,
                (true, _) => State::Killed,
            };
        }
        if row.killed_by.is_empty() {
            return State::Silent;
        }
        match recorded.caught_by.get(name) {
            Some(rules) if *rules == row.killed_by => State::Killed,
            None if name.starts_with("generated ") && row.killed_by.len() == 1 => State::Killed,
            Some(_) | None => State::OverKilled,
        }
    }

    /// Rules that no row has killed and that are not known gaps.
    pub fn dead<'a>(&'a self, recorded: &'a Recorded) -> impl Iterator<Item = &'a String> {
        self.dead
            .iter()
            .filter(|id| !recorded.known_gaps.names_rule(id))
    }

    /// Rules that no mutation of the clean responses breaks.
    pub fn vacuous(&self) -> impl Iterator<Item = &String> {
        let tried = self.proof.iter().flat_map(|proof| &proof.rules);
        tried
            .filter(|(_, changes)| changes.broke == 0)
            .map(|(rule, _)| rule)
    }

    /// True if every row is as recorded or a known gap, the clean reference has no findings, and no rule is dead, idle or
    /// vacuous.
    pub fn holds(&self, recorded: &Recorded) -> bool {
        self.unclean.is_empty()
            && self.dead(recorded).next().is_none()
            // A part of the rows does not show which rules are tried.
            && (self.dead.is_empty() || recorded.known_gaps.tried(&self.dead).is_empty())
            && self.idle.iter().all(|id| recorded.known_gaps.names_rule(id))
            && self.vacuous().next().is_none()
            && self
                .rows
                .keys()
                .all(|name| self.state(name, recorded).is_expected())
    }

    /// The known gaps, without entries that these rows no longer need.
    #[must_use]
    pub fn remaining_gaps(&self, recorded: &Recorded) -> KnownGaps {
        recorded.known_gaps.shrunk(&self.rows, &self.dead)
    }

    /// Rows to record: every named fault, and generated ones that break more than one rule.
    pub fn record(&self) -> CaughtBy {
        self.rows
            .iter()
            .filter(|(name, row)| {
                !row.is_variant && (!name.starts_with("generated ") || row.killed_by.len() != 1)
            })
            .map(|(name, row)| (name.clone(), row.killed_by.clone()))
            .collect()
    }

    /// The content of the record file.
    pub fn record_text(&self) -> String {
        let mut text = String::from(
            "# Which rules catch each fault. Written by `BLESS=1 conformant selftest`; review it as a diff.\n\
             # A generated fault that is not listed is caught by exactly one rule.\n",
        );
        for (name, rules) in self.record() {
            let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
            if rules.is_empty() {
                let _ = writeln!(text, "\"{name}\": []");
                continue;
            }
            let _ = writeln!(text, "\"{name}\":");
            for rule in rules {
                let _ = writeln!(text, "  - {rule}");
            }
        }
        text
    }

    /// The matrix as text: counts, then unexpected rows.
    pub fn render(&self, recorded: &Recorded) -> String {
        let mut text = String::new();
        let mut counts: BTreeMap<(&str, State), usize> = BTreeMap::new();
        for name in self.rows.keys() {
            let what = name.split(' ').next().unwrap_or_default();
            *counts
                .entry((what, self.state(name, recorded)))
                .or_default() += 1;
        }
        let states = [
            State::Killed,
            State::KnownGaps,
            State::StaleEntry,
            State::OverKilled,
            State::Silent,
            State::Error,
        ];
        let _ = writeln!(
            text,
            "{:<12}{:>12}{:>10}{:>16}{:>14}{:>10}{:>10}",
            "", "as expected", "known gap", "stale entry", "over-killed", "silent", "error"
        );
        for what in ["fault", "generated", "variant"] {
            let cells: Vec<usize> = states
                .iter()
                .map(|s| counts.get(&(what, *s)).copied().unwrap_or_default())
                .collect();
            let _ = writeln!(
                text,
                "{what:<12}{:>12}{:>10}{:>16}{:>14}{:>10}{:>10}",
                cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]
            );
        }
        let (silent, flagged) = recorded.known_gaps.counts();
        let _ = writeln!(
            text,
            "known gaps: {silent} faults not caught, {flagged} variations flagged"
        );
        if let Some(proof) = &self.proof {
            let _ = writeln!(
                text,
                "mutations: {} of {} passing rules detect a change of the clean responses, {} have no change of their own",
                proof.proven,
                proof.proven + proof.vacuous,
                proof.unproven
            );
        }
        for rule in self.vacuous() {
            let _ = writeln!(
                text,
                "VACUOUS {rule}: no mutation of the clean responses breaks it"
            );
        }
        for line in &self.unclean {
            let _ = writeln!(text, "UNCLEAN {line}");
        }
        for (name, row) in &self.rows {
            let state = self.state(name, recorded);
            if state.is_expected() {
                continue;
            }
            let killed: Vec<&str> = row.killed_by.iter().map(String::as_str).collect();
            let _ = writeln!(text, "{} {name}", state.word().to_uppercase());
            let _ = writeln!(text, "    scenarios  {}", row.scenarios);
            let _ = writeln!(text, "    killed by  {}", killed.join(", "));
            if let Some(rules) = recorded.caught_by.get(name) {
                let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
                let _ = writeln!(text, "    recorded   {}", rules.join(", "));
            }
            for error in &row.errors {
                let _ = writeln!(text, "    error      {error}");
            }
        }
        if !self.dead.is_empty() {
            for rule in recorded.known_gaps.tried(&self.dead) {
                let _ = writeln!(text, "STALE ENTRY rule {rule}");
            }
        }
        for rule in self.dead(recorded) {
            let _ = writeln!(text, "DEAD {rule}: no fault kills it");
        }
        for rule in &self.idle {
            let _ = writeln!(text, "IDLE {rule}: no scenario exercises it");
        }
        text
    }
}
