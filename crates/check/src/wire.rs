//! Confluent wire header: a zero byte and a schema id of four bytes, before a payload.
//!
//! A schema id may contain the byte of a line end. JSON contains no zero byte, so that a header is recognized.

/// Length of the header.
const HEADER: usize = 5;
/// Bytes before a position that decide whether a line ends there.
pub(super) const CONTEXT: usize = HEADER + 1;

/// Splits off the header of a payload. Schema ids begin at 1.
pub(super) fn split(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let ([0, id @ ..], payload) = bytes.split_first_chunk::<HEADER>()? else {
        return None;
    };
    let id = u32::from_be_bytes(*id);
    (id > 0).then_some((id, payload))
}

/// Whether the payload at the start of a text is empty, or begins like a JSON object, array or text. Later lines are not read.
pub(super) fn is_json(text: &[u8]) -> bool {
    let first = text.iter().find(|b| !matches!(b, b' ' | b'\t' | b'\r'));
    matches!(first, Some(b'{' | b'[' | b'"' | b'\n') | None)
}

/// Position of the first line end at or after a position.
pub(super) fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'\n', bytes.get(at..)?)?;
        if !is_in_header(bytes, at) {
            return Some(at);
        }
        at += 1;
    }
}

/// Position of the last line end at or after a position.
pub(super) fn last_line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut ends = memchr::memrchr_iter(b'\n', &bytes[from..]);
    ends.find(|end| !is_in_header(bytes, from + end))
        .map(|end| from + end)
}

/// Whether a line begins with a header that contains this position.
fn is_in_header(bytes: &[u8], at: usize) -> bool {
    (1..HEADER.min(at + 1)).any(|back| {
        let start = at - back;
        bytes[start] == 0 && (start == 0 || bytes[start - 1] == b'\n')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_split_off_and_other_bytes_are_not() {
        assert_eq!(split(b"\0\0\0\0\x0a{}"), Some((10, &b"{}"[..])));
        assert_eq!(split(b"\0\x01\0\0\0"), Some((1 << 24, &b""[..])));
        for text in [&b"{}"[..], b"", b"\0\0\0\0", b"\0\0\0\0\0{}"] {
            assert_eq!(split(text), None, "{text:?}");
        }
        assert!(is_json(b" {") && is_json(b"") && is_json(b"\r\n\0\0\0\0\x07{}"));
        assert!(!is_json(b"\x02abc") && !is_json(b" \x02abc"));
    }

    #[test]
    fn a_line_end_inside_a_header_ends_no_line() {
        let text = b"{}\n\0\0\0\0\n{}\n\0\n\n\n\n{}\n\0\0\0\n\0{7:7}\nx\n";
        let mut ends = Vec::new();
        let mut from = 0;
        while let Some(end) = line_end(text, from) {
            ends.push(end);
            from = end + 1;
        }
        assert_eq!(ends, [2, 10, 18, 29, 31]);
        assert_eq!(last_line_end(text, 0), Some(31));
        assert_eq!(last_line_end(&text[..29], 0), Some(18));
        assert_eq!(last_line_end(&text[..8], 5), None);
    }
}
