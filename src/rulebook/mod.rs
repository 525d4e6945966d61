//! The rulebook: `specs/` as a validated model.

pub mod open_points;
pub mod rules;
pub mod scenario;
