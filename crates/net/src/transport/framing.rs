//! Length of a body from headers and chunk lines, and why it is ambiguous.
//!
//! Strict: if two readers could see two lengths there is none. `reading` chooses between length and codings.

use conformant_base::http::Headers;
use conformant_base::size::Size;
use conformant_base::text;

/// Characters of an untrusted line in a message.
const SHOWN_CHARS: usize = 60;

/// Why the end of a body is ambiguous.
#[derive(Debug, thiserror::Error)]
pub(super) enum FramingError {
    #[error("Content-Length \"{}\" is not a number of bytes", .0.escape_default())]
    NotALength(String),
    #[error("Content-Length {0} is too large")]
    BeyondLength(String),
    #[error("Content-Length states both {0} and {1}")]
    TwoLengths(String, String),
    /// More bytes than announced.
    #[error("Content-Length states {length} bytes, but at least {got} came")]
    Surplus { length: u64, got: u64 },
    /// Codings that do not delimit a body, or that the version does not support.
    #[error("Transfer-Encoding \"{}\" in an HTTP/{version} response", .codings.escape_default())]
    Codings {
        codings: String,
        version: &'static str,
    },
    #[error("invalid chunk size \"{}\"", text::wire(.0, SHOWN_CHARS))]
    ChunkSize(Vec<u8>),
    #[error("a chunk longer than its size")]
    LongChunk,
    #[error("a chunk line without CR")]
    WithoutCr,
    #[error("a chunk line longer than {0}")]
    LongLine(Size),
    #[error("more than {0} of chunk extensions and trailers")]
    Decorations(Size),
    #[error("the last chunk is missing")]
    NoLastChunk,
    #[error("invalid trailer \"{}\"", text::wire(.0, SHOWN_CHARS))]
    Trailer(Vec<u8>),
    #[error("more than {0} trailers")]
    Trailers(usize),
}

/// The length on which all `Content-Length` headers agree.
pub(super) fn content_length(headers: &Headers) -> Result<Option<u64>, FramingError> {
    let mut found: Option<(&str, u64)> = None;
    for value in values(headers, "Content-Length") {
        if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
            return Err(FramingError::NotALength(value.to_owned()));
        }
        let length = value
            .parse()
            .map_err(|_| FramingError::BeyondLength(value.to_owned()))?;
        match found {
            Some((first, other)) if other != length => {
                return Err(FramingError::TwoLengths(first.to_owned(), value.to_owned()));
            }
            _ => found = Some((value, length)),
        }
    }
    Ok(found.map(|(_, length)| length))
}

pub(super) fn transfer_codings(headers: &Headers) -> Vec<String> {
    values(headers, "Transfer-Encoding")
        .map(str::to_ascii_lowercase)
        .collect()
}

pub(super) fn closes(headers: &Headers) -> bool {
    values(headers, "Connection").any(|token| token.eq_ignore_ascii_case("close"))
}

/// Comma-separated elements of all headers of that name.
fn values<'h>(headers: &'h Headers, name: &'static str) -> impl Iterator<Item = &'h str> {
    headers
        .iter()
        .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
        .flat_map(|(_, value)| value.split(',').map(str::trim))
}

/// The size on a chunk line: hexadecimal digits, then nothing or an extension.
pub(super) fn chunk_size(line: &[u8]) -> Result<u64, FramingError> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default();
    let digits = digits.trim_ascii_end();
    let wrong = || FramingError::ChunkSize(line.to_vec());
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(wrong)
}
