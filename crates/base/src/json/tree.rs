//! Builds a `serde_json` tree without spare capacity.
//!
//! `serde_json` grows maps and lists by doubling, and a map of one member has room for four.
//! A body of many small objects would take twice the memory.

use super::parse::{Limits, RESERVED_KEYS};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Reads a text whose size, depth and number of values were checked before.
pub(super) fn read(text: &str) -> Result<Value, serde_json::Error> {
    read_as(text, Tree { bounds: None })
}

/// Reads a text within the limits that has no duplicate and no reserved key; otherwise `None`.
pub(super) fn read_plain(text: &str, limits: Limits) -> Option<Value> {
    // Unescaped, a reserved key looks like the marker that the parser uses for a number.
    if memchr::memmem::find(text.as_bytes(), RESERVED_BEGIN.as_bytes()).is_some() {
        return None;
    }
    let nodes = Cell::new(0);
    let bounds = Some(Bounds {
        nodes: &nodes,
        depth: 0,
        limits,
    });
    read_as(text, Tree { bounds }).ok()
}

/// Prefix of all reserved keys.
const RESERVED_BEGIN: &str = "$serde_json::private::";

fn read_as(text: &str, tree: Tree<'_>) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = tree.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Builds a value, or fails once it is out of bounds.
#[derive(Clone, Copy)]
struct Tree<'b> {
    bounds: Option<Bounds<'b>>,
}

/// Limits of a tree.
#[derive(Clone, Copy)]
struct Bounds<'b> {
    /// Values and keys so far.
    nodes: &'b Cell<usize>,
    /// Objects and arrays around this one.
    depth: usize,
    limits: Limits,
}

impl Tree<'_> {
    /// Counts one more value or key.
    fn count<E: Error>(self) -> Result<(), E> {
        let Some(bounds) = self.bounds else {
            return Ok(());
        };
        bounds.nodes.set(bounds.nodes.get() + 1);
        if bounds.nodes.get() > bounds.limits.nodes {
            return Err(E::custom("too many values"));
        }
        Ok(())
    }

    /// The state for the entries of the object or array that begins.
    fn within<E: Error>(mut self) -> Result<Self, E> {
        if let Some(bounds) = &mut self.bounds {
            bounds.depth += 1;
            if bounds.depth > bounds.limits.depth {
                return Err(E::custom("nested too deeply"));
            }
        }
        Ok(self)
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        self.count()?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let within = self.within()?;
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(within)? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members: Vec<(String, Value)> = Vec::new();
        let seed = Key {
            is_plain: self.bounds.is_some(),
        };
        // The first key decides whether this is a number or an object.
        let mut within = None;
        while let Some(key) = from.next_key_seed(seed)? {
            let Some(key) = key else {
                let text: String = from.next_value()?;
                let number: Number = text.parse().map_err(A::Error::custom)?;
                return Ok(Value::Number(number));
            };
            self.count()?;
            let tree = match within {
                Some(tree) => tree,
                None => *within.insert(self.within()?),
            };
            members.push((key, from.next_value_seed(tree)?));
        }
        if within.is_none() {
            self.within::<A::Error>()?;
        }
        let count = members.len();
        let mut map = Map::with_capacity(count);
        map.extend(members);
        if self.bounds.is_some() && map.len() < count {
            return Err(A::Error::custom("duplicate key"));
        }
        Ok(Value::Object(map))
    }
}

/// A key; `None` for the marker of a number whose text is kept, which no document may contain.
#[derive(Clone, Copy)]
struct Key {
    /// True if the text contains no unescaped reserved key.
    is_plain: bool,
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok((key != RESERVED_KEYS[0]).then(|| key.to_owned()))
    }

    /// Called for escaped keys only.
    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if self.is_plain && RESERVED_KEYS.contains(&key) {
            return Err(E::custom("reserved key"));
        }
        Ok((key != RESERVED_KEYS[0]).then(|| key.to_owned()))
    }
}
