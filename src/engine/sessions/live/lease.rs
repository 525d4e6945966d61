//! What a target has only one of, held for one story at a time among all runs that use the target.

use super::target::Live;
use crate::clock;
use crate::engine::sessions::hooks;
use serde_json::{Value, json};
use std::time::Duration;

/// For how long what the target has only one of is asked, and how often.
const LEASE_SECONDS: u64 = 120;
const LEASE_EVERY: Duration = Duration::from_millis(100);

/// The hook that is asked for it.
const LEASE: &str = "lease";

/// What the target has only one of, held for one story; given back when dropped.
pub(super) struct Lease<'a> {
    live: &'a Live,
}

impl Live {
    /// Waits until no other run holds what a story needs alone. Where the target has no such hook,
    /// nothing is known of other runs.
    pub(super) fn lease(&self) -> Option<Lease<'_>> {
        let hook = self.settings.hooks.get(LEASE)?;
        loop {
            let arguments = json!({"owner": self.owner, "seconds": LEASE_SECONDS});
            let answer =
                hooks::carry_out(hook, &arguments, &self.client, &self.interrupted).ok()?;
            if answer.get("granted").and_then(Value::as_bool) != Some(false) {
                return Some(Lease { live: self });
            }
            if self.is_over() {
                return None;
            }
            clock::sleep(LEASE_EVERY);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(hook) = self.live.settings.hooks.get(LEASE) {
            let arguments = json!({"owner": self.live.owner, "seconds": 0});
            // Not given back it runs out by itself.
            let _ = hooks::carry_out(hook, &arguments, &self.live.client, &self.live.interrupted);
        }
    }
}
