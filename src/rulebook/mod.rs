//! The rulebook: `specs/` as a validated model.

mod model;
pub mod open_points;
mod problems;
pub mod rules;
pub mod scenario;
mod yaml;

pub use model::{
    Echo, Kind, OpenPointEntry, Operation, Origin, Parameter, Place, Rule, Rulebook, Service,
};
pub use problems::{Problem, Problems, Span};
