//! A tree of values with their positions in a file.
//!
//! The build script includes this file, so it depends on nothing else in the crate.

use serde_json::Number;
use std::borrow::Cow;

/// Borrowed from the binary if embedded, else read from a file.
pub(crate) type Text = Cow<'static, str>;

/// A byte range of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub length: usize,
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub content: Content,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub key: Text,
    pub key_span: Span,
    pub value: Node,
}

/// Discriminant of [`Content`] in the binary form.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Tag {
    Null,
    False,
    True,
    Number,
    Text,
    List,
    Map,
}
