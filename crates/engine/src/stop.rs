//! Reasons why a scenario ended early.
//!
//! The judge decides what a reason means for the target. The conversion of each error is defined next to that error.

pub use conformant_record::ENDED_BEFORE;
use serde::{Deserialize, Serialize};

/// Prefix of the reason where the set-up of a scenario failed.
pub const SET_UP_FAILED: &str = "set-up failed";

/// How the reason begins where a link leads to another origin; the advice follows.
pub(super) const ANOTHER_ORIGIN: &str = "it leads to another origin";

/// Why a scenario ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// It does not apply to this target, with the reason.
    NotApplicable(String),
    /// It could not be continued, with the reason; nothing is reported.
    Inconclusive(String),
    /// A step was rejected or accepted against its expectation. The judge reports the rule.
    Unexpected,
    /// The run was interrupted.
    Interrupted,
    /// The target could not be reached at all.
    Unreachable(String),
    /// A configured hook failed.
    HookFailed(String),
    /// The configuration names a resource that the target does not have.
    Misconfigured(String),
    /// Our own error: scenario or configuration.
    Error(String),
    /// A step needs a value that a broken rule withholds. The scenario continues without the step.
    Masked(String),
}
