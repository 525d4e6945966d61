//! Differences between documents, lock and rulebook.

use super::unit::UnitPlace;
use conformant_base::source::Document;

/// One difference between documents, lock and rulebook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceProblem {
    /// A document is not in the folder.
    #[error("{document} is missing: no file begins with `{title}`")]
    DocumentMissing { document: Document, title: String },
    /// A file or folder could not be read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable { path: String, reason: String },
    /// An invalid line of the lock.
    #[error("documents.lock:{line}: {source}")]
    LockLine {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        source: LockFault,
    },
    /// A unit that the lock does not classify.
    #[error("{place} is not classified")]
    Unclassified { place: UnitPlace },
    /// A unit whose words changed.
    #[error("{place} has changed: {was} became {is}")]
    Changed {
        place: UnitPlace,
        /// Hash in the lock.
        was: String,
        /// Hash of the document.
        is: String,
    },
    /// A unit of the lock that is in no document.
    #[error("{place} is gone")]
    Gone { place: UnitPlace },
    /// A unit cites a rule or open point that is not in the rulebook.
    #[error("{place} cites {id}, which is not in the rulebook")]
    CitesMissing { place: UnitPlace, id: String },
    /// A source with a line whose units do not cite it.
    #[error("{id} names {document} line {line}, but no unit there cites it")]
    LineWithoutUnit {
        /// The rule or open point.
        id: String,
        document: Document,
        line: u32,
    },
    /// A rule that no unit cites.
    #[error("no unit cites {id}")]
    NeverCited {
        /// The rule or open point.
        id: String,
    },
    /// None of the lines is under the heading in the source.
    #[error(
        "{id} names the section \"{section}\" of {document}; its lines stand under \"{found}\""
    )]
    WrongSection {
        /// The rule or open point.
        id: String,
        document: Document,
        /// The heading in the source.
        section: String,
        /// The heading of its first line.
        found: String,
    },
    /// A source points to nothing in an OpenAPI document.
    #[error("{id} names `{pointer}` of {document}, which leads to nothing")]
    PointerGone {
        id: String,
        document: Document,
        pointer: String,
    },
    /// What a pointer leads to stands at another line.
    #[error("{id} names line {line} of {document}; `{pointer}` stands at line {found}")]
    PointerElsewhere {
        id: String,
        document: Document,
        pointer: String,
        line: u32,
        found: u32,
    },
    /// A unit cites something whose source does not name its line.
    #[error("{place} cites {id}, whose source does not name that line")]
    CitesElsewhere { place: UnitPlace, id: String },
    /// Several sentences of one line cite the same, so that one of them may lack a rule of its own.
    #[error(
        "{id} is cited by {first} and by {second}: in documents.lock leave it at the sentence that it rests on"
    )]
    SharedCitation {
        /// The id.
        id: String,
        /// The first sentence.
        first: UnitPlace,
        /// Another one of the same line.
        second: UnitPlace,
    },
}

/// A missing part of a line of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockFault {
    #[error("expected the id of a document, such as `D3`")]
    Document,
    #[error("expected a place such as `84.1`")]
    UnitPlace,
    #[error("expected twelve hexadecimal digits")]
    Hash,
    /// The classification.
    #[error("expected rules, open, definition, narrative or unclassified")]
    Class,
    /// The ids of the classification.
    #[error("`rules` and `open` are followed by ids")]
    NoIds,
}
