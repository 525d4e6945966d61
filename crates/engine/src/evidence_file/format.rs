//! Format of evidence files: a header line, one line per scenario, and a final line about the end of the run.

use crate::Planned;
use crate::VoidService;
use crate::stop::Stop;
use conformant_judge::evidence::Evidence;
use conformant_rulebook::Rulebook;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the format.
pub(super) const FORMAT: &str = "conformant-evidence";
pub(super) const FORMAT_VERSION: u32 = 2;

/// The first line: the properties of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub format: String,
    pub format_version: u32,
    /// Version of the program that wrote it.
    pub tool_version: String,
    /// Digest of the rulebook.
    pub rulebook: String,
    pub seed: u64,
    /// Base URL by service.
    pub targets: BTreeMap<String, String>,
    /// Services whose scenarios were selected.
    pub services: BTreeSet<String>,
    /// Number of selected scenarios.
    pub scenarios: usize,
    /// When the run began; `None` against the reference, where the same seed gives the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// The command of a run of live targets, so that findings of its evidence can be repeated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub invocation: String,
}

impl Head {
    /// The header of a run that is about to begin.
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
            invocation: String::new(),
        }
    }
}

/// One scenario: its evidence and the facts that only the run knew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvidenceRecord {
    /// Documents of complete answers are left out.
    pub evidence: Evidence,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Why its evidence decides nothing: another client changed the target, a service stopped answering, or a name was reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// A service that rejected it and had accepted no request yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned_away: Option<String>,
    pub seconds: f64,
    /// Indexes of statements about the document of their exchange, which is not stored twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_answers: Vec<usize>,
    /// Rules that failed in it during the run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub broken: BTreeSet<String>,
}

/// The last line: how the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Number of scenarios before this line.
    pub stories: usize,
    /// Whether everything ran.
    pub complete: bool,
    /// The services whose answers are not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<VoidService>,
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    #[serde(rename = "story", alias = "scenario")]
    Scenario(Box<EvidenceRecord>),
    End(Tail),
}
