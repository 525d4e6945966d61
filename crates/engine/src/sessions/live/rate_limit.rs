//! Rate limits of a target: all scenarios wait as requested and continue.
//!
//! A rejected request is repeated whatever its method, because a rate limit means that it was not processed.

use conformant_base::clock;
use conformant_base::http::Response;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of retries without `Retry-After`.
const TRIES_MAX: u32 = 5;
/// The first such wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Interval between requests after the first limit.
const INTERVAL_FIRST: Duration = Duration::from_millis(5);
const INTERVAL_MAX: Duration = Duration::from_secs(2);

/// The request schedule, shared by all scenarios.
#[derive(Debug)]
pub(super) struct Schedule {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The earliest time of the next request.
    open_at: Instant,
    /// Interval between requests; zero until the target sets a limit.
    interval: Duration,
    /// Requests since the last rejection.
    served: u32,
    /// The last wait that was not reported yet: the service, and the reason.
    unreported: Option<(String, String)>,
}

/// The action after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Use the answer.
    Take,
    /// Retry at the next slot of the schedule; contains the requested wait.
    Again(Duration),
    /// Give up: the limit lasts longer than the run.
    GiveUp,
}

impl Schedule {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                open_at: clock::monotonic(),
                interval: Duration::ZERO,
                served: 0,
                unreported: None,
            }),
        }
    }

    /// Reserves the next slot: the time at which to send.
    pub(super) fn place(&self) -> Instant {
        let mut state = self.state();
        let at = state.open_at.max(clock::monotonic());
        state.open_at = at + state.interval;
        at
    }

    /// Adapts the schedule to an answer to the given attempt.
    pub(super) fn learn(&self, response: &Response, tries: u32, deadline: Instant) -> Next {
        /// Processed requests after which the interval shrinks.
        const EASE_AFTER: u32 = 20;
        let mut state = self.state();
        let requested = response.headers.get("Retry-After");
        let requested = requested.and_then(|text| wait_of(text, clock::now()));
        let limits = response.status == 429 || (response.status == 503 && requested.is_some());
        if !limits {
            state.served += 1;
            if state.served.is_multiple_of(EASE_AFTER) && !state.interval.is_zero() {
                state.interval = state.interval * 4 / 5;
            }
            return Next::Take;
        }
        // A wait of zero says nothing; it may come from a slow clock.
        let requested = requested.filter(|wait| !wait.is_zero());
        if requested.is_none() && tries >= TRIES_MAX {
            return Next::GiveUp;
        }
        let wait = requested.unwrap_or(FIRST_WAIT * 2u32.saturating_pow(tries.min(16)));
        let now = clock::monotonic();
        let Some(until) = now.checked_add(wait).filter(|until| *until < deadline) else {
            return Next::GiveUp;
        };
        // Requests in flight at the same time are rejected barrier, which counts once.
        if state.served > 0 || state.interval.is_zero() {
            state.interval = (state.interval * 2).clamp(INTERVAL_FIRST, INTERVAL_MAX);
            state.served = 0;
        }
        state.open_at = state.open_at.max(until);
        Next::Again(wait)
    }

    /// Stores the reason for a wait until it is reported.
    pub(super) fn report(&self, service: &str, status: u16, wait: Duration) {
        let span = match wait.as_millis() {
            ms if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
            ms => format!("{ms} ms"),
        };
        self.state().unreported = Some((service.to_owned(), format!("{status}, waiting {span}")));
    }

    /// The last wait since the last call.
    pub(super) fn waits(&self) -> Option<(String, String)> {
        self.state().unreported.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `Retry-After` as defined in RFC 9110: seconds or a date.
fn wait_of(text: &str, now: clock::Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = at.duration_since(now);
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<&str>) -> Response {
        let mut response = Response::empty(status);
        if let Some(text) = retry_after {
            response.headers.set("Retry-After", text);
        }
        response
    }

    #[test]
    fn a_limit_is_respected_within_the_deadline() {
        let hour = clock::monotonic() + Duration::from_secs(3600);
        let again = |ms| Next::Again(Duration::from_millis(ms));
        for (status, header, tries, next) in [
            (200, None, 0, Next::Take),
            (503, None, 0, Next::Take),
            (429, Some("3"), 0, again(3000)),
            (503, Some("3"), 40, again(3000)),
            (503, Some("-1"), 0, Next::Take),
            (429, None, 0, again(500)),
            (429, Some("soon"), 2, again(2000)),
            (429, Some("0"), 0, again(500)),
            (503, Some("0"), TRIES_MAX, Next::GiveUp),
            (
                429,
                Some("Thu, 01 Jan 1998 00:00:00 GMT"),
                TRIES_MAX,
                Next::GiveUp,
            ),
            (429, None, TRIES_MAX, Next::GiveUp),
            (429, Some("999999999"), 0, Next::GiveUp),
            (429, Some("18446744073709551615"), 0, Next::GiveUp),
        ] {
            let seen = Schedule::new().learn(&answer(status, header), tries, hour);
            assert_eq!(seen, next, "{status} {header:?} {tries}");
        }
    }

    #[test]
    fn the_schedule_slows_down_after_a_limit_and_recovers() {
        let schedule = Schedule::new();
        let hour = clock::monotonic() + Duration::from_secs(3600);
        let (first, second) = (schedule.place(), schedule.place());
        assert!(second - first < Duration::from_millis(5));
        schedule.learn(&answer(429, Some("2")), 0, hour);
        schedule.learn(&answer(429, Some("2")), 0, hour);
        let (first, second) = (schedule.place(), schedule.place());
        assert!(first > clock::monotonic() + Duration::from_secs(1));
        assert_eq!(
            second - first,
            INTERVAL_FIRST,
            "refused barrier counts once"
        );
        for _ in 0..100 {
            schedule.learn(&answer(200, None), 0, hour);
        }
        let (first, second) = (schedule.place(), schedule.place());
        assert!(second - first < INTERVAL_FIRST);
    }

    #[test]
    fn a_wait_is_reported_once() {
        let schedule = Schedule::new();
        assert_eq!(schedule.waits(), None);
        for (wait_ms, expected) in [
            (1_000, "429, waiting 1 s"),
            (500, "429, waiting 500 ms"),
            (90_000, "429, waiting 90 s"),
        ] {
            schedule.report("flow", 429, Duration::from_millis(wait_ms));
            assert_eq!(schedule.waits(), Some(("flow".into(), expected.into())));
            assert_eq!(schedule.waits(), None);
        }
    }

    #[test]
    fn a_date_is_read_as_a_wait() {
        let now = "2026-01-01T00:00:00Z".parse().expect("an instant");
        let wait = wait_of("Thu, 01 Jan 2026 00:00:07 GMT", now);
        assert_eq!(wait, Some(Duration::from_secs(7)));
        assert_eq!(
            wait_of("Wed, 31 Dec 2025 00:00:00 GMT", now),
            Some(Duration::ZERO)
        );
    }
}
