//! What a record holds so that a person can see what happened: exchanges in brief, the steps of
//! stories that failed, defects, waivers and how sharp the run was.
//!
//! Nothing here decides a verdict or an exit code; all of it is bounded, whatever a target sends.

use super::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over so"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Findings that look like one mistake: a guess, and it says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Defect {
    /// What seems to be wrong, in one sentence.
    pub title: String,
    /// Known defects that break exactly these rules; empty where none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// The service whose rules are broken.
    pub service: String,
    /// `must` where one of its rules is, otherwise a warning.
    pub level: Level,
    /// Ids of the broken rules; each broken rule is in one defect.
    pub rules: Vec<String>,
    /// How many findings its rules brought.
    pub findings: usize,
    /// In how many scenarios.
    pub scenarios: usize,
}

/// One exchange as a person is shown it: secrets redacted, bodies cut around what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownExchange {
    /// Its number in the run, as findings name it.
    pub exchange: usize,
    /// The place that the body is cut around; empty for its beginning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Operation, as `SERVICE/ID`.
    pub operation: String,
    /// The method.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Header lines that were sent.
    pub request_headers: Vec<String>,
    /// What was sent, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_body: String,
    /// The status code; 0 where no head of an answer came.
    pub status: u16,
    /// Why no answer came; empty where one did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
    /// What was odd about the way the answer came that did not keep it from being judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<String>,
    /// How long it took on the target's clock; 0 where that stands still.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub milliseconds: usize,
    /// The answer's header lines that say something about its body or what to do next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_headers: Vec<String>,
    /// What came back, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub response_body: String,
    /// How many bytes came back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub response_bytes: usize,
    /// The line of `response_body` that the finding is about, counted from 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: usize,
}

/// A callback, event or hook result that a finding is about, and the request that caused it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The scenario.
    pub scenario: String,
    /// The step in which it was looked at.
    pub step: usize,
    /// The place that the body is cut around.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// What it is: `callback`, or the kind of the payload.
    pub what: String,
    /// What came, cut.
    pub body: String,
    /// The line of `body` that the finding is about, counted from 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: usize,
    /// The exchange before it, which most likely caused it; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cause: usize,
    /// What a person or device did last before it, with its arguments; empty where nobody did anything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deed: String,
}

/// One step of a story that did not pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// Its number, counted from 1; the requests of a group of steps share theirs.
    pub step: usize,
    /// `call`, `get`, `hook`, `callback`, `listen`, `await`, `wait` or `token`.
    pub verb: String,
    /// What it is about: an operation, a hook, an address.
    pub what: String,
    /// When, in seconds from the story's beginning on the target's clock; requests alone have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// What came of it: a status, why there is none, how many callbacks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Its exchange; 0 where it made none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub exchange: usize,
    /// It only prepared the ground.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup: bool,
    /// Rules that were seen broken here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// A waiver, and what it accepted in this run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaiverResult {
    /// The rule, or the pattern of rules.
    pub rule: String,
    /// The place it is limited to; empty for any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it is, `YYYY-MM-DD`.
    pub expires: String,
    /// How many findings it accepted.
    pub findings: usize,
}

/// How many known defects this run would have noticed: those that only judged rules catch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sharpness {
    /// How many defects are known.
    pub known: usize,
    /// Of how many all rules that catch them were judged.
    pub noticed: usize,
    /// What the others do, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<String>,
}

/// Real time, which only runs against live targets have: offline the same seed gives the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WallClock {
    /// When the run began, ISO 8601 in UTC.
    pub started: String,
    /// How long it took in seconds.
    pub seconds: f64,
    /// Where that went, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<super::Timings>,
}

/// What earlier runs of the same targets say about this one, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Earlier runs.
    pub earlier: Vec<EarlierRun>,
    /// Rules that are broken now and were not in the last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new: Vec<String>,
    /// Rules that were broken in the last run and hold now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
    /// Rules that came and went although nobody says that something changed: broken in some of the
    /// last runs and held in others, by turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// When a rule that is broken now broke first, in the runs that are known.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub first_seen: std::collections::BTreeMap<String, String>,
    /// Open points that are answered differently than in the last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// One earlier run in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierRun {
    /// What it is called: the name of its file.
    pub name: String,
    /// Broken must-rules.
    pub broken: usize,
    /// Rules that were judged.
    pub judged: usize,
}
