//! Trees as the build script has written them: for each node its span, what it is, and what it holds.
//! Numbers of bytes and items take seven bits a byte, the lowest first.

use super::tree::{Content, Member, Node, Span, Tag};
use serde_json::Number;
use std::borrow::Cow;

const TAGS: [Tag; 7] = [
    Tag::Null,
    Tag::False,
    Tag::True,
    Tag::Number,
    Tag::Text,
    Tag::List,
    Tag::Map,
];

/// Reads what was written; nothing where it ends too soon or is something else.
#[derive(Clone, Debug)]
pub(super) struct Form(pub(super) &'static [u8]);

impl Form {
    /// A node with all that is below it; its texts stay where they are.
    pub(super) fn node(&mut self) -> Option<Node> {
        let span = self.span()?;
        let tag = *TAGS.get(usize::from(self.byte()?))?;
        let content = match tag {
            Tag::Null => Content::Null,
            Tag::False => Content::Bool(false),
            Tag::True => Content::Bool(true),
            Tag::Number => Content::Number(self.text()?.parse::<Number>().ok()?),
            Tag::Text => Content::Text(Cow::Borrowed(self.text()?)),
            Tag::List => Content::List(self.all(Self::node)?),
            Tag::Map => Content::Map(self.all(Self::member)?),
        };
        Some(Node { content, span })
    }

    fn member(&mut self) -> Option<Member> {
        Some(Member {
            key: Cow::Borrowed(self.text()?),
            key_span: self.span()?,
            value: self.node()?,
        })
    }

    fn all<T>(&mut self, one: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut all = Vec::with_capacity(count.min(self.0.len()));
        for _ in 0..count {
            all.push(one(self)?);
        }
        Some(all)
    }

    fn span(&mut self) -> Option<Span> {
        Some(Span {
            start: self.number()?,
            length: self.number()?,
        })
    }

    /// A text with its length.
    pub(super) fn text(&mut self) -> Option<&'static str> {
        std::str::from_utf8(self.part()?.0).ok()
    }

    /// What is so many bytes long.
    pub(super) fn part(&mut self) -> Option<Self> {
        let length = self.number()?;
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Self(part))
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
}
