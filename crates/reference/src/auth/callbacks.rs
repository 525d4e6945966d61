//! Callback URLs of the authentication service, and sending callbacks.
//!
//! Delivery guarantees and signing are not shown (D1, Events): callbacks are sent once, unsigned. Approvals
//! and registrations define the payloads.

use crate::{Core, Variant};
use conformant_base::http::Request;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Subscription of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Approval request callbacks.
    Approval,
    /// `user_registration_completed` and `user_registration_failed`.
    Registration,
    /// Changes of a registered phone number; the events it reports are not shown (D1, Events).
    PhoneChange,
}

/// The URLs in the application's settings.
#[derive(Clone, Debug, Default)]
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

/// Queues one callback with a JSON body; `GET` puts the strings into the query.
pub(super) fn send(core: &mut Core, method: &str, url: &str, body: &Value) {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let mut request = Request::new(method, "");
    let mut url = url.to_owned();
    if method == "GET" {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&texts_as_form(body));
    } else if body.get("params").is_none() && core.varies(Variant::AuthCallbackForm) {
        request
            .headers
            .set("Content-Type", "application/x-www-form-urlencoded");
        request.body = texts_as_form(body).into_bytes();
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

/// The strings of an object in form encoding.
fn texts_as_form(body: &Value) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in body.as_object().into_iter().flatten() {
        if let Some(text) = value.as_str() {
            form.append_pair(name, text);
        }
    }
    form.finish()
}
