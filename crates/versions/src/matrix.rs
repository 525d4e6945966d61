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

    /// Renders the matrix; none for test cases and changelog, which need changes, and as a page, which the caller writes.
    ///
    /// # Panics
    /// Never: it has no maps.
    pub fn render(&self, format: Format) -> Option<String> {
        match format {
            Format::Text => Some(self.text()),
            Format::Json => Some(safe_json(self).expect("it has no maps")),
            Format::Markdown => Some(self.markdown()),
            Format::Changelog | Format::Junit | Format::Html => None,
        }
    }

    /// The numbers of the versions in order.
    pub fn numbers(&self) -> Vec<&str> {
        self.versions.iter().map(|one| number(one)).collect()
    }

    /// A reader, and for each writer whether it is read.
    pub fn readers(&self) -> Vec<(&str, Vec<bool>)> {
        let count = self.versions.len().max(1);
        let rows = self.pairs.chunks(count).zip(&self.versions);
        rows.map(|(pairs, reader)| {
            let reads = pairs.iter().map(|pair| pair.reads).collect();
            (number(reader), reads)
        })
        .collect()
    }

    /// What is not read, one line for each reason.
    pub fn reasons(&self) -> Vec<String> {
        let reasons = self.refused().map(|(pair, refusal)| {
            let (reader, writer) = (number(&pair.reader), number(&pair.writer));
            let words = refusal.words();
            let line = format!(
                "{reader} does not read {writer}: {words} ({})",
                refusal.change
            );
            escape_line(&line).into_owned()
        });
        reasons.collect()
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
        let mut line = |first: &str, cells: &mut dyn Iterator<Item = &str>| {
            write!(out, "{first:>8}").expect(MEMORY);
            for cell in cells {
                write!(out, "{cell:>8}").expect(MEMORY);
            }
            out.push('\n');
        };
        line("", &mut self.numbers().into_iter());
        for (reader, reads) in self.readers() {
            line(reader, &mut reads.into_iter().map(yes_or_no));
        }
        for reason in self.reasons() {
            writeln!(out, "{reason}").expect(MEMORY);
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!("## Versions of {}\n\n| reader | ", code(&self.event));
        for version in self.numbers() {
            write!(out, "writes {version} | ").expect(MEMORY);
        }
        out.push_str("\n|---|");
        out.push_str(&"---|".repeat(self.versions.len()));
        out.push('\n');
        for (reader, reads) in self.readers() {
            let cells: Vec<_> = reads.into_iter().map(yes_or_no).collect();
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

fn yes_or_no(reads: bool) -> &'static str {
    if reads { "yes" } else { "no" }
}

/// `events/MessageSent/5` -> `5`.
fn number(version: &str) -> &str {
    version.rsplit('/').next().unwrap_or(version)
}
