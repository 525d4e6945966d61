//! Why a scenario went no further than it did. Whom that accuses is not decided here.

use super::request::BuildError;
use super::session::HookFault;
use super::template::TemplateError;
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

impl Stop {
    /// What a hook that brought no result means for the story.
    pub(super) fn of_hook(name: &str, fault: &HookFault) -> Self {
        match fault {
            HookFault::Unsupported => Self::NotApplicable(format!("hook {name}: {fault}")),
            HookFault::Failed(why) => Self::HookFailed(format!("hook {name} failed: {why}")),
        }
    }
}

impl From<TemplateError> for Stop {
    fn from(error: TemplateError) -> Self {
        match error {
            TemplateError::Missing(ref name) if name.starts_with("target.") => {
                Self::NotApplicable(format!("not configured: {}", configuration_key(name)))
            }
            TemplateError::Missing(name) => Self::Inconclusive(format!(
                "nothing that came so far shows `{name}`, with which the story goes on"
            )),
            TemplateError::Masked { rule, .. } => Self::Masked(rule),
            TemplateError::Malformed(why) => Self::Error(why),
        }
    }
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Unconfigured { .. } | BuildError::NoCredentials(_) => {
                Self::NotApplicable(error.to_string())
            }
            BuildError::PathParameter(_)
            | BuildError::UnknownParameter(_)
            | BuildError::Unsendable { .. }
            | BuildError::Bearer(_) => Self::Error(error.to_string()),
        }
    }
}

/// Where the configuration has what scenarios read as `target.SERVICE.KEY`.
fn configuration_key(name: &str) -> String {
    name.strip_prefix("target.people.").map_or_else(
        || format!("targets.{}", name.trim_start_matches("target.")),
        |key| format!("people.{key}"),
    )
}
