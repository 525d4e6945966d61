//! Time: the only module that reads the clock or waits.
//!
//! Deadlines use the monotonic clock; messages use [`Timestamp`]. A [`VirtualClock`] moves only when
//! advanced, so a day-long expiry costs no time.

#![expect(
    clippy::disallowed_methods,
    reason = "the one home of the real clock and of waiting"
)]

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

pub use jiff::Timestamp;

/// Default start of a virtual clock: 2026-01-01T00:00:00Z.
pub const VIRTUAL_START_MS: i64 = 1_767_225_600_000;

/// The real time now.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A point on the monotonic clock, for deadlines and durations.
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Blocks this thread in real time.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// A clock that moves only when advanced; shared between threads.
#[derive(Debug)]
pub struct VirtualClock {
    unix_ms: AtomicI64,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self {
            unix_ms: AtomicI64::new(VIRTUAL_START_MS),
        }
    }
}

impl VirtualClock {
    /// A clock that starts at this instant, in whole milliseconds.
    pub fn at(instant: Timestamp) -> Self {
        Self {
            unix_ms: AtomicI64::new(instant.as_millisecond()),
        }
    }

    pub fn now(&self) -> Timestamp {
        from_unix_ms(self.unix_ms.load(Ordering::SeqCst))
    }

    pub fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX / 4);
        self.unix_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

/// Milliseconds since 1970, clamped to the representable range.
pub fn from_unix_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// `2026-01-01T00:00:00Z`: whole seconds in GMT, which date parsers of clients expect.
pub fn iso_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
