//! Observations of unspecified behavior, without the values of responses.
//!
//! Nothing is judged here. Comparing runs and `either` is done where runs are merged.

use super::acceptance::Acceptance;
use super::context::{Context, Seen};
use super::evidence::Expectation;
use super::verdicts::Judgment;
use conformant_base::json;
use conformant_record::OpenPointResult;
use conformant_rulebook::open_points::{Aspect, Which};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Shapes deeper than this are cut.
const SHAPE_DEPTH_MAX: usize = 6;
/// Members and items of one value in a shape; documents have far fewer.
const SHAPE_PARTS_MAX: usize = 40;

/// Records the observed aspect of each open point.
pub(super) fn observe(context: &Context<'_>, judgment: &mut Judgment) {
    let mut by_service: BTreeMap<&str, Vec<&Seen<'_>>> = BTreeMap::new();
    for seen in &context.seen {
        let of_service = by_service.entry(&seen.exchange.service).or_default();
        of_service.push(seen);
    }
    for entry in context.rulebook.open_points.values() {
        let Some(of_service) = by_service.get(entry.service.as_str()) else {
            continue;
        };
        let mut found = BTreeSet::new();
        for observation in &entry.point.observe {
            for seen in of_service {
                let named = observation.operation.as_deref();
                if named.is_some_and(|name| name != seen.exchange.operation) {
                    continue;
                }
                let fits = match (observation.of, &seen.acceptance) {
                    (_, Acceptance::Inconclusive(_)) => false,
                    (Which::Any, _)
                    | (Which::Accepted, Acceptance::Accepted)
                    | (Which::Rejected, Acceptance::Rejected(_)) => true,
                    (Which::Accepted | Which::Rejected, _) => false,
                };
                if !fits {
                    continue;
                }
                let is_refusal = observation.of == Which::Rejected
                    && matches!(seen.exchange.expectation, Expectation::Rejected(_));
                let observed = match (&observation.aspect, seen.exchange.status()) {
                    (Aspect::Status, Some(status))
                        if is_refusal && is_odd_refusal(context, seen, status) =>
                    {
                        let operation = &seen.exchange.operation;
                        Some(OpenPointResult::odd_refusal(operation, status))
                    }
                    (aspect, _) => observe_aspect(seen, aspect),
                };
                found.extend(observed);
            }
        }
        if !found.is_empty() {
            let observed = judgment.observed.entry(entry.point.id.clone());
            observed.or_default().extend(found);
        }
    }
}

/// Whether an expected refusal has the status of a success, although its body does not say otherwise, or of a failed server.
fn is_odd_refusal(context: &Context<'_>, seen: &Seen<'_>, status: u16) -> bool {
    match status {
        200..=299 => {
            let service = context.rulebook.index.get(&seen.exchange.service);
            let says_so = service.zip(seen.exchange.document());
            says_so.is_none_or(|(service, document)| service.rejection(document).is_none())
        }
        500..=599 => true,
        _ => false,
    }
}

fn observe_aspect(seen: &Seen<'_>, aspect: &Aspect) -> Option<String> {
    let at = |pointer: &str| json::get(seen.exchange.document()?, pointer);
    let operation = &seen.exchange.operation;
    match aspect {
        Aspect::Status => seen
            .exchange
            .status()
            .map(|s| format!("{operation}: status {s}")),
        Aspect::MediaType => {
            let media_type = seen.exchange.response()?.headers.media_type();
            let media_type = media_type.unwrap_or_else(|| "no media type".to_owned());
            Some(format!("{operation}: {media_type}"))
        }
        Aspect::Oddities => {
            let odd = seen.exchange.response()?.oddities.join("; ");
            (!odd.is_empty()).then(|| format!("{operation}: {odd}"))
        }
        Aspect::Shape(pointer) => Some(match at(pointer) {
            Some(value) => format!("{operation}: {}", shape(value, 0)),
            None => format!("{operation}: nothing"),
        }),
        Aspect::Word(pointer) => at(pointer)
            .and_then(Value::as_str)
            .map(|w| conformant_base::text::excerpt(w, 40).into_owned()),
        Aspect::Presence(pointer) => Some(
            match at(pointer) {
                Some(Value::Null) => "null",
                Some(_) => "present",
                None => "absent",
            }
            .to_owned(),
        ),
    }
}

/// Types by key: `{code: number, message: string}`, arrays by the shapes of their items. Only the first members and shapes in
/// order are included.
fn shape(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(_) | Value::Array(_) if depth >= SHAPE_DEPTH_MAX => "…".to_owned(),
        Value::Object(members) => {
            let parts = first_few(members.iter().map(|(name, value)| {
                let name = conformant_base::text::excerpt(name, 40);
                format!("{name}: {}", shape(value, depth + 1))
            }));
            format!("{{{}}}", parts.join(", "))
        }
        Value::Array(items) => {
            let parts = first_few(items.iter().map(|value| shape(value, depth + 1)));
            format!("[{}]", parts.join(" | "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            json::type_name(value).to_owned()
        }
    }
}

/// The first parts in order without duplicates, and an ellipsis if there are more.
fn first_few(parts: impl Iterator<Item = String>) -> Vec<String> {
    let mut first = BTreeSet::new();
    let mut is_cut = false;
    for part in parts {
        first.insert(part);
        if first.len() > SHAPE_PARTS_MAX {
            first.pop_last();
            is_cut = true;
        }
    }
    let ellipsis = is_cut.then(|| "…".to_owned());
    first.into_iter().chain(ellipsis).collect()
}

#[cfg(test)]
mod tests {
    use super::{SHAPE_PARTS_MAX, shape};
    use serde_json::json;

    #[test]
    fn shapes_contain_neither_values_nor_order() {
        let a = json!({"b": [1, 2, "x"], "a": {"c": null}});
        let b = json!({"a": {"c": null}, "b": ["secret", 9]});
        assert_eq!(shape(&a, 0), "{a: {c: null}, b: [number | string]}");
        assert_eq!(shape(&a, 0), shape(&b, 0));
    }

    #[test]
    fn large_shapes_are_cut() {
        let many = |n: usize| -> serde_json::Value {
            (0..n)
                .map(|n| (format!("{n:0>4}"), json!(1)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        assert!(!shape(&many(SHAPE_PARTS_MAX), 0).contains('…'));
        let cut = shape(&many(50_000), 0);
        assert!(cut.starts_with("{0000: number, ") && cut.ends_with(", 0039: number, …}"));
    }
}
