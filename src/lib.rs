//! A conformance test harness and fixture generator for services of three documents: message events and second-factor
//! authentication (D1), chat with media (D2), flow (D3).
//!
//! The usual interface is the command `conformant`. This library offers the same to Rust tests:
//!
//! - [`Rulebook`] has the rules, and [`Target`] is a set of [`Service`]s, or the [`Reference`] in this process.
//! - [`Rulebook::trials`] returns a trial for each scenario, for a test runner. [`run`](run()) runs all of them.
//! - [`check`](check()) judges documents offline, and [`fixtures`](fixtures()) generates valid and invalid ones.
//! - [`diff`] and [`diff_kinds`] compare versions.
//! - [`Reference::serve`] starts a service for tests of clients.
//!
//! `tests/conformance.rs` of a service, with `harness = false` in its `Cargo.toml`:
//!
//! ```no_run
#![doc = include_str!("../examples/conformance.rs")]
//! ```
//!
//! A defect of a target is a [`Finding`], never an [`Error`]. Hidden modules are for the program, tests and benchmarks of
//! this crate, and change without notice.

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
