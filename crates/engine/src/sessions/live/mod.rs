//! Live targets: requests over the network, configured hooks, real time.
//!
//! Other clients may use the target at the same time. The hook `lease` reserves its exclusive resources;
//! [`Session::disturbed`](crate::session::Session::disturbed) reports a clock that another client moved.
//!
//! - `target`: the resources of a run. `scenario`: the session of one scenario.
//! - `slots`, `phone_numbers`, `holders`, `lease`, `pacing`, `pace`, `rate_limit`, `waits`, `in_flight`,
//!   `admission`, `health`: what scenarios share.
//! - `clock`, `clock_offset`, `barrier`: the target's time.

mod admission;
mod barrier;
mod clock;
mod clock_offset;
mod health;
mod holders;
mod in_flight;
mod lease;
mod pace;
mod pacing;
mod phone_numbers;
mod race;
mod rate_limit;
mod scenario;
mod slots;
mod target;
#[cfg(test)]
mod tests;
mod waits;

pub use health::EXPIRED;
pub(super) use rate_limit::wait_before_retry;
pub use target::{Live, LiveError, LiveOptions};
