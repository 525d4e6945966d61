//! Evidence files: written during a run, evaluated again by any later rulebook.
//!
//! - Lines of JSON (`format`): [`Head`], one [`EvidenceRecord`] per scenario, [`Tail`].
//! - Each line is a gzip member, so a truncated file contains complete scenarios.
//! - `writer` writes, after `secrets` has redacted every text. `reader` reads, and `evaluate` evaluates.
//! - Bodies are stored as received and parsed by the current rulebook.

mod evaluate;
mod format;
mod reader;
mod secrets;
mod writer;

pub use evaluate::{EvaluatedRun, evaluate};
pub use format::{EvidenceRecord, Head, Tail};
pub use reader::{Cut, EvidenceFileError, Reader, is_packed};
pub use writer::EvidenceWriter;
