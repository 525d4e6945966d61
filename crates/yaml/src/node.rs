//! Accessors of a tree, and deserialization of any `serde` type from it.

use crate::read::Fault;
use crate::tree::{Content, Member, Node, Span};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

impl Node {
    /// A tree without positions from a JSON value.
    pub fn from_json(value: &Value) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(b) => Content::Bool(*b),
            Value::Number(n) => Content::Number(n.clone()),
            Value::String(text) => Content::Text(text.clone().into()),
            Value::Array(items) => Content::List(items.iter().map(Self::from_json).collect()),
            Value::Object(members) => Content::Map(
                members
                    .iter()
                    .map(|(key, value)| Member {
                        key: key.clone().into(),
                        key_span: Span::default(),
                        value: Self::from_json(value),
                    })
                    .collect(),
            ),
        };
        Self {
            content,
            span: Span::default(),
        }
    }

    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(b) => Value::Bool(*b),
            Content::Number(n) => Value::Number(n.clone()),
            Content::Text(text) => text.as_ref().into(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(members) => members
                .iter()
                .map(|m| (m.key.to_string(), m.value.to_json()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    /// The value of a key; `None` if this is not a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members()
            .iter()
            .find(|m| m.key == key)
            .map(|m| &m.value)
    }

    /// The entries; none if this is not a mapping.
    pub fn members(&self) -> &[Member] {
        let Content::Map(members) = &self.content else {
            return &[];
        };
        members
    }

    /// The items; none if this is not a list.
    pub fn items(&self) -> &[Node] {
        let Content::List(items) = &self.content else {
            return &[];
        };
        items
    }

    pub fn text(&self) -> Option<&str> {
        let Content::Text(text) = &self.content else {
            return None;
        };
        Some(text)
    }

    /// The span at a pointer, or of the deepest existing node on its path. For a mapping entry that
    /// contains a collection it is the key's span.
    pub fn place(&self, pointer: &str) -> Span {
        let mut node = self;
        let mut span = self.span;
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let item = segment
                .parse()
                .ok()
                .and_then(|n: usize| node.items().get(n));
            let member = node.members().iter().find(|m| m.key == segment);
            let is_collection =
                |node: &Self| matches!(node.content, Content::List(_) | Content::Map(_));
            (node, span) = match (item, member) {
                (Some(item), _) => (item, item.span),
                (_, Some(member)) if is_collection(&member.value) => {
                    (&member.value, member.key_span)
                }
                (_, Some(member)) => (&member.value, member.value.span),
                (None, None) => return span,
            };
        }
        span
    }

    /// Removes the entry whose key is at `span`; false if there is none.
    pub fn remove_key_at(&mut self, span: Span) -> bool {
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
}

/// Deserializes a type from a tree.
pub fn from_node<'a, T: Deserialize<'a>>(node: &'a Node) -> Result<T, Fault> {
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
        if self.content == Content::Null {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
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
        let (word, span, value) = if let Some(text) = self.text() {
            (text, self.span, None)
        } else if let [only] = self.members() {
            (&*only.key, only.key_span, Some(&only.value))
        } else {
            let message = "expected one word, or a mapping with exactly one key";
            return Err(<Fault as de::Error>::custom(message).at(self.span));
        };
        let variant = Variant { word, span, value };
        visitor.visit_enum(variant).map_err(|fault| fault.at(span))
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
                    .map_err(|fault: Fault| fault.of_key(member.key_span))
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
