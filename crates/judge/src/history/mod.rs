//! The history of a scenario: its resources, the writes that change them, and the lists that contain them.
//!
//! - Built once per scenario from evidence of any source; it contains no verdicts and no rules.
//! - A request is bound to resources by the segments of its path that are parameters. The last segment is the resource, if
//!   the operation names one; the others are its parents. A composed key consists of parents only.
//! - Each segment is looked up as a key, then as an alternative name within its parent.
//! - A write whose resource is unknown may concern any resource of its type.

mod build;
mod changes;
mod existence;
mod identity;
mod lists;
mod observations;
mod writes;

pub(crate) use changes::can_reach;
pub use changes::{Change, is_equivalent};
pub use identity::{Resource, ResourceId, Resources};
pub use lists::{FIRST, ITSELF, Item, List, NEXT, PREVIOUS};
pub use observations::{Appearance, Moment, Observation, PathBinding};
pub use writes::{NamedValue, Origin, Outcome, Write, WriteId};

use std::collections::BTreeMap;
use std::time::Duration;

/// How long lists and other representations may lag behind an action. The documents define no limit. The runner waits
/// slightly longer before it reads again.
pub const SETTLE: Duration = Duration::from_secs(10);

/// How long a resource is taken to stay unchanged without an action, apart from expiry times that a rule states.
/// Afterwards, time alone may have changed it.
pub const STEADY: Duration = Duration::from_secs(3_600);

/// The history of a scenario.
#[derive(Debug, Default)]
pub struct History<'a> {
    pub resources: Resources<'a>,
    /// All writes in order.
    pub writes: Vec<Write<'a>>,
    /// Lists with their pages, in order.
    pub lists: Vec<List<'a>>,
    /// The resources in the path of each exchange.
    pub path_bindings: Vec<PathBinding<'a>>,
    /// The moment of each exchange.
    pub moments: Vec<Moment>,
    /// Whether the scenario is the only writer.
    pub alone: bool,
    /// Whether people and devices may have acted unobserved.
    pub has_unobserved_actions: bool,
    /// Resource types that people and devices may have ended unobserved.
    pub ended_unseen: Vec<&'a str>,
    /// For each resource type, the types whose creation may end it.
    pub ended_by: BTreeMap<&'a str, &'a [String]>,
}
