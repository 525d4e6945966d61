//! Rich values: each stored text is as people write it, and comes back as it was sent.
//!
//! A service may refuse any of them; what it accepts it shows unchanged. D2 recommends to avoid a list of
//! punctuation in identities and friendly names, which are therefore tried without it; bounds are
//! probed in ASCII elsewhere.

use super::cases::{Cases, either, slug};
use conformant_rulebook::step::Call;
use conformant_rulebook::{Parameter, ParameterLocation, Rule};
use serde_json::{Map, Value, json};

/// Beyond ASCII, right to left, combining marks; none normalised, none with punctuation.
const LETTERS: &str = "Zoë Åsa שלום עולם 漢字 e\u{301}o\u{308}";
/// Characters of four bytes, one of them joined of several.
const EMOJI: &str = "ok 🚀 👩\u{200d}👩\u{200d}👧 𝄞";
/// What forms, markup, templates and shells take for their own.
const MARKS: &str = " a+b & c=d 100% ?x #y ; <b>&amp;</b> \"q\" 'p' \\n $1 {{flow.data.x}} %41 ";
const LINES: &str = "\tone\ntwo\r\n\r\nthree \n";
const DIGITS: &str = "007";
/// What markup takes for its own, without the punctuation that names should do without.
const BRACKETS: &str = "a < b > \"c\"";
const SPACES: &str = " two  words ";
/// Fields that hold an identity or a friendly name (D2 19).
const NAMES: [&str; 6] = [
    "/friendly_name",
    "/unique_name",
    "/identity",
    "/created_by",
    "/from",
    "/last_updated_by",
];
/// What a text without a bound holds at least.
const LONG: i64 = 1_000;

/// Each text that the operation stores.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.method != "POST" {
        return;
    }
    for parameter in &cases.operation.parameters {
        let values = match parameter.place {
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
        let step = Call {
            capture: Some(made.clone()),
            ..either()
        };
        let call = cases.call(step, &with);
        let sent = call.with().cloned().unwrap_or_default();
        let again = if cases.makes() {
            let again = cases.found_again(&made, &sent).into_iter();
            // Listed once, when all are there.
            again
                .take(if n + 1 == values.len() { 2 } else { 1 })
                .collect()
        } else {
            let reader = cases.reader().into_iter();
            let look = |o| Cases::look(o, Cases::path_of(o, &sent));
            reader.map(look).collect::<Vec<_>>()
        };
        steps.push(call);
        steps.extend(again);
    }
    let what = format!("{} as people write it", parameter.name);
    cases.after_setup(&format!("{}-rich", slug(parameter)), &what, steps);
}

/// Whether what is sent comes back elsewhere than in the answer.
fn is_shown_later(cases: &Cases<'_>, parameter: &Parameter) -> bool {
    let operation = cases.own_rule();
    let laws = cases.rulebook.rules.values();
    let mut kept = laws
        .filter_map(Rule::check)
        .filter(|check| check.predicate == "write-persists" && check.parameters["of"] == operation);
    kept.any(|check| check.parameters["shown"].get(&parameter.name).is_some())
}

fn values(parameter: &Parameter, is_shown_later: bool) -> Vec<Value> {
    let schema = &parameter.schema;
    let has = |key: &str| schema.get(key).is_some();
    if schema.get("contentMediaType").and_then(Value::as_str) == Some("application/json") {
        return documents();
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
        // What comes back nowhere cannot be told to have changed.
        Some(_) | None => return Vec::new(),
    };
    if !schema.get("maxLength").is_some_and(Value::is_number) {
        values.push(json!({"$text": "abcdefghij", "length": LONG}));
    }
    values
}

/// Texts of every kind.
fn texts() -> Vec<Value> {
    [LETTERS, EMOJI, MARKS, LINES, DIGITS, "null", "{}"]
        .map(Value::from)
        .to_vec()
}

/// JSON texts of every kind that a text of the application's own data may be.
fn documents() -> Vec<Value> {
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
    let deep = json!({"a": {"b": {"c": {"d": [1, "two", {"three": 3}]}}}});
    // Names that a service has for its own, and texts that look like something else. One with a dot in it may be read as
    // a path (D3, Variables available in flows).
    let like_others = json!({
        "sid": "s", "status": "ended", "name": "n", "id": 7, "To": "t", "From": "f", "type": "private",
        "_i-j": "k",
        "day": "2026-01-31", "instant": "2026-01-31T10:20:30+02:00", "number": "01234", "yes": "yes",
        "text": "abcdefghij".repeat(40),
    });
    [rich, json!({}), deep, like_others]
        .map(|document| json!(document.to_string()))
        .to_vec()
}

fn hash() -> Value {
    let members = [
        ("letters", json!(LETTERS)),
        ("emoji", json!(EMOJI)),
        ("marks", json!(MARKS)),
        ("digits", json!(DIGITS)),
        ("Schlüssel", json!("a key beyond ASCII")),
        ("of twenty characters", json!("a key at its bound")),
    ];
    Value::Object(Map::from_iter(
        members.map(|(name, value)| (name.to_owned(), value)),
    ))
}
