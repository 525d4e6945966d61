//! Tests of `documents`.

use conformant_rulebook::trace::{Class, units};
use conformant_versions::{Class as Effect, Classes, Comparison, Coordinates, documents};

const OLD: &str = "# Flow\n\nA rule. Left open. A note.\nGone rule. Kept.\nGone open. Kept too.\nGone note. Kept as well.\n";
const NEW: &str =
    "# Flow\n\nAnother rule. Said now. Another note.\nKept.\nKept too.\nKept as well.\n";

fn classes(of: &[(&str, Class)]) -> Classes {
    of.iter()
        .map(|(text, class)| {
            (
                (
                    "D3".parse().expect("it is a document"),
                    units("D3".parse().expect("it is a document"), text)[0]
                        .hash
                        .clone(),
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
        units("D3".parse().expect("it is a document"), old),
        units("D3".parse().expect("it is a document"), new),
    );
    documents(("old", &old), ("new", &new), &known())
}

/// Coordinates of changes in both directions, for the test of the table.
pub(crate) fn shown() -> Vec<Coordinates> {
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
