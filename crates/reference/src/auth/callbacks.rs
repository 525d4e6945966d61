//! Callback URLs of the authentication service, and sending callbacks.
//!
//! Delivery guarantees and signing are not shown (D1, Events): callbacks are sent once, unsigned. Approvals
//! and registrations define the payloads.

use crate::{Core, Variant};
use conformant_base::http::Request;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Approval request callbacks, in the words of the hook `set_callback`.
pub(super) const APPROVAL: &str = "approval";
/// `user_registration_completed` and `user_registration_failed`.
pub(super) const REGISTRATION: &str = "registration";
/// Changes of a registered phone number; the events it reports are not shown (D1, Events).
pub(super) const PHONE_CHANGE: &str = "phone_change";

/// The URLs in the application's settings by kind.
pub(super) type Callbacks = BTreeMap<&'static str, String>;

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
