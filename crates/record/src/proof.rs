//! Mutation testing of a run: how many mutations of its own evidence the rules report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Result of mutating a run's evidence, one place at a time, and judging it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// `rules`: each rule was tried; `sample`: random mutations, too.
    pub mode: String,
    /// Passed rules that a mutation breaks.
    pub proven: usize,
    /// Rules that no mutation breaks: counted as not judged.
    pub vacuous: usize,
    /// Passed rules without an applicable mutation: they stay passed.
    pub unproven: usize,
    /// Mutations for the rules of each service.
    pub services: BTreeMap<String, Changes>,
    /// Mutations for each rule.
    pub rules: BTreeMap<String, Changes>,
    /// Random mutations, with `sample`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// Mutations, applied one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Mutations applied.
    pub made: usize,
    /// Mutations after which any finding was reported.
    pub noticed: usize,
    /// Mutations that broke the rule itself; for a service, any of its rules.
    #[serde(default)]
    pub broke: usize,
}

/// A random sample of all possible mutations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Mutations applied.
    pub made: usize,
    /// Mutations after which any finding was reported.
    pub noticed: usize,
    /// Limit per scenario; a scenario with more places is only sampled.
    pub per_story: usize,
    /// By service.
    pub services: BTreeMap<String, Changes>,
    /// Places with surviving mutants, the most first.
    pub blind: Vec<Blind>,
    /// Further such places.
    #[serde(default)]
    pub more: usize,
}

/// A place in responses with surviving mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blind {
    /// The operation, as `SERVICE/ID`; for other payloads the kind.
    pub of: String,
    /// Pointer into the response, with `*` for any item.
    pub pointer: String,
    /// Surviving mutations.
    pub changes: Vec<String>,
    /// Mutations applied there.
    pub made: usize,
    /// Mutations reported there.
    pub noticed: usize,
    /// What would catch them: a hook, a key, a scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would: Vec<String>,
}

impl Changes {
    /// Adds the counts of another proof.
    pub fn add(&mut self, other: Self) {
        self.made += other.made;
        self.noticed += other.noticed;
        self.broke += other.broke;
    }
}

/// A fraction with two digits, `0.87`, truncated: less than all is never shown as `1.00`.
pub fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let hundredths = part * 100 / whole;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
