//! Removes secrets from text: one redactor for every output.
//!
//! - `redactor`: finds the given secrets in any encoding.
//! - `patterns`: search patterns for one secret.
//! - `view`: a text with its encodings undone.
//! - `names`: values under names that announce a secret.
//! - `userinfo`: user name and password in a URL.
//!
//! Does not read the environment and knows no report. Each writer redacts its own output.

mod names;
mod patterns;
mod redactor;
mod userinfo;
mod view;

pub use self::names::{is_secret_header, is_secret_parameter};
pub use self::redactor::{REDACTED, Redactor, SECRET_BYTES_MIN};
pub use self::userinfo::redact_userinfo;
