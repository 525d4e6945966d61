//! Statements of steps about their results: one comparison at one place. Evaluated by the judge.

use super::rules::{Definition, SourceRef};
use conformant_record::{Basis, Level};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// One statement about a result; exactly one of the comparisons is given.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Expect {
    /// The rule that this judges; a file may define it here, with `id` in place of `rule`.
    pub rule: String,
    /// JSON Pointer into the result, `*` for every item; empty for the whole.
    #[serde(default)]
    pub at: String,
    /// The comparison.
    #[serde(flatten)]
    pub is: Comparison,
    /// Only the items of the list whose value there is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<Among>,
    /// If nothing is at `at`, nothing is judged.
    #[serde(default)]
    pub or_absent: bool,
}

/// One statement about a result; exactly one of the comparisons is given, and either `rule` or `id`.
#[derive(JsonSchema)]
#[schemars(rename = "Expect", rename_all = "kebab-case", deny_unknown_fields)]
#[expect(dead_code, reason = "describes what is read for the JSON Schema")]
struct WrittenExpect {
    /// The rule that this judges, defined elsewhere.
    rule: Option<String>,
    /// The rule that this judges, defined here: its id, with `source` and `says`.
    id: Option<String>,
    /// With `id`: where the document states it.
    source: Option<SourceRef>,
    /// With `id`: one line in our own words.
    says: Option<String>,
    /// With `id`: how binding it is; default `must`.
    level: Option<Level>,
    /// With `id`: what it rests on; default `stated`.
    basis: Option<Basis>,
    /// JSON Pointer into the result, `*` for every item; empty for the whole.
    #[schemars(default)]
    at: String,
    /// The comparison.
    #[schemars(flatten)]
    is: Comparison,
    /// Only the items of the list whose value there is one of these.
    among: Option<Among>,
    /// If nothing is at `at`, nothing is judged.
    #[schemars(default)]
    or_absent: bool,
}

impl JsonSchema for Expect {
    fn schema_name() -> Cow<'static, str> {
        WrittenExpect::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WrittenExpect::json_schema(generator)
    }
}

/// The rule of a step: by its id, or by its definition.
#[derive(Clone, Debug)]
pub(super) struct RuleName(pub(super) String);

impl RuleName {
    /// Deserializes an optional rule name.
    pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        Option::<Self>::deserialize(from).map(|name| name.map(|name| name.0))
    }
}

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(IdOrDefinition)
    }
}

struct IdOrDefinition;

impl<'de> Visitor<'de> for IdOrDefinition {
    type Value = RuleName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of a rule, or a rule with `id`, `source` and `says`")
    }

    fn visit_str<E: de::Error>(self, id: &str) -> Result<RuleName, E> {
        Ok(RuleName(id.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleName, A::Error> {
        let definition = Definition::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RuleName(definition.id))
    }
}

impl JsonSchema for RuleName {
    fn schema_name() -> Cow<'static, str> {
        "RuleName".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let definition = generator.subschema_for::<Definition>();
        json_schema!({
            "description": "A rule: its id, or its definition.",
            "anyOf": [{ "type": "string" }, definition],
        })
    }
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The same JSON value.
    Equals(Value),
    /// Another JSON value.
    Differs(Value),
    /// One of these values.
    OneOf(Vec<Value>),
    /// True: there is no value. False: there is a value.
    Absent(bool),
    /// An array, or the values under `*`, holding this value.
    Includes(Value),
    /// An array, or the values under `*`, not holding this value.
    Excludes(Value),
    /// A number at least this, or an array or text at least that long; or at least as many as an array, `${NAME}`.
    AtLeast(Value),
    /// A number at most this, or an array or text at most that long.
    AtMost(u64),
    /// A text that is JSON of this value.
    SameJson(Value),
    /// A text that matches this regular expression.
    Matches(String),
    /// A text that does not match this regular expression.
    Unlike(String),
    /// An instant not before this one, which may be computed: `{$time: …}`.
    NotBefore(Value),
}

/// A condition on the items of a list.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Among {
    /// JSON Pointer into an item.
    pub at: String,
    /// The values there.
    pub one_of: Vec<Value>,
}

/// The keys of a statement.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "kebab-case")]
enum Key {
    Rule,
    Id,
    Source,
    Says,
    Level,
    Basis,
    At,
    Among,
    OrAbsent,
    Equals,
    Differs,
    OneOf,
    Absent,
    Includes,
    Excludes,
    AtLeast,
    AtMost,
    SameJson,
    Matches,
    Unlike,
    NotBefore,
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Statement)
    }
}

struct Statement;

impl<'de> Visitor<'de> for Statement {
    type Value = Expect;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a statement: a rule, a place and a comparison")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Expect, A::Error> {
        let (mut rule, mut at, mut among, mut or_absent) = (None, String::new(), None, false);
        let mut comparisons = Vec::new();
        let (mut id, mut has_definition) = (None, false);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Rule => rule = Some(map.next_value()?),
                Key::Id => id = Some(map.next_value()?),
                Key::Source | Key::Says | Key::Level | Key::Basis => {
                    let _: IgnoredAny = map.next_value()?;
                    has_definition = true;
                }
                Key::At => at = map.next_value()?,
                Key::Among => among = Some(map.next_value()?),
                Key::OrAbsent => or_absent = map.next_value()?,
                Key::Equals => comparisons.push(Comparison::Equals(map.next_value()?)),
                Key::Differs => comparisons.push(Comparison::Differs(map.next_value()?)),
                Key::OneOf => comparisons.push(Comparison::OneOf(map.next_value()?)),
                Key::Absent => comparisons.push(Comparison::Absent(map.next_value()?)),
                Key::Includes => comparisons.push(Comparison::Includes(map.next_value()?)),
                Key::Excludes => comparisons.push(Comparison::Excludes(map.next_value()?)),
                Key::AtLeast => {
                    let least: Value = map.next_value()?;
                    // Evidence contains the list that `${NAME}` was replaced with.
                    if !least.is_u64() && !least.is_string() && !least.is_array() {
                        return Err(de::Error::custom("`at-least` expects a number"));
                    }
                    comparisons.push(Comparison::AtLeast(least));
                }
                Key::AtMost => comparisons.push(Comparison::AtMost(map.next_value()?)),
                Key::SameJson => comparisons.push(Comparison::SameJson(map.next_value()?)),
                Key::Matches => comparisons.push(Comparison::Matches(map.next_value()?)),
                Key::Unlike => comparisons.push(Comparison::Unlike(map.next_value()?)),
                Key::NotBefore => comparisons.push(Comparison::NotBefore(map.next_value()?)),
            }
        }
        if rule.is_some() && (id.is_some() || has_definition) {
            return Err(de::Error::custom(
                "`expect` with `rule` and a definition: either `rule`, or `id` with `source` and `says`",
            ));
        }
        let rule = rule.or(id);
        let count = comparisons.len();
        let (Some(is), true) = (comparisons.pop(), count == 1) else {
            return Err(de::Error::custom(format!(
                "`expect` with {count} comparisons: exactly one of equals, differs, one-of, absent, includes, \
                 excludes, at-least, at-most, same-json, matches, unlike, not-before"
            )));
        };
        Ok(Expect {
            rule: rule.ok_or_else(|| de::Error::missing_field("rule"))?,
            at,
            is,
            among,
            or_absent,
        })
    }
}
