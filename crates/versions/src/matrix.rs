//! Matrix of the versions of one event: which version reads the documents of which.

use super::compat::{Documents, Refusal, relations, versions_of};
use super::content::Content;
use super::render::{Format, code};
use super::{EventError, SCHEMA_VERSION, event_named};
use conformant_base::text::{escape_line, safe_json};
use conformant_rulebook::Rulebook;
use serde::Serialize;
use std::fmt::Write as _;

const MEMORY: &str = "writing to a String succeeds";

/// Every version of an event against every other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionMatrix {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the event.
    pub event: String,
    /// The versions in order.
    pub versions: Vec<String>,
    /// The pairs, by reader and writer.
    pub pairs: Vec<MatrixPair>,
    #[serde(skip)]
    pub contradictions: Vec<String>,
}

/// Whether a reader with one version accepts every document that another version allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixPair {
    pub reader: String,
    pub writer: String,
    pub reads: bool,
    pub refusals: Vec<Refusal>,
}

impl VersionMatrix {
    /// Compares all versions of an event.
    pub fn new(
        rulebook: &Rulebook,
        event: &str,
        content: Option<Content>,
        documents: &Documents<'_>,
    ) -> Result<Self, EventError> {
        let event = event_named(rulebook, event)?;
        let versions = versions_of(rulebook, &event);
        let pair = |reader: &str, writer: &str, refusals: Vec<Refusal>| MatrixPair {
            reader: reader.to_owned(),
            writer: writer.to_owned(),
            reads: refusals.is_empty(),
            refusals,
        };
        let (mut pairs, mut contradictions) = (Vec::new(), Vec::new());
        for version in &versions {
            pairs.push(pair(version, version, Vec::new()));
            for relation in relations(rulebook, version, content, documents) {
                pairs.push(pair(&relation.new, &relation.old, relation.lost));
                pairs.push(pair(&relation.old, &relation.new, relation.gained));
                contradictions.extend(relation.contradictions);
            }
        }
        let order = |name: &str| versions.iter().position(|version| version == name);
        pairs.sort_by_key(|pair| (order(&pair.reader), order(&pair.writer)));
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            event,
            versions,
            pairs,
            contradictions,
        })
    }

    /// Renders the matrix; none for test cases and changelog, which need changes.
    ///
    /// # Panics
    /// Never: it has no maps.
    pub fn render(&self, format: Format) -> Option<String> {
        match format {
            Format::Text => Some(self.text()),
            Format::Json => Some(safe_json(self).expect("it has no maps")),
            Format::Markdown => Some(self.markdown()),
            Format::Changelog | Format::Junit => None,
        }
    }

    /// A reader, and for each writer whether it is read.
    fn rows(&self) -> impl Iterator<Item = (&str, Vec<&'static str>)> {
        let count = self.versions.len().max(1);
        self.pairs
            .chunks(count)
            .zip(&self.versions)
            .map(|(pairs, reader)| {
                let words = pairs
                    .iter()
                    .map(|pair| if pair.reads { "yes" } else { "no" });
                (number(reader), words.collect())
            })
    }

    fn refused(&self) -> impl Iterator<Item = (&MatrixPair, &Refusal)> {
        let pairs = self.pairs.iter();
        pairs.flat_map(|pair| pair.refusals.iter().map(move |refusal| (pair, refusal)))
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{}: a reader of each row, a writer of each column\n",
            self.event
        );
        let numbers = self.versions.iter().map(|version| number(version));
        let mut line = |first: &str, cells: &mut dyn Iterator<Item = &str>| {
            write!(out, "{first:>8}").expect(MEMORY);
            for cell in cells {
                write!(out, "{cell:>8}").expect(MEMORY);
            }
            out.push('\n');
        };
        line("", &mut numbers.into_iter());
        for (reader, cells) in self.rows() {
            line(reader, &mut cells.into_iter());
        }
        for (pair, refusal) in self.refused() {
            let (reader, writer) = (number(&pair.reader), number(&pair.writer));
            let words = format!(
                "{reader} does not read {writer}: {} ({})",
                refusal.words(),
                refusal.change
            );
            writeln!(out, "{}", escape_line(&words)).expect(MEMORY);
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!("## Versions of {}\n\n| reader | ", code(&self.event));
        for version in &self.versions {
            write!(out, "writes {} | ", number(version)).expect(MEMORY);
        }
        out.push_str("\n|---|");
        out.push_str(&"---|".repeat(self.versions.len()));
        out.push('\n');
        for (reader, cells) in self.rows() {
            writeln!(out, "| reads {reader} | {} |", cells.join(" | ")).expect(MEMORY);
        }
        for (turn, (pair, refusal)) in self.refused().enumerate() {
            if turn == 0 {
                out.push('\n');
            }
            let (reader, writer) = (number(&pair.reader), number(&pair.writer));
            let words = code(&refusal.words());
            writeln!(
                out,
                "- {reader} does not read {writer}: {words} ({})",
                code(&refusal.change)
            )
            .expect(MEMORY);
        }
        out
    }
}

/// `events/MessageSent/5` -> `5`.
fn number(version: &str) -> &str {
    version.rsplit('/').next().unwrap_or(version)
}
