//! Evidence: everything observed during one scenario, without conclusions.
//!
//! Sources are the engine, HAR files, a proxy and payload files.

use super::reproduce::Shell;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Cause, Request, Response};
use conformant_base::json::Note;
use conformant_rulebook::expect::Expect;
use conformant_rulebook::scenario::Credentials;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Files up to this size are kept whole; of larger files, only the beginning.
pub const FILE_BYTES_MAX: usize = 128 * 1024;

/// Of a response body that was read as a document, at most this much is kept as bytes.
pub const BODY_EXCERPT_BYTES: usize = 64 * 1024;

/// The observations of one scenario, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Scenario id; empty outside a run.
    pub scenario: String,
    /// Requests with their outcome.
    pub exchanges: Vec<Exchange>,
    /// Statements of steps about results, each with its result.
    pub statements: Vec<Statement>,
    /// Payloads that are not responses: callbacks, collected events, files.
    pub payloads: Vec<Payload>,
    pub walks: Vec<Walk>,
    /// The configuration of each service, for rules that compare with it.
    pub configured: Value,
    /// The time on the target's clock at the last payload, if known.
    pub now: Option<Timestamp>,
    /// Rules that the scenario would have judged if it had continued.
    pub missed: Vec<SkippedRule>,
    /// All events, in the order in which they ended.
    pub events: Vec<Event>,
    /// Whether the scenario is the only writer.
    pub alone: bool,
    /// Whether people and devices may have acted unobserved: a recording contains requests only.
    #[serde(rename = "deeds_unseen", alias = "has_unobserved_actions")]
    pub has_unobserved_actions: bool,
    /// From this event on, everything before it counts as settled, however little time has passed: an early look.
    #[serde(skip)]
    pub settled_from: Option<usize>,
}

/// A rule that was not judged, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SkippedRule {
    pub rule: String,
    /// The reason, for people.
    pub why: String,
    /// The violated rule that prevented it, if any.
    pub masked_by: Option<String>,
}

/// One event of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A request with its outcome, as an index into the exchanges.
    Exchange(usize),
    /// An action of a person or device.
    Hook(HookCall),
    /// A received callback.
    Delivery(Delivery),
    /// Time that passed.
    Passed(Duration),
}

/// A span of time on the target's clock, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The earliest possible beginning.
    pub began: Timestamp,
    /// The latest possible end.
    pub ended: Timestamp,
}

/// The place of a request or hook among those that were sent at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Race {
    /// Number of the race within its scenario, from 1.
    pub number: usize,
    /// When the last byte of the request was sent, on the clock of the race.
    pub sent: Duration,
    /// When the first byte of the response was received.
    pub received: Duration,
}

impl Race {
    /// Whether this was answered before the other was sent; `None` if they are of different races.
    pub fn is_before(&self, other: &Self) -> Option<bool> {
        (self.number == other.number).then_some(self.received <= other.sent)
    }
}

/// The link that an exchange followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedLink {
    /// Index of the exchange whose response contains the link.
    pub exchange: usize,
    /// The pointer to the link in that response.
    pub pointer: String,
}

/// A requested action of a person or device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookCall {
    /// The step, counted from 1.
    pub step: usize,
    pub name: String,
    pub arguments: Value,
    /// The result, or the reason of a failure.
    pub result: Result<Arc<Value>, String>,
    pub span: Span,
    /// Set if it was called at the same time as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
}

/// A callback to one of the scenario's addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The step during which it was received, counted from 1.
    pub step: usize,
    /// The name of the address in the scenario.
    pub listener: String,
    /// Index of the event that sent the address to the target: an exchange or a hook.
    pub subscription: Option<usize>,
    /// The request as received; its target is `/` and the query.
    pub request: Request,
    /// Its body, if it can be read as a document.
    pub document: Option<Arc<Value>>,
    /// The status of the response to it.
    pub answered: u16,
    /// From the last check that did not find it to its arrival.
    pub span: Span,
}

/// A request and its outcome.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Exchange {
    /// Step in the scenario, counted from 1.
    pub step: usize,
    pub service: String,
    /// Operation id without the service; empty if the request matches no operation.
    pub operation: String,
    /// Documented parameters as sent. An omitted one is missing, a repeated one is a list.
    pub sent: BTreeMap<String, Value>,
    pub credentials: Credentials,
    /// Base URL of the target, without the request's target.
    pub base: String,
    pub request: Request,
    pub outcome: Outcome,
    /// The rule that a rejection or an acceptance violates.
    pub expectation: Expectation,
    /// From sending the request to the end of the response.
    pub span: Span,
    /// The followed link; `None` if the request was built from parameters.
    pub via: Option<FollowedLink>,
    /// Its role in a poll.
    pub poll: Poll,
    /// The configured credentials and options as a shell spells them.
    pub shell: Arc<Shell>,
    /// Whether it is part of a setup, so that its failure violates no rule.
    pub setup: bool,
    /// Set if it was sent at the same time as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
}

/// The role of a request in a poll, which repeats a request until its response meets a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    /// Sent once, independent of its response.
    #[default]
    Once,
    /// An attempt whose response did not meet the condition yet.
    Attempt,
    /// The attempt that met the condition, or the last one.
    Last,
}

/// The outcome of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A response, with its body as far as it can be read.
    Answered {
        response: Response,
        /// Empty where it was omitted, until it is read again.
        #[serde(default)]
        body: Body,
    },
    /// No valid HTTP response.
    Fault {
        /// The cause as a stable word.
        cause: Cause,
        /// The cause for people.
        detail: String,
        /// A partial response: its status, if the head was complete, and the beginning of its body.
        #[serde(default)]
        partial: Option<Box<Response>>,
    },
}

/// A body as a document.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// No bytes.
    #[default]
    Empty,
    /// JSON, or XML converted to the same shape.
    Document {
        value: Arc<Value>,
        /// Irregularities of a readable text: a duplicate key, a byte order mark.
        notes: Vec<Note>,
    },
    /// Not a document, with the reason.
    Unreadable(String),
}

/// The rule that a rejection or an acceptance violates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// A rejection violates this rule.
    Accepted(String),
    /// An acceptance violates this rule.
    Rejected(String),
    /// Neither violates a rule.
    #[default]
    Either,
}

/// A statement of a step about a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statement {
    /// The statement, interpolated.
    pub expect: Expect,
    pub result: Arc<Value>,
    /// The step, counted from 1.
    pub step: usize,
    /// Index into `exchanges` of the exchange that returned the result.
    pub exchange: Option<usize>,
}

/// A payload that is not a response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    /// The resource type that it is validated as.
    pub kind: String,
    pub value: Arc<Value>,
    /// Irregularities of its text.
    pub notes: Vec<Note>,
    /// The step, counted from 1; for a file, the line.
    pub step: usize,
}

/// The pages of a list, read along their links.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Walk {
    pub service: String,
    /// The list operation.
    pub operation: String,
    /// Indexes into `exchanges`, page by page.
    pub pages: Vec<usize>,
    pub end: WalkEnd,
    /// Whether other writers added to the list meanwhile, so that an item may be on two consecutive pages.
    pub moved: bool,
    /// The step, counted from 1.
    pub step: usize,
}

/// The end of a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WalkEnd {
    /// A last page without a link.
    Complete,
    /// Repeated or only empty pages, with the reason.
    Endless(String),
    /// Stopped at the maximum length, with the reason.
    Cut(String),
    /// A link that must not be followed, with the reason.
    Unfollowable(String),
    /// A page that could not be read, with the reason. Its exchange is judged.
    Broken(String),
}

/// The serialized form of an outcome. A document is omitted if it can be read from the body again.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredOutcome<'o> {
    Answered {
        response: &'o Response,
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<&'o Body>,
    },
    Fault {
        cause: &'o Cause,
        detail: &'o str,
        #[serde(skip_serializing_if = "Option::is_none")]
        partial: Option<&'o Response>,
    },
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Answered { response, body } => StoredOutcome::Answered {
                response,
                body: (response.body.len() >= BODY_EXCERPT_BYTES).then_some(body),
            },
            Self::Fault {
                cause,
                detail,
                partial,
            } => StoredOutcome::Fault {
                cause,
                detail,
                partial: partial.as_deref(),
            },
        }
        .serialize(to)
    }
}

impl Body {
    /// A document without irregularities.
    pub fn of(value: impl Into<Arc<Value>>) -> Self {
        Self::Document {
            value: value.into(),
            notes: Vec::new(),
        }
    }
}

impl Default for Outcome {
    /// An outcome without a response.
    fn default() -> Self {
        Self::Fault {
            cause: Cause::Unsent,
            detail: String::new(),
            partial: None,
        }
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Span {
    /// An unknown span: neither before nor after any other.
    pub const UNKNOWN: Self = Self {
        began: Timestamp::MIN,
        ended: Timestamp::MAX,
    };

    /// An empty span.
    pub const fn at(instant: Timestamp) -> Self {
        Self {
            began: instant,
            ended: instant,
        }
    }

    /// Whether this one ended before the other began. Overlapping spans are unordered.
    pub fn is_before(&self, other: &Self) -> bool {
        self.ended <= other.began
    }
}

impl SkippedRule {
    /// A rule that was not judged for a reason.
    pub fn because(rule: &str, why: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            why: why.into(),
            masked_by: None,
        }
    }

    /// A rule that was not judged because another one is violated.
    pub fn behind(rule: &str, broken: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            why: format!("masked by {broken}"),
            masked_by: Some(broken.to_owned()),
        }
    }
}

impl Event {
    /// The call, if it is one of a hook.
    pub const fn hook(&self) -> Option<&HookCall> {
        match self {
            Self::Hook(call) => Some(call),
            Self::Exchange(_) | Self::Delivery(_) | Self::Passed(_) => None,
        }
    }
}

impl Evidence {
    /// The call of a hook that an event is.
    pub fn hook(&self, event: usize) -> Option<&HookCall> {
        self.events.get(event)?.hook()
    }

    /// The calls of hooks with their events.
    pub fn hooks(&self) -> impl Iterator<Item = (usize, &HookCall)> {
        let events = self.events.iter().enumerate();
        events.filter_map(|(index, event)| Some((index, event.hook()?)))
    }

    /// Exchanges as events, if there are no other events.
    pub fn in_order_of_their_ends(exchanges: &[Exchange]) -> Vec<Event> {
        let mut order: Vec<usize> = (0..exchanges.len()).collect();
        order.sort_by_key(|&index| exchanges[index].span.ended);
        order.into_iter().map(Event::Exchange).collect()
    }
}

impl Exchange {
    pub fn document(&self) -> Option<&Arc<Value>> {
        self.parsed().map(|(value, _)| value)
    }

    /// Irregularities of the response's text.
    pub fn notes(&self) -> &[Note] {
        self.parsed().map_or(&[], |(_, notes)| notes)
    }

    fn parsed(&self) -> Option<(&Arc<Value>, &[Note])> {
        match &self.outcome {
            Outcome::Answered {
                body: Body::Document { value, notes },
                ..
            } => Some((value, notes)),
            Outcome::Answered { .. } | Outcome::Fault { .. } => None,
        }
    }

    /// The response, if one came.
    pub fn response(&self) -> Option<&Response> {
        match &self.outcome {
            Outcome::Answered { response, .. } => Some(response),
            Outcome::Fault { .. } => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status)
    }

    /// Whether the service answered that it failed (5xx).
    pub fn is_server_error(&self) -> bool {
        self.status().is_some_and(|status| status >= 500)
    }
}
