//! Reads YAML into a tree with positions, and stores that tree in a compact binary form.
//!
//! The build script writes the binary form: parsing YAML takes longer than most commands in total.

mod built;
mod node;
mod read;
mod tree;

pub use built::{Form, write, write_number, write_text};
pub use node::from_node;
pub use read::{BYTES_MAX, Fault, LARGE_BYTES_MAX, ambiguous, read, read_large};
pub use tree::{Content, Member, Node, Span};
