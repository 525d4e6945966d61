//! The pace of some requests to a target: the time of the next slot, and an interval that follows the target's rejections.
//!
//! - The first rejection sets the interval at which the target served requests during the last N seconds, where N is its
//!   `Retry-After`, or 1 without that header.
//! - Each further one lowers the rate by a tenth to a half. The rate rises by a fixed amount each second, and after ten seconds
//!   without a rejection by a twentieth of itself as well. Several runs on one target therefore come to share its limit
//!   evenly, and none starves.
//! - If lower rates do not help, the rejections do not depend on the rate, and requests have no interval.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Least interval that a rejection sets; a rising rate may shorten it further.
const INTERVAL_MIN: Duration = Duration::from_millis(5);
pub(super) const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Least and longest period in which served requests are counted.
const PERIOD_MIN: Duration = Duration::from_secs(1);
pub(super) const PERIOD_MAX: Duration = Duration::from_secs(60);
/// A rate helps if this many requests were served before the next rejection ...
const SERVED_MIN: u32 = 100;
/// ... or this many and for this long, because a low rate takes long to serve a hundred.
const SERVED_MIN_LONG: u32 = 20;
const SERVED_LONG: Duration = Duration::from_secs(5);
/// After this many rates in a row that do not help, rejections do not depend on the rate, and pacing ends.
pub(super) const USELESS_MAX: u32 = 4;
/// Once pacing has ended: if fewer requests than this are served between two rejections, the rate matters after all.
const SERVED_BETWEEN: u32 = 4;
/// How often a rate rises.
const RISE_EVERY: Duration = Duration::from_secs(1);
/// By how much it rises each time: this part of the highest rate that was measured.
const RISE: f64 = 0.01;
/// Time without a rejection after which the rate rises by [`RISE_LATER`] of itself too.
const RISE_LATER_AFTER: Duration = Duration::from_secs(10);
const RISE_LATER: f64 = 0.05;

/// The pace of some requests.
#[derive(Debug)]
pub(super) struct Pace {
    /// Time of the next free slot.
    pub(super) open_at: Instant,
    /// Slots before are void: they were reserved before a rejection.
    pub(super) blocked_until: Instant,
    /// Interval between requests; zero until a request is rejected.
    pub(super) interval: Duration,
    /// The shortest interval that was measured; each rejection may lengthen it a little.
    shortest: Option<Duration>,
    /// When the rate rose or was lowered last, and when it was lowered last.
    changed_at: Instant,
    lowered_at: Instant,
    /// Number of rejections that counted.
    pub(super) epoch: u32,
    /// Requests served since the last of these.
    served: u32,
    /// How many lower rates in a row did not help.
    useless: u32,
    /// When requests were served within the longest period.
    served_at: VecDeque<Instant>,
    /// When a request of this operation was rejected last; unused in the pace of all requests.
    pub(super) rejected_at: Option<Instant>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            open_at: now,
            blocked_until: now,
            interval: Duration::ZERO,
            shortest: None,
            changed_at: now,
            lowered_at: now,
            epoch: 0,
            served: 0,
            useless: 0,
            served_at: VecDeque::new(),
            rejected_at: None,
        }
    }

    /// Whether rejections do not depend on the rate, so that only the rejected request waits.
    pub(super) fn is_given_up(&self) -> bool {
        self.useless >= USELESS_MAX
    }

    /// Allows no request before that time.
    pub(super) fn block(&mut self, until: Instant) {
        self.open_at = self.open_at.max(until);
        self.blocked_until = self.blocked_until.max(until);
    }

    /// Lowers the rate to that at which the target served requests in the period that it asks to wait, and at least a little.
    pub(super) fn slow_down(&mut self, requested: Duration, now: Instant) {
        let served = std::mem::take(&mut self.served);
        self.epoch += 1;
        if self.is_given_up() && served >= SERVED_BETWEEN {
            return;
        }
        let paced_for = now.saturating_duration_since(self.lowered_at.max(self.blocked_until));
        let was_low_enough =
            served >= SERVED_MIN || served >= SERVED_MIN_LONG && paced_for >= SERVED_LONG;
        let is_useless = !self.interval.is_zero() && !was_low_enough;
        self.useless = if is_useless { self.useless + 1 } else { 0 };
        if self.is_given_up() {
            self.interval = Duration::ZERO;
            return;
        }
        let measured = self.measured(requested.clamp(PERIOD_MIN, PERIOD_MAX), now);
        self.shortest = match (self.shortest, measured) {
            (Some(shortest), Some(measured)) => Some(measured.min(shortest * 6 / 5)),
            (one, other) => one.or(other),
        };
        (self.changed_at, self.lowered_at) = (now, now);
        self.interval = match (self.interval.is_zero(), measured) {
            // A little slower, because clocks differ.
            (true, measured) => measured.unwrap_or_default() * 21 / 20,
            (false, None) => self.interval * 2,
            // Other runs may have taken part of what the target serves, and they slow down as well.
            (false, Some(measured)) => measured.clamp(self.interval * 10 / 9, self.interval * 2),
        }
        .clamp(INTERVAL_MIN, INTERVAL_MAX);
    }

    /// The mean interval between requests that were served within this period.
    fn measured(&self, period: Duration, now: Instant) -> Option<Duration> {
        let is_recent = |at: &&Instant| now.saturating_duration_since(**at) <= period;
        let count = self.served_at.iter().filter(is_recent).count();
        u32::try_from(count)
            .ok()
            .and_then(|n| period.checked_div(n))
    }

    pub(super) fn record_served(&mut self, now: Instant) {
        self.served_at.push_back(now);
        let is_old = |at: &Instant| now.saturating_duration_since(*at) > PERIOD_MAX;
        while self.served_at.front().is_some_and(is_old) {
            self.served_at.pop_front();
        }
        self.served += 1;
        let rose_at = self.changed_at.max(self.blocked_until);
        if !self.interval.is_zero() && now.saturating_duration_since(rose_at) >= RISE_EVERY {
            self.rise(now);
        }
    }

    fn rise(&mut self, now: Instant) {
        self.changed_at = now;
        let rate = 1.0 / self.interval.as_secs_f64();
        let highest = 1.0 / self.shortest.unwrap_or(self.interval).as_secs_f64();
        let is_later = now.saturating_duration_since(self.lowered_at) >= RISE_LATER_AFTER;
        let more = if is_later { rate * RISE_LATER } else { 0.0 };
        self.interval = Duration::from_secs_f64(1.0 / (rate + highest * RISE + more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::clock;

    /// The target serves 40 requests a second; another run takes 39 of them for a while.
    #[test]
    fn a_rate_falls_to_half_at_most_and_rises_with_time() {
        let mut now = clock::monotonic();
        let mut pace = Pace::new(now);
        let mut serve = |pace: &mut Pace, times: u32, each: Duration| {
            for _ in 0..times {
                now += each;
                pace.record_served(now);
            }
            now
        };
        let now = serve(&mut pace, 40, Duration::from_millis(25));
        pace.slow_down(Duration::ZERO, now);
        let first = Duration::from_millis(25) * 21 / 20;
        assert_eq!(pace.interval, first);
        let second = Duration::from_secs(1);
        let now = serve(&mut pace, 1, second);
        pace.slow_down(second, now);
        let halved = first * 19 / 10..=first * 2;
        assert!(halved.contains(&pace.interval), "{:?}", pace.interval);
        let now = serve(&mut pace, 2, second);
        pace.slow_down(second, now);
        assert!(pace.interval < first * 4, "it rose meanwhile");
        let before = pace.interval;
        serve(&mut pace, 10, second);
        let after_ten = pace.interval;
        assert!(after_ten < before * 3 / 4, "{before:?} {after_ten:?}");
        serve(&mut pace, 30, second);
        assert!(pace.interval < first, "{:?}", pace.interval);
    }
}
