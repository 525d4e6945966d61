//! Source locations: file, line and column, and the lines of a document that state a rule.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The three documents.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub enum Document {
    /// Message events and second-factor authentication.
    D1,
    /// Chat with media.
    D2,
    /// Flow.
    D3,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::D1 => "D1",
            Self::D2 => "D2",
            Self::D3 => "D3",
        })
    }
}

/// Where a document states something.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The document.
    pub document: Document,
    /// The heading above the lines, as the document spells it.
    pub section: String,
    /// Counted from 1.
    pub lines: Vec<u32>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.lines.iter().map(u32::to_string).collect();
        let noun = if lines.len() == 1 { "line" } else { "lines" };
        write!(
            f,
            "{} \"{}\", {noun} {}",
            self.document,
            self.section,
            lines.join(", ")
        )
    }
}
