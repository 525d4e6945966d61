//! The sentences that a rule cites, from the user's own documents, as far as they are those of `documents.lock`.

use super::documents::read;
use super::lock::{Class, cited, parse_lock};
use super::problem::TraceProblem;
use super::unit::UnitPlace;
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

/// The lines that `source` cites for a rule or open point, from the documents in a folder. Lines without sentences, such as
/// headings, are left out.
pub fn quotes(
    documents: &Path,
    index: &ServiceIndex,
    lock: &str,
    (id, source): (&str, &Source),
) -> Result<Vec<Quote>, TraceProblem> {
    let mut problems = Vec::new();
    let documents = read(documents, index, &mut problems);
    // Other documents may be missing.
    let concerns = |problem: &TraceProblem| !matches!(problem, TraceProblem::DocumentMissing { document, .. } if *document != source.document);
    if let Some(problem) = problems.into_iter().find(concerns) {
        return Err(problem);
    }
    let entries = parse_lock(lock, &mut Vec::new());
    let mut quotes: Vec<Quote> = Vec::new();
    for line in &source.lines {
        let units = documents.units.iter();
        let units = units.filter(|u| u.document == source.document && u.line == *line);
        let known: Vec<_> = units
            .map(|unit| {
                let entry = entries.iter().find(|(place, _, _)| *place == unit.place());
                let entry = entry.filter(|(_, hash, _)| *hash == unit.hash);
                (unit, entry)
            })
            .collect();
        let own = |entry: &Option<&(UnitPlace, String, Class)>| {
            entry.is_some_and(|(_, _, class)| cited(class).any(|cited| cited == id))
        };
        let is_own = known.iter().any(|(_, entry)| own(entry));
        let texts: Option<Vec<&str>> = known
            .iter()
            .filter(|(_, entry)| !is_own || own(entry))
            .map(|(unit, entry)| entry.map(|_| unit.text.as_str()))
            .collect();
        if !known.is_empty() {
            let text = texts.map(|texts| texts.join(" "));
            quotes.push(Quote { line: *line, text });
        }
    }
    Ok(quotes)
}
