//! How far a target's clock is ahead of ours, as far as its hook tells: between two bounds, for what it tells was true at
//! some instant while it was asked, and may be cut to whole seconds.

use conformant_base::clock::Timestamp;
use serde_json::Value;

/// By how much whoever counts whole seconds may tell less than it is.
const WHOLE_SECOND_MS: i64 = 1_000;
/// What is narrower than this is not worth asking again for: a whole second, and a quick answer.
const NARROW_MS: i64 = 1_250;

/// At least and at most so many milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ahead {
    least: i64,
    most: i64,
}

impl Ahead {
    /// By the `now` of what `advance_clock` answered between these instants of our clock; nothing where it has none.
    pub(super) fn told(answer: &Value, (asked, came): (Timestamp, Timestamp)) -> Option<Self> {
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

    /// After it was moved by so much.
    pub(super) fn moved(self, by_ms: i64) -> Self {
        Self {
            least: self.least.saturating_add(by_ms),
            most: self.most.saturating_add(by_ms),
        }
    }

    /// What both say; where they contradict each other, the clock was moved meanwhile, and it is the newer.
    pub(super) fn and_then(self, newer: Self) -> Self {
        let both = Self {
            least: self.least.max(newer.least),
            most: self.most.min(newer.most),
        };
        if both.least <= both.most { both } else { newer }
    }

    /// The best guess.
    pub(super) fn ms(self) -> i64 {
        self.least.midpoint(self.most)
    }

    /// By how much a guess is off for certain.
    pub(super) fn off_ms(self, guess: i64) -> i64 {
        (self.least - guess).max(guess - self.most).max(0)
    }

    /// Whether asking again would hardly tell more.
    pub(super) fn is_narrow(self) -> bool {
        self.most - self.least <= NARROW_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(now: &str, asked: &str, came: &str) -> Ahead {
        let at = |text: &str| text.parse().unwrap();
        Ahead::told(&json!({"now": now}), (at(asked), at(came))).unwrap()
    }

    #[test]
    fn what_is_told_narrows_what_is_known_and_a_contradiction_replaces_it() {
        let slow = told(
            "2026-01-01T00:00:10Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:05Z",
        );
        assert_eq!((slow.least, slow.most), (5_000, 11_000));
        assert!(!slow.is_narrow());
        let quick = told(
            "2026-01-01T00:00:16Z",
            "2026-01-01T00:00:06Z",
            "2026-01-01T00:00:06.1Z",
        );
        assert_eq!((quick.least, quick.most), (9_900, 11_000));
        assert!(quick.is_narrow());
        assert_eq!(slow.and_then(quick), quick);
        let moved = quick.moved(60_000);
        assert_eq!((moved.off_ms(70_450), moved.off_ms(10_450)), (0, 59_450));
        assert_eq!(quick.and_then(moved), moved, "somebody moved it");
        assert_eq!(moved.ms(), 70_450);
    }

    #[test]
    fn who_tells_milliseconds_has_cut_nothing() {
        let fine = told(
            "2026-01-01T00:00:10.5Z",
            "2026-01-01T00:00:10Z",
            "2026-01-01T00:00:10.1Z",
        );
        assert_eq!((fine.least, fine.most), (400, 501));
    }
}
