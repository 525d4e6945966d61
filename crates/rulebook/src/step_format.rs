//! Deserializes steps: the verb determines the other keys.
//!
//! One mapping contains the verb, its keys and the keys of every step, in any order. Other keys are rejected at their place.
//! `step.rs` documents the keys.

use super::step::{Step, Verb};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// Defines the enum of verbs from a struct for each, with its deserialization.
macro_rules! verbs {
    ($($verb:ident $word:literal,)*) => {
        /// The verb of a step, with its keys.
        #[derive(Clone, Debug, Serialize)]
        #[serde(untagged)]
        #[expect(missing_docs, reason = "documented at the structs")]
        pub enum Verb {
            $($verb(Box<$verb>),)*
        }

        $(impl From<$verb> for Step {
            fn from(verb: $verb) -> Self {
                Self {
                    verb: Verb::$verb(Box::new(verb)),
                    repeat: None,
                    setup: false,
                }
            }
        })*

        impl Verb {
            /// The names of all verbs.
            pub(super) const WORDS: &[&str] = &[$($word),*];

            /// The key of the verb.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$verb(_) => $word,)*
                }
            }

            /// Deserializes the keys of a verb.
            pub(super) fn read<'de, D: serde::Deserializer<'de>>(
                word: &str,
                from: D,
            ) -> Result<Self, D::Error> {
                match word {
                    $($word => <$verb>::deserialize(from).map(|verb| Self::$verb(Box::new(verb))),)*
                    other => Err(serde::de::Error::unknown_variant(other, Self::WORDS)),
                }
            }

            /// The keys of a verb, itself first.
            pub(super) fn keys(word: &str) -> &'static [&'static str] {
                match word {
                    $($word => super::step_format::fields::<$verb>(),)*
                    _ => &[],
                }
            }

            /// The schema of each verb.
            pub(super) fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<schemars::Schema> {
                vec![$(<$verb>::json_schema(generator)),*]
            }
        }
    };
}
pub(super) use verbs;

/// Keys of every step.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CommonKeys {
    /// Repeat it that many times; `${index}` counts from 0, and the capture is an array.
    repeat: Option<usize>,
    /// Its failure violates no rule: the scenario becomes inconclusive.
    setup: bool,
}

/// All keys of all steps.
static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut keys: Vec<&str> = fields::<CommonKeys>().to_vec();
    for key in Verb::WORDS.iter().flat_map(|word| Verb::keys(word)) {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    keys
});

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let beside = CommonKeys::json_schema(generator);
        let beside = beside.get("properties").and_then(Value::as_object);
        let mut verbs = Verb::schemas(generator);
        for verb in &mut verbs {
            let keys = verb.get_mut("properties").and_then(Value::as_object_mut);
            if let (Some(keys), Some(beside)) = (keys, beside) {
                keys.extend(beside.clone());
            }
        }
        json_schema!({
            "description": "One step: exactly one verb, its keys, and keys of every step.",
            "oneOf": verbs,
        })
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Whole)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step: a verb and its keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
        let mut beside = CommonKeys::default();
        // Keys before the verb are stored until it is known; the serialized form begins with the verb.
        let mut early: Vec<(&'static str, Value)> = Vec::new();
        let verb = loop {
            let before: Vec<&str> = early.iter().map(|(key, _)| *key).collect();
            match map.next_key_seed(KeyAfter::Others(&before))? {
                Some(Key::Repeat) => beside.repeat = map.next_value()?,
                Some(Key::Setup) => beside.setup = map.next_value()?,
                Some(Key::Other(key)) => early.push((key, map.next_value()?)),
                Some(Key::Verb(verb)) => break verb,
                None => {
                    return Err(de::Error::custom(format!(
                        "a step without a verb: exactly one of {}",
                        Verb::WORDS.join(", ")
                    )));
                }
            }
        };
        let body = Body {
            verb,
            is_begun: false,
            early: early.into_iter(),
            value: None,
            map,
            beside: &mut beside,
        };
        let verb = Verb::read(verb, MapAccessDeserializer::new(body))?;
        Ok(Step {
            verb,
            repeat: beside.repeat,
            setup: beside.setup,
        })
    }
}

/// A key of a step.
enum Key {
    Verb(&'static str),
    Repeat,
    Setup,
    /// A key of a verb.
    Other(&'static str),
}

/// Deserializes a key, and rejects one that does not fit the previous keys.
enum KeyAfter<'k> {
    /// No verb yet, but these keys.
    Others(&'k [&'static str]),
    Verb(&'static str),
}

impl KeyAfter<'_> {
    fn key<E: de::Error>(&self, word: &str) -> Result<Key, E> {
        let known = |among: &[&'static str]| among.iter().copied().find(|key| *key == word);
        match word {
            "repeat" => return Ok(Key::Repeat),
            "setup" => return Ok(Key::Setup),
            _ => {}
        }
        match (self, known(Verb::WORDS)) {
            (Self::Verb(first), Some(second)) => Err(E::custom(format!(
                "a step with 2 verbs: {first}, {second}: exactly one of {}",
                Verb::WORDS.join(", ")
            ))),
            (Self::Others(keys), Some(verb)) => {
                match keys.iter().find(|key| !Verb::keys(verb).contains(key)) {
                    Some(key) => Err(does_not_go(key, verb)),
                    None => Ok(Key::Verb(verb)),
                }
            }
            (Self::Others(_), None) => {
                let key = known(&KEYS).ok_or_else(|| E::unknown_field(word, &KEYS))?;
                Ok(Key::Other(key))
            }
            (Self::Verb(verb), None) => match (known(Verb::keys(verb)), known(&KEYS)) {
                (Some(key), _) => Ok(Key::Other(key)),
                (None, Some(key)) => Err(does_not_go(key, verb)),
                (None, None) => Err(E::unknown_field(word, &KEYS)),
            },
        }
    }
}

fn does_not_go<E: de::Error>(key: &str, verb: &str) -> E {
    let verbs = Verb::WORDS.iter().copied();
    let with: Vec<&str> = verbs
        .filter(|verb| Verb::keys(verb).contains(&key))
        .collect();
    E::custom(format!(
        "invalid key `{key}` of `{verb}`: it belongs to {}",
        with.join(", ")
    ))
}

impl<'de> DeserializeSeed<'de> for KeyAfter<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Key, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyAfter<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key of a step")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Key, E> {
        self.key(word)
    }
}

/// The keys of a verb: the verb itself, keys before it, and keys after it. Keys of every step
/// are stored separately.
struct Body<'b, A> {
    verb: &'static str,
    is_begun: bool,
    early: std::vec::IntoIter<(&'static str, Value)>,
    /// The value of a key before the verb.
    value: Option<Value>,
    map: A,
    beside: &'b mut CommonKeys,
}

impl<'de, A: MapAccess<'de>> Body<'_, A> {
    fn next(&mut self) -> Result<Option<&'static str>, A::Error> {
        if !self.is_begun {
            self.is_begun = true;
            return Ok(Some(self.verb));
        }
        if let Some((key, value)) = self.early.next() {
            self.value = Some(value);
            return Ok(Some(key));
        }
        loop {
            match self.map.next_key_seed(KeyAfter::Verb(self.verb))? {
                Some(Key::Repeat) => self.beside.repeat = self.map.next_value()?,
                Some(Key::Setup) => self.beside.setup = self.map.next_value()?,
                Some(Key::Other(key) | Key::Verb(key)) => return Ok(Some(key)),
                None => return Ok(None),
            }
        }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Body<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let key = self.next()?;
        key.map(|key| seed.deserialize(key.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(de::Error::custom),
            None => self.map.next_value_seed(seed),
        }
    }
}

/// The names of the fields of a struct, as `serde` passes them to a deserializer.
pub(super) fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut asked = Asked(&[]);
    // The names are passed before anything is read.
    let _nothing_is_read = T::deserialize(&mut asked);
    asked.0
}

struct Asked(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Asked {
    type Error = de::value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0 = fields;
        Err(de::Error::custom("nothing is read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("nothing is read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
