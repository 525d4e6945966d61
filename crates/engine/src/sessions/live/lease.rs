//! What a target has only one of, held for one story at a time among all runs that use the target.

use super::target::Live;
use crate::sessions::hooks;
use conformant_base::clock;
use serde_json::{Value, json};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For how long what the target has only one of is asked.
const LEASE_SECONDS: u64 = 120;
/// When it is asked again while it is held.
pub(super) const LEASE_RENEWED: Duration = Duration::from_secs(LEASE_SECONDS / 4);
/// How often while others hold it.
const LEASE_EVERY: Duration = Duration::from_millis(100);

/// The hook that is asked for it.
const LEASE: &str = "lease";

/// What the target has only one of, held for a story of this run; given back with the last of those who share it.
pub(super) struct Lease<'a> {
    live: &'a Live,
}

/// For how many stories it is held, and since when.
#[derive(Debug, Default)]
pub(super) struct Leased(Option<(usize, Instant)>);

impl Live {
    /// Waits until no other run holds what a story needs alone. Where the target has no such hook,
    /// nothing is known of other runs.
    pub(super) fn lease(&self) -> Option<Lease<'_>> {
        let hook = self.settings.hooks.get(LEASE)?;
        let mut leased = self.leased();
        let (holders, since) = leased.0.unwrap_or((0, clock::monotonic()));
        // The same owner is granted it again, for as long as before.
        if holders > 0 && since.elapsed() < LEASE_RENEWED {
            leased.0 = Some((holders + 1, since));
            return Some(Lease { live: self });
        }
        loop {
            let arguments = json!({"owner": self.owner, "seconds": LEASE_SECONDS});
            let answer =
                hooks::carry_out(hook, &arguments, &self.client, &self.interrupted).ok()?;
            if answer.get("granted").and_then(Value::as_bool) != Some(false) {
                leased.0 = Some((holders + 1, clock::monotonic()));
                return Some(Lease { live: self });
            }
            if self.is_over() {
                return None;
            }
            clock::sleep(LEASE_EVERY);
        }
    }

    /// Who asks or gives back has it until the answer came, so that neither overtakes the other.
    fn leased(&self) -> MutexGuard<'_, Leased> {
        self.leased.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Leased {
    /// As if it had been held for so much longer.
    pub(super) fn age(&mut self, by: Duration) {
        if let Some((_, since)) = &mut self.0 {
            *since -= by;
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut leased = self.live.leased();
        leased.0 = leased
            .0
            .and_then(|(holders, since)| (holders > 1).then(|| (holders - 1, since)));
        if leased.0.is_some() {
            return;
        }
        if let Some(hook) = self.live.settings.hooks.get(LEASE) {
            let arguments = json!({"owner": self.live.owner, "seconds": 0});
            // Not given back it runs out by itself.
            let _ = hooks::carry_out(hook, &arguments, &self.live.client, &self.live.interrupted);
        }
    }
}
