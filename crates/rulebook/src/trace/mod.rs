//! From the documents to the rules: every sentence and table row is a unit, and `documents.lock` says what became of each.
//! Holds hashes of the documents, never their words.
//!
//! `documents` reads them as `unit`s, `lock` reads and writes the lock; `check` says what does not agree (`problem`), and
//! `propose` writes a lock anew.

mod check;
mod documents;
mod lock;
mod problem;
mod propose;
#[cfg(test)]
mod tests;
mod unit;

pub use check::{check, check_lock};
pub use documents::revision;
pub use lock::{Class, classes};
pub use problem::{LockFault, TraceProblem};
pub use propose::propose;
pub use unit::{Place, Unit, units};
