//! Reading untrusted JSON: no tree grows beyond the limits, and what the tree would hide is noted.
//!
//! Nearly every document is within them and has nothing odd, so it is read once, and the reading ends where
//! that turns out otherwise. Only then its tokens are looked at, for what is wrong and where.
//! What a fault or a note means for a verdict is the judge's business.

use super::push;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Keys that `serde_json` gives a meaning of its own while reading; a body that holds one of them
/// would not arrive as it was sent.
pub(super) const RESERVED_KEYS: [&str; 2] = [
    "$serde_json::private::Number",
    "$serde_json::private::RawValue",
];

/// How many duplicate keys of one document are noted; the rest say nothing new.
const NOTES_MAX: usize = 100;

/// How large a document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects and arrays within each other.
    pub depth: usize,
    /// Values and keys together.
    pub nodes: usize,
    /// Size of the text in bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 64,
            nodes: 250_000,
            bytes: 8 * 1024 * 1024,
        }
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// In bytes, counted from 0.
    pub byte: usize,
}

impl Position {
    /// The position of a byte offset in `text`; invalid UTF-8 before it counts as one character a
    /// byte sequence.
    fn of(text: &[u8], byte: usize) -> Self {
        let before = &text[..byte.min(text.len())];
        let line_start = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |n| n + 1);
        Self {
            line: before.split(|b| *b == b'\n').count(),
            column: String::from_utf8_lossy(&before[line_start..])
                .chars()
                .count()
                + 1,
            byte,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {} (byte {})",
            self.line, self.column, self.byte
        )
    }
}

/// A document that could be read, and what was odd about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value; of a duplicate key the last one. Numbers keep their decimal text.
    pub value: Value,
    /// What a reader may trip over although it is readable.
    pub notes: Vec<Note>,
}

/// Something odd about a readable document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// It begins with a byte order mark.
    ByteOrderMark,
    /// An object names the same key twice.
    DuplicateKey {
        /// Pointer to the member.
        pointer: String,
        /// The earlier of two positions.
        first: Position,
        /// The later one, whose value stands in the tree.
        second: Position,
        /// The value that was overwritten.
        earlier: Value,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByteOrderMark => f.write_str("begins with a byte order mark"),
            Self::DuplicateKey {
                pointer,
                first,
                second,
                ..
            } => write!(f, "duplicate key {pointer} at {first} and at {second}"),
        }
    }
}

/// Why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFault {
    /// Nothing, or nothing but white space.
    #[error("empty where JSON is due")]
    Empty,
    /// Larger than the limit.
    #[error("{size} bytes where {limit} are allowed")]
    TooLarge {
        /// Bytes there.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("not valid UTF-8 at byte {}", at.byte)]
    NotUtf8 {
        /// The first bad byte.
        at: Position,
    },
    /// Nested too deeply.
    #[error("nesting over {limit} at {at}")]
    TooDeep {
        /// Levels allowed.
        limit: usize,
        /// Where the limit is passed.
        at: Position,
    },
    /// Too many values.
    #[error("more than {limit} values and keys at {at}")]
    TooManyNodes {
        /// Values and keys allowed.
        limit: usize,
        /// Where the limit is passed.
        at: Position,
    },
    /// A key that cannot be read faithfully.
    #[error("the key {key:?} at {at} cannot be judged")]
    ReservedKey {
        /// The key.
        key: String,
        /// Where it stands.
        at: Position,
    },
    /// Not JSON.
    #[error("not JSON: {reason} at {at}")]
    Syntax {
        /// What is wrong.
        reason: String,
        /// Where it shows.
        at: Position,
    },
}

/// Reads an untrusted JSON document. No tree is built that is beyond the limits.
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Parsed, ParseFault> {
    if bytes.len() > limits.bytes {
        return Err(ParseFault::TooLarge {
            size: bytes.len(),
            limit: limits.bytes,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| ParseFault::NotUtf8 {
        at: Position::of(bytes, e.valid_up_to()),
    })?;
    let unmarked = text.strip_prefix('\u{feff}');
    let text = unmarked.unwrap_or(text);
    let mark = bytes.len() - text.len();
    if text.as_bytes().iter().all(u8::is_ascii_whitespace) {
        return Err(ParseFault::Empty);
    }
    let mut notes = Vec::from_iter(unmarked.map(|_| Note::ByteOrderMark));
    if let Some(value) = super::tree::read_plain(text, limits) {
        return Ok(Parsed { value, notes });
    }
    let duplicates = scan(bytes, mark, limits)?;
    let value = super::tree::read(text).map_err(|e| syntax(bytes, mark, &e))?;
    notes.extend(duplicates.into_iter().map(|d| d.note(bytes)));
    Ok(Parsed { value, notes })
}

/// A text as the JSON document it holds; nothing where it holds none.
pub fn parse_text(text: &str) -> Option<Value> {
    parse(text.as_bytes(), Limits::default())
        .ok()
        .map(|parsed| parsed.value)
}

fn syntax(bytes: &[u8], mark: usize, error: &serde_json::Error) -> ParseFault {
    let line_start: usize = bytes[mark..]
        .split_inclusive(|b| *b == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    ParseFault::Syntax {
        reason: reason.to_owned(),
        at: Position::of(bytes, mark + line_start + error.column().saturating_sub(1)),
    }
}

/// A key that stands in one object twice.
pub(super) struct Duplicate {
    pointer: String,
    first: usize,
    second: usize,
    earlier_value: usize,
}

impl Duplicate {
    fn note(self, bytes: &[u8]) -> Note {
        let earlier = serde_json::Deserializer::from_slice(&bytes[self.earlier_value..])
            .into_iter::<Value>()
            .next()
            .and_then(Result::ok)
            .unwrap_or_default();
        Note::DuplicateKey {
            pointer: self.pointer,
            first: Position::of(bytes, self.first),
            second: Position::of(bytes, self.second),
            earlier,
        }
    }
}

/// An object or array that is open while scanning.
enum Open<'a> {
    Object {
        /// Offsets of key and value by key.
        keys: HashMap<Cow<'a, str>, (usize, usize)>,
        current: Cow<'a, str>,
        awaits_key: bool,
    },
    Array {
        index: usize,
    },
}

/// Walks the tokens without building anything: counts depth and nodes and finds duplicate keys.
/// What is no JSON passes here and is refused by the reader behind.
pub(super) fn scan(
    bytes: &[u8],
    start: usize,
    limits: Limits,
) -> Result<Vec<Duplicate>, ParseFault> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut nodes = 0_usize;
    let mut duplicates = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        let token = at;
        at = token_end(bytes, token);
        match bytes[token] {
            b' ' | b'\t' | b'\n' | b'\r' | b':' => continue,
            b',' => {
                match open.last_mut() {
                    Some(Open::Object { awaits_key, .. }) => *awaits_key = true,
                    Some(Open::Array { index }) => *index += 1,
                    None => {}
                }
                continue;
            }
            b'}' | b']' => {
                open.pop();
                continue;
            }
            b'{' => open.push(Open::Object {
                keys: HashMap::new(),
                current: Cow::Borrowed(""),
                awaits_key: true,
            }),
            b'[' => open.push(Open::Array { index: 0 }),
            b'"' => take_key(bytes, token..at, &mut open, &mut duplicates)?,
            _ => {}
        }
        nodes += 1;
        if open.len() > limits.depth {
            return Err(ParseFault::TooDeep {
                limit: limits.depth,
                at: Position::of(bytes, token),
            });
        }
        if nodes > limits.nodes {
            return Err(ParseFault::TooManyNodes {
                limit: limits.nodes,
                at: Position::of(bytes, token),
            });
        }
    }
    Ok(duplicates)
}

/// The end of the token that begins at `start`.
fn token_end(bytes: &[u8], start: usize) -> usize {
    match bytes[start] {
        b'"' => {
            let mut at = start + 1;
            while at < bytes.len() {
                match bytes[at] {
                    b'"' => return at + 1,
                    b'\\' => at += 2,
                    _ => at += 1,
                }
            }
            bytes.len()
        }
        b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => start + 1,
        _ => bytes[start..]
            .iter()
            .position(|b| {
                matches!(b, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':')
                    || b.is_ascii_whitespace()
            })
            .map_or(bytes.len(), |n| start + n.max(1)),
    }
}

/// Takes the string token as a key where the innermost object waits for one.
fn take_key<'a>(
    bytes: &'a [u8],
    token: std::ops::Range<usize>,
    open: &mut [Open<'a>],
    duplicates: &mut Vec<Duplicate>,
) -> Result<(), ParseFault> {
    let Some(Open::Object {
        keys,
        current,
        awaits_key,
    }) = open.last_mut()
    else {
        return Ok(());
    };
    if !std::mem::take(awaits_key) {
        return Ok(());
    }
    let Some(key) = key_of(&bytes[token.clone()]) else {
        return Ok(());
    };
    if RESERVED_KEYS.contains(&&*key) {
        return Err(ParseFault::ReservedKey {
            key: key.into_owned(),
            at: Position::of(bytes, token.start),
        });
    }
    current.clone_from(&key);
    let value = bytes[token.end..]
        .iter()
        .position(|b| !b.is_ascii_whitespace() && *b != b':')
        .map_or(bytes.len(), |n| token.end + n);
    if let Some((first, earlier_value)) = keys.insert(key, (token.start, value))
        && duplicates.len() < NOTES_MAX
    {
        duplicates.push(Duplicate {
            pointer: pointer_of(open),
            first,
            second: token.start,
            earlier_value,
        });
    }
    Ok(())
}

/// What a string token says; copied only where it is escaped.
fn key_of(token: &[u8]) -> Option<Cow<'_, str>> {
    if token.contains(&b'\\') {
        return serde_json::from_slice(token).ok().map(Cow::Owned);
    }
    let inside = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inside).ok().map(Cow::Borrowed)
}

fn pointer_of(open: &[Open<'_>]) -> String {
    let mut pointer = String::new();
    for level in open {
        match level {
            Open::Object { current, .. } => push(&mut pointer, current),
            Open::Array { index } => push(&mut pointer, &index.to_string()),
        }
    }
    pointer
}
