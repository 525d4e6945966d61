//! Lease on the target's exclusive resources, held by one run at a time.

use super::target::Live;
use crate::session::HookFault;
use crate::stop::Stop;
use conformant_base::clock;
use conformant_base::parallel::lock;
use serde_json::{Value, json};

use std::time::{Duration, Instant};

/// Duration of a lease.
const LEASE_SECONDS: u64 = 120;
/// When a lease is renewed.
pub(super) const LEASE_RENEWED: Duration = Duration::from_secs(LEASE_SECONDS / 4);
/// Interval between requests while another run holds it.
const LEASE_EVERY: Duration = Duration::from_millis(100);

/// When a wait for a lease is reported.
const LEASE_REPORTED_AFTER: Duration = Duration::from_secs(30);

/// The hook that grants leases.
const LEASE: &str = "lease";

/// A share of the lease. The lease ends with its last share.
pub(super) struct Lease<'a> {
    live: &'a Live,
}

/// Number of holders, and the time of the last grant.
#[derive(Debug, Default)]
pub(super) struct Leased(Option<(usize, Instant)>);

impl Live {
    /// Waits until no other run holds the lease. Without the hook, other runs are unknown. Fails with the reason why the
    /// scenario cannot run.
    pub(super) fn lease(&self) -> Result<Option<Lease<'_>>, Stop> {
        let Some(hook) = self.settings.hooks.get(LEASE) else {
            return Ok(None);
        };
        // Until an answer arrives, so that requests and releases do not overtake one another.
        let mut leased = lock(&self.leased);
        let (holders, since) = leased.0.unwrap_or((0, clock::monotonic()));
        // A renewal by the same owner is always granted.
        if holders > 0 && since.elapsed() < LEASE_RENEWED {
            leased.0 = Some((holders + 1, since));
            return Ok(Some(Lease { live: self }));
        }
        let mut was_refused = false;
        let began = clock::monotonic();
        loop {
            let arguments = json!({"owner": self.owner, "seconds": LEASE_SECONDS});
            self.await_hook_slot();
            match self.call(hook, &arguments) {
                Ok(answer) if answer.get("granted").and_then(Value::as_bool) != Some(false) => {
                    leased.0 = Some((holders + 1, clock::monotonic()));
                    return Ok(Some(Lease { live: self }));
                }
                Ok(_) => was_refused = true,
                Err(HookFault::Unsupported) => return Ok(None),
                Err(_) if self.is_over() => {}
                Err(fault) => return Err(Stop::of_hook(LEASE, &fault)),
            }
            if self.is_over() {
                return Err(Stop::Inconclusive(match was_refused {
                    true => format!(
                        "hook {LEASE}: not granted until the run ended, because another owner holds it"
                    ),
                    false => "the run ended before".to_owned(),
                }));
            }
            if began.elapsed() >= LEASE_REPORTED_AFTER {
                self.lease_reported.call_once(|| {
                    (self.notify)(&format!(
                        "hook {LEASE}: not granted for {LEASE_REPORTED_AFTER:?}, because another owner holds it; the run waits"
                    ));
                });
            }
            clock::sleep(LEASE_EVERY);
        }
    }
}

#[cfg(test)]
impl Leased {
    /// Makes the lease older. For tests.
    pub(super) fn age(&mut self, by: Duration) {
        if let Some((_, since)) = &mut self.0 {
            *since -= by;
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut leased = lock(&self.live.leased);
        leased.0 = leased
            .0
            .and_then(|(holders, since)| (holders > 1).then(|| (holders - 1, since)));
        if leased.0.is_some() {
            return;
        }
        let arguments = json!({"owner": self.live.owner, "seconds": 0});
        self.live.clean_up(LEASE, &arguments);
    }
}
