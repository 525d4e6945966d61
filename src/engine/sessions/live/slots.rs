//! Slots: how many stories act at the same time. One that waits gives its slot to another, so that
//! waits overlap without more requests being under way than jobs were asked for.

use std::sync::{Condvar, Mutex, PoisonError};

/// The slots of a run.
#[derive(Debug)]
pub(super) struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A slot that is held.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    slots: &'a Slots,
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count.max(1)),
            freed: Condvar::new(),
        }
    }

    /// Waits for a slot.
    pub(super) fn take(&self) -> Slot<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self
                .freed
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Slot { slots: self }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut free = self
            .slots
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *free += 1;
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn no_more_slots_are_held_than_there_are() {
        let slots = Slots::new(2);
        let first = slots.take();
        let _second = slots.take();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(slots.take()));
            drop(first);
            waiting
                .join()
                .expect("it gets the slot that was given back");
        });
    }
}
