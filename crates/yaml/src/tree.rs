//! A tree of values that knows where each stands in its file.
//!
//! Nothing of the crate is known here: the build script makes trees by this very file. What can be asked of
//! one stands in `node.rs`, how it comes from YAML in `yaml.rs`, from the binary in `built.rs`.

use serde_json::Number;
use std::borrow::Cow;

/// A text: of the binary where it was embedded, else read from a file.
pub(crate) type Text = Cow<'static, str>;

/// A stretch of a text in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// How many bytes.
    pub length: usize,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub content: Content,
    pub span: Span,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub key: Text,
    pub key_span: Span,
    pub value: Node,
}

/// Which of [`Content`] a node is, where it is written as bytes.
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
