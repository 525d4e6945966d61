//! HTTP requests and responses as plain values, and causes of missing responses.
//!
//! Knows no socket, client or server.

mod cause;
mod kept;
mod received;

pub use cause::Cause;
pub use received::{ReceivedPart, multipart_parts};

use serde::{Deserialize, Serialize};
use std::fmt;

/// Scheme, host and port of a base URL, and its path without a trailing slash.
pub fn split_url(url: &str) -> (&str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..]
        .find('/')
        .map_or(url.len(), |at| authority + at);
    (&url[..path], url[path..].trim_end_matches('/'))
}

/// One HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// In upper case.
    pub method: String,
    /// Path and query of the request line, percent-encoded: `/v1/Flows?PageSize=2`.
    pub target: String,
    /// In sending order.
    pub headers: Headers,
    #[serde(with = "kept", default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<u8>,
}

/// One HTTP response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub status: u16,
    /// In order of receipt.
    pub headers: Headers,
    /// Without transfer framing.
    #[serde(with = "kept", default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<u8>,
    /// Readable violations of HTTP, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<String>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &str, target: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.into(),
            ..Self::default()
        }
    }

    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(self.target.as_str(), |(path, _)| path)
    }

    /// The query after the `?`, percent-encoded; empty if there is none.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The percent-decoded path segments; invalid UTF-8 becomes U+FFFD.
    pub fn segments(&self) -> Vec<String> {
        self.path()
            .split('/')
            .filter(|s| !s.is_empty())
            .map(percent_decode)
            .collect()
    }

    /// The query pairs in order, decoded as form data.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.query().as_bytes())
            .into_owned()
            .collect()
    }
}

impl Response {
    /// A response with a body of the given media type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut headers = Headers::default();
        headers.set("Content-Type", content_type);
        Self {
            status,
            headers,
            body: body.into(),
            oddities: Vec::new(),
        }
    }

    /// A response without a body.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// A JSON response; `value` is written compactly, keys in the given order.
    ///
    /// # Panics
    ///
    /// Never: every tree can be written.
    pub fn json(status: u16, value: &serde_json::Value) -> Self {
        let text = serde_json::to_vec(value).expect("a tree can be written");
        Self::new(status, "application/json", text)
    }

    /// True for 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Header fields in order; names compare without regard to ASCII case.
///
/// All fields share one text: a message has many short ones, and each would be two allocations.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Headers {
    text: String,
    /// End of each name and each value in the text.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    /// Replaces every field of that name.
    pub fn set(&mut self, name: &str, value: impl AsRef<str>) {
        self.remove(name);
        self.add(name, value);
    }

    /// Adds a field and keeps earlier ones of that name.
    pub fn add(&mut self, name: &str, value: impl AsRef<str>) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value.as_ref());
        self.ends.push((name_end, self.text.len()));
    }

    pub fn remove(&mut self, name: &str) {
        if self.get(name).is_some() {
            *self = self
                .iter()
                .filter(|(n, _)| !n.eq_ignore_ascii_case(name))
                .collect();
        }
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, value_end)| {
            let name = &self.text[start..name_end];
            start = value_end;
            (name, &self.text[name_end..value_end])
        })
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The media type without parameters, in lower case: `application/json`.
    pub fn media_type(&self) -> Option<String> {
        let value = self.get("Content-Type")?;
        Some(
            value
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase(),
        )
    }
}

/// One line per field, a form that the redactor knows.
impl From<Headers> for Vec<String> {
    fn from(headers: Headers) -> Self {
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect()
    }
}

impl From<Vec<String>> for Headers {
    fn from(lines: Vec<String>) -> Self {
        lines
            .iter()
            .map(|line| line.split_once(": ").unwrap_or((line, "")))
            .collect()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut headers = Self::default();
        for (name, value) in fields {
            headers.add(name.as_ref(), value);
        }
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

pub fn percent_decode(text: &str) -> String {
    String::from_utf8_lossy(&percent_decode_bytes(text)).into_owned()
}

/// Keeps percent signs without two digits.
pub fn percent_decode_bytes(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let byte = escaped.and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &rest[3..] } else { after };
    }
    decoded
}

/// Encodes everything but the unreserved characters of RFC 3986, for one path segment or query value.
pub fn percent_encode(text: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = |byte| match is_kept(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}
