//! Parameter rules from OpenAPI: required, bounded, echoed and default values.

use super::acceptance::Acceptance;
use super::compare::as_text;
use super::context::{Context, Seen};
use super::evidence::Expectation;
use super::predicates::parameter_echo;
use super::sites::Site;
use super::verdicts::{Fact, Recorder, Vacuity};
use conformant_base::json;
use conformant_rulebook::rules::Comparison;
use conformant_rulebook::{Parameter, ParameterLocation};
use serde_json::Value;

/// Evaluates the rules of every parameter of every exchange.
pub(super) fn evaluate(context: &Context<'_>, verdicts: &mut Recorder<'_>) {
    for (index, seen) in context.seen.iter().enumerate() {
        let Some(operation) = seen.operation else {
            continue;
        };
        let sent = &seen.exchange.sent;
        let is_there = context.history.returns_existing(context, index);
        let says =
            |p: &&Parameter| p.applies(sent) && !(is_there && p.place == ParameterLocation::Body);
        for parameter in operation.parameters.iter().filter(says) {
            match sent.get(&parameter.name) {
                None => left_out(index, seen, parameter, verdicts),
                Some(sent) => was_sent(index, seen, parameter, sent, verdicts),
            }
        }
    }
}

fn left_out(index: usize, seen: &Seen<'_>, parameter: &Parameter, verdicts: &mut Recorder<'_>) {
    let expected_already = matches!(&seen.exchange.expectation, Expectation::Rejected(rule) if *rule == parameter.rule);
    if parameter.required && parameter.place != ParameterLocation::Path {
        if seen.acceptance == Acceptance::Accepted && !expected_already {
            let fact = Fact {
                kind: "required-parameter",
                expected: format!("a refusal, because {} is required", parameter.name),
                actual: "an accepted request".into(),
                message: format!("accepted without the required {}", parameter.name),
            };
            verdicts.conclude(&parameter.rule, Site::Exchange(index), Some(fact));
        }
        return;
    }
    let (Some(echo), Some(value)) = (&parameter.echo, &parameter.default) else {
        return;
    };
    let Some(got) = seen.value(&echo.at) else {
        return;
    };
    let instance = verdicts.instance(&parameter.rule, Site::answer(index, &echo.at));
    if echo.or.contains(got) {
        instance.conclude(None);
        return;
    }
    instance.conclude(parameter_echo::differs_from_default(
        &parameter.name,
        value,
        got,
    ));
}

fn was_sent(
    index: usize,
    seen: &Seen<'_>,
    parameter: &Parameter,
    sent: &Value,
    verdicts: &mut Recorder<'_>,
) {
    if !parameter.has_form(sent) {
        // The documents do not require a rejection. Fields that contain the value have a schema.
        return;
    }
    let Some(echo) = &parameter.echo else {
        // The value is not echoed. Whether the request is accepted is judged by its operation.
        if seen.acceptance == Acceptance::Accepted && parameter.place == ParameterLocation::Query {
            verdicts.record_vacuous(&parameter.rule, Vacuity::Absent);
        }
        return;
    };
    let Some(got) = seen.value(&echo.at) else {
        if seen.is_null_above(&echo.at) && !echo.or.contains(&Value::Null) {
            let fact = Fact::new("not-honoured", json::short(sent), "null in its place");
            verdicts.conclude(&parameter.rule, Site::answer(index, &echo.at), Some(fact));
        }
        return;
    };
    let fact = match beyond(sent, &parameter.schema) {
        Some(bound) => (as_text(sent) == as_text(got)).then(|| Fact {
            kind: "bound",
            expected: format!("{bound}: refused or cut"),
            actual: format!("{} applied in full", json::short(sent)),
            message: format!(
                "{} exceeds its bound ({bound}) and was applied in full",
                parameter.name
            ),
        }),
        None if echo.compare == Comparison::Limit => None,
        None => parameter_echo::differs(sent, got, echo.compare, &echo.or),
    };
    verdicts.conclude(&parameter.rule, Site::answer(index, &echo.at), fact);
}

/// The bound of the schema that the sent value exceeds, in words; `None` within bounds.
pub(super) fn beyond(sent: &Value, schema: &Value) -> Option<String> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let text = as_text(sent);
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let is_text = schema.get("type").and_then(Value::as_str) == Some("string");
    let number: Option<i64> = if is_text { None } else { text.parse().ok() };
    let count = sent
        .as_array()
        .map(|items| i64::try_from(items.len()).unwrap_or(i64::MAX));
    if let Some(max) = bound("maxLength").filter(|max| length > *max) {
        return Some(format!("at most {max} characters"));
    }
    if let Some((max, _)) = bound("maximum").zip(number).filter(|(max, n)| n > max) {
        return Some(format!("at most {max}"));
    }
    if let Some((min, _)) = bound("minimum").zip(number).filter(|(min, n)| n < min) {
        return Some(format!("at least {min}"));
    }
    if let Some((max, _)) = bound("maxItems").zip(count).filter(|(max, n)| n > max) {
        return Some(format!("at most {max} values"));
    }
    let words = schema.get("enum").and_then(Value::as_array)?;
    let outside = |value: &Value| !words.iter().any(|w| as_text(w) == as_text(value));
    let any_outside = match sent.as_array() {
        Some(items) => items.iter().any(outside),
        None => outside(sent),
    };
    any_outside.then(|| {
        let words: Vec<String> = words.iter().map(as_text).collect();
        one_of(&words)
    })
}

/// The allowed values in words.
pub(crate) fn one_of(words: &[String]) -> String {
    match words {
        [only] => only.clone(),
        words => format!("one of {}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{Example, ExampleBuilder, in_channel, sid};
    use crate::judge;

    use conformant_schema::Schemas;
    use serde_json::json;

    #[test]
    fn parameters_sent_with_a_used_name_need_not_be_echoed() {
        let rulebook = crate::load::embedded().expect("the embedded rulebook is sound");
        let schemas = Schemas::default();
        let joins = |scene: ExampleBuilder, who: (&str, &str), sent: &str, shown: &str| {
            let (identity, digit) = who;
            let member = json!({
                "sid": sid("MB", digit), "account_sid": sid("AC", "1"),
                "channel_sid": sid("CH", "1"), "service_sid": sid("IS", "1"), "identity": identity,
                "date_created": "2026-01-01T00:00:00Z", "date_updated": "2026-01-01T00:00:00Z",
                "attributes": shown, "url": "/",
            });
            let sent = json!({"Identity": identity, "Attributes": sent});
            scene.answered("create-member", in_channel(sent), member)
        };
        let is_accused = |scene: ExampleBuilder| {
            let judgment = judge(&rulebook, &schemas, &scene.not_judged().evidence);
            let mut findings = judgment.findings.iter();
            findings.any(|finding| finding.rule == "chat/create-member/attributes")
        };
        let (one, other) = ("{\"a\":1}", "{\"a\":2}");
        let first = joins(Example::for_rule("chat", json!({})), ("ann", "1"), one, one);
        assert!(!is_accused(joins(first.clone(), ("ann", "1"), other, one)));
        assert!(is_accused(joins(first, ("ben", "2"), other, one)));
    }

    #[test]
    fn bounds_reject_only_values_beyond_them() {
        for (schema, inside, outside) in [
            (
                json!({"type": "string", "maxLength": 3}),
                json!("abc"),
                json!("abcd"),
            ),
            (
                json!({"type": "integer", "maximum": 3}),
                json!("3"),
                json!(4),
            ),
            (
                json!({"type": "integer", "minimum": 1}),
                json!(1),
                json!("0"),
            ),
            (json!({"enum": ["a", "b"]}), json!("a"), json!("c")),
            (
                json!({"type": "array", "maxItems": 1}),
                json!(["x"]),
                json!(["x", "y"]),
            ),
        ] {
            assert_eq!(beyond(&inside, &schema), None, "{schema}");
            assert!(beyond(&outside, &schema).is_some(), "{schema}");
        }
    }
}
