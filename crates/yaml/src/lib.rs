//! Reads YAML into a tree that knows where each key and value stands, and writes and reads that tree in a compact form.
//!
//! The compact form is made when the program is built: reading YAML takes longer than most commands take for all else.

mod built;
mod node;
mod read;
mod tree;

pub use built::{Form, write, write_number, write_text};
pub use node::from_node;
pub use read::{BYTES_MAX, Fault, ambiguous, read};
pub use tree::{Content, Member, Node, Span};
