//! Where the authentication service sends callbacks, and sending them.
//!
//! Delivery guarantees and signing are not shown (D1, Events): this implementation delivers once,
//! unsigned. What stands in a payload is the business of approvals and registrations.

use crate::http::Request;
use crate::reference::{Core, Variant};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a URL is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Approval request callbacks.
    Approval,
    /// `user_registration_completed` and `user_registration_failed`.
    Registration,
    /// Changes of a registered phone number; the events it reports are not shown (D1, Events), so
    /// nothing is ever sent.
    PhoneChange,
}

/// The URLs in the application's settings.
#[derive(Debug, Default)]
pub(super) struct Callbacks {
    urls: BTreeMap<Kind, String>,
}

impl Kind {
    /// The name in the `set_callback` hook; `events` belongs to the events part.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "approval" => Some(Self::Approval),
            "registration" => Some(Self::Registration),
            "phone_change" => Some(Self::PhoneChange),
            _ => None,
        }
    }
}

impl Callbacks {
    /// An empty URL ends the subscription.
    pub(super) fn set(&mut self, kind: Kind, url: &str) {
        if url.is_empty() {
            self.urls.remove(&kind);
        } else {
            self.urls.insert(kind, url.to_owned());
        }
    }

    pub(super) fn url(&self, kind: Kind) -> Option<&str> {
        self.urls.get(&kind).map(String::as_str)
    }
}

/// Queues one callback with a JSON body; with `GET` the body's texts stand in the query instead.
pub(super) fn send(core: &mut Core, method: &str, url: &str, body: &Value) {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let mut request = Request::new(method, "");
    let mut url = url.to_owned();
    if method == "GET" {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in body.as_object().into_iter().flatten() {
            if let Some(text) = value.as_str() {
                query.append_pair(name, text);
            }
        }
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&query.finish());
    } else {
        request.headers.set("Content-Type", "application/json");
        request.body = body.to_string().into_bytes();
    }
    let times = if core.varies(Variant::AuthCallbackTwice) {
        2
    } else {
        1
    };
    for _ in 0..times {
        core.send(&url, request.clone(), TIMEOUT, 0);
    }
}
