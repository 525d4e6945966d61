//! Encodes values for a place in a request; refuses them where no encoding exists.
//!
//! Knows no operations; the caller chooses the place.

use base64::Engine as _;
use conformant_base::http::{Request, percent_encode};
use std::fmt;

/// A value without an encoding at its place; completes "failed to build the request: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason} at byte {at}")]
pub struct EncodeError {
    pub place: Place,
    pub reason: String,
    /// Byte offset in the value.
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Method,
    Target,
    PathSegment,
    HeaderName,
    /// The value of the named header.
    HeaderValue(String),
    Username,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method => f.write_str("method"),
            Self::Target => f.write_str("request target"),
            Self::PathSegment => f.write_str("path segment"),
            Self::HeaderName => f.write_str("header name"),
            Self::HeaderValue(name) => write!(f, "value of header {}", name.escape_default()),
            Self::Username => f.write_str("username"),
        }
    }
}

/// Encodes one path segment. Empty and dot segments are refused: they would address another resource.
pub fn path_segment(value: &str) -> Result<String, EncodeError> {
    if matches!(value, "" | "." | "..") {
        return Err(EncodeError {
            place: Place::PathSegment,
            reason: format!("{value:?} would change the path"),
            at: 0,
        });
    }
    Ok(percent_encode(value))
}

/// A query without `?`; a blank becomes `%20`, which no parser confuses with a plus sign.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(&percent_encode(name));
        text.push('=');
        text.push_str(&percent_encode(value));
    }
    text
}

/// An `application/x-www-form-urlencoded` body.
pub fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// The value of an `Authorization` header with Basic credentials (RFC 7617).
pub fn basic(username: &str, password: &str) -> Result<String, EncodeError> {
    if let Some(at) = username.find(':') {
        return Err(EncodeError {
            place: Place::Username,
            reason: "a colon is not allowed".into(),
            at,
        });
    }
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    Ok(format!("Basic {pair}"))
}

/// Checks a header: a token as name; visible ASCII, blanks and tabs in the value.
pub fn header(name: &str, value: &str) -> Result<(), EncodeError> {
    token(Place::HeaderName, name)?;
    let good = |b: u8| b == b'\t' || (b' '..=b'~').contains(&b);
    match value.bytes().position(|b| !good(b)) {
        None => Ok(()),
        Some(at) => Err(refuse(Place::HeaderValue(name.to_owned()), value, at)),
    }
}

/// Checks that a request can be sent unchanged.
pub fn check(request: &Request) -> Result<(), EncodeError> {
    token(Place::Method, &request.method)?;
    let target = &request.target;
    if !target.starts_with('/') {
        return Err(EncodeError {
            place: Place::Target,
            reason: "no leading slash".into(),
            at: 0,
        });
    }
    let foreign = |b: u8| !b.is_ascii_graphic() || b == b'#';
    if let Some(at) = target.bytes().position(foreign) {
        return Err(refuse(Place::Target, target, at));
    }
    request.headers.iter().try_for_each(|(n, v)| header(n, v))
}

fn token(place: Place, text: &str) -> Result<(), EncodeError> {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if text.is_empty() {
        return Err(EncodeError {
            place,
            reason: "empty".into(),
            at: 0,
        });
    }
    match text.bytes().position(|b| !good(b)) {
        None => Ok(()),
        Some(at) => Err(refuse(place, text, at)),
    }
}

fn refuse(place: Place, text: &str, at: usize) -> EncodeError {
    let character = text[at..].chars().next().expect("a position in the text");
    EncodeError {
        place,
        reason: format!("U+{:04X} is not allowed", u32::from(character)),
        at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\r\nX: y\0ü&=+/?#%\u{202e}";

    #[test]
    fn hostile_values_are_encoded_where_there_is_an_encoding() {
        let segment = path_segment(HOSTILE).expect("encodable");
        assert_eq!(conformant_base::http::percent_decode(&segment), HOSTILE);
        assert!(segment.bytes().all(|b| b.is_ascii_graphic() && b != b'/'));

        let request = Request::new("GET", format!("/x?{}", query([(HOSTILE, HOSTILE)])));
        assert_eq!(request.query_pairs(), [(HOSTILE.into(), HOSTILE.into())]);
        check(&request).expect("sendable");

        let body = form([("Body", HOSTILE), ("Body", "2")]);
        let read: Vec<_> = url::form_urlencoded::parse(body.as_bytes())
            .into_owned()
            .collect();
        assert_eq!(
            read,
            [("Body".into(), HOSTILE.into()), ("Body".into(), "2".into())]
        );

        assert_eq!(
            query([("DateCreated>", "2026-01-01T00:00:00-00:00")]),
            "DateCreated%3E=2026-01-01T00%3A00%3A00-00%3A00"
        );
    }

    #[test]
    fn values_without_a_form_are_refused_with_their_position() {
        let with = |name: &str, value: &str| {
            let mut request = Request::new("GET", "/");
            request.headers.add(name, value);
            request
        };
        check(&with("X-A", "tab\tis fine")).expect("sendable");
        for (request, place, reason, at) in [
            (
                with("X-A", "a\r\nX-B: c"),
                "value of header X-A",
                "U+000D",
                1,
            ),
            (with("X-A", "a\0"), "value of header X-A", "U+0000", 1),
            (with("X-A", "aü"), "value of header X-A", "U+00FC", 1),
            (with("X A", ""), "header name", "U+0020", 1),
            (with("", "x"), "header name", "empty", 0),
            (Request::new("GE T", "/"), "method", "U+0020", 2),
            (Request::new("", "/"), "method", "empty", 0),
            (
                Request::new("GET", "x"),
                "request target",
                "no leading slash",
                0,
            ),
            (Request::new("GET", "/a b"), "request target", "U+0020", 2),
            (
                Request::new("GET", "/a\r\nX: y"),
                "request target",
                "U+000D",
                2,
            ),
            (Request::new("GET", "/#x"), "request target", "U+0023", 1),
            (Request::new("GET", "/ü"), "request target", "U+00FC", 1),
        ] {
            let is_character = reason.starts_with("U+");
            let rest = if is_character { " is not allowed" } else { "" };
            let found = check(&request).expect_err(place).to_string();
            assert_eq!(found, format!("{place}: {reason}{rest} at byte {at}"));
        }
        for dots in ["", ".", ".."] {
            assert!(path_segment(dots).is_err(), "{dots:?}");
        }
        assert_eq!(path_segment("a.b").as_deref(), Ok("a.b"));
    }

    #[test]
    fn basic_credentials_are_encoded() {
        assert_eq!(basic("AC1", "s:ü").as_deref(), Ok("Basic QUMxOnM6w7w="));
        assert_eq!(basic("a:b", "").expect_err("a colon").at, 1);
    }
}
