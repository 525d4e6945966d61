//! Writes: requests and hooks that change resources, with the values that they name.

use super::identity::ResourceId;
use super::observations::Moment;
use crate::evidence::{Evidence, HookCall};
use conformant_rulebook::{Action, Echo};
use serde_json::Value;

/// Index of a write.
pub type WriteId = usize;

/// One change of a resource.
#[derive(Debug)]
pub struct Write<'a> {
    pub origin: Origin,
    /// That of the operation or of the effect of the hook. A creation whose response has a known resource is
    /// [`Action::FindsOrMakes`].
    pub does: Action,
    /// The resource type of what it changes; `None` if it may be any.
    pub kind: Option<&'a str>,
    /// The resource that it changes or creates, if known.
    pub resource: Option<ResourceId>,
    /// The parents in its path.
    pub parents: Vec<Option<ResourceId>>,
    /// The values that it names.
    pub named: Vec<NamedValue<'a>>,
    pub outcome: Outcome,
    pub moment: Moment,
}

/// A value that a write names, and where it is echoed.
#[derive(Clone, Debug)]
pub struct NamedValue<'a> {
    /// The parameter or argument.
    pub parameter: &'a str,
    pub value: &'a Value,
    /// Where and how it is echoed.
    pub echo: &'a Echo,
}

/// The cause of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An index into the exchanges.
    Exchange(usize),
    /// An index into the events.
    Hook(usize),
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Rejected without a change.
    Refused,
    /// Unknown, such as without a response: it may have had its effect or not.
    Unknown,
}

impl Write<'_> {
    /// The exchange of the write.
    pub fn exchange(&self) -> Option<usize> {
        match self.origin {
            Origin::Exchange(index) => Some(index),
            Origin::Hook(_) => None,
        }
    }

    /// Whether it is a request, and this one.
    pub fn is_by(&self, exchange: Option<usize>) -> bool {
        exchange.is_some() && self.exchange() == exchange
    }

    /// The call, if it is one of a hook.
    pub fn hook<'e>(&self, evidence: &'e Evidence) -> Option<&'e HookCall> {
        match self.origin {
            Origin::Exchange(_) => None,
            Origin::Hook(event) => evidence.hook(event),
        }
    }

    /// Whether it may have changed this resource.
    pub fn may_touch(&self, id: ResourceId, kind: &str) -> bool {
        if self.outcome == Outcome::Refused {
            return false;
        }
        match self.resource {
            Some(resource) => resource == id,
            None => self.kind.is_none_or(|own| own == kind),
        }
    }
}
