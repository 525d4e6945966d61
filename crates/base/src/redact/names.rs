//! Finds values under a name that announces a secret: headers, parameters, members.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use std::ops::Range;

/// Headers whose value is a credential, in lower case. [`is_secret_header`] matches further patterns.
const HEADERS: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-auth-token",
];

/// Query, form and body parameters whose value is a credential, in lower case.
const PARAMETERS: [&str; 11] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "passwd",
    "password",
    "refresh_token",
    "secret",
    "token",
];

/// Base64 of `{"`, with which every JSON Web Token starts.
const JWT_START: &str = "eyJ";

#[derive(Clone)]
pub(super) struct Names(AhoCorasick);

impl Default for Names {
    fn default() -> Self {
        let names = HEADERS.iter().chain(&PARAMETERS).chain(&[JWT_START]);
        let searcher = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(names);
        Self(searcher.expect("a few short names fit the automaton"))
    }
}

impl Names {
    /// The ranges of such values, sorted and disjoint.
    pub(super) fn values(&self, text: &str) -> Vec<Range<usize>> {
        let mut done = 0;
        let values = self.0.find_iter(text).filter_map(|name| {
            if name.start() < done {
                return None;
            }
            let value = if text[name.range()].eq_ignore_ascii_case(JWT_START) {
                jwt_signature(text, name.start())
            } else {
                named_value(text, name.range())
            };
            let value = value.filter(|value| !value.is_empty() && value.start >= done)?;
            let value = Some(value).filter(|value| !is_variable(text, value))?;
            done = value.end;
            Some(value)
        });
        values.collect()
    }
}

/// True for headers whose value is a credential.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HEADERS.contains(&name.as_str())
        || (name.starts_with("x-")
            && ["api-key", "-token", "-secret"]
                .iter()
                .any(|end| name.ends_with(end)))
}

/// True for query, form and body parameters whose value is a credential.
pub fn is_secret_parameter(name: &str) -> bool {
    PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
}

/// Whether a value is only the name of a variable: of the environment, as in commands to repeat a request, or of a Hurl
/// file, such as `{{api_key}}`. The name of the former contains a `_`, unless it is expanded in a header option of curl.
fn is_variable(text: &str, range: &Range<usize>) -> bool {
    let value = &text[range.clone()];
    let of_hurl = value
        .strip_prefix("{{")
        .and_then(|name| name.strip_suffix("}}"));
    if let Some(name) = of_hurl {
        return name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    }
    let name = value.strip_prefix('$').unwrap_or_default();
    let braced = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    let name = braced.unwrap_or(name);
    let is_part = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let is_expanded = || {
        let header = text[..range.start].rsplit_once("-H \"");
        header.is_some_and(|(_, header)| header.ends_with(": ") && !header.contains(['"', '\n']))
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    is_name && name.bytes().all(is_part) && (name.contains('_') || is_expanded())
}

/// The signature of a JSON Web Token at `start`. Without it the token only is readable.
fn jwt_signature(text: &str, start: usize) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // A token within another is handled with that one.
    if text[..start].ends_with(|c| is_part(c) || c == '.') {
        return None;
    }
    let token = text[start..].split(|c| !is_part(c) && c != '.').next()?;
    let mut parts = token.splitn(3, '.');
    let (head, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let from = start + head.len() + payload.len() + 2;
    (!signature.is_empty()).then_some(from..from + signature.len())
}

/// The value of the name at `name`: in a header line, a query or form, a JSON member or an XML element.
fn named_value(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    let before = &text[..name.start];
    if before.ends_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let rest = &text[name.end..];
    if let Some(end) = ["=", "]=", "%5D=", "%5d="]
        .iter()
        .find(|end| rest.starts_with(**end))
    {
        return parameter_value(text, name.end + end.len());
    }
    if rest.starts_with('>') {
        let from = name.end + 1;
        return Some(from..from + text[from..].find('<')?);
    }
    if let Some(quote) = ["\\\"", "\"", "'"]
        .iter()
        .find(|quote| rest.starts_with(**quote))
    {
        return member_value(text, name.end + quote.len(), quote);
    }
    header_value(text, name)
}

fn parameter_value(text: &str, from: usize) -> Option<Range<usize>> {
    let value = &text[from..];
    let (from, end) = match value.chars().next()? {
        quote @ ('"' | '\'') => (from + 1, value[1..].find(quote)),
        _ => (
            from,
            value.find(|c: char| c.is_whitespace() || "&;#<>\"'\\".contains(c)),
        ),
    };
    Some(from..end.map_or(text.len(), |end| from + end))
}

/// `"name": "value"` with any quote; also a number.
fn member_value(text: &str, after_name: usize, quote: &str) -> Option<Range<usize>> {
    let rest = text[after_name..]
        .trim_start()
        .strip_prefix(':')?
        .trim_start();
    if let Some(value) = rest.strip_prefix(quote) {
        let from = text.len() - value.len();
        return Some(from..from + end_of_quoted(value, quote));
    }
    let from = text.len() - rest.len();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    Some(from..from + end)
}

fn end_of_quoted(value: &str, quote: &str) -> usize {
    let mut escaped = false;
    for (at, c) in value.char_indices() {
        if value[at..].starts_with(quote) && !escaped {
            return at;
        }
        escaped = c == '\\' && !escaped;
    }
    value.len()
}

/// `Name: value` to the end of the line, or of the surrounding shell quotes.
fn header_value(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let value = text[name.end..].strip_prefix(':')?;
    let whole_from = text[..name.start].trim_end_matches(is_name).len();
    if !is_secret_header(&text[whole_from..name.end]) {
        return None;
    }
    let value = value.trim_start_matches([' ', '\t']);
    let from = text.len() - value.len();
    let line_end = value.find(['\r', '\n']).unwrap_or(value.len());
    let end = match text[..whole_from].chars().next_back() {
        Some(quote @ ('"' | '\'')) => end_of_shell_word(&value[..line_end], quote),
        _ => line_end,
    };
    Some(from..from + end)
}

/// Where the quotes close; `'\''` and `\"` do not close them.
fn end_of_shell_word(value: &str, quote: char) -> usize {
    let mut at = 0;
    while let Some(found) = value[at..].find(quote) {
        let end = at + found;
        if value[end..].starts_with("'\\''") {
            at = end + 4;
        } else if quote == '"' && value[..end].ends_with('\\') {
            at = end + 1;
        } else {
            return end;
        }
    }
    value.len()
}
