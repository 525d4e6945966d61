//! Check of all events: the declared level of every version, and the lock of released versions.

use super::compat::{Documents, LevelVerdict, events_of, relations, versions_of};
use super::declared::Declaration;
use super::released::Released;
use super::render::lines_of;
use conformant_base::text::{self, safe_json};
use conformant_rulebook::{Compatibility, Rulebook};
use serde::Serialize;
use std::collections::BTreeSet;

/// Level of an event that declares none, as in registries.
pub const DEFAULT_LEVEL: Compatibility = Compatibility::Backward;

/// Result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventsCheck {
    /// Number of events.
    pub events: usize,
    /// The verdict of every version, the first one of each event included.
    pub versions: Vec<LevelVerdict>,
    /// Violations of the lock.
    pub problems: Vec<String>,
    /// Declarations without a matching change.
    pub stale: Vec<String>,
    /// Versions that are neither released nor named by an event type.
    pub unused: Vec<String>,
    #[serde(skip)]
    pub contradictions: Vec<String>,
}

impl EventsCheck {
    /// Judges each version by the level of its event, against the version before it or all before it.
    pub fn new(
        rulebook: &Rulebook,
        released: &Released,
        declarations: &[Declaration],
        documents: &Documents<'_>,
    ) -> Self {
        let mut check = Self {
            problems: released.problems(rulebook),
            unused: released.unused(rulebook),
            ..Self::default()
        };
        let declared: BTreeSet<&str> = declarations.iter().map(|d| d.id.as_str()).collect();
        let mut stale = declared.clone();
        let events = events_of(rulebook);
        check.events = events.len();
        for event in events {
            let level = rulebook.compatibility.get(event).copied();
            for version in versions_of(rulebook, event) {
                let relations = relations(rulebook, &version, None, documents);
                for relation in &relations {
                    let refusals = relation.lost.iter().chain(&relation.gained);
                    for one in refusals {
                        stale.remove(one.change.as_str());
                    }
                    check
                        .contradictions
                        .extend(relation.contradictions.iter().cloned());
                }
                let is_declared = |id: &str| declared.contains(id);
                let level = level.unwrap_or(DEFAULT_LEVEL);
                check
                    .versions
                    .push(LevelVerdict::new(level, &version, &relations, &is_declared));
            }
        }
        check.stale = stale.into_iter().map(str::to_owned).collect();
        check
    }

    /// Whether an event breaks its level, or the lock or a declaration is wrong.
    pub fn fails(&self) -> bool {
        let is_refused = self.versions.iter().any(|version| !version.holds);
        is_refused || !self.problems.is_empty() || !self.stale.is_empty()
    }

    /// Lines for people.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for version in &self.versions {
            let standing = if version.holds { "ok" } else { "FAIL" };
            let mut of_version = version.lines().into_iter();
            lines.extend(
                of_version
                    .next()
                    .map(|first| format!("{standing:<5} {first}")),
            );
            lines.extend(of_version.map(|line| format!("     {line}")));
        }
        lines.extend(
            self.problems
                .iter()
                .map(|problem| format!("FAIL  {problem}")),
        );
        let stale = self.stale.iter();
        lines
            .extend(stale.map(|id| format!("STALE {id} is declared, but not a change: remove it")));
        let unused = self.unused.iter();
        lines.extend(unused.map(|version| {
            format!("note  {version} is not in use: events/asyncapi.yaml does not name it")
        }));
        let refused = self
            .versions
            .iter()
            .filter(|version| !version.holds)
            .count();
        lines.push(format!(
            "{}, {}: {refused} without their level, {} of released versions",
            text::count(self.events, "event"),
            text::count(self.versions.len(), "version"),
            text::count(self.problems.len(), "problem")
        ));
        lines_of(&lines)
    }

    /// The result as JSON.
    ///
    /// # Panics
    /// Never: it has no maps.
    pub fn json(&self) -> String {
        safe_json(self).expect("it has no maps")
    }
}
