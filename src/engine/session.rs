//! A session: the world that one scenario talks to. In process, behind the offline server, or a
//! live target: the runner cannot tell them apart.

use super::settings::Settings;
use crate::clock::Timestamp;
use crate::http::{Request, Response};
use crate::transport::Sink;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a scenario can do to the world.
pub trait Session {
    /// Targets as this session reaches them.
    fn settings(&self) -> &Settings;

    /// Sends a request to a service; its target is the path behind the service's base URL.
    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault>;

    /// Whether a hook of that name is there.
    fn has_hook(&self, name: &str) -> bool;

    /// Has a person or device do something.
    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, String>;

    /// Lets time pass, really or virtually.
    fn wait(&self, duration: Duration);

    /// The time on the target's clock, as far as it is known.
    fn now(&self) -> Timestamp;

    /// Whether nobody else acts on this world.
    fn is_alone(&self) -> bool {
        false
    }

    /// Where callbacks arrive.
    fn callbacks(&self) -> Option<&Callbacks>;

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
    /// Stable word: `refused`, `timeout(headers)`, …
    pub cause: String,
    /// For a person.
    pub detail: String,
    /// True when the target could not be reached at all.
    pub unreachable: bool,
}

impl From<&crate::transport::Fault> for SendFault {
    fn from(fault: &crate::transport::Fault) -> Self {
        Self {
            cause: fault.cause.to_string(),
            detail: fault.detail.clone(),
            unreachable: fault.is_unreachable(),
        }
    }
}
