//! Secrets taken out of text: one redactor for every output.
//!
//! - `redactor`: finds the secrets it was given, in whatever encoding they are echoed.
//! - `patterns`: what is searched for in a text, for one secret.
//! - `view`: a text with its encodings undone, and where each byte of it came from.
//! - `names`: values that stand under a name that announces a secret.
//!
//! Does not read the environment and does not know reports: who writes something out passes it
//! through here first.

mod names;
mod patterns;
mod redactor;
mod view;

#[cfg(test)]
mod tests;

pub use self::names::{is_secret_header, is_secret_parameter};
pub use self::redactor::{REDACTED, Redactor, SECRET_BYTES_MIN};
