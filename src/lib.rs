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

#![warn(missing_docs)]

mod api;

pub use api::{
    Break, Change, Checked, Error, Failure, Fixture, Played, Reference, Rule, Rulebook, Run,
    RunOptions, Server, Service, Target, Trial, check, diff, diff_kinds, fixtures, run,
};
pub use conformant_engine::Conclusion;
pub use conformant_record::{Finding, Level, Subject, Verdict};
pub use conformant_rulebook::{Problem, Problems};

#[cfg_attr(not(clippy), doc(hidden))]
pub mod cli;
