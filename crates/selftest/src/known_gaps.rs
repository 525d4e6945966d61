//! Known gaps: faults that no rule catches, variations that a rule flags, and rules that no fault tests.
//!
//! The list only becomes shorter: an entry without need is a finding.

use super::matrix::Row;
use conformant_reference::{Fault, Variant};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The list in its file format.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownGaps {
    /// Faults that no rule catches and variations that no scenario shows, each with the reason.
    #[serde(default)]
    silent: BTreeMap<String, String>,
    /// Variations, each with exactly the rules that flag it.
    #[serde(default)]
    #[serde(alias = "accused")]
    flagged: BTreeMap<String, BTreeSet<String>>,
    /// Rules that no fault of the reference breaks, each with the reason.
    #[serde(default)]
    untried: BTreeMap<String, String>,
}

/// Known gap of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GapState {
    No,
    /// The row matches the list.
    Yes,
    /// The row is better than the list.
    NoLonger,
}

impl KnownGaps {
    /// The known gap of the row with that name.
    pub(super) fn gap_state(&self, name: &str, row: &Row) -> GapState {
        if let Some(id) = name.strip_prefix("fault ") {
            return match (self.silent.contains_key(id), row.killed_by.is_empty()) {
                (false, _) => GapState::No,
                (true, true) => GapState::Yes,
                (true, false) => GapState::NoLonger,
            };
        }
        let id = name.strip_prefix("variant ");
        if id.is_some_and(|id| self.silent.contains_key(id)) && row.failed_by.is_empty() {
            return if row.differing == 0 {
                GapState::Yes
            } else {
                GapState::NoLonger
            };
        }
        match id.and_then(|id| self.flagged.get(id)) {
            Some(by) if *by == row.failed_by => GapState::Yes,
            Some(by) if row.failed_by.is_subset(by) => GapState::NoLonger,
            Some(_) | None => GapState::No,
        }
    }

    /// Whether that fault may be silent.
    pub(super) fn names_fault(&self, id: &str) -> bool {
        self.silent.contains_key(id)
    }

    /// Whether that variation is flagged.
    pub(super) fn names_variant(&self, id: &str) -> bool {
        self.flagged.contains_key(id)
    }

    /// Whether that rule needs no fault.
    pub(super) fn names_rule(&self, id: &str) -> bool {
        self.untried.contains_key(id)
    }

    /// Rules that are listed although a fault breaks them.
    pub(super) fn tried<'a>(&'a self, dead: &[String]) -> Vec<&'a String> {
        self.untried
            .keys()
            .filter(|id| !dead.contains(id))
            .collect()
    }

    /// Number of listed faults and variations.
    pub fn counts(&self) -> (usize, usize) {
        (self.silent.len(), self.flagged.len())
    }

    /// Listed ids that are neither a fault nor a variation.
    pub fn unknown(&self) -> Vec<&str> {
        let is_unknown =
            |id: &&String| Fault::from_id(id).is_none() && Variant::from_id(id).is_none();
        let faults = self.silent.keys().filter(is_unknown);
        let variants = self
            .flagged
            .keys()
            .filter(|id| Variant::from_id(id).is_none());
        faults.chain(variants).map(String::as_str).collect()
    }

    /// The list without entries that these rows no longer need.
    #[must_use]
    pub(super) fn shrunk(&self, rows: &BTreeMap<String, Row>, dead: &[String]) -> Self {
        let mut left = self.clone();
        left.silent.retain(|id, _| {
            ["fault", "variant"].into_iter().all(|kind| {
                let name = format!("{kind} {id}");
                rows.get(&name)
                    .is_none_or(|row| self.gap_state(&name, row) != GapState::NoLonger)
            })
        });
        for (id, by) in &mut left.flagged {
            if let Some(row) = rows.get(&format!("variant {id}")) {
                by.retain(|rule| row.failed_by.contains(rule));
            }
        }
        left.flagged.retain(|_, by| !by.is_empty());
        left.untried.retain(|id, _| dead.contains(id));
        left
    }

    /// The content of the list file.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# Known gaps of the rulebook: defects that no rule catches, allowed variations that a rule flags, rules that no defect tests.\n\
             # Each silent defect and each untried rule has a reason. The self-test fails on an entry that is no longer needed.\n# `BLESS=1 conformant selftest` removes such entries and adds none.\n",
        );
        let or_empty = |is_empty: bool, empty: &'static str| if is_empty { empty } else { "" };
        let reasons = |text: &mut String, name: &str, entries: &BTreeMap<String, String>| {
            let _ = writeln!(text, "{name}:{}", or_empty(entries.is_empty(), " {}"));
            for (id, why) in entries {
                let _ = writeln!(text, "  {id}: {why}");
            }
        };
        reasons(&mut text, "silent", &self.silent);
        let _ = writeln!(text, "flagged:{}", or_empty(self.flagged.is_empty(), " {}"));
        for (id, by) in &self.flagged {
            let rules: Vec<&str> = by.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  {id}: [{}]", rules.join(", "));
        }
        reasons(&mut text, "untried", &self.untried);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(ids: &[&str]) -> BTreeMap<String, String> {
        let because = |id: &&str| ((*id).to_owned(), "because".to_owned());
        ids.iter().map(because).collect()
    }

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn row(is_variant: bool, rules: &[&str]) -> Row {
        Row {
            is_variant,
            killed_by: set(rules),
            failed_by: set(rules),
            ..Row::default()
        }
    }

    #[test]
    fn unneeded_entries_are_removed() {
        let list = KnownGaps {
            silent: reasons(&["flow/a", "flow/b"]),
            flagged: BTreeMap::from([("v".to_owned(), set(&["r1", "r2"]))]),
            untried: reasons(&["r8", "r9"]),
        };
        let check =
            |name: &str, row: &Row, owed: GapState| assert_eq!(list.gap_state(name, row), owed);
        check("fault flow/a", &row(false, &[]), GapState::Yes);
        check("fault flow/a", &row(false, &["r1"]), GapState::NoLonger);
        check("fault flow/c", &row(false, &[]), GapState::No);
        check("variant v", &row(true, &["r1", "r2"]), GapState::Yes);
        check("variant v", &row(true, &["r1"]), GapState::NoLonger);
        check("variant v", &row(true, &["r3"]), GapState::No);
        check("variant w", &row(true, &["r1"]), GapState::No);
        check("generated flow/a", &row(false, &[]), GapState::No);
        let rows = BTreeMap::from([
            ("fault flow/a".to_owned(), row(false, &["r1"])),
            ("fault flow/b".to_owned(), row(false, &[])),
            ("variant v".to_owned(), row(true, &["r2", "r3"])),
        ]);
        let dead = ["r9".to_owned()];
        assert_eq!(list.tried(&dead), ["r8"]);
        let left = list.shrunk(&rows, &dead);
        assert!(left.text().ends_with(
            "silent:\n  flow/b: because\nflagged:\n  v: [r2]\nuntried:\n  r9: because\n"
        ));
        assert_eq!(left.counts(), (1, 1));
        assert_eq!(left.unknown(), ["flow/b", "v"]);
    }
}
