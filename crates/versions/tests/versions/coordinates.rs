//! Tests of `coordinates`.

use conformant_versions::coordinates::{Action, Coordinates, Direction, TABLE, What};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_combination_has_exactly_one_row() {
    let mut rows: BTreeMap<What, BTreeMap<Direction, BTreeSet<Action>>> = BTreeMap::new();
    for row in TABLE.iter() {
        let Coordinates {
            what,
            action,
            direction,
        } = row.at;
        let directions = rows.entry(what).or_default();
        let is_new = directions.entry(direction).or_default().insert(action);
        assert!(is_new, "{:?} has two rows", row.at);
    }
    for (what, directions) in rows {
        let actions: BTreeSet<_> = directions.into_values().collect();
        assert_eq!(actions.len(), 1, "{what:?}: {actions:?}");
    }
}

#[test]
fn every_row_breaks_something_or_is_harmless() {
    for row in TABLE.iter() {
        let breaks = row.consumers.is_some() || row.producers.is_some();
        assert_ne!(row.harmless.is_some(), breaks, "{:?}", row.at);
    }
}

/// The principle of the table, checked for narrower and wider changes.
#[test]
fn writers_break_by_less_and_readers_by_more() {
    use Action::{Narrowed, Widened};
    for row in TABLE.iter() {
        let Coordinates {
            what,
            action,
            direction,
        } = row.at;
        let (writer, reader) = match direction {
            Direction::Request => (&row.consumers, &row.producers),
            Direction::Response => (&row.producers, &row.consumers),
            Direction::Neither => continue,
        };
        match action {
            Narrowed => assert!(writer.is_some(), "{what:?} {direction:?}"),
            Widened => assert!(
                reader.is_some() && writer.is_none(),
                "{what:?} {direction:?}"
            ),
            Action::Added | Action::Removed | Action::Changed => {}
        }
    }
}
