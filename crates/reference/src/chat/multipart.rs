//! Strict parser of complete `multipart/form-data` bodies (RFC 7578, RFC 2046).
//!
//! Parts are slices of the body, their number is bounded, and malformed bodies are refused.

use memchr::memmem;

/// Limit of parts.
const PARTS_MAX: usize = 64;
/// Longest block of part headers.
const HEADERS_BYTES_MAX: usize = 8 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// `name` of `Content-Disposition`.
    pub(super) name: String,
    /// `filename` of `Content-Disposition`.
    pub(super) file_name: Option<String>,
    /// `Content-Type` of the part.
    pub(super) content_type: Option<String>,
    /// The bytes between its headers and the next boundary.
    pub(super) bytes: &'a [u8],
}

pub(super) fn boundary(content_type: &str) -> Option<String> {
    let (media_type, parameters) = content_type.split_once(';')?;
    if !media_type
        .trim()
        .eq_ignore_ascii_case("multipart/form-data")
    {
        return None;
    }
    parameter(parameters, "boundary").filter(|b| !b.is_empty() && b.len() <= 70)
}

/// Every part of the body; `None` if it is malformed.
pub(super) fn parts<'a>(body: &'a [u8], boundary: &str) -> Option<Vec<Part<'a>>> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter may be at the very start, without a line break.
    let opening = &delimiter[2..];
    let mut rest = if body.starts_with(opening) {
        &body[opening.len()..]
    } else {
        &body[memmem::find(body, &delimiter)? + delimiter.len()..]
    };
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        if parts.len() == PARTS_MAX {
            return None;
        }
        rest = &rest[memmem::find(rest, b"\r\n").filter(|at| is_padding(&rest[..*at]))? + 2..];
        let end = memmem::find(rest, &delimiter)?;
        parts.push(part(&rest[..end])?);
        rest = &rest[end + delimiter.len()..];
    }
    Some(parts)
}

/// White space that may follow a boundary.
fn is_padding(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| matches!(b, b' ' | b'\t'))
}

fn part(bytes: &[u8]) -> Option<Part<'_>> {
    let (head, content) = if let Some(content) = bytes.strip_prefix(b"\r\n") {
        (&[][..], content)
    } else {
        let window = &bytes[..bytes.len().min(HEADERS_BYTES_MAX)];
        let end = memmem::find(window, b"\r\n\r\n")?;
        (&bytes[..end], &bytes[end + 4..])
    };
    let head = std::str::from_utf8(head).ok()?;
    let header = |name: &str| {
        head.split("\r\n")
            .filter_map(|line| line.split_once(':'))
            .find(|(n, _)| n.trim().eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    };
    let (kind, parameters) = header("Content-Disposition")?.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return None;
    }
    Some(Part {
        name: parameter(parameters, "name")?,
        file_name: parameter(parameters, "filename"),
        content_type: header("Content-Type").map(str::to_owned),
        bytes: content,
    })
}

/// One parameter of a header value, quoted or not; `\"` and `\\` in quotes are escapes.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=')?;
        let key = key.trim_matches(|c: char| c == ';' || c.is_whitespace());
        let (value, left) = value(after.trim_start());
        if key.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = left;
    }
}

/// The value at the start of the text, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_bytes_names_and_types() {
        let body = b"preamble\r\n--x \r\nContent-Disposition: form-data; name=\"media\"; \
            filename=\"a \\\"b\\\";c.png\"\r\ncontent-type: image/png\r\n\r\n\x00\r\n--xx\xff\r\n\
            --x\r\nContent-Disposition: form-data; name=note\r\n\r\n\r\n--x--\r\nepilogue";
        // `--xx` starts like the boundary but does not end like one. Such a body is refused, because no boundary
        // may occur within a part.
        assert_eq!(parts(body, "x"), None);
        let body = b"--bound\r\nContent-Disposition: form-data; name=\"media\"; \
            filename=\"a \\\"b\\\";c.png\"\r\ncontent-type: image/png\r\n\r\n\x00\r\n--\xff\r\n\
            --bound\r\nContent-Disposition: form-data; name=note\r\n\r\n\r\n--bound--\r\nepilogue";
        let parts = parts(body, "bound").unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].name, "media");
        assert_eq!(parts[0].file_name.as_deref(), Some("a \"b\";c.png"));
        assert_eq!(parts[0].content_type.as_deref(), Some("image/png"));
        assert_eq!(parts[0].bytes, b"\x00\r\n--\xff");
        assert_eq!((parts[1].name.as_str(), parts[1].bytes), ("note", &b""[..]));
    }

    #[test]
    fn bodies_that_are_not_well_formed_are_refused() {
        for body in [
            &b""[..],
            b"--b",
            b"--b\r\n",
            b"--b\r\nContent-Disposition: form-data; name=media\r\n\r\nno end",
            b"--b\r\nContent-Disposition: attachment; name=media\r\n\r\n\r\n--b--",
            b"--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--",
            b"--b\r\n\r\nno headers\r\n--b--",
            b"--bgarbage\r\nContent-Disposition: form-data; name=media\r\n\r\n\r\n--b--",
        ] {
            assert_eq!(parts(body, "b"), None, "{}", String::from_utf8_lossy(body));
        }
        let many = "--b\r\nContent-Disposition: form-data; name=media\r\n\r\n\r\n".repeat(65);
        assert_eq!(parts(format!("{many}--b--").as_bytes(), "b"), None);
        assert_eq!(parts(b"--b--", "b"), Some(Vec::new()));
    }

    #[test]
    fn boundaries_are_read_from_the_header() {
        for (header, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            (
                "Multipart/Form-Data;charset=utf-8; Boundary=\"a b\"",
                Some("a b"),
            ),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/mixed; boundary=abc", None),
            ("image/png; boundary=abc", None),
        ] {
            assert_eq!(boundary(header).as_deref(), expected, "{header}");
        }
    }
}
