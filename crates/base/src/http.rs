//! HTTP requests and responses as plain values, and why there is no response.
//!
//! Deliberately knows no sockets, no client and no server: `transport` moves these values over a
//! wire, `reference` turns one into the other, `judge` reads both.

mod cause;
mod kept;
mod received;

pub use cause::Cause;
pub use received::{Received, received};

use serde::{Deserialize, Serialize};
use std::fmt;

/// One HTTP request: what is sent, before any transport touches it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The method in upper case, `GET`, `POST` or `DELETE` in the documents.
    pub method: String,
    /// Path and query as they stand on the request line, percent-encoded: `/v1/Flows?PageSize=2`.
    pub target: String,
    /// Header fields in sending order; names compare without regard to case.
    pub headers: Headers,
    /// The body as sent; empty when there is none.
    #[serde(with = "kept", default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<u8>,
}

/// One HTTP response: what came back, body complete and unframed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status code as a number.
    pub status: u16,
    /// Header fields in the order received.
    pub headers: Headers,
    /// The body without transfer framing.
    #[serde(with = "kept", default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<u8>,
    /// What was odd about the way it came that did not keep it from being read, in words.
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

    /// The target up to the query.
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(self.target.as_str(), |(path, _)| path)
    }

    /// The part of the target behind the `?`, still percent-encoded; empty when there is none.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The path's segments, percent-decoded; invalid UTF-8 becomes U+FFFD.
    pub fn segments(&self) -> Vec<String> {
        self.path()
            .split('/')
            .filter(|s| !s.is_empty())
            .map(percent_decode)
            .collect()
    }

    /// The query's pairs in order, decoded as form data.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query().as_bytes())
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

    /// A JSON response; `value` is written compactly, keys in their given order.
    ///
    /// # Panics
    ///
    /// Never: whatever is a tree can be written.
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
/// All of them stand in one text: a message has many short ones, and each would be two allocations.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Headers {
    text: String,
    /// Where in the text each name and each value ends; one begins where the last has ended.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    /// Replaces every field of that name by this one.
    pub fn set(&mut self, name: &str, value: impl AsRef<str>) {
        self.remove(name);
        self.add(name, value);
    }

    /// Adds a field, keeping earlier ones of the same name.
    pub fn add(&mut self, name: &str, value: impl AsRef<str>) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value.as_ref());
        self.ends.push((name_end, self.text.len()));
    }

    /// Removes every field of that name.
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

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is no field.
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

/// One line for each field, as it stands in a message: what redacts texts knows that form.
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

/// Decodes percent-encoding; invalid UTF-8 becomes U+FFFD.
pub fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// Encodes everything but the unreserved characters of RFC 3986, so that the text is one path
/// segment or one query value.
pub fn percent_encode(text: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    percent_encoding::utf8_percent_encode(text, KEEP).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_split_into_decoded_parts() {
        let request = Request::new(
            "GET",
            "/v2/Services/a%20b/Users?Identity=x%2By&Identity=z+w",
        );
        assert_eq!(request.segments(), ["v2", "Services", "a b", "Users"]);
        assert_eq!(
            request.query_pairs(),
            [
                ("Identity".into(), "x+y".into()),
                ("Identity".into(), "z w".into())
            ]
        );
        assert_eq!(percent_decode(&percent_encode("a/b c+ü%")), "a/b c+ü%");
    }

    #[test]
    fn header_names_compare_without_case_and_keep_order() {
        let mut headers = Headers::default();
        headers.add("Content-Type", "application/JSON; charset=utf-8");
        headers.add("X-A", "1");
        headers.add("x-a", "2");
        assert_eq!(headers.get("X-a"), Some("1"));
        assert_eq!(headers.media_type().as_deref(), Some("application/json"));
        headers.set("x-A", "3");
        assert_eq!(headers.iter().collect::<Vec<_>>()[1..], [("x-A", "3")]);
    }
}
