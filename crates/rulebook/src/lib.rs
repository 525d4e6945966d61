//! The rulebook: `specs/` as a validated model.

mod all_rules;
pub mod annotations;
mod asyncapi;
mod call_format;
mod check;
mod compatibility;
mod draft;
pub mod expect;
pub mod hook_rules;
pub mod hooks;
mod invariants;
mod load;
mod model;
mod names;
pub mod open_points;
mod openapi;
pub mod paging;
mod problems;
mod requests;
mod resolved;
mod rule_files;
pub mod rules;
pub mod scenario;
mod scenarios;
mod schemas;
pub mod service;
mod sources;
mod spelling;
pub mod step;
mod step_format;
pub mod trace;
mod x_like;
pub mod xml;

pub use all_rules::{EvidenceSelection, Rules};
pub use check::{
    AppliesTo, Check, Compiled, Model, ParameterError, Parameters, PayloadRule, PredicateRegistry,
    Subject,
};
pub use compatibility::Compatibility;
pub use load::{companion, parse_configuration, parse_file, place_of};
pub use model::{
    Action, Echo, Edition, Kind, OpenPointEntry, Operation, Origin, Parameter, ParameterLocation,
    Rule, Rulebook, Service, event_version, is_one_event, items_at,
};
pub use names::{KindPointers, OperationParts, References};
pub use problems::{Problem, Problems, distance};
pub use requests::advice_rule_id;
pub use resolved::{Constraints, Place, Resolved, type_of, types};
pub use schemas::{OTHER_FIELDS_KEY, RULE_KEY};
pub use sources::hex;
pub use spelling::{Interpolation, Shift, duration, interpolations, kebab, shift};
pub use x_like::{base_name, expand_json, merge_reference_json};
