//! The history of a case: which things it saw, what was done to them, and which lists showed them.
//! Built once per case, from evidence of any origin; concludes nothing.
//!
//! A request is bound to its thing by its path: the last name there is the thing's, those before it
//! its parents'. Each is looked up as a key, then as a name within its parent; what is bound to
//! nothing is judged by nothing. Nothing here knows a rule.

mod changes;
mod existence;
mod identity;
mod lists;
mod reading;
mod sights;
mod writes;

pub use changes::{Change, same};
pub use identity::{Thing, ThingId, Things};
pub use lists::{FIRST, ITSELF, Item, List, NEXT, PREVIOUS};
pub use sights::{Bound, Shows, Sight, When};
pub use writes::{Named, Origin, Outcome, Write, WriteId};

use std::collections::BTreeMap;
use std::time::Duration;

/// How long lists and other faces of a thing may stay behind what was done to it; no document says
/// when they follow.
pub const SETTLE: Duration = Duration::from_secs(10);

/// How long a thing stays as it was seen where nobody does anything to it: what time alone may bring, as
/// the end of a request, is then due.
pub const STEADY: Duration = Duration::from_secs(3_600);

/// What a case saw of things.
#[derive(Debug, Default)]
pub struct History<'a> {
    /// Everything that was named.
    pub things: Things<'a>,
    /// All that changed something, in order.
    pub writes: Vec<Write<'a>>,
    /// Lists, each with its pages, in order.
    pub lists: Vec<List<'a>>,
    /// For each exchange, what its path names.
    pub bound: Vec<Bound<'a>>,
    /// For each exchange, when it was.
    pub moments: Vec<When>,
    /// Whether nobody else acts on the target.
    pub alone: bool,
    /// Whether people and devices may have acted unseen.
    pub deeds_unseen: bool,
    /// Types of resources that people and devices may have ended unseen.
    pub ended_unseen: Vec<&'a str>,
    /// By kind, the kinds whose making may end things of it.
    pub ended_by: BTreeMap<&'a str, &'a [String]>,
}
