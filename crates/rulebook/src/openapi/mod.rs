//! `openapi.yaml`: the subset of OpenAPI 3.1 that the rulebook uses, as operations with their derived rules and inline
//! pages.
//!
//! Unknown keys are problems (`keys`). Nothing is sent from here. `document` goes through the file, `operation` through one
//! operation with its `parameters` and `answers`; `things` looks back at all of them.

mod answers;
mod document;
mod keys;
mod operation;
mod parameters;
mod things;

pub(super) use document::{Advice, read};
pub(super) use things::find_things;
