//! Values shared by all crates: SIDs, JSON trees, HTTP messages, time, text, pictures, redaction, files and
//! threads.
//!
//! Knows no rulebook, no service and no report.

pub mod clock;
pub mod diff;
pub mod failpoint;
pub mod files;
pub mod http;
pub mod ids;
pub mod instant;
pub mod json;
pub mod page;
pub mod parallel;
pub mod picture;
pub mod redact;
pub mod size;
pub mod sorted;
pub mod source;
pub mod text;
