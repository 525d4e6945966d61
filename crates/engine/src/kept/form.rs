//! What stands in a file of evidence, line by line: first what the run was, then its stories, last how it ended.

use crate::Planned;
use crate::stop::Stop;
use conformant_judge::evidence::Evidence;
use conformant_rulebook::Rulebook;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What such a file calls itself.
pub(super) const FORMAT: &str = "conformant-evidence";
pub(super) const FORMAT_VERSION: u32 = 2;

/// What the run was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// That it is such a file.
    pub format: String,
    /// By which form.
    pub format_version: u32,
    /// The program that wrote it.
    pub tool_version: String,
    /// The rulebook of the run.
    pub rulebook: String,
    /// What the run drew its names from.
    pub seed: u64,
    /// Base URL by service.
    pub targets: BTreeMap<String, String>,
    /// Services whose scenarios were selected.
    pub services: BTreeSet<String>,
    /// Scenarios that were selected.
    pub scenarios: usize,
    /// When the run began; nothing against the reference, where the same seed gives the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
}

impl Head {
    /// Of a run that is about to begin.
    pub fn of(rulebook: &Rulebook, planned: &[Planned<'_>], seed: u64) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            rulebook: rulebook.digest().to_owned(),
            seed,
            targets: BTreeMap::new(),
            services: planned.iter().map(|p| p.service.name.clone()).collect(),
            scenarios: planned.len(),
            begun: None,
        }
    }
}

/// One story with what the run knew of it beside what was observed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    /// All that was observed. Documents of answers are left out where the answer is whole.
    pub evidence: Evidence,
    /// Why it went no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Why it says nothing at all: somebody else disturbed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// A service that refused it, and had let in nobody yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned_away: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// Statements about the document of their exchange: it is not written twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_answers: Vec<usize>,
    /// Rules that the run found broken in it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub broken: BTreeSet<String>,
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Stories that stand in front of this.
    pub stories: usize,
    /// Whether all was run.
    pub complete: bool,
    /// A service that let nobody in, for which the run was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
}

/// A line behind the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Story(Box<Played>),
    End(Tail),
}
