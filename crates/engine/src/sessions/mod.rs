//! The worlds that scenarios talk to: the reference in process or behind a socket, and live
//! targets.

mod hooks;
mod live;
mod offline;
mod track;

pub use hooks::{ask, hooks_of_reference};
pub use live::{Live, LiveError, Manner};
pub use offline::{Mangle, Network, ORIGIN, Offline};
pub use track::{Passed, Rerun, Track};

use sha2::{Digest, Sha256};

/// What the identifiers of an offline world are drawn from.
pub fn seed_of_world(seed: u64, scenario: &str) -> u64 {
    conformant_net::server::world_seed(seed, &short_name(scenario))
}

/// A short name that follows from a scenario's id and can stand in a path.
fn short_name(scenario: &str) -> String {
    Sha256::digest(scenario.as_bytes())
        .iter()
        .take(12)
        .map(|b| format!("{b:02x}"))
        .collect()
}
