//! The whole command against a world that misbehaves: targets, bodies, pages, signals, files.
//!
//! Black box: the program is started as people start it, and judged by its exit code, its reports,
//! its time and its memory. It deliberately does not repeat what the unit tests of each part show.

mod bodies;
pub(crate) mod command;
mod inputs;
mod large;
mod naughty;
pub(crate) mod pages;
mod paging;
mod process;
mod secrets;
pub(crate) mod target;
mod told;
mod wire;
