//! Values that requests send: from examples where they fit the schema, else made from the schema and the name.

use crate::api::plain;
use crate::schema::{is_single, types_of};
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

/// Characters that `${unique.NAME}` adds to the name, and that scenarios add for further resources.
const UNIQUE_ROOM: usize = 36;

/// What is known of a value besides its schema.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    /// In front of the name in unique words.
    pub(crate) prefix: &'a str,
    pub(crate) schema: &'a Map<String, Value>,
    pub(crate) example: Option<&'a Value>,
    /// The format as the document has it.
    pub(crate) format: Option<&'a str>,
    /// Another value than the first one.
    pub(crate) is_other: bool,
}

/// A value; nothing where none can be made.
pub(crate) fn value(wanted: &Wanted<'_>) -> Option<Value> {
    make(wanted, 0)
}

fn make(wanted: &Wanted<'_>, depth: usize) -> Option<Value> {
    let schema = wanted.schema;
    if depth > 6 {
        return None;
    }
    if let Some(only) = schema.get("const") {
        return Some(only.clone());
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let mut words = words.iter().filter(|word| !word.is_null());
        let first = words.next()?;
        let chosen = if wanted.is_other {
            words.next().unwrap_or(first)
        } else {
            first
        };
        return Some(chosen.clone());
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        let branches = branches.iter().filter_map(Value::as_object);
        let mut branches = branches.filter(|branch| types_of(branch) != ["null"]);
        return branches.find_map(|schema| make(&Wanted { schema, ..*wanted }, depth + 1));
    }
    let types = types_of(schema);
    let kind = types.iter().find(|t| **t != "null").copied();
    let implied = || match (schema.get("properties"), schema.get("items")) {
        (Some(_), _) => "object",
        (None, Some(_)) => "array",
        (None, None) => "string",
    };
    match kind.unwrap_or_else(implied) {
        "boolean" => Some(Value::Bool(!wanted.is_other)),
        "integer" => number(wanted, true),
        "number" => number(wanted, false),
        "array" => array(wanted, depth),
        "object" => members(wanted, depth),
        _ => text(wanted),
    }
}

fn array(wanted: &Wanted<'_>, depth: usize) -> Option<Value> {
    let nothing = Map::new();
    let items = wanted.schema.get("items").and_then(Value::as_object);
    let least = wanted.schema.get("minItems").and_then(Value::as_u64);
    let inner = |n: u64| Wanted {
        schema: items.unwrap_or(&nothing),
        example: wanted.example.and_then(|e| e.get(0)),
        format: None,
        is_other: wanted.is_other || n % 2 == 1,
        ..*wanted
    };
    let values = (0..least.unwrap_or(1).clamp(1, 20)).map(|n| make(&inner(n), depth + 1));
    values.collect::<Option<Vec<_>>>().map(Value::Array)
}

/// An object with what is required; where the schema requires nothing, with all that is neither an object nor an array.
fn members(wanted: &Wanted<'_>, depth: usize) -> Option<Value> {
    let mut out = Map::new();
    let required = wanted.schema.get("required").and_then(Value::as_array);
    let properties = wanted.schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let Some(property) = property.as_object() else {
            continue;
        };
        let is_required = required.is_some_and(|r| r.iter().any(|known| known == name));
        let is_sent = match required {
            Some(_) => is_required,
            None => is_single(property),
        };
        if !is_sent {
            continue;
        }
        let inner = Wanted {
            name,
            schema: property,
            example: wanted.example.and_then(|e| e.get(name)),
            format: None,
            ..*wanted
        };
        match make(&inner, depth + 1) {
            Some(value) => {
                out.insert(name.clone(), value);
            }
            None if is_required => return None,
            None => {}
        }
    }
    Some(Value::Object(out))
}

fn number(wanted: &Wanted<'_>, is_integer: bool) -> Option<Value> {
    let schema = wanted.schema;
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").unwrap_or(if is_integer { 1.0 } else { 0.5 });
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|n| n + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| n - step));
    let is_within = |n: f64| least.is_none_or(|l| n >= l) && most.is_none_or(|m| n <= m);
    let example = wanted
        .example
        .and_then(Value::as_f64)
        .filter(|n| is_within(*n));
    let example = example.filter(|n| !is_integer || n.fract() == 0.0);
    let start = bound("multipleOf").unwrap_or(1.0);
    let first = example
        .or_else(|| Some(start).filter(|n| is_within(*n)))
        .or(least)
        .or(most)?;
    let first = if is_integer { first.ceil() } else { first };
    let mut chosen = first;
    if wanted.is_other {
        let others = [first + step, first - step];
        chosen = others.into_iter().find(|n| is_within(*n)).unwrap_or(first);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounds of documents are small"
    )]
    let whole = chosen as i64;
    Some(if chosen.fract() == 0.0 {
        json!(whole)
    } else {
        json!(chosen)
    })
}

fn text(wanted: &Wanted<'_>) -> Option<Value> {
    let schema = wanted.schema;
    let length = |key: &str| {
        let length = schema.get(key).and_then(Value::as_u64);
        length.and_then(|n| usize::try_from(n).ok())
    };
    let most = length("maxLength").unwrap_or(usize::MAX);
    let least = length("minLength").unwrap_or(0);
    let fits = |text: &str| (least..=most).contains(&text.chars().count());
    let word = unique_word(wanted);
    let unique = format!("${{unique.{word}}}");
    let has_room = word.len() + UNIQUE_ROOM <= most;
    let example = wanted.example.and_then(Value::as_str);
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let pattern = regex::Regex::new(pattern).ok()?;
        let sample = format!("their-more-{word}-12-0a1b2c3d4e7");
        if has_room && pattern.is_match(&sample) && sample.len() >= least {
            return Some(unique.into());
        }
        let is_match = |text: &str| pattern.is_match(text) && fits(text);
        if let Some(example) = example.filter(|e| is_match(e)) {
            return Some(example.into());
        }
        let made = matching(pattern.as_str(), usize::from(wanted.is_other))?;
        return is_match(&made).then(|| made.into());
    }
    let format = schema.get("format").and_then(Value::as_str);
    let format = format.or(wanted.format);
    if let Some(fixed) = format.and_then(|format| fixed_of_format(format, wanted.is_other)) {
        return Some(fixed.into());
    }
    let example = example.filter(|_| !wanted.is_other);
    let name = plain(wanted.name);
    if let Some(hinted) = hinted_by_name(&name, wanted.is_other) {
        return Some(example.unwrap_or(hinted).into());
    }
    let is_mail =
        format == Some("email") || name.ends_with("email") || name.ends_with("mailaddress");
    if is_mail && word.len() + UNIQUE_ROOM + 12 <= most {
        return Some(format!("{unique}@example.com").into());
    }
    let is_url = matches!(format, Some("uri" | "url" | "uri-reference"))
        || name.ends_with("url")
        || name.ends_with("uri");
    if is_url {
        return Some(format!("https://example.com/{unique}").into());
    }
    // A code such as `EUR` or `A1`, which a free text would not be.
    let is_code =
        |text: &&str| text.len() <= 8 && !text.chars().any(char::is_lowercase) && text.is_ascii();
    if let Some(code) = example.filter(is_code) {
        return Some(code.into());
    }
    if has_room {
        let missing = least.saturating_sub(word.len() + 11);
        return Some(format!("{unique}{}", "x".repeat(missing.min(2_000))).into());
    }
    if let Some(example) = example.filter(|e| fits(e)) {
        return Some(example.into());
    }
    let letters = either(wanted.is_other, "abcdefghij", "zyxwvutsrq");
    let letters = letters.chars().cycle().take(most.min(10).max(least));
    Some(letters.collect::<String>().into())
}

/// The name in `${unique.NAME}`.
fn unique_word(wanted: &Wanted<'_>) -> String {
    let mut word = conformant_rulebook::kebab(wanted.name);
    if word.is_empty() {
        word.push_str("value");
    }
    if !wanted.prefix.is_empty() {
        word = format!("{}-{word}", wanted.prefix);
    }
    if wanted.is_other {
        word = format!("new-{word}");
    }
    word
}

fn either(is_other: bool, first: &'static str, other: &'static str) -> &'static str {
    if is_other { other } else { first }
}

fn fixed_of_format(format: &str, is_other: bool) -> Option<&'static str> {
    Some(match format {
        "date-time" => either(is_other, "2030-01-31T10:20:30Z", "2031-02-03T04:05:06Z"),
        "date" => either(is_other, "2030-01-31", "2031-02-03"),
        "time" => "10:20:30Z",
        "duration" => "P1D",
        "uuid" => "00000000-0000-4000-8000-000000000001",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "hostname" => "example.com",
        "byte" => "Y29uZm9ybWFudA==",
        _ => return None,
    })
}

fn hinted_by_name(name: &str, is_other: bool) -> Option<&'static str> {
    Some(match name {
        "currency" | "currencycode" => either(is_other, "EUR", "USD"),
        "country" | "countrycode" => either(is_other, "AT", "DE"),
        "language" | "locale" | "lang" | "languagecode" => either(is_other, "en", "de"),
        "phone" | "phonenumber" | "mobile" | "telephone" => {
            either(is_other, "+12025550123", "+12025550124")
        }
        "timezone" => "Europe/Vienna",
        _ => return None,
    })
}

/// A short text that matches an expression; `turn` chooses among alternatives.
fn matching(pattern: &str, turn: usize) -> Option<String> {
    fn put(hir: &Hir, turn: usize, out: &mut String) -> Option<()> {
        if out.len() > 2_000 {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(Class::Unicode(class)) => {
                let ranges = class.ranges();
                let all = ranges.iter().flat_map(|range| range.start()..=range.end());
                let printable = all.filter(char::is_ascii_graphic);
                let mut some = printable.take(64);
                let first = some.next()?;
                out.push(some.nth(turn).unwrap_or(first));
            }
            HirKind::Class(Class::Bytes(class)) => {
                out.push(char::from(class.ranges().first()?.start()));
            }
            HirKind::Repetition(repetition) => {
                let count = repetition
                    .min
                    .max(u32::from(repetition.max.is_none_or(|max| max > 0)));
                for _ in 0..count {
                    put(&repetition.sub, turn, out)?;
                }
            }
            HirKind::Capture(capture) => put(&capture.sub, turn, out)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    put(part, turn, out)?;
                }
            }
            HirKind::Alternation(branches) => put(branches.first()?, turn, out)?,
        }
        Some(())
    }
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut out = String::new();
    put(&hir, turn, &mut out)?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::object;

    fn of(name: &str, schema: Value, is_other: bool) -> Option<Value> {
        let schema = object(schema);
        value(&Wanted {
            name,
            prefix: "order",
            schema: &schema,
            example: None,
            format: None,
            is_other,
        })
    }

    #[test]
    fn values_fit_their_schemas_and_the_other_one_differs() {
        for schema in [
            json!({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}),
            json!({"type": "integer", "minimum": 5, "maximum": 6}),
            json!({"type": "number", "exclusiveMinimum": 0}),
            json!({"type": "string", "maxLength": 4}),
            json!({"enum": ["a", "b"]}),
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}),
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "boolean"}}}),
        ] {
            let one = of("note", schema.clone(), false).unwrap();
            let other = of("note", schema.clone(), true).unwrap();
            assert_ne!(one, other, "{schema}");
            for value in [one, other] {
                if let Some(pattern) = schema["pattern"].as_str() {
                    assert!(
                        regex::Regex::new(pattern)
                            .unwrap()
                            .is_match(value.as_str().unwrap())
                    );
                }
            }
        }
        assert_eq!(
            of("note", json!({"type": "string"}), false),
            Some(json!("${unique.order-note}"))
        );
    }
}
