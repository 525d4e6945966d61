//! Whether a target accepted a request: a 2xx response with the documented representation.
//!
//! - Any non-2xx is a rejection, and so is a 2xx whose body says so (`rejected-when` in `service.yaml`).
//! - Redirects, 429 and transport errors are inconclusive, and so is 404 at a path that only the configuration states.

use super::evidence::{Body, Exchange, Expectation, Outcome};
use conformant_base::http::Response;
use conformant_base::json;
use conformant_base::text;
use conformant_rulebook::{Operation, Rulebook};
use serde_json::Value;

/// Accepted, rejected, or neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// 2xx with the documented representation.
    Accepted,
    /// The documented representation did not come back, and the reason.
    Rejected(String),
    /// Neither, and the reason.
    Inconclusive(String),
}

/// Classifies the outcome of one exchange.
pub fn acceptance(
    rulebook: &Rulebook,
    exchange: &Exchange,
    operation: Option<&Operation>,
) -> Acceptance {
    let path = undocumented_path(exchange, operation);
    if let (Some(status @ (404 | 405)), Some(key)) = (exchange.status(), path) {
        let service = &exchange.service;
        return Acceptance::Inconclusive(format!(
            "status {status} at a path that no document shows: check targets.{service}.{key}"
        ));
    }
    at_known_path(rulebook, exchange, operation)
}

/// The same among other exchanges: a path that one of them shows to be right is known.
pub fn acceptance_among(
    rulebook: &Rulebook,
    exchange: &Exchange,
    operation: Option<&Operation>,
    others: &[Exchange],
) -> Acceptance {
    let is_answer = |other: &Exchange| {
        let is_success = other.status().is_some_and(|s| (200..300).contains(&s));
        is_success && other.service == exchange.service && other.operation == exchange.operation
    };
    if undocumented_path(exchange, operation).is_some() && others.iter().any(is_answer) {
        return at_known_path(rulebook, exchange, operation);
    }
    acceptance(rulebook, exchange, operation)
}

fn at_known_path(
    rulebook: &Rulebook,
    exchange: &Exchange,
    operation: Option<&Operation>,
) -> Acceptance {
    let (response, body) = match &exchange.outcome {
        Outcome::Fault {
            cause,
            detail,
            partial,
        } => {
            let began = partial.as_deref().map(began).unwrap_or_default();
            return Acceptance::Inconclusive(format!("{cause}: {detail}{began}"));
        }
        Outcome::Answered { response, body } => (response, body),
    };
    match response.status {
        200..=299 => {}
        300..=399 => return Acceptance::Inconclusive(format!("redirect {}", response.status)),
        429 => return Acceptance::Inconclusive("rate limited (429)".to_owned()),
        status => return Acceptance::Rejected(format!("status {status}")),
    }
    let Some(kind) = operation.and_then(|o| o.response.as_deref()) else {
        return Acceptance::Accepted;
    };
    let status = response.status;
    let service = rulebook.index.get(&exchange.service);
    if let Body::Document { value, .. } = body
        && let Some(rejection) = service.and_then(|service| service.rejection(value))
    {
        return Acceptance::Rejected(format!("{status} with {rejection}"));
    }
    match another_document(rulebook, kind, body) {
        Some(why) => Acceptance::Rejected(format!("{status} {why}")),
        None => Acceptance::Accepted,
    }
}

/// What a body is if it does not carry a representation of `kind`.
pub fn another_document(rulebook: &Rulebook, kind: &str, body: &Body) -> Option<String> {
    let value = match body {
        Body::Document { value, .. } => value,
        Body::Empty => return Some("without a body".to_owned()),
        Body::Unreadable(why) => return Some(why.clone()),
    };
    let schema = &rulebook.kinds.get(kind)?.schema;
    (!carries(value, schema)).then(|| format!("with another document than {kind}"))
}

/// The configuration key of the path, if the path of a request that must be accepted is not documented.
fn undocumented_path<'a>(exchange: &Exchange, operation: Option<&'a Operation>) -> Option<&'a str> {
    let key = operation?.path_from.as_deref()?;
    matches!(exchange.expectation, Expectation::Accepted(_)).then_some(key)
}

/// The beginning of a response that was cut off.
fn began(partial: &Response) -> String {
    const SHOWN_BYTES: usize = 60;
    let status = match partial.status {
        0 => String::new(),
        status => format!("; status {status}"),
    };
    if partial.body.is_empty() {
        return status;
    }
    let shown = &partial.body[..partial.body.len().min(SHOWN_BYTES)];
    let shown = String::from_utf8_lossy(shown);
    format!("{status}; began with {}", text::escape_line(&shown))
}

/// Whether a rejection has a plain error as its body: not even the documented representation of an error.
pub fn is_plain_error(exchange: &Exchange) -> bool {
    matches!(exchange.status(), Some(401 | 403 | 500..=599))
}

/// A document carries a representation when it is an object with at least half of the required
/// members: fewer is an error body or another document, not a representation with gaps. A list without a page
/// around it is an array.
fn carries(value: &Value, schema: &Value) -> bool {
    if schema.get("type").is_some_and(|t| t == "array") {
        return value.is_array();
    }
    let Some(members) = value.as_object() else {
        return false;
    };
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let names = required.iter().filter_map(Value::as_str);
    let enough = required.len().div_ceil(2);
    let present = names.filter(|name| json::member(members, name).is_some());
    present.take(enough).count() == enough
}
