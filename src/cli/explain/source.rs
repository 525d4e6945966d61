//! Where a document states something: document, section and lines, and the sentences where the user has the documents.

use crate::cli::quoting::Documents;
use conformant_base::source::Source;
use conformant_rulebook::Rulebook;
use std::fmt::Write as _;
use std::path::Path;

/// Prints sources; reads the documents in the folder that the configuration names.
pub(super) struct Sources<'a> {
    rulebook: &'a Rulebook,
    documents: Option<Documents>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(rulebook: &'a Rulebook, specs: Option<&'a Path>) -> Self {
        Self {
            rulebook,
            documents: Documents::read(rulebook, None, specs),
        }
    }

    /// The source of an id, with the title of its document and the sentences.
    pub(super) fn print(&self, id: &str, source: &Source, text: &mut String) {
        let _ = writeln!(text, "  source     {source}");
        if let Some(title) = self.rulebook.index.documents().get(&source.document) {
            let _ = writeln!(text, "  document   {} is \"{title}\"", source.document);
        }
        let Some(documents) = &self.documents else {
            return;
        };
        match documents.cited.quotes(id, source) {
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
                    documents.folder.display()
                );
            }
        }
    }
}
