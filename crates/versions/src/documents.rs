//! Compares two revisions of the documents: sentences and table rows that were added, removed or changed.
//!
//! It compares hashes, not meaning: a person must read a changed sentence, and the rules that cite it are listed.

use super::Comparison;
use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use conformant_base::diff::diff_ops;
use conformant_base::source::Document;
use conformant_rulebook::trace::{Class, Unit};
use similar::DiffOp;
use std::collections::{BTreeMap, BTreeSet};

/// Classification of each unit, by document and hash.
pub type Classes = BTreeMap<(Document, String), Class>;

/// Compares two revisions; `classes` are those of `documents.lock`.
pub fn documents(old: (&str, &[Unit]), new: (&str, &[Unit]), classes: &Classes) -> Comparison {
    let mut ledger = Ledger::default();
    let all: BTreeSet<Document> = old
        .1
        .iter()
        .chain(new.1)
        .map(|unit| unit.document)
        .collect();
    for document in all {
        let of = |units: &[Unit]| -> Vec<Unit> {
            units
                .iter()
                .filter(|unit| unit.document == document)
                .cloned()
                .collect()
        };
        document_units(&mut ledger, &of(old.1), &of(new.1), classes);
    }
    Comparison::of(old.0, new.0, ledger)
}

fn document_units(ledger: &mut Ledger, old: &[Unit], new: &[Unit], classes: &Classes) {
    let [before, after] = [old, new].map(|units| {
        let hashes = units.iter().map(|unit| unit.hash.as_str());
        hashes.collect::<Vec<_>>()
    });
    for op in diff_ops(&before, &after) {
        let (before, after) = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                (&old[op.old_range()], &new[op.new_range()])
            }
        };
        for n in 0..before.len().max(after.len()) {
            unit(ledger, before.get(n), after.get(n), classes);
        }
    }
}

/// A unit that was added, removed or changed; its id consists of the older words.
fn unit(ledger: &mut Ledger, old: Option<&Unit>, new: Option<&Unit>, classes: &Classes) {
    let Some(named) = old.or(new) else { return };
    let action = match (old, new) {
        (Some(_), Some(_)) => Action::Changed,
        (_, new) => Action::appears(new.is_some()),
    };
    let class = classes.get(&(named.document, named.hash.clone()));
    let what = match class {
        Some(Class::Cited { rules, .. }) if !rules.is_empty() => What::Statement,
        Some(Class::Cited { .. }) => What::OpenStatement,
        Some(Class::Definition | Class::Narrative | Class::Unclassified) | None => What::Narrative,
    };
    let place = |unit: &Unit| {
        let rests = match class {
            Some(Class::Cited { rules, open }) => {
                format!(": {}", [&rules[..], open].concat().join(", "))
            }
            Some(Class::Definition | Class::Narrative | Class::Unclassified) | None => {
                String::new()
            }
        };
        format!("line {}, unit {}{rests}", unit.line, unit.index)
    };
    let subject = Subject::Statement {
        document: named.document,
        unit: named.hash.clone(),
    };
    let note = Note::new(what, action, Direction::Neither).between(
        old.map(place),
        new.map(|unit| format!("line {}, unit {}", unit.line, unit.index)),
    );
    ledger.note(&subject, note);
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Class as Effect, Coordinates};
    use super::*;
    use conformant_rulebook::trace::units;

    const OLD: &str = "# Flow\n\nA rule. Left open. A note.\nGone rule. Kept.\nGone open. Kept too.\nGone note. Kept as well.\n";
    const NEW: &str =
        "# Flow\n\nAnother rule. Said now. Another note.\nKept.\nKept too.\nKept as well.\n";

    fn classes(of: &[(&str, Class)]) -> Classes {
        of.iter()
            .map(|(text, class)| {
                (
                    (
                        "D3".parse().unwrap(),
                        units("D3".parse().unwrap(), text)[0].hash.clone(),
                    ),
                    class.clone(),
                )
            })
            .collect()
    }

    fn known() -> Classes {
        let rules = |id: &str| Class::Cited {
            rules: vec![id.to_owned()],
            open: Vec::new(),
        };
        let open = |id: &str| Class::Cited {
            rules: Vec::new(),
            open: vec![id.to_owned()],
        };
        classes(&[
            ("A rule.", rules("flow/a")),
            ("Gone rule.", rules("flow/b")),
            ("Left open.", open("flow/open/a")),
            ("Gone open.", open("flow/open/b")),
            ("A note.", Class::Narrative),
        ])
    }

    fn compared(old: &str, new: &str) -> Comparison {
        let (old, new) = (
            units("D3".parse().unwrap(), old),
            units("D3".parse().unwrap(), new),
        );
        documents(("old", &old), ("new", &new), &known())
    }

    /// Coordinates of changes in both directions, for the test of the table.
    pub(in super::super) fn shown() -> Vec<Coordinates> {
        let both = compared(OLD, NEW)
            .changes
            .into_iter()
            .chain(compared(NEW, OLD).changes);
        both.map(|change| change.coordinates).collect()
    }

    #[test]
    fn sentences_are_classified_by_their_rules() {
        let comparison = compared(OLD, NEW);
        assert_eq!(comparison.changes.len(), 6, "{:#?}", comparison.changes);
        let effect = |line: &str| {
            let found = comparison
                .changes
                .iter()
                .find(|c| c.old.as_deref() == Some(line));
            &found
                .unwrap_or_else(|| panic!("{line}: {:#?}", comparison.changes))
                .class[..]
        };
        let both = [Effect::BreakingForConsumers, Effect::BreakingForProducers];
        assert_eq!(effect("line 3, unit 1: flow/a"), both);
        assert_eq!(
            effect("line 3, unit 2: flow/open/a"),
            [Effect::WasOpenNowStated]
        );
        assert_eq!(effect("line 3, unit 3"), [Effect::Clarified]);
        assert_eq!(
            effect("line 4, unit 1: flow/b"),
            [Effect::BreakingForConsumers]
        );
        assert_eq!(
            effect("line 5, unit 1: flow/open/b"),
            [Effect::WasOpenNowStated]
        );
        assert!(comparison.fails());
    }

    #[test]
    fn moved_lines_are_not_a_change() {
        let moved = OLD.replace("# Flow\n", "# Flow\n\n\n");
        assert_eq!(compared(OLD, &moved).changes, []);
    }
}
