//! Changes that are in flight, to know whether a rejected change overlapped another one of this run.
//!
//! - A target may reject a change while it processes another one. That shows neither a rate limit nor a defect.
//! - After the first such rejection changes are sent one after the other.
//! - A rejection with 429, or 503 and `Retry-After`, of a read or of a change that was alone shows a rate limit. From then on
//!   changes overlap.

use conformant_base::parallel::{lock, recovered};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Interval at which a request that waits checks whether the run has ended.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Counts the changes in flight of all scenarios.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    state: Mutex<State>,
    decreased: Condvar,
}

#[derive(Debug, Default)]
struct State {
    count: usize,
    /// Number of changes so far.
    begun: u64,
    order: Order,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// Changes overlap.
    #[default]
    Free,
    /// Each change waits for the one before.
    OneByOne,
    /// The target has a rate limit, so overlapping is not what it rejects.
    RateLimited,
}

/// Changes that are sent together, until it is dropped.
#[derive(Debug)]
pub(super) struct Sent<'a> {
    within: &'a InFlight,
    count: usize,
    /// Value of [`State::begun`] right after these were registered; none if others were in flight.
    begun: Option<u64>,
}

impl InFlight {
    /// Registers changes before they are sent. Waits for those in flight if changes are sent one after the other.
    pub(super) fn register(&self, count: usize, is_over: impl Fn() -> bool) -> Sent<'_> {
        let mut state = lock(&self.state);
        while state.order == Order::OneByOne && state.count > 0 && !is_over() {
            let waited = self.decreased.wait_timeout(state, CHECK_EVERY);
            state = recovered(waited).0;
        }
        let was_quiet = state.count == 0;
        state.count += count;
        state.begun += count as u64;
        Sent {
            within: self,
            count,
            begun: was_quiet.then_some(state.begun),
        }
    }

    /// Lets changes wait for each other from now on, unless the target has a rate limit.
    pub(super) fn serialize(&self) {
        let mut state = lock(&self.state);
        if state.order == Order::Free {
            state.order = Order::OneByOne;
        }
    }

    /// Lets changes overlap: the target rejects requests because there are too many.
    pub(super) fn allow_overlap(&self) {
        lock(&self.state).order = Order::RateLimited;
        self.decreased.notify_all();
    }

    /// Whether the target rejects requests because there are too many.
    pub(super) fn is_rate_limited(&self) -> bool {
        lock(&self.state).order == Order::RateLimited
    }
}

impl Sent<'_> {
    /// Whether another change was in flight since these were registered.
    pub(super) fn has_overlapped(&self) -> bool {
        self.begun != Some(lock(&self.within.state).begun)
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        lock(&self.within.state).count -= self.count;
        self.within.decreased.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn never() -> bool {
        false
    }

    #[test]
    fn changes_overlap_until_they_wait_for_each_other() {
        let in_flight = InFlight::default();
        let first = in_flight.register(1, never);
        assert!(!first.has_overlapped());
        let second = in_flight.register(1, never);
        assert!(first.has_overlapped() && second.has_overlapped());
        drop(first);
        in_flight.serialize();
        let (done, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let third = in_flight.register(2, never);
                done.send(third.has_overlapped()).expect("a receiver");
            });
            assert!(ended.try_recv().is_err());
            drop(second);
            assert_eq!(ended.recv(), Ok(false));
        });
        in_flight.allow_overlap();
        in_flight.serialize();
        let _fourth = in_flight.register(1, never);
        assert!(in_flight.register(1, never).has_overlapped());
    }

    #[test]
    fn the_end_of_a_run_ends_the_wait() {
        let in_flight = InFlight::default();
        in_flight.serialize();
        let _first = in_flight.register(1, never);
        assert!(in_flight.register(1, || true).has_overlapped());
    }
}
