//! Races: faults of servers that read a value, and write later what follows from it.
//!
//! - The server handles one request at a time, so another request never comes between reading and writing. A request of a
//!   race is therefore handled twice: [`Reference::read_early`] handles it on a copy and returns the values that a fault reads
//!   too early, and [`Reference::write_late`] handles it on the state, but reads these stale values.
//! - A request that is handled alone shows none of these faults.
//! - The id of such a fault has the form `SERVICE/race-NAME`; a test compares this with the faults that read early.
//! - `conformant_net::server` decides which requests are handled so, and waits between the two.

use super::{Core, Fault, Reference, Refusal, Switch, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Part of the id of each fault of a race.
const PART_OF_ID: &str = "/race-";

/// The values that a request read before the others of its race wrote, by fault. Each has the type given to [`Core::read_or_stale`].
#[derive(Clone, Debug, Default)]
pub struct StaleReads(BTreeMap<Fault, Arc<dyn Any + Send + Sync>>);

/// Phase of the current request.
#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    /// It is handled at once.
    #[default]
    Whole,
    /// It is handled on a copy, and the values that it reads are kept.
    ReadEarly(StaleReads),
    /// It is handled on the state, and reads the stale values.
    WriteLate(StaleReads),
}

impl Core {
    /// The current value or, when a request of a race writes and the fault is on, the value that it read earlier.
    pub fn read_or_stale<T: Clone + Send + Sync + 'static>(
        &self,
        fault: Fault,
        now: impl FnOnce() -> T,
    ) -> T {
        match &mut *self.phase.borrow_mut() {
            Phase::Whole => now(),
            Phase::ReadEarly(stale) => {
                let now = now();
                stale.0.insert(fault, Arc::new(now.clone()));
                now
            }
            Phase::WriteLate(stale) => {
                let read = stale.0.get(&fault);
                let read = read.and_then(|value| value.downcast_ref::<T>());
                read.cloned().unwrap_or_else(now)
            }
        }
    }
}

impl Reference {
    /// First phase: handles the request on a copy and returns what it read. `None` if no fault that is on concerns this
    /// request, which then needs no second phase.
    pub fn read_early(&mut self, request: &Request, now: Timestamp) -> Option<StaleReads> {
        let mut copy = self.clone();
        copy.core
            .phase
            .replace(Phase::ReadEarly(StaleReads::default()));
        copy.handle(request, now);
        let Phase::ReadEarly(mut stale) = copy.core.phase.take() else {
            return None;
        };
        stale.0.retain(|fault, _| self.core.fails(*fault));
        (!stale.0.is_empty()).then_some(stale)
    }

    /// Second phase: handles the request with the values of the first one.
    pub fn write_late(&mut self, request: &Request, now: Timestamp, stale: StaleReads) -> Response {
        self.core.phase.replace(Phase::WriteLate(stale));
        let response = self.handle(request, now);
        self.core.phase.take();
        response
    }

    /// The rejection of a changing request that arrives while another one is in progress, if a variation that is on
    /// rejects such requests.
    pub fn contention_refusal(&self) -> Option<Response> {
        let refused = [
            (Variant::Contended409, 409),
            (Variant::Contended429, 429),
            (Variant::Contended503, 503),
        ]
        .into_iter()
        .find(|(variant, _)| self.core.varies(*variant));
        let (_, status) = refused?;
        let refusal = Refusal::new(
            status,
            20_000 + u32::from(status),
            "Another request is in progress",
        );
        let mut response = self.core.refuse(&refusal);
        if status != 409 {
            response.headers.set("Retry-After", "1");
        }
        Some(response)
    }

    /// True if a fault or a variation that is on can show in requests that arrive at the same time.
    pub fn can_race(&self) -> bool {
        self.core.switched_on().any(|switch| match switch {
            Switch::Fault(fault) => fault.id().contains(PART_OF_ID),
            Switch::Variant(variant) => variant.id().starts_with("contended-"),
        })
    }

    /// True if requests that arrive at the same time are served in order of arrival.
    pub fn is_serial(&self) -> bool {
        self.core.varies(Variant::Serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::application;
    use crate::{Settings, account};
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use jsonwebtoken::{Algorithm, EncodingKey, crypto};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// A race of two requests.
    struct Race {
        fault: Fault,
        /// Returns what the others need: SIDs.
        prepare: fn(&mut Reference) -> Vec<String>,
        requests: fn(&[String]) -> [Request; 2],
        /// True if afterwards a statement is broken.
        is_broken: fn(&mut Reference, &[String], &[Response; 2]) -> bool,
    }

    fn reference(fault: Option<Fault>) -> Reference {
        let settings = Settings {
            origin: "http://x".to_owned(),
            faults: fault.into_iter().collect(),
            ..Settings::default()
        };
        Reference::new(settings, NOW)
    }

    fn request(method: &str, target: impl Into<String>) -> Request {
        let mut request = Request::new(method, target);
        let pair = format!("{}:{}", account::API_KEY, account::API_SECRET);
        let basic = format!("Basic {}", STANDARD.encode(pair));
        request.headers.set("Authorization", basic);
        request
            .headers
            .set(application::API_KEY_HEADER, application::API_KEY);
        request
    }

    fn form(target: impl Into<String>, pairs: &[(&str, &str)]) -> Request {
        let mut request = request("POST", target);
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        request.body = body.extend_pairs(pairs).finish().into_bytes();
        request
            .headers
            .set("Content-Type", "application/x-www-form-urlencoded");
        request.headers.set("X-Platform-Webhook-Enabled", "true");
        request
    }

    fn hook(name: &str, arguments: &Value) -> Request {
        let mut request = Request::new("POST", format!("/_control/{name}"));
        request.body = arguments.to_string().into_bytes();
        request
    }

    fn upload(service: &str, bytes: &str) -> Request {
        let mut request = request("POST", format!("/media/v1/Services/{service}/Media"));
        let disposition = "Content-Disposition: form-data; name=\"media\"; filename=\"a\"";
        request.body = format!("--b\r\n{disposition}\r\n\r\n{bytes}\r\n--b--\r\n").into_bytes();
        request
            .headers
            .set("Content-Type", "multipart/form-data; boundary=b");
        request.headers.set("Content-Size", bytes.len().to_string());
        request
    }

    fn json_of(response: &Response) -> Value {
        serde_json::from_slice(&response.body).unwrap_or_default()
    }

    fn done(reference: &mut Reference, request: &Request) -> Value {
        let response = reference.handle(request, NOW);
        assert!(
            response.is_success(),
            "{}: {}",
            request.target,
            response.status
        );
        json_of(&response)
    }

    fn sid(value: &Value) -> String {
        value["sid"].as_str().expect("a SID").to_owned()
    }

    fn read(reference: &mut Reference, target: String) -> Value {
        done(reference, &request("GET", target))
    }

    /// Items of a list.
    fn list(reference: &mut Reference, target: String) -> Vec<Value> {
        let page = read(reference, target);
        let key = page["meta"]["key"].as_str().expect("a key").to_owned();
        page[&key].as_array().expect("a list").clone()
    }

    fn service(reference: &mut Reference) -> String {
        let create = form("/chat/v2/Services", &[("FriendlyName", "s")]);
        format!("/chat/v2/Services/{}", sid(&done(reference, &create)))
    }

    /// A service and a channel.
    fn channel(reference: &mut Reference) -> Vec<String> {
        let service = service(reference);
        let create = form(format!("{service}/Channels"), &[]);
        let channel = format!("{service}/Channels/{}", sid(&done(reference, &create)));
        vec![service, channel]
    }

    fn configure(reference: &mut Reference, service: &str, settings: &Value) {
        let mut arguments = settings.clone();
        arguments["service_sid"] = json!(service.rsplit('/').next());
        done(reference, &hook("configure_service", &arguments));
    }

    fn role(reference: &mut Reference, service: &str, kind: &str) -> String {
        let pairs = [("FriendlyName", "r"), ("Type", kind), ("Permission", "p")];
        sid(&done(reference, &form(format!("{service}/Roles"), &pairs)))
    }

    /// A service, a channel, a member, a role of channels and the member's user channel.
    fn member(reference: &mut Reference) -> Vec<String> {
        let mut names = channel(reference);
        let create = form(format!("{}/Members", names[1]), &[("Identity", "ann")]);
        let member = sid(&done(reference, &create));
        let role = role(reference, &names[0], "channel");
        let channel = names[1].rsplit('/').next().expect("a SID").to_owned();
        names.push(format!("{}/Members/{member}", names[1]));
        names.push(role);
        names.push(format!("{}/Users/ann/Channels/{channel}", names[0]));
        names
    }

    fn user(reference: &mut Reference) -> String {
        let created = done(reference, &enrolment("a@x.example"));
        created["user"]["id"].to_string()
    }

    fn enrolment(email: &str) -> Request {
        let user = [
            ("user[email]", email),
            ("user[cellphone]", "555-0100"),
            ("user[country_code]", "1"),
        ];
        form("/auth/protected/json/users/new", &user)
    }

    fn qr() -> String {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let claims = json!({
            "iss": application::NAME,
            "iat": NOW.as_second(),
            "exp": NOW.as_second() + 600,
            "context": {"custom_user_id": "u-1", "auth_app_id": application::ID},
        });
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let key = EncodingKey::from_secret(application::API_KEY.as_bytes());
        let signature = crypto::sign(message.as_bytes(), &key, Algorithm::HS256).expect("an HMAC");
        format!(
            "{}://account?token={message}.{signature}",
            application::SCHEME
        )
    }

    fn subscribe(reference: &mut Reference, kind: &str) {
        let arguments = json!({"kind": kind, "url": "http://127.0.0.1:1/hook"});
        done(reference, &hook("set_callback", &arguments));
    }

    const RACES: &[Race] = &[
        Race {
            fault: Fault::ChatRaceUniqueName,
            prepare: |reference| vec![service(reference)],
            requests: |names| {
                [(); 2].map(|()| form(format!("{}/Channels", names[0]), &[("UniqueName", "lobby")]))
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Channels", names[0])).len() > 1
            },
        },
        Race {
            fault: Fault::ChatRaceIdentity,
            prepare: |reference| vec![service(reference)],
            requests: |names| {
                [(); 2].map(|()| form(format!("{}/Users", names[0]), &[("Identity", "ann")]))
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Users", names[0])).len() > 1
            },
        },
        Race {
            fault: Fault::ChatRaceBinding,
            prepare: |reference| vec![service(reference)],
            requests: |names| {
                let service = names[0].rsplit('/').next();
                [(); 2].map(|()| {
                    let arguments = json!({"service_sid": service, "identity": "ann", "binding_type": "fcm", "endpoint": "e"});
                    hook("register_binding", &arguments)
                })
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Bindings", names[0])).len() > 1
            },
        },
        Race {
            fault: Fault::AuthRacePhone,
            prepare: |_| Vec::new(),
            requests: |_| [enrolment("a@x.example"), enrolment("b@x.example")],
            is_broken: |_, _, [one, other]| json_of(one)["user"] != json_of(other)["user"],
        },
        Race {
            fault: Fault::ChatRaceWebhooks,
            prepare: |reference| {
                let names = channel(reference);
                for _ in 0..4 {
                    done(
                        reference,
                        &form(format!("{}/Webhooks", names[1]), &[("Type", "webhook")]),
                    );
                }
                names
            },
            requests: |names| {
                [(); 2].map(|()| form(format!("{}/Webhooks", names[1]), &[("Type", "webhook")]))
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Webhooks", names[1])).len() > 5
            },
        },
        Race {
            fault: Fault::ChatRaceMembers,
            prepare: |reference| {
                let names = channel(reference);
                configure(
                    reference,
                    &names[0],
                    &json!({"limits": {"channel_members": 1}}),
                );
                names
            },
            requests: |names| {
                ["ann", "bob"]
                    .map(|who| form(format!("{}/Members", names[1]), &[("Identity", who)]))
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Members", names[1])).len() > 1
            },
        },
        Race {
            fault: Fault::ChatRaceUserChannels,
            prepare: |reference| {
                let mut names = channel(reference);
                configure(
                    reference,
                    &names[0],
                    &json!({"limits": {"user_channels": 1}}),
                );
                let other = sid(&done(
                    reference,
                    &form(format!("{}/Channels", names[0]), &[]),
                ));
                names.push(format!("{}/Channels/{other}", names[0]));
                names
            },
            requests: |names| {
                [1, 2].map(|n| form(format!("{}/Members", names[n]), &[("Identity", "ann")]))
            },
            is_broken: |_, _, answers| answers.iter().all(Response::is_success),
        },
        Race {
            fault: Fault::ChatRaceIndex,
            prepare: channel,
            requests: messages,
            is_broken: |reference, names, _| {
                let all = list(reference, format!("{}/Messages", names[1]));
                all[0]["index"] == all[1]["index"]
            },
        },
        Race {
            fault: Fault::ChatRaceMessagesCount,
            prepare: channel,
            requests: messages,
            is_broken: |reference, names, _| {
                read(reference, names[1].clone())["messages_count"] != 2
            },
        },
        Race {
            fault: Fault::ChatRaceUpdateLost,
            prepare: |reference| {
                let service = service(reference);
                let role = role(reference, &service, "deployment");
                vec![service, role]
            },
            requests: |names| {
                let one = form(names[0].clone(), &[("FriendlyName", "new")]);
                [
                    one,
                    form(names[0].clone(), &[("DefaultServiceRoleSid", &names[1])]),
                ]
            },
            is_broken: |reference, names, _| {
                let seen = read(reference, names[0].clone());
                seen["friendly_name"] != "new" || seen["default_service_role_sid"] != names[1]
            },
        },
        Race {
            fault: Fault::ChatRaceUpdateLost,
            prepare: member,
            requests: |names| {
                let one = form(names[2].clone(), &[("RoleSid", &names[3])]);
                [
                    one,
                    form(names[2].clone(), &[("LastConsumedMessageIndex", "3")]),
                ]
            },
            is_broken: |reference, names, _| {
                let seen = read(reference, names[2].clone());
                seen["role_sid"] != names[3] || seen["last_consumed_message_index"] != 3
            },
        },
        Race {
            fault: Fault::ChatRaceUpdateLost,
            prepare: member,
            requests: |names| {
                let one = form(names[4].clone(), &[("NotificationLevel", "muted")]);
                [
                    one,
                    form(names[4].clone(), &[("LastConsumedMessageIndex", "3")]),
                ]
            },
            is_broken: |reference, names, _| {
                let seen = read(reference, names[4].clone());
                seen["notification_level"] != "muted" || seen["last_consumed_message_index"] != 3
            },
        },
        Race {
            fault: Fault::ChatRaceUpdateUndone,
            prepare: |reference| vec![service(reference)],
            requests: |names| {
                ["one", "two"].map(|name| form(names[0].clone(), &[("FriendlyName", name)]))
            },
            is_broken: |reference, names, _| {
                read(reference, names[0].clone())["friendly_name"] == "s"
            },
        },
        Race {
            fault: Fault::ChatRaceUpdateUndone,
            prepare: member,
            requests: |names| {
                ["1", "2"].map(|at| form(names[4].clone(), &[("LastConsumedMessageIndex", at)]))
            },
            is_broken: |reference, names, _| {
                read(reference, names[4].clone())["last_consumed_message_index"].is_null()
            },
        },
        Race {
            fault: Fault::ChatRaceUser,
            prepare: |reference| {
                let mut names = channel(reference);
                let create = form(format!("{}/Channels", names[0]), &[]);
                let other = sid(&done(reference, &create));
                names.push(format!("{}/Channels/{other}", names[0]));
                names
            },
            requests: |names| {
                [1, 2].map(|n| form(format!("{}/Members", names[n]), &[("Identity", "ann")]))
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Users/ann/Channels", names[0])).len() < 2
            },
        },
        Race {
            fault: Fault::ChatRaceMember,
            prepare: channel,
            requests: |names| {
                [(); 2].map(|()| form(format!("{}/Members", names[1]), &[("Identity", "ann")]))
            },
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Members", names[1])).len() > 1
            },
        },
        Race {
            fault: Fault::ChatRaceChannelUpdate,
            prepare: channel,
            requests: set_private_and_send,
            is_broken: |reference, names, _| {
                update_channel(reference, names)["messages_count"] != 1
            },
        },
        Race {
            fault: Fault::ChatRaceChannelType,
            prepare: channel,
            requests: set_private_and_send,
            is_broken: |reference, names, _| update_channel(reference, names)["type"] != "private",
        },
        Race {
            fault: Fault::FlowRaceContext,
            prepare: flow,
            requests: executions,
            is_broken: |_, _, answers| {
                let shown = |n: usize| json_of(&answers[n])["context"]["flow"]["data"]["n"].clone();
                shown(0) != 0 || shown(1) != 1
            },
        },
        Race {
            fault: Fault::FlowRaceSid,
            prepare: flow,
            requests: executions,
            is_broken: |_, _, [one, other]| json_of(one)["sid"] == json_of(other)["sid"],
        },
        Race {
            fault: Fault::FlowRaceList,
            prepare: flow,
            requests: executions,
            is_broken: |reference, names, _| {
                list(reference, format!("{}/Executions", names[0])).len() < 2
            },
        },
        Race {
            fault: Fault::FlowRaceOrder,
            prepare: flow,
            requests: executions,
            is_broken: |reference, names, _| {
                let all = list(reference, format!("{}/Executions", names[0]));
                all[0]["date_created"].as_str() < all[1]["date_created"].as_str()
            },
        },
        Race {
            fault: Fault::FlowRaceDelete,
            prepare: flow,
            requests: |names| {
                let phones = [("To", "+12025550123"), ("From", "+12025550100")];
                [
                    request("DELETE", names[0].clone()),
                    form(format!("{}/Executions", names[0]), &phones),
                ]
            },
            is_broken: |reference, names, _| {
                reference
                    .handle(&request("GET", names[0].clone()), NOW)
                    .is_success()
            },
        },
        Race {
            fault: Fault::AuthRaceAnswer,
            prepare: |reference| {
                let user = user(reference);
                subscribe(reference, "approval");
                let target = format!("/auth/onetouch/json/users/{user}/approval_requests");
                let created = done(reference, &form(target, &[("message", "m")]));
                let uuid = created["approval_request"]["uuid"]
                    .as_str()
                    .expect("a uuid");
                vec![uuid.to_owned()]
            },
            requests: |names| {
                ["approve_request", "deny_request"]
                    .map(|name| hook(name, &json!({"uuid": names[0]})))
            },
            is_broken: |reference, _, _| reference.take_callbacks().len() > 1,
        },
        Race {
            fault: Fault::AuthRaceScan,
            prepare: |reference| {
                subscribe(reference, "registration");
                Vec::new()
            },
            requests: |_| {
                ["5550101", "5550102"].map(|phone| {
                    hook(
                        "scan_registration",
                        &json!({"qr": qr(), "cellphone": phone, "country_code": "1"}),
                    )
                })
            },
            is_broken: |reference, _, _| {
                let is_completed = |callback: &crate::Callback| {
                    String::from_utf8_lossy(&callback.request.body)
                        .contains("registration_completed")
                };
                reference
                    .take_callbacks()
                    .iter()
                    .filter(|c| is_completed(c))
                    .count()
                    > 1
            },
        },
        Race {
            fault: Fault::ChatRaceWithoutWebhook,
            prepare: |reference| {
                let names = channel(reference);
                let pairs = [
                    ("Type", "webhook"),
                    ("Configuration.Url", "http://127.0.0.1:1/hook"),
                ];
                done(reference, &form(format!("{}/Webhooks", names[1]), &pairs));
                names
            },
            requests: messages,
            is_broken: |reference, _, _| reference.take_callbacks().len() < 2,
        },
        Race {
            fault: Fault::MediaRaceUpload,
            prepare: |reference| {
                let service = service(reference);
                vec![service.rsplit('/').next().expect("a SID").to_owned()]
            },
            requests: |names| ["first", "other"].map(|bytes| upload(&names[0], bytes)),
            is_broken: |reference, names, answers| {
                let mut content = |answer: &Response| {
                    let sid = sid(&json_of(answer));
                    let target = format!("/media/v1/Services/{}/Media/{sid}/Content", names[0]);
                    reference.handle(&request("GET", target), NOW).body
                };
                content(&answers[0]) != b"first" || content(&answers[1]) != b"other"
            },
        },
    ];

    fn messages(names: &[String]) -> [Request; 2] {
        ["one", "two"].map(|text| form(format!("{}/Messages", names[1]), &[("Body", text)]))
    }

    fn flow(reference: &mut Reference) -> Vec<String> {
        let made = done(reference, &hook("create_flow", &json!({})));
        let sid = made["flow_sid"].as_str().expect("a SID");
        vec![format!("/flow/v1/Flows/{sid}")]
    }

    fn executions(names: &[String]) -> [Request; 2] {
        ["{\"n\": 0}", "{\"n\": 1}"].map(|parameters| {
            let pairs = [
                ("To", "+12025550123"),
                ("From", "+12025550100"),
                ("Parameters", parameters),
            ];
            form(format!("{}/Executions", names[0]), &pairs)
        })
    }

    /// An update of the channel and a message.
    fn set_private_and_send(names: &[String]) -> [Request; 2] {
        let target = names[1].replace("/v2/", "/v3/");
        let [message, _] = messages(names);
        [form(target, &[("Type", "private")]), message]
    }

    /// The channel after an update of another field.
    fn update_channel(reference: &mut Reference, names: &[String]) -> Value {
        let sid = format!("MG{}", "0".repeat(32));
        let target = names[1].replace("/v2/", "/v3/");
        done(reference, &form(target, &[("MessagingServiceSid", &sid)]))
    }

    /// Runs a race; `order` is that of the late writes.
    fn is_broken(race: &Race, fault: Option<Fault>, order: [usize; 2]) -> bool {
        let mut reference = reference(fault);
        let names = (race.prepare)(&mut reference);
        let requests = (race.requests)(&names);
        let mut stale = [0, 1].map(|n| reference.read_early(&requests[n], NOW));
        assert_eq!(
            stale.iter().any(Option::is_some),
            fault.is_some(),
            "{:?}",
            race.fault
        );
        let mut answers = [Response::empty(500), Response::empty(500)];
        for n in order {
            answers[n] = match stale[n].take() {
                Some(stale) => reference.write_late(&requests[n], NOW, stale),
                None => reference.handle(&requests[n], NOW),
            };
        }
        (race.is_broken)(&mut reference, &names, &answers)
    }

    #[test]
    fn each_race_breaks_a_statement_only_under_its_fault() {
        for race in RACES {
            for order in [[0, 1], [1, 0]] {
                assert!(!is_broken(race, None, order), "{:?} {order:?}", race.fault);
                // Where only one request writes stale values, it must be the last one to write.
                let needs_order = [Fault::FlowRaceDelete, Fault::ChatRaceChannelType];
                let shows = if race.fault == Fault::ChatRaceChannelUpdate {
                    order == [1, 0]
                } else {
                    !needs_order.contains(&race.fault) || order == [0, 1]
                };
                let is_broken = is_broken(race, Some(race.fault), order);
                assert_eq!(is_broken, shows, "{:?} {order:?}", race.fault);
            }
        }
    }

    #[test]
    fn every_fault_with_the_id_of_a_race_has_one() {
        /// Shows only when the registration is polled again.
        const WITHOUT_RACE: [Fault; 1] = [Fault::AuthRaceScanMoves];
        let by_id = Fault::ALL.iter().copied();
        let by_id = by_id.filter(|fault| fault.id().contains(PART_OF_ID));
        let tried: BTreeSet<Fault> = RACES.iter().map(|race| race.fault).collect();
        let tried: BTreeSet<Fault> = tried.into_iter().chain(WITHOUT_RACE).collect();
        assert_eq!(by_id.collect::<BTreeSet<Fault>>(), tried);
    }

    #[test]
    fn a_request_alone_shows_no_race_and_asks_for_none() {
        for race in RACES {
            let mut reference = reference(Some(race.fault));
            let names = (race.prepare)(&mut reference);
            let answers = (race.requests)(&names).map(|request| reference.handle(&request, NOW));
            assert!(
                !(race.is_broken)(&mut reference, &names, &answers),
                "{:?}",
                race.fault
            );
            let asked = reference.newly_asked();
            assert!(
                !asked.contains(&crate::Switch::Fault(race.fault)),
                "{:?}",
                race.fault
            );
        }
    }

    #[test]
    fn an_early_read_queries_its_faults_and_changes_nothing() {
        let mut reference = reference(None);
        let names = channel(&mut reference);
        reference.newly_asked();
        let before = reference.overview(NOW);
        assert!(reference.read_early(&messages(&names)[0], NOW).is_none());
        assert_eq!(reference.overview(NOW), before);
        let asked = reference.newly_asked();
        let queried = [
            Fault::ChatRaceIndex,
            Fault::ChatRaceMessagesCount,
            Fault::ChatRaceWithoutWebhook,
        ];
        assert!(
            queried
                .iter()
                .all(|fault| asked.contains(&crate::Switch::Fault(*fault)))
        );
    }

    #[test]
    fn contention_is_refused_only_under_its_variations() {
        for (variant, status) in [
            (None, None),
            (Some(Variant::Serial), None),
            (Some(Variant::Contended409), Some(409)),
            (Some(Variant::Contended429), Some(429)),
            (Some(Variant::Contended503), Some(503)),
        ] {
            let settings = Settings {
                variants: variant.into_iter().collect(),
                ..Settings::default()
            };
            let reference = Reference::new(settings, NOW);
            assert_eq!(
                reference.contention_refusal().map(|refusal| refusal.status),
                status
            );
            assert_eq!(reference.is_serial(), variant == Some(Variant::Serial));
        }
    }
}
