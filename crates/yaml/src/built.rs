//! Compact binary form of trees, written by the build script: span, tag and content of each node.
//! Lengths are variable-length integers of seven bits a byte, lowest first.

use crate::tree::{Content, Member, Node, Span, Tag};
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

/// Decoder of the binary form; `None` on truncated or invalid input.
#[derive(Clone, Debug)]
pub struct Form(pub &'static [u8]);

impl Form {
    /// A node with all its descendants; texts stay in the binary.
    pub fn node(&mut self) -> Option<Node> {
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

    /// A length-prefixed text.
    pub fn text(&mut self) -> Option<&'static str> {
        std::str::from_utf8(self.part()?.0).ok()
    }

    /// A length-prefixed part.
    pub fn part(&mut self) -> Option<Self> {
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

/// Appends a tree in the form that [`Form`] reads.
pub fn write(node: &Node, into: &mut Vec<u8>) {
    write_span(node.span, into);
    let tag = |tag: Tag, into: &mut Vec<u8>| into.push(tag as u8);
    match &node.content {
        Content::Null => tag(Tag::Null, into),
        Content::Bool(false) => tag(Tag::False, into),
        Content::Bool(true) => tag(Tag::True, into),
        Content::Number(number) => {
            tag(Tag::Number, into);
            write_text(&number.to_string(), into);
        }
        Content::Text(text) => {
            tag(Tag::Text, into);
            write_text(text, into);
        }
        Content::List(items) => {
            tag(Tag::List, into);
            write_number(items.len(), into);
            for item in items {
                write(item, into);
            }
        }
        Content::Map(members) => {
            tag(Tag::Map, into);
            write_number(members.len(), into);
            for member in members {
                write_text(&member.key, into);
                write_span(member.key_span, into);
                write(&member.value, into);
            }
        }
    }
}

fn write_span(span: Span, into: &mut Vec<u8>) {
    write_number(span.start, into);
    write_number(span.length, into);
}

/// Appends a length-prefixed text.
pub fn write_text(text: &str, into: &mut Vec<u8>) {
    write_number(text.len(), into);
    into.extend_from_slice(text.as_bytes());
}

pub fn write_number(mut number: usize, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    into.push(number.to_le_bytes()[0]);
}
