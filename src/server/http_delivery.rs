//! Delivers callbacks over HTTP to receivers on this machine.
//!
//! Contacts nobody else: the addresses come from clients, and an offline tool must not be talked
//! into calling strangers. Follows no redirect, uses no proxy, reads no body.

use super::world::{Deliver, Outcome};
use crate::reference::Callback;
use std::time::Duration;
use ureq::http::Request;
use url::{Host, Url};

/// Delivery with the callback's real time-out.
#[derive(Clone, Copy, Debug)]
pub struct HttpDelivery;

impl Deliver for HttpDelivery {
    fn deliver(&self, callback: &Callback) -> Outcome {
        if !is_on_this_machine(&callback.url) {
            return Outcome::Unreachable;
        }
        match send(callback) {
            // The client has seen to the time-out; how long it took is nobody's concern here.
            Ok(response) => Outcome::Answered {
                status: response.status().as_u16(),
                after: Duration::ZERO,
            },
            Err(ureq::Error::Timeout(_)) => Outcome::Silent,
            Err(_) => Outcome::Unreachable,
        }
    }
}

fn send(callback: &Callback) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .timeout_global(Some(callback.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .build(),
    );
    let mut request = Request::builder()
        .method(callback.request.method.as_str())
        .uri(&callback.url);
    for (name, value) in callback.request.headers.iter() {
        request = request.header(name, value);
    }
    let body = callback.request.body.as_slice();
    if body.is_empty() && callback.request.method == "GET" {
        agent.run(request.body(())?)
    } else {
        agent.run(request.body(body)?)
    }
}

fn is_on_this_machine(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
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
        let check = |url: &str, here: bool| assert_eq!(is_on_this_machine(url), here, "{url}");
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
            "nonsense",
            "",
        ] {
            check(url, false);
        }
    }
}
