//! Where a document states something: document, section and lines, and the sentences where the user has the documents.

use crate::cli::config;
use conformant_base::source::Source;
use conformant_rulebook::Rulebook;
use conformant_rulebook::trace;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Prints sources; reads the documents in the folder that the configuration names.
pub(super) struct Sources<'a> {
    rulebook: &'a Rulebook,
    specs: Option<&'a Path>,
    folder: Option<PathBuf>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(rulebook: &'a Rulebook, specs: Option<&'a Path>) -> Self {
        Self {
            rulebook,
            specs,
            folder: config::documents(specs),
        }
    }

    /// The source of an id, with the title of its document and the sentences.
    pub(super) fn print(&self, id: &str, source: &Source, text: &mut String) {
        let _ = writeln!(text, "  source     {source}");
        if let Some(title) = self.rulebook.index.documents().get(&source.document) {
            let _ = writeln!(text, "  document   {} is \"{title}\"", source.document);
        }
        let Some(folder) = &self.folder else {
            return;
        };
        let lock = conformant_rulebook::companion(self.specs, "documents.lock").unwrap_or_default();
        match trace::quotes(folder, &self.rulebook.index, &lock, (id, source)) {
            Ok(quotes) => {
                for quote in quotes {
                    let label = format!("line {}", quote.line);
                    let differs = "it differs from the document that the rulebook cites; see `conformant trace`";
                    let says = quote.text.as_deref().unwrap_or(differs);
                    let _ = writeln!(text, "  {label:<10} {says}");
                }
            }
            Err(problem) => {
                let _ = writeln!(
                    text,
                    "  documents  {problem} (`documents: {}`)",
                    folder.display()
                );
            }
        }
    }
}
