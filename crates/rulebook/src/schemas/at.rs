//! The place of a schema in a representation, which determines the rules of its properties.

use crate::spelling::kebab;
use conformant_base::json;
use conformant_record::Level;
use conformant_yaml::{Content, Node};

/// The place of a schema in a representation.
#[derive(Clone, Debug, Default)]
pub(crate) struct At {
    /// Resource type of the representation; empty if no rules are derived.
    pub(crate) kind: String,
    /// Rule id of the enclosing property or representation.
    pub(crate) prefix: String,
    /// Pointer into the representation, `*` for items.
    pub(crate) instance: String,
    /// Whether it is inside `if`, `allOf` and similar, which only restrict the outer schema.
    pub(crate) tightening: bool,
    /// The rule about unlisted fields, and its level.
    pub(crate) other: Option<(String, Level)>,
}

impl At {
    /// An additional schema of a representation: it derives no rules, and its properties
    /// need not list what it requires.
    pub(crate) fn aside() -> Self {
        Self {
            tightening: true,
            ..Self::default()
        }
    }

    /// The root of a representation.
    pub(crate) fn root(kind: &str, prefix: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            prefix: prefix.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn property(&self, name: &str) -> Self {
        Self {
            prefix: format!("{}/{}", self.prefix, kebab(name)),
            instance: json::join(&self.instance, name),
            ..self.clone()
        }
    }

    pub(super) fn item(&self) -> Self {
        Self {
            instance: format!("{}/*", self.instance),
            ..self.clone()
        }
    }

    pub(super) fn restricting(&self) -> Self {
        Self {
            tightening: true,
            ..self.clone()
        }
    }

    /// The rule about unlisted fields of this object; also applies to inner objects.
    pub(super) fn enter(&mut self, node: &Node) -> Option<(String, Level)> {
        if self.kind.is_empty() || self.tightening {
            return None;
        }
        let closed = matches!(
            node.get("additionalProperties").map(|n| &n.content),
            Some(Content::Bool(false))
        );
        let open = node.get("additionalProperties").is_some() && !closed;
        let partial = is_partial(node) || open;
        let is_root = self.instance.is_empty();
        if partial {
            self.other = None;
        } else if closed
            && self
                .other
                .as_ref()
                .is_none_or(|(_, level)| *level != Level::Must)
        {
            self.other = Some((format!("{}/no-other-fields", self.prefix), Level::Must));
        } else if is_root {
            self.other = Some((format!("{}/no-other-fields", self.prefix), Level::Should));
        }
        let lists = node.get("properties").is_some() && !partial;
        self.other.clone().filter(|_| lists)
    }

    /// Whether the property only restricts another one.
    pub(super) fn is_restriction_only(&self, node: &Node) -> bool {
        self.tightening && node.get("x-source").is_none()
    }
}

fn is_partial(node: &Node) -> bool {
    matches!(
        node.get("x-partial").map(|n| &n.content),
        Some(Content::Bool(true))
    )
}
