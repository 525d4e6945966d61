//! Offset of the target's clock as an interval, estimated from the hook's answers.
//!
//! An answer was true at some instant between request and response, and may be truncated to whole seconds.

use conformant_base::clock::Timestamp;
use serde_json::Value;

/// The largest error of a time in whole seconds.
const WHOLE_SECOND_MS: i64 = 1_000;
/// An interval up to this width is precise enough: a whole second and a quick answer.
const NARROW_MS: i64 = 1_250;

/// The smallest and largest possible offset in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockOffset {
    least: i64,
    most: i64,
}

impl ClockOffset {
    /// Computed from `now` in an answer of `advance_clock` that was received between these instants; `None` without
    /// `now`.
    pub(super) fn of_answer(answer: &Value, (asked, came): (Timestamp, Timestamp)) -> Option<Self> {
        let now: Timestamp = answer.get("now")?.as_str()?.parse().ok()?;
        let now = now.as_millisecond();
        let cut = if now % WHOLE_SECOND_MS == 0 {
            WHOLE_SECOND_MS
        } else {
            1
        };
        Some(Self {
            least: now - came.as_millisecond(),
            most: now + cut - asked.as_millisecond(),
        })
    }

    /// The offset after an advance of the target's clock.
    pub(super) fn moved(self, by_ms: i64) -> Self {
        Self {
            least: self.least.saturating_add(by_ms),
            most: self.most.saturating_add(by_ms),
        }
    }

    /// Whether the clock was not moved although this was requested: the answer fits the offset before it, and not the one after.
    pub(super) fn stood_still(self, by_ms: i64, newer: Self) -> bool {
        let overlaps = |other: Self| other.least <= newer.most && newer.least <= other.most;
        overlaps(self) && !overlaps(self.moved(by_ms))
    }

    /// The intersection with a newer interval. If there is none, the clock was moved and the newer one holds.
    pub(super) fn and_then(self, newer: Self) -> Self {
        let both = Self {
            least: self.least.max(newer.least),
            most: self.most.min(newer.most),
        };
        if both.least <= both.most { both } else { newer }
    }

    /// The midpoint.
    pub(super) fn ms(self) -> i64 {
        self.least.midpoint(self.most)
    }

    /// The smallest possible error of a guess.
    pub(super) fn off_ms(self, guess: i64) -> i64 {
        (self.least - guess).max(guess - self.most).max(0)
    }

    /// Whether another request would hardly improve it.
    pub(super) fn is_narrow(self) -> bool {
        self.most - self.least <= NARROW_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_clock_that_ignores_the_request_is_recognized() {
        let before = ClockOffset {
            least: -200,
            most: 900,
        };
        let still = ClockOffset {
            least: -100,
            most: 1_000,
        };
        let moved = ClockOffset {
            least: 10_900,
            most: 11_900,
        };
        assert!(before.stood_still(11_000, still));
        assert!(!before.stood_still(11_000, moved));
        assert!(!before.stood_still(0, still));
        // Another client moved it, too.
        assert!(!before.stood_still(11_000, moved.moved(60_000)));
    }

    fn offset(now: &str, asked: &str, came: &str) -> ClockOffset {
        let at = |text: &str| text.parse().unwrap();
        ClockOffset::of_answer(&json!({"now": now}), (at(asked), at(came))).unwrap()
    }

    #[test]
    fn an_answer_narrows_the_interval_and_a_contradiction_replaces_it() {
        let slow = offset(
            "2026-01-01T00:00:10Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:05Z",
        );
        assert_eq!((slow.least, slow.most), (5_000, 11_000));
        assert!(!slow.is_narrow());
        let quick = offset(
            "2026-01-01T00:00:16Z",
            "2026-01-01T00:00:06Z",
            "2026-01-01T00:00:06.1Z",
        );
        assert_eq!((quick.least, quick.most), (9_900, 11_000));
        assert!(quick.is_narrow());
        assert_eq!(slow.and_then(quick), quick);
        let moved = quick.moved(60_000);
        assert_eq!((moved.off_ms(70_450), moved.off_ms(10_450)), (0, 59_450));
        assert_eq!(quick.and_then(moved), moved, "the clock was moved");
        assert_eq!(moved.ms(), 70_450);
    }

    #[test]
    fn a_time_with_milliseconds_is_not_truncated() {
        let fine = offset(
            "2026-01-01T00:00:10.5Z",
            "2026-01-01T00:00:10Z",
            "2026-01-01T00:00:10.1Z",
        );
        assert_eq!((fine.least, fine.most), (400, 501));
    }
}
