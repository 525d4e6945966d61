//! The app on a phone: which approval requests it shows, and what the push notifications contained (D1, 14, 74, 75, 157, 160).

use super::approvals::Approval;
use super::{Auth, application, phone_arg};
use crate::effects::Operation;
use crate::{Core, Done, Fault, Variant, hook};
use serde_json::{Value, json};

impl Auth {
    /// The hook `show_device`: opens the app on the phone with that number.
    pub(super) fn show_device(&mut self, core: &mut Core, args: &Value) -> Done {
        let phone = phone_arg(core, args)?.ok_or_else(|| hook::missing("cellphone", "a string"))?;
        let owners = self.users.with_app_on(core, &phone);
        let pending = self.approvals.on_device(core, &owners);
        let first = pending.first().map_or("", |request| &request.asked.message);
        let newest = pending.last().map_or("", |request| &request.asked.message);
        let shown = pending.iter().enumerate().filter_map(|(place, request)| {
            let is_lost = place == 0
                && (core.varies(Variant::AuthFirstPushLost)
                    || core.fails(Fault::AuthLostPushHidesRequest));
            if core.fails(Fault::AuthDeviceShowsNothing)
                || is_lost && core.fails(Fault::AuthLostPushHidesRequest)
            {
                return None;
            }
            let push = match core.fails(Fault::AuthPushOfNewest) {
                true => newest,
                false => &request.asked.message,
            };
            let item = item(core, request, first, (!is_lost).then_some(push));
            let shown = core.with_effects(&Operation::callback("device-request"), &item);
            Some(shown.into_owned())
        });
        let mut shown: Vec<Value> = shown.collect();
        if core.varies(Variant::AuthDeviceShowsOthers) {
            let uuid = "00000000-0000-4000-8000-000000000000";
            let other = json!({"uuid": uuid, "message": "Log in?", "details": {}, "logo": null, "pushed": false});
            shown.insert(0, other);
        }
        Ok(json!({"requests": shown}))
    }
}

fn item(core: &Core, request: &Approval, first: &str, push: Option<&str>) -> Value {
    let message = match core.fails(Fault::AuthDeviceMessageOfFirst) {
        true => first,
        false => &request.asked.message,
    };
    let mut details = request.asked.details.clone();
    if core.fails(Fault::AuthDeviceHiddenDetailsShown) {
        details.extend(request.asked.hidden_details.clone());
    }
    let mut text = push.unwrap_or_default().to_owned();
    for (fault, carried) in [
        (Fault::AuthPushCarriesDetails, &details),
        (Fault::AuthPushCarriesHidden, &request.asked.hidden_details),
    ] {
        if core.fails(fault) {
            text = format!("{text} {}", Value::Object(carried.clone()));
        }
    }
    json!({
        "uuid": request.uuid,
        "message": message,
        "details": details,
        "logo": request.logo().unwrap_or(application::LOGO),
        "pushed": push.is_some(),
        "push": push.map(|_| text),
    })
}
