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
const BOUNDS: &str =
    "minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf";

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
            branch.get("type")?;
            types.extend(named_types(branch).into_iter().map(Value::from));
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
    one.get("type")?;
    let types = named_types(&one).into_iter();
    let mut types: Vec<Value> = types.map(Value::from).collect();
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
    let types = named_types(keywords);
    let admitted = |value: &Value| types.iter().any(|name| is_of(value, name));
    let is_bound = |key: &str| BOUNDS.split(' ').any(|bound| bound == key);
    let bounds: Keywords = keywords
        .iter()
        .filter(|(key, _)| is_bound(key))
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
        keywords.retain(|key, _| !is_bound(key));
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

/// The names of the types.
pub(super) const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Allowed types; all if unstated.
pub(super) fn named_types(keywords: &Keywords) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => TYPES.to_vec(),
    }
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
    let types = named_types(keywords);
    let only_integers = types.contains(&"integer") && !types.contains(&"number");
    for (open, shut, is_upper) in [
        ("exclusiveMinimum", "minimum", false),
        ("exclusiveMaximum", "maximum", true),
    ] {
        let number = |key: &str| keywords.get(key).and_then(Value::as_f64);
        if only_integers {
            let bounds = [(open, true), (shut, false)];
            let bounds = bounds.map(|(key, is_open)| {
                let value = keywords.get(key)?;
                innermost(value, is_open, is_upper)
            });
            let bounds = bounds.into_iter().flatten();
            let bound = if is_upper { bounds.min() } else { bounds.max() };
            if let Some(bound) = bound.and_then(self::number) {
                keywords.remove(open);
                keywords.insert(shut.to_owned(), bound);
            }
        } else if let (Some(excluded), Some(included)) = (number(open), number(shut)) {
            let is_shut = if is_upper {
                included < excluded
            } else {
                included > excluded
            };
            keywords.remove(if is_shut { open } else { shut });
        }
    }
}

/// The last integer within a bound.
fn innermost(bound: &Value, is_open: bool, is_upper: bool) -> Option<i128> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "larger integers are clamped, which is more than a JSON number states exactly"
    )]
    let rounded = |n: f64| if is_upper { n.floor() } else { n.ceil() } as i128;
    let is_whole = bound.as_f64()?.fract() == 0.0;
    let integer = as_integer(bound).or_else(|| bound.as_f64().map(rounded))?;
    match is_open && is_whole {
        true => integer.checked_add(if is_upper { -1 } else { 1 }),
        false => Some(integer),
    }
}

/// Removes keywords without effect: bounds of excluded types, minimum lengths of zero, conditions that every value meets.
fn remove_ineffective(keywords: &mut Keywords) {
    const OF_TYPES: [(&str, &str); 4] = [
        (
            "string",
            "minLength maxLength pattern format contentMediaType contentEncoding",
        ),
        (
            "array",
            "minItems maxItems uniqueItems items contains prefixItems",
        ),
        (
            "object",
            "minProperties maxProperties propertyNames patternProperties dependentRequired dependentSchemas",
        ),
        (
            "number",
            "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
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
            for key in keys.split(' ') {
                keywords.remove(key);
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
