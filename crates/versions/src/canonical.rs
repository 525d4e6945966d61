//! Canonical form of schemas: schemas that accept the same values in different notation get the same keywords.
//!
//! - `anyOf` of a type and null becomes a list of types, and a constant a list of one value.
//! - An exclusive bound of integers becomes an inclusive one.
//! - What cannot be simplified is kept. The accepted values never change.
//! - It does not use `Resolved`: both schemas may be foreign, and every keyword is compared, not only the limits that a
//!   reader of our own schemas decides by. A branch that cannot be folded exactly has to stay a branch.

use super::texts::Texts;
use conformant_base::json::equal;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Keywords that do not affect which values are accepted.
pub(super) const WORDS: [&str; 2] = ["title", "description"];
/// Keywords of one condition.
pub(super) const CONDITIONAL: [&str; 3] = ["if", "then", "else"];

/// Bounds of texts and numbers, which a list of values replaces.
const BOUNDS: [&str; 8] = [
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

type Keywords = Map<String, Value>;

/// Returns the schema in canonical keywords; `resolved` returns those of a branch, with references.
pub(super) fn canonical(mut keywords: Keywords, resolved: &dyn Fn(&Value) -> Keywords) -> Keywords {
    for key in ["allOf", "anyOf", "oneOf"] {
        let Some(branches) = keywords.get(key).and_then(Value::as_array) else {
            continue;
        };
        let branches: Vec<Keywords> = branches.iter().map(resolved).collect();
        let joined = match key {
            "allOf" => all(&branches),
            _ => any(&branches),
        };
        let mut rest = keywords.clone();
        rest.remove(key);
        if let Some(merged) = joined.and_then(|joined| merged(&rest, joined)) {
            keywords = merged;
        }
    }
    if let Some(value) = keywords.remove("const") {
        match keywords.get("enum") {
            None => drop(keywords.insert("enum".to_owned(), json!([value]))),
            Some(_) => drop(keywords.insert("const".to_owned(), value)),
        }
    }
    enumerated(&mut keywords);
    integers(&mut keywords);
    remove_ineffective(&mut keywords);
    keywords
}

/// Whether a keyword restricts values.
fn speaks(key: &str) -> bool {
    !WORDS.contains(&key)
        && !key.starts_with("x-")
        && !matches!(key, "default" | "examples" | "$schema" | "$id" | "$defs")
}

/// Merges two schemas if no keyword is in both.
fn merged(one: &Keywords, other: Keywords) -> Option<Keywords> {
    let mut out = one.clone();
    for (key, value) in other {
        match out.get(&key) {
            // Its own text, rule and default come first.
            Some(_) if !speaks(&key) => {}
            Some(known) if equal(known, &value) => {}
            Some(_) => return None,
            None => drop(out.insert(key, value)),
        }
    }
    Some(out)
}

/// Merges branches of `allOf`.
fn all(branches: &[Keywords]) -> Option<Keywords> {
    let mut branches = branches.iter();
    let first = branches.next()?.clone();
    branches.try_fold(first, |one, other| merged(&one, other.clone()))
}

/// Merges branches of `anyOf`: lists of values or types, or one schema and null.
fn any(branches: &[Keywords]) -> Option<Keywords> {
    let spoken = |branch: &Keywords| branch.iter().filter(|(key, _)| speaks(key)).count();
    let says = |branch: &Keywords, key: &str| branch.contains_key(key);
    if branches
        .iter()
        .all(|branch| says(branch, "enum") && spoken(branch) <= 2)
    {
        let mut values: Vec<Value> = Vec::new();
        for value in branches
            .iter()
            .filter_map(|b| b.get("enum")?.as_array())
            .flatten()
        {
            if values.iter().any(|known| equal(known, value)) {
                return None;
            }
            values.push(value.clone());
        }
        return Some(Keywords::from_iter([(
            "enum".to_owned(),
            Value::Array(values),
        )]));
    }
    let is_null = |branch: &&Keywords| {
        let only = branch.get("type").is_some_and(|t| t == "null") && spoken(branch) == 1;
        only || (spoken(branch) <= 2 && branch.get("enum") == Some(&json!([null])))
    };
    let (nulls, others): (Vec<&Keywords>, Vec<&Keywords>) = branches.iter().partition(is_null);
    if others
        .iter()
        .all(|branch| says(branch, "type") && spoken(branch) == 1)
    {
        let mut types: Vec<Value> = Vec::new();
        for branch in branches {
            let named = branch.get("type")?;
            let named = named
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec![named.clone()]);
            types.extend(named);
        }
        let unique: BTreeSet<String> = types.iter().map(Value::to_string).collect();
        let overlap = unique.len() != types.len()
            || (types.contains(&json!("integer")) && types.contains(&json!("number")));
        return (!overlap).then(|| Keywords::from_iter([("type".to_owned(), Value::Array(types))]));
    }
    let ([one], [_]) = (others.as_slice(), nulls.as_slice()) else {
        return by_type(branches);
    };
    let mut one = (*one).clone();
    let list = |value: &Value| {
        value
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![value.clone()])
    };
    let mut types = list(one.get("type")?);
    if types.contains(&json!("null"))
        || ["const", "not", "if", "anyOf", "oneOf", "allOf"]
            .iter()
            .any(|key| says(&one, key))
    {
        return None;
    }
    types.push(json!("null"));
    one.insert("type".to_owned(), Value::Array(types));
    if let Some(values) = one.get_mut("enum").and_then(Value::as_array_mut) {
        values.push(Value::Null);
    }
    Some(one)
}

/// Merges branches for disjoint types, whose keywords are independent.
fn by_type(branches: &[Keywords]) -> Option<Keywords> {
    const NUMBERS: [&str; 2] = ["integer", "number"];
    let mut joined = Keywords::new();
    let mut types: Vec<Value> = Vec::new();
    for branch in branches {
        branch.get("type")?;
        let named = named_types(branch);
        let clashes = |known: &Value| {
            let is_number = |name: &str| NUMBERS.contains(&name);
            named.iter().any(|name| {
                known == name || (is_number(name) && known.as_str().is_some_and(is_number))
            })
        };
        if types.iter().any(clashes) {
            return None;
        }
        for (key, value) in branch
            .iter()
            .filter(|(key, _)| speaks(key) && *key != "type")
        {
            let of = match key.as_str() {
                "minLength" | "maxLength" | "pattern" | "format" => &["string"][..],
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                    &NUMBERS
                }
                "items" | "minItems" | "maxItems" | "uniqueItems" => &["array"],
                "properties"
                | "required"
                | "additionalProperties"
                | "minProperties"
                | "maxProperties" => &["object"],
                _ => return None,
            };
            // A branch's keywords for types that it excludes would restrict another branch.
            if named.iter().any(|name| of.contains(name)) {
                joined.insert(key.clone(), value.clone());
            }
        }
        types.extend(named.into_iter().map(Value::from));
    }
    joined.insert("type".to_owned(), Value::Array(types));
    Some(joined)
}

/// Types follow from a list of values, and only values of allowed types count.
fn enumerated(keywords: &mut Keywords) {
    let Some(Value::Array(values)) = keywords.get("enum") else {
        return;
    };
    let types = keywords.get("type").cloned();
    let admitted = |value: &Value| {
        let one = |types: &Value| vec![types.clone()];
        let list = |types: &Value| types.as_array().cloned();
        let named = types
            .as_ref()
            .map(|types| list(types).unwrap_or_else(|| one(types)));
        named.is_none_or(|named| {
            named
                .iter()
                .filter_map(Value::as_str)
                .any(|name| is_of(value, name))
        })
    };
    let bounds: Keywords = keywords
        .iter()
        .filter(|(key, _)| BOUNDS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let bounding = (!bounds.is_empty())
        .then(|| conformant_schema::compile(&Value::Object(bounds)).ok())
        .flatten();
    let within = |value: &Value| {
        bounding
            .as_ref()
            .is_none_or(|bounds| bounds.is_valid(value))
    };
    let mut unique: Vec<Value> = Vec::new();
    for value in values
        .iter()
        .filter(|value| admitted(value) && within(value))
    {
        if !unique.iter().any(|known| equal(known, value)) {
            unique.push(value.clone());
        }
    }
    let mut types: Vec<&str> = unique.iter().map(type_of).collect();
    types.sort_unstable();
    types.dedup();
    let types = json!(types);
    if bounding.is_some() {
        keywords.retain(|key, _| !BOUNDS.contains(&key.as_str()));
    }
    keywords.insert("type".to_owned(), types);
    keywords.insert("enum".to_owned(), Value::Array(unique));
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_of(value, "integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match (value, name) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        (Value::Number(number), "integer") => number.as_f64().is_some_and(|n| n.fract() == 0.0),
        _ => false,
    }
}

/// Allowed types; all if unstated.
pub(super) fn named_types(keywords: &Keywords) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec![
            "array", "boolean", "integer", "null", "number", "object", "string",
        ],
    }
}

/// Parses an integer bound of any size; other bounds are kept.
fn exact_integers(keywords: &mut Keywords, (open, shut): (&str, &str), is_upper: bool) -> bool {
    let inside = if is_upper { -1 } else { 1 };
    let excluded = keywords.get(open).map(as_integer);
    let included = keywords.get(shut).map(as_integer);
    let bounds = match (excluded, included) {
        (Some(None), _) | (_, Some(None)) | (None, None) => return false,
        (excluded, included) => [
            excluded.flatten().and_then(|n| n.checked_add(inside)),
            included.flatten(),
        ],
    };
    let bounds = bounds.into_iter().flatten();
    let bound = if is_upper { bounds.min() } else { bounds.max() };
    keywords.remove(open);
    if let Some(bound) = bound.and_then(number) {
        keywords.insert(shut.to_owned(), bound);
    }
    true
}

/// Parses a number in integer notation.
pub(super) fn as_integer(value: &Value) -> Option<i128> {
    value
        .is_number()
        .then(|| value.to_string().parse().ok())
        .flatten()
}

/// An integer as a JSON value, digit by digit.
pub(super) fn number(integer: i128) -> Option<Value> {
    serde_json::from_str(&integer.to_string()).ok()
}

/// The tighter lower and upper bound, each with its keyword. Where only integers are accepted, bounds are inclusive.
fn integers(keywords: &mut Keywords) {
    let only_integers = {
        let types = named_types(keywords);
        types.contains(&"integer") && !types.contains(&"number")
    };
    for (open, shut, is_upper) in [
        ("exclusiveMinimum", "minimum", false),
        ("exclusiveMaximum", "maximum", true),
    ] {
        if only_integers && exact_integers(keywords, (open, shut), is_upper) {
            continue;
        }
        let number = |key: &str| keywords.get(key).and_then(Value::as_f64);
        let (excluded, included) = (number(open), number(shut));
        if only_integers {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "larger integers are clamped, which is more than a JSON number states exactly"
            )]
            let integer = |n: f64| n as i128;
            let inside = |n: f64| {
                if is_upper {
                    integer(n.ceil()).saturating_sub(1)
                } else {
                    integer(n.floor()).saturating_add(1)
                }
            };
            let rounded = |n: f64| integer(if is_upper { n.floor() } else { n.ceil() });
            let bounds = [excluded.map(inside), included.map(rounded)];
            let bounds = bounds.into_iter().flatten();
            let bound = if is_upper { bounds.min() } else { bounds.max() };
            keywords.remove(open);
            if let Some(bound) = bound.and_then(self::number) {
                keywords.insert(shut.to_owned(), bound);
            }
        } else if let (Some(excluded), Some(included)) = (excluded, included) {
            let is_shut = if is_upper {
                included < excluded
            } else {
                included > excluded
            };
            keywords.remove(if is_shut { open } else { shut });
        }
    }
}

/// Removes keywords without effect: bounds of excluded types, minimum lengths of zero, conditions that every value meets.
fn remove_ineffective(keywords: &mut Keywords) {
    const OF_TYPES: [(&str, &[&str]); 4] = [
        (
            "string",
            &[
                "minLength",
                "maxLength",
                "pattern",
                "format",
                "contentMediaType",
                "contentEncoding",
            ],
        ),
        (
            "array",
            &[
                "minItems",
                "maxItems",
                "uniqueItems",
                "items",
                "contains",
                "prefixItems",
            ],
        ),
        (
            "object",
            &[
                "minProperties",
                "maxProperties",
                "propertyNames",
                "patternProperties",
                "dependentRequired",
                "dependentSchemas",
            ],
        ),
        (
            "number",
            &[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ],
        ),
    ];
    let accepts_any = |value: &Value| match value {
        Value::Bool(allows) => *allows,
        Value::Object(members) => !members.keys().any(|key| speaks(key)),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    keywords.retain(|key, value| match key.as_str() {
        "then" | "else" | "propertyNames" => !accepts_any(value),
        "dependentRequired" | "dependentSchemas" | "patternProperties" => *value != json!({}),
        "prefixItems" => *value != json!([]),
        // An annotation.
        "contentSchema" => false,
        _ => true,
    });
    if !keywords.contains_key("if") {
        keywords.retain(|key, _| key != "then" && key != "else");
    } else if !keywords.contains_key("then") && !keywords.contains_key("else") {
        keywords.remove("if");
    }
    let types: Vec<String> = named_types(keywords)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let may_be = |name: &str| {
        types
            .iter()
            .any(|known| known == name || (name == "number" && known == "integer"))
    };
    for (name, keys) in OF_TYPES {
        if !may_be(name) {
            for key in keys {
                keywords.remove(*key);
            }
        }
    }
    for key in ["minLength", "minItems", "minProperties"] {
        if keywords.get(key).and_then(Value::as_f64) == Some(0.0) {
            keywords.remove(key);
        }
    }
    let only_integers = !types.iter().any(|name| name == "number");
    if only_integers && keywords.get("multipleOf").and_then(Value::as_f64) == Some(1.0) {
        keywords.remove("multipleOf");
    }
}

/// The accepted texts, unless texts are excluded or enumerated.
pub(super) fn accepted_texts(keywords: &Keywords) -> Option<Texts> {
    if !named_types(keywords).contains(&"string") || keywords.contains_key("enum") {
        return None;
    }
    let length = |key: &str| keywords.get(key).and_then(Value::as_u64);
    Some(Texts {
        pattern: keywords
            .get("pattern")
            .and_then(Value::as_str)
            .map(str::to_owned),
        shortest: length("minLength").unwrap_or_default(),
        longest: length("maxLength"),
    })
}

/// Whether every accepted value is in that list; undecided for infinite sets.
pub(super) fn is_covered(keywords: &Keywords, list: &[Value]) -> bool {
    const INTEGERS_MAX: i128 = 1_000;
    let has = |value: &Value| list.iter().any(|known| equal(known, value));
    let bound = |key: &str| keywords.get(key).and_then(as_integer);
    let texts_of_list = || {
        let texts = list.iter().filter_map(Value::as_str);
        let escaped: Vec<String> = texts.map(regex_syntax::escape).collect();
        Texts {
            pattern: Some(format!("^(?:{})$", escaped.join("|"))),
            ..Texts::default()
        }
    };
    named_types(keywords).into_iter().all(|name| match name {
        "null" => has(&Value::Null),
        "boolean" => has(&json!(true)) && has(&json!(false)),
        "integer" => match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) if most.saturating_sub(least) < INTEGERS_MAX => {
                (least..=most).all(|n| number(n).is_some_and(|n| has(&n)))
            }
            _ => false,
        },
        "string" => accepted_texts(keywords)
            .and_then(|texts| texts.apart(&texts_of_list()))
            .is_some_and(|(beyond, _)| beyond.is_none()),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(schema: &Value) -> Value {
        fn resolved(schema: &Value) -> Keywords {
            let keywords = schema.as_object().cloned().unwrap_or_default();
            canonical(keywords, &resolved)
        }
        let mut keywords = resolved(schema);
        if let Some(Value::Array(types)) = keywords.get_mut("type") {
            types.sort_by_key(Value::to_string);
            if let [one] = types.as_slice() {
                let one = one.clone();
                keywords.insert("type".to_owned(), one);
            }
        }
        Value::Object(keywords)
    }

    #[test]
    fn the_same_values_in_other_words_are_the_same_keywords() {
        for (one, other) in [
            (
                json!({"type": ["string", "null"]}),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            ),
            (
                json!({"type": ["string", "null"], "maxLength": 3}),
                json!({"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 3}]}),
            ),
            (
                json!({"enum": ["a", null]}),
                json!({"anyOf": [{"enum": ["a"]}, {"const": null}]}),
            ),
            (json!({"const": 1}), json!({"enum": [1]})),
            (
                json!({"enum": ["a"]}),
                json!({"type": "string", "enum": ["a", 1]}),
            ),
            (
                json!({"type": "integer", "minimum": 1}),
                json!({"type": "integer", "exclusiveMinimum": 0}),
            ),
            (
                json!({"type": "integer", "maximum": 9}),
                json!({"type": "integer", "exclusiveMaximum": 9.5}),
            ),
            (
                json!({"type": "integer", "maximum": 9_999_999_999_999_999_i64}),
                json!({"type": "integer", "exclusiveMaximum": 1e16}),
            ),
            (
                json!({"type": "number", "minimum": 2}),
                json!({"type": "number", "minimum": 2, "exclusiveMinimum": 1}),
            ),
            (
                json!({"type": "string"}),
                json!({"type": "string", "minLength": 0, "maximum": 7}),
            ),
            (
                json!({"type": "string", "maxLength": 3}),
                json!({"allOf": [{"type": "string"}, {"maxLength": 3}]}),
            ),
            (
                json!({"type": "integer"}),
                json!({"type": "integer", "multipleOf": 1}),
            ),
            (json!({}), json!({"then": {"minimum": 2}, "else": false})),
            (
                json!({}),
                json!({"if": {"minimum": 2}, "then": {}, "else": true}),
            ),
            (
                json!({"if": {"minimum": 2}, "else": false}),
                json!({"if": {"minimum": 2}, "then": {"title": "t"}, "else": false}),
            ),
            (
                json!({"type": "object"}),
                json!({"type": "object", "propertyNames": true, "dependentRequired": {}}),
            ),
        ] {
            assert_eq!(said(&one), said(&other), "{one} and {other}");
        }
    }

    #[test]
    fn what_accepts_other_values_stays_apart() {
        for (one, other) in [
            (
                json!({"type": "string"}),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            ),
            (
                json!({"type": "number", "minimum": 1}),
                json!({"type": "number", "exclusiveMinimum": 1}),
            ),
            (
                json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
                json!({"type": "number"}),
            ),
            (
                json!({"type": "string", "maxLength": 3}),
                json!({"allOf": [{"maxLength": 4}, {"maxLength": 3}]}),
            ),
        ] {
            assert_ne!(said(&one), said(&other), "{one} and {other}");
        }
    }
}
