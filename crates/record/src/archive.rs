//! Counts of an archive: documents, rejected documents and findings, by kind, version, rule and day.

use super::is_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings with a day of their own, and schema ids; later findings are counted without a day, later ids as 0.
const ROWS_MAX: usize = 10_000;

/// Counts of files with one document a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveCounts {
    /// By kind and version.
    pub documents: Vec<DocumentCount>,
    /// By kind, version, rule and day.
    pub findings: Vec<FindingCount>,
    /// Lines that are not documents, or without an event in a stream of events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: usize,
    /// Documents by the schema id of their Confluent wire header; 0 stands for all ids after the first 10,000.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schema_ids: BTreeMap<u32, usize>,
}

/// Documents of one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentCount {
    /// `events/MessageSent`, `flow/execution`, or an event type without a documented payload.
    pub kind: String,
    /// Empty for a kind without versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    pub documents: usize,
    /// Documents with a finding of level must.
    pub rejected: usize,
}

/// Findings of one rule on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingCount {
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    pub rule: String,
    /// `2026-01-31`: of the event's `time`, or else of the file's path; empty if neither has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub day: String,
    pub findings: usize,
}

/// Sums that grow while an archive is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveSums {
    /// Documents and rejected ones, by kind and version.
    documents: BTreeMap<(String, String), (usize, usize)>,
    /// By kind, version, rule and day.
    findings: BTreeMap<[String; 4], usize>,
    pub unreadable: usize,
    schema_ids: BTreeMap<u32, usize>,
}

/// Splits `events/MessageSent/4` into kind and version.
fn versioned(kind: &str) -> (String, String) {
    match kind.rsplit_once('/') {
        Some((name, version)) if version.bytes().all(|b| b.is_ascii_digit()) => {
            (name.to_owned(), version.to_owned())
        }
        _ => (kind.to_owned(), String::new()),
    }
}

impl ArchiveSums {
    /// Adds documents of a kind such as `events/MessageSent/4`.
    pub fn add_documents(&mut self, kind: &str, documents: usize, rejected: usize) {
        self.add(versioned(kind), (documents, rejected));
    }

    pub fn add_finding(&mut self, kind: &str, rule: &str, day: &str) {
        let (name, version) = versioned(kind);
        self.add_findings([name, version, rule.to_owned(), day.to_owned()], 1);
    }

    fn add(&mut self, kind: (String, String), (documents, rejected): (usize, usize)) {
        let counts = self.documents.entry(kind).or_default();
        counts.0 += documents;
        counts.1 += rejected;
    }

    fn add_findings(&mut self, mut key: [String; 4], findings: usize) {
        if self.findings.len() >= ROWS_MAX && !self.findings.contains_key(&key) {
            key[3].clear();
        }
        *self.findings.entry(key).or_default() += findings;
    }

    /// Adds documents whose wire header has this schema id.
    pub fn add_schema_id(&mut self, id: u32, documents: usize) {
        let is_listed = self.schema_ids.len() < ROWS_MAX || self.schema_ids.contains_key(&id);
        let id = if is_listed { id } else { 0 };
        *self.schema_ids.entry(id).or_default() += documents;
    }

    pub fn has_schema_ids(&self) -> bool {
        !self.schema_ids.is_empty()
    }

    pub fn merge(&mut self, other: Self) {
        for (kind, counts) in other.documents {
            self.add(kind, counts);
        }
        for (key, findings) in other.findings {
            self.add_findings(key, findings);
        }
        self.unreadable += other.unreadable;
        for (id, documents) in other.schema_ids {
            self.add_schema_id(id, documents);
        }
    }
}

impl From<ArchiveSums> for ArchiveCounts {
    fn from(sums: ArchiveSums) -> Self {
        let documents = sums.documents.into_iter();
        let findings = sums.findings.into_iter();
        Self {
            documents: documents
                .map(|((kind, version), (documents, rejected))| DocumentCount {
                    kind,
                    version,
                    documents,
                    rejected,
                })
                .collect(),
            findings: findings
                .map(|([kind, version, rule, day], findings)| FindingCount {
                    kind,
                    version,
                    rule,
                    day,
                    findings,
                })
                .collect(),
            unreadable: sums.unreadable,
            schema_ids: sums.schema_ids,
        }
    }
}

impl From<ArchiveCounts> for ArchiveSums {
    fn from(counts: ArchiveCounts) -> Self {
        let mut sums = Self {
            unreadable: counts.unreadable,
            schema_ids: counts.schema_ids,
            ..Self::default()
        };
        for row in counts.documents {
            sums.add((row.kind, row.version), (row.documents, row.rejected));
        }
        for row in counts.findings {
            sums.add_findings([row.kind, row.version, row.rule, row.day], row.findings);
        }
        sums
    }
}

impl ArchiveCounts {
    /// The sum of several parts; none if no part has counts.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let mut sums: Option<ArchiveSums> = None;
        for part in parts {
            sums.get_or_insert_default().merge(part.clone().into());
        }
        sums.map(Self::from)
    }
}
