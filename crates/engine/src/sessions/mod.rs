//! Sessions: the reference in process or behind a socket, and live targets.

mod hooks;
mod live;
mod offline;
mod replay;

pub use hooks::{ask, hooks_of_reference};
pub use live::{EXPIRED, Live, LiveError, LiveOptions};
pub use offline::{Mutate, Network, ORIGIN, Offline};
pub use replay::{KnownOutcomes, Replay, ReplayLog};

use conformant_base::text;
use sha2::{Digest, Sha256};

/// Seed of the identifiers of an offline instance.
pub fn instance_seed(seed: u64, scenario: &str) -> u64 {
    conformant_net::server::world_seed(seed, &short_name(scenario))
}

/// A short name derived from a scenario's id, for use in a path.
fn short_name(scenario: &str) -> String {
    text::hex(Sha256::digest(scenario).into_iter().take(12))
}
