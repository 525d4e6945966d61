//! Delivers callbacks over HTTP to receivers on this machine.
//!
//! Contacts no other machine: clients choose the addresses, and an offline tool must not call strangers.
//! Follows no redirect and keeps no connection.

use super::gate::is_of_this_machine;
use super::world::{Deliver, Outcome};
use crate::transport::{BaseUrl, Client, Fault, Limits};
use conformant_base::http::Cause;
use conformant_reference::Callback;
use std::time::Duration;
use url::Url;

/// Delivers with the timeout of the callback.
#[derive(Clone, Copy, Debug)]
pub struct HttpDelivery;

impl Deliver for HttpDelivery {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let base = match Url::parse(&callback.url) {
            Ok(url) if url.host_str().is_some_and(is_of_this_machine) => {
                url.origin().ascii_serialization()
            }
            Ok(_) | Err(_) => return Outcome::Unreachable,
        };
        let Ok(base) = BaseUrl::parse(&base) else {
            return Outcome::Unreachable;
        };
        let client = Client::new(Limits {
            connect: callback.timeout,
            timeout: callback.timeout,
            ..Limits::default()
        });
        match client.send(&base, &callback.request, callback.timeout) {
            Ok(response) => answered(response.status),
            Err(fault) => outcome_of(&fault),
        }
    }
}

/// The client enforces the timeout; shorter durations do not matter.
fn answered(status: u16) -> Outcome {
    Outcome::Answered {
        status,
        after: Duration::ZERO,
    }
}

fn outcome_of(fault: &Fault) -> Outcome {
    let is_silent = matches!(
        fault.cause,
        Cause::ConnectTimeout
            | Cause::WriteTimeout { .. }
            | Cause::FirstByteTimeout
            | Cause::HeadersTimeout
            | Cause::BodyTimeout { .. }
    );
    // A received status counts, even if the body is broken.
    let is_broken = matches!(
        fault.cause,
        Cause::Framing | Cause::BodyOverLimit(_) | Cause::Truncated
    );
    match fault.status {
        _ if is_silent => Outcome::Silent,
        Some(status) if is_broken => answered(status),
        Some(_) | None => Outcome::Unreachable,
    }
}
