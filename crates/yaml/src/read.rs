//! The YAML parser: reads a text under strict settings and budgets into a tree with positions.
//!
//! JSON is not parsed here. The build script includes this file, so it depends on the tree only.

use crate::tree::{Content, Member, Node, Span};
use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Spanned};
use std::fmt;

/// Larger files are refused unread.
pub const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Larger documents of others are refused unread.
pub const LARGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How much of a text is read.
#[derive(Clone, Copy, Debug)]
struct Budget {
    bytes: usize,
    nodes: usize,
}

/// Why a text or a part of the tree was refused.
#[derive(Clone, Debug)]
pub struct Fault {
    pub message: String,
    pub span: Option<Span>,
    /// An unknown word and the known ones.
    pub unknown: Option<(String, &'static [&'static str])>,
    /// True if the key itself is not allowed, whatever its value.
    pub is_of_key: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// A message of serde without names of Rust types, with the form to write.
fn plain(message: &str) -> String {
    let kinds = [
        ("unit value", "nothing"),
        ("sequence", "a list"),
        ("map", "a mapping"),
    ];
    let of_kind = kinds.iter().find_map(|(kind, word)| {
        let rest = message.strip_prefix("invalid type: ")?.strip_prefix(kind)?;
        rest.starts_with(',')
            .then(|| format!("invalid type: {word}{rest}"))
    });
    let message = of_kind.as_deref().unwrap_or(message);
    let (before, expected) = message.split_once("expected ").unwrap_or((message, ""));
    if expected == "a map" || expected.starts_with("struct ") {
        return format!("{before}expected a mapping of keys and values");
    }
    if expected == "a sequence" {
        return format!("{before}expected a list");
    }
    let is_bare = ["integer", "floating point", "boolean"]
        .iter()
        .any(|kind| message.starts_with(&format!("invalid type: {kind}")));
    match is_bare && message.ends_with("expected a string") {
        true => format!("{message}: write it in quotes"),
        false => message.to_owned(),
    }
}

/// A message of the YAML parser without its options.
fn of_parser(message: &str) -> String {
    let message = message.split(", set DuplicateKeyPolicy").next();
    let message = message.unwrap_or_default();
    match message.starts_with("tabs disallowed") {
        true => "a tab in the indentation: indent with spaces".to_owned(),
        false => message.to_owned(),
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            message: plain(&message.to_string()),
            span: None,
            unknown: None,
            is_of_key: false,
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self {
            message: format!("unknown key `{field}`"),
            span: None,
            unknown: Some((field.to_owned(), expected)),
            is_of_key: false,
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self {
            message: format!("unknown word `{variant}`"),
            span: None,
            unknown: Some((variant.to_owned(), expected)),
            is_of_key: false,
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            message: format!("the key `{field}` is missing"),
            span: None,
            unknown: None,
            is_of_key: false,
        }
    }
}

impl Fault {
    /// Sets the position, unless a deeper one is set.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Marks the fault as one of a key.
    #[must_use]
    pub fn of_key(self, span: Span) -> Self {
        Self {
            is_of_key: true,
            ..self.at(span)
        }
    }
}

/// Stack for parsing. A nesting level takes tens of kilobytes in a debug build, and 64 levels do not
/// fit the 2 MiB of an ordinary thread.
const STACK: usize = 32 * 1024 * 1024;

/// Reads one YAML document.
pub fn read(text: &str) -> Result<Node, Fault> {
    read_within(
        text,
        Budget {
            bytes: BYTES_MAX,
            nodes: 250_000,
        },
    )
}

/// Reads one YAML document of another format, which may be larger than files of a rulebook.
pub fn read_large(text: &str) -> Result<Node, Fault> {
    read_within(
        text,
        Budget {
            bytes: LARGE_BYTES_MAX,
            nodes: 4_000_000,
        },
    )
}

fn read_within(text: &str, budget: Budget) -> Result<Node, Fault> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || read_here(text, budget))
            .map_err(|error| de::Error::custom(format!("cannot start a reader thread: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(de::Error::custom("the YAML reader panicked")))
    })
}

fn read_here(text: &str, budget: Budget) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: budget.nodes,
            // Ends of lists and mappings are events, too.
            max_events: budget.nodes.saturating_mul(2),
            max_aliases: 1_000,
            max_documents: 1,
            max_total_scalar_bytes: budget.bytes,
            max_merge_keys: 0,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 25_000,
            max_replay_stack_depth: 16,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = error.without_snippet();
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        Fault {
            // The parser appends its own position, which the span already has.
            message: of_parser(message.split(" at line ").next().unwrap_or_default()),
            span: error.location().map(|location| place_in(text, &location)),
            unknown: None,
            is_of_key: false,
        }
    })
}

/// The span of an error. The parser does not always know the byte offset.
fn place_in(text: &str, location: &serde_saphyr::Location) -> Span {
    if location.span().byte_offset().is_some() {
        return span_of(location);
    }
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).saturating_sub(1);
    let line = number(location.line());
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column: usize = text[start.min(text.len())..]
        .chars()
        .take(number(location.column()))
        .map(char::len_utf8)
        .sum();
    Span {
        start: start + column,
        length: 1,
    }
}

fn span_of(location: &serde_saphyr::Location) -> Span {
    let span = location.span();
    let number = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
    Span {
        start: number(span.byte_offset()),
        length: number(span.byte_len()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self {
            content: spanned.value,
            span: span_of(&spanned.referenced),
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Content, E> {
        Number::from_f64(value)
            .map(Content::Number)
            .ok_or_else(|| E::custom("not a JSON number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Text(value.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            map.push(Member {
                key_span: span_of(&key.referenced),
                key: key.value.into(),
                value: entries.next_value()?,
            });
        }
        Ok(Content::Map(map))
    }
}

/// Unquoted scalars and keys whose type differs between YAML parsers, with advice.
pub fn ambiguous(node: &Node, text: &str, found: &mut Vec<(Span, String)>) {
    let written = |span: Span| text.get(span.start..span.start + span.length);
    match &node.content {
        Content::Map(members) => {
            for member in members {
                if written(member.key_span).is_some_and(is_ambiguous) {
                    found.push((member.key_span, member.key.to_string()));
                }
                ambiguous(&member.value, text, found);
            }
        }
        Content::List(items) => {
            for item in items {
                ambiguous(item, text, found);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {
            if let Some(word) = written(node.span).filter(|w| is_ambiguous(w)) {
                found.push((node.span, word.to_owned()));
            }
        }
    }
}

/// True for a plain scalar that some parsers read as a boolean, number or null although it does not look
/// like JSON, or that loses a zero: `NO`, `010`, `1.10`, `1e3`, `~`, `12:30`, `1_000`.
fn is_ambiguous(plain: &str) -> bool {
    let word = plain.trim();
    let booleans = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    if booleans.iter().any(|b| b.eq_ignore_ascii_case(word)) {
        return !matches!(word, "true" | "false" | "null");
    }
    if word == "~" {
        return true;
    }
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    let numeric = unsigned
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b':' | b'e' | b'E' | b'x' | b'o'))
        && unsigned.starts_with(|c: char| c.is_ascii_digit());
    if matches!(
        unsigned,
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN"
    ) {
        return true;
    }
    if !numeric || unsigned.matches('.').count() > 1 {
        return false;
    }
    let leading_zero =
        unsigned.len() > 1 && unsigned.starts_with('0') && !unsigned.starts_with("0.");
    // `1.0` is the same number for every parser; `1.10` may be a version.
    let lost_zero = unsigned
        .split_once('.')
        .is_some_and(|(_, decimals)| decimals.len() > 1 && decimals.ends_with('0'));
    leading_zero || lost_zero || word.starts_with('+') || unsigned.contains(['_', ':', 'e', 'E'])
}
