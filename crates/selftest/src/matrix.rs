//! The kill matrix: what each fault was caught by, beside what it is recorded to be caught by.

use super::not_yet::{NotYet, Owed};
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
    /// What the clean reference was accused of, or could not be judged on.
    pub unclean: Vec<String>,
    /// Rules that no fault kills.
    pub dead: Vec<String>,
    /// Rules that the clean reference gives nothing to judge by.
    pub idle: Vec<String>,
    /// Whether some change of the clean reference's own answers breaks each rule that passes on it; of a whole self-test alone.
    pub proof: Option<Proof>,
}

/// What happened under one fault or variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// True for a variant, which nothing may accuse.
    pub is_variant: bool,
    /// Scenarios that were played.
    pub scenarios: usize,
    /// Rules with a finding, of any level.
    pub killed_by: BTreeSet<String>,
    /// Rules of level must with a finding.
    pub failed_by: BTreeSet<String>,
    /// Our own errors.
    pub errors: Vec<String>,
}

impl Row {
    /// Takes up what another scenario showed.
    pub(super) fn add(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.killed_by.extend(other.killed_by);
        self.failed_by.extend(other.failed_by);
        self.errors.extend(other.errors);
    }
}

/// How a row compares with what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Caught by exactly the recorded rules; for a variant: not accused.
    Killed,
    /// Caught by further or other rules than recorded; for a variant: accused.
    OverKilled,
    /// Caught by nothing, or accused, as the list of what the rulebook owes says.
    NotYet,
    /// Listed there without need.
    ListedInVain,
    /// Caught by nothing.
    Silent,
    /// We failed ourselves.
    Error,
}

impl State {
    /// True where nothing needs doing, or what needs doing is listed.
    pub fn is_expected(self) -> bool {
        matches!(self, Self::Killed | Self::NotYet)
    }

    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::OverKilled => "over-killed",
            Self::NotYet => "not yet",
            Self::ListedInVain => "listed in vain",
            Self::Silent => "silent",
            Self::Error => "error",
        }
    }
}

/// What is recorded: rule ids by row. A generated row that is not recorded is caught by exactly the
/// rule it is named after.
pub type CaughtBy = BTreeMap<String, BTreeSet<String>>;

/// What a self-test is compared with.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Which rules catch what: `specs/kill-matrix.yaml`.
    pub caught_by: CaughtBy,
    /// What is caught by none yet: `specs/not-yet-caught.yaml`.
    pub not_yet: NotYet,
}

impl Matrix {
    /// Finds the rules that no row has killed.
    pub(super) fn find_dead(&mut self, rulebook: &Rulebook) {
        let killed: BTreeSet<&String> = self
            .rows
            .values()
            .filter(|r| !r.is_variant)
            .flat_map(|r| &r.killed_by)
            .collect();
        self.dead = rulebook
            .rules
            .values()
            .filter(|rule| matches!(rule.level, Level::Must | Level::Should))
            .filter(|rule| !killed.contains(&rule.id))
            .map(|rule| rule.id.clone())
            .collect();
    }

    /// Finds the rules about what the reference shows that none of its answers lets judge.
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

    /// How a row compares with the record.
    pub fn state(&self, name: &str, recorded: &Recorded) -> State {
        let Some(row) = self.rows.get(name) else {
            return State::Silent;
        };
        if !row.errors.is_empty() {
            return State::Error;
        }
        match recorded.not_yet.owes(name, row) {
            Owed::Yes => return State::NotYet,
            Owed::NoLonger => return State::ListedInVain,
            Owed::No => {}
        }
        if row.is_variant {
            return if row.failed_by.is_empty() {
                State::Killed
            } else {
                State::OverKilled
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

    /// Rules that no row has killed, and that are not known to be owed a fault.
    pub fn dead<'a>(&'a self, recorded: &'a Recorded) -> impl Iterator<Item = &'a String> {
        self.dead
            .iter()
            .filter(|id| !recorded.not_yet.names_rule(id))
    }

    /// Rules that hold on the clean reference whatever is changed in its answers.
    pub fn vacuous(&self) -> impl Iterator<Item = &String> {
        let tried = self.proof.iter().flat_map(|proof| &proof.rules);
        tried
            .filter(|(_, changes)| changes.broke == 0)
            .map(|(rule, _)| rule)
    }

    /// True when every row is as recorded or known to be owed, the clean reference is clean, and no rule is dead,
    /// idle or vacuous.
    pub fn holds(&self, recorded: &Recorded) -> bool {
        self.unclean.is_empty()
            && self.dead(recorded).next().is_none()
            // A part of the rows does not tell which rules are tried.
            && (self.dead.is_empty() || recorded.not_yet.tried(&self.dead).is_empty())
            && self.idle.is_empty()
            && self.vacuous().next().is_none()
            && self
                .rows
                .keys()
                .all(|name| self.state(name, recorded).is_expected())
    }

    /// The list of what the rulebook owes, without what these rows no longer need.
    #[must_use]
    pub fn still_owed(&self, recorded: &Recorded) -> NotYet {
        recorded.not_yet.shrunk(&self.rows, &self.dead)
    }

    /// What is worth recording: every named fault, and generated ones that kill more than one rule.
    pub fn record(&self) -> CaughtBy {
        self.rows
            .iter()
            .filter(|(name, row)| {
                !row.is_variant && (!name.starts_with("generated ") || row.killed_by.len() != 1)
            })
            .map(|(name, row)| (name.clone(), row.killed_by.clone()))
            .collect()
    }

    /// The record as the file that keeps it.
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

    /// The matrix as text: counts, then everything that is not as it should be.
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
            State::NotYet,
            State::ListedInVain,
            State::OverKilled,
            State::Silent,
            State::Error,
        ];
        let _ = writeln!(
            text,
            "{:<12}{:>12}{:>10}{:>16}{:>14}{:>10}{:>10}",
            "", "as it should", "not yet", "listed in vain", "over-killed", "silent", "error"
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
        let (silent, accused) = recorded.not_yet.counts();
        let _ = writeln!(
            text,
            "owed by the rulebook: {silent} faults not yet caught, {accused} variants still accused"
        );
        if let Some(proof) = &self.proof {
            let _ = writeln!(
                text,
                "proven: {} of {} rules that pass are broken by some change of the clean answers, {} have none of their own",
                proof.proven,
                proof.proven + proof.vacuous,
                proof.unproven
            );
        }
        for rule in self.vacuous() {
            let _ = writeln!(
                text,
                "VACUOUS {rule}: no change of the clean answers breaks it"
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
            for rule in recorded.not_yet.tried(&self.dead) {
                let _ = writeln!(text, "LISTED IN VAIN rule {rule}");
            }
        }
        for rule in self.dead(recorded) {
            let _ = writeln!(text, "DEAD {rule}: no fault kills it");
        }
        for rule in &self.idle {
            let _ = writeln!(
                text,
                "IDLE {rule}: no scenario gives anything to judge it by"
            );
        }
        text
    }
}
