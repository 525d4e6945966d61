//! Limits memory for large responses: only one scenario at a time may receive them.
//!
//! A parsed response takes many times its size. Scenarios with small responses never wait, and waiting does
//! not count against deadlines.

use conformant_base::clock;
use conformant_base::parallel::{lock, recovered};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Total response bytes of a scenario that need no reservation.
const SMALL_BYTES: usize = 256 * 1024;
/// Polling interval of the interrupt flag.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// The reservation of one client.
#[derive(Debug, Default)]
pub(super) struct Budget {
    taken: Mutex<bool>,
    left: Condvar,
}

/// One scenario's share, also of its concurrent requests; released when dropped.
#[derive(Debug)]
pub struct BudgetShare {
    room: Arc<Budget>,
    /// Bytes of complete responses.
    received: AtomicUsize,
    /// Set under the lock of the reservation.
    holds: AtomicBool,
}

impl BudgetShare {
    pub(super) fn of(room: &Arc<Budget>) -> Self {
        Self {
            room: Arc::clone(room),
            received: AtomicUsize::new(0),
            holds: AtomicBool::new(false),
        }
    }

    /// Waits until a response of that size may continue; returns the time waited.
    pub(super) fn admit(&self, bytes: usize, interrupted: &AtomicBool) -> Duration {
        if self.holds() || self.received.load(Ordering::Relaxed) + bytes <= SMALL_BYTES {
            return Duration::ZERO;
        }
        let begun = clock::monotonic();
        let mut taken = lock(&self.room.taken);
        while *taken && !self.holds() && !interrupted.load(Ordering::Relaxed) {
            let waited = self.room.left.wait_timeout(taken, WAIT_SLICE);
            taken = recovered(waited).0;
        }
        // An interrupted scenario ends at once without the reservation.
        if !*taken {
            *taken = true;
            self.holds.store(true, Ordering::Relaxed);
        }
        begun.elapsed()
    }

    /// Counts a complete response.
    pub(super) fn keep(&self, bytes: usize) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        if self.holds() {
            *lock(&self.room.taken) = false;
            self.room.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_scenario_at_a_time_holds_large_responses() {
        let room = Arc::new(Budget::default());
        let never = AtomicBool::new(false);
        let first = BudgetShare::of(&room);
        let second = BudgetShare::of(&room);
        first.admit(SMALL_BYTES, &never);
        second.keep(SMALL_BYTES);
        assert!(
            !first.holds() && !*lock(&room.taken),
            "a little needs no room"
        );
        first.keep(SMALL_BYTES);
        first.admit(1, &never);
        assert!(first.holds());
        let entered = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _request_at_once in 0..2 {
                scope.spawn(|| {
                    second.admit(1, &never);
                    assert!(entered.load(Ordering::SeqCst), "before the first had left");
                });
            }
            first.admit(usize::MAX / 2, &never);
            entered.store(true, Ordering::SeqCst);
            drop(first);
        });
        assert!(second.holds());
        let third = BudgetShare::of(&room);
        third.admit(SMALL_BYTES + 1, &AtomicBool::new(true));
        assert!(!third.holds(), "an interrupted one does not wait");
        drop(third);
        assert!(*lock(&room.taken));
        drop(second);
        assert!(!*lock(&room.taken));
    }
}
