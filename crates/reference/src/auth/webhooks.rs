//! Registration webhooks: `user_registration_completed` and `user_registration_failed` (D1, Registration
//! webhook payload shape).

use super::application;
use super::callbacks::{self, APPROVAL, Callbacks, REGISTRATION};
use super::users::{User, record_id};
use crate::effects::Operation;
use crate::{Core, Fault};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Address of the scanning device; only its hash is sent.
const SCANNER_IP: &str = "192.0.2.17";
/// Code of every failed registration: the document's only sample.
const FAILED_CODE: &str = "60000";

/// Result of a registration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    Completed {
        user: &'a User,
        /// The previously registered user.
        before: Option<&'a User>,
        custom_user_id: &'a str,
    },
    Failed,
}

/// Sends the result of a registration to the subscribed URL, if any.
pub(super) fn send(core: &mut Core, callbacks: &Callbacks, outcome: Outcome<'_>) {
    let is_lost = core.fails(match outcome {
        Outcome::Completed { .. } => Fault::AuthCompletedWebhookMissing,
        Outcome::Failed => Fault::AuthFailedWebhookMissing,
    });
    let approval = callbacks.get(APPROVAL);
    let approval = approval.filter(|_| core.fails(Fault::AuthWebhookToApprovalUrl));
    let url = approval.or(callbacks.get(REGISTRATION));
    let Some(url) = url.filter(|_| !is_lost) else {
        return;
    };
    let event = event(core, outcome);
    let body = json!({
        "method": "POST",
        "url": url,
        "params": {"webhook_id": format!("WH_{}", hashed(url)), "events": [event]},
    });
    let body = core
        .with_effects(&Operation::callback("registration-webhook"), &body)
        .into_owned();
    let method = if core.fails(Fault::AuthWebhookIsGet) {
        "GET"
    } else {
        "POST"
    };
    callbacks::send(core, method, url, &body);
}

fn event(core: &mut Core, outcome: Outcome<'_>) -> Value {
    let app = json!({
        "b_custom_code_allowed": false,
        "b_custom_message_allowed": true,
        "s_account_sid": core.account_sid,
        "s_device_app": null,
        "s_errors": "{}",
        "s_id": application::RECORD,
        "s_name": application::NAME,
        "s_type": null,
    });
    let (name, objects) = match outcome {
        Outcome::Completed {
            user,
            before,
            custom_user_id,
        } => {
            let registration = json!({
                "s_app_id": application::ID,
                "s_auth_id": user.auth_id,
                "s_custom_id": custom_user_id,
            });
            let before = before.filter(|before| {
                before.auth_id != user.auth_id && core.fails(Fault::AuthWebhookUserOfBefore)
            });
            let user = person(core, before.unwrap_or(user));
            let objects = json!({"app": app, "registration": registration, "user": user});
            ("user_registration_completed", objects)
        }
        Outcome::Failed => {
            let error = json!({"s_code": FAILED_CODE});
            let objects = json!({"app": app, "error": error});
            ("user_registration_failed", objects)
        }
    };
    json!({
        "event": name,
        "time": core.date(core.now),
        "objects": objects,
        "request": {"id": record_id(core), "ip": hashed(SCANNER_IP)},
        "public": true,
    })
}

fn person(core: &Core, user: &User) -> Value {
    let phone_number = if core.fails(Fault::AuthWebhookPhoneInClear) {
        user.phone.digits.clone()
    } else {
        hashed(&user.phone.digits)
    };
    json!({
        "as_auth_ids": [user.auth_id.to_string()],
        "b_banned": false,
        "s_auth_id": user.auth_id.to_string(),
        "s_country_code": user.phone.country_code.to_string(),
        "s_errors": "{}",
        "s_locale": "en",
        "s_phone_number": phone_number,
    })
}

/// SHA-256 in Base64.
fn hashed(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(text))
}
