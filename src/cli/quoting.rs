//! The sentences that rules cite, from the folder of documents that the configuration names (`documents`).

use super::{config, note};
use conformant_record::{Quote, RunRecord};
use conformant_rulebook::Rulebook;
use conformant_rulebook::trace::CitedDocuments;
use std::path::{Path, PathBuf};

/// The user's documents; compared with the lock of the rulebook, which has no sentences.
pub(super) struct Documents {
    pub(super) folder: PathBuf,
    pub(super) cited: CitedDocuments,
}

impl Documents {
    /// Reads them, if a readable configuration names a folder.
    pub(super) fn read(
        rulebook: &Rulebook,
        configuration: Option<&Path>,
        specs: Option<&Path>,
    ) -> Option<Self> {
        let folder = config::documents(configuration, specs)?;
        let lock = conformant_rulebook::companion(specs, "documents.lock").unwrap_or_default();
        Some(Self {
            cited: CitedDocuments::read(&folder, &rulebook.index, &lock),
            folder,
        })
    }
}

/// Adds the sentences that broken rules cite, for the page and the report folder.
pub(super) fn add(
    record: &mut RunRecord,
    rulebook: &Rulebook,
    configuration: Option<&Path>,
    specs: Option<&Path>,
) {
    let broken = record.rules.iter().filter(|rule| rule.findings > 0);
    let broken: Vec<_> = broken.collect();
    if broken.is_empty() {
        return;
    }
    let Some(documents) = Documents::read(rulebook, configuration, specs) else {
        return;
    };
    let mut problem = None;
    for rule in broken {
        match documents.cited.quotes(&rule.id, &rule.source) {
            Ok(quotes) => {
                let known = quotes.into_iter().filter_map(|quote| {
                    let line = quote.line;
                    quote.text.map(|text| Quote { line, text })
                });
                let known: Vec<Quote> = known.collect();
                if !known.is_empty() {
                    record.quotes.insert(rule.id.clone(), known);
                }
            }
            Err(found) => problem = problem.or(Some(found)),
        }
    }
    if let Some(problem) = problem {
        let folder = documents.folder.display();
        note(&format!(
            "reports cite lines only: {problem} (`documents: {folder}`)"
        ));
    }
}
