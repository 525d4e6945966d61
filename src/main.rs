//! The `conformant` command.
fn main() {}
