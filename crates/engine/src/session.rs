//! Session: the interface of one scenario to its target.
//!
//! The target is in process, behind the offline server, or live. The runner does not know which.

pub mod race;

use super::settings::Settings;
use super::stop::Stop;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Cause, Request, Response};
use conformant_base::json::ParseFault;
use conformant_net::transport::{Sink, UrlError};
use conformant_record::Spent;
use conformant_rulebook::scenario::Credentials;
use race::{Acted, Action, act_in_turn};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Why a hook returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookFault {
    /// The hook reports that the target does not support the action.
    #[error("it reports that this is not supported")]
    Unsupported,
    /// The answer is not a JSON result.
    #[error("its result is not JSON: {}; got {came}", why_not_json(.fault))]
    NoResult {
        fault: ParseFault,
        /// The beginning of the answer.
        came: String,
    },
    /// The hook failed.
    #[error("{0}")]
    Failed(String),
}

fn why_not_json(fault: &ParseFault) -> String {
    let why = fault.to_string();
    why.strip_prefix("not JSON: ").unwrap_or(&why).to_owned()
}

/// A resource that holds a value of the exclusive setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The resource that it was made in.
    pub scope: String,
    pub key: String,
    pub value: String,
    /// The path that shows it.
    pub path: String,
}

/// Why no session could be opened; completes "failed to …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("open a session at {url}: {source}")]
pub struct OpenError {
    /// Its URL.
    pub url: String,
    /// Why the URL is invalid.
    pub source: UrlError,
}

impl Stop {
    /// The effect of a hook failure on the scenario.
    pub(super) fn of_hook(name: &str, fault: &HookFault) -> Self {
        match fault {
            HookFault::Unsupported => Self::NotApplicable(format!("hook {name}: {fault}")),
            HookFault::NoResult { .. } | HookFault::Failed(_) => {
                Self::HookFailed(format!("hook {name} failed: {fault}"))
            }
        }
    }
}

/// The actions that a scenario can take.
pub trait Session {
    /// The targets as this session reaches them.
    fn settings(&self) -> &Settings;

    /// Sends a request to a service. Its target is the path below the service's base URL.
    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault>;

    /// Gets content from another origin than the service's.
    fn get_elsewhere(&self, origin: &str, _request: &Request) -> Result<Response, SendFault> {
        let why = format!("there is no content at {origin} here");
        Err(SendFault::new(Cause::Redirect, why))
    }

    /// Whether a hook of that name is available.
    fn has_hook(&self, name: &str) -> bool;

    /// Triggers the action of a person or device.
    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, HookFault>;

    /// Executes several actions at the same time; results are in the order of the actions. An error means that nothing was
    /// completed and all may be tried again.
    fn act_concurrently(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        Ok(act_in_turn(self, actions))
    }

    /// Lets time pass, really or virtually.
    fn wait(&self, duration: Duration);

    /// Waits before a poll is repeated. The target needs real time for its work.
    fn wait_between_polls(&self, duration: Duration) {
        self.wait(duration);
    }

    /// Whether this session moved the target's clock, so that less real time has passed than the target's time shows.
    fn has_moved_the_clock(&self) -> bool {
        false
    }

    /// Whether a hook was to move the target's clock and did not report the time, so that its effect is unknown.
    fn has_moved_the_clock_unseen(&self) -> bool {
        false
    }

    /// The time on the target's clock, as far as it is known.
    fn now(&self) -> Timestamp;

    /// Records an answer of a service.
    fn answered(
        &self,
        _service: &str,
        _operation: &str,
        _credentials: Credentials,
        _answer: &Response,
    ) {
    }

    /// Whether the last request was in flight together with another one of this run. If so, requests are sent one after
    /// the other from now on.
    fn avoid_overlap(&self) -> bool {
        false
    }

    /// Whether this session is the only client of the target.
    fn is_alone(&self) -> bool {
        false
    }

    /// The receiver of callbacks.
    fn callbacks(&self) -> Option<&Callbacks>;

    /// How long to wait for a callback that these rules demand, where the scenario states `declared`.
    fn callback_max(&self, declared: Duration, _rules: &[&str]) -> Duration {
        declared
    }

    /// How long to listen where the scenario states that no callback comes within `declared`, at least `least`.
    fn silence(&self, declared: Duration, _least: Duration) -> Duration {
        declared
    }

    /// Records how long a callback took to arrive.
    fn callback_took(&self, _time: Duration) {}

    /// Whether time passes by itself and other clients may use the target.
    fn is_live(&self) -> bool {
        false
    }

    /// Whether callbacks of other scenarios also arrive at this scenario's addresses.
    fn address_is_shared(&self) -> bool {
        false
    }

    /// Records that a callback that these rules demand did not come.
    fn callback_missing(&self, _rules: &[String]) {}

    /// Records which of these rules the callbacks satisfied after a wait: all but the unmet ones.
    fn callbacks_came(&self, _rules: &[&str], _unmet: &[String]) {}

    /// This attempt checks whether a callback is missing again: shortens the wait for it, because the attempt before waited for
    /// the whole time.
    fn confirm_missing_callback(&self) {}

    /// Whether an expected callback did not come.
    fn has_missed_callback(&self) -> bool {
        false
    }

    /// Whether another run may have redirected this scenario's callbacks to itself.
    fn address_may_be_overwritten(&self) -> bool {
        false
    }

    /// Why the scenario cannot run: it needs a resource of the target that it did not get.
    fn withheld(&self) -> Option<Stop> {
        None
    }

    /// Why findings about these services are unreliable: one that this run uses stopped answering. Waits until that is known.
    fn lost(&self, _services: &[&str]) -> Option<String> {
        None
    }

    /// Why no callback can come any more, if the service is unreachable.
    fn reachability_fault(&self, _service: &str) -> Option<SendFault> {
        None
    }

    /// How long the scenario took that began at this time.
    fn seconds_since(&self, began: Timestamp) -> f64 {
        self.now().duration_since(began).as_secs_f64()
    }

    /// The phone number that is assigned to this scenario.
    fn phone_number(&self) -> Option<String> {
        None
    }

    /// Whether this scenario uses a phone number that others may use at the same time.
    fn shares_phone_number(&self, _number: &str) -> bool {
        false
    }

    /// Whether a phone number has one holder at a time at this target.
    fn are_phone_numbers_exclusive(&self) -> bool {
        false
    }

    /// Records that a phone number has one holder at a time at this target.
    fn make_phone_numbers_exclusive(&self) {}

    /// Records a holder of an exclusive value that this scenario made.
    fn record_holder(&self, _holder: Holder) {}

    /// The holders of a value that this run made and did not end.
    fn made_holders(&self, _value: &str) -> Vec<Holder> {
        Vec::new()
    }

    /// Whether this run made a holder of the value in another scope, and this scenario does not need it.
    fn is_held_elsewhere(&self, _value: &str, _scope: &str) -> bool {
        false
    }

    /// Whether another scenario may have made that holder and still needs it.
    fn is_held_by_a_sibling(&self, _holder: &str) -> bool {
        false
    }

    /// Whether another run may need a holder.
    fn may_be_needed_elsewhere(&self, _holder: &str) -> bool {
        false
    }

    /// Notes that a service rejected the credentials of the second account where they must be accepted.
    fn note_rejected_account(&self, _service: &str) {}

    /// A service that answered this scenario with 401 or 403, or as if it was elsewhere, and no request otherwise yet.
    fn turned_away(&self) -> Option<String> {
        None
    }

    /// What the scenario waited for so far, in real time; zero where time is virtual.
    fn waited(&self) -> Spent {
        Spent::default()
    }

    /// Lets time pass while callbacks can arrive.
    fn listen(&self, duration: Duration) {
        self.wait(duration);
    }

    /// Why the evidence is unreliable: a request was lost on its way.
    fn cut_off(&self) -> Option<String> {
        None
    }

    /// What another client did to the target that invalidates this scenario.
    fn disturbed(&self) -> Option<String> {
        None
    }

    /// Changes a payload of that kind before it is judged. For generated faults only.
    fn mutate_payload(&self, _kind: &str, _document: &mut Value) {}
}

/// The callback receiver, as one scenario uses it.
#[derive(Clone, Debug)]
pub struct Callbacks {
    /// Records callbacks and answers them.
    pub sink: Arc<Sink>,
    /// Distinguishes the addresses of scenarios that share a sink.
    pub prefix: String,
}

impl Callbacks {
    /// The sink's name of the scenario's address `name`.
    pub(super) fn name_of(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {detail}")]
pub struct SendFault {
    /// The stable name of the cause.
    pub cause: Cause,
    /// Explanation for people.
    pub detail: String,
    /// What had arrived of an answer: its status, or 0, and the beginning of its body.
    pub partial: Option<Box<Response>>,
}

impl SendFault {
    /// One without any part of an answer.
    pub fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: detail.into(),
            partial: None,
        }
    }
}

impl From<conformant_net::transport::Fault> for SendFault {
    fn from(fault: conformant_net::transport::Fault) -> Self {
        let has_part = fault.status.is_some() || !fault.partial.is_empty();
        let part = Response {
            status: fault.status.unwrap_or_default(),
            body: fault.partial,
            ..Response::default()
        };
        Self {
            cause: fault.cause,
            detail: fault.detail,
            partial: has_part.then(|| Box::new(part)),
        }
    }
}
