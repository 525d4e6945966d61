//! JSON Schema files: lint, derived rules of properties, and self-contained schemas.
//!
//! - Instances are validated by `conformant_schema`.
//! - `derive` traverses the files with `keywords` and `references`; `at` tracks the place in a representation.
//! - `lint` reports problems, and `bundle` builds self-contained schemas.

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

/// Annotation of a bundled schema: the rule of the property.
pub const RULE_KEY: &str = "x-rule-id";
/// Annotation of a bundled schema: the rule about unlisted fields.
pub const OTHER_FIELDS_KEY: &str = "x-other-fields";

/// Definitions shared by all services.
const COMMON: &str = "common.yaml";
