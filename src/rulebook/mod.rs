//! The rulebook: `specs/` as a validated model.

mod model;
pub mod open_points;
pub mod rules;
pub mod scenario;

pub use model::{
    Echo, Kind, OpenPointEntry, Operation, Origin, Parameter, Place, Rule, Rulebook, Service,
};
