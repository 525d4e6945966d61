//! The one YAML loader: a text under strict settings and budgets becomes a tree that knows where
//! each key and value stands, and any `serde` type can be read from that tree.
//!
//! JSON never comes here to be parsed; [`Node::of_json`] takes over what was read as JSON.

use super::problems::Span;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Spanned};
use std::fmt;

/// Files beyond this size are refused unread.
pub(super) const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) span: Span,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// One entry of a mapping.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Node,
}

/// Why a text or a part of the tree could not be taken.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) span: Option<Span>,
    /// An unknown word and what is known instead.
    pub(super) unknown: Option<(String, &'static [&'static str])>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            span: None,
            unknown: None,
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self {
            message: format!("unknown key `{field}`"),
            span: None,
            unknown: Some((field.to_owned(), expected)),
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self {
            message: format!("unknown word `{variant}`"),
            span: None,
            unknown: Some((variant.to_owned(), expected)),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            message: format!("the key `{field}` is missing"),
            span: None,
            unknown: None,
        }
    }
}

impl Fault {
    /// The fault with a place, unless a deeper one was named already.
    fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

/// Bytes of stack for reading. Each level of nesting takes tens of kilobytes in a debug build; 64
/// levels do not fit the 2 MiB of an ordinary thread.
const STACK: usize = 32 * 1024 * 1024;

/// Reads one YAML document.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || read_here(text))
            .map_err(|error| de::Error::custom(format!("no thread to read with: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(de::Error::custom("the YAML reader panicked")))
    })
}

fn read_here(text: &str) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: 250_000,
            max_aliases: 1_000,
            max_documents: 1,
            max_total_scalar_bytes: BYTES_MAX,
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
        emit_comments: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = error.without_snippet();
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        Fault {
            // The reader appends its own position, which the span tells already.
            message: message
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned(),
            span: error.location().map(|location| place_in(text, &location)),
            unknown: None,
        }
    })
}

/// The span of an error, whose byte offset the reader does not always know.
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
        f.write_str("a value that JSON has")
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
            .ok_or_else(|| E::custom("not a number that JSON has"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Text(value.to_owned()))
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
                key: key.value,
                value: entries.next_value()?,
            });
        }
        Ok(Content::Map(map))
    }
}

impl Node {
    /// A tree without places, of what was read as JSON.
    pub(super) fn of_json(value: &Value) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(b) => Content::Bool(*b),
            Value::Number(n) => Content::Number(n.clone()),
            Value::String(text) => Content::Text(text.clone()),
            Value::Array(items) => Content::List(items.iter().map(Self::of_json).collect()),
            Value::Object(members) => Content::Map(
                members
                    .iter()
                    .map(|(key, value)| Member {
                        key: key.clone(),
                        key_span: Span::default(),
                        value: Self::of_json(value),
                    })
                    .collect(),
            ),
        };
        Self {
            content,
            span: Span::default(),
        }
    }

    /// The tree as a JSON value.
    pub(super) fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(b) => Value::Bool(*b),
            Content::Number(n) => Value::Number(n.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(members) => members
                .iter()
                .map(|m| (m.key.clone(), m.value.to_json()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    /// The value of a key; nothing where this is no mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.members()
            .iter()
            .find(|m| m.key == key)
            .map(|m| &m.value)
    }

    /// The entries; none where this is no mapping.
    pub(super) fn members(&self) -> &[Member] {
        match &self.content {
            Content::Map(members) => members,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => &[],
        }
    }

    /// The items; none where this is no list.
    pub(super) fn items(&self) -> &[Node] {
        match &self.content {
            Content::List(items) => items,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::Map(_) => &[],
        }
    }

    /// The text, where this is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::List(_)
            | Content::Map(_) => None,
        }
    }

    /// The span of what a pointer leads to; where it leads nowhere, of the deepest thing on the
    /// way. For an entry of a mapping that holds a collection it is the key's span.
    pub(super) fn place(&self, pointer: &str) -> Span {
        let mut node = self;
        let mut span = self.span;
        for segment in crate::json::segments(pointer) {
            let (next, at) = match &node.content {
                Content::List(items) => {
                    let Some(item) = segment.parse().ok().and_then(|n: usize| items.get(n)) else {
                        return span;
                    };
                    (item, item.span)
                }
                Content::Map(members) => {
                    let Some(member) = members.iter().find(|m| m.key == segment) else {
                        return span;
                    };
                    let scalar =
                        !matches!(member.value.content, Content::List(_) | Content::Map(_));
                    let at = if scalar {
                        member.value.span
                    } else {
                        member.key_span
                    };
                    (&member.value, at)
                }
                Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {
                    return span;
                }
            };
            node = next;
            span = at;
        }
        span
    }

    /// Removes the entry whose key stands there; false where there is none.
    pub(super) fn remove_key_at(&mut self, span: Span) -> bool {
        match &mut self.content {
            Content::Map(members) => {
                let before = members.len();
                members.retain(|m| m.key_span != span);
                before != members.len() || members.iter_mut().any(|m| m.value.remove_key_at(span))
            }
            Content::List(items) => items.iter_mut().any(|item| item.remove_key_at(span)),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => false,
        }
    }

    /// Scalars and keys whose type differs between YAML readers, with advice. Quoted ones are safe.
    pub(super) fn ambiguous(&self, text: &str, found: &mut Vec<(Span, String)>) {
        let written = |span: Span| text.get(span.start..span.start + span.length);
        match &self.content {
            Content::Map(members) => {
                for member in members {
                    if written(member.key_span).is_some_and(is_ambiguous) {
                        found.push((member.key_span, member.key.clone()));
                    }
                    member.value.ambiguous(text, found);
                }
            }
            Content::List(items) => {
                for item in items {
                    item.ambiguous(text, found);
                }
            }
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {
                if let Some(word) = written(self.span).filter(|w| is_ambiguous(w)) {
                    found.push((self.span, word.to_owned()));
                }
            }
        }
    }
}

/// True for a plain scalar that some YAML reader takes for a boolean, a number or null although it
/// does not look like JSON, or that loses a zero: `NO`, `010`, `1.10`, `1e3`, `~`, `12:30`, `1_000`.
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
    // `1.0` is the same number wherever it is read, and `1.10` may have been a version.
    let lost_zero = unsigned
        .split_once('.')
        .is_some_and(|(_, decimals)| decimals.len() > 1 && decimals.ends_with('0'));
    leading_zero || lost_zero || word.starts_with('+') || unsigned.contains(['_', ':', 'e', 'E'])
}

/// Reads a type from a tree.
pub(super) fn from_node<'a, T: Deserialize<'a>>(node: &'a Node) -> Result<T, Fault> {
    T::deserialize(node)
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.content {
            Content::Null => visitor.visit_unit(),
            Content::Bool(b) => visitor.visit_bool(*b),
            Content::Number(n) => {
                if let Some(n) = n.as_u64() {
                    visitor.visit_u64(n)
                } else if let Some(n) = n.as_i64() {
                    visitor.visit_i64(n)
                } else {
                    visitor.visit_f64(n.as_f64().unwrap_or(f64::NAN))
                }
            }
            Content::Text(text) => visitor.visit_borrowed_str(text),
            Content::List(items) => visitor.visit_seq(Items(items.iter())),
            Content::Map(members) => visitor.visit_map(Entries {
                members: members.iter(),
                current: None,
            }),
        };
        read.map_err(|fault| fault.at(self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.content {
            Content::Null => visitor.visit_none(),
            Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_)
            | Content::Map(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (variant, span, value) = match &self.content {
            Content::Text(text) => (text.as_str(), self.span, None),
            Content::Map(members) if members.len() == 1 => (
                members[0].key.as_str(),
                members[0].key_span,
                Some(&members[0].value),
            ),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::List(_)
            | Content::Map(_) => {
                return Err(de::Error::custom(
                    "expected one word, or a mapping with exactly one key",
                ))
                .map_err(|fault: Fault| fault.at(self.span));
            }
        };
        visitor
            .visit_enum(Variant {
                word: variant,
                span,
                value,
            })
            .map_err(|fault| fault.at(span))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'a>(std::slice::Iter<'a, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }
}

struct Entries<'a> {
    members: std::slice::Iter<'a, Member>,
    current: Option<&'a Member>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.current = self.members.next();
        self.current
            .map(|member| {
                seed.deserialize(de::value::BorrowedStrDeserializer::new(&member.key))
                    .map_err(|fault: Fault| fault.at(member.key_span))
            })
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let member = self.current.expect("serde asks for a key first");
        seed.deserialize(&member.value)
    }
}

struct Variant<'a> {
    word: &'a str,
    span: Span,
    value: Option<&'a Node>,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let word: Result<_, Fault> =
            seed.deserialize(de::value::BorrowedStrDeserializer::new(self.word));
        Ok((word.map_err(|fault| fault.at(self.span))?, self))
    }
}

impl<'de> Variant<'de> {
    fn parameters(&self) -> Result<&'de Node, Fault> {
        self.value
            .ok_or_else(|| de::Error::custom(format!("`{}` needs parameters", self.word)))
            .map_err(|fault: Fault| fault.at(self.span))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.value {
            None => Ok(()),
            Some(value) => <()>::deserialize(value),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.parameters()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self.parameters()?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self.parameters()?, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_document_becomes_json_and_knows_its_places() {
        let text = "a:\n  - { b: 1, c: [x, null, true] }\n200: \"no\"\n";
        let node = read(text).unwrap();
        assert_eq!(
            node.to_json(),
            json!({"a": [{"b": 1, "c": ["x", null, true]}], "200": "no"})
        );
        let at = |pointer: &str| {
            let span = node.place(pointer);
            &text[span.start..span.start + span.length]
        };
        assert_eq!(at("/a/0/c/0"), "x");
        assert_eq!(at("/a/0/c"), "c");
        assert_eq!(at("/200"), "\"no\"");
        assert_eq!(at("/a/0/b/deeper"), "1");
    }

    #[test]
    fn strictness() {
        for (text, word) in [
            ("a: 1\na: 2\n", "duplicate"),
            ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge"),
            ("a: 1\n---\nb: 2\n", "document"),
            ("a: !thing 1\n", "tag"),
            ("a: *unknown\n", "anchor"),
            ("a: [1\n", ""),
            ("a: .inf\n", ""),
        ] {
            let fault = read(text).expect_err(text);
            assert!(
                fault.message.to_lowercase().contains(word),
                "{text}: {}",
                fault.message
            );
        }
        assert_eq!(read("a: no").unwrap().to_json(), json!({"a": "no"}));
    }

    #[test]
    fn budgets_hold() {
        let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
        assert!(read(&deep).is_err());
        let mut bomb = "a0: &a0 [x]\n".to_owned();
        for n in 1..40 {
            let list = format!("*a{},", n - 1).repeat(9);
            bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        assert!(read(&bomb).is_err());
    }

    #[test]
    fn types_are_read_with_the_place_of_what_does_not_fit() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only read")]
        struct Thing {
            name: String,
            count: Option<u8>,
        }
        let misfit = |text: &str| {
            let node = read(text).unwrap();
            let fault = from_node::<Thing>(&node).unwrap_err();
            let span = fault.span.unwrap();
            (
                text[span.start..span.start + span.length].to_owned(),
                fault.message,
            )
        };
        assert_eq!(misfit("name: x\ncuont: 1").0, "cuont");
        assert_eq!(misfit("name: x\ncount: many").0, "many");
        assert!(misfit("count: 1").1.contains("`name` is missing"));
    }

    #[test]
    fn plain_scalars_that_readers_disagree_about_are_found() {
        let text = "a: NO\nb: \"NO\"\nc: 010\nd: 1.10\ne: 1e3\nf: 12:30\ng: 3.1.0\nh: ~\non: 1\ni: 10\nj: 0.5\nk: true\nl: 1.0\n";
        let mut found = Vec::new();
        read(text).unwrap().ambiguous(text, &mut found);
        let words: Vec<_> = found.into_iter().map(|(_, word)| word).collect();
        assert_eq!(words, ["NO", "010", "1.10", "1e3", "12:30", "~", "on"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ a-c:\\-\\[\\]{}&*!|>'\"#%@,?~<0-9\\n\u{e9}]{0,80}") {
            if let Ok(node) = read(&text) {
                let mut found = Vec::new();
                node.ambiguous(&text, &mut found);
                let _ = node.place("/a/0/b");
            }
        }
    }
}
