//! `openapi.yaml`: the subset of OpenAPI 3.1 that the rulebook uses, as operations with their derived rules and inline
//! pages.
//!
//! - `keys` rejects unknown keys.
//! - `document` reads the file, `operation` one operation with its `parameters` and `answers`.
//! - `resources` assigns resource types to all operations.

mod answers;
mod document;
mod keys;
mod operation;
mod parameters;
mod resources;

pub(super) use document::{Advice, read};
pub(super) use resources::find_resources;
