//! Source locations: file, line and column, and the lines of a document that state a rule.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Characters of a document's id at most.
const DOCUMENT_MAX: usize = 16;

/// The id of a document, such as `D3`: one to sixteen ASCII letters, digits, `.`, `_` and `-`. `service.yaml` declares it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Document([u8; DOCUMENT_MAX]);

/// A text that cannot be the id of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid document id `{0}`: expected one to sixteen ASCII letters, digits, `.`, `_` and `-`, such as `D3`"
)]
pub struct DocumentError(String);

impl Document {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0);
        let bytes = &self.0[..length.unwrap_or(DOCUMENT_MAX)];
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl FromStr for Document {
    type Err = DocumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || text.len() > DOCUMENT_MAX || !text.bytes().all(is_allowed) {
            return Err(DocumentError(text.to_owned()));
        }
        let mut id = [0; DOCUMENT_MAX];
        id[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(id))
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Document {
    fn schema_name() -> Cow<'static, str> {
        "Document".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a document, as `service.yaml` declares it.",
            "type": "string",
            "pattern": "^[A-Za-z0-9._-]{1,16}$",
        })
    }
}

/// Where a document states something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The document.
    pub document: Document,
    /// The heading above the lines, as the document spells it, or a pointer into an OpenAPI document, such as `#/paths/~1orders/post`.
    pub section: String,
    /// Counted from 1; may be empty if `section` is a pointer.
    pub lines: Vec<u32>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return write!(f, "{} \"{}\"", self.document, self.section);
        }
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
