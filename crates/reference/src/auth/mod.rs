//! The authentication service (D1, part B): users, registration without personal data, approval requests,
//! webhooks.
//!
//! Routes requests and hooks. All paths are documented except `/protected/{FORMAT}/users/{AUTH_ID}/status`.

mod answer;
pub mod application;
mod approvals;
mod callbacks;
mod device;
mod input;
mod overview;
mod parameters;
mod registrations;
mod token;
mod users;
mod webhooks;
mod xml;

use self::answer::{Failure, render};
use self::approvals::{Approvals, Reaction};
use self::callbacks::{APPROVAL, Callbacks, PHONE_CHANGE, REGISTRATION};
use self::registrations::Registrations;
use self::token::Refused;
use self::users::{Phone, Users};
use self::webhooks::Outcome;
use super::{Answer, Call, Control, Core, Done, Fault, Refusal, Variant, hook, text_arg};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub struct Auth {
    users: Users,
    registrations: Registrations,
    approvals: Approvals,
    callbacks: Callbacks,
    /// QR strings that have completed a registration.
    scanned: BTreeSet<String>,
    /// Number of failed registrations.
    failures: u64,
    /// Number of completed registrations.
    completions: u64,
    /// Number of changes of a phone number.
    phone_changes: u64,
}

impl Auth {
    pub(super) fn handle(&mut self, core: &mut Core, call: &Call<'_>) -> Answer {
        if !matches!(call.path.get(1).map(String::as_str), Some("json" | "xml")) {
            return Err(Refusal::not_found());
        }
        self.approvals.call_back_expired(core, &self.callbacks);
        let answer = authorise(core, call).and_then(|()| self.route(core, call));
        let is_new = call.request.method == "POST";
        Ok(render(core, is_new, answer))
    }

    fn route(&mut self, core: &mut Core, call: &Call<'_>) -> Result<Value, Failure> {
        let (method, path) = call.route();
        match (method, path.as_slice()) {
            ("POST", ["protected", _, "users", "new"]) => self.users.create(core, call),
            ("GET", ["protected", _, "users", auth_id, "status"]) => {
                let has_scan = self.registrations.any_completed().is_some();
                self.users.status(core, auth_id, has_scan)
            }
            ("GET", ["protected", _, "registrations", "status"]) => {
                self.registrations.status(core, call)
            }
            ("POST", ["onetouch", _, "users", auth_id, "approval_requests"]) => {
                let user = auth_id
                    .parse()
                    .ok()
                    .and_then(|auth_id| self.users.find(auth_id));
                let user = user
                    .filter(|u| !(u.emails.is_empty() && core.fails(Fault::AuthScannerNotAsked)));
                let user = user.cloned().ok_or_else(Failure::not_found)?;
                self.approvals.create(core, call, user)
            }
            ("GET", ["onetouch", _, "approval_requests", uuid]) => self.approvals.fetch(core, uuid),
            _ => Err(Failure::not_found()),
        }
    }

    pub(super) fn control(&mut self, core: &mut Core, hook: &str, args: &Value) -> Control {
        self.approvals.call_back_expired(core, &self.callbacks);
        match hook {
            "approve_request" => Some(self.react(core, args, Reaction::Approve)),
            "deny_request" => Some(self.react(core, args, Reaction::Deny)),
            "announce_registration" => {
                Some(text_arg(args, "custom_user_id").map(|custom_user_id| {
                    let qr = args.get("qr").and_then(Value::as_str);
                    let qr = qr.map(|qr| (qr, token::expiry(core, qr)));
                    self.registrations.announce(core, custom_user_id, qr);
                    json!({})
                }))
            }
            "scan_registration" => Some(self.scan(core, args)),
            "install_app" => Some(self.install_app(core, args)),
            "change_phone" => Some(self.change_phone(core, args)),
            "show_device" => Some(self.show_device(core, args)),
            "set_callback" => {
                // The kind `events` belongs to the events part.
                let kind = args.get("kind")?.as_str()?;
                let kinds = [APPROVAL, REGISTRATION, PHONE_CHANGE];
                let kind = kinds.into_iter().find(|known| *known == kind)?;
                Some(text_arg(args, "url").map(|url| {
                    self.callbacks.insert(kind, url.to_owned());
                    // An empty URL ends the subscription.
                    self.callbacks.retain(|_, url| !url.is_empty());
                    json!({})
                }))
            }
            _ => None,
        }
    }

    fn react(&mut self, core: &mut Core, args: &Value, reaction: Reaction) -> Done {
        let uuid = text_arg(args, "uuid")?;
        self.approvals
            .react(core, &self.callbacks, uuid, reaction)?;
        Ok(json!({}))
    }

    fn scan(&mut self, core: &mut Core, args: &Value) -> Done {
        let qr = text_arg(args, "qr")?;
        let phone = phone_arg(core, args)?;
        let is_used = core.read_or_stale(Fault::AuthRaceScan, || self.scanned.contains(qr));
        let is_used = core.read_or_stale(Fault::AuthRaceScanMoves, || is_used);
        let refused = match token::accept(core, qr) {
            // D1, States and transitions: a registration is completed once.
            Ok(_) if is_used => return Ok(json!({"registered": false})),
            Ok(custom_user_id) => {
                self.scanned.insert(qr.to_owned());
                let before = self.registrations.last_completed();
                let before = before.and_then(|auth_id| self.users.find(auth_id)).cloned();
                let known = self.registrations.any_completed();
                let shared = known.filter(|_| core.fails(Fault::AuthScannersShareId));
                let user = match shared.and_then(|auth_id| self.users.find(auth_id)) {
                    Some(first) => first,
                    None => self.users.enrol_scanner(core, phone),
                };
                self.registrations
                    .complete(core, &custom_user_id, user.auth_id);
                let outcome = Outcome::Completed {
                    user,
                    before: before.as_ref(),
                    custom_user_id: &custom_user_id,
                };
                self.completions += 1;
                let has_stopped = self.completions > 3
                    && core.fails(Fault::AuthRegistrationWebhooksStop)
                    || self.completions > 5 && core.fails(Fault::AuthWebhooksStopLate);
                if !has_stopped {
                    webhooks::send(core, &self.callbacks, outcome);
                }
                return Ok(json!({"registered": true}));
            }
            Err(refused) => refused,
        };
        if let Some(custom_user_id) = token::custom_user_id(core, qr) {
            self.registrations.refuse(core, &custom_user_id);
        }
        self.failures += 1;
        if let Refused::Expired(custom_user_id) = refused {
            self.registrations.expire(core, custom_user_id);
        }
        let has_stopped = self.failures > 3 && core.fails(Fault::AuthFailureWebhooksStop)
            || self.failures > 5 && core.fails(Fault::AuthFailuresStopLate);
        if self.failures == 1 || !has_stopped && !core.fails(Fault::AuthSecondFailureSilent) {
            webhooks::send(core, &self.callbacks, Outcome::Failed);
        }
        Ok(json!({"registered": false}))
    }

    /// D1, What the service does: users can change their number, and a webhook can report it. Its payload is
    /// not shown.
    fn change_phone(&mut self, core: &mut Core, args: &Value) -> Done {
        let auth_id = args
            .get("auth_id")
            .and_then(input::text)
            .and_then(|id| id.parse::<u64>().ok())
            .ok_or_else(|| hook::missing("auth_id", "an integer"))?;
        let phone = phone_arg(core, args)?.ok_or_else(|| hook::missing("cellphone", "a string"))?;
        if !core.fails(Fault::AuthPhoneChangeIgnored) {
            self.users.change_phone(core, auth_id, phone)?;
        }
        self.phone_changes += 1;
        let is_silent = self.phone_changes > 1 && core.fails(Fault::AuthPhoneChangeOnlyFirst);
        let url = self.callbacks.get(PHONE_CHANGE).filter(|_| !is_silent);
        if let Some(url) = url.filter(|_| !core.fails(Fault::AuthPhoneChangeSilent)) {
            let other = u64::from(core.varies(Variant::AuthPhoneChangeOtherId));
            let body = json!({
                "event": "user_phone_changed",
                "auth_id": auth_id + other,
                "time": core.date(core.now),
            });
            callbacks::send(core, "POST", url, &body);
        }
        Ok(json!({}))
    }

    fn install_app(&mut self, core: &Core, args: &Value) -> Done {
        let phone = phone_arg(core, args)?.ok_or_else(|| hook::missing("cellphone", "a string"))?;
        self.users.install_app(phone);
        Ok(json!({}))
    }
}

/// The phone in a hook's arguments, if any.
fn phone_arg(core: &Core, args: &Value) -> Result<Option<Phone>, String> {
    let text = |name| args.get(name).and_then(input::text);
    let Some(cellphone) = text("cellphone") else {
        return Ok(None);
    };
    let country_code = text("country_code").unwrap_or_else(|| "1".to_owned());
    Phone::parse(core, &cellphone, &country_code)
        .map(Some)
        .ok_or_else(|| format!("invalid phone `{cellphone}` with country code `{country_code}`"))
}

/// How the API key is sent is not shown (D1, Authentication): see [`application`].
fn authorise(core: &Core, call: &Call<'_>) -> Result<(), Failure> {
    let header = call.request.headers.get(application::API_KEY_HEADER);
    match header.or_else(|| call.query.get(application::API_KEY_PARAMETER)) {
        Some(application::API_KEY) => Ok(()),
        None if core.varies(Variant::AuthWithoutKey) => Ok(()),
        Some(_) | None => Err(Failure::new(401, "Invalid API key")),
    }
}

#[cfg(test)]
mod tests;
