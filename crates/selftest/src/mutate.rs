//! Generated faults: requests and responses of the reference are rewritten, so that it appears to be broken.

use conformant_base::http::{Request, Response};
use conformant_base::parallel::lock;
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
use std::sync::Mutex;

/// One generated fault.
#[derive(Clone, Debug)]
pub(super) enum Rewrite {
    /// Each representation of a type is mutated at a pointer.
    Representation {
        kind: String,
        pointer: String,
        mutation: Change,
    },
    /// An operation behaves in another way, or one of its parameters does.
    Behavior {
        how: How,
        /// As `SERVICE/ID`.
        operation: String,
        /// Empty if it is about the whole operation.
        parameter: String,
    },
}

/// The wrong behavior of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Its responses become errors.
    Broken,
    /// The parameter does not reach the reference.
    Ignored,
    /// The parameter is added if it is missing.
    MadeUp,
    /// A value beyond its bound is accepted.
    Unbounded,
    /// A valid value of the parameter, at its bound or of its enumeration, is refused.
    Refused,
    /// A path without a resource gets the response of an existing one.
    Anything,
    /// The response contains another resource.
    OtherThing,
    /// Credentials are not checked.
    Unguarded,
    /// `meta.key` has a wrong value.
    OtherKey,
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
        let of = |how: How, operation: &str, parameter: &str| Self::Behavior {
            how,
            operation: format!("{}/{operation}", rule.service),
            parameter: parameter.to_owned(),
        };
        if !matches!(rule.level, Level::Must | Level::Should) {
            return Vec::new();
        }
        match &rule.origin {
            Origin::Operation { operation } => vec![of(How::Broken, operation, "")],
            Origin::Credentials { operation } => vec![of(How::Unguarded, operation, "")],
            Origin::ListKey { operation } => vec![of(How::OtherKey, operation, "")],
            Origin::Parameter {
                operation,
                parameter,
            } => {
                let known = rulebook.operation(&rule.service, operation);
                let found = known.and_then(|o| Some((o, parameter_of(o, parameter)?)));
                let hows = match found {
                    Some((o, p)) if p.names_a_resource(o) => vec![How::Anything],
                    Some((_, p)) => How::of_parameter(p),
                    None => Vec::new(),
                };
                let hows = hows.into_iter();
                hows.map(|how| of(how, operation, parameter)).collect()
            }
            Origin::Property { .. }
            | Origin::NoOtherFields { .. }
            | Origin::ListWalk { .. }
            | Origin::Written(_)
            | Origin::Either => Vec::new(),
        }
    }

    /// Name of the row.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Representation {
                kind,
                pointer,
                mutation,
            } => format!("{kind}{pointer} {}", mutation.word()),
            Self::Behavior {
                how,
                operation,
                parameter,
            } => match parameter.as_str() {
                "" => format!("{operation} {}", how.word()),
                parameter => format!("{operation} {parameter} {}", how.word()),
            },
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
            Self::Behavior {
                how,
                operation,
                parameter,
            } => {
                let case = scenario.strip_prefix(operation.as_str());
                operations.contains(operation) && how.is_shown_by(case, parameter)
            }
        }
    }

    /// The most suitable scenario, if any.
    pub(super) fn best(&self) -> Option<String> {
        match self {
            Self::Representation { .. } => None,
            Self::Behavior { operation, .. } => Some(format!("{operation}/happy")),
        }
    }
}

impl How {
    fn of_parameter(parameter: &Parameter) -> Vec<Self> {
        let mut hows = Vec::new();
        let bounded = ["maxLength", "maximum", "minimum", "enum"]
            .iter()
            .any(|k| parameter.schema.get(k).is_some());
        // Missing parts of a multipart body or a query cannot be added without more knowledge.
        if parameter.required
            && parameter.place == ParameterLocation::Body
            && parameter.schema.get("contentMediaType").is_none()
        {
            hows.push(Self::MadeUp);
        }
        if parameter.place == ParameterLocation::Path
            && parameter.echo.as_ref().is_some_and(|e| !e.at.contains('*'))
        {
            hows.push(Self::OtherThing);
        }
        if let Some(echo) = &parameter.echo {
            let may_differ = !echo.or.is_empty() || echo.compare == Comparison::Limit;
            if !parameter.required && !may_differ && !echo.at.contains('*') {
                hows.push(Self::Ignored);
            }
            if bounded && parameter.schema.get("enum").is_none() {
                hows.push(Self::Unbounded);
            }
        }
        if !parameter.required || bounded {
            hows.push(Self::Refused);
        }
        hows
    }

    /// Its name in rows.
    const fn word(self) -> &'static str {
        match self {
            Self::Broken => "answers-with-an-error",
            Self::Ignored => "ignored",
            Self::MadeUp => "not-required",
            Self::Unbounded => "unbounded",
            Self::Refused => "refused",
            Self::Anything => "names-anything",
            Self::OtherThing => "names-another",
            Self::Unguarded => "unguarded",
            Self::OtherKey => "other-key",
        }
    }

    /// Whether a scenario that calls the operation tests what this fault breaks; `case` is its name, such as `/without-to`,
    /// if it is derived from the operation. These exercise its parameters.
    fn is_shown_by(self, case: Option<&str>, parameter: &str) -> bool {
        let slug = conformant_rulebook::kebab(parameter);
        let is = |name: String| case == Some(&name);
        let begins = |with: String| case.is_some_and(|case| case.starts_with(&with));
        match self {
            Self::Broken | Self::OtherThing | Self::OtherKey => true,
            // Page tokens are sent by every walk over a list.
            Self::Refused if parameter == "PageToken" => true,
            Self::Ignored if matches!(case, Some("/happy" | "/all-optional")) => true,
            Self::Anything => is(format!("/unknown-{slug}")),
            Self::MadeUp => is(format!("/without-{slug}")),
            Self::Unbounded => is(format!("/{slug}-over-max")) || is(format!("/{slug}-under-min")),
            Self::Ignored | Self::Refused => {
                begins(format!("/{slug}="))
                    || begins(format!("/{slug}-at-"))
                    || is(format!("/optional-{slug}"))
            }
            Self::Unguarded => begins("/credentials".to_owned()),
        }
    }
}

fn parameter_of<'o>(operation: &'o Operation, name: &str) -> Option<&'o Parameter> {
    operation.parameters.iter().find(|p| p.name == name)
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

    /// The operation of a request with its parameters.
    fn recognize(
        &self,
        service: &str,
        request: &Request,
    ) -> Option<(&'a Operation, BTreeMap<String, Value>)> {
        let path = request.path().strip_prefix(&format!("/{service}"))?;
        let operations = self.rulebook.services.get(service)?.operations.values();
        let configured = &self.targets.get(service)?.values;
        recognize(operations, request, path, configured)
    }

    /// The wrong behavior for a request of this operation, with the name of its parameter.
    fn behavior(&self, operation: &Operation) -> Option<(How, &'a str)> {
        match self.rewrite {
            Rewrite::Behavior {
                how,
                operation: broken,
                parameter,
            } => {
                let is_broken = *broken == format!("{}/{}", operation.service, operation.id);
                is_broken.then_some((*how, parameter.as_str()))
            }
            Rewrite::Representation { .. } => None,
        }
    }
}

impl Mutate for Mutator<'_> {
    fn request(&self, service: &str, request: &mut Request) {
        let Some((operation, sent)) = self.recognize(service, request) else {
            return;
        };
        let Some((how, name)) = self.behavior(operation) else {
            return;
        };
        let known = parameter_of(operation, name);
        match how {
            How::Ignored => edit(operation, request, name, None),
            How::MadeUp if !sent.contains_key(name) => {
                let value = known.map(made_up).unwrap_or_default();
                edit(operation, request, name, Some(&value));
            }
            How::Unbounded => {
                if let (Some(known), Some(value)) = (known, sent.get(name)) {
                    let value = within_bounds(known, value);
                    edit(operation, request, name, Some(&value));
                }
            }
            How::Unguarded => {
                let value = encode::basic(account::API_KEY, account::API_SECRET)
                    .expect("the reference's user name has no colon");
                request.headers.set("Authorization", value);
                request
                    .headers
                    .set(application::API_KEY_HEADER, application::API_KEY);
            }
            How::MadeUp
            | How::Broken
            | How::Refused
            | How::Anything
            | How::OtherThing
            | How::OtherKey => {}
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
        let Some((how, name)) = self.behavior(operation) else {
            return;
        };
        let echo = parameter_of(operation, name).and_then(|p| p.echo.as_ref());
        match how {
            How::Broken => *response = Response::new(500, "text/plain", "broken"),
            How::Refused if sent.contains_key(name) => {
                *response = Response::new(400, "text/plain", "refused");
            }
            How::Unbounded => {
                if let (Some(echo), Some(value)) = (echo, sent.get(name)) {
                    replace(response, &echo.at, |slot| typed_as(slot, value));
                }
            }
            How::OtherThing => {
                if let Some(echo) = echo {
                    replace(response, &echo.at, another);
                }
            }
            How::Anything => {
                let mut accepted = lock(&self.accepted);
                if response.is_success() {
                    *accepted = Some(response.clone());
                } else if let Some(earlier) = &*accepted {
                    *response = earlier.clone();
                }
            }
            How::OtherKey => replace(response, "/meta/key", |_| Value::from("something_else")),
            How::Refused | How::Ignored | How::MadeUp | How::Unguarded => {}
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

/// Replaces the value at a pointer, if there is one.
fn replace(response: &mut Response, at: &str, change: impl FnOnce(&Value) -> Value) {
    rewrite_json(response, |document| {
        if let Some(slot) = document.pointer_mut(at) {
            *slot = change(slot);
        }
    });
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
