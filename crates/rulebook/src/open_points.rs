//! `open-points.yaml`: what the documents leave open or say twice, and how it is treated.

use super::rules::SourceRef;
use schemars::JsonSchema;
use serde::Deserialize;

/// The open points of one service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpenPointFile {
    /// In the document's order.
    pub open_points: Vec<OpenPoint>,
}

/// One thing that the documents leave open.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpenPoint {
    /// `SERVICE/open/NAME`.
    pub id: String,
    /// Where the document leaves it open.
    pub source: SourceRef,
    /// `not-shown` or `contradiction`.
    pub basis: conformant_record::Basis,
    /// The question, one line in our own words.
    pub says: String,
    /// How it is treated: what is sent or accepted because of it, one line.
    pub treatment: String,
    /// What is written down of the answers; left out where nothing can be observed.
    #[serde(default)]
    pub observe: Vec<Observation>,
    /// True: any answer will do, but two different ones within one run are a failure of the rule
    /// with the same id.
    #[serde(default)]
    pub either: bool,
}

/// What is observed, without values.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Observation {
    /// Operation id without the service; left out: every operation.
    pub operation: Option<String>,
    /// Which answers.
    #[serde(default)]
    pub of: Which,
    /// What of them.
    pub aspect: Aspect,
}

/// Which answers are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// All.
    #[default]
    Any,
    /// Accepted ones.
    Accepted,
    /// Refused ones.
    Rejected,
}

/// What of an answer is written down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The status code.
    Status,
    /// Types by key, of the whole body or of the value at this pointer.
    Shape(String),
    /// The text itself at this pointer: only for enumerated words, never for data.
    Word(String),
    /// Whether something is at this pointer: `present`, `null` or `absent`.
    Presence(String),
    /// The media type.
    MediaType,
    /// What is odd about the way an answer comes over the wire.
    Oddities,
}
