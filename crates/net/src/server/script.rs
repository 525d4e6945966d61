//! Scripted responses: replace or disturb the response to the n-th call of an operation.
//!
//! Matches requests; the sandbox and the relay carry the action out.

use conformant_base::http::{Request, Response};
use conformant_base::text::glob;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Longest delay.
const DELAY_MAX: Duration = Duration::from_secs(600);

/// A documented operation.
#[derive(Clone, Debug)]
pub struct Route {
    /// `chat/create-message`.
    pub id: String,
    /// `POST`.
    pub method: String,
    /// `/chat/v2/Services/{ServiceSid}/Channels`: the path with the service prefix.
    pub path: String,
}

impl Route {
    fn matches(&self, request: &Request) -> bool {
        let (mut known, mut asked) = (self.path.split('/'), request.path().split('/'));
        let alike = known
            .by_ref()
            .zip(asked.by_ref())
            .all(|(known, asked)| known == asked || (known.starts_with('{') && !asked.is_empty()));
        self.method == request.method
            && alike
            && self.path.split('/').count() == request.path().split('/').count()
    }
}

/// One scripted response, as in files and on the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with the members of a scripted response"
)]
pub struct Scripted {
    /// For listing and removal; generated if empty.
    #[serde(default)]
    pub name: String,
    /// An operation (`chat/create-message`, `*` stands for any text), or `METHOD PATH` (`GET /media/*`).
    pub on: String,
    /// The calls, counted from 1 since the script was set: `2`, `2-4`, or `2+` for all from the second.
    #[serde(default)]
    pub calls: Calls,
    pub answer: Action,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// 429 with `Retry-After` in seconds; the request is not executed.
    TooMany(u64),
    /// 503, with `Retry-After` if seconds are given; the request is not executed.
    Unavailable(Option<u64>),
    /// Delays the response.
    Delay(Duration),
    /// Executes the request and closes the connection without a response.
    Cut,
    /// Closes the connection within the body.
    Truncate,
    /// Shows the state before the last change, as a lagging replica would.
    Stale,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(seconds) => write!(f, "429:{seconds}"),
            Self::Unavailable(None) => f.write_str("503"),
            Self::Unavailable(Some(seconds)) => write!(f, "503:{seconds}"),
            Self::Delay(by) => write!(f, "delay:{}ms", by.as_millis()),
            Self::Cut => f.write_str("cut"),
            Self::Truncate => f.write_str("truncate"),
            Self::Stale => f.write_str("stale"),
        }
    }
}

/// Why a scripted response is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error(
        "invalid answer `{0}`: expected 429[:SECONDS], 503[:SECONDS], delay:MILLISECONDSms, cut, truncate or stale"
    )]
    Action(String),
    #[error("invalid calls `{0}`: expected 2, 2-4 or 2+")]
    Calls(String),
    #[error(
        "invalid scripted answer `{0}`: expected [CALLS@]OPERATION=ANSWER, such as 2@chat/create-message=429:1"
    )]
    Whole(String),
    #[error(
        "`{0}` matches no operation: see `conformant list operations`, or write `METHOD PATH` for any request"
    )]
    Operation(String),
    #[error("expected a JSON list of scripted answers: {0}")]
    Json(String),
}

impl FromStr for Action {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let unknown = || ScriptError::Action(text.to_owned());
        let (word, argument) = match text.split_once(':') {
            Some((word, argument)) => (word, Some(argument)),
            None => (text, None),
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| unknown());
        Ok(match (word, argument) {
            ("429", None) => Self::TooMany(1),
            ("429", Some(seconds)) => Self::TooMany(number(seconds)?),
            ("503", None) => Self::Unavailable(None),
            ("503", Some(seconds)) => Self::Unavailable(Some(number(seconds)?)),
            ("delay", Some(by)) => {
                let ms = number(by.strip_suffix("ms").unwrap_or(by))?;
                let by = Duration::from_millis(ms);
                if by > DELAY_MAX {
                    return Err(unknown());
                }
                Self::Delay(by)
            }
            ("cut", None) => Self::Cut,
            ("truncate", None) => Self::Truncate,
            ("stale", None) => Self::Stale,
            _ => return Err(unknown()),
        })
    }
}

/// A range of call numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    first: u64,
    last: Option<u64>,
}

impl Default for Calls {
    /// Every call.
    fn default() -> Self {
        Self {
            first: 1,
            last: None,
        }
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}+", self.first),
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}-{last}", self.first),
        }
    }
}

impl FromStr for Calls {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0);
        let calls = match (text.strip_suffix('+'), text.split_once('-')) {
            (Some(first), _) => number(first).map(|first| (first, None)),
            (None, Some((first, last))) => number(first).zip(number(last).map(Some)),
            (None, None) => number(text).map(|only| (only, Some(only))),
        };
        let ordered = calls.filter(|(first, last)| last.is_none_or(|last| last >= *first));
        let (first, last) = ordered.ok_or_else(|| ScriptError::Calls(text.to_owned()))?;
        Ok(Self { first, last })
    }
}

macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = Value::deserialize(from)?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
as_text!(Action, Calls);

impl FromStr for Scripted {
    type Err = ScriptError;

    /// Parses `[CALLS@]OPERATION=ANSWER`, the form of the command line.
    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let whole = || ScriptError::Whole(text.to_owned());
        let (on, answer) = text.rsplit_once('=').ok_or_else(whole)?;
        let (calls, on) = match on.split_once('@') {
            Some((calls, on)) => (calls.parse()?, on),
            None => (Calls::default(), on),
        };
        if on.is_empty() {
            return Err(whole());
        }
        Ok(Self {
            name: String::new(),
            on: on.to_owned(),
            calls,
            answer: answer.parse()?,
        })
    }
}

/// Parses one scripted response or a list of them.
pub fn read(bytes: &[u8]) -> Result<Vec<Scripted>, ScriptError> {
    let invalid = |e: serde_json::Error| ScriptError::Json(e.to_string());
    let value: Value = serde_json::from_slice(bytes).map_err(invalid)?;
    if value.is_array() {
        return serde_json::from_value(value).map_err(invalid);
    }
    Ok(vec![serde_json::from_value(value).map_err(invalid)?])
}

/// The scripted responses of one sandbox and their counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    routes: Arc<Vec<Route>>,
    parts: Vec<Part>,
    named: u64,
}

#[derive(Clone, Debug)]
struct Part {
    scripted: Scripted,
    seen: u64,
    answered: u64,
}

impl Script {
    pub(super) fn new(routes: Arc<Vec<Route>>, all: &[Scripted]) -> Result<Self, ScriptError> {
        let mut script = Self {
            routes,
            ..Self::default()
        };
        script.add(all.to_vec())?;
        Ok(script)
    }

    /// Adds all or none; replaces responses of the same name.
    pub(super) fn add(&mut self, all: Vec<Scripted>) -> Result<Vec<String>, ScriptError> {
        for scripted in &all {
            let on = &scripted.on;
            let is_known = on.contains(' ')
                || on == "*"
                || self.routes.iter().any(|route| glob(on, &route.id));
            if !is_known {
                return Err(ScriptError::Operation(on.clone()));
            }
        }
        let mut names = Vec::new();
        for mut scripted in all {
            if scripted.name.is_empty() {
                self.named += 1;
                scripted.name = format!("script-{}", self.named);
            }
            names.push(scripted.name.clone());
            self.parts
                .retain(|part| part.scripted.name != scripted.name);
            self.parts.push(Part {
                scripted,
                seen: 0,
                answered: 0,
            });
        }
        Ok(names)
    }

    /// Removes one or all; returns how many were removed.
    pub(super) fn remove(&mut self, name: Option<&str>) -> usize {
        let before = self.parts.len();
        self.parts
            .retain(|part| name.is_some_and(|name| part.scripted.name != name));
        before - self.parts.len()
    }

    /// Resets the counters.
    pub(super) fn rewind(&mut self) {
        for part in &mut self.parts {
            (part.seen, part.answered) = (0, 0);
        }
    }

    /// True if a response may show the state before the last change.
    pub(super) fn needs_history(&self) -> bool {
        self.parts
            .iter()
            .any(|part| part.scripted.answer == Action::Stale)
    }

    /// The first response that applies to a request. Every response of its operation counts the call.
    pub(super) fn match_call(&mut self, request: &Request) -> Option<(String, Action)> {
        if self.parts.is_empty() {
            return None;
        }
        let route = self.routes.iter().find(|route| route.matches(request));
        let id = route.map_or("", |route| route.id.as_str());
        let spelled = format!("{} {}", request.method, request.path());
        let mut met = None;
        for part in &mut self.parts {
            let on = part.scripted.on.as_str();
            if on != "*" && !glob(on, id) && !(on.contains(' ') && glob(on, &spelled)) {
                continue;
            }
            part.seen += 1;
            let Calls { first, last } = part.scripted.calls;
            let is_due = part.seen >= first && last.is_none_or(|last| part.seen <= last);
            if is_due && met.is_none() {
                part.answered += 1;
                met = Some((part.scripted.name.clone(), part.scripted.answer));
            }
        }
        met
    }

    /// Every response with its counters.
    pub(super) fn list(&self) -> Value {
        let listed = self.parts.iter().map(|part| {
            let mut shown = json!(part.scripted);
            shown["called"] = json!(part.seen);
            shown["played"] = json!(part.answered);
            shown
        });
        listed.collect()
    }
}

/// The response of an action that does not execute the request.
pub(super) fn refusal(act: Action) -> Option<Response> {
    let (status, why, retry_after) = match act {
        Action::TooMany(seconds) => (429, "too many requests (scripted)", Some(seconds)),
        Action::Unavailable(seconds) => (503, "not available (scripted)", seconds),
        Action::Delay(_) | Action::Cut | Action::Truncate | Action::Stale => return None,
    };
    let mut response = super::refusal(status, why);
    if let Some(seconds) = retry_after {
        response.headers.set("Retry-After", seconds.to_string());
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Arc<Vec<Route>> {
        let route = |id: &str, method: &str, path: &str| Route {
            id: id.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
        };
        Arc::new(vec![
            route("chat/create-service", "POST", "/chat/v2/Services"),
            route("chat/fetch-service", "GET", "/chat/v2/Services/{Sid}"),
        ])
    }

    fn scripted(text: &str) -> Scripted {
        text.parse().unwrap()
    }

    #[test]
    fn the_command_line_and_files_say_the_same() {
        let short = scripted("2-3@chat/create-service=429:5");
        let long = br#"{"on": "chat/create-service", "calls": "2-3", "answer": "429:5"}"#;
        assert_eq!(read(long).unwrap(), std::slice::from_ref(&short));
        let list = json!([
            short,
            scripted("GET /chat/*=cut"),
            scripted("4+@*=delay:20ms")
        ]);
        let again = read(list.to_string().as_bytes()).unwrap();
        assert_eq!(json!(again), list);
        let number = br#"{"on": "*", "calls": 2, "answer": 503}"#;
        assert_eq!(read(number).unwrap(), [scripted("2@*=503")]);
        for wrong in [
            "",
            "chat",
            "=429",
            "x@chat/a=429",
            "3-2@a=429",
            "0@a=429",
            "a=418",
            "a=delay",
            "a=delay:9999999",
        ] {
            assert!(wrong.parse::<Scripted>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_calls_of_an_operation_are_counted_one_by_one() {
        let all = [
            scripted("2@chat/create-service=429:1"),
            scripted("3+@POST /chat/*=503"),
        ];
        let mut script = Script::new(routes(), &all).unwrap();
        let make = Request::new("POST", "/chat/v2/Services?x=1");
        let other = Request::new("GET", "/chat/v2/Services/IS1");
        let acts: Vec<_> = [&make, &other, &make, &other, &make, &make]
            .map(|request| script.match_call(request).map(|(_, act)| act))
            .into();
        let (busy, gone) = (Some(Action::TooMany(1)), Some(Action::Unavailable(None)));
        assert_eq!(acts, [None, None, busy, None, gone, gone]);
        let listed = script.list();
        assert_eq!(listed[0]["name"], "script-1");
        assert_eq!(
            (&listed[0]["called"], &listed[0]["played"]),
            (&json!(4), &json!(1))
        );
        script.rewind();
        assert_eq!(script.match_call(&make), None);
        assert_eq!(script.remove(Some("script-1")), 1);
        assert_eq!(script.remove(None), 1);
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let error = Script::new(routes(), &[scripted("chat/create-servce=cut")]).unwrap_err();
        assert!(
            error.to_string().contains("matches no operation"),
            "{error}"
        );
    }
}
