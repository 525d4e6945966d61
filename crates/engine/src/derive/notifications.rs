//! Notifications by a target: events of a send, the webhook of a registration, and an error with a format of its own.
//!
//! These begin sequences of exploration. Written scenarios cover more of the same.

use super::cases::either;
use super::repeated_reads::wait;
use conformant_rulebook::scenario::TokenSpec;
use conformant_rulebook::step::{Await, Call, Hook, Listen, Step, Token};
use conformant_rulebook::{Rulebook, Service};
use serde_json::{Map, Value, json};

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
            vec![
                Step::from(Hook {
                    hook: "send_bulk_message".to_owned(),
                    with: members(with),
                    capture: Some("sent".to_owned()),
                    ..Hook::default()
                }),
                wait("3s"),
                hook(
                    "collect_events",
                    json!({"operation_id": "${sent.operation_id}"}),
                ),
            ]
        })
        .collect()
}

/// A scanned code with a valid token, and with invalid ones.
fn registrations(service: &Service, posted: &str) -> Vec<Vec<Step>> {
    let format = format!("${{target.{}.format}}", service.name);
    let good = TokenSpec {
        custom_user_id: Some("${unique.custom}".to_owned()),
        ..TokenSpec::default()
    };
    let tokens = [
        good.clone(),
        TokenSpec {
            issuer: Some("${unique.issuer}".to_owned()),
            ..good.clone()
        },
        TokenSpec {
            wrong_key: true,
            ..good
        },
    ];
    tokens
        .into_iter()
        .map(|token| {
            vec![
                Step::from(Listen {
                    listen: "posted".to_owned(),
                    judge: Some(posted.to_owned()),
                    ..Listen::default()
                }),
                hook(
                    "set_callback",
                    json!({"kind": "registration", "url": "${posted.url}"}),
                ),
                Step::from(Token {
                    token,
                    capture: Some("code".to_owned()),
                }),
                hook(
                    "announce_registration",
                    json!({"custom_user_id": "${unique.custom}", "qr": "${code.qr}", "token": "${code.token}"}),
                ),
                hook(
                    "scan_registration",
                    json!({
                        "qr": "${code.qr}",
                        "cellphone": "${target.people.cellphone}",
                        "country_code": "${target.people.country_code}",
                    }),
                ),
                Step::from(call(
                    "poll-registration-status",
                    json!({"FORMAT": format, "custom_user_id": "${unique.custom}"}),
                )),
                Step::from(Await {
                    r#await: "posted".to_owned(),
                    count: Some(1),
                    ..Await::default()
                }),
            ]
        })
        .collect()
}

/// A user without an address. The error has a format of its own (D1, Create user).
fn error(service: &Service, refused: String) -> Option<Vec<Step>> {
    let happy = service.happy.get("create-user")?;
    let mut with = happy.with.clone();
    with.insert("user[email]".to_owned(), json!("${unique.no-address}"));
    let rejected = Step::from(Call {
        with,
        judge: Some(refused),
        ..call("create-user", json!({}))
    });
    Some(happy.setup.iter().cloned().chain([rejected]).collect())
}

fn hook(name: &str, with: Value) -> Step {
    Step::from(Hook {
        hook: name.to_owned(),
        with: members(with),
        ..Hook::default()
    })
}

fn call(name: &str, with: Value) -> Call {
    Call {
        call: name.to_owned(),
        with: members(with),
        ..either()
    }
}

fn members(value: Value) -> Map<String, Value> {
    let Value::Object(members) = value else {
        return Map::new();
    };
    members
}
