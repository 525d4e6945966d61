//! Rate limit: a maximum of exchanges per second, shared by all workers.

use super::fault::Fault;
use conformant_base::clock;
use conformant_base::http::Cause;
use conformant_base::parallel::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest uninterrupted wait.
const NAP: Duration = Duration::from_millis(50);

/// A token bucket, stored as the time at which it would be full again.
#[derive(Debug)]
pub(super) struct RateLimit {
    interval: Duration,
    burst: Duration,
    full_at: Mutex<Instant>,
}

impl RateLimit {
    /// `per_second` exchanges a second, in bursts of at most a tenth of that.
    pub(super) fn new(per_second: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self {
            interval,
            burst: interval * (per_second / 10),
            full_at: Mutex::new(clock::monotonic()),
        }
    }

    /// Waits for a token.
    pub(super) fn wait(&self, interrupted: &AtomicBool) -> Result<(), Fault> {
        let turn = self.reserve(clock::monotonic());
        loop {
            let left = turn.saturating_duration_since(clock::monotonic());
            if left.is_zero() {
                return Ok(());
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(Fault::new(Cause::Interrupted, "waiting for the rate limit"));
            }
            clock::sleep(left.min(NAP));
        }
    }

    /// Takes one token; returns the time from which it is valid.
    fn reserve(&self, now: Instant) -> Instant {
        let mut full_at = lock(&self.full_at);
        *full_at = (*full_at).max(now) + self.interval;
        // The first of a burst may go at once.
        full_at
            .checked_sub(self.burst.max(self.interval))
            .map_or(now, |turn| turn.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let pace = RateLimit::new(50);
        let now = clock::monotonic();
        let turns: Vec<u128> = (0..8)
            .map(|_| (pace.reserve(now) - now).as_millis())
            .collect();
        assert_eq!(turns, [0, 0, 0, 0, 0, 20, 40, 60]);
        let later = now + Duration::from_secs(60);
        assert_eq!(pace.reserve(later), later, "an idle bucket fills again");
    }

    #[test]
    fn low_rates_have_no_burst() {
        let pace = RateLimit::new(2);
        let now = clock::monotonic();
        let turns: Vec<u128> = (0..3)
            .map(|_| (pace.reserve(now) - now).as_millis())
            .collect();
        assert_eq!(turns, [0, 500, 1000]);
    }

    #[test]
    fn an_interrupted_run_waits_for_no_turn() {
        let pace = RateLimit::new(1);
        let interrupted = AtomicBool::new(true);
        pace.wait(&interrupted).expect("the first turn is free");
        let fault = pace.wait(&interrupted).expect_err("the second is not");
        assert_eq!(fault.cause, Cause::Interrupted);
    }
}
