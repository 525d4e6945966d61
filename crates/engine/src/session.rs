//! A session: the world that one scenario talks to. In process, behind the offline server, or a
//! live target: the runner cannot tell them apart.

use super::race::{Acted, Action, act_in_turn};
use super::settings::Settings;
use super::stop::Stop;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Cause, Request, Response};
use conformant_base::json::ParseFault;
use conformant_net::transport::{Sink, UrlError};
use conformant_record::Spent;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Why a hook brought no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookFault {
    /// It says that the target has nothing of the kind.
    #[error("it says that this is not supported")]
    Unsupported,
    /// What it answered is no result.
    #[error("its result is not JSON: {0}")]
    NoResult(#[from] ParseFault),
    /// It did not do what it is there for.
    #[error("{0}")]
    Failed(String),
}

/// Why a story has no world to be told in; completes "failed to …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("open the world at {url}: {source}")]
pub struct OpenError {
    /// Where it should be.
    pub url: String,
    /// Why nothing can be there.
    pub source: UrlError,
}

impl Stop {
    /// What a hook that brought no result means for the story.
    pub(super) fn of_hook(name: &str, fault: &HookFault) -> Self {
        match fault {
            HookFault::Unsupported => Self::NotApplicable(format!("hook {name}: {fault}")),
            HookFault::NoResult(_) | HookFault::Failed(_) => {
                Self::HookFailed(format!("hook {name} failed: {fault}"))
            }
        }
    }
}

/// What a scenario can do to the world.
pub trait Session {
    /// Targets as this session reaches them.
    fn settings(&self) -> &Settings;

    /// Sends a request to a service; its target is the path behind the service's base URL.
    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault>;

    /// Gets what lies at another origin than the service's own.
    fn get_elsewhere(&self, origin: &str, _request: &Request) -> Result<Response, SendFault> {
        Err(SendFault {
            cause: Cause::Redirect,
            detail: format!("nothing lies at {origin} here"),
            partial: None,
        })
    }

    /// Whether a hook of that name is there.
    fn has_hook(&self, name: &str) -> bool;

    /// Has a person or device do something.
    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, HookFault>;

    /// Does several things at the same time; results are in the order of the actions. An error means that nothing was
    /// completed and all may be tried again.
    fn act_concurrently(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        Ok(act_in_turn(self, actions))
    }

    /// Lets time pass, really or virtually.
    fn wait(&self, duration: Duration);

    /// Waits before it is looked again whether the target has done its work, which takes it real time.
    fn wait_between_looks(&self, duration: Duration) {
        self.wait(duration);
    }

    /// The time on the target's clock, as far as it is known.
    fn now(&self) -> Timestamp;

    /// Notes what was answered to a request with the configured credentials.
    fn answered(&self, _service: &str, _operation: &str, _status: u16) {}

    /// Whether nobody else acts on this world.
    fn is_alone(&self) -> bool {
        false
    }

    /// Where callbacks arrive.
    fn callbacks(&self) -> Option<&Callbacks>;

    /// How long a callback is waited for where the scenario says `declared`.
    fn callback_max(&self, declared: Duration) -> Duration {
        declared
    }

    /// How long silence is listened to where the scenario says `declared`.
    fn silence(&self, declared: Duration) -> Duration {
        declared
    }

    /// Notes how long a callback took to come.
    fn callback_took(&self, _time: Duration) {}

    /// Whether time passes here although nobody waits for it, and others use the target too.
    fn is_live(&self) -> bool {
        false
    }

    /// Whether callbacks that others asked for come to this story's addresses too.
    fn address_is_common(&self) -> bool {
        false
    }

    /// Whether another run may have led callbacks that this story asked for to itself.
    fn address_may_be_taken(&self) -> bool {
        false
    }

    /// Why nobody can be reached any more who could call back; nothing where somebody can.
    fn is_gone(&self, _service: &str) -> Option<SendFault> {
        None
    }

    /// How long the story took that began then.
    fn seconds_since(&self, began: Timestamp) -> f64 {
        self.now().duration_since(began).as_secs_f64()
    }

    /// The telephone number that this story alone has meanwhile.
    fn person(&self) -> Option<String> {
        None
    }

    /// Whether other stories may speak of that person meanwhile.
    fn shares_person(&self) -> bool {
        false
    }

    /// Notes that somebody was refused because of being in the flow already.
    fn person_is_busy(&self) {}

    /// Notes a holder of an exclusive value that this scenario made, and the path that shows it.
    fn made_holder(&self, _scope: &str, _holder: &str, _path: &str) {}

    /// Whether others may have made that holder and still need it.
    fn may_be_anothers(&self, _holder: &str) -> bool {
        false
    }

    /// A service that refused a request of the story with 401 or 403, and has let in nobody yet.
    fn turned_away(&self) -> Option<String> {
        None
    }

    /// What the story waited for so far, in real time; nothing where time is virtual.
    fn waited(&self) -> Spent {
        Spent::default()
    }

    /// Lets time pass while callbacks are listened for.
    fn listen(&self, duration: Duration) {
        self.wait(duration);
    }

    /// Why what was told is not what the target would have done: a request was lost on its way.
    fn cut_off(&self) -> Option<String> {
        None
    }

    /// What somebody else did to the target while the story was told that makes it void.
    fn disturbed(&self) -> Option<String> {
        None
    }

    /// Changes a payload of that kind before it is judged: generated faults only.
    fn mangle_payload(&self, _kind: &str, _document: &mut Value) {}
}

/// The harness's own receiver of callbacks, as one scenario uses it.
#[derive(Clone, Debug)]
pub struct Callbacks {
    /// Records callbacks and answers them.
    pub sink: Arc<Sink>,
    /// Keeps the names of scenarios apart where they share a sink.
    pub prefix: String,
}

impl Callbacks {
    /// The sink's name for an address that the scenario calls `name`.
    pub(super) fn name_of(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendFault {
    /// The stable word.
    pub cause: Cause,
    /// For a person.
    pub detail: String,
    /// What had come of an answer: its status, 0 where it is not known, and the beginning of its body.
    pub partial: Option<Box<Response>>,
}

impl From<&conformant_net::transport::Fault> for SendFault {
    fn from(fault: &conformant_net::transport::Fault) -> Self {
        Self {
            cause: fault.cause.clone(),
            detail: fault.detail.clone(),
            partial: (fault.status.is_some() || !fault.partial.is_empty()).then(|| {
                Box::new(Response {
                    status: fault.status.unwrap_or_default(),
                    body: fault.partial.clone(),
                    ..Response::default()
                })
            }),
        }
    }
}
