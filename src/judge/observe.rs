//! Open points: what the answers show of what the documents leave open, without their values.
//!
//! Nothing is judged here; comparing runs and `either` is done where runs are put together.

use super::acceptance::Acceptance;
use super::case::{Case, Judgement, Seen};
use crate::json;
use crate::rulebook::open_points::{Aspect, Which};
use serde_json::Value;

/// Shapes deeper than this are cut.
const SHAPE_DEPTH_MAX: usize = 6;

/// Writes down what each open point asks for.
pub(super) fn observe(case: &Case<'_>, judgement: &mut Judgement) {
    for entry in case.rulebook.open_points.values() {
        for observation in &entry.point.observe {
            for seen in &case.seen {
                let of_service = seen.exchange.service == entry.service;
                let named = observation.operation.as_deref();
                if !of_service || named.is_some_and(|name| name != seen.exchange.operation) {
                    continue;
                }
                let fits = match (observation.of, &seen.acceptance) {
                    (_, Acceptance::Inconclusive(_)) => false,
                    (Which::Any, _)
                    | (Which::Accepted, Acceptance::Accepted)
                    | (Which::Rejected, Acceptance::Rejected(_)) => true,
                    (Which::Accepted | Which::Rejected, _) => false,
                };
                if let Some(text) = fits.then(|| look(seen, &observation.aspect)).flatten() {
                    judgement
                        .observed
                        .entry(entry.point.id.clone())
                        .or_default()
                        .insert(text);
                }
            }
        }
    }
}

fn look(seen: &Seen<'_>, aspect: &Aspect) -> Option<String> {
    let at = |pointer: &str| seen.exchange.document()?.pointer(pointer);
    let operation = &seen.exchange.operation;
    match aspect {
        Aspect::Status => seen
            .exchange
            .status()
            .map(|s| format!("{operation}: status {s}")),
        Aspect::MediaType => match &seen.exchange.outcome {
            super::evidence::Outcome::Answered { response, .. } => Some(format!(
                "{operation}: {}",
                response
                    .headers
                    .media_type()
                    .unwrap_or_else(|| "no media type".to_owned())
            )),
            super::evidence::Outcome::Fault { .. } => None,
        },
        Aspect::Shape(pointer) => Some(match at(pointer) {
            Some(value) => format!("{operation}: {}", shape(value, 0)),
            None => format!("{operation}: nothing"),
        }),
        Aspect::Word(pointer) => at(pointer)
            .and_then(Value::as_str)
            .map(|w| crate::text::excerpt(w, 40).into_owned()),
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

/// Types by key: `{code: number, message: string}`, arrays by the shapes of their items.
fn shape(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(_) | Value::Array(_) if depth >= SHAPE_DEPTH_MAX => "…".to_owned(),
        Value::Object(members) => {
            let mut parts: Vec<String> = members
                .iter()
                .map(|(name, v)| {
                    format!(
                        "{}: {}",
                        crate::text::excerpt(name, 40),
                        shape(v, depth + 1)
                    )
                })
                .collect();
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Array(items) => {
            let mut parts: Vec<String> = items.iter().map(|v| shape(v, depth + 1)).collect();
            parts.sort();
            parts.dedup();
            format!("[{}]", parts.join(" | "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            json::type_name(value).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shape;
    use serde_json::json;

    #[test]
    fn shapes_hold_no_values_and_no_order() {
        let a = json!({"b": [1, 2, "x"], "a": {"c": null}});
        let b = json!({"a": {"c": null}, "b": ["secret", 9]});
        assert_eq!(shape(&a, 0), "{a: {c: null}, b: [number | string]}");
        assert_eq!(shape(&a, 0), shape(&b, 0));
    }
}
