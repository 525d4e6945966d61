//! Imports of the predicates' files.

pub(super) use crate::acceptance::Acceptance;
pub(super) use crate::change::Change;
pub(super) use crate::compare::{as_text, instant};
pub(super) use crate::context::{Context, Representation, Seen};
#[cfg(test)]
pub(super) use crate::examples::{Example, ExampleBuilder, in_channel, member, page, service, sid};
pub(super) use crate::history::{
    Appearance, History, Item, List, Moment, Observation, Origin, Outcome, Resource, ResourceId,
    Write, is_equivalent,
};
pub(super) use crate::mutation::Mutation;
pub(super) use crate::predicate::{Need, Predicate};
pub(super) use crate::sites::{Site, Sites};
pub(super) use crate::verdicts::{Fact, Vacuity, Verdicts};
pub(super) use conformant_base::json;
pub(super) use conformant_rulebook::annotations::Annotations;
pub(super) use conformant_rulebook::{
    Action, AppliesTo, Model, Operation, PayloadRule, References, Rule, Subject,
};
pub(super) use schemars::JsonSchema;
pub(super) use serde::Deserialize;
pub(super) use serde_json::{Value, json};
pub(super) use std::collections::{BTreeMap, BTreeSet};

/// An operation with its service: `SERVICE/OPERATION`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(super) struct OperationName(String);

impl OperationName {
    /// `SERVICE/ID`, or the id only.
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// The operation's id.
    pub(super) fn id(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

/// The operations that an invariant applies to, with their service.
pub(super) fn operations(model: &Model<'_>, fits: impl Fn(&Operation) -> bool) -> Vec<String> {
    let fitting = model
        .operations()
        .filter(|o| o.resource.is_some() && fits(o));
    fitting.map(|o| format!("{}/{}", o.service, o.id)).collect()
}

/// Whether the pointer leads to an address: some addresses follow the newest child of a resource.
pub(super) fn is_address(pointer: &str) -> bool {
    ["/url", "/links"]
        .iter()
        .any(|at| json::within(at, pointer))
}
