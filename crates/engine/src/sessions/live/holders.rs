//! Holders of exclusive values: the executions that scenarios of this run made, and which of them may still be active.

use crate::session::Holder;
use conformant_base::parallel::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// All holders that the run made.
#[derive(Debug, Default)]
pub(super) struct Holders {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that were not ended, by key, with the number of the session that needs them; `None` if none does any more.
    active: BTreeMap<String, (Holder, Option<u64>)>,
    made: BTreeSet<String>,
}

impl Holders {
    /// Records a new holder of a session.
    pub(super) fn record(&self, holder: Holder, session: u64) {
        let mut state = lock(&self.state);
        state.made.insert(holder.key.clone());
        state
            .active
            .insert(holder.key.clone(), (holder, Some(session)));
    }

    /// Whether this run made it.
    pub(super) fn has_made(&self, key: &str) -> bool {
        lock(&self.state).made.contains(key)
    }

    /// Removes one that was ended.
    pub(super) fn remove(&self, key: &str) {
        lock(&self.state).active.remove(key);
    }

    /// The holders that a session made and did not end.
    pub(super) fn of(&self, session: u64) -> Vec<Holder> {
        let state = lock(&self.state);
        let own = state.active.values().filter(|(_, of)| *of == Some(session));
        own.map(|(holder, _)| holder.clone()).collect()
    }

    /// All holders of a value that were not ended.
    pub(super) fn with(&self, value: &str) -> Vec<Holder> {
        let state = lock(&self.state);
        let active = state.active.values().map(|(holder, _)| holder);
        active
            .filter(|holder| holder.value == value)
            .cloned()
            .collect()
    }

    /// Whether another session needs it.
    pub(super) fn is_of_another(&self, key: &str, session: u64) -> bool {
        let state = lock(&self.state);
        let of = state.active.get(key).and_then(|(_, of)| *of);
        of.is_some_and(|of| of != session)
    }

    /// Whether a holder in another scope has that value, which this session does not need.
    pub(super) fn is_held_elsewhere(&self, value: &str, scope: &str, session: u64) -> bool {
        lock(&self.state).active.values().any(|(holder, of)| {
            holder.value == value && holder.scope != scope && *of != Some(session)
        })
    }

    /// Marks the holders of a session as left behind.
    pub(super) fn leave(&self, session: u64) {
        for (_, of) in lock(&self.state).active.values_mut() {
            if *of == Some(session) {
                *of = None;
            }
        }
    }

    /// Removes those that were left behind with one of these values, and returns them.
    pub(super) fn take_left(&self, values: &BTreeSet<String>) -> Vec<Holder> {
        let mut left = Vec::new();
        lock(&self.state).active.retain(|_, (holder, of)| {
            let is_left = of.is_none() && values.contains(&holder.value);
            if is_left {
                left.push(holder.clone());
            }
            !is_left
        });
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(key: &str, scope: &str, value: &str) -> Holder {
        Holder {
            scope: scope.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            path: format!("/{scope}/{key}"),
        }
    }

    #[test]
    fn holders_are_left_behind_until_their_value_is_needed() {
        let holders = Holders::default();
        holders.record(holder("one", "a", "+1"), 1);
        holders.record(holder("two", "b", "+2"), 2);
        assert!(holders.is_of_another("two", 1) && !holders.is_of_another("two", 2));
        assert!(holders.is_held_elsewhere("+1", "b", 2));
        assert_eq!(holders.with("+2"), [holder("two", "b", "+2")]);
        assert!(!holders.is_held_elsewhere("+1", "a", 2), "the same scope");
        assert!(!holders.is_held_elsewhere("+1", "b", 1), "its own");
        let first = BTreeSet::from(["+1".to_owned()]);
        assert_eq!(holders.take_left(&first), [], "it is in use");
        holders.leave(1);
        assert!(holders.is_held_elsewhere("+1", "b", 1));
        assert_eq!(holders.take_left(&first), [holder("one", "a", "+1")]);
        assert!(!holders.is_held_elsewhere("+1", "b", 2) && holders.has_made("one"));
        assert_eq!(holders.of(2), [holder("two", "b", "+2")]);
        holders.remove("two");
        assert_eq!(holders.of(2), []);
    }
}
