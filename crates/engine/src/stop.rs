//! Why a scenario went no further than it did. Whom that accuses is not decided here, nor what
//! error means which: that stands beside each error.

use serde::{Deserialize, Serialize};

/// How a reason begins where the ground of a scenario could not be laid.
pub const SET_UP_FAILED: &str = "set-up failed";

/// Why a scenario went no further.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// It does not apply here, and why.
    NotApplicable(String),
    /// It could not be carried on, and why; nobody is accused.
    Inconclusive(String),
    /// A step was refused or accepted against its expectation; the judge says by which rule.
    Unexpected,
    /// The run was interrupted.
    Interrupted,
    /// The target could not be reached at all.
    Unreachable(String),
    /// A hook that is configured did not do what it is there for.
    HookFailed(String),
    /// Our own fault: scenario or configuration.
    Error(String),
    /// A step needs what a broken rule withholds; the story goes on without it.
    Masked(String),
}
