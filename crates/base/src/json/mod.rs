//! JSON values: reading untrusted bodies under limits, pointers (RFC 6901), comparison, excerpts.
//!
//! Knows no schema and no rule. The caller decides what a fault means for a verdict.

mod equal;
mod excerpt;
mod parse;
mod pointer;
mod tree;
mod window;

pub use equal::{digits, equal, identical};
pub use excerpt::{excerpt, short, type_name};
pub use parse::{Limits, Note, ParseFault, Parsed, Position, parse, parse_text};
pub use pointer::{
    POINTER_BYTES, escape, expand, get, has_at_most, join, member, overlap, push, segments, set,
    unescape, visit_leaves, within,
};
pub use window::window;
