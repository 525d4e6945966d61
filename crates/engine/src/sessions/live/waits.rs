//! Counts the scenarios that wait, for the progress of a run.

use conformant_base::clock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often scenarios that wait are reported if their number stays the same.
const REPORTED_EVERY: Duration = Duration::from_secs(1);

/// Numbers of scenarios that wait, by what they wait for.
#[derive(Debug, Default)]
pub(super) struct WaitCounts {
    callbacks: AtomicUsize,
    results: AtomicUsize,
    /// When they were reported last, and how many.
    reported: Mutex<Option<(Instant, [usize; 2])>>,
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

impl WaitCounts {
    /// Counts a scenario that waits for callbacks.
    pub(super) fn for_callbacks(&self) -> CountedWait<'_> {
        CountedWait::new(&self.callbacks)
    }

    /// Counts a scenario that waits to read an event or a state again.
    pub(super) fn for_results(&self) -> CountedWait<'_> {
        CountedWait::new(&self.results)
    }

    /// The scenarios that wait now in words: once a second, and if their number has changed.
    pub(super) fn report(&self) -> Option<String> {
        let counts = [&self.callbacks, &self.results].map(|count| count.load(Ordering::Relaxed));
        let now = clock::monotonic();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_reported = reported.is_some_and(|(at, before)| {
            before == counts && now.saturating_duration_since(at) < REPORTED_EVERY
        });
        if counts == [0, 0] || is_reported {
            return None;
        }
        *reported = Some((now, counts));
        let named = counts
            .into_iter()
            .zip(["callbacks", "events or another state"]);
        let parts = named.filter_map(|(count, what)| match count {
            0 => None,
            1 => Some(format!("1 scenario waits for {what}")),
            n => Some(format!("{n} scenarios wait for {what}")),
        });
        Some(parts.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_that_wait_are_reported_as_long_as_they_wait() {
        let waits = WaitCounts::default();
        let first = waits.for_callbacks();
        let one = Some("1 scenario waits for callbacks".to_owned());
        assert_eq!(waits.report(), one);
        assert_eq!(waits.report(), None, "within a second");
        *waits.reported.lock().expect("no thread panics") = None;
        assert_eq!(waits.report(), one);
        let others = (waits.for_callbacks(), waits.for_results());
        let words = "2 scenarios wait for callbacks, 1 scenario waits for events or another state";
        assert_eq!(waits.report().as_deref(), Some(words));
        drop((first, others));
        assert_eq!(waits.report(), None);
    }
}
