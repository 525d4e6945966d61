//! Parsed requests: path, query and body by parameter name, without validation.

use crate::evidence::Exchange;
use conformant_base::http::{ReceivedPart, Request, multipart_parts};
use conformant_rulebook::{Operation, ParameterLocation};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";
pub(super) const MULTIPART: &str = "multipart/form-data";
pub(super) const JSON: &str = "application/json";

/// A parsed request.
#[derive(Debug)]
pub(super) struct ParsedRequest<'r> {
    pub(super) request: &'r Request,
    /// Path parameters by name, decoded.
    pub(super) path: &'r BTreeMap<String, Value>,
    /// The decoded pairs of the query, in order.
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Body<'r>,
}

/// A body by its media type, or by its content without one.
#[derive(Debug)]
pub(super) enum Body<'r> {
    None,
    Form(Vec<(String, String)>),
    /// Members of a JSON object, also by their names in forms: `user[email]`.
    Json(Map<String, Value>),
    Parts(Vec<ReceivedPart<'r>>),
    /// Another or no media type than the operation documents, with its description.
    Other(String),
}

impl<'r> ParsedRequest<'r> {
    pub(super) fn parse(operation: &Operation, exchange: &'r Exchange) -> Self {
        let request = &exchange.request;
        Self {
            request,
            path: &exchange.sent,
            query: request.query_pairs(),
            body: Body::parse(operation, request),
        }
    }

    /// Values of a name in the query.
    pub(super) fn in_query(&self, name: &str) -> Vec<Value> {
        texts(&self.query, name)
    }

    /// Names in the query or in the body.
    pub(super) fn names(&self, place: ParameterLocation) -> Vec<&str> {
        match (place, &self.body) {
            (ParameterLocation::Query, _) => {
                self.query.iter().map(|(name, _)| name.as_str()).collect()
            }
            (ParameterLocation::Body, Body::Form(form)) => {
                form.iter().map(|(name, _)| name.as_str()).collect()
            }
            (ParameterLocation::Body, Body::Json(members)) => {
                members.keys().map(String::as_str).collect()
            }
            (ParameterLocation::Body, Body::Parts(parts)) => {
                parts.iter().map(|p| p.name.as_str()).collect()
            }
            (ParameterLocation::Body, Body::None | Body::Other(_))
            | (ParameterLocation::Path | ParameterLocation::Header, _) => Vec::new(),
        }
    }
}

impl<'r> Body<'r> {
    fn parse(operation: &Operation, request: &'r Request) -> Self {
        let bytes = &request.body;
        if bytes.is_empty() {
            return Self::None;
        }
        let offers = |media_type: &str| operation.bodies.iter().any(|b| b == media_type);
        let object = match serde_json::from_slice(bytes) {
            Ok(Value::Object(members)) => Some(members),
            Ok(_) | Err(_) => None,
        };
        let declared = request.headers.media_type();
        let media_type = match declared.as_deref() {
            Some(media_type) => media_type,
            None if object.is_some() => JSON,
            None => FORM,
        };
        if !offers(media_type) {
            return Self::Other(if declared.is_some() {
                media_type.to_owned()
            } else {
                "a body that does not say what it is".to_owned()
            });
        }
        match media_type {
            FORM if object.is_some() => Self::Other(format!("JSON under the name of {FORM}")),
            FORM => Self::Form(url::form_urlencoded::parse(bytes).into_owned().collect()),
            MULTIPART => {
                let field = request.headers.get("Content-Type").unwrap_or_default();
                let parts = multipart_parts(field, bytes);
                if parts.is_empty() {
                    Self::Other("no part between the boundaries that it names".to_owned())
                } else {
                    Self::Parts(parts)
                }
            }
            JSON => match object {
                Some(members) => Self::Json(as_in_forms(members)),
                None => Self::Other("no JSON object".to_owned()),
            },
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Adds `user[email]` for `{"user": {"email": …}}`.
fn as_in_forms(members: Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, member) in members {
        if let Value::Object(inner) = &member {
            for (key, value) in inner {
                flat.insert(format!("{name}[{key}]"), value.clone());
            }
        }
        flat.insert(name, member);
    }
    flat
}

/// Values of a name, in order.
pub(super) fn texts(pairs: &[(String, String)], name: &str) -> Vec<Value> {
    let of_name = pairs.iter().filter(|(n, _)| n == name);
    of_name.map(|(_, v)| Value::from(v.as_str())).collect()
}

/// A hash as a form spells it: `details[key]=value`.
pub fn bracketed(form: &[(String, String)], name: &str) -> Option<Value> {
    let mut members = Map::new();
    for (field, value) in form {
        let inner = field.strip_prefix(name).and_then(|r| r.strip_prefix('['));
        if let Some(key) = inner.and_then(|rest| rest.strip_suffix(']')) {
            members.insert(key.to_owned(), Value::from(value.as_str()));
        }
    }
    (!members.is_empty()).then_some(Value::Object(members))
}
