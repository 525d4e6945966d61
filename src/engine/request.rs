//! From an operation and its parameters to a request, in the encodings that the documents name.

use super::settings::Target;
use crate::http::{Request, percent_encode};
use crate::judge::evidence::Exchange;
use crate::rulebook::scenario::Credentials;
use crate::rulebook::{Operation, Place};
use base64::Engine as _;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A request with what it says in the documents' terms.
#[derive(Debug)]
pub struct Built {
    /// What is sent.
    pub request: Request,
    /// Documented parameters as sent; those left out are missing.
    pub sent: BTreeMap<String, Value>,
}

/// Why no request could be built: our own scenario or configuration is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A path parameter has no value.
    #[error("path parameter `{0}` has no value")]
    PathParameter(String),
    /// The path is not shown by any document and not configured.
    #[error("`{0}` is not configured, and no document shows this path")]
    Unconfigured(String),
    /// A parameter that the operation does not have.
    #[error("the operation has no parameter `{0}`")]
    UnknownParameter(String),
    /// A value that cannot be encoded where it should go.
    #[error("parameter `{name}` cannot be sent: {why}")]
    Unsendable {
        /// The parameter.
        name: String,
        /// Why not.
        why: String,
    },
    /// Credentials that the configuration does not have.
    #[error("the configuration has no {0}")]
    NoCredentials(&'static str),
}

/// Builds the request of an operation.
pub fn build(
    operation: &Operation,
    target: &Target,
    with: &Map<String, Value>,
    credentials: Credentials,
) -> Result<Built, BuildError> {
    let mut sent = BTreeMap::new();
    for (name, value) in with {
        let known = operation.parameters.iter().any(|p| p.name == *name);
        if !known {
            return Err(BuildError::UnknownParameter(name.clone()));
        }
        if !value.is_null() {
            sent.insert(name.clone(), value.clone());
        }
    }
    let mut path = path_of(operation, target)?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    let mut has_query = false;
    let mut request = Request::new(&operation.method, "");
    let mut body = Vec::new();
    for parameter in &operation.parameters {
        let name = parameter.name.as_str();
        let value = sent.get(name);
        match parameter.place {
            Place::Path => {
                let value = value.ok_or_else(|| BuildError::PathParameter(name.to_owned()))?;
                path = path.replace(&format!("{{{name}}}"), &percent_encode(&text_of(value)));
            }
            Place::Query => {
                for text in value.into_iter().flat_map(texts_of) {
                    query.append_pair(name, &text);
                    has_query = true;
                }
            }
            Place::Header => {
                for text in value.into_iter().flat_map(texts_of) {
                    if text.chars().any(char::is_control) {
                        let why = "control characters cannot stand in a header".to_owned();
                        return Err(BuildError::Unsendable { name: name.to_owned(), why });
                    }
                    request.headers.add(name, text);
                }
            }
            Place::Body => body.extend(value.map(|v| (name, v))),
        }
    }
    request.target = path;
    if has_query {
        request.target.push('?');
        request.target.push_str(&query.finish());
    }
    encode_body(operation, target, &body, &mut request)?;
    authorize(target, credentials, &mut request)?;
    Ok(Built { request, sent })
}

/// Adds the configured header fields and the credentials to a request.
pub fn authorize(
    target: &Target,
    credentials: Credentials,
    request: &mut Request,
) -> Result<(), BuildError> {
    if credentials != Credentials::None {
        for (name, value) in &target.headers {
            request.headers.set(name, value.clone());
        }
    }
    let pair = match credentials {
        Credentials::None => return Ok(()),
        Credentials::Default => target.basic.clone(),
        Credentials::Wrong => {
            for (name, _) in &target.headers {
                request.headers.set(name, "not-the-right-key");
            }
            target.basic.as_ref().map(|(user, _)| (user.clone(), "not-the-right-secret".to_owned()))
        }
        Credentials::Account => {
            Some(target.account.clone().ok_or(BuildError::NoCredentials("account SID and auth token"))?)
        }
    };
    if let Some((user, password)) = pair {
        let token = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        request.headers.set("Authorization", format!("Basic {token}"));
    }
    Ok(())
}

/// How a person passes the credentials of this exchange to curl.
pub fn curl_credentials(target: &Target, credentials: Credentials) -> String {
    match credentials {
        Credentials::Default => target.curl_credentials.clone(),
        Credentials::None | Credentials::Wrong | Credentials::Account => String::new(),
    }
}

fn path_of(operation: &Operation, target: &Target) -> Result<String, BuildError> {
    match &operation.path_from {
        None => Ok(operation.path.clone()),
        Some(key) => {
            let path = target.values.get(key).and_then(Value::as_str);
            path.map(str::to_owned).ok_or_else(|| BuildError::Unconfigured(key.clone()))
        }
    }
}

fn encode_body(
    operation: &Operation,
    target: &Target,
    body: &[(&str, &Value)],
    request: &mut Request,
) -> Result<(), BuildError> {
    let offers = |media_type: &str| operation.bodies.iter().any(|b| b == media_type);
    if operation.bodies.is_empty() {
        return Ok(());
    }
    if offers("multipart/form-data") {
        return multipart(body, request);
    }
    let as_json = offers("application/json")
        && (target.json_bodies || !offers("application/x-www-form-urlencoded"));
    if as_json {
        request.headers.set("Content-Type", "application/json");
        request.body = nested(body).to_string().into_bytes();
    } else {
        let mut form = form_urlencoded::Serializer::new(String::new());
        for (name, value) in body {
            append_form(&mut form, name, value);
        }
        request.headers.set("Content-Type", "application/x-www-form-urlencoded");
        request.body = form.finish().into_bytes();
    }
    Ok(())
}

/// Lists repeat the name (D2, Conventions); hashes and lists of hashes use brackets.
fn append_form(
    form: &mut form_urlencoded::Serializer<'_, String>,
    name: &str,
    value: &Value,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if item.is_object() {
                    append_form(form, &format!("{name}[{index}]"), item);
                } else {
                    append_form(form, name, item);
                }
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                append_form(form, &format!("{name}[{key}]"), member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            form.append_pair(name, &text_of(value));
        }
    }
}

/// `user[email]` becomes `{"user": {"email": …}}`.
fn nested(body: &[(&str, &Value)]) -> Value {
    let mut root = json!({});
    for (name, value) in body {
        match name.strip_suffix(']').and_then(|n| n.split_once('[')) {
            Some((outer, inner)) => root[outer][inner] = (*value).clone(),
            None => root[*name] = (*value).clone(),
        }
    }
    root
}

fn multipart(body: &[(&str, &Value)], request: &mut Request) -> Result<(), BuildError> {
    let mut parts = Vec::new();
    for (name, value) in body {
        let unsendable =
            |why: &str| BuildError::Unsendable { name: (*name).to_owned(), why: why.to_owned() };
        let file = value.as_object().ok_or_else(|| unsendable("it is not a `$file`"))?;
        let field = |key: &str| file.get(key).and_then(Value::as_str);
        let file_name = field("$file").ok_or_else(|| unsendable("a file has no name"))?;
        let content_type = field("type").unwrap_or("application/octet-stream");
        if [file_name, content_type].iter().any(|t| t.contains(['"', '\r', '\n', '\0'])) {
            return Err(unsendable("its name or type cannot stand in a header"));
        }
        parts.push((name, file_name, content_type, field("text").unwrap_or_default().as_bytes()));
    }
    let boundary = boundary(parts.iter().map(|(.., bytes)| *bytes));
    let mut bytes = Vec::new();
    for (name, file_name, content_type, content) in parts {
        bytes.extend_from_slice(
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\n\
                 Content-Type: {content_type}\r\n\r\n"
            )
            .as_bytes(),
        );
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    request.headers.set("Content-Type", format!("multipart/form-data; boundary={boundary}"));
    request.body = bytes;
    Ok(())
}

/// A boundary that follows from the content and does not occur in it.
fn boundary<'a>(contents: impl Iterator<Item = &'a [u8]> + Clone) -> String {
    let mut digest = Sha256::new();
    for content in contents.clone() {
        digest.update(content);
    }
    let mut digest = digest.finalize();
    loop {
        let word: String = digest.iter().take(12).map(|b| format!("{b:02x}")).collect();
        let boundary = format!("part-{word}");
        let occurs = |content: &[u8]| content.windows(boundary.len()).any(|w| w == boundary.as_bytes());
        if !contents.clone().any(occurs) {
            return boundary;
        }
        digest = Sha256::digest(digest);
    }
}

fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(text_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![text_of(value)]
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Finds the operation that a foreign exchange belongs to; the parameters are read back from it.
/// `path` is the target's path behind the service's base; `configured` has the paths that no
/// document shows.
pub fn recognise<'a>(
    operations: impl Iterator<Item = &'a Operation>,
    request: &Request,
    path: &str,
    configured: &Map<String, Value>,
) -> Option<(&'a Operation, BTreeMap<String, Value>)> {
    let segments: Vec<String> =
        path.split('/').filter(|s| !s.is_empty()).map(crate::http::percent_decode).collect();
    let mut best: Option<(usize, &Operation, BTreeMap<String, Value>)> = None;
    for operation in operations.filter(|o| o.method == request.method) {
        let shown = match &operation.path_from {
            Some(key) => configured.get(key).and_then(Value::as_str).unwrap_or_default(),
            None => &operation.path,
        };
        let template: Vec<&str> = shown.split('/').filter(|s| !s.is_empty()).collect();
        if template.len() != segments.len() {
            continue;
        }
        let mut sent = BTreeMap::new();
        let mut literal = 0;
        let fits = template.iter().zip(&segments).all(|(pattern, segment)| {
            match pattern.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
                Some(name) => {
                    sent.insert(name.to_owned(), json!(segment));
                    true
                }
                None => {
                    literal += 1;
                    *pattern == segment
                }
            }
        });
        if fits && best.as_ref().is_none_or(|(most, ..)| literal > *most) {
            best = Some((literal, operation, sent));
        }
    }
    let (_, operation, mut sent) = best?;
    read_parameters(operation, request, &mut sent);
    Some((operation, sent))
}

fn read_parameters(operation: &Operation, request: &Request, sent: &mut BTreeMap<String, Value>) {
    let form: Vec<(String, String)> =
        if request.headers.media_type().as_deref() == Some("application/x-www-form-urlencoded") {
            form_urlencoded::parse(&request.body).into_owned().collect()
        } else {
            Vec::new()
        };
    let query = request.query_pairs();
    let document: Option<Value> = serde_json::from_slice(&request.body).ok();
    for parameter in &operation.parameters {
        let name = parameter.name.as_str();
        let value = match parameter.place {
            Place::Path => continue,
            Place::Header => request.headers.get(name).map(Value::from),
            Place::Query => repeated(&query, name),
            Place::Body => repeated(&form, name).or_else(|| bracketed(&form, name)).or_else(|| {
                let document = document.as_ref()?;
                match name.strip_suffix(']').and_then(|n| n.split_once('[')) {
                    Some((outer, inner)) => document.get(outer)?.get(inner).cloned(),
                    None => document.get(name).cloned(),
                }
            }),
        };
        if let Some(value) = value.filter(|v| !v.is_null()) {
            sent.insert(name.to_owned(), value);
        }
    }
}

fn repeated(pairs: &[(String, String)], name: &str) -> Option<Value> {
    let mut values: Vec<Value> =
        pairs.iter().filter(|(n, _)| n == name).map(|(_, v)| Value::from(v.as_str())).collect();
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => Some(Value::Array(values)),
    }
}

/// A hash as a form spells it: `details[key]=value`.
fn bracketed(form: &[(String, String)], name: &str) -> Option<Value> {
    let mut members = Map::new();
    for (field, value) in form {
        let inner = field.strip_prefix(name).and_then(|rest| rest.strip_prefix('['));
        if let Some(key) = inner.and_then(|rest| rest.strip_suffix(']')) {
            members.insert(key.to_owned(), Value::from(value.as_str()));
        }
    }
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The absolute URL of an exchange.
pub fn url_of(exchange: &Exchange) -> String {
    format!("{}{}", exchange.base, exchange.request.target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_repeat_lists_and_bracket_hashes() {
        let mut form = form_urlencoded::Serializer::new(String::new());
        append_form(&mut form, "Permission", &json!(["a", "b"]));
        append_form(&mut form, "details", &json!({"k": 1}));
        append_form(&mut form, "logos", &json!([{"res": "default"}]));
        let pairs: Vec<_> =
            form_urlencoded::parse(form.finish().as_bytes()).into_owned().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(pairs, ["Permission=a", "Permission=b", "details[k]=1", "logos[0][res]=default"]);
    }

    #[test]
    fn brackets_in_names_nest_in_json() {
        let (email, message) = (json!("a@b"), json!("hi"));
        assert_eq!(
            nested(&[("user[email]", &email), ("message", &message)]),
            json!({"user": {"email": "a@b"}, "message": "hi"})
        );
    }

    #[test]
    fn a_boundary_never_occurs_in_the_content() {
        let first = boundary([b"x".as_slice()].into_iter());
        let hostile = format!("a{first}b");
        assert_ne!(boundary([b"x".as_slice(), hostile.as_bytes()].into_iter()), first);
    }
}
