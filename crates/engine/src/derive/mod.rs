//! Derived scenarios: the cases that OpenAPI implies for the happy path of each operation, one module per family.
//!
//! A case is an ordinary scenario. Only the plan distinguishes it from a written one.

mod boundary;
mod cases;
mod credentials;
pub mod deck;
mod foreign_ids;
mod lists;
mod notifications;
mod other_account;
mod parameters;
mod partial_updates;
mod races;
mod refusals;
mod repeated_reads;
mod restored;
mod second_entry;
pub mod second_tenant;
pub mod sequence;
mod special_characters;
mod two_tenants;
mod witnesses;

pub(super) use cases::derive;
