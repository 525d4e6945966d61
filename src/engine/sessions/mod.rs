//! The worlds that scenarios talk to: the reference in process or behind a socket, and live
//! targets.

mod admission;
mod command;
mod hooks;
mod limited;
mod live;
mod offline;
mod persons;
mod slots;

pub use command::CommandError;
pub(super) use command::printed;
pub use hooks::{ask, hooks_of_reference};
pub use live::{Live, Manner};
pub use offline::{Consulted, Mangle, Network, Offline};

use sha2::{Digest, Sha256};

/// A short name that follows from a scenario's id and can stand in a path.
fn short_name(scenario: &str) -> String {
    Sha256::digest(scenario.as_bytes())
        .iter()
        .take(12)
        .map(|b| format!("{b:02x}"))
        .collect()
}
