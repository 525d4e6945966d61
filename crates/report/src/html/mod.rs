//! A self-contained HTML report, readable without its script.
//!
//! - The template escapes every value. The content policy allows only the page's own style and script.
//! - `page` orders the blocks, each of which has a file; `words` has shared phrases.

mod anatomy;
mod archive;
mod facts;
mod listing;
mod open;
mod page;
mod repeats;
mod scenarios;
mod schedule;
mod services;
mod top;
mod unjudged;
mod words;

#[cfg(test)]
mod tests;

pub(super) use page::{hash, render};
