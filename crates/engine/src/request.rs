//! Builds requests from an operation and its parameters, in the documented encodings, and recognizes received ones.

use super::bearer::BearerError;
use super::boundary::{BoundaryChange, but_last, in_other_case};
use super::settings::Target;
use super::stop::Stop;
use conformant_base::http::{ReceivedPart, Request, multipart_parts};
use conformant_base::json;
use conformant_judge::clients::bracketed;
use conformant_judge::{UNKNOWN, WRONG};
use conformant_net::transport::{Multipart, encode};
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::{Operation, Parameter, ParameterLocation};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The error of [`upload`], re-exported for callers without access to `transport`.
pub use conformant_net::transport::EncodeError;

/// A request with its documented parameters.
#[derive(Debug)]
pub struct Built {
    pub request: Request,
    /// Documented parameters as sent, without omitted ones.
    pub sent: BTreeMap<String, Value>,
}

/// Why no request could be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A path parameter has no value: the scenario takes it from an answer that has null there.
    #[error("path parameter `{0}` has no value, because an earlier answer has null there")]
    PathParameter(String),
    /// No document shows the path, and it is not configured.
    #[error("not configured: targets.{service}.{key} (no document shows this path)")]
    Unconfigured {
        service: String,
        /// Its configuration key.
        key: String,
    },
    /// The operation does not have this parameter.
    #[error("the operation has no parameter `{0}`")]
    UnknownParameter(String),
    /// The value cannot be encoded.
    #[error("parameter `{name}` cannot be sent: {why}")]
    Unsendable { name: String, why: String },
    /// Credentials are not configured.
    #[error("not configured: {0} of the target")]
    NoCredentials(&'static str),
    /// The step needs the credentials of a second account, and none are configured.
    #[error("not configured: accounts (credentials of a second account)")]
    NoOtherAccount,
    /// The token command failed.
    #[error(transparent)]
    Bearer(#[from] BearerError),
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Unconfigured { .. }
            | BuildError::NoCredentials(_)
            | BuildError::NoOtherAccount => Self::NotApplicable(error.to_string()),
            BuildError::PathParameter(_) => Self::Inconclusive(error.to_string()),
            BuildError::UnknownParameter(_)
            | BuildError::Unsendable { .. }
            | BuildError::Bearer(_) => Self::Error(error.to_string()),
        }
    }
}

/// Builds the request of an operation.
pub fn build(
    operation: &Operation,
    target: &Target,
    with: Map<String, Value>,
    credentials: Credentials,
) -> Result<Built, BuildError> {
    let mut sent = BTreeMap::new();
    for (name, value) in with {
        let known = operation.parameters.iter().any(|p| p.name == name);
        if !known {
            return Err(BuildError::UnknownParameter(name));
        }
        if !value.is_null() {
            sent.insert(name, value);
        }
    }
    let mut path = path_of(operation, target)?;
    // A configured path may omit a parameter.
    let is_left_out = |p: &Parameter| {
        p.place == ParameterLocation::Path && !path.contains(&format!("{{{}}}", p.name))
    };
    let parameters: Vec<&Parameter> = operation
        .parameters
        .iter()
        .filter(|p| !is_left_out(p))
        .collect();
    sent.retain(|name, _| parameters.iter().any(|p| p.name == *name));
    let mut query = Vec::new();
    let mut request = Request::new(&operation.method, "");
    let mut body = Vec::new();
    for parameter in parameters {
        let name = parameter.name.as_str();
        let value = sent.get(name);
        match parameter.place {
            ParameterLocation::Path => {
                let value = value.ok_or_else(|| BuildError::PathParameter(name.to_owned()))?;
                let segment =
                    encode::path_segment(&text_of(value)).map_err(|e| unsendable(name, &e))?;
                path = path.replace(&format!("{{{name}}}"), &segment);
            }
            ParameterLocation::Query => {
                let texts = value.into_iter().flat_map(texts_of);
                query.extend(texts.map(|text| (name.to_owned(), text)));
            }
            ParameterLocation::Header => {
                for text in value.into_iter().flat_map(texts_of) {
                    encode::header(name, &text).map_err(|e| unsendable(name, &e))?;
                    request.headers.add(name, text);
                }
            }
            ParameterLocation::Body => body.extend(value.map(|v| (name, v))),
        }
    }
    request.target = path;
    if !query.is_empty() {
        request.target.push('?');
        request.target.push_str(&encode::query(borrowed(&query)));
    }
    encode_body(operation, target, &body, &mut request)?;
    authorize(target, credentials, &mut request)?;
    Ok(Built { request, sent })
}

fn unsendable(name: &str, error: &EncodeError) -> BuildError {
    BuildError::Unsendable {
        name: name.to_owned(),
        why: error.to_string(),
    }
}

/// Adds the configured header fields and the credentials to a request.
pub fn authorize(
    target: &Target,
    credentials: Credentials,
    request: &mut Request,
) -> Result<(), BuildError> {
    if credentials == Credentials::OtherAccount {
        let other = target.other_account.as_ref();
        let other = other.ok_or(BuildError::NoOtherAccount)?;
        return authorize(other, Credentials::Default, request);
    }
    if credentials != Credentials::None {
        for (name, value) in &target.headers {
            request.headers.set(name, value.clone());
        }
    }
    let own_header = target.header("Authorization").is_some();
    match credentials {
        // A configured Authorization field takes precedence.
        Credentials::Default if own_header => Ok(()),
        Credentials::None => Ok(()),
        Credentials::Default if target.bearer.is_some() => add_token(target, request),
        Credentials::Default | Credentials::OtherAccount => match &target.basic {
            Some((user, password)) => basic(user, password, request),
            None => Ok(()),
        },
        Credentials::Account => {
            let (sid, token) = account(target)?;
            basic(sid, token, request)
        }
        Credentials::Wrong | Credentials::Unknown => {
            apply_wrong_credentials(target, credentials, request)
        }
        Credentials::UserOtherCase
        | Credentials::PasswordOtherCase
        | Credentials::PasswordShort
        | Credentials::PasswordSpace
        | Credentials::PasswordEmpty
        | Credentials::MixedUser
        | Credentials::MixedPassword
        | Credentials::OtherUser
        | Credentials::OtherPassword
        | Credentials::Bearer => apply_changed_credentials(target, credentials, request),
    }
}

/// Unassigned credentials in the configured form.
fn apply_wrong_credentials(
    target: &Target,
    credentials: Credentials,
    request: &mut Request,
) -> Result<(), BuildError> {
    if !target.has_credentials() {
        return Err(BuildError::NoCredentials("username and password"));
    }
    for (name, _) in &target.headers {
        request.headers.set(name, UNKNOWN);
    }
    if target.bearer.is_some() {
        request
            .headers
            .set("Authorization", format!("Bearer {UNKNOWN}"));
    }
    match &target.basic {
        Some((_, password)) if credentials == Credentials::Unknown => {
            basic(UNKNOWN, password, request)
        }
        Some((user, _)) => basic(user, WRONG, request),
        None => Ok(()),
    }
}

/// The configured credentials with one difference.
fn apply_changed_credentials(
    target: &Target,
    credentials: Credentials,
    request: &mut Request,
) -> Result<(), BuildError> {
    let none = BuildError::NoCredentials("username and password");
    let (user, password) = target.basic.as_ref().ok_or(none)?;
    let (user, password): (&str, &str) = (user, password);
    match credentials {
        Credentials::UserOtherCase => basic(&in_other_case(user), password, request),
        Credentials::PasswordOtherCase => basic(user, &in_other_case(password), request),
        Credentials::PasswordShort => basic(user, but_last(password), request),
        Credentials::PasswordSpace => {
            basic(user, &BoundaryChange::SpaceBehind.apply(password), request)
        }
        Credentials::PasswordEmpty => basic(user, "", request),
        Credentials::MixedUser
        | Credentials::MixedPassword
        | Credentials::OtherUser
        | Credentials::OtherPassword => {
            let is_mixed = matches!(
                credentials,
                Credentials::MixedUser | Credentials::MixedPassword
            );
            let (other_user, other_password) = match is_mixed {
                true => account(target)?,
                false => of_other_account(target)?,
            };
            if other_user == user || other_password == password {
                return Err(BuildError::NoCredentials("second pair of credentials"));
            }
            if matches!(credentials, Credentials::MixedUser | Credentials::OtherUser) {
                basic(other_user, password, request)
            } else {
                basic(user, other_password, request)
            }
        }
        Credentials::Bearer => {
            basic(user, password, request)?;
            let pair = request.headers.get("Authorization").unwrap_or_default();
            let bearer = pair.replacen("Basic", "Bearer", 1);
            request.headers.set("Authorization", bearer);
            Ok(())
        }
        Credentials::Default
        | Credentials::None
        | Credentials::Wrong
        | Credentials::Unknown
        | Credentials::OtherAccount
        | Credentials::Account => basic(user, password, request),
    }
}

fn account(target: &Target) -> Result<(&str, &str), BuildError> {
    let none = BuildError::NoCredentials("account_sid and auth_token");
    let (sid, token) = target.account.as_ref().ok_or(none)?;
    Ok((sid, token))
}

/// The user name and the password of the second account.
fn of_other_account(target: &Target) -> Result<(&str, &str), BuildError> {
    let other = target.other_account.as_ref();
    let other = other.ok_or(BuildError::NoOtherAccount)?;
    let none = BuildError::NoCredentials("username and password");
    let (user, password) = other.basic.as_ref().ok_or(none)?;
    Ok((user, password))
}

/// Adds the token that a command prints.
fn add_token(target: &Target, request: &mut Request) -> Result<(), BuildError> {
    let Some(bearer) = &target.bearer else {
        return Ok(());
    };
    let value = format!("Bearer {}", bearer.token()?);
    encode::header("Authorization", &value).map_err(|e| unsendable("Authorization", &e))?;
    request.headers.set("Authorization", value);
    Ok(())
}

fn basic(user: &str, password: &str, request: &mut Request) -> Result<(), BuildError> {
    let value = encode::basic(user, password).map_err(|e| unsendable("Authorization", &e))?;
    request.headers.set("Authorization", value);
    Ok(())
}

fn path_of(operation: &Operation, target: &Target) -> Result<String, BuildError> {
    match &operation.path_from {
        None => Ok(operation.path.clone()),
        Some(key) => {
            let path = target.values.get(key).and_then(Value::as_str);
            path.map(str::to_owned)
                .ok_or_else(|| BuildError::Unconfigured {
                    service: operation.service.clone(),
                    key: key.clone(),
                })
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
    let is_json = target.json_operations.get(&operation.id);
    let is_json = *is_json.unwrap_or(&target.json_bodies);
    let as_json =
        offers("application/json") && (is_json || !offers("application/x-www-form-urlencoded"));
    let other_json = operation.bodies.iter().find(|body| body.ends_with("+json"));
    if as_json || other_json.is_some() {
        let media_type = other_json.filter(|_| !as_json);
        let media_type = media_type.map_or("application/json", String::as_str);
        request.headers.set("Content-Type", media_type);
        request.body = nested(body).to_string().into_bytes();
    } else {
        let mut pairs = Vec::new();
        for (name, value) in body {
            push_pairs(&mut pairs, (*name).to_owned(), value);
        }
        request
            .headers
            .set("Content-Type", "application/x-www-form-urlencoded");
        request.body = encode::form(borrowed(&pairs)).into_bytes();
    }
    Ok(())
}

/// Lists repeat the name (D2, Conventions); hashes and lists of hashes use brackets.
fn push_pairs(pairs: &mut Vec<(String, String)>, name: String, value: &Value) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let name = if item.is_object() {
                    format!("{name}[{index}]")
                } else {
                    name.clone()
                };
                push_pairs(pairs, name, item);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                push_pairs(pairs, format!("{name}[{key}]"), member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            pairs.push((name, text_of(value)));
        }
    }
}

fn borrowed(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
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

/// A field of an upload in a recording.
pub struct Field<'f> {
    pub name: &'f str,
    /// Its value.
    pub value: &'f str,
    /// File name and media type, for a file.
    pub file: Option<(&'f str, &'f str)>,
}

/// The media type and body of an upload with these fields.
pub fn upload<'f>(
    fields: impl Iterator<Item = Field<'f>>,
) -> Result<(String, Vec<u8>), EncodeError> {
    let mut parts = Multipart::new();
    for field in fields {
        parts = match field.file {
            None => parts.text(field.name, field.value),
            Some((file_name, media_type)) => {
                parts.file(field.name, file_name, media_type, field.value.as_bytes())?
            }
        };
    }
    Ok(parts.finish())
}

fn multipart(body: &[(&str, &Value)], request: &mut Request) -> Result<(), BuildError> {
    let mut parts = Multipart::new();
    for (name, value) in body {
        let unsendable = |why: String| BuildError::Unsendable {
            name: (*name).to_owned(),
            why,
        };
        let field = |key: &str| value.get(key).and_then(Value::as_str);
        let Some(file_name) = field("$file") else {
            return Err(unsendable("it is not a `$file`".to_owned()));
        };
        let media_type = field("type").unwrap_or("application/octet-stream");
        let count = value.get("bytes").and_then(Value::as_u64);
        let content = match count {
            Some(count) => Cow::Owned(every_byte(count)),
            None => Cow::Borrowed(field("text").unwrap_or_default().as_bytes()),
        };
        // An invalid upload: without a form, or with a part of another name.
        if value.get("part").is_some_and(Value::is_null) {
            request.headers.set("Content-Type", media_type);
            request.body = content.into_owned();
            return Ok(());
        }
        let name = field("part").unwrap_or(name);
        parts = parts
            .file(name, file_name, media_type, content)
            .map_err(|e| unsendable(e.to_string()))?;
    }
    let (content_type, bytes) = parts.finish();
    request.headers.set("Content-Type", content_type);
    request.body = bytes;
    Ok(())
}

/// The given number of bytes, in an order without a short period.
fn every_byte(count: u64) -> Vec<u8> {
    let low = |n: u64| u8::try_from(n % 256).unwrap_or_default();
    (0..count)
        .map(|n| low(n).wrapping_add(low(n / 256)))
        .collect()
}

/// A request target with other values of some query parameters.
pub(super) fn with_query(target: &str, parameters: &Map<String, Value>) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .filter(|(name, _)| !parameters.contains_key(name))
        .collect();
    pairs.extend(parameters.iter().map(|(n, v)| (n.clone(), text_of(v))));
    format!("{path}?{}", encode::query(borrowed(&pairs)))
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
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => json::digits(number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Finds the operation of a recorded exchange and reads its parameters back.
///
/// `path` is the target's path below the service's base; `configured` holds the paths that no document shows.
pub fn recognize<'a>(
    operations: impl Iterator<Item = &'a Operation>,
    request: &Request,
    path: &str,
    configured: &Map<String, Value>,
) -> Option<(&'a Operation, BTreeMap<String, Value>)> {
    let segments: Vec<String> = path
        .split('/')
        .filter(|s| !s.is_empty())
        .map(conformant_base::http::percent_decode)
        .collect();
    let mut best: Option<(usize, &Operation, BTreeMap<String, Value>)> = None;
    for operation in operations.filter(|o| o.method == request.method) {
        let shown = match &operation.path_from {
            Some(key) => configured
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default(),
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
            url::form_urlencoded::parse(&request.body)
                .into_owned()
                .collect()
        } else {
            Vec::new()
        };
    let parts = match request.headers.get("Content-Type") {
        Some(field) if request.headers.media_type().as_deref() == Some("multipart/form-data") => {
            multipart_parts(field, &request.body)
        }
        Some(_) | None => Vec::new(),
    };
    let query = request.query_pairs();
    let document: Option<Value> = serde_json::from_slice(&request.body).ok();
    for parameter in &operation.parameters {
        let name = parameter.name.as_str();
        let value = match parameter.place {
            ParameterLocation::Path => continue,
            ParameterLocation::Header => request.headers.get(name).map(Value::from),
            ParameterLocation::Query => repeated(&query, name),
            ParameterLocation::Body => repeated(&form, name)
                .or_else(|| bracketed(&form, name))
                .or_else(|| parts.iter().find(|part| part.name == name).map(part_of))
                .or_else(|| {
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

/// A part in the notation of scenarios, without the content of the file.
fn part_of(part: &ReceivedPart<'_>) -> Value {
    match &part.file_name {
        Some(file_name) => json!({"$file": file_name, "type": part.media_type}),
        None => json!(String::from_utf8_lossy(part.content)),
    }
}

/// A parameter's value, or the list of values if it is repeated.
pub(super) fn repeated(pairs: &[(String, String)], name: &str) -> Option<Value> {
    let mut values: Vec<Value> = pairs
        .iter()
        .filter(|(n, _)| n == name)
        .map(|(_, v)| Value::from(v.as_str()))
        .collect();
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => Some(Value::Array(values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_repeat_lists_and_bracket_hashes() {
        let mut pairs = Vec::new();
        push_pairs(&mut pairs, "Permission".into(), &json!(["a", "b"]));
        push_pairs(&mut pairs, "details".into(), &json!({"k": 1}));
        push_pairs(&mut pairs, "logos".into(), &json!([{"res": "default"}]));
        let pairs: Vec<String> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(
            pairs,
            [
                "Permission=a",
                "Permission=b",
                "details[k]=1",
                "logos[0][res]=default"
            ]
        );
    }

    #[test]
    fn the_parts_of_an_upload_are_its_parameters() {
        let rulebook = conformant_judge::load::shared();
        let operation = rulebook.operation("media", "upload-media").unwrap();
        let file = json!({"$file": "dot.png", "type": "image/png", "text": "x"});
        let mut request = Request::new(&operation.method, "");
        multipart(&[("media", &file)], &mut request).unwrap();
        let mut sent = BTreeMap::new();
        read_parameters(operation, &request, &mut sent);
        assert_eq!(
            sent["media"],
            json!({"$file": "dot.png", "type": "image/png"})
        );
    }

    #[test]
    fn an_invalid_upload_has_another_part_or_no_form() {
        let file = |part: Value| json!({"$file": "a.txt", "type": "text/plain", "text": "x", "part": part});
        let mut request = Request::new("POST", "");
        multipart(&[("media", &file(json!("file")))], &mut request).unwrap();
        let body = String::from_utf8_lossy(&request.body);
        assert!(body.contains("name=\"file\"") && !body.contains("name=\"media\""));
        multipart(&[("media", &file(Value::Null))], &mut request).unwrap();
        assert_eq!(request.headers.get("Content-Type"), Some("text/plain"));
        assert_eq!(request.body, b"x");
    }

    #[test]
    fn brackets_in_names_nest_in_json() {
        let (email, message) = (json!("a@b"), json!("hi"));
        assert_eq!(
            nested(&[("user[email]", &email), ("message", &message)]),
            json!({"user": {"email": "a@b"}, "message": "hi"})
        );
    }
}
