//! Compares two revisions of the documents: sentences and table rows that were added, removed or changed.
//!
//! It compares hashes, not meaning: a person must read a changed sentence, and the rules that cite it are listed.

use super::Comparison;
use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use conformant_base::diff::diff_ops;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use conformant_rulebook::trace::{Class, Unit};
use similar::DiffOp;
use std::collections::BTreeSet;

/// Classification of each unit, by document and hash.
pub type Classes = SortedMap<(Document, String), Class>;

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
