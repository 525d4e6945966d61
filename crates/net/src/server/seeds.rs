//! Seed data: requests that initialize a sandbox, one JSON line each.
//!
//! A sandbox depends only on its seed and its requests, so both recreate it anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::http::Request;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Headers that change the meaning of a request; others, such as credentials, are dropped.
const HEADERS_KEPT: [&str; 3] = ["Content-Type", "Content-Size", "X-Platform-Webhook-Enabled"];
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// Seed data by sandbox; the default one has an empty name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seeds {
    worlds: BTreeMap<String, Seed>,
}

/// Seed data of one sandbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seed {
    /// Seed of identifiers; by default that of the server.
    pub number: Option<u64>,
    pub steps: Vec<Step>,
}

/// The line that starts a sandbox.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    world: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// One request. The credentials of the reference are added.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Delay after the previous request, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_ms: u64,
    /// `POST` by default.
    #[serde(default = "post", skip_serializing_if = "is_post")]
    pub method: String,
    /// `/chat/v2/Services`, or `/_control/HOOK` for an action of a person or device. `${NAME.FIELD}` is
    /// replaced by a value of an earlier response.
    pub path: String,
    /// Form fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub form: Map<String, Value>,
    /// A JSON body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Any other body, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Additional headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Name of the response for later lines.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

fn post() -> String {
    "POST".to_owned()
}

fn is_post(method: &str) -> bool {
    method == "POST"
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why seed data was refused.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        why: LineError,
    },
    #[error("request {number} of the seed data ({request}) failed with {status}: {body}")]
    Refused {
        /// Counted from 1 within its sandbox.
        number: usize,
        /// Method and path.
        request: String,
        status: u16,
        /// The response, excerpted.
        body: String,
    },
}

/// Why a line of seed data is invalid.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Invalid JSON, or not a step.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("expected only one of `form`, `json` and `base64`")]
    Bodies,
    #[error(
        "invalid `path`: expected a leading `/`, such as /chat/v2/Services or /_control/create_flow"
    )]
    Path,
    #[error("base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("`{0}` has `${{` without `}}`")]
    Unclosed(String),
    #[error("no earlier line has `\"as\": \"{0}\"`")]
    NoAnswer(String),
    #[error("the response has no `{0}`")]
    NoField(String),
}

impl Seeds {
    /// Parses JSON lines. Requests before the first `{"world": NAME}` belong to the default sandbox.
    pub fn read(text: &str) -> Result<Self, SeedError> {
        let mut seeds = Self::default();
        let mut world = String::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let faulty = |why: LineError| SeedError::Line { line: number, why };
            let value: Value = serde_json::from_str(line).map_err(|e| faulty(e.into()))?;
            if value.get("world").is_some() {
                let head: Head = serde_json::from_value(value).map_err(|e| faulty(e.into()))?;
                world.clone_from(&head.world);
                seeds.worlds.entry(world.clone()).or_default().number = head.seed;
                continue;
            }
            let step: Step = serde_json::from_value(value).map_err(|e| faulty(e.into()))?;
            step.check().map_err(faulty)?;
            seeds
                .worlds
                .entry(world.clone())
                .or_default()
                .steps
                .push(step);
        }
        Ok(seeds)
    }

    /// The seed data of a sandbox, or else of the default one.
    pub fn for_world(&self, world: &str) -> Option<&Seed> {
        self.worlds.get(world).or_else(|| self.worlds.get(""))
    }

    /// Named sandboxes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.worlds
            .keys()
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }
}

impl Seed {
    /// Writes lines that [`Seeds::read`] reads.
    pub fn to_lines(&self, world: &str) -> String {
        let head = Head {
            world: world.to_owned(),
            seed: self.number,
        };
        let mut text = line(&head);
        text.extend(self.steps.iter().map(line));
        text
    }
}

fn line(of: &impl Serialize) -> String {
    let mut text = serde_json::to_string(of).expect("a line is JSON");
    text.push('\n');
    text
}

impl Step {
    /// Converts a handled request to a step.
    pub fn from_request(request: &Request, after_ms: u64) -> Self {
        let mut step = Self {
            after_ms,
            method: request.method.clone(),
            path: request.target.clone(),
            ..Self::default()
        };
        let media_type = request.headers.media_type();
        for name in HEADERS_KEPT {
            if let Some(value) = request.headers.get(name) {
                step.headers.insert(name.to_owned(), value.to_owned());
            }
        }
        let is_form = media_type
            .as_deref()
            .is_none_or(|media_type| media_type == FORM);
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(&request.body)
            .into_owned()
            .collect();
        if request.body.is_empty() {
            step.headers.remove("Content-Type");
        } else if is_form && std::str::from_utf8(&request.body).is_ok() {
            step.headers.remove("Content-Type");
            for (name, value) in pairs {
                let value = Value::from(value);
                match step.form.get_mut(&name) {
                    None => drop(step.form.insert(name, value)),
                    Some(Value::Array(values)) => values.push(value),
                    Some(one) => *one = Value::Array(vec![one.take(), value]),
                }
            }
        } else if let (Some(JSON), Ok(json)) =
            (media_type.as_deref(), serde_json::from_slice(&request.body))
        {
            step.headers.remove("Content-Type");
            step.json = Some(json);
        } else {
            step.base64 = Some(STANDARD.encode(&request.body));
        }
        step
    }

    fn check(&self) -> Result<(), LineError> {
        let bodies = [
            !self.form.is_empty(),
            self.json.is_some(),
            self.base64.is_some(),
        ];
        if bodies.into_iter().filter(|has| *has).count() > 1 {
            return Err(LineError::Bodies);
        }
        if !self.path.starts_with('/') {
            return Err(LineError::Path);
        }
        Ok(())
    }

    /// The request with values of earlier responses inserted; without credentials.
    pub fn request(&self, answers: &BTreeMap<String, Value>) -> Result<Request, LineError> {
        let mut request = Request::new(&self.method, substitute(&self.path, answers)?);
        for (name, value) in &self.headers {
            request.headers.set(name, substitute(value, answers)?);
        }
        if let Some(json) = &self.json {
            request.headers.set("Content-Type", JSON);
            request.body = substitute_json(json, answers)?.to_string().into_bytes();
        } else if let Some(text) = &self.base64 {
            request.body = STANDARD.decode(text)?;
        } else if !self.form.is_empty() {
            request.headers.set("Content-Type", FORM);
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            for (name, value) in &self.form {
                let one = std::slice::from_ref(value);
                for value in value.as_array().map_or(one, Vec::as_slice) {
                    form.append_pair(name, &substitute(&form_value(value), answers)?);
                }
            }
            request.body = form.finish().into_bytes();
        }
        Ok(request)
    }
}

/// A value in form encoding.
fn form_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Replaces each `${NAME.FIELD.FIELD}` by a value of an earlier response.
fn substitute(text: &str, answers: &BTreeMap<String, Value>) -> Result<String, LineError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let (inside, behind) = behind
            .split_once('}')
            .ok_or_else(|| LineError::Unclosed(text.to_owned()))?;
        let mut parts = inside.split('.');
        let name = parts.next().unwrap_or_default();
        let answer = answers
            .get(name)
            .ok_or_else(|| LineError::NoAnswer(name.to_owned()))?;
        let value = parts.try_fold(answer, |value, part| value.get(part));
        let value = value.ok_or_else(|| LineError::NoField(inside.to_owned()))?;
        out.push_str(before);
        out.push_str(&form_value(value));
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn substitute_json(json: &Value, answers: &BTreeMap<String, Value>) -> Result<Value, LineError> {
    Ok(match json {
        Value::String(text) => Value::from(substitute(text, answers)?),
        Value::Array(items) => items
            .iter()
            .map(|item| substitute_json(item, answers))
            .collect::<Result<_, _>>()?,
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| Ok((name.clone(), substitute_json(value, answers)?)))
            .collect::<Result<Map<_, _>, LineError>>()?
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => json.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_written_and_read_again() {
        let mut form = Request::new("POST", "/chat/v2/Services");
        form.headers.set("Content-Type", FORM);
        form.headers.set("Authorization", "Basic secret");
        form.body = b"FriendlyName=a%26b&Permission=x&Permission=y".to_vec();
        let mut json = Request::new("POST", "/_control/create_flow");
        json.headers.set("Content-Type", JSON);
        json.body = br#"{"friendly_name":"f"}"#.to_vec();
        let mut bytes = Request::new("POST", "/media/v1/Services/IS/Media");
        bytes
            .headers
            .set("Content-Type", "multipart/form-data; boundary=b");
        bytes.body = vec![0xff, 0];
        let sent = [
            form,
            json,
            bytes,
            Request::new("DELETE", "/flow/v1/Flows/FW"),
        ];
        let seed = Seed {
            number: Some(7),
            steps: sent
                .iter()
                .map(|request| Step::from_request(request, 5))
                .collect(),
        };
        let text = seed.to_lines("a");
        assert!(!text.contains("secret"), "{text}");
        let read = Seeds::read(&text).unwrap();
        assert_eq!(read.for_world("a"), Some(&seed));
        let none = BTreeMap::new();
        for (step, mut request) in seed.steps.iter().zip(sent) {
            request.headers.remove("Authorization");
            assert_eq!(step.request(&none).unwrap(), request);
        }
    }

    #[test]
    fn values_of_earlier_answers_are_filled_in_once() {
        let line = r#"{"path": "/chat/${s.sid}/Users", "form": {"Identity": "${s.name}"}}"#;
        let seeds = Seeds::read(line).unwrap();
        let answers = BTreeMap::from([("s".to_owned(), json!({"sid": "IS1", "name": "${s.sid}"}))]);
        let request = seeds.for_world("any").unwrap().steps[0]
            .request(&answers)
            .unwrap();
        assert_eq!(request.target, "/chat/IS1/Users");
        assert_eq!(request.body, b"Identity=%24%7Bs.sid%7D");
        let error = seeds.for_world("").unwrap().steps[0]
            .request(&BTreeMap::new())
            .unwrap_err();
        assert!(matches!(error, LineError::NoAnswer(name) if name == "s"));
    }

    #[test]
    fn an_invalid_line_is_reported_with_its_number() {
        for (text, why) in [
            ("{}", "line 1: missing field `path`"),
            (
                "\n{\"path\": \"chat\"}",
                "line 2: invalid `path`: expected a leading `/`",
            ),
            (
                "{\"path\": \"/a\", \"from\": 1}",
                "line 1: unknown field `from`",
            ),
            (
                "{\"path\": \"/a\", \"json\": 1, \"base64\": \"\"}",
                "line 1: expected only one of",
            ),
        ] {
            let error = Seeds::read(text).unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
