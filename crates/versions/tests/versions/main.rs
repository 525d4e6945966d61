//! Comparisons through the public interface.

mod compat;
mod content;
mod coordinates;
mod documents;
mod edited;
mod history;
mod judged_again;
mod ledger;
mod merge;
mod openapi;
mod operations;
mod place;
mod records;
mod released;
mod render;
mod repeat;
mod runs;
