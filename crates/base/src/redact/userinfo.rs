//! Redacts user name and password in the URLs of a message.
//!
//! Reads a URL as people write it, so also one that is invalid: a password may contain an unencoded `/`.

use super::REDACTED;
use std::borrow::Cow;

/// The text with `scheme://[redacted]@host` in place of `scheme://user:password@host`.
#[must_use]
pub fn redact_userinfo(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        if start < done {
            continue;
        }
        if let Some(length) = userinfo(&text[start..]) {
            out.push_str(&text[done..start]);
            out.push_str(REDACTED);
            done = start + length;
        }
    }
    match done {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + &text[done..]),
    }
}

/// The length of the credentials at the start of what follows the scheme.
fn userinfo(rest: &str) -> Option<usize> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    let url = rest.split(is_end).next().unwrap_or_default();
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some(length) = authority.rfind('@') {
        return Some(length);
    }
    // `user:pass/word@host`: the text after the colon is not a port.
    let (host, port) = authority.rsplit_once(':')?;
    let is_port = port.bytes().all(|b| b.is_ascii_digit()) || host.starts_with('[');
    url.rfind('@').filter(|_| !is_port)
}
