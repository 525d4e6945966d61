//! Comparison of two rulebooks, event versions, representations, OpenAPI documents, revisions of the documents, or stored
//! runs.
//!
//! Every change has coordinates; the table in [`coordinates`] lists what it breaks. Cited lines are not compared,
//! because they change with every revision without any effect.

mod affected;
mod canonical;
mod check;
mod compat;
mod content;
pub mod coordinates;
mod declared;
mod documents;
mod events;
mod history;
mod judged_again;
mod keywords;
mod ledger;
mod matrix;
mod merge;
mod openapi;
mod operations;
mod place;
mod released;
mod render;
mod repeat;
mod runs;
mod schemas;
mod statements;
mod texts;
mod witness;

pub use affected::{affected_payload, affected_scenarios, reworded_scenarios};
pub use check::{DEFAULT_LEVEL, EventsCheck};
pub use compat::{
    Documents, LevelVerdict, Refusal, Relation, relations, relations_between, versions_of,
};
pub use content::Content;
pub use coordinates::{Action, Class, Coordinates, Direction, What};
pub use declared::{Declaration, DeclaredFile};
pub use documents::{Classes, documents};
pub use events::{NextVersion, next_version};
pub use history::{Trend, TrendRule, TrendRun, history, trend};
pub use judged_again::{JudgedAgain, judge_again};
pub use ledger::{Change, Subject};
pub use matrix::{MatrixPair, VersionMatrix};
pub use merge::{MergeError, merge};
pub use openapi::openapi;
pub use released::{Released, ReleasedError};
pub use render::Format;
pub use repeat::repeated;
pub use runs::{RunDifference, runs};
pub use witness::Witness;

use conformant_base::sorted::SortedMap;
use conformant_rulebook::{Compatibility, Rulebook};
use ledger::Ledger;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Version of the format of `diff --report json=`.
pub const SCHEMA_VERSION: u32 = 1;

/// Difference between an older and a newer version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the older version.
    pub old: String,
    /// Name of the newer version.
    pub new: String,
    /// Number of changes of each class; one that breaks both sides counts in both.
    pub summary: SortedMap<&'static str, usize>,
    /// The changes by id.
    pub changes: Vec<Change>,
    /// Declarations without a matching change.
    pub stale: Vec<String>,
    /// Affected scenarios of the newer rulebook, by id.
    pub scenarios: Vec<String>,
    /// Affected fixtures, by path.
    pub fixtures: Vec<String>,
    /// Payloads that were valid and are now invalid, with the broken rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// Compatibility levels that were asked for. They replace the classes as the gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelVerdict>,
}

/// Why two versions cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    #[error("unknown representation `{name}`{help}")]
    NoSuchKind {
        name: String,
        /// A similar name.
        help: String,
    },
}

/// Why versions of an event cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error(
        "{} needs an earlier and a later version of one event, such as MessageSent/4 MessageSent/5; found {old} and {new}",
        level.word()
    )]
    NotOneEvent {
        level: Compatibility,
        old: String,
        new: String,
    },
    #[error("unknown event `{name}`; {help}")]
    NoSuchEvent {
        name: String,
        /// A similar name, or all names.
        help: String,
    },
}

/// Compares two rulebooks.
pub fn rulebooks(old: (&str, &Rulebook), new: (&str, &Rulebook)) -> Comparison {
    let mut ledger = Ledger::default();
    schemas::kinds(&mut ledger, old.1, new.1);
    operations::compare(&mut ledger, old.1, new.1);
    statements::compare(&mut ledger, old.1, new.1);
    events::compare(&mut ledger, old.1, new.1);
    Comparison::of(old.0, new.0, ledger)
}

/// Compares two representations of one rulebook, such as two versions of an event: `MessageSent/4`,
/// `events/MessageSent/5`, `chat/channel`, `chat/channel-v3`.
pub fn kinds(rulebook: &Rulebook, old: &str, new: &str) -> Result<Comparison, CompareError> {
    let (before, after) = (kind_named(rulebook, old)?, kind_named(rulebook, new)?);
    let mut ledger = Ledger::default();
    schemas::kind(&mut ledger, (rulebook, &before), (rulebook, &after));
    Ok(Comparison::of(&before, &after, ledger))
}

/// Compares two self-contained JSON Schemas of data in that direction.
pub fn schemas(old: &Value, new: &Value, direction: Direction) -> Comparison {
    let mut ledger = Ledger::default();
    let place = |pointer: &str| Subject::representation("schema", "schema", pointer);
    schemas::alone(&mut ledger, (old, new), direction, &place);
    Comparison::of("old", "new", ledger)
}

/// The full name of a representation; `events/` may be omitted.
pub fn kind_named(rulebook: &Rulebook, name: &str) -> Result<String, CompareError> {
    let event = format!("events/{name}");
    if let Some(kind) = [name, &event]
        .into_iter()
        .find(|n| rulebook.kinds.contains_key(*n))
    {
        return Ok(kind.to_owned());
    }
    let known: Vec<&str> = rulebook
        .kinds
        .keys()
        .flat_map(|kind| [Some(kind.as_str()), kind.strip_prefix("events/")])
        .flatten()
        .collect();
    let near = conformant_base::text::did_you_mean(name, &known);
    Err(CompareError::NoSuchKind {
        name: name.to_owned(),
        help: near.map_or_else(String::new, |near| format!("; did you mean `{near}`?")),
    })
}

/// The name of an event; `events/` may precede it.
pub fn event_named(rulebook: &Rulebook, name: &str) -> Result<String, EventError> {
    let bare = name.strip_prefix("events/").unwrap_or(name);
    let known = compat::events_of(rulebook);
    if known.contains(bare) {
        return Ok(bare.to_owned());
    }
    let known: Vec<&str> = known.into_iter().collect();
    let help = conformant_base::text::did_you_mean(bare, &known).map_or_else(
        || format!("expected one of {}", known.join(", ")),
        |near| format!("did you mean {near}?"),
    );
    Err(EventError::NoSuchEvent {
        name: name.to_owned(),
        help,
    })
}

impl Comparison {
    fn of(old: &str, new: &str, ledger: Ledger) -> Self {
        let changes = ledger.finish();
        let mut summary: SortedMap<&'static str, usize> =
            Class::ALL.iter().map(|class| (class.words(), 0)).collect();
        for class in changes.iter().flat_map(|change| &change.class) {
            *summary.entry(class.words()).or_default() += 1;
        }
        Self {
            schema_version: SCHEMA_VERSION,
            old: old.to_owned(),
            new: new.to_owned(),
            summary,
            changes,
            ..Self::default()
        }
    }

    /// Names of the representations of changes, older and newer.
    pub fn kinds(&self) -> BTreeSet<&str> {
        let named = self.changes.iter().filter_map(|change| {
            let Subject::Representation { old, new, .. } = &change.subject else {
                return None;
            };
            Some([old.as_str(), new.as_str()])
        });
        named.flatten().collect()
    }

    /// Undeclared breaking changes.
    pub fn undeclared(&self) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(|change| change.is_breaking() && change.declared.is_none())
    }

    /// Whether the gate fails: a level is refused or, without levels, a breaking change is undeclared; or a declaration
    /// is stale.
    pub fn fails(&self) -> bool {
        let breaks = match self.levels.is_empty() {
            true => self.undeclared().next().is_some(),
            false => self.levels.iter().any(|level| !level.holds),
        };
        breaks || !self.stale.is_empty()
    }

    /// Judges levels with the relations of the newer version to earlier ones, oldest first.
    pub fn judge_levels(
        &mut self,
        levels: &[Compatibility],
        relations: &[Relation],
        declarations: &[Declaration],
    ) {
        let is_declared = |id: &str| declarations.iter().any(|d| d.id == id);
        let verdict =
            |level: &Compatibility| LevelVerdict::new(*level, &self.new, relations, &is_declared);
        self.levels = levels.iter().map(verdict).collect();
        let all = || {
            relations
                .iter()
                .flat_map(|r| r.lost.iter().chain(&r.gained))
        };
        self.stale.retain(|id| !all().any(|one| one.change == *id));
    }
}
