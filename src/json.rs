//! JSON values: reading untrusted bodies under limits, pointers (RFC 6901), comparison, excerpts.
//!
//! Knows no schema and no rule; what a fault means for a verdict is the judge's business.

use serde_json::{Number, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Keys that `serde_json` gives a meaning of its own while reading; a body that holds one of them
/// would not arrive as it was sent.
const RESERVED_KEYS: [&str; 2] = [
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Clone, Debug, PartialEq)]
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

/// Reads an untrusted JSON document. Limits are checked before any tree is built.
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Parsed, ParseFault> {
    if bytes.len() > limits.bytes {
        return Err(ParseFault::TooLarge {
            size: bytes.len(),
            limit: limits.bytes,
        });
    }
    std::str::from_utf8(bytes).map_err(|e| ParseFault::NotUtf8 {
        at: Position::of(bytes, e.valid_up_to()),
    })?;
    let mark = if bytes.starts_with("\u{feff}".as_bytes()) {
        "\u{feff}".len()
    } else {
        0
    };
    let text = &bytes[mark..];
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(ParseFault::Empty);
    }
    let duplicates = scan(bytes, mark, limits)?;
    let value = serde_json::from_slice(text).map_err(|e| syntax(bytes, mark, &e))?;
    let mut notes = Vec::new();
    if mark > 0 {
        notes.push(Note::ByteOrderMark);
    }
    notes.extend(duplicates.into_iter().map(|d| d.note(bytes)));
    Ok(Parsed { value, notes })
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
struct Duplicate {
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
fn scan(bytes: &[u8], start: usize, limits: Limits) -> Result<Vec<Duplicate>, ParseFault> {
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

/// Escapes one segment of a pointer: `~` and `/` (RFC 6901).
pub fn escape(segment: &str) -> Cow<'_, str> {
    if segment.contains(['~', '/']) {
        Cow::Owned(segment.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(segment)
    }
}

/// Appends a segment, escaping it.
pub fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    pointer.push_str(&escape(segment));
}

/// The pointer one segment longer.
pub fn join(pointer: &str, segment: &str) -> String {
    let mut longer = pointer.to_owned();
    push(&mut longer, segment);
    longer
}

/// The unescaped segments of a pointer; a pointer that does not begin with `/` has none.
pub fn segments(pointer: &str) -> impl Iterator<Item = String> {
    pointer
        .split('/')
        .skip(1)
        .map(|s| s.replace("~1", "/").replace("~0", "~"))
}

/// The value at a pointer without wildcards; the whole for the empty one.
pub fn get<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    value.pointer(pointer)
}

/// Every existing value that a pattern reaches, with its own pointer, in document order. A segment
/// `*` stands for each array item and each member.
pub fn expand<'a>(value: &'a Value, pattern: &str) -> Vec<(String, &'a Value)> {
    let mut reached = vec![(String::new(), value)];
    for segment in segments(pattern) {
        reached = reached
            .into_iter()
            .flat_map(|(at, value)| children(&at, value, &segment))
            .collect();
    }
    reached
}

fn children<'a>(at: &str, value: &'a Value, segment: &str) -> Vec<(String, &'a Value)> {
    match value {
        Value::Array(items) if segment == "*" => items
            .iter()
            .enumerate()
            .map(|(n, item)| (join(at, &n.to_string()), item))
            .collect(),
        Value::Object(members) if segment == "*" => members
            .iter()
            .map(|(key, member)| (join(at, key), member))
            .collect(),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let step = join("", segment);
            value
                .pointer(&step)
                .map(|child| (format!("{at}{step}"), child))
                .into_iter()
                .collect()
        }
    }
}

/// True when both are the same JSON value: object order is free, numbers compare as decimals and
/// never through floating point, so `1`, `1.0` and `10e-1` are the same.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Decimal::of(a) == Decimal::of(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// A number in one spelling: sign, digits without zeros at either end, power of ten.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: Exponent,
}

/// A power of ten, or its text where it is beyond counting.
#[derive(PartialEq, Eq)]
enum Exponent {
    Counted(i64),
    Text(String),
}

impl Decimal {
    fn of(number: &Number) -> Self {
        let text = number.to_string();
        let unsigned = text.strip_prefix('-').unwrap_or(&text);
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Self {
                negative: false,
                digits: String::new(),
                exponent: Exponent::Counted(0),
            };
        }
        let trailing = digits.len() - digits.trim_end_matches('0').len();
        let shift = i64::try_from(trailing).unwrap_or(i64::MAX)
            - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        let exponent = power
            .parse::<i64>()
            .ok()
            .and_then(|power| power.checked_add(shift))
            .map_or_else(|| Exponent::Text(power.to_owned()), Exponent::Counted);
        Self {
            negative: text.starts_with('-'),
            digits: significant.to_owned(),
            exponent,
        }
    }
}

/// True when `inner` is `outer` or something below it.
pub fn within(outer: &str, inner: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True when a pointer, in which `*` stands for any segment, leads to `place`, above it or below it.
pub fn overlap(pattern: &str, place: &str) -> bool {
    segments(pattern)
        .zip(segments(place))
        .all(|(p, s)| p == "*" || p == s)
}

/// A text as the JSON document it holds; nothing where it holds none.
pub fn parse_text(text: &str) -> Option<Value> {
    parse(text.as_bytes(), Limits::default())
        .ok()
        .map(|parsed| parsed.value)
}

/// What findings show of a value.
pub fn short(value: &Value) -> String {
    const SHOWN_MAX: usize = 160;
    excerpt(value, SHOWN_MAX)
}

/// The JSON type of a value, as a person calls it.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Compact JSON text of a value, cut to about `max` characters; never longer than that plus a note
/// of the length, whatever the value holds.
pub fn excerpt(value: &Value, max: usize) -> String {
    let mut cut = Cut {
        text: String::new(),
        left: max,
    };
    // A cut is reported as a write error so that a large value is not printed to the end.
    let complete = write_value(&mut cut, value).is_ok();
    if complete {
        return cut.text;
    }
    let size = match value {
        Value::String(text) => format!(" ({} characters)", text.chars().count()),
        Value::Array(items) => format!(" ({} items)", items.len()),
        Value::Object(members) => format!(" ({} members)", members.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    };
    format!("{}…{size}", cut.text)
}

struct Cut {
    text: String,
    left: usize,
}

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.left == 0 {
                return Err(fmt::Error);
            }
            self.left -= 1;
            self.text.push(c);
        }
        Ok(())
    }
}

fn write_value(out: &mut Cut, value: &Value) -> fmt::Result {
    use fmt::Write;
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(b) => write!(out, "{b}"),
        Value::Number(n) => out.write_str(&n.to_string()),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.write_char('[')?;
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.write_char(',')?;
                }
                write_value(out, item)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => {
            out.write_char('{')?;
            for (n, (key, member)) in members.iter().enumerate() {
                if n > 0 {
                    out.write_char(',')?;
                }
                write_text(out, key)?;
                out.write_char(':')?;
                write_value(out, member)?;
            }
            out.write_char('}')
        }
    }
}

fn write_text(out: &mut Cut, text: &str) -> fmt::Result {
    use fmt::Write;
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Parsed, ParseFault> {
        parse(text.as_bytes(), Limits::default())
    }

    #[test]
    fn a_plain_document_is_read_without_notes() {
        let parsed = read(" {\"a\": [1, {\"b\": null}], \"c\": \"x\\\"{\"} ").unwrap();
        assert_eq!(parsed.value, json!({"a": [1, {"b": null}], "c": "x\"{"}));
        assert_eq!(parsed.notes, []);
    }

    #[test]
    fn numbers_keep_their_text() {
        let text = "[18446744073709551617,1.0,1e999999,0.10]";
        assert_eq!(
            read(text)
                .unwrap()
                .value
                .to_string()
                .to_lowercase()
                .replace("e+", "e"),
            text
        );
    }

    #[test]
    fn numbers_compare_as_decimals() {
        let number = |text: &str| read(text).unwrap().value;
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("-0", "0"), ("0.5", "5E-1")] {
            assert!(equal(&number(a), &number(b)), "{a} {b}");
        }
        for (a, b) in [
            ("9007199254740993", "9007199254740992"),
            ("1", "-1"),
            ("1e999999999999999999999", "1e999999999999999999998"),
            ("10", "1"),
        ] {
            assert!(!equal(&number(a), &number(b)), "{a} {b}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_noted() {
        assert_eq!(read("\u{feff}1").unwrap().notes, [Note::ByteOrderMark]);
    }

    #[test]
    fn duplicate_keys_are_noted_with_both_positions_and_the_lost_value() {
        let parsed = read("{\"a\": [0, {\"s\": [1],\n \"\\u0073\": 2}]}").unwrap();
        assert_eq!(parsed.value, json!({"a": [0, {"s": 2}]}));
        let [
            Note::DuplicateKey {
                pointer,
                first,
                second,
                earlier,
            },
        ] = &parsed.notes[..]
        else {
            panic!("{:?}", parsed.notes)
        };
        assert_eq!(pointer, "/a/1/s");
        assert_eq!(
            (first.line, first.column, second.line, second.column),
            (1, 12, 2, 2)
        );
        assert_eq!(earlier, &json!([1]));
    }

    #[test]
    fn limits_hold_before_a_tree_is_built() {
        let deep = "[".repeat(100_000);
        assert!(matches!(read(&deep), Err(ParseFault::TooDeep { limit: 64, at }) if at.byte == 64));
        let fits = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        assert!(read(&fits).is_ok());
        let many = format!("[{}1]", "1,".repeat(250_000));
        assert!(matches!(read(&many), Err(ParseFault::TooManyNodes { .. })));
        let large = " ".repeat(9 * 1024 * 1024);
        assert!(matches!(read(&large), Err(ParseFault::TooLarge { .. })));
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_position() {
        for (text, line, column) in [
            ("<html>", 1, 1),
            ("{\"a\": 1,\n \"b\": NaN}", 2, 7),
            ("[1] [2]", 1, 5),
            ("[1,]", 1, 4),
            ("{\"a\": \"x\ty\"}", 1, 9),
        ] {
            match read(text) {
                Err(ParseFault::Syntax { at, .. }) => {
                    assert_eq!((at.line, at.column), (line, column), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        for text in ["", " \n", "\u{feff}"] {
            assert_eq!(read(text), Err(ParseFault::Empty));
        }
        for text in ["\"\\ud800\"", "{\"a\"", "[", "\"", "\"\\", "nul"] {
            assert!(
                matches!(read(text), Err(ParseFault::Syntax { .. })),
                "{text}"
            );
        }
        let fault = parse(b"\"ab\xff\"", Limits::default());
        assert!(matches!(fault, Err(ParseFault::NotUtf8 { at }) if at.byte == 3));
    }

    #[test]
    fn keys_with_a_meaning_inside_the_reader_are_refused() {
        for key in RESERVED_KEYS {
            assert!(matches!(
                read(&format!("{{\"a\": {{\"{key}\": \"1\"}}}}")),
                Err(ParseFault::ReservedKey { .. })
            ));
        }
    }

    #[test]
    fn pointers_escape_and_expand() {
        assert_eq!(join("/a", "x~/y"), "/a/x~0~1y");
        assert_eq!(segments("/x~0~1y/").collect::<Vec<_>>(), ["x~/y", ""]);
        let value = json!({"items": [{"a/b": 1}, {}, {"a/b": 2}], "m": {"x": 3, "y": 4}});
        let found = |pattern: &str| -> Vec<String> {
            expand(&value, pattern)
                .into_iter()
                .map(|(at, v)| format!("{at}={v}"))
                .collect()
        };
        assert_eq!(
            found("/items/*/a~1b"),
            ["/items/0/a~1b=1", "/items/2/a~1b=2"]
        );
        assert_eq!(found("/m/*"), ["/m/x=3", "/m/y=4"]);
        assert_eq!(found("/m/x/deeper"), Vec::<String>::new());
        assert_eq!(expand(&value, "").len(), 1);
    }

    #[test]
    fn excerpts_are_bounded() {
        assert_eq!(
            excerpt(&json!({"a": ["b\u{7}", 1]}), 80),
            "{\"a\":[\"b\\u0007\",1]}"
        );
        let long = excerpt(&Value::String("x".repeat(1_000_000)), 10);
        assert_eq!(long, "\"xxxxxxxxx… (1000000 characters)");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, Limits::default());
        }

        #[test]
        fn near_json_does_not_make_it_panic(text in "[\\[\\]{}:,\"\\\\ a1e.\\-\u{e9}]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn whatever_serde_reads_is_read_the_same(text in "[\\[\\]{}:,\" 1]{0,12}") {
            let theirs = serde_json::from_str::<Value>(&text);
            prop_assert_eq!(read(&text).map(|p| p.value).ok(), theirs.ok());
        }
    }
}
