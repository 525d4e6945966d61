//! `rules/<topic>.yaml`: rules about one exchange, a history of exchanges, or a story.
//!
//! Only the shape of the data; a predicate's parameters and what it means are in
//! `judge/predicates`, one file each.

use conformant_base::source::Document;
use conformant_record::{Basis, Level};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One file of rules.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// The rules, in the document's order.
    pub rules: Vec<Rule>,
}

/// A source as written: the document may be left out where the folder has one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRef {
    /// Defaults to the document that the folder's `service.yaml` names.
    pub document: Option<Document>,
    /// The heading the lines stand under, as the document spells it.
    pub section: String,
    /// Line numbers, counted from 1.
    pub lines: Vec<u32>,
}

/// One written rule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Kebab-case path that names what is ruled: `flow/executions/most-recent-first`.
    pub id: String,
    /// How binding it is.
    #[serde(default = "must")]
    pub level: Level,
    /// What it rests on.
    #[serde(default = "stated")]
    pub basis: Basis,
    /// Where the document says it.
    pub source: SourceRef,
    /// One line in our own words.
    pub says: String,
    /// The predicate with its parameters, read by the catalogue that knows it. `at` and its like
    /// are JSON Pointers into the response body; a segment `*` stands for every array item or every
    /// member.
    #[schemars(with = "Value")]
    pub check: IgnoredAny,
}

/// A rule that only steps judge, written in the step that states it: in `expect`, `accepted` or `rejected`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Kebab-case path that names what is ruled: `flow/executions/most-recent-first`.
    pub id: String,
    /// How binding it is.
    #[serde(default = "must")]
    pub level: Level,
    /// What it rests on.
    #[serde(default = "stated")]
    pub basis: Basis,
    /// Where the document says it.
    pub source: SourceRef,
    /// One line in our own words.
    pub says: String,
}

impl Definition {
    /// The keys of a definition.
    pub(super) const KEYS: [&str; 5] = ["id", "level", "basis", "source", "says"];
}

fn must() -> Level {
    Level::Must
}

fn stated() -> Basis {
    Basis::Stated
}

/// How a sent value and a received one are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The text sent equals the value, numbers and booleans by their JSON spelling; a form cannot
    /// tell an empty text from null, so null agrees with an empty text.
    #[default]
    Text,
    /// Both are JSON texts of the same value.
    Json,
    /// Both are the same instant.
    Instant,
    /// The parameter's repeated values are the array's items, order free.
    Set,
    /// What was sent, or a prefix of it, or something unrelated: only an over-long value stored in
    /// full is a failure.
    Limit,
}
