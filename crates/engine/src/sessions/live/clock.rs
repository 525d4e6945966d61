//! The target's clock: which scenarios move it, its offset, and changes by other clients.

use super::clock_offset::ClockOffset;
use super::scenario::LiveScenario;
use super::target::Live;
use crate::Planned;
use crate::session::HookFault;
use crate::settings::Hook;
use crate::template::wait_of;
use conformant_base::clock;
use conformant_base::parallel::lock;
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use serde_json::{Value, json};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Waits of at least this length move the target's clock if there is a hook for it. Shorter ones take real time.
pub(super) const ADVANCE_FROM: Duration = Duration::from_secs(5);
/// The same for the stated waits of a scenario that moves the clock, because all others wait for it. Polls take real
/// time, because the target needs it for its work.
pub(super) const ADVANCE_FURTHER_FROM: Duration = Duration::from_secs(1);

/// The offset beyond which another client must have moved the clock; times may be rounded.
pub(super) const CLOCK_OFF_MS: i64 = 1_000;
/// Maximum number of requests for a precise time.
const TIME_ASKED_MAX: usize = 3;

impl Live {
    /// Whether waits of this scenario move the clock.
    pub(super) fn moves_the_clock(&self, planned: &Planned<'_>) -> bool {
        let long = |text: &str| wait_of(text).is_none_or(|wait| wait >= ADVANCE_FROM);
        self.settings.hooks.contains_key(ADVANCE_CLOCK)
            && planned.any_step(&|step| step.wait().is_some_and(long))
    }

    /// The offset of the target's clock. A call of the hook keeps this lock until its answer is stored: otherwise the
    /// answer of a concurrent call could be stored in between, and the two would seem to contradict each other.
    pub(super) fn ahead(&self) -> MutexGuard<'_, ClockOffset> {
        lock(&self.ahead)
    }

    /// Asks for the offset of the target's clock; `None` if the hook does not report the time.
    pub(super) fn query_clock(&self) -> Option<ClockOffset> {
        let hook = self.settings.hooks.get(ADVANCE_CLOCK)?;
        let nothing = json!({"seconds": 0});
        let mut ahead = self.ahead();
        let ask = || {
            self.await_hook_slot();
            let asked = clock::now();
            // A hook failure is reported when a scenario uses it.
            let answer = self.call(hook, &nothing).ok()?;
            ClockOffset::of_answer(&answer, (asked, clock::now()))
        };
        let mut measured = ask()?;
        for _ in 1..TIME_ASKED_MAX {
            if measured.is_narrow() {
                break;
            }
            measured = measured.and_then(ask()?);
        }
        *ahead = ahead.and_then(measured);
        Some(measured)
    }
}

impl LiveScenario<'_> {
    /// Advances the target's clock by the hook, and the offset with it.
    pub(super) fn advance_clock(&self, hook: &Hook, arguments: &Value) -> Result<Value, HookFault> {
        let by_ms = advance_ms(arguments);
        let mut ahead = self.live.ahead();
        let asked = clock::now();
        let answer = self.spending(|s| &mut s.hooks, || self.live.call(hook, arguments))?;
        let measured = ClockOffset::of_answer(&answer, (asked, clock::now()));
        if measured.is_some_and(|measured| ahead.stood_still(by_ms, measured)) {
            let by = Duration::from_millis(by_ms.unsigned_abs());
            let why = format!("`now` in its answer did not grow by the requested {by:?}");
            return Err(HookFault::Failed(why));
        }
        if by_ms > 0 && measured.is_none() {
            self.live.is_clock_unseen.store(true, Ordering::Relaxed);
        }
        self.ahead_ms.set(self.ahead_ms.get().saturating_add(by_ms));
        let moved = ahead.moved(by_ms);
        *ahead = measured.map_or(moved, |measured| moved.and_then(measured));
        self.update_clock(*ahead);
        Ok(answer)
    }

    /// Records by how much another client moved the target's clock, and continues from there.
    pub(super) fn update_clock(&self, there: ClockOffset) {
        let off_ms = there.off_ms(self.ahead_ms.get());
        self.off_ms.set(self.off_ms.get().max(off_ms));
        if off_ms > CLOCK_OFF_MS {
            self.ahead_ms.set(there.ms());
        }
    }
}

/// The requested advance in milliseconds.
fn advance_ms(arguments: &Value) -> i64 {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let by = Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default();
    i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}
