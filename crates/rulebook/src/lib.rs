//! The rulebook: `specs/` as a validated model.

mod alike;
mod all_rules;
pub mod annotations;
mod asyncapi;
mod check;
mod draft;
pub mod expect;
pub mod hooks;
mod laws;
mod load;
mod model;
mod names;
pub mod open_points;
mod openapi;
pub mod paging;
mod problems;
pub mod reach;
mod requests;
pub mod rules;
pub mod scenario;
mod schemas;
pub mod service;
mod sources;
pub mod step;
mod stories;
pub mod trace;
pub mod unlocked;
mod words;
mod written;
mod written_call;
mod written_step;
pub mod xml;

pub use alike::{like, referring_json, written_out_json};
pub use all_rules::{CameBy, Rules};
pub use check::{
    AppliesTo, Catalogue, Check, Compiled, Model, Parameters, PayloadRule, Subject, Unread,
};
pub use load::{companion, parse_configuration, parse_file};
pub use model::{
    Does, Echo, Edition, Kind, OpenPointEntry, Operation, Origin, Parameter, Place, Rule, Rulebook,
    Service, event_version, is_one_event, items_at,
};
pub use names::{KindPointers, OperationParts, References};
pub use problems::{Problem, Problems};
pub use requests::advised;
pub use schemas::{OTHER_FIELDS_KEY, RULE_KEY};
pub use sources::hex;
pub use words::{Interpolation, Shift, duration, interpolations, kebab, shift};
