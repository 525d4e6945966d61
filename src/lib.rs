//! An offline conformance harness and fixture generator for services that follow three documents: message
//! events and second-factor authentication (D1), chat with media (D2), flow (D3).
//!
//! The command `conformant` is the usual way to use it. A Rust team that would rather have its gate as a test
//! has the same here:
//!
//! - [`Rulebook`] is what everything is judged by, [`Target`] what is judged: [`Service`]s behind addresses, or
//!   the [`Reference`] in this process;
//! - [`Rulebook::trials`] gives one trial a scenario to a test runner, [`run`](run()) plays all of them and
//!   concludes;
//! - [`check`](check()) judges documents without any exchange, [`fixtures`](fixtures()) makes them, flawless and
//!   broken, [`diff`] and [`diff_kinds`] compare versions;
//! - [`Reference::serve`] is a service to try clients on.
//!
//! `tests/conformance.rs` of a service, with `harness = false` in its `Cargo.toml`:
//!
//! ```no_run
#![doc = include_str!("../examples/conformance.rs")]
//! ```
//!
//! What is wrong with a target is a [`Finding`], never an [`Error`]. Every other module of this crate is there
//! for its own program, tests and benchmarks: it is hidden, no part of the interface, and changes without
//! notice.

// Clippy sees them, for its check that everything is documented passes over what is hidden.

mod api;

pub use api::{
    Break, Change, Checked, Error, Failure, Fixture, Played, Reference, Rule, Rulebook, Run,
    RunOptions, Server, Service, Target, Trial, check, diff, diff_kinds, fixtures, run,
};
pub use engine::Conclusion;
pub use rulebook::{Problem, Problems};
pub use verdict::{Finding, Level, Subject, Verdict};

#[cfg_attr(not(clippy), doc(hidden))]
pub mod clock;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod failpoint;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod files;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod http;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod ids;
mod instant;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod json;
mod parallel;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod redact;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod source;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod text;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod xml;

#[cfg_attr(not(clippy), doc(hidden))]
pub mod rulebook;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod schema;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod verdict;

#[cfg_attr(not(clippy), doc(hidden))]
pub mod fixtures;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod judge;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod prove;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod reference;

#[cfg_attr(not(clippy), doc(hidden))]
pub mod server;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod trace;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod transport;

#[cfg_attr(not(clippy), doc(hidden))]
pub mod check;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod clients;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod compare;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod engine;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod explore;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod report;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod selftest;
#[cfg_attr(not(clippy), doc(hidden))]
pub mod waivers;

#[cfg_attr(not(clippy), doc(hidden))]
pub mod cli;
