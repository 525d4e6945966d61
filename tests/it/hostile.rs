//! The program with misbehaving targets, bodies, pages, signals and files.
//!
//! Black-box tests of exit code, reports, time and memory. They do not repeat unit tests.

mod bodies;
pub(crate) mod command;
mod inputs;
mod irregularities;
mod large;
mod naughty;
pub(crate) mod pages;
mod paging;
pub(crate) mod process;
mod secrets;
pub(crate) mod target;
mod wire;
