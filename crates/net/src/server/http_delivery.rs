//! Delivers callbacks over HTTP to receivers on this machine.
//!
//! Contacts no other machine: clients choose the addresses, and an offline tool must not call strangers.
//! Follows no redirect and keeps no connection.

use super::world::{Deliver, Outcome};
use crate::transport::{BaseUrl, Client, Fault, Limits};
use conformant_base::http::Cause;
use conformant_reference::Callback;
use std::time::Duration;
use url::{Host, Url};

/// Delivers with the timeout of the callback.
#[derive(Clone, Copy, Debug)]
pub struct HttpDelivery;

impl Deliver for HttpDelivery {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let base = match Url::parse(&callback.url) {
            Ok(url) if is_on_this_machine(&url) => url.origin().ascii_serialization(),
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
    match fault.cause {
        Cause::ConnectTimeout
        | Cause::WriteTimeout { .. }
        | Cause::FirstByteTimeout
        | Cause::HeadersTimeout
        | Cause::BodyTimeout { .. } => Outcome::Silent,
        // A received status counts, even if the body is broken.
        Cause::Framing | Cause::BodyOverLimit(_) | Cause::Truncated => {
            fault.status.map_or(Outcome::Unreachable, answered)
        }
        Cause::Unsendable
        | Cause::Unresolved
        | Cause::Refused
        | Cause::Unreachable
        | Cause::Tls
        | Cause::Reset
        | Cause::EmptyResponse
        | Cause::NotHttp
        | Cause::MalformedHead
        | Cause::HeadOverLimit
        | Cause::InterimOverLimit
        | Cause::Interrupted
        | Cause::Unsent
        | Cause::Redirect
        | Cause::EvidenceOverLimit(_)
        | Cause::NotRecorded
        | Cause::Unknown(_) => Outcome::Unreachable,
    }
}

fn is_on_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_contacted() {
        let check = |url: &str, here: bool| {
            let url = Url::parse(url).unwrap();
            assert_eq!(is_on_this_machine(&url), here, "{url}");
        };
        for url in [
            "http://127.0.0.1:80/x",
            "http://localhost",
            "http://[::1]:1/",
            "http://127.9.9.9",
        ] {
            check(url, true);
        }
        for url in [
            "http://127.0.0.1.example.org/",
            "http://localhost@example.org/",
            "http://10.0.0.1/",
            "http://0.0.0.0/",
            "mailto:ada@example.org",
        ] {
            check(url, false);
        }
    }
}
