//! Slots: limits how many scenarios act at the same time.
//!
//! A waiting scenario releases its slot, so waits overlap without more concurrent requests than jobs. A free slot goes
//! to the scenario that began first, because the longest begin first.

use conformant_base::parallel::{lock, recovered};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

/// The slots of a run.
#[derive(Debug)]
pub(super) struct Slots {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// By the order in which the scenarios began. A missing entry was granted a slot.
    waiting: BTreeMap<u64, Arc<Condvar>>,
}

/// A slot that is held.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    slots: &'a Slots,
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        let state = State {
            free: count.max(1),
            waiting: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Waits for a slot; `turn` is the unique number of the scenario.
    pub(super) fn take(&self, turn: u64) -> Slot<'_> {
        let mut state = lock(&self.state);
        if state.free > 0 {
            state.free -= 1;
            return Slot { slots: self };
        }
        let given = Arc::new(Condvar::new());
        state.waiting.insert(turn, Arc::clone(&given));
        while state.waiting.contains_key(&turn) {
            state = recovered(given.wait(state));
        }
        Slot { slots: self }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.slots.state);
        match state.waiting.pop_first() {
            Some((_, given)) => given.notify_one(),
            None => state.free += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_and_granted_in_order() {
        let slots = Slots::new(2);
        let (first, _second) = (slots.take(7), slots.take(8));
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for turn in [5, 3, 4] {
                let (slots, order) = (&slots, &order);
                scope.spawn(move || {
                    let _slot = slots.take(turn);
                    order.lock().unwrap().push(turn);
                });
            }
            while lock(&slots.state).waiting.len() < 3 {
                std::thread::yield_now();
            }
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), [3, 4, 5]);
    }
}
