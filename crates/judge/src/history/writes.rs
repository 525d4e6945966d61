//! Writes: requests and hooks that change something, with what they name.

use super::identity::ThingId;
use super::sights::When;
use conformant_rulebook::{Does, Echo};
use serde_json::Value;

/// Index of a write.
pub type WriteId = usize;

/// Something that was done to things.
#[derive(Debug)]
pub struct Write<'a> {
    /// What did it.
    pub origin: Origin,
    /// What it does.
    pub does: Does,
    /// The kind of what it is done to.
    pub kind: &'a str,
    /// What it was done to, or what it brought; nothing where that is not known.
    pub thing: Option<ThingId>,
    /// What its path names before the thing.
    pub parents: Vec<Option<ThingId>>,
    /// Values that it names.
    pub named: Vec<Named<'a>>,
    /// What came of it.
    pub outcome: Outcome,
    /// When.
    pub when: When,
}

/// A value that a write names, and where it comes back.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// The parameter or argument.
    pub parameter: &'a str,
    /// As it was sent.
    pub value: &'a Value,
    /// Where and how it comes back.
    pub echo: &'a Echo,
}

/// What did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An index into the exchanges.
    Exchange(usize),
    /// An index into the events.
    Hook(usize),
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused, and nothing was done.
    Refused,
    /// Nobody knows: what it may have done is open for the rest of the case.
    Unknown,
}

impl Write<'_> {
    /// The exchange that did it.
    pub fn exchange(&self) -> Option<usize> {
        match self.origin {
            Origin::Exchange(index) => Some(index),
            Origin::Hook(_) => None,
        }
    }

    /// Whether it may have touched this thing of that kind.
    pub fn may_touch(&self, id: ThingId, kind: &str) -> bool {
        if self.outcome == Outcome::Refused {
            return false;
        }
        match self.thing {
            Some(thing) => thing == id,
            None => self.kind == kind || self.kind.is_empty(),
        }
    }
}
