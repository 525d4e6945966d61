//! Traceability from the documents to the rules: every sentence and table row is a unit, and `documents.lock` classifies each.
//! Contains hashes of the documents, never their text.
//!
//! `documents` reads `unit`s, `lock` reads and writes the lock, `check` reports differences as `problem`s, `propose`
//! generates a new lock, and `quote` finds cited sentences.

mod check;
mod documents;
mod lock;
mod problem;
mod propose;
mod quote;
mod unit;

pub use check::{check, check_lock};
pub use documents::revision;
pub use lock::{Class, classes};
pub use problem::{LockFault, TraceProblem};
pub use propose::propose;
pub use quote::{CitedDocuments, Quote};
pub use unit::{Unit, UnitPlace, units};
