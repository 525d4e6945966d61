//! The sentences that a rule cites, from the user's own documents, as far as they are those of `documents.lock`.

use super::documents::read;
use super::lock::{Class, cited, parse_lock};
use super::problem::TraceProblem;
use super::unit::{Unit, UnitPlace};
use crate::service::ServiceIndex;
use conformant_base::source::Source;
use std::path::Path;

/// A cited line of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Counted from 1.
    pub line: u32,
    /// Its cited sentences or table row; `None` if they differ from those that the rulebook was written for.
    pub text: Option<String>,
}

/// The user's documents with the classification of their sentences.
pub struct CitedDocuments {
    units: Vec<Unit>,
    entries: Vec<(UnitPlace, String, Class)>,
    problems: Vec<TraceProblem>,
}

impl CitedDocuments {
    /// Reads the documents in a folder. Only citations of a document that is missing or cannot be read fail.
    pub fn read(documents: &Path, index: &ServiceIndex, lock: &str) -> Self {
        let mut problems = Vec::new();
        Self {
            units: read(documents, index, &mut problems).units,
            entries: parse_lock(lock, &mut Vec::new()),
            problems,
        }
    }

    /// The lines that `source` cites for a rule or open point. Lines without sentences, such as headings, are left out.
    pub fn quotes(&self, id: &str, source: &Source) -> Result<Vec<Quote>, &TraceProblem> {
        // Other documents may be missing.
        let concerns = |problem: &&TraceProblem| !matches!(problem, TraceProblem::DocumentMissing { document, .. } if *document != source.document);
        if let Some(problem) = self.problems.iter().find(concerns) {
            return Err(problem);
        }
        let quotes = source.lines.iter().filter_map(|line| {
            let units = self.units.iter();
            let units = units.filter(|u| u.document == source.document && u.line == *line);
            let known: Vec<_> = units
                .map(|unit| {
                    let entry = self.entries.iter();
                    let mut entry = entry.filter(|(place, _, _)| *place == unit.place());
                    (unit, entry.find(|(_, hash, _)| *hash == unit.hash))
                })
                .collect();
            let own = |entry: Option<&(UnitPlace, String, Class)>| {
                entry.is_some_and(|(_, _, class)| cited(class).any(|cited| cited == id))
            };
            let is_own = known.iter().any(|(_, entry)| own(*entry));
            let texts: Option<Vec<&str>> = known
                .iter()
                .filter(|(_, entry)| !is_own || own(*entry))
                .map(|(unit, entry)| entry.map(|_| unit.text.as_str()))
                .collect();
            (!known.is_empty()).then(|| Quote {
                line: *line,
                text: texts.map(|texts| texts.join(" ")),
            })
        });
        Ok(quotes.collect())
    }
}
