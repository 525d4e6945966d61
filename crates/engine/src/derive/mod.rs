//! Derived scenarios: from each operation's happy path the cases that OpenAPI implies, one file for
//! each family of them.
//!
//! A case is an ordinary scenario, so that nothing but the plan knows it was not written by hand.

mod cases;
mod credentials;
pub mod deck;
mod heard;
mod later;
mod lists;
pub mod moves;
mod near;
pub mod neighbour;
mod parameters;
mod races;
mod refusals;
mod rest;
mod rich;
mod scope;
mod second;
mod several;

pub(super) use cases::derive;
