//! First difference between the exchanges of one scenario in two runs.
//!
//! - Identifiers, names and times differ in every run and are not compared.
//! - Of requests that were sent at the same time, only the statuses are compared, in any order.
//! - Attempts of a poll are left out, because their number depends on time.

use crate::evidence_file::Reader;
use conformant_base::json;
use conformant_base::text;
use conformant_judge::evidence::{Evidence, Exchange, Outcome, Poll};
use conformant_record::ExchangeDifference;
use serde_json::{Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The length of an excerpt.
const EXCERPT_BYTES: usize = 120;
/// Larger numbers are times.
const NUMBER_MAX: f64 = 1e9;
/// Texts with more digits are times or phone numbers.
const DIGITS_MAX: usize = 8;
/// Longer words with digits, or of hexadecimal digits, are generated.
const GENERATED_MIN: usize = 8;
/// Longer texts with digits and without blanks are tokens.
const TOKEN_MIN: usize = 20;

/// The evidence of these scenarios in an evidence file.
pub fn evidence_of(file: &[u8], scenarios: &BTreeSet<&str>) -> BTreeMap<String, Evidence> {
    let records = Reader::open(file).into_iter().flatten();
    let wanted = records.filter(|record| scenarios.contains(record.evidence.scenario.as_str()));
    wanted
        .map(|record| (record.evidence.scenario.clone(), record.evidence))
        .collect()
}

/// The first difference, with the value of each run. The caller adds the numbers of the runs.
pub fn first_difference(passed: &Evidence, failed: &Evidence) -> Option<ExchangeDifference> {
    let (a, b) = (compared(passed), compared(failed));
    (0..a.len().max(b.len())).find_map(|at| {
        let (one, other) = (a.get(at).copied(), b.get(at).copied());
        let (place, in_passed, in_failed) = match (one, other) {
            (Some(one), Some(other)) => differing(one, other)?,
            (one, other) => {
                let spelled = |exchange: Option<&Exchange>| {
                    exchange.map_or_else(|| "not sent".to_owned(), outcome)
                };
                ("exchange".to_owned(), spelled(one), spelled(other))
            }
        };
        let shown = other.or(one)?;
        Some(ExchangeDifference {
            scenario: failed.scenario.clone(),
            step: shown.step,
            operation: format!("{}/{}", shown.service, shown.operation),
            place,
            passed: excerpt(&in_passed),
            failed: excerpt(&in_failed),
            ..ExchangeDifference::default()
        })
    })
}

/// The exchanges to compare; those of one race are ordered by operation and outcome.
fn compared(evidence: &Evidence) -> Vec<&Exchange> {
    let exchanges = evidence.exchanges.iter();
    let mut kept: Vec<&Exchange> = exchanges.filter(|e| e.poll != Poll::Attempt).collect();
    let race = |exchange: &Exchange| exchange.race.map(|race| race.number);
    for raced in kept.chunk_by_mut(|a, b| race(a).is_some() && race(a) == race(b)) {
        raced.sort_by_cached_key(|exchange| (exchange.operation.clone(), outcome(exchange)));
    }
    kept
}

/// The place where two exchanges differ, with both values.
fn differing(one: &Exchange, other: &Exchange) -> Option<(String, String, String)> {
    if (&one.service, &one.operation) != (&other.service, &other.operation) {
        let id = |exchange: &Exchange| format!("{}/{}", exchange.service, exchange.operation);
        return Some(("exchange".to_owned(), id(one), id(other)));
    }
    let (status, other_status) = (outcome(one), outcome(other));
    if status != other_status {
        return Some(("status".to_owned(), status, other_status));
    }
    if one.race.is_some() {
        return None;
    }
    let (body, other_body) = (body(one), body(other));
    match (
        serde_json::from_slice(body),
        serde_json::from_slice(other_body),
    ) {
        (Ok(one), Ok(other)) => differing_value(String::new(), &one, &other),
        _ => {
            let (one, other) = (
                String::from_utf8_lossy(body),
                String::from_utf8_lossy(other_body),
            );
            let is_same = are_alike(&one, &other);
            (!is_same).then(|| ("body".to_owned(), one.into_owned(), other.into_owned()))
        }
    }
}

fn differing_value(at: String, one: &Value, other: &Value) -> Option<(String, String, String)> {
    let differ = |at: String, one: &dyn Display, other: &dyn Display| {
        Some((at, one.to_string(), other.to_string()))
    };
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let members: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            members.into_iter().find_map(|name| {
                let at = json::join(&at, name);
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differing_value(at, a, b),
                    (None, Some(value)) => differ(at, &"absent", value),
                    (Some(value), None) => differ(at, value, &"absent"),
                    (None, None) => None,
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                let items = |list: &[Value]| text::count(list.len(), "item");
                return differ(at, &items(a), &items(b));
            }
            a.iter().zip(b).enumerate().find_map(|(n, (a, b))| {
                let at = json::join(&at, &n.to_string());
                differing_value(at, a, b)
            })
        }
        (Value::String(a), Value::String(b)) if are_alike(a, b) => None,
        (Value::Number(a), Value::Number(b)) if is_time(a) && is_time(b) => None,
        (one, other) if one == other => None,
        (one, other) => differ(at, one, other),
    }
}

fn is_time(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number >= NUMBER_MAX)
}

/// Whether two texts are equal, apart from identifiers, names, times and tokens.
fn are_alike(one: &str, other: &str) -> bool {
    let is_token = |text: &str| {
        text.len() > TOKEN_MIN
            && text.contains(|c: char| c.is_ascii_digit())
            && !text.contains("://")
            && !text.contains(char::is_whitespace)
    };
    one == other || masked(one) == masked(other) || (is_token(one) && is_token(other))
}

/// A text without generated words and without the digits of times and phone numbers.
fn masked(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut out = String::new();
    for part in text.split_inclusive(|c| !is_part(c)) {
        let word = part.trim_end_matches(|c| !is_part(c));
        let is_hex = || word.bytes().all(|b| b.is_ascii_hexdigit());
        let has_digit = || word.contains(|c: char| c.is_ascii_digit());
        match word.len() >= GENERATED_MIN && (has_digit() || is_hex()) {
            true => out.push('…'),
            false => out.push_str(word),
        }
        out.push_str(&part[word.len()..]);
    }
    let digits = out.bytes().filter(u8::is_ascii_digit).count();
    match digits < DIGITS_MAX {
        true => out,
        false => out.replace(|c: char| c.is_ascii_digit(), "0"),
    }
}

/// The status, or why there is none.
fn outcome(exchange: &Exchange) -> String {
    match &exchange.outcome {
        Outcome::Answered { response, .. } => response.status.to_string(),
        Outcome::Fault { detail, .. } => detail.clone(),
    }
}

fn body(exchange: &Exchange) -> &[u8] {
    exchange.response().map_or(&[], |response| &response.body)
}

fn excerpt(value: &str) -> String {
    text::excerpt(value, EXCERPT_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_that_differ_in_every_run_are_alike() {
        let passed = json!({"sid": "CH0123456789abcdef0123456789abcdef", "at": "2026-01-02T03:04:05Z", "name": "room-61d65a26c3", "count": 1});
        let failed = json!({"sid": "CHfedcba9876543210fedcba9876543210", "at": "2027-09-08T10:11:12Z", "name": "room-aebfcdabef", "count": 2});
        let difference = differing_value(String::new(), &passed, &failed);
        assert_eq!(difference, Some(("/count".into(), "1".into(), "2".into())));
    }

    #[test]
    fn members_and_items_that_are_missing_differ() {
        let differ = |passed, failed| differing_value(String::new(), &passed, &failed);
        let expected = |at: &str, passed: &str, failed: &str| {
            Some((at.to_owned(), passed.to_owned(), failed.to_owned()))
        };
        assert_eq!(
            differ(json!({"a": [1, 2]}), json!({"a": [1]})),
            expected("/a", "2 items", "1 item")
        );
        assert_eq!(
            differ(json!({"a": {}}), json!({"a": {"b": null}})),
            expected("/a/b", "absent", "null")
        );
        assert_eq!(differ(json!([1, "x"]), json!([1, "x"])), None);
        assert_eq!(
            differ(json!(["yes"]), json!(["no"])),
            expected("/0", "\"yes\"", "\"no\"")
        );
    }
}
