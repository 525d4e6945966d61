//! Concurrent actions of a session and their results.

use super::{HookFault, SendFault, Session};
use conformant_base::http::{Request, Response};
use serde_json::Value;
use std::time::Duration;

/// One of several concurrent actions.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    /// A request to a service; its target is the path below the service's base URL.
    Request {
        service: &'a str,
        request: &'a Request,
    },
    /// An action of a person or device.
    Hook { name: &'a str, arguments: &'a Value },
}

/// The result of an action, with two instants on the clock of the race.
#[derive(Debug)]
pub struct Acted {
    pub result: ActionResult,
    /// When the last byte of the request was sent.
    pub sent: Duration,
    /// When the first byte of the response was received.
    pub received: Duration,
}

/// The result of an action.
#[derive(Debug)]
pub enum ActionResult {
    Response(Result<Response, SendFault>),
    Hook(Result<Value, HookFault>),
}

/// Executes actions one after another, for sessions without concurrency.
pub(crate) fn act_in_turn<S: Session + ?Sized>(session: &S, actions: &[Action<'_>]) -> Vec<Acted> {
    let act = |(place, action): (u64, &Action<'_>)| Acted {
        result: match action {
            Action::Request { service, request } => {
                ActionResult::Response(session.send(service, request))
            }
            Action::Hook { name, arguments } => ActionResult::Hook(session.hook(name, arguments)),
        },
        sent: Duration::from_micros(2 * place),
        received: Duration::from_micros(2 * place + 1),
    };
    (0..).zip(actions).map(act).collect()
}
