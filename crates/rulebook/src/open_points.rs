//! `open-points.yaml`: unspecified and contradictory behavior, and how it is treated.

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

/// One unspecified behavior.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpenPoint {
    /// `SERVICE/open/NAME`.
    pub id: String,
    /// The place in the document.
    pub source: SourceRef,
    /// `not-shown` or `contradiction`.
    pub basis: conformant_record::Basis,
    /// The question, one line in our own words.
    pub says: String,
    /// How it is treated: the consequences for requests and verdicts, one line.
    pub treatment: String,
    /// The recorded aspects of responses; omitted if nothing can be observed.
    #[serde(default)]
    pub observe: Vec<Observation>,
    /// Whether a target may choose, but only once: two different choices within one run are a failure of the rule
    /// with the same id.
    #[serde(default)]
    pub either: bool,
}

/// A recorded aspect, without values.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Observation {
    /// Operation id without the service; every operation if omitted.
    pub operation: Option<String>,
    /// The responses.
    #[serde(default)]
    pub of: Which,
    /// The aspect.
    pub aspect: Aspect,
}

/// The responses that are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// All.
    #[default]
    Any,
    /// Accepted ones.
    Accepted,
    /// Rejected ones.
    Rejected,
}

/// The aspect of a response that is recorded.
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
    /// Irregularities of the response at protocol level.
    Oddities,
}
