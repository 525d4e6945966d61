//! Evidence: all that was observed in one story, as it was observed.
//!
//! Produced by the engine, a HAR file, a proxy or a payload file alike; holds no conclusion.

use super::reproduce::Shell;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Cause, Request, Response};
use conformant_base::json::Note;
use conformant_rulebook::expect::Expect;
use conformant_rulebook::scenario::Credentials;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A file that comes back may have so many bytes to be kept whole; of a larger one only the beginning is.
pub const FILE_BYTES_MAX: usize = 128 * 1024;

/// Of a larger answer only that much is kept beside the document that was read from it.
pub const BODY_EXCERPT_BYTES: usize = 64 * 1024;

/// What one story left behind, in the order it happened.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Scenario id; empty outside a run.
    pub scenario: String,
    /// Requests with what came of them.
    pub exchanges: Vec<Exchange>,
    /// What steps state about results, each with the result.
    pub statements: Vec<Statement>,
    /// Payloads that came in other ways: callbacks, collected events, files.
    pub payloads: Vec<Payload>,
    /// Walks over list pages.
    pub walks: Vec<Walk>,
    /// What the configuration says of each service, for rules that compare with it.
    pub configured: Value,
    /// The time on the target's clock when the last payload came, as far as it is known.
    pub now: Option<Timestamp>,
    /// Rules that this story would have judged had it got that far.
    pub missed: Vec<Missed>,
    /// All that happened, in the order in which it ended.
    pub events: Vec<Event>,
    /// Whether nobody else acts on the target meanwhile.
    pub alone: bool,
    /// Whether people and devices may have acted unseen: a recording shows requests alone.
    pub deeds_unseen: bool,
}

/// A rule that would have been judged, and why it was not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Missed {
    /// The rule.
    pub rule: String,
    /// Why, for a person.
    pub why: String,
    /// The rule that was broken, where that is why.
    pub masked_by: Option<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A request and what came of it: an index into the exchanges.
    Exchange(usize),
    /// A person or device did something.
    Hook(HookCall),
    /// A callback came.
    Delivery(Delivery),
    /// Time went by.
    Passed(Duration),
}

/// From when to when something took, on the target's clock as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub began: Timestamp,
    /// When it had ended for certain.
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
pub struct Via {
    /// Index of the exchange whose answer showed it.
    pub exchange: usize,
    /// Where it stood there.
    pub pointer: String,
}

/// What a person or device was asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookCall {
    /// The step, counted from 1.
    pub step: usize,
    /// The hook.
    pub name: String,
    /// What it was given.
    pub arguments: Value,
    /// What came of it, or why nothing did.
    pub result: Result<Arc<Value>, String>,
    /// When.
    pub span: Span,
    /// Set if it was called at the same time as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
}

/// A callback that came to one of the story's addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The step during which it came, counted from 1.
    pub step: usize,
    /// The name that the story gave the address.
    pub listener: String,
    /// Index of the event that named the address to the target: an exchange or a hook.
    pub subscription: Option<usize>,
    /// As it came; its target is `/` and the query.
    pub request: Request,
    /// What it carried, where that can be read.
    pub document: Option<Arc<Value>>,
    /// The status it was answered with.
    pub answered: u16,
    /// From the last moment at which it had not come to its arrival.
    pub span: Span,
}

/// One request and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// Step in the scenario, counted from 1.
    pub step: usize,
    /// The service.
    pub service: String,
    /// Operation id without the service; empty where none fits.
    pub operation: String,
    /// Documented parameters as sent; one that was left out is missing, a repeated one is a list.
    pub sent: BTreeMap<String, Value>,
    /// Which credentials it carried.
    pub credentials: Credentials,
    /// Base URL of the target, without the request's target.
    pub base: String,
    /// What was sent.
    pub request: Request,
    /// What came of it.
    pub outcome: Outcome,
    /// Who is accused when it is refused or accepted.
    pub expectation: Expectation,
    /// From when it was sent to when its answer was there.
    pub span: Span,
    /// The link it followed; nothing where the request was built from parameters.
    pub via: Option<Via>,
    /// Its place among the tries of a poll.
    pub poll: Poll,
    /// How a person's shell spells what was configured.
    pub shell: Arc<Shell>,
    /// Whether a person or step broke the ground for it: its failure accuses nobody.
    pub setup: bool,
    /// Set if it was sent at the same time as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
}

/// The place of a request among the tries of one that is sent until its answer shows something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    /// It is sent once, whatever it shows.
    #[default]
    Once,
    /// A try that did not show yet what was waited for.
    Attempt,
    /// The try that showed it, or the last one: else it would have been sent again.
    Last,
}

/// What came of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Kept")]
pub enum Outcome {
    /// An answer, with its body as far as it can be read.
    Answered {
        /// As received.
        response: Response,
        /// The body as a document.
        body: Body,
    },
    /// No answer that HTTP can make sense of.
    Fault {
        /// The stable word.
        cause: Cause,
        /// For a person.
        detail: String,
        /// What had come of an answer: its status, where its head was there, and the beginning of its body.
        partial: Option<Box<Response>>,
    },
}

/// A body as a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// No bytes.
    Empty,
    /// JSON, or XML brought into the same shape, with what was odd about it.
    Document {
        /// The document.
        value: Arc<Value>,
        /// Oddities that are no failure to read: a duplicate key, a byte-order mark.
        notes: Vec<Note>,
    },
    /// Bytes that are not what they should be, and why.
    Unreadable(String),
}

/// Who is accused when a request is refused or accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// Refusal breaks this rule.
    Accepted(String),
    /// Acceptance breaks this rule.
    Rejected(String),
    /// Both will do.
    Either,
}

/// What a step states about a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statement {
    /// The statement, interpolated.
    pub expect: Expect,
    /// What it is about.
    pub result: Arc<Value>,
    /// The step, counted from 1.
    pub step: usize,
    /// Index into `exchanges` of the exchange that brought the result.
    pub exchange: Option<usize>,
}

/// A payload that did not come as an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    /// What it is judged as.
    pub kind: String,
    /// The document.
    pub value: Arc<Value>,
    /// What was odd about its text, where it came as one.
    pub notes: Vec<Note>,
    /// The step, counted from 1; for a file the line.
    pub step: usize,
}

/// One walk over the pages of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Walk {
    /// The service.
    pub service: String,
    /// The list operation.
    pub operation: String,
    /// Indexes into `exchanges`, page by page.
    pub pages: Vec<usize>,
    /// How it ended.
    pub end: WalkEnd,
    /// Others added to the list meanwhile, so that an item may stand on two pages in a row.
    pub moved: bool,
    /// The step, counted from 1.
    pub step: usize,
}

/// How a walk ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WalkEnd {
    /// A page without a further one.
    Complete,
    /// A page that was seen before, or nothing but empty ones: why it does not end.
    Endless(String),
    /// Longer than a walk may be; whether it ends is not known, and why it was left.
    Cut(String),
    /// A link that must not be followed, and why.
    Unfollowable(String),
    /// A page could not be had, and why; judged as an exchange.
    Broken(String),
}

/// An outcome as files keep it: a document is left out where the body is there to be read again.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kept<'o> {
    Answered {
        response: Cow<'o, Response>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Cow<'o, Body>>,
    },
    Fault {
        cause: Cow<'o, Cause>,
        detail: Cow<'o, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<Cow<'o, Response>>,
    },
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Answered { response, body } => Kept::Answered {
                response: Cow::Borrowed(response),
                body: (response.body.len() >= BODY_EXCERPT_BYTES).then_some(Cow::Borrowed(body)),
            },
            Self::Fault {
                cause,
                detail,
                partial,
            } => Kept::Fault {
                cause: Cow::Borrowed(cause),
                detail: detail.into(),
                partial: partial.as_deref().map(Cow::Borrowed),
            },
        }
        .serialize(to)
    }
}

impl From<Kept<'_>> for Outcome {
    /// A body that was left out stands as none until it is read.
    fn from(kept: Kept<'_>) -> Self {
        match kept {
            Kept::Answered { response, body } => Self::Answered {
                response: response.into_owned(),
                body: body.map_or(Body::Empty, Cow::into_owned),
            },
            Kept::Fault {
                cause,
                detail,
                partial,
            } => Self::Fault {
                cause: cause.into_owned(),
                detail: detail.into_owned(),
                partial: partial.map(|partial| Box::new(partial.into_owned())),
            },
        }
    }
}

impl Outcome {
    /// Nothing came of it yet.
    pub const fn none() -> Self {
        Self::Fault {
            cause: Cause::Unsent,
            detail: String::new(),
            partial: None,
        }
    }
}

impl Span {
    /// A span of which nothing is known: before and after nothing.
    pub const UNKNOWN: Self = Self {
        began: Timestamp::MIN,
        ended: Timestamp::MAX,
    };

    /// No time at all.
    pub const fn at(instant: Timestamp) -> Self {
        Self {
            began: instant,
            ended: instant,
        }
    }

    /// Whether this had ended when the other began. Of two that overlap, neither is before the other.
    pub fn is_before(&self, other: &Self) -> bool {
        self.ended <= other.began
    }
}

impl Missed {
    /// A rule that was not judged for that reason.
    pub fn because(rule: &str, why: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            why: why.into(),
            masked_by: None,
        }
    }

    /// A rule that was not judged because another one was broken.
    pub fn behind(rule: &str, broken: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            why: format!("masked by {broken}"),
            masked_by: Some(broken.to_owned()),
        }
    }
}

impl Evidence {
    /// Exchanges as events, where they are all that happened.
    pub fn in_order_of_their_ends(exchanges: &[Exchange]) -> Vec<Event> {
        let mut order: Vec<usize> = (0..exchanges.len()).collect();
        order.sort_by_key(|&index| exchanges[index].span.ended);
        order.into_iter().map(Event::Exchange).collect()
    }
}

impl Exchange {
    /// The answer's document, where there is one.
    pub fn document(&self) -> Option<&Arc<Value>> {
        match &self.outcome {
            Outcome::Answered {
                body: Body::Document { value, .. },
                ..
            } => Some(value),
            Outcome::Answered { .. } | Outcome::Fault { .. } => None,
        }
    }

    /// What was odd about the answer's document: duplicate keys, a byte order mark.
    pub fn notes(&self) -> &[Note] {
        match &self.outcome {
            Outcome::Answered {
                body: Body::Document { notes, .. },
                ..
            } => notes,
            Outcome::Answered { .. } | Outcome::Fault { .. } => &[],
        }
    }

    /// The status code, where there is an answer.
    pub fn status(&self) -> Option<u16> {
        match &self.outcome {
            Outcome::Answered { response, .. } => Some(response.status),
            Outcome::Fault { .. } => None,
        }
    }
}
