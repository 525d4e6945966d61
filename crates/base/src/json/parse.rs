//! Parses untrusted JSON within limits and notes what a tree would hide.
//!
//! - Fast path: a document within the limits and without oddities is read once into a tree.
//! - Otherwise its tokens are scanned for what is wrong and where.
//! - Non-goal: what a fault or a note means for a verdict.

use super::push;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Keys that `serde_json` itself interprets. A body that contains one would not be read as sent.
pub(super) const RESERVED_KEYS: [&str; 2] = [
    "$serde_json::private::Number",
    "$serde_json::private::RawValue",
];

/// Duplicate keys noted of one document.
const NOTES_MAX: usize = 100;

/// Limits of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nesting of objects and arrays.
    pub depth: usize,
    /// Values and keys in total.
    pub nodes: usize,
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

/// A position in a text.
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
    /// The position of a byte offset; each invalid UTF-8 sequence before it counts as one character.
    fn at_byte(text: &[u8], byte: usize) -> Self {
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

/// A parsed document and its oddities.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The last value of a duplicate key is kept. Numbers keep their decimal text.
    pub value: Value,
    pub notes: Vec<Note>,
}

/// An oddity of a readable document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    ByteOrderMark,
    DuplicateKey {
        pointer: String,
        first: Position,
        /// The position whose value is in the tree.
        second: Position,
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

/// Why a document could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFault {
    /// No bytes, or only white space.
    #[error("empty, expected JSON")]
    Empty,
    #[error("{size} bytes, the limit is {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("not valid UTF-8 at byte {}", at.byte)]
    NotUtf8 {
        /// The first invalid byte.
        at: Position,
    },
    #[error("nested deeper than {limit} levels at {at}")]
    TooDeep {
        limit: usize,
        /// Where the limit is exceeded.
        at: Position,
    },
    #[error("more than {limit} values and keys at {at}")]
    TooManyNodes {
        limit: usize,
        /// Where the limit is exceeded.
        at: Position,
    },
    /// A key that `serde_json` would interpret.
    #[error("the key {key:?} at {at} is reserved by the JSON parser and cannot be checked")]
    ReservedKey { key: String, at: Position },
    #[error("not JSON: {reason} at {at}")]
    Syntax { reason: String, at: Position },
}

/// Parses an untrusted JSON document. No tree grows beyond the limits.
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Parsed, ParseFault> {
    if bytes.len() > limits.bytes {
        return Err(ParseFault::TooLarge {
            size: bytes.len(),
            limit: limits.bytes,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| ParseFault::NotUtf8 {
        at: Position::at_byte(bytes, e.valid_up_to()),
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

/// The JSON document in a text, if it is one.
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
        at: Position::at_byte(bytes, mark + line_start + error.column().saturating_sub(1)),
    }
}

/// A key that occurs twice in one object.
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
            first: Position::at_byte(bytes, self.first),
            second: Position::at_byte(bytes, self.second),
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

/// Counts depth and nodes and finds duplicate keys without building a tree.
/// Invalid JSON passes; the reader that runs next refuses it.
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
                at: Position::at_byte(bytes, token),
            });
        }
        if nodes > limits.nodes {
            return Err(ParseFault::TooManyNodes {
                limit: limits.nodes,
                at: Position::at_byte(bytes, token),
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

/// Records the string token as a key if the innermost object expects one.
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
            at: Position::at_byte(bytes, token.start),
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

/// The text of a string token; copied only if it has escapes.
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
