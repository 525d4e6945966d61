//! Parses a response from untrusted bytes.
//!
//! - Strict if leniency would let two readers see different responses (lengths, codings, chunks).
//! - Bounded: head, interim responses, body, chunk extensions and trailers. An announced length reserves at most 64 KiB.
//! - Bodies are not decoded.

use super::budget::BudgetShare;
use super::connection::{Ending, Exchange};
use super::fault::Fault;
use super::framing::{FramingError, chunk_size, closes, content_length, transfer_codings};
use conformant_base::http::{Cause, Headers, Response};
use conformant_base::size::Size;
use conformant_base::text;
use std::borrow::Cow;
use std::mem::MaybeUninit;

/// Beginning of a response.
const HTTP: &[u8] = b"HTTP/";
/// Longest head: status line and headers.
const HEAD_BYTES: usize = 64 * 1024;
/// Header fields in one head.
const HEAD_LINES: usize = 256;
/// Interim (1xx) responses before the final one.
const INTERIM_ANSWERS: usize = 16;
/// Longest chunk line.
const CHUNK_LINE_BYTES: usize = 4 * 1024;
/// Bytes of chunk extensions and trailers in one body.
const DECORATION_BYTES: usize = 64 * 1024;
/// Memory that is reserved for an announced length.
const RESERVED_BYTES: usize = 64 * 1024;
/// Bytes of an unknown protocol in a message.
const SHOWN_BYTES: usize = 16;

/// A response with notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub response: Response,
    /// Oddities that do not prevent judging.
    pub notes: Vec<Note>,
    /// True if the connection can be reused.
    pub(super) reusable: bool,
}

/// An oddity of a judgeable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// Both `Content-Length` and `Transfer-Encoding`; read as chunked.
    #[error("both Content-Length and Transfer-Encoding; read as chunked")]
    LengthAndChunked,
    /// A body, sent or announced, although the status forbids one.
    #[error("status {status} with a body")]
    BodyNotAllowed { status: u16 },
    /// Bytes after a response to HEAD, which never has a body.
    #[error("a body in a response to HEAD")]
    BodyAfterHead,
    /// 101: an unrequested protocol switch.
    #[error("unrequested status 101")]
    SwitchedProtocols,
    /// An unrequested second response; discarded.
    #[error("a second response followed and was discarded")]
    SecondAnswer,
    /// A response before the whole request was received.
    #[error("responded after {sent} of {total} bytes of the request")]
    Early { sent: usize, total: usize },
    /// A kept connection was dead, and the request was sent again.
    #[error("sent again, because the kept connection was dead")]
    Resent,
}

impl Note {
    /// True if the target wrote it; false if it depends on timing.
    pub const fn is_written_by_target(&self) -> bool {
        !matches!(self, Self::Early { .. } | Self::Resent)
    }
}

/// Reads the response to a request with that method.
pub(super) fn read(
    exchange: &mut Exchange<'_>,
    method: &str,
    body_limit: usize,
    share: &BudgetShare,
) -> Result<Answer, Fault> {
    let mut interim = 0;
    let head = loop {
        let head = read_head(exchange)?;
        if !(100..200).contains(&head.status) || head.status == 101 {
            break head;
        }
        interim += 1;
        if interim > INTERIM_ANSWERS {
            let detail = format!("more than {INTERIM_ANSWERS} interim responses");
            return Err(Fault::new(Cause::InterimOverLimit, detail));
        }
    };
    let body = Body {
        exchange,
        share,
        status: head.status,
        limit: body_limit,
        bytes: Vec::new(),
        expected: None,
        notes: Vec::new(),
    };
    let answer = body.read(head, method)?;
    share.keep(answer.response.body.len());
    Ok(answer)
}

/// A parsed head.
#[derive(Debug)]
struct Head {
    status: u16,
    /// False for HTTP/1.0.
    is_1_1: bool,
    headers: Headers,
}

fn read_head(exchange: &mut Exchange<'_>) -> Result<Head, Fault> {
    let mut scanned = 0;
    loop {
        let bytes = exchange.available();
        if !looks_like_http(bytes) {
            return Err(not_http(bytes));
        }
        if let Some(length) = head_length(bytes, &mut scanned) {
            if length > HEAD_BYTES {
                return Err(head_over_limit());
            }
            let head = parse_head(&bytes[..length])?.ok_or_else(|| malformed(bytes))?;
            exchange.consume(length);
            return Ok(head);
        }
        if bytes.len() > HEAD_BYTES {
            return Err(head_over_limit());
        }
        if let Err(end) = exchange.more() {
            return Err(within_head(exchange, &end));
        }
    }
}

/// The length of the head, once its empty line is there; scans each byte once.
fn head_length(bytes: &[u8], scanned: &mut usize) -> Option<usize> {
    while let Some(found) = bytes[*scanned..].iter().position(|b| *b == b'\n') {
        let line_end = *scanned + found;
        match &bytes[line_end + 1..] {
            [b'\n', ..] => return Some(line_end + 2),
            [b'\r', b'\n', ..] => return Some(line_end + 3),
            // The next line may still be the empty one.
            [] | [b'\r'] => {
                *scanned = line_end;
                return None;
            }
            _ => *scanned = line_end + 1,
        }
    }
    *scanned = bytes.len();
    None
}

/// Parses a head; `None` if it is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; HEAD_LINES];
    let mut parsed = httparse::Response::new(&mut []);
    let outcome = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut parsed,
        bytes,
        &mut fields,
    );
    match outcome {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(head_over_limit()),
        Err(_) => return Err(malformed(bytes)),
    }
    let status = parsed.code.expect("a complete head has a status");
    if !(100..=599).contains(&status) {
        return Err(malformed(bytes));
    }
    let headers = parsed
        .headers
        .iter()
        .map(|field| (field.name, text(field.value)))
        .collect();
    Ok(Some(Head {
        status,
        is_1_1: parsed.version == Some(1),
        headers,
    }))
}

/// The value of a header: UTF-8 if valid, else one character per byte.
fn text(value: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(value).map_or_else(
        |_| value.iter().map(|b| char::from(*b)).collect(),
        Cow::Borrowed,
    )
}

/// Whether bytes may be the beginning of a response.
fn looks_like_http(bytes: &[u8]) -> bool {
    bytes.starts_with(HTTP) || HTTP.starts_with(bytes)
}

/// The beginning of the description where a server speaks TLS, although the address is `http://`.
pub const LIKE_TLS: &str = "looks like TLS";

fn not_http(bytes: &[u8]) -> Fault {
    let hint = match bytes {
        [0x14..=0x17, 3, ..] => LIKE_TLS,
        [b'S', b'S', b'H', b'-', ..] => "looks like SSH",
        [b'2', b'2', b'0', b' ' | b'-', ..] => "looks like SMTP or FTP",
        [0, 0, _, 4, ..] | [b'P', b'R', b'I', b' ', ..] => "looks like HTTP/2",
        [b'<' | b'{' | b'[', ..] => "looks like HTTP/0.9: no headers",
        _ => "no known protocol",
    };
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let hex: Vec<String> = shown.iter().map(|b| format!("{b:02x}")).collect();
    let cut = if shown.len() < bytes.len() { "…" } else { "" };
    let detail = format!("{hint}; the response starts with {}{cut}", hex.join(" "));
    Fault::new(Cause::NotHttp, detail)
}

fn malformed(bytes: &[u8]) -> Fault {
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let detail = format!(
        "the headers are not HTTP/1.1: \"{}\"",
        text::wire(line, 120)
    );
    Fault::new(Cause::MalformedHead, detail)
}

fn head_over_limit() -> Fault {
    let limit = Size(HEAD_BYTES as u64);
    let detail = format!("the headers have more than {limit} or {HEAD_LINES} lines");
    Fault::new(Cause::HeadOverLimit, detail)
}

/// Why there is no complete head.
fn within_head(exchange: &Exchange<'_>, end: &Ending) -> Fault {
    let bytes = exchange.available();
    // An invalid start is reported first.
    if !bytes.is_empty()
        && let Err(fault) = parse_head(bytes)
    {
        return fault;
    }
    // Interim responses count: the target received the request.
    let got = exchange.received;
    let within = || format!("{end} after {got} bytes, within the headers");
    match end {
        Ending::Interrupted => Fault::new(Cause::Interrupted, "waiting for the response headers"),
        Ending::Late if got > 0 => Fault::new(Cause::HeadersTimeout, within()),
        Ending::Late if !exchange.is_sent() => exchange.write_timeout(),
        Ending::Late => {
            let detail = "deadline passed without a byte of a response";
            Fault::new(Cause::FirstByteTimeout, detail)
        }
        Ending::Closed | Ending::Broken(_) if got > 0 => Fault::new(Cause::Truncated, within()),
        Ending::Closed => match &exchange.refused {
            Some(error) => exchange.reset(error),
            None => {
                let detail = "the connection was closed without a response";
                Fault::new(Cause::EmptyResponse, detail)
            }
        },
        Ending::Broken(error) => exchange.reset(error),
    }
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    None,
    Length(u64),
    Chunked,
    ToTheEnd,
}

/// A body while it is read.
struct Body<'e, 'c> {
    exchange: &'e mut Exchange<'c>,
    share: &'e BudgetShare,
    status: u16,
    limit: usize,
    bytes: Vec<u8>,
    /// The announced length, for messages.
    expected: Option<u64>,
    notes: Vec<Note>,
}

impl Body<'_, '_> {
    fn read(mut self, head: Head, method: &str) -> Result<Answer, Fault> {
        let framing = self.framing(&head, method)?;
        match framing {
            Framing::None => {}
            Framing::Length(length) => self.read_length(length)?,
            Framing::Chunked => self.read_chunks()?,
            Framing::ToTheEnd => self.read_to_the_end()?,
        }
        let mut reusable = head.is_1_1 && framing != Framing::ToTheEnd && !closes(&head.headers);
        reusable &= self.check_surplus(framing)?;
        if !self.exchange.is_sent() {
            let (sent, total) = self.exchange.progress();
            self.notes.push(Note::Early { sent, total });
        }
        Ok(Answer {
            reusable: reusable && self.exchange.is_sent() && self.notes.is_empty(),
            notes: self.notes,
            response: Response {
                oddities: Vec::new(),
                status: head.status,
                headers: head.headers,
                body: self.bytes,
            },
        })
    }

    /// Follows RFC 9112, section 6.3, and refuses what it calls an error or an attack.
    fn framing(&mut self, head: &Head, method: &str) -> Result<Framing, Fault> {
        let length = content_length(&head.headers).map_err(|why| self.framing_fault(&why))?;
        let codings = transfer_codings(&head.headers);
        let chunked = match codings.as_slice() {
            [] => false,
            [one] if one == "chunked" && head.is_1_1 => true,
            _ => {
                return Err(self.framing_fault(&FramingError::Codings {
                    codings: codings.join(", "),
                    version: if head.is_1_1 { "1.1" } else { "1.0" },
                }));
            }
        };
        if head.status == 101 {
            self.notes.push(Note::SwitchedProtocols);
            return Ok(Framing::None);
        }
        if matches!(head.status, 204 | 304) {
            // A 304 and a response to HEAD may announce the framing of a 200 (RFC 9112, section 6.1).
            if head.status == 204 && (chunked || length.is_some_and(|n| n > 0)) {
                self.notes.push(Note::BodyNotAllowed {
                    status: head.status,
                });
            }
            return Ok(Framing::None);
        }
        if method == "HEAD" {
            return Ok(Framing::None);
        }
        if chunked {
            if length.is_some() {
                self.notes.push(Note::LengthAndChunked);
            }
            return Ok(Framing::Chunked);
        }
        Ok(length.map_or(Framing::ToTheEnd, Framing::Length))
    }

    fn read_length(&mut self, length: u64) -> Result<(), Fault> {
        let Some(length) = usize::try_from(length).ok().filter(|n| *n <= self.limit) else {
            let available = self.exchange.available();
            let kept = available.len().min(super::fault::PARTIAL_BYTES);
            self.bytes.extend_from_slice(&available[..kept]);
            return Err(self.over_limit(&format!("Content-Length states {length} bytes")));
        };
        self.expected = Some(length as u64);
        self.take(length)
    }

    fn read_to_the_end(&mut self) -> Result<(), Fault> {
        loop {
            self.take_available(usize::MAX)?;
            match self.exchange.more() {
                Ok(()) => {}
                Err(Ending::Closed) => return Ok(()),
                Err(end) => return Err(self.ended(&end)),
            }
        }
    }

    fn read_chunks(&mut self) -> Result<(), Fault> {
        let mut decorations = 0;
        loop {
            let line = self.line()?;
            let extension = line.iter().position(|b| *b == b';').unwrap_or(line.len());
            self.count_decoration(&mut decorations, line.len() - extension)?;
            let size = chunk_size(&line).map_err(|why| self.framing_fault(&why))?;
            if size == 0 {
                return self.trailers(&mut decorations);
            }
            let room = self.limit - self.bytes.len();
            let Some(size) = usize::try_from(size).ok().filter(|n| *n <= room) else {
                // Announced beyond the limit: keep what fits as evidence.
                self.take_available(room)?;
                return Err(self.over_limit(&format!("a chunk has {size} bytes")));
            };
            self.take(size)?;
            self.expect_line_end()?;
        }
    }

    /// Reads and drops trailers up to the empty line.
    fn trailers(&mut self, decorations: &mut usize) -> Result<(), Fault> {
        for _ in 0..=HEAD_LINES {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(());
            }
            self.count_decoration(decorations, line.len())?;
            let name = line.split(|b| *b == b':').next().unwrap_or_default();
            let is_field = name.len() < line.len() && !name.is_empty();
            if !is_field || !name.iter().all(u8::is_ascii_graphic) {
                return Err(self.framing_fault(&FramingError::Trailer(line)));
            }
        }
        Err(self.framing_fault(&FramingError::Trailers(HEAD_LINES)))
    }

    /// Takes exactly that many bytes within the limit.
    fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        let end = self.bytes.len() + bytes;
        // The announced length is only a claim.
        self.bytes.reserve(bytes.min(RESERVED_BYTES));
        loop {
            let missing = end - self.bytes.len();
            let available = self.exchange.available();
            let taken = available.len().min(missing);
            self.bytes.extend_from_slice(&available[..taken]);
            self.exchange.consume(taken);
            if taken == missing {
                return Ok(());
            }
            self.exchange.admit(self.bytes.len(), self.share);
            self.exchange.more().map_err(|end| self.ended(&end))?;
        }
    }

    /// Takes available bytes, up to `most` and within the limit.
    fn take_available(&mut self, most: usize) -> Result<(), Fault> {
        let available = self.exchange.available();
        let taken = available.len().min(most);
        let room = self.limit - self.bytes.len();
        self.bytes.extend_from_slice(&available[..taken.min(room)]);
        self.exchange.consume(taken);
        if taken > room {
            return Err(self.over_limit("no announced length"));
        }
        self.exchange.admit(self.bytes.len(), self.share);
        Ok(())
    }

    /// Adds bytes of an extension or a trailer, within the limit.
    fn count_decoration(&self, decorations: &mut usize, bytes: usize) -> Result<(), Fault> {
        *decorations += bytes;
        if *decorations > DECORATION_BYTES {
            let limit = Size(DECORATION_BYTES as u64);
            return Err(self.framing_fault(&FramingError::Decorations(limit)));
        }
        Ok(())
    }

    /// One line without its CR LF.
    fn line(&mut self) -> Result<Vec<u8>, Fault> {
        loop {
            let available = self.exchange.available();
            if let Some(end) = available.iter().position(|b| *b == b'\n') {
                let Some(line) = available[..end].strip_suffix(b"\r") else {
                    return Err(self.framing_fault(&FramingError::WithoutCr));
                };
                let line = line.to_vec();
                self.exchange.consume(end + 1);
                return Ok(line);
            }
            if available.len() > CHUNK_LINE_BYTES {
                let limit = Size(CHUNK_LINE_BYTES as u64);
                return Err(self.framing_fault(&FramingError::LongLine(limit)));
            }
            self.wait_for_line()?;
        }
    }

    /// Waits for more of a line; a proper end of the connection means that the last chunk is missing.
    fn wait_for_line(&mut self) -> Result<(), Fault> {
        self.exchange.more().map_err(|end| match end {
            Ending::Closed => self.framing_fault(&FramingError::NoLastChunk),
            Ending::Broken(_) | Ending::Late | Ending::Interrupted => self.ended(&end),
        })
    }

    fn expect_line_end(&mut self) -> Result<(), Fault> {
        loop {
            match self.exchange.available() {
                [b'\r', b'\n', ..] => {
                    self.exchange.consume(2);
                    return Ok(());
                }
                [] | [b'\r'] => self.wait_for_line()?,
                _ => {
                    return Err(self.framing_fault(&FramingError::LongChunk));
                }
            }
        }
    }

    /// Checks for unexpected bytes after the response; true if there are none.
    fn check_surplus(&mut self, framing: Framing) -> Result<bool, Fault> {
        let surplus = self.exchange.available();
        if surplus.is_empty() {
            return Ok(true);
        }
        if self.status == 101 {
            return Ok(false);
        }
        if surplus.starts_with(HTTP) {
            self.notes.push(Note::SecondAnswer);
            return Ok(false);
        }
        if let Framing::Length(length) = framing {
            let got = length + surplus.len() as u64;
            return Err(self.framing_fault(&FramingError::Surplus { length, got }));
        }
        // A body of another framing ends beyond doubt: its surplus only ends the connection.
        if framing == Framing::None {
            let note = match self.status {
                204 | 304 => Note::BodyNotAllowed {
                    status: self.status,
                },
                _ => Note::BodyAfterHead,
            };
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(false)
    }

    /// Why the body is incomplete.
    fn ended(&self, end: &Ending) -> Fault {
        let got = self.bytes.len() as u64;
        let so_far = match self.expected {
            Some(expected) => format!("after {got} of {expected} bytes of the body"),
            None => format!("after {got} bytes of the body"),
        };
        let cause = match end {
            Ending::Late => Cause::BodyTimeout {
                got,
                expected: self.expected,
            },
            Ending::Interrupted => Cause::Interrupted,
            Ending::Closed | Ending::Broken(_) => Cause::Truncated,
        };
        Fault::new(cause, format!("{end} {so_far}")).within_body(self.status, &self.bytes)
    }

    fn over_limit(&self, what: &str) -> Fault {
        let limit = self.limit as u64;
        let detail = format!("{what}, the limit is {}", Size(limit));
        Fault::new(Cause::BodyOverLimit(limit), detail).within_body(self.status, &self.bytes)
    }

    fn framing_fault(&self, why: &FramingError) -> Fault {
        Fault::new(Cause::Framing, why.to_string()).within_body(self.status, &self.bytes)
    }
}
