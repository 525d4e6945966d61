//! Compatibility levels, named as schema registries name them.
//!
//! - Backward: the newer version accepts every document that the older one accepts.
//! - Forward: the older version accepts every document that the newer one accepts.
//! - Transitive: against every earlier version, not only the last one.

use serde::Serialize;

/// A compatibility level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Compatibility {
    Backward,
    BackwardTransitive,
    Forward,
    ForwardTransitive,
    Full,
    FullTransitive,
    None,
}

impl Compatibility {
    pub const ALL: [Self; 7] = [
        Self::Backward,
        Self::BackwardTransitive,
        Self::Forward,
        Self::ForwardTransitive,
        Self::Full,
        Self::FullTransitive,
        Self::None,
    ];

    /// Spelling of the registries.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Backward => "BACKWARD",
            Self::BackwardTransitive => "BACKWARD_TRANSITIVE",
            Self::Forward => "FORWARD",
            Self::ForwardTransitive => "FORWARD_TRANSITIVE",
            Self::Full => "FULL",
            Self::FullTransitive => "FULL_TRANSITIVE",
            Self::None => "NONE",
        }
    }

    /// The level of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == name)
    }

    /// Whether the newer version has to accept what older ones accept.
    pub fn is_backward(self) -> bool {
        !matches!(self, Self::Forward | Self::ForwardTransitive | Self::None)
    }

    /// Whether older versions have to accept what the newer one accepts.
    pub fn is_forward(self) -> bool {
        !matches!(self, Self::Backward | Self::BackwardTransitive | Self::None)
    }

    /// Whether every earlier version counts.
    pub fn is_transitive(self) -> bool {
        matches!(
            self,
            Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive
        )
    }
}
