//! One HTML file that needs nothing else: readable without a script, searchable with it.
//!
//! Every value passes the template's escaping. The policy in the file allows its own style sheet
//! and script by hash and nothing else, so that even a mistake there could run and load nothing.

mod anatomy;
mod listing;
mod page;
mod schedule;

#[cfg(test)]
mod tests;

pub(super) use page::render;
