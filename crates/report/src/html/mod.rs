//! One HTML file that needs nothing else: readable without a script, searchable with it.
//!
//! Every value passes the template's escaping. The policy in the file allows its own style sheet
//! and script by hash and nothing else, so that even a mistake there could run and load nothing.
//!
//! `page` says which block follows which; each block has a file, `words` what their sentences have in common.

mod anatomy;
mod facts;
mod listing;
mod open;
mod page;
mod schedule;
mod services;
mod top;
mod unjudged;
mod words;

#[cfg(test)]
mod tests;

pub(super) use page::render;
