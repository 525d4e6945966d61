//! HAR 1.2: recorded traffic as exchanges, judged by all that an exchange or a history allows.
//!
//! Nobody said what the requests were meant to bring, so a refusal accuses nobody. `reading` brings the entries of a
//! file one by one, `entry` says what one is, `judged` judges them.

mod entry;
mod judged;
mod reading;

pub(super) use judged::judge_file;

#[cfg(test)]
mod tests;
