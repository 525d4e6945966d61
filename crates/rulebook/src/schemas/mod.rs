//! JSON Schema files: their lint, the rules that each property derives, and self-contained schemas.
//!
//! Validates no instance; `conformant_schema` does. `keywords` is what they are written with, `references` and `at` where one
//! leads and stands; `derive` goes through them, with `lint` for what is wrong, and `bundle` makes others of them.

mod at;
mod bundle;
mod derive;
mod keywords;
mod lint;
mod references;

pub(super) use at::At;
pub(super) use bundle::{Bundler, inline};
pub(super) use derive::derive;
pub(super) use references::{node_at, owner, target};

/// Annotation of a bundled schema: the rule of the property that it describes.
pub const RULE_KEY: &str = "x-rule-id";
/// Annotation of a bundled schema: the rule that judges fields it does not list.
pub const OTHER_FIELDS_KEY: &str = "x-other-fields";

/// Definitions that all services share.
const COMMON: &str = "common.yaml";
