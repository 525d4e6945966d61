//! A text with its encodings undone, one step at a time, and the origin of each byte.
//!
//! - Undoes percent encoding, HTML entities, JSON and Rust escapes, JSON Pointer segments,
//!   quoted-printable, base64 and base64url, line breaks and chunk frames.
//! - Lenient: whatever looks like an escape is one.

use crate::text::CUT;
use quick_xml::escape::resolve_html5_entity;
use std::borrow::Cow;
use std::ops::Range;

/// Longest HTML entity, `&` and `;` included.
const ENTITY_BYTES_MAX: usize = 34;
/// Longest chunk size, in digits.
const CHUNK_DIGITS_MAX: usize = 8;

/// Fewest base64 characters before a cut that may reveal a secret.
const CUT_RUN_MIN: usize = 6;

/// Bytes and their places in the original text.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// The range of the original text that each byte stands for; `None` if the bytes are the original text.
    places: Option<Vec<Range<usize>>>,
}

/// Escapes that one step undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// All.
    AtOnce,
    /// Backslash escapes only if there is no other. A backslash escapes itself, and a pair split by an
    /// escaped line break would be read as two escapes.
    BackslashesLast,
}

/// Separators to remove where a text was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joining {
    /// Nothing.
    No,
    /// Line breaks, and blanks at the start of the next line.
    Lines,
    /// The same in form encoding, where a blank is a plus sign.
    Forms,
    /// Line breaks, and lines between them that contain a chunk size.
    Chunks,
}

impl<'a> View<'a> {
    pub(super) fn new(text: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            bytes: Cow::Borrowed(text.as_ref()),
            places: None,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The part of the original text that a non-empty range stands for.
    pub(super) fn origin(&self, range: Range<usize>) -> Range<usize> {
        match &self.places {
            None => range,
            Some(places) => places[range.start].start..places[range.end - 1].end,
        }
    }

    /// True if a range is contiguous and unchanged in the original text.
    fn is_verbatim(&self, range: &Range<usize>) -> bool {
        let origin = self.origin(range.clone());
        origin.len() == range.len()
    }

    /// The view with one level of escapes undone; `None` if there is none.
    pub(super) fn unescaped(&self, order: Order) -> Option<View<'static>> {
        let at_once = order == Order::AtOnce;
        let changed = self.changed(|bytes, at| match bytes[at] {
            b'%' => percent(&bytes[at..]),
            b'&' => entity(&bytes[at..]),
            b'\\' if at_once => backslash(&bytes[at..]),
            b'=' => quoted_printable(&bytes[at..]),
            b'~' => pointer(&bytes[at..]),
            _ => None,
        });
        if at_once || changed.is_some() {
            return changed;
        }
        self.changed(|bytes, at| match bytes[at] {
            b'\\' => backslash(&bytes[at..]),
            _ => None,
        })
    }

    /// True if an escaped line break may separate two backslashes that belong together.
    pub(super) fn may_part_backslashes(&self) -> bool {
        let bytes = self.bytes();
        let is_break = |at: usize| {
            matches!(
                bytes[at..],
                [b'0', b'A' | b'a' | b'D' | b'd', ..]
                    | [b'#', b'1' | b'x' | b'X', ..]
                    | [b'=', b'\r' | b'\n', ..]
            )
        };
        memchr::memchr(b'\\', bytes).is_some() && (0..bytes.len()).any(is_break)
    }

    /// The view without separators; `None` if there are none.
    pub(super) fn joined(&self, joining: Joining) -> Option<View<'static>> {
        if joining == Joining::No {
            return None;
        }
        self.changed(|bytes, at| {
            // Quoted-printable ends a broken line with an equals sign.
            let soft = usize::from(bytes[at] == b'=');
            let length = soft + line_break(&bytes[at + soft..])?;
            let frame = (joining == Joining::Chunks)
                .then(|| chunk_frame(&bytes[at + length..]))
                .flatten();
            let more = frame.unwrap_or_else(|| {
                let is_blank = |b: &&u8| match b {
                    b' ' | b'\t' => true,
                    b'+' => joining == Joining::Forms,
                    _ => false,
                };
                bytes[at + length..].iter().take_while(is_blank).count()
            });
            Some((length + more, Decoded::default()))
        })
    }

    /// The joined content of all chunks with correct sizes; `None` without any. A chunk may end anywhere,
    /// also within an escape or a line break.
    pub(super) fn unchunked(&self) -> Option<View<'static>> {
        let bytes = self.bytes();
        let mut frames: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            if let Some((content, end)) = chunk(bytes, at) {
                frames.push(at..content.start);
                frames.push(content.end..end);
                at = end;
                continue;
            }
            let Some(next) = memchr::memchr(b'\n', &bytes[at..]) else {
                break;
            };
            at += next + 1;
        }
        if frames.is_empty() {
            return None;
        }
        let kept: Vec<usize> = {
            let mut frames = frames.into_iter().peekable();
            let is_kept = |at: &usize| {
                while frames.next_if(|frame| frame.end <= *at).is_some() {}
                frames.peek().is_none_or(|frame| !frame.contains(at))
            };
            (0..bytes.len()).filter(is_kept).collect()
        };
        let places = kept.iter().map(|at| self.origin(*at..*at + 1));
        Some(View {
            bytes: kept.iter().map(|at| bytes[*at]).collect(),
            places: Some(places.collect()),
        })
    }

    fn changed(
        &self,
        decode: impl Fn(&[u8], usize) -> Option<(usize, Decoded)>,
    ) -> Option<View<'static>> {
        let bytes = self.bytes();
        let first = (0..bytes.len()).find(|&at| decode(bytes, at).is_some())?;
        let mut changed = Vec::with_capacity(bytes.len());
        let mut places = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let found = (at >= first).then(|| decode(bytes, at)).flatten();
            let (length, decoded) = found.unwrap_or((1, Decoded::byte(bytes[at])));
            let origin = self.origin(at..at + length);
            for byte in decoded.as_bytes() {
                changed.push(*byte);
                places.push(origin.clone());
            }
            at += length;
        }
        Some(View {
            bytes: Cow::Owned(changed),
            places: Some(places),
        })
    }

    /// Runs of at least `least` base64 characters (fewer before a cut) that differ from the original
    /// text; all runs if this view is the original text.
    pub(super) fn base64_runs(&self, least: usize) -> Vec<Range<usize>> {
        let bytes = self.bytes();
        let mut runs = Vec::new();
        let mut from = 0;
        for at in 0..=bytes.len() {
            if bytes.get(at).is_some_and(|b| sextet(*b).is_some()) {
                continue;
            }
            let run = from..at;
            let least = if self.is_cut(at) { CUT_RUN_MIN } else { least };
            if run.len() >= least && (self.places.is_none() || !self.is_verbatim(&run)) {
                runs.push(run);
            }
            from = at + 1;
        }
        runs
    }

    /// True if an excerpt was cut at `at`.
    pub(super) fn is_cut(&self, at: usize) -> bool {
        self.bytes()[at..].starts_with(CUT.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// The decoded run of base64, starting `skipped` characters in.
    pub(super) fn base64(&self, run: &Range<usize>, skipped: usize) -> View<'static> {
        let digits = &self.bytes()[run.start + skipped..run.end];
        let length = digits.len() * 6 / 8;
        let mut bytes = Vec::with_capacity(length);
        let mut places = Vec::with_capacity(length);
        let (mut bits, mut held) = (0_u32, 0);
        for digit in digits {
            bits = bits << 6 | u32::from(sextet(*digit).unwrap_or_default());
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held & 0xff) as u8);
            }
        }
        for at in 0..bytes.len() {
            let first = run.start + skipped + at * 8 / 6;
            let last = run.start + skipped + (at * 8 + 7) / 6;
            places.push(self.origin(first..last + 1));
        }
        View {
            bytes: Cow::Owned(bytes),
            places: Some(places),
        }
    }

    /// Readable stretches of at least `least` bytes.
    pub(super) fn readable(&self, least: usize) -> Vec<View<'static>> {
        let Some(places) = &self.places else {
            return Vec::new();
        };
        let is_readable = |b: &u8| *b >= 0x80 || matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t');
        let bytes = self.bytes();
        let mut stretches = Vec::new();
        let mut from = 0;
        for at in 0..=bytes.len() {
            if bytes.get(at).is_some_and(is_readable) {
                continue;
            }
            if at - from >= least {
                stretches.push(View {
                    bytes: Cow::Owned(bytes[from..at].to_vec()),
                    places: Some(places[from..at].to_vec()),
                });
            }
            from = at + 1;
        }
        stretches
    }

    /// The length without an incomplete escape at the end.
    pub(super) fn untorn(&self, end: usize) -> usize {
        let bytes = &self.bytes()[..end];
        let tail = bytes.len().saturating_sub(ENTITY_BYTES_MAX);
        let escape = bytes[tail..]
            .iter()
            .rposition(|b| matches!(b, b'%' | b'&' | b'\\' | b'=' | b'~'));
        let Some(at) = escape.map(|at| tail + at) else {
            return end;
        };
        let rest = &bytes[at + 1..];
        let is_torn = match bytes[at] {
            b'&' => rest.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'#'),
            b'\\' => rest.len() < 5 && rest.iter().all(u8::is_ascii_alphanumeric),
            b'~' => rest.is_empty(),
            _ => rest.len() < 2 && rest.iter().all(u8::is_ascii_hexdigit),
        };
        if is_torn { at } else { end }
    }
}

/// The decoded escape: up to two characters.
#[derive(Clone, Copy, Debug, Default)]
struct Decoded {
    bytes: [u8; 8],
    length: usize,
}

impl Decoded {
    fn byte(byte: u8) -> Self {
        let mut bytes = [0; 8];
        bytes[0] = byte;
        Self { bytes, length: 1 }
    }

    fn text(text: &str) -> Option<Self> {
        let mut bytes = [0; 8];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        let length = text.len();
        Some(Self { bytes, length })
    }

    fn code_point(number: u32) -> Option<Self> {
        Self::text(char::from_u32(number)?.encode_utf8(&mut [0; 4]))
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

type Escape = Option<(usize, Decoded)>;

/// Parses hexadecimal digits.
fn hexadecimal(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    is_number.then_some(())?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn byte_of(digits: Option<&[u8]>) -> Option<Decoded> {
    u8::try_from(hexadecimal(digits)?).ok().map(Decoded::byte)
}

/// `%41`, and the `%u0041` of old scripts.
fn percent(text: &[u8]) -> Escape {
    if text.get(1) == Some(&b'u') {
        return Some((6, Decoded::code_point(hexadecimal(text.get(2..6))?)?));
    }
    Some((3, byte_of(text.get(1..3))?))
}

/// `=41`, and `=` at the end of a line.
fn quoted_printable(text: &[u8]) -> Escape {
    if let Some(length) = text.get(1..).and_then(line_break) {
        return Some((1 + length, Decoded::default()));
    }
    Some((3, byte_of(text.get(1..3))?))
}

/// `~0`, `~1`.
fn pointer(text: &[u8]) -> Escape {
    match text.get(1)? {
        b'0' => Some((2, Decoded::byte(b'~'))),
        b'1' => Some((2, Decoded::byte(b'/'))),
        _ => None,
    }
}

/// `&amp;`, `&#65;`, `&#x41;`, and numbers whose semicolon is missing.
fn entity(text: &[u8]) -> Escape {
    let end = |is_part: fn(&u8) -> bool, from: usize| {
        let rest = text[from.min(text.len())..].iter().take(ENTITY_BYTES_MAX);
        from + rest.take_while(|b| is_part(b)).count()
    };
    let closed = |end: usize| end + usize::from(text.get(end) == Some(&b';'));
    if text.get(1) != Some(&b'#') {
        let end = end(u8::is_ascii_alphanumeric, 1);
        let name = std::str::from_utf8(text.get(1..=end)?).ok()?;
        let decoded = resolve_html5_entity(name.strip_suffix(';')?)?;
        return Some((end + 1, Decoded::text(decoded)?));
    }
    let (from, to, radix) = if matches!(text.get(2), Some(b'x' | b'X')) {
        (3, end(u8::is_ascii_hexdigit, 3), 16)
    } else {
        (2, end(u8::is_ascii_digit, 2), 10)
    };
    // An entity interrupted by a cut or a line break means something else.
    let is_torn = matches!(text.get(to), Some(b'=' | b'\\' | b'\r' | b'\n'))
        || text[to..].starts_with(CUT.encode_utf8(&mut [0; 4]).as_bytes());
    if is_torn {
        return None;
    }
    let digits = std::str::from_utf8(text.get(from..to)?).ok()?;
    let number = u32::from_str_radix(digits, radix).ok()?;
    Some((closed(to), Decoded::code_point(number)?))
}

/// `\n`, `\/`, `\"`, `\u0041`, `\ud83d\ude00`, `\u{41}`, `\x41`.
fn backslash(text: &[u8]) -> Escape {
    let simple = |byte: u8| Some((2, Decoded::byte(byte)));
    match text.get(1)? {
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'b' => simple(8),
        b'f' => simple(12),
        b'0' => simple(0),
        b'"' => simple(b'"'),
        b'\'' => simple(b'\''),
        b'\\' => simple(b'\\'),
        b'/' => simple(b'/'),
        b'x' => Some((4, byte_of(text.get(2..4))?)),
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = text[3..].iter().take(7);
            let to = 3 + digits.take_while(|b| b.is_ascii_hexdigit()).count();
            let decoded = Decoded::code_point(hexadecimal(text.get(3..to))?)?;
            (text.get(to) == Some(&b'}')).then_some((to + 1, decoded))
        }
        b'u' => {
            let unit = hexadecimal(text.get(2..6))?;
            let low = text.get(6..8) == Some(b"\\u");
            let low = low.then(|| hexadecimal(text.get(8..12))).flatten();
            match (unit, low) {
                (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                    let number = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    Some((12, Decoded::code_point(number)?))
                }
                _ => Some((6, Decoded::code_point(unit)?)),
            }
        }
        _ => None,
    }
}

/// Length of a line break at the start.
fn line_break(text: &[u8]) -> Option<usize> {
    match text {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n' | b'\r', ..] => Some(1),
        _ => None,
    }
}

/// The content and end of a chunk at `at`; `None` unless its size is correct.
fn chunk(text: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let from = at + chunk_frame(&text[at..])?;
    let digits = text[at..].iter().take_while(|b| b.is_ascii_hexdigit());
    let size = hexadecimal(text.get(at..at + digits.count()))?;
    let to = from.checked_add(usize::try_from(size).ok()?)?;
    let end = to + line_break(text.get(to..)?)?;
    (size > 0).then_some((from..to, end))
}

/// Length of a line at the start that contains a chunk size, line break included.
fn chunk_frame(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    if digits == 0 || digits > CHUNK_DIGITS_MAX {
        return None;
    }
    let extension = match text.get(digits) {
        Some(b';') => text[digits..]
            .iter()
            .take_while(|b| !matches!(b, b'\r' | b'\n'))
            .count(),
        _ => 0,
    };
    let end = digits + extension;
    Some(end + line_break(&text[end..])?)
}

/// The six bits of a base64 or base64url character.
fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}
