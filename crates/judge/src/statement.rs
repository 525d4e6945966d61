//! Statements of steps about their results, for rules that only a scenario can exercise.

use super::compare::{as_text, instant};
use super::verdicts::Fact;
use crate::parameter::one_of;
use conformant_base::json;
use conformant_rulebook::expect::{Among, Comparison, Expect};
use serde_json::Value;
use std::borrow::Cow;

/// Items of a list in a finding.
const ITEMS_MAX: usize = 8;

/// Whether a result satisfies a statement.
pub fn holds(expect: &Expect, result: &Value) -> bool {
    let is_absent = expect.or_absent && json::expand(result, &expect.at).is_empty();
    is_absent || differs(expect, result).is_none()
}

/// The violation of a statement; `None` if the result satisfies it.
pub(super) fn differs(expect: &Expect, result: &Value) -> Option<Fact> {
    let counted = considered(expect, result);
    let result = counted.as_ref().unwrap_or(result);
    let many = expect.at.contains('*');
    let selected: Vec<&Value> = json::expand(result, &expect.at)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    let one = selected.first().copied();
    let every = |expected: String, holds: &dyn Fn(&Value) -> bool| {
        let wrong = if many {
            selected.iter().copied().find(|v| !holds(v))
        } else {
            one.filter(|v| !holds(v))
        };
        match (wrong, selected.is_empty() && !many) {
            (Some(value), _) => Some((expected, json::short(value))),
            (None, true) => Some((expected, "nothing there".to_owned())),
            (None, false) => None,
        }
    };
    let list: Vec<&Value> = match one {
        Some(Value::Array(items)) if !many => items.iter().collect(),
        Some(_) | None => selected.clone(),
    };
    let among = |value: &Value| list.iter().any(|item| is_same(item, value));
    let mut unwanted = None;
    let wrong = match &expect.is {
        Comparison::Equals(value) => every(json::short(value), &|v| json::equal(v, value)),
        Comparison::Differs(value) => every(format!("not {}", json::short(value)), &|v| {
            !json::equal(v, value)
        }),
        Comparison::OneOf(values) => {
            let words: Vec<String> = values.iter().map(json::short).collect();
            every(one_of(&words), &|v| {
                values.iter().any(|value| json::equal(v, value))
            })
        }
        Comparison::Absent(absent) => match (absent, one) {
            (true, Some(value)) => Some(("nothing there".into(), json::short(value))),
            (false, None) => Some(("a value".into(), "nothing there".into())),
            (true, None) | (false, Some(_)) => None,
        },
        Comparison::Includes(value) => (!among(value)).then(|| {
            (
                format!("{} among them", json::short(value)),
                list_excerpt(&list),
            )
        }),
        Comparison::Excludes(value) => among(value).then(|| {
            unwanted = Some(json::short(value));
            (
                format!("{} not among them", json::short(value)),
                list_excerpt(&list),
            )
        }),
        Comparison::AtLeast(least) => {
            let least = size(Some(least), &[], false);
            let size = size(one, &without_null(&list), many);
            (size < least).then(|| (format!("at least {}", size_text(least)), size_text(size)))
        }
        Comparison::AtMost(most) => {
            let size = size(one, &list, many);
            let is_beyond = size.is_none_or(|size| size > *most);
            is_beyond.then(|| (format!("at most {most}"), size_text(size)))
        }
        Comparison::SameJson(value) => {
            every(format!("JSON text of {}", json::short(value)), &|v| {
                let parsed = v.as_str().and_then(json::parse_text);
                parsed.is_some_and(|parsed| json::equal(&parsed, value))
            })
        }
        // The loader compiled both for validation; here they are compiled again, which is rare.
        Comparison::Matches(pattern) => {
            let regex = regex::Regex::new(pattern).ok();
            every(format!("a text {}", matching(pattern)), &|v| {
                regex.as_ref().is_some_and(|r| r.is_match(&as_text(v)))
            })
        }
        Comparison::Unlike(pattern) => {
            let regex = regex::Regex::new(pattern).ok();
            every(format!("no text {}", matching(pattern)), &|v| {
                regex.as_ref().is_some_and(|r| !r.is_match(&as_text(v)))
            })
        }
        Comparison::NotBefore(bound) => {
            let bound_at = instant(bound);
            every(format!("not before {}", as_text(bound)), &|v| {
                instant(v) >= bound_at && bound_at.is_some()
            })
        }
    };
    let place = place(&expect.at);
    wrong.map(|(expected, actual)| Fact {
        kind: "story",
        message: match unwanted {
            Some(item) => format!("{place} contains {item}, which must not be there"),
            None => format!("{place}: expected {expected}, got {actual}"),
        },
        expected,
        actual,
    })
}

/// The place of a violation with its fact: that of the first member that differs, where the texts of both documents are cut
/// before it.
pub(super) fn located<'e>(expect: &'e Expect, result: &Value, fact: Fact) -> (Cow<'e, str>, Fact) {
    if expect.at.contains('*') {
        return ("".into(), fact);
    }
    let mut at = expect.at.clone();
    let mut differing = None;
    if let (Comparison::Equals(due), Some(seen)) = (&expect.is, result.pointer(&expect.at))
        && fact.expected == fact.actual
    {
        differing = first_difference(&mut at, due, seen);
    }
    let Some((due, seen)) = differing else {
        return (expect.at.as_str().into(), fact);
    };
    let text =
        |value: Option<&Value>| value.map_or_else(|| "nothing there".to_owned(), json::short);
    let (expected, actual) = (text(due), text(seen));
    let message = format!("{}: expected {expected}, got {actual}", place(&at));
    let fact = Fact {
        expected,
        actual,
        message,
        ..fact
    };
    (at.into(), fact)
}

/// The first place below `at` with different values, and these values.
fn first_difference<'v>(
    at: &mut String,
    due: &'v Value,
    seen: &'v Value,
) -> Option<(Option<&'v Value>, Option<&'v Value>)> {
    let names: Vec<String> = match (due, seen) {
        (Value::Object(due), Value::Object(seen)) => {
            let others = seen.keys().filter(|name| !due.contains_key(*name));
            due.keys().chain(others).cloned().collect()
        }
        (Value::Array(due), Value::Array(seen)) => {
            let length = due.len().max(seen.len());
            (0..length).map(|index| index.to_string()).collect()
        }
        _ => return (!json::equal(due, seen)).then_some((Some(due), Some(seen))),
    };
    let above = at.len();
    for name in names {
        at.truncate(above);
        json::push(at, &name);
        // The pointer of one member.
        let one = &at[above..];
        match (due.pointer(one), seen.pointer(one)) {
            (Some(due), Some(seen)) => {
                if let Some(found) = first_difference(at, due, seen) {
                    return Some(found);
                }
            }
            one_lacks_it => return Some(one_lacks_it),
        }
    }
    at.truncate(above);
    None
}

/// Whether an item is the value. A number equals its text: identifiers are compared as text, and their type has a rule.
fn is_same(item: &Value, value: &Value) -> bool {
    let is_mixed = matches!(
        (item, value),
        (Value::Number(_), Value::String(_)) | (Value::String(_), Value::Number(_))
    );
    json::equal(item, value) || is_mixed && as_text(item) == as_text(value)
}

/// The result with only the items that a statement is about; `None` if it is about all.
pub(super) fn considered(expect: &Expect, result: &Value) -> Option<Value> {
    let among = expect.among.as_ref()?;
    Some(of_those(result, &expect.at, among))
}

/// The result with only the items that match, in the list that a pointer names or goes through.
fn of_those(result: &Value, at: &str, among: &Among) -> Value {
    let mut result = result.clone();
    let list = at.split("/*").next().unwrap_or(at);
    if let Some(Value::Array(items)) = result.pointer_mut(list) {
        items.retain(|item| {
            let there = item.pointer(&among.at);
            there.is_some_and(|v| among.one_of.iter().any(|one| json::equal(v, one)))
        });
    }
    result
}

/// A pattern in words; one that stands for itself is shown as that text.
fn matching(pattern: &str) -> String {
    let text = pattern.replace('\\', "");
    match regex::escape(&text) == pattern {
        true => format!("with {}", json::short(&Value::String(text))),
        false => format!("matching {pattern}"),
    }
}

fn place(at: &str) -> &str {
    if at.is_empty() { "the answer" } else { at }
}

/// The items of a list, as far as they fit into a line.
fn list_excerpt(list: &[&Value]) -> String {
    if list.is_empty() {
        return "nothing".to_owned();
    }
    let shown = list.iter().take(ITEMS_MAX).map(|item| json::short(item));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match list.len().saturating_sub(ITEMS_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The value of a number, else the length of an array or text, else the number of selected values.
fn size(one: Option<&Value>, list: &[&Value], many: bool) -> Option<u64> {
    let length = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    if many {
        return Some(length(list.len()));
    }
    match one? {
        Value::Number(number) => number.as_u64(),
        Value::Array(items) => Some(length(items.len())),
        Value::String(text) => Some(length(text.chars().count())),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

/// The values of several places, of which those with null are not counted.
fn without_null<'v>(list: &[&'v Value]) -> Vec<&'v Value> {
    list.iter().copied().filter(|v| !v.is_null()).collect()
}

fn size_text(size: Option<u64>) -> String {
    size.map_or_else(|| "nothing that has a size".to_owned(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(expect: &Value, right: &Value, wrong: &Value) {
        let mut full = expect.clone();
        full["rule"] = json!("x/y");
        let expect: Expect = serde_json::from_value(full).expect("a statement");
        assert_eq!(
            differs(&expect, right).map(|f| f.message),
            None,
            "{expect:?}"
        );
        assert!(differs(&expect, wrong).is_some(), "{expect:?}");
    }

    #[test]
    fn a_pattern_that_stands_for_itself_is_shown_as_text() {
        assert_eq!(matching(r"session\-fb\.1"), r#"with "session-fb.1""#);
        assert_eq!(matching("session-[0-9]+"), "matching session-[0-9]+");
    }

    #[test]
    fn a_difference_behind_the_cut_of_long_documents_is_named() {
        let long = "x".repeat(400);
        let document = |n: u32| json!({"flow": {"text": long, "list": [1, {"n": n}]}, "sid": "a"});
        let expect = json!({"rule": "x/y", "at": "/flow", "equals": document(1)["flow"]});
        let expect: Expect = serde_json::from_value(expect).unwrap();
        let fact = differs(&expect, &document(2)).unwrap();
        assert_eq!(fact.expected, fact.actual);
        let (at, fact) = located(&expect, &document(2), fact);
        assert_eq!(at, "/flow/list/1/n");
        assert_eq!((fact.expected.as_str(), fact.actual.as_str()), ("1", "2"));
        let mut shorter = document(1);
        shorter["flow"]["list"] = json!([1]);
        let fact = differs(&expect, &shorter).unwrap();
        let (at, fact) = located(&expect, &shorter, fact);
        assert_eq!(
            (&*at, fact.actual.as_str()),
            ("/flow/list/1", "nothing there")
        );
    }

    #[test]
    fn an_item_that_must_not_be_there_is_named() {
        let expect = json!({"rule": "x/y", "at": "/l", "excludes": {}});
        let expect: Expect = serde_json::from_value(expect).expect("a statement");
        let fact = differs(&expect, &json!({"l": [{"a": 1}, {}]})).expect("a violation");
        assert_eq!(fact.message, "/l contains {}, which must not be there");
        assert_eq!(fact.expected, "{} not among them");
    }

    #[test]
    fn only_matching_items_are_compared() {
        let items = |status: &str| json!({"items": [{"id": 1, "status": "joined"}, {"id": 2, "status": status}]});
        let (right, wrong) = (items("not_participating"), items("invited"));
        let among = json!({"at": "/status", "one-of": ["joined", "invited"]});
        check(
            &json!({"at": "/items", "at-most": 1, "among": among}),
            &right,
            &wrong,
        );
        check(
            &json!({"at": "/items/*/id", "excludes": 2, "among": among}),
            &right,
            &wrong,
        );
    }

    #[test]
    fn each_comparison_accepts_and_rejects() {
        let cases = r#"
            [{"at": "/a", "equals": 1}, {"a": 1}, {"a": "1"}]
            [{"at": "/a", "equals": 1}, {"a": 1}, {}]
            [{"at": "/a", "differs": 1}, {"a": 2}, {"a": 1}]
            [{"at": "/a", "one-of": [1, 2]}, {"a": 2}, {"a": 3}]
            [{"at": "/a", "absent": true}, {}, {"a": null}]
            [{"at": "/a", "absent": false}, {"a": null}, {}]
            [{"at": "/*/s", "includes": "x"}, [{"s": "x"}], [{"s": "y"}]]
            [{"at": "/l", "excludes": "x"}, {"l": ["y"]}, {"l": ["x"]}]
            [{"at": "/*/s", "equals": "x"}, [{"s": "x"}], [{"s": "x"}, {"s": "y"}]]
            [{"at": "/l", "at-least": 2}, {"l": [1, 2]}, {"l": [1]}]
            [{"at": "/l", "at-most": 2}, {"l": 2}, {"l": 3}]
            [{"at": "/l", "at-most": 2}, {"l": 2}, {}]
            [{"at": "/j", "same-json": {"a": [1]}}, {"j": "{\"a\": [1]}"}, {"j": "{}"}]
            [{"at": "/t", "matches": "^a+$"}, {"t": "aa"}, {"t": "ab"}]
            [{"at": "/t", "unlike": "^a+$"}, {"t": "ab"}, {"t": "aa"}]
            [{"at": "/t", "not-before": "2026-01-01T00:00:00Z"}, {"t": "2026-01-01T00:00:00Z"}, {"t": "2025-12-31T23:59:59Z"}]
        "#;
        for case in serde_json::Deserializer::from_str(cases).into_iter::<[Value; 3]>() {
            let [expect, right, wrong] = case.expect("a statement and two results");
            check(&expect, &right, &wrong);
        }
    }
}
