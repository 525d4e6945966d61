//! The part of a record for display: excerpts of exchanges, steps of failed scenarios, defects, waivers and
//! earlier runs.
//!
//! Bounded, and never used for a verdict or an exit code.

use super::{Level, is_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Findings with a common likely cause: a guess.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Defect {
    /// The likely cause in one sentence.
    pub title: String,
    /// Faults of the reference that break exactly these rules; empty if there is none.
    #[serde(default, rename = "known", skip_serializing_if = "Vec::is_empty")]
    pub similar_faults: Vec<String>,
    /// The service whose rules are broken.
    pub service: String,
    /// `must` if any of its rules is, otherwise a warning.
    pub level: Level,
    /// Ids of the broken rules; each broken rule belongs to one defect.
    pub rules: Vec<String>,
    /// Number of findings of its rules.
    pub findings: usize,
    /// Number of scenarios.
    pub scenarios: usize,
}

/// One exchange for display: secrets redacted, bodies cut around the finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownExchange {
    /// Its number in the run, as findings name it.
    pub exchange: usize,
    /// The place around which the body is cut; empty for its start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Operation, as `SERVICE/ID`.
    pub operation: String,
    /// The method.
    pub method: String,
    /// The full URL.
    pub url: String,
    /// Header lines that were sent.
    pub request_headers: Vec<String>,
    /// Request body, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_body: String,
    /// The status code; 0 without response headers.
    pub status: u16,
    /// Why there is no response; empty if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
    /// Oddities of the response that did not prevent judging.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<String>,
    /// Duration on the target's clock; 0 if the clock stands still.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub milliseconds: usize,
    /// Response headers about the body or the next request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_headers: Vec<String>,
    /// Response body, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub response_body: String,
    /// Size of the response body.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub response_bytes: usize,
    /// The line of `response_body` with the finding, counted from 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: usize,
}

/// What a payload for display is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PayloadOrigin {
    /// Callbacks, or one of them.
    #[default]
    Callback,
    /// The result of the hook with this name.
    Hook(String),
    /// An event of this kind.
    Event(String),
}

impl From<String> for PayloadOrigin {
    fn from(text: String) -> Self {
        match text.strip_prefix("hook ") {
            Some(name) => Self::Hook(name.to_owned()),
            None if text == "callback" => Self::Callback,
            None => Self::Event(text),
        }
    }
}

impl From<PayloadOrigin> for String {
    fn from(origin: PayloadOrigin) -> Self {
        match origin {
            PayloadOrigin::Callback => "callback".to_owned(),
            PayloadOrigin::Hook(name) => format!("hook {name}"),
            PayloadOrigin::Event(kind) => kind,
        }
    }
}

/// A callback, event or hook result with a finding, and the request before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub struct ShownPayload {
    /// The scenario.
    pub scenario: String,
    /// The step in which it was checked.
    pub step: usize,
    /// The place around which the body is cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// `callback`, `hook NAME` for the result of a hook, the kind of the payload, or the type of a collected event.
    #[schemars(with = "String")]
    pub what: PayloadOrigin,
    /// Set if the finding is about something that did not come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// The body, cut; empty for a finding about all collected events.
    pub body: String,
    /// The line of `body` with the finding, counted from 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: usize,
    /// The exchange before it; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cause: usize,
    /// The last user or device action before it, with arguments; empty if there is none.
    #[serde(default, rename = "deed", skip_serializing_if = "String::is_empty")]
    pub action: String,
}

/// One step of a scenario that did not pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// Counted from 1; the requests of a group of steps share one number.
    pub step: usize,
    /// `call`, `get`, `hook`, `callback`, `listen`, `await`, `wait` or `token`.
    pub verb: String,
    /// An operation, a hook, an address.
    pub what: String,
    /// Seconds since the start of the scenario on the target's clock; for requests only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// The result: a status, why there is none, a number of callbacks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Its exchange; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub exchange: usize,
    /// True for a setup step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup: bool,
    /// Rules broken in this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// Set if it was sent at the same time as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceTimes>,
    /// Arguments of a hook, or a callback as received, cut; in the scenarios that illustrate a broken rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sent: String,
    /// Result of a hook, or the answer to a callback, cut; in the scenarios that illustrate a broken rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub received: String,
}

/// One of several requests or hooks that were sent at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RaceTimes {
    /// The race in its scenario, counted from 1.
    pub number: usize,
    /// Milliseconds from the start of the race until the last byte was sent.
    pub sent: f64,
    /// Milliseconds from the start of the race until the first byte of the response was received.
    pub received: f64,
    /// The response, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

/// A waiver and its use in this run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaiverResult {
    /// The rule, or the pattern of rules.
    pub rule: String,
    /// The place to which it is limited; empty for any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Why it is accepted.
    pub reason: String,
    /// The last day of validity, `YYYY-MM-DD`.
    pub expires: String,
    /// Number of accepted findings.
    pub findings: usize,
}

/// Real time, for live targets only: offline the same seed gives the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WallClock {
    /// When the run began, ISO 8601 in UTC.
    pub started: String,
    /// How long it took in seconds.
    pub seconds: f64,
    /// Time by activity, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<super::Timings>,
}

/// The build of a CI system that made a run, from its environment; for live targets only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// The page of the build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The revision that was checked out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
}

/// Comparison with earlier runs of the same targets, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Earlier runs.
    pub earlier: Vec<EarlierRun>,
    /// Rules that are broken now but passed in the last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new: Vec<String>,
    /// Rules that were broken in the last run and pass now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
    /// Rules whose verdict alternated in the last runs without a declared change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// For each broken rule, the first run in which it was broken.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub first_seen: std::collections::BTreeMap<String, String>,
    /// Unspecified behavior that differs from the last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// One earlier run in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierRun {
    /// The name of its file.
    pub name: String,
    /// Broken must-rules.
    pub broken: usize,
    /// Rules that were judged.
    pub judged: usize,
}
