//! HAR 1.2: recorded traffic, judged by rules about exchanges and histories.
//!
//! `reading` reads the entries one by one, `entry` decodes them, `judged` judges them. The intent of the requests is
//! unknown, so that a refusal is never reported.

mod entry;
mod judged;
mod reading;

pub(super) use judged::judge_file;

#[cfg(test)]
mod tests;
