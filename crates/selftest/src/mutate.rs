//! Generated faults: requests and responses of the reference are rewritten, so that it appears to be broken.

use conformant_base::http::{Request, Response};
use conformant_engine::Target;
use conformant_engine::request::recognize;
use conformant_engine::sessions::Mutate;
use conformant_judge::{Change, resolve_pointer};
use conformant_net::transport::encode;
use conformant_record::Level;
use conformant_reference::account;
use conformant_reference::auth::application;
use conformant_rulebook::rules::Comparison;
use conformant_rulebook::{Operation, Origin, Parameter, ParameterLocation, Rule, Rulebook};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// One generated fault.
#[derive(Clone, Debug)]
pub(super) enum Rewrite {
    /// Each representation of a type is mutated at a pointer.
    Representation {
        kind: String,
        pointer: String,
        mutation: Change,
    },
    /// The responses of an operation become errors.
    Broken { operation: String },
    /// A parameter does not reach the reference.
    Ignored {
        operation: String,
        parameter: String,
    },
    /// A missing parameter is added.
    MadeUp {
        operation: String,
        parameter: String,
    },
    /// A value beyond its bound is accepted.
    Unbounded {
        operation: String,
        parameter: String,
    },
    /// A valid value of the parameter, at its bound or of its enumeration, is refused.
    Refused {
        operation: String,
        parameter: String,
    },
    /// A path without a resource gets the response of an existing one.
    Anything {
        operation: String,
        parameter: String,
    },
    /// The response contains another resource.
    OtherThing {
        operation: String,
        parameter: String,
    },
    /// Credentials are not checked.
    Unguarded { operation: String },
    /// `meta.key` has a wrong value.
    OtherKey { operation: String },
}

impl Rewrite {
    /// A mutation of a representation.
    pub(super) fn of_kind(kind: &str, pointer: &str, mutation: Change) -> Self {
        Self::Representation {
            kind: kind.to_owned(),
            pointer: pointer.to_owned(),
            mutation,
        }
    }

    /// Faults of an operation, a parameter, credentials or a list.
    pub(super) fn of_rule(rulebook: &Rulebook, rule: &Rule) -> Vec<Self> {
        let full = |operation: &str| format!("{}/{operation}", rule.service);
        if !matches!(rule.level, Level::Must | Level::Should) {
            return Vec::new();
        }
        match &rule.origin {
            Origin::Operation { operation } => vec![Self::Broken {
                operation: full(operation),
            }],
            Origin::Credentials { operation } => vec![Self::Unguarded {
                operation: full(operation),
            }],
            Origin::ListKey { operation } => vec![Self::OtherKey {
                operation: full(operation),
            }],
            Origin::Parameter {
                operation,
                parameter,
            } => {
                let known = rulebook
                    .operation(&rule.service, operation)
                    .and_then(|o| o.parameters.iter().find(|p| p.name == *parameter));
                let operation = rulebook.operation(&rule.service, operation);
                match (operation, known) {
                    (Some(o), Some(p)) if p.names_a_resource(o) => {
                        vec![Self::Anything {
                            operation: full(&o.id),
                            parameter: p.name.clone(),
                        }]
                    }
                    (Some(o), Some(p)) => Self::of_parameter(&full(&o.id), p),
                    (Some(_) | None, Some(_) | None) => Vec::new(),
                }
            }
            Origin::Property { .. }
            | Origin::NoOtherFields { .. }
            | Origin::ListWalk { .. }
            | Origin::Written(_)
            | Origin::Either => Vec::new(),
        }
    }

    fn of_parameter(operation: &str, parameter: &Parameter) -> Vec<Self> {
        let operation = operation.to_owned();
        let name = parameter.name.clone();
        let mut rewrites = Vec::new();
        let bounded = ["maxLength", "maximum", "minimum", "enum"]
            .iter()
            .any(|k| parameter.schema.get(k).is_some());
        // Missing parts of a multipart body or a query cannot be added without more knowledge.
        if parameter.required
            && parameter.place == ParameterLocation::Body
            && parameter.schema.get("contentMediaType").is_none()
        {
            rewrites.push(Self::MadeUp {
                operation: operation.clone(),
                parameter: name.clone(),
            });
        }
        if parameter.place == ParameterLocation::Path
            && parameter.echo.as_ref().is_some_and(|e| !e.at.contains('*'))
        {
            rewrites.push(Self::OtherThing {
                operation: operation.clone(),
                parameter: name.clone(),
            });
        }
        if let Some(echo) = &parameter.echo {
            let may_differ = !echo.or.is_empty() || echo.compare == Comparison::Limit;
            if !parameter.required && !may_differ && !echo.at.contains('*') {
                rewrites.push(Self::Ignored {
                    operation: operation.clone(),
                    parameter: name.clone(),
                });
            }
            if bounded && parameter.schema.get("enum").is_none() {
                rewrites.push(Self::Unbounded {
                    operation: operation.clone(),
                    parameter: name.clone(),
                });
            }
        }
        if !parameter.required || bounded {
            rewrites.push(Self::Refused {
                operation,
                parameter: name,
            });
        }
        rewrites
    }

    /// Name of the row.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Representation {
                kind,
                pointer,
                mutation,
            } => format!("{kind}{pointer} {}", mutation.word()),
            Self::Broken { operation } => format!("{operation} answers-with-an-error"),
            Self::Ignored {
                operation,
                parameter,
            } => format!("{operation} {parameter} ignored"),
            Self::MadeUp {
                operation,
                parameter,
            } => format!("{operation} {parameter} not-required"),
            Self::Unbounded {
                operation,
                parameter,
            } => format!("{operation} {parameter} unbounded"),
            Self::Refused {
                operation,
                parameter,
            } => format!("{operation} {parameter} refused"),
            Self::Anything {
                operation,
                parameter,
            } => format!("{operation} {parameter} names-anything"),
            Self::OtherThing {
                operation,
                parameter,
            } => format!("{operation} {parameter} names-another"),
            Self::Unguarded { operation } => format!("{operation} unguarded"),
            Self::OtherKey { operation } => format!("{operation} other-key"),
        }
    }

    /// Whether a scenario with these operations and types can show the fault.
    pub(super) fn touches(
        &self,
        operations: &BTreeSet<String>,
        kinds: &BTreeSet<String>,
        scenario: &str,
    ) -> bool {
        match self {
            Self::Representation { kind, .. } => kinds.contains(kind) || operations.contains(kind),
            // Page tokens are sent by every walk over a list.
            Self::Refused {
                operation,
                parameter,
            } if parameter == "PageToken" => operations.contains(operation),
            // The derived scenarios of the operation exercise its parameters.
            Self::Ignored { operation, .. }
            | Self::MadeUp { operation, .. }
            | Self::Unbounded { operation, .. }
            | Self::Refused { operation, .. }
            | Self::Anything { operation, .. }
            | Self::Unguarded { operation } => {
                operations.contains(operation)
                    && scenario
                        .strip_prefix(operation.as_str())
                        .is_some_and(|rest| self.is_case(rest))
            }
            Self::OtherThing { operation, .. }
            | Self::Broken { operation }
            | Self::OtherKey { operation } => operations.contains(operation),
        }
    }

    /// The most suitable scenario, if any.
    pub(super) fn best(&self) -> Option<String> {
        self.operation()
            .map(|operation| format!("{operation}/happy"))
    }

    /// Whether a derived case, such as `/without-to`, tests what this fault breaks.
    fn is_case(&self, case: &str) -> bool {
        let slug = |parameter: &str| conformant_rulebook::kebab(parameter);
        match self {
            Self::Anything { parameter, .. } => case == format!("/unknown-{}", slug(parameter)),
            Self::MadeUp { parameter, .. } => case == format!("/without-{}", slug(parameter)),
            Self::Unbounded { parameter, .. } => {
                let slug = slug(parameter);
                case == format!("/{slug}-over-max") || case == format!("/{slug}-under-min")
            }
            Self::Ignored { .. } if case == "/happy" || case == "/all-optional" => true,
            Self::Ignored { parameter, .. } | Self::Refused { parameter, .. } => {
                let slug = slug(parameter);
                case.starts_with(&format!("/{slug}="))
                    || case.starts_with(&format!("/{slug}-at-"))
                    || case == format!("/optional-{slug}")
            }
            Self::Unguarded { .. } => case.starts_with("/credentials"),
            Self::Representation { .. }
            | Self::Broken { .. }
            | Self::OtherThing { .. }
            | Self::OtherKey { .. } => true,
        }
    }

    fn operation(&self) -> Option<&str> {
        match self {
            Self::Representation { .. } => None,
            Self::Broken { operation }
            | Self::Ignored { operation, .. }
            | Self::MadeUp { operation, .. }
            | Self::Unbounded { operation, .. }
            | Self::Refused { operation, .. }
            | Self::Anything { operation, .. }
            | Self::OtherThing { operation, .. }
            | Self::Unguarded { operation }
            | Self::OtherKey { operation } => Some(operation),
        }
    }
}

/// Applies a generated fault to requests and responses.
#[derive(Debug)]
pub(super) struct Mutator<'a> {
    rulebook: &'a Rulebook,
    rewrite: &'a Rewrite,
    targets: &'a BTreeMap<String, Target>,
    /// The last accepted response of the broken operation.
    accepted: Mutex<Option<Response>>,
}

impl<'a> Mutator<'a> {
    /// The mutator of one fault.
    pub(super) fn new(
        rulebook: &'a Rulebook,
        rewrite: &'a Rewrite,
        targets: &'a BTreeMap<String, Target>,
    ) -> Self {
        Self {
            rulebook,
            rewrite,
            targets,
            accepted: Mutex::new(None),
        }
    }

    /// The broken operation with the parameters of a request, if it is that operation.
    fn recognize(
        &self,
        service: &str,
        request: &Request,
    ) -> Option<(&'a Operation, BTreeMap<String, Value>)> {
        let path = request.path().strip_prefix(&format!("/{service}"))?;
        let operations = self.rulebook.services.get(service)?.operations.values();
        recognize(
            operations,
            request,
            path,
            &self.targets.get(service)?.values,
        )
    }

    fn is_broken(&self, operation: &Operation) -> bool {
        self.rewrite.operation() == Some(&format!("{}/{}", operation.service, operation.id))
    }
}

impl Mutate for Mutator<'_> {
    fn request(&self, service: &str, request: &mut Request) {
        let Some((operation, sent)) = self.recognize(service, request) else {
            return;
        };
        if !self.is_broken(operation) {
            return;
        }
        match self.rewrite {
            Rewrite::Ignored { parameter, .. } => edit(operation, request, parameter, None),
            Rewrite::MadeUp { parameter, .. } if !sent.contains_key(parameter) => {
                let known = operation.parameters.iter().find(|p| p.name == *parameter);
                let value = known.map(made_up).unwrap_or_default();
                edit(operation, request, parameter, Some(&value));
            }
            Rewrite::Unbounded { parameter, .. } => {
                let known = operation.parameters.iter().find(|p| p.name == *parameter);
                if let (Some(known), Some(value)) = (known, sent.get(parameter)) {
                    edit(
                        operation,
                        request,
                        parameter,
                        Some(&within_bounds(known, value)),
                    );
                }
            }
            Rewrite::Unguarded { .. } => {
                let value = encode::basic(account::API_KEY, account::API_SECRET)
                    .expect("the reference's user name has no colon");
                request.headers.set("Authorization", value);
                request
                    .headers
                    .set(application::API_KEY_HEADER, application::API_KEY);
            }
            Rewrite::MadeUp { .. }
            | Rewrite::Representation { .. }
            | Rewrite::Broken { .. }
            | Rewrite::Refused { .. }
            | Rewrite::Anything { .. }
            | Rewrite::OtherThing { .. }
            | Rewrite::OtherKey { .. } => {}
        }
    }

    fn response(&self, service: &str, request: &Request, response: &mut Response) {
        let Some((operation, sent)) = self.recognize(service, request) else {
            return;
        };
        if let Rewrite::Representation {
            kind,
            pointer,
            mutation,
        } = self.rewrite
        {
            if let Some(place) = self.place(operation, response, kind, pointer) {
                rewrite_json(response, |document| {
                    mutation.everywhere(document, &place);
                });
            }
            return;
        }
        if !self.is_broken(operation) {
            return;
        }
        match self.rewrite {
            Rewrite::Broken { .. } => *response = Response::new(500, "text/plain", "broken"),
            Rewrite::Refused { parameter, .. } if sent.contains_key(parameter) => {
                *response = Response::new(400, "text/plain", "refused");
            }
            Rewrite::Unbounded { parameter, .. } => {
                let known = operation.parameters.iter().find(|p| p.name == *parameter);
                let echo = known.and_then(|p| p.echo.as_ref());
                if let (Some(echo), Some(value)) = (echo, sent.get(parameter)) {
                    rewrite_json(response, |document| {
                        if let Some(slot) = document.pointer_mut(&echo.at) {
                            *slot = typed_as(slot, value);
                        }
                    });
                }
            }
            Rewrite::OtherThing { parameter, .. } => {
                let known = operation.parameters.iter().find(|p| p.name == *parameter);
                if let Some(echo) = known.and_then(|p| p.echo.as_ref()) {
                    rewrite_json(response, |document| {
                        if let Some(slot) = document.pointer_mut(&echo.at) {
                            *slot = another(slot);
                        }
                    });
                }
            }
            Rewrite::Anything { .. } => {
                let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
                if response.is_success() {
                    *accepted = Some(response.clone());
                } else if let Some(earlier) = &*accepted {
                    *response = earlier.clone();
                }
            }
            Rewrite::OtherKey { .. } => rewrite_json(response, |document| {
                if let Some(slot) = document.pointer_mut("/meta/key") {
                    *slot = Value::from("something_else");
                }
            }),
            Rewrite::Refused { .. }
            | Rewrite::Representation { .. }
            | Rewrite::Ignored { .. }
            | Rewrite::MadeUp { .. }
            | Rewrite::Unguarded { .. } => {}
        }
    }

    fn payload(&self, kind: &str, document: &mut Value) {
        if let Rewrite::Representation {
            kind: broken,
            pointer,
            mutation,
        } = self.rewrite
            && broken == kind
        {
            mutation.everywhere(document, pointer);
        }
    }
}

impl Mutator<'_> {
    /// The place of the type's pointer in this operation's response.
    fn place(
        &self,
        operation: &Operation,
        response: &Response,
        kind: &str,
        pointer: &str,
    ) -> Option<String> {
        let own = format!("{}/{}", operation.service, operation.id);
        if kind == own {
            return response.is_success().then(|| pointer.to_owned());
        }
        let shown = if response.is_success() {
            operation.response.as_deref()
        } else {
            operation.error.as_deref()
        }?;
        resolve_pointer(self.rulebook, Some(&own), shown, kind, pointer)
    }
}

fn rewrite_json(response: &mut Response, change: impl FnOnce(&mut Value)) {
    let (mark, text) = marked(&response.body);
    if let Ok(mut document) = serde_json::from_slice::<Value>(text) {
        change(&mut document);
        response.body = [mark, document.to_string().as_bytes()].concat();
    }
}

/// A body with a byte order mark, which one of the faults adds.
fn marked(body: &[u8]) -> (&[u8], &[u8]) {
    let mark = "\u{feff}".as_bytes();
    match body.strip_prefix(mark) {
        Some(text) => (mark, text),
        None => (&[], body),
    }
}

/// A plausible value for a missing parameter.
fn made_up(parameter: &Parameter) -> String {
    let first = parameter
        .schema
        .get("enum")
        .and_then(|e| e.get(0))
        .and_then(Value::as_str);
    match first {
        Some(word) => word.to_owned(),
        None if parameter.name.contains("email") => "made.up@example.com".to_owned(),
        None if parameter.name.contains("country") => "1".to_owned(),
        None if parameter.name.contains("phone") => "202-555-0177".to_owned(),
        None if parameter.name == "To" || parameter.name == "From" => "+12025550177".to_owned(),
        None => "made-up".to_owned(),
    }
}

/// The value, shortened to its bound, so that the reference accepts it.
fn within_bounds(parameter: &Parameter, value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let bound = |key: &str| parameter.schema.get(key).and_then(Value::as_i64);
    if let Some(max) = bound("maxLength").and_then(|max| usize::try_from(max).ok()) {
        return text.chars().take(max).collect();
    }
    let number: i64 = text.parse().unwrap_or_default();
    let number = bound("maximum").map_or(number, |max| number.min(max));
    bound("minimum")
        .map_or(number, |min| number.max(min))
        .to_string()
}

/// Removes a parameter from a request, or sets it.
fn edit(operation: &Operation, request: &mut Request, name: &str, value: Option<&str>) {
    let Some(parameter) = operation.parameters.iter().find(|p| p.name == name) else {
        return;
    };
    match parameter.place {
        ParameterLocation::Path => {}
        ParameterLocation::Header => match value {
            Some(value) => request.headers.set(name, value),
            None => request.headers.remove(name),
        },
        ParameterLocation::Query => {
            let query = edited(request.query(), name, value);
            let path = request.path().to_owned();
            request.target = if query.is_empty() {
                path
            } else {
                format!("{path}?{query}")
            };
        }
        ParameterLocation::Body => {
            if request.headers.media_type().as_deref() == Some("application/x-www-form-urlencoded")
            {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                request.body = edited(&body, name, value).into_bytes();
            }
        }
    }
}

fn edited(form: &str, name: &str, value: Option<&str>) -> String {
    let bracketed = format!("{name}[");
    let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(form.as_bytes())
        .into_owned()
        .filter(|(n, _)| n != name && !n.starts_with(&bracketed))
        .collect();
    pairs.extend(value.map(|v| (name.to_owned(), v.to_owned())));
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// Another value of the same form, with a different last character.
fn another(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            let last = text.pop();
            text.push(if last == Some('0') { '1' } else { '0' });
            Value::from(text)
        }
        Value::Number(number) => Value::from(number.as_i64().unwrap_or_default() + 1),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.clone(),
    }
}

/// The sent value, as the type of the present one.
fn typed_as(slot: &Value, sent: &Value) -> Value {
    let text = sent
        .as_str()
        .map_or_else(|| sent.to_string(), str::to_owned);
    if slot.is_number() {
        text.parse::<i64>()
            .map_or_else(|_| Value::from(text.clone()), Value::from)
    } else {
        Value::from(text)
    }
}
