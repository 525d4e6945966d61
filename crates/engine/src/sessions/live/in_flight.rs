//! Changes that are in flight, so that a rejection is known to overlap another change of this run.
//!
//! - A target may reject a change while it processes another one. That shows neither a rate limit nor a defect.
//! - After the first such rejection changes are sent one after the other. A target that then rejects a request which is
//!   alone has a rate limit, and changes overlap again.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which a request that waits checks whether the run has ended.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Counts the changes in flight of all scenarios.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct State {
    count: usize,
    /// Number of requests so far.
    begun: u64,
    order: Order,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// Requests overlap.
    #[default]
    Free,
    /// Each request waits for the one before.
    OneByOne,
    /// The target has a rate limit, so overlapping is not what it rejects.
    RateLimited,
}

/// Requests that were sent together.
#[derive(Debug)]
pub(super) struct Sent<'a> {
    within: &'a InFlight,
    count: usize,
    /// Number of requests when these were sent; none if another one was in flight.
    begun: Option<u64>,
}

impl InFlight {
    /// Registers requests, after those in flight if requests are sent one after the other.
    pub(super) fn send(&self, count: usize, is_over: impl Fn() -> bool) -> Sent<'_> {
        let mut state = self.state();
        while state.order == Order::OneByOne && state.count > 0 && !is_over() {
            let waited = self.fewer.wait_timeout(state, CHECK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
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

    /// Sends requests one after the other from now on, unless the target has a rate limit.
    pub(super) fn one_by_one(&self) {
        let mut state = self.state();
        if state.order == Order::Free {
            state.order = Order::OneByOne;
        }
    }

    /// Lets requests overlap again: the target rejects them for their number.
    pub(super) fn is_rate_limited(&self) {
        self.state().order = Order::RateLimited;
        self.fewer.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sent<'_> {
    /// Whether another request was in flight since these were sent.
    pub(super) fn has_overlapped(&self) -> bool {
        self.begun != Some(self.within.state().begun)
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        self.within.state().count -= self.count;
        self.within.fewer.notify_all();
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
    fn requests_overlap_until_one_of_them_is_rejected_for_it() {
        let in_flight = InFlight::default();
        let first = in_flight.send(1, never);
        assert!(!first.has_overlapped());
        let second = in_flight.send(1, never);
        assert!(first.has_overlapped() && second.has_overlapped());
        drop(first);
        in_flight.one_by_one();
        let (done, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let third = in_flight.send(2, never);
                done.send(third.has_overlapped()).expect("a receiver");
            });
            assert!(ended.try_recv().is_err());
            drop(second);
            assert_eq!(ended.recv(), Ok(false));
        });
        in_flight.is_rate_limited();
        in_flight.one_by_one();
        let _fourth = in_flight.send(1, never);
        assert!(in_flight.send(1, never).has_overlapped());
    }

    #[test]
    fn the_end_of_a_run_ends_the_wait() {
        let in_flight = InFlight::default();
        in_flight.one_by_one();
        let _first = in_flight.send(1, never);
        assert!(in_flight.send(1, || true).has_overlapped());
    }
}
