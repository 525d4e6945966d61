//! `rules/<topic>.yaml`: rules about one exchange, a history of exchanges, or a scenario.
//!
//! Only the file format. Predicates and their parameters are in `judge/predicates`, one file each.

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

/// A source as written: the document may be omitted if the folder has one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRef {
    /// Defaults to the document that the folder's `service.yaml` names.
    pub document: Option<Document>,
    /// The heading above the lines, as in the document.
    pub section: String,
    /// Line numbers, counted from 1.
    pub lines: Vec<u32>,
}

/// One written rule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Kebab-case path that names the subject: `flow/executions/most-recent-first`.
    pub id: String,
    /// How binding it is.
    #[serde(default = "must")]
    pub level: Level,
    /// What it rests on.
    #[serde(default = "stated")]
    pub basis: Basis,
    /// The place in the document.
    pub source: SourceRef,
    /// One line in our own words.
    pub says: String,
    /// The predicate with its parameters. Pointers such as `at` are JSON Pointers into the response body;
    /// a segment `*` matches every array item or every
    /// member.
    #[schemars(with = "Value")]
    pub check: IgnoredAny,
}

/// A rule that only steps judge, defined in the step that states it: in `expect`, `accepted` or `rejected`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Kebab-case path that names the subject: `flow/executions/most-recent-first`.
    pub id: String,
    /// How binding it is.
    #[serde(default = "must")]
    pub level: Level,
    /// What it rests on.
    #[serde(default = "stated")]
    pub basis: Basis,
    /// The place in the document.
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
    /// The sent text equals the value, numbers and booleans by their JSON spelling. A form cannot
    /// distinguish an empty text from null, so both agree.
    #[default]
    Text,
    /// An identity or a name. Outer white space, composed characters (NFC) and what follows on 64 characters may
    /// differ, because the documents do not say what becomes of them.
    Name,
    /// A phone number: its digits are the same.
    Phone,
    /// Both are JSON texts of the same value.
    Json,
    /// Both are the same instant.
    Instant,
    /// The parameter's repeated values are the array's items, order free.
    Set,
    /// What was sent, a prefix of it, or an unrelated value. Only an over-long value that is stored in
    /// full is a failure.
    Limit,
}
