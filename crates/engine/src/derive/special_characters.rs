//! Unicode and special-character values: each stored text is returned as it was sent.
//!
//! A service may reject any of them. D2 recommends to avoid some punctuation in identities and friendly names, so
//! these are tried without it. Bounds are tested in ASCII elsewhere.

use super::cases::{Cases, captured, either, slug};
use conformant_rulebook::service::GeneratedValue;
use conformant_rulebook::{Parameter, ParameterLocation, Rule};
use serde_json::{Map, Value, json};

/// Non-ASCII letters, right-to-left text and combining marks, without punctuation.
const LETTERS: &str = "Zoë Åsa שלום עולם 漢字 e\u{301}o\u{308}";
/// Characters of four bytes, one of them a joined sequence.
const EMOJI: &str = "ok 🚀 👩\u{200d}👩\u{200d}👧 𝄞";
/// Characters with a meaning in forms, markup, templates and shells.
const MARKS: &str = " a+b & c=d 100% ?x #y ; <b>&amp;</b> \"q\" 'p' \\n $1 {{flow.data.x}} %41 ";
/// Percent escapes without any other percent sign, which a second decoding would refuse.
const ESCAPES: &str = "%41 a%20b+c %2B";
const LINES: &str = "\tone\ntwo\r\n\r\nthree \n";
const DIGITS: &str = "007";
/// Markup characters without the discouraged punctuation.
const BRACKETS: &str = "a < b > \"c\"";
const SPACES: &str = " two  words ";
/// Fields that contain an identity or a friendly name (D2 19).
const NAMES: [&str; 6] = [
    "/friendly_name",
    "/unique_name",
    "/identity",
    "/created_by",
    "/from",
    "/last_updated_by",
];
/// Minimum capacity of a text without a bound.
const LONG: i64 = 1_000;

/// One case for each text that the operation stores.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.method != "POST" {
        return;
    }
    for parameter in &cases.operation.parameters {
        let values = match parameter.place {
            // A text other than a phone number may be rejected or understood as one.
            ParameterLocation::Body if is_phone(cases, parameter) => Vec::new(),
            ParameterLocation::Body => values(parameter, is_shown_later(cases, parameter)),
            ParameterLocation::Path | ParameterLocation::Query | ParameterLocation::Header => {
                Vec::new()
            }
        };
        if !values.is_empty() {
            case(cases, parameter, &values);
        }
    }
}

fn case(cases: &mut Cases<'_>, parameter: &Parameter, values: &[Value]) {
    let mut steps = Vec::new();
    for (n, value) in values.iter().enumerate() {
        let made = format!("made-{n}");
        let mut with = cases.again(n);
        with.insert(parameter.name.clone(), value.clone());
        let step = captured(&made, either());
        let call = cases.call(step, &with);
        let sent = call.with().cloned().unwrap_or_default();
        let again = if cases.creates() {
            let again = cases.reread_found(&made, &sent).into_iter();
            // Listed once, when all exist.
            again
                .take(if n + 1 == values.len() { 2 } else { 1 })
                .collect()
        } else {
            cases.look_here(&sent).into_iter().collect::<Vec<_>>()
        };
        steps.push(call);
        steps.extend(again);
    }
    let what = format!("{} as people write it", parameter.name);
    cases.after_setup(&format!("{}-rich", slug(parameter)), &what, steps);
}

/// Whether values of the parameter are phone numbers.
fn is_phone(cases: &Cases<'_>, parameter: &Parameter) -> bool {
    let service = cases.rulebook.index.get(&cases.operation.service);
    let name = parameter.name.to_lowercase();
    service.is_some_and(|service| service.words.get(&name) == Some(&GeneratedValue::Phone))
}

/// Whether the sent value is returned elsewhere than in the answer.
fn is_shown_later(cases: &Cases<'_>, parameter: &Parameter) -> bool {
    let operation = cases.own_rule();
    let rules = cases.rulebook.rules.values();
    let mut kept = rules
        .filter_map(Rule::check)
        .filter(|check| check.predicate == "write-persists" && check.parameters["of"] == operation);
    kept.any(|check| check.parameters["shown"].get(&parameter.name).is_some())
}

fn values(parameter: &Parameter, is_shown_later: bool) -> Vec<Value> {
    let schema = &parameter.schema;
    let has = |key: &str| schema.get(key).is_some();
    if schema.get("contentMediaType").and_then(Value::as_str) == Some("application/json") {
        return documents(parameter.echo.is_some());
    }
    let is_hash_of_texts = schema.pointer("/additionalProperties/type") == Some(&json!("string"));
    if is_hash_of_texts {
        return vec![hash()];
    }
    let is_text = schema.get("type").and_then(Value::as_str) == Some("string");
    let is_free = !["enum", "format", "pattern", "contentMediaType"]
        .into_iter()
        .any(has);
    if !is_text || !is_free {
        return Vec::new();
    }
    let at = parameter.echo.as_ref().map(|echo| echo.at.as_str());
    let mut values = match at {
        Some(at) if NAMES.contains(&at) => [LETTERS, EMOJI, DIGITS, BRACKETS, SPACES]
            .map(Value::from)
            .to_vec(),
        Some(at) if at.ends_with("/url") => {
            return vec![json!(
                "https://hooks.example.com/a%20b/%C3%A9?x=1+2&y=%2B&z=a%26b"
            )];
        }
        Some("/body") => texts(),
        None if is_shown_later => texts(),
        // A value that is never returned cannot be compared.
        Some(_) | None => return Vec::new(),
    };
    if !schema.get("maxLength").is_some_and(Value::is_number) {
        values.push(json!({"$text": "abcdefghij", "length": LONG}));
    }
    values
}

/// Texts of all kinds.
fn texts() -> Vec<Value> {
    [LETTERS, EMOJI, MARKS, ESCAPES, LINES, DIGITS, "null", "{}"]
        .map(Value::from)
        .to_vec()
}

/// JSON texts of all kinds for application data.
fn documents(is_stored_as_text: bool) -> Vec<Value> {
    let rich = json!({
        "nested": {"deep": [[], [{}], [[1, [2, [3]]]]]},
        "numbers": [0, -1, 1.5, -0.25, 9_007_199_254_740_991_i64, -9_007_199_254_740_991_i64, 1e-7],
        "words": [true, false, null, "", " ", "null", "1", MARKS, LINES],
        LETTERS: EMOJI,
        "empty": {},
        "seven": 7,
        "half": 0.5,
        "yes": true,
        "nothing": null,
        "padded": SPACES,
        "": "no name",
    });
    // A JSON text keeps each digit (D2, Conventions).
    let long = json!({"beyond": [9_007_199_254_740_993_i64, -9_223_372_036_854_775_807_i64, 12_345_678_901_234_567_890_u64]});
    let deep = json!({"a": {"b": {"c": {"d": [1, "two", {"three": 3}]}}}});
    // Names that a service may reserve, and texts that resemble other types. A name with a dot may be read as a path
    // (D3, Variables available in flows).
    let like_others = json!({
        "sid": "s", "status": "ended", "name": "n", "id": 7, "To": "t", "From": "f", "type": "private",
        "_i-j": "k",
        "day": "2026-01-31", "instant": "2026-01-31T10:20:30+02:00", "number": "01234", "yes": "yes",
        "text": "abcdefghij".repeat(40), "escapes": ESCAPES,
    });
    let long = is_stored_as_text.then_some(long);
    [rich, json!({}), deep, like_others]
        .into_iter()
        .chain(long)
        .map(|document| json!(document.to_string()))
        .collect()
}

fn hash() -> Value {
    let members = [
        ("letters", json!(LETTERS)),
        ("emoji", json!(EMOJI)),
        ("marks", json!(MARKS)),
        ("escapes", json!(ESCAPES)),
        ("digits", json!(DIGITS)),
        ("Schlüssel", json!("a key beyond ASCII")),
        ("of twenty characters", json!("a key at its bound")),
    ];
    Value::Object(Map::from_iter(
        members.map(|(name, value)| (name.to_owned(), value)),
    ))
}
