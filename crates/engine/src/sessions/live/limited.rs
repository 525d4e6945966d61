//! A target that limits how often it is asked: all stories wait as it says, and go on.
//!
//! Deliberately sends a refused request again whatever its method: a request that was not served for
//! its frequency has changed nothing.

use conformant_base::clock;
use conformant_base::http::Response;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a request is sent again where the target does not say when to.
const TRIES_MAX: u32 = 5;
/// The first of those waits; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Between two requests, once a target was found to limit.
const INTERVAL_FIRST: Duration = Duration::from_millis(5);
const INTERVAL_MAX: Duration = Duration::from_secs(2);

/// The schedule that all stories of a run share.
#[derive(Debug)]
pub(super) struct Schedule {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Nothing is sent before.
    open_at: Instant,
    /// What lies between two requests; nothing until a target limits.
    interval: Duration,
    /// Requests since the last refusal.
    served: u32,
    /// The last wait that nobody has been told of: the service, and why.
    told: Option<(String, String)>,
}

/// What to do after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is an answer.
    Take,
    /// Send it again once the schedule lets it go; the wait that was asked for.
    Again(Duration),
    /// The target limits for longer than the run may take.
    GiveUp,
}

impl Schedule {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                open_at: clock::monotonic(),
                interval: Duration::ZERO,
                served: 0,
                told: None,
            }),
        }
    }

    /// Takes the next place in the schedule: the moment at which to send.
    pub(super) fn place(&self) -> Instant {
        let mut state = self.state();
        let at = state.open_at.max(clock::monotonic());
        state.open_at = at + state.interval;
        at
    }

    /// Learns from an answer to the `tries`-th sending of a request.
    pub(super) fn learn(&self, response: &Response, tries: u32, deadline: Instant) -> Next {
        /// Served requests after which the schedule dares more.
        const EASE_AFTER: u32 = 20;
        let mut state = self.state();
        let told = response.headers.get("Retry-After");
        let told = told.and_then(|text| wait_of(text, clock::now()));
        let limits = response.status == 429 || (response.status == 503 && told.is_some());
        if !limits {
            state.served += 1;
            if state.served.is_multiple_of(EASE_AFTER) && !state.interval.is_zero() {
                state.interval = state.interval * 4 / 5;
            }
            return Next::Take;
        }
        // Whoever says "at once" for ever says nothing, as does one whose clock is behind.
        let told = told.filter(|wait| !wait.is_zero());
        if told.is_none() && tries >= TRIES_MAX {
            return Next::GiveUp;
        }
        let wait = told.unwrap_or(FIRST_WAIT * 2u32.saturating_pow(tries.min(16)));
        let now = clock::monotonic();
        let Some(until) = now.checked_add(wait).filter(|until| *until < deadline) else {
            return Next::GiveUp;
        };
        // Those that were under way together are refused together: that counts once.
        if state.served > 0 || state.interval.is_zero() {
            state.interval = (state.interval * 2).clamp(INTERVAL_FIRST, INTERVAL_MAX);
            state.served = 0;
        }
        state.open_at = state.open_at.max(until);
        Next::Again(wait)
    }

    /// Keeps why stories wait, for whoever shows it.
    pub(super) fn tell(&self, service: &str, status: u16, wait: Duration) {
        let span = match wait.as_millis() {
            ms if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
            ms => format!("{ms} ms"),
        };
        self.state().told = Some((service.to_owned(), format!("{status}, waiting {span}")));
    }

    /// The last wait since this was last asked.
    pub(super) fn waits(&self) -> Option<(String, String)> {
        self.state().told.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `Retry-After` as RFC 9110 writes it: seconds, or the moment itself.
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
    fn a_limit_is_waited_for_as_told_within_the_deadline() {
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
    fn everybody_waits_and_the_schedule_slows_down_and_eases() {
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
            "refused together counts once"
        );
        for _ in 0..100 {
            schedule.learn(&answer(200, None), 0, hour);
        }
        let (first, second) = (schedule.place(), schedule.place());
        assert!(second - first < INTERVAL_FIRST);
    }

    #[test]
    fn whoever_shows_the_run_is_told_once_why_it_waits() {
        let schedule = Schedule::new();
        assert_eq!(schedule.waits(), None);
        for (wait_ms, told) in [
            (1_000, "429, waiting 1 s"),
            (500, "429, waiting 500 ms"),
            (90_000, "429, waiting 90 s"),
        ] {
            schedule.tell("flow", 429, Duration::from_millis(wait_ms));
            assert_eq!(schedule.waits(), Some(("flow".into(), told.into())));
            assert_eq!(schedule.waits(), None);
        }
    }

    #[test]
    fn a_moment_is_as_good_as_seconds() {
        let now = "2026-01-01T00:00:00Z".parse().expect("an instant");
        let wait = wait_of("Thu, 01 Jan 2026 00:00:07 GMT", now);
        assert_eq!(wait, Some(Duration::from_secs(7)));
        assert_eq!(
            wait_of("Wed, 31 Dec 2025 00:00:00 GMT", now),
            Some(Duration::ZERO)
        );
    }
}
