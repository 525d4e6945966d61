//! JSON as a tree that takes no more room than it must.
//!
//! The tree is the one that `serde_json` itself builds; but its maps and lists grow by doubling, and
//! a map of one member has room for four. A body of many small objects would take twice as much.

use super::parse::RESERVED_KEYS;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads a text whose size, depth and number of values were looked at before.
pub(super) fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Tree.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Makes a value of whatever comes.
struct Tree;

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
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
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(Tree)? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members: Vec<(String, Value)> = Vec::new();
        while let Some(key) = from.next_key_seed(Key)? {
            let Some(key) = key else {
                let text: String = from.next_value()?;
                let number: Number = text.parse().map_err(A::Error::custom)?;
                return Ok(Value::Number(number));
            };
            members.push((key, from.next_value_seed(Tree)?));
        }
        let mut map = Map::with_capacity(members.len());
        map.extend(members);
        Ok(Value::Object(map))
    }
}

/// A key; nothing for the one under which the reader gives a number whose text must be kept, and which no
/// document may have.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key != RESERVED_KEYS[0]).then(|| key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(text)
    }

    proptest! {
        /// The tree is the one that `serde_json` builds, and what it refuses is refused at the same place.
        #[test]
        fn it_is_the_same_tree(text in "([{}\\[\\],:]|\"[a-c\\\\n]{0,2}\"|-?[0-9.e+]{1,4}|null|true| ){0,30}") {
            match (read(text.as_bytes()), plain(&text)) {
                (Ok(lean), Ok(plain)) => prop_assert_eq!(lean.to_string(), plain.to_string()),
                (Err(lean), Err(plain)) => prop_assert_eq!(lean.to_string(), plain.to_string()),
                (lean, plain) => prop_assert!(false, "{lean:?} {plain:?}"),
            }
        }
    }

    #[test]
    fn numbers_keep_their_text_and_of_a_key_the_last_value_counts() {
        let text =
            r#"{"b":1.50,"a":[-0,1E+2,1e999999,123456789012345678901234567890],"b":{"c":2}}"#;
        let lean = read(text.as_bytes()).unwrap();
        assert_eq!(lean.to_string(), plain(text).unwrap().to_string());
        assert_eq!(lean["b"], serde_json::json!({"c": 2}));
    }
}
