//! Events: schema versions, the present version of each event type, and the next version of an event.

use super::compat::versions_of;
use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use super::operations::union;
use super::schemas;
use conformant_rulebook::{Rulebook, event_version};

/// Compares versions and event types. Where an event type moves to another version, both versions are compared field
/// by field; a version that no type uses yet changes nothing.
pub(super) fn compare(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    versions(ledger, old, new);
    for name in union(&old.event_types, &new.event_types) {
        let subject = Subject::EventType(name.clone());
        let mut note = |what, action, was: Option<String>, is: Option<String>| {
            ledger.note(
                &subject,
                Note::new(what, action, Direction::Response).between(was, is),
            );
        };
        match (
            old.event_types.get(&name).cloned(),
            new.event_types.get(&name).cloned(),
        ) {
            (None, after) => note(What::EventType, Action::Added, None, after.flatten()),
            (before, None) => note(What::EventType, Action::Removed, before.flatten(), None),
            (Some(None), Some(None)) => {}
            (Some(None), Some(is)) => note(What::EventSchema, Action::Added, None, is),
            (Some(was), Some(None)) => note(What::EventSchema, Action::Removed, was, None),
            (Some(Some(was)), Some(Some(is))) if was != is => {
                note(
                    What::EventSchema,
                    Action::Changed,
                    Some(was.clone()),
                    Some(is.clone()),
                );
                schemas::kind(ledger, (old, &was), (new, &is));
            }
            (Some(Some(_)), Some(Some(_))) => {}
        }
    }
}

fn versions(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    for name in union(&old.kinds, &new.kinds) {
        if event_version(&name).is_none() {
            continue;
        }
        let subject = Subject::representation(&name, &name, "");
        let (what, action) = match (old.kinds.get(&name), new.kinds.get(&name)) {
            (None, _) => (What::EventVersion, Action::Added),
            (_, None) => (What::EventVersion, Action::Removed),
            (Some(a), Some(b)) if a.schema == b.schema => continue,
            (Some(_), Some(_)) => (What::ReleasedVersion, Action::Changed),
        };
        ledger.note(&subject, Note::new(what, action, Direction::Response));
    }
}

/// The next version of an event, copied from the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextVersion {
    /// Path of the last version in the rulebook: `events/MessageSent/4.yaml`.
    pub from: String,
    /// Path of the version before the last one.
    pub before: Option<String>,
    /// Path of the next one.
    pub to: String,
}

/// The files for the next version of an event; `None` for an unknown event.
pub fn next_version(rulebook: &Rulebook, name: &str) -> Option<NextVersion> {
    let versions = versions_of(rulebook, name);
    let numbers = versions.iter().filter_map(|kind| event_version(kind));
    let numbers: Vec<u64> = numbers.map(|(_, version)| version).collect();
    let version = numbers.last()?;
    let path = |version: u64| format!("events/{name}/{version}.yaml");
    Some(NextVersion {
        before: version
            .checked_sub(1)
            .filter(|n| numbers.contains(n))
            .map(path),
        from: path(*version),
        to: path(version + 1),
    })
}
