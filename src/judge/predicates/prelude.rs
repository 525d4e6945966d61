//! What a predicate's file uses.

pub(super) use crate::json;
pub(super) use crate::judge::case::{Case, Representation};
pub(super) use crate::judge::change::Change;
pub(super) use crate::judge::examples::{Example, Scene};
pub(super) use crate::judge::mutation::Mutation;
pub(super) use crate::judge::predicate::{Need, Predicate};
pub(super) use crate::judge::sites::{Site, Sites};
pub(super) use crate::judge::verdicts::{Fact, Judged, Trivial, Verdicts};
pub(super) use crate::rulebook::{Check, Model, Names, PayloadRule, Rule, Subject};
pub(super) use schemars::JsonSchema;
pub(super) use serde::Deserialize;
pub(super) use serde_json::{Value, json};
