//! The target's clock: which stories move it, how far it is ahead of ours, and whether somebody else has moved it.

use super::ahead::Ahead;
use super::story::LiveStory;
use super::target::Live;
use crate::Planned;
use crate::sessions::hooks;
use crate::template::wait_of;
use conformant_base::clock;
use serde_json::{Value, json};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// The hook that moves it.
pub(super) const ADVANCE_CLOCK: &str = "advance_clock";

/// Waits from this length on move the target's clock, where there is a hook for it; shorter ones
/// pass in real time.
pub(super) const ADVANCE_FROM: Duration = Duration::from_secs(5);
/// The same for the waits that a story states, where it moves the clock anyway: all others wait for it. What is asked
/// again until it is there is asked in real time, for that is what a target takes for its work.
pub(super) const ADVANCE_FURTHER_FROM: Duration = Duration::from_secs(1);

/// How far the target's clock may be off for certain before somebody else has moved it: it may be rounded.
pub(super) const CLOCK_OFF_MS: i64 = 1_000;
/// How often it is asked while answers take too long to tell much.
const TIME_ASKED_MAX: usize = 3;

impl Live {
    /// Whether waits of this story move the clock.
    pub(super) fn moves_the_clock(&self, planned: &Planned<'_>) -> bool {
        let long = |text: &str| wait_of(text).is_none_or(|wait| wait >= ADVANCE_FROM);
        self.settings.hooks.contains_key(ADVANCE_CLOCK)
            && planned.any_step(&|step| step.wait().is_some_and(long))
    }

    pub(super) fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks how far the target's clock is ahead; nothing where it does not say.
    pub(super) fn ask_the_time(&self) -> Option<Ahead> {
        let hook = self.settings.hooks.get(ADVANCE_CLOCK)?;
        let nothing = json!({"seconds": 0});
        let ask = || {
            let asked = clock::now();
            // A hook that fails now says so where a story needs it.
            let answer = hooks::carry_out(hook, &nothing, &self.client, &self.interrupted).ok()?;
            Ahead::told(&answer, (asked, clock::now()))
        };
        let mut told = ask()?;
        for _ in 1..TIME_ASKED_MAX {
            if told.is_narrow() {
                break;
            }
            told = told.and_then(ask()?);
        }
        let mut ahead = self.ahead();
        *ahead = ahead.and_then(told);
        Some(told)
    }
}

impl LiveStory<'_> {
    /// Notes by how much somebody else has moved the target's clock, and goes on from there.
    pub(super) fn look_at_the_clock(&self, there: Ahead) {
        let off_ms = there.off_ms(self.ahead_ms.get());
        self.off_ms.set(self.off_ms.get().max(off_ms));
        if off_ms > CLOCK_OFF_MS {
            self.ahead_ms.set(there.ms());
        }
    }
}

/// How far `advance_clock` was asked to move the time, in milliseconds.
pub(super) fn asked_ms(arguments: &Value) -> i64 {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let by = Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default();
    i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}
