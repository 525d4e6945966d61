//! What the scenarios of a live run wait for, as the progress of the run shows it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Scenarios that wait for callbacks, and the last wait for a rate limit.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The last wait for a rate limit that was not taken yet: the service and the reason.
    rate_limit: Mutex<Option<(String, String)>>,
    /// Number of scenarios that wait for callbacks.
    listeners: AtomicUsize,
    /// Whether a wait for callbacks has begun since the last call of [`Waits::take`].
    has_new_listener: AtomicBool,
}

/// A scenario that waits for callbacks.
pub(super) struct Listener<'w>(&'w AtomicUsize);

impl Drop for Listener<'_> {
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
        let mut stored = self
            .rate_limit
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *stored = Some(wait);
    }

    /// Counts a scenario that waits for callbacks, until the result is dropped.
    pub(super) fn count_listener(&self) -> Listener<'_> {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        self.has_new_listener.store(true, Ordering::Relaxed);
        Listener(&self.listeners)
    }

    /// The last wait for a rate limit since the last call; or else the number of scenarios that wait for callbacks now, if
    /// such a wait has begun since then. As service, which is empty for callbacks, and reason.
    pub(super) fn take(&self) -> Option<(String, String)> {
        let rate_limit = self
            .rate_limit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if rate_limit.is_some() {
            return rate_limit;
        }
        let is_new = self.has_new_listener.swap(false, Ordering::Relaxed);
        is_new
            .then(|| self.listeners.load(Ordering::Relaxed))
            .and_then(|n| match n {
                0 => None,
                1 => Some((String::new(), "1 scenario waits for callbacks".to_owned())),
                n => Some((String::new(), format!("{n} scenarios wait for callbacks"))),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_callbacks_is_reported_unless_a_rate_limit_is() {
        let waits = Waits::default();
        let listener = waits.count_listener();
        let (_, why) = waits.take().expect("it waits");
        assert_eq!(why, "1 scenario waits for callbacks");
        let second = waits.count_listener();
        let (_, why) = waits.take().expect("both wait");
        assert_eq!(why, "2 scenarios wait for callbacks");
        waits.store_rate_limit("flow", 429, Duration::from_secs(1));
        let (service, _) = waits.take().expect("it waits");
        assert_eq!(service, "flow");
        drop((listener, second));
        assert_eq!(waits.take(), None);
    }

    #[test]
    fn a_wait_is_reported_once() {
        let waits = Waits::default();
        assert_eq!(waits.take(), None);
        for (wait_ms, expected) in [
            (1_000, "429, waiting 1 s"),
            (500, "429, waiting 500 ms"),
            (90_000, "429, waiting 90 s"),
        ] {
            waits.store_rate_limit("flow", 429, Duration::from_millis(wait_ms));
            assert_eq!(waits.take(), Some(("flow".into(), expected.into())));
            assert_eq!(waits.take(), None);
        }
    }
}
