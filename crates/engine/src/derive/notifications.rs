//! Notifications by a target: events of a send, the webhook of a registration, and an error with a format of its own.
//!
//! These begin sequences of exploration. Written scenarios cover more of the same.

use super::cases::either;
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Rulebook, Service};
use serde_json::{Value, json};

/// The outcomes and channels of messages (specs/README.md, Hooks).
const OUTCOMES: [&str; 4] = ["delivered", "failed", "undelivered", "read"];
const CHANNELS: [&str; 3] = ["sms", "whatsapp", "rcs"];

/// All cases about the notifications of a service, if it has any.
pub(super) fn derive(rulebook: &Rulebook, service: &Service) -> Vec<Vec<Step>> {
    let mut cases = Vec::new();
    // The payload about a registration, and the error of a user that is not created.
    let kind = |name: &str| format!("{}/{name}", service.name);
    let (posted, refused) = (kind("registration-webhook"), kind("user-create-error"));
    if rulebook.kinds.contains_key(&posted) && rulebook.kinds.contains_key(&refused) {
        cases.extend(registrations(service, &posted));
        cases.extend(sends());
        cases.extend(error(service, refused));
    }
    cases
}

/// A send to two people over each channel, with each outcome, and a scheduled one.
fn sends() -> Vec<Vec<Step>> {
    let drawn = CHANNELS.iter().flat_map(|channel| {
        OUTCOMES.map(|outcome| json!({"channel": channel, "outcome": outcome}))
    });
    let scheduled = json!({"channel": "sms", "scheduled": true});
    drawn
        .chain([scheduled])
        .map(|mut with| {
            with["to"] = json!(["${target.people.phone}", "${target.people.second_phone}"]);
            with["tags"] = json!({"campaign": "${unique.campaign}", "wave": "2"});
            steps(json!([
                {"hook": "send_bulk_message", "with": with, "capture": "sent"},
                {"wait": "3s"},
                {"hook": "collect_events", "with": {"operation_id": "${sent.operation_id}"}},
            ]))
        })
        .collect()
}

/// A scanned code with a valid token, and with invalid ones.
fn registrations(service: &Service, posted: &str) -> Vec<Vec<Step>> {
    let format = format!("${{target.{}.format}}", service.name);
    let custom = "${unique.custom}";
    let tokens = [
        json!({"custom-user-id": custom}),
        json!({"custom-user-id": custom, "issuer": "${unique.issuer}"}),
        json!({"custom-user-id": custom, "wrong-key": true}),
    ];
    let of_token = |token: Value| {
        steps(json!([
            {"listen": "posted", "judge": posted},
            {"hook": "set_callback", "with": {"kind": "registration", "url": "${posted.url}"}},
            {"token": token, "capture": "code"},
            {
                "hook": "announce_registration",
                "with": {"custom_user_id": custom, "qr": "${code.qr}", "token": "${code.token}"},
            },
            {
                "hook": "scan_registration",
                "with": {
                    "qr": "${code.qr}",
                    "cellphone": "${target.people.cellphone}",
                    "country_code": "${target.people.country_code}",
                },
            },
            {
                "call": "poll-registration-status",
                "with": {"FORMAT": format, "custom_user_id": custom},
                "either": true,
            },
            {"await": "posted", "count": 1},
        ]))
    };
    tokens.map(of_token).to_vec()
}

/// A user without an address. The error has a format of its own (D1, Create user).
fn error(service: &Service, refused: String) -> Option<Vec<Step>> {
    let happy = service.happy.get("create-user")?;
    let mut with = happy.with.clone();
    with.insert("user[email]".to_owned(), json!("${unique.no-address}"));
    let rejected = Step::from(Call {
        call: "create-user".to_owned(),
        with,
        judge: Some(refused),
        ..either()
    });
    Some(happy.setup.iter().cloned().chain([rejected]).collect())
}

/// Steps as scenarios write them.
pub(super) fn steps(written: Value) -> Vec<Step> {
    serde_json::from_value(written).expect("steps as scenarios write them")
}
