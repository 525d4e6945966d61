//! What may not agree between documents, lock and rulebook.

use super::unit::Place;
use conformant_base::source::Document;

/// One thing that does not agree between documents, lock and rulebook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceProblem {
    /// A document is not in the folder.
    #[error("{document} is not there: no file begins with `{title}`")]
    DocumentMissing {
        /// The document.
        document: Document,
        /// Its first line.
        title: String,
    },
    /// A file or folder could not be read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// A line of the lock is not one.
    #[error("documents.lock:{line}: {source}")]
    LockLine {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        source: LockFault,
    },
    /// A unit that the lock does not classify.
    #[error("{place} is not classified")]
    Unclassified {
        /// The unit.
        place: Place,
    },
    /// A unit whose words changed.
    #[error("{place} has changed: {was} became {is}")]
    Changed {
        /// The unit.
        place: Place,
        /// Hash in the lock.
        was: String,
        /// Hash of the document.
        is: String,
    },
    /// A unit of the lock that no document has any more.
    #[error("{place} is gone")]
    Gone {
        /// The unit.
        place: Place,
    },
    /// A unit cites a rule or open point that is not in the rulebook.
    #[error("{place} cites {id}, which is not in the rulebook")]
    CitesMissing {
        /// The unit.
        place: Place,
        /// The id.
        id: String,
    },
    /// A rule names a line whose units do not cite it.
    #[error("{id} names {document} line {line}, where no unit cites it")]
    LineWithoutUnit {
        /// The rule or open point.
        id: String,
        /// The document.
        document: Document,
        /// The line.
        line: u32,
    },
    /// A rule that no unit cites.
    #[error("{id} is cited by no unit")]
    NeverCited {
        /// The rule or open point.
        id: String,
    },
    /// None of the lines stands under the heading that the source names.
    #[error(
        "{id} names the section \"{section}\" of {document}; its lines stand under \"{found}\""
    )]
    WrongSection {
        /// The rule or open point.
        id: String,
        /// The document.
        document: Document,
        /// The heading named.
        section: String,
        /// The heading of its first line.
        found: String,
    },
    /// A source points to nothing in an OpenAPI document.
    #[error("{id} names `{pointer}` of {document}, which leads to nothing")]
    PointerGone {
        /// The rule.
        id: String,
        /// The document.
        document: Document,
        /// The pointer.
        pointer: String,
    },
    /// What a pointer leads to stands at another line.
    #[error("{id} names line {line} of {document}; `{pointer}` stands at line {found}")]
    PointerElsewhere {
        /// The rule.
        id: String,
        /// The document.
        document: Document,
        /// The pointer.
        pointer: String,
        /// As the source says.
        line: u32,
        /// Where it stands.
        found: u32,
    },
    /// A unit cites something whose source does not name its line.
    #[error("{place} cites {id}, whose source does not name that line")]
    CitesElsewhere {
        /// The unit.
        place: Place,
        /// The id.
        id: String,
    },
    /// Several sentences of one line share what is cited, so that one may hide beside another.
    #[error(
        "{id} is cited by {first} and by {second}: in documents.lock leave it at the sentence that it rests on"
    )]
    NotToldApart {
        /// The id.
        id: String,
        /// The first sentence.
        first: Place,
        /// Another one of the same line.
        second: Place,
    },
}

/// What a line of the lock lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockFault {
    /// It begins with no document.
    #[error("expected the id of a document, such as `D3`")]
    Document,
    /// No line and index follow.
    #[error("expected a place such as `84.1`")]
    Place,
    /// No hash follows.
    #[error("expected twelve hexadecimal digits")]
    Hash,
    /// Nothing says what became of the unit.
    #[error("expected rules, open, definition, narrative or unclassified")]
    Class,
    /// It is cited by nothing.
    #[error("`rules` and `open` are followed by ids")]
    NoIds,
}
