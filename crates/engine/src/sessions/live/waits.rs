//! What the scenarios of a live run wait for, as the progress of the run shows it.

use conformant_base::clock;
use conformant_base::parallel::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often scenarios that wait are reported if their number stays the same.
const REPORTED_EVERY: Duration = Duration::from_secs(1);

/// Scenarios that wait, by what they wait for, and the last wait for a rate limit.
#[derive(Debug, Default)]
pub(super) struct Waits {
    callbacks: AtomicUsize,
    results: AtomicUsize,
    time: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last wait for a rate limit that was not taken yet: the service and the reason.
    rate_limit: Option<(String, String)>,
    /// When the numbers of scenarios were taken last, and those numbers.
    counted: Option<(Instant, [usize; 3])>,
}

/// Counts a scenario that waits, until it is dropped.
pub(super) struct CountedWait<'s>(&'s AtomicUsize);

impl<'s> CountedWait<'s> {
    fn new(count: &'s AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Waits {
    /// Stores a wait for a rate limit until it is taken.
    pub(super) fn store_rate_limit(&self, service: &str, status: u16, wait: Duration) {
        let span = match wait.as_millis() {
            ms if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
            ms => format!("{ms} ms"),
        };
        let wait = (service.to_owned(), format!("{status}, waiting {span}"));
        lock(&self.state).rate_limit = Some(wait);
    }

    /// Counts a scenario that waits for callbacks.
    pub(super) fn for_callbacks(&self) -> CountedWait<'_> {
        CountedWait::new(&self.callbacks)
    }

    /// Counts a scenario that waits to read an event or a state again.
    pub(super) fn for_results(&self) -> CountedWait<'_> {
        CountedWait::new(&self.results)
    }

    /// Counts a scenario that lets real time pass.
    pub(super) fn for_time(&self) -> CountedWait<'_> {
        CountedWait::new(&self.time)
    }

    /// The last wait for a rate limit since the last call; or else the scenarios that wait now, once a second and if their
    /// number has changed. As service, which is empty for scenarios, and reason.
    pub(super) fn take(&self) -> Option<(String, String)> {
        let mut state = lock(&self.state);
        if let Some(wait) = state.rate_limit.take() {
            return Some(wait);
        }
        let counts =
            [&self.callbacks, &self.results, &self.time].map(|count| count.load(Ordering::Relaxed));
        let now = clock::monotonic();
        let is_taken = state.counted.is_some_and(|(at, before)| {
            before == counts && now.saturating_duration_since(at) < REPORTED_EVERY
        });
        if counts == [0, 0, 0] || is_taken {
            return None;
        }
        state.counted = Some((now, counts));
        let named =
            counts
                .into_iter()
                .zip(["callbacks", "events or another state", "time to pass"]);
        let parts = named.filter_map(|(count, what)| match count {
            0 => None,
            1 => Some(format!("1 scenario waits for {what}")),
            n => Some(format!("{n} scenarios wait for {what}")),
        });
        Some((String::new(), parts.collect::<Vec<_>>().join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_that_wait_are_reported_as_long_as_they_wait() {
        let waits = Waits::default();
        let first = waits.for_callbacks();
        let one = Some((String::new(), "1 scenario waits for callbacks".to_owned()));
        assert_eq!(waits.take(), one);
        assert_eq!(waits.take(), None, "within a second");
        lock(&waits.state).counted = None;
        assert_eq!(waits.take(), one);
        let others = (waits.for_callbacks(), waits.for_results());
        let words = "2 scenarios wait for callbacks, 1 scenario waits for events or another state";
        assert_eq!(waits.take(), Some((String::new(), words.to_owned())));
        drop((first, others));
        let last = waits.for_time();
        let words = "1 scenario waits for time to pass";
        assert_eq!(waits.take(), Some((String::new(), words.to_owned())));
        drop(last);
        assert_eq!(waits.take(), None);
    }

    #[test]
    fn a_rate_limit_is_reported_once_and_before_scenarios() {
        let waits = Waits::default();
        for (wait_ms, expected) in [
            (1_000, "429, waiting 1 s"),
            (500, "429, waiting 500 ms"),
            (90_000, "429, waiting 90 s"),
        ] {
            let counted = waits.for_callbacks();
            waits.store_rate_limit("flow", 429, Duration::from_millis(wait_ms));
            let expected = Some(("flow".to_owned(), expected.to_owned()));
            assert_eq!(waits.take(), expected);
            drop(counted);
            assert_eq!(waits.take(), None);
        }
    }
}
