//! Every variant changes the result of one long scenario and passes a plain one.

use super::*;

/// The plain scenario passes under every variant.
#[test]
fn the_scenario_passes_under_every_variant() {
    for variant in Variant::ALL {
        let mut world = World::with(&[], &[*variant]);
        let (_, path) = world.channel(&[("UniqueName", "lobby")]);
        world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
        let message = [("From", "ann"), ("Body", "b")];
        world.accepted("POST", &format!("{path}/Messages"), &message);
        let at = format!("Users/ann/{path}");
        world.accepted("POST", &at, &[("LastConsumedMessageIndex", "0")]);
        world.get("Users/ann/Channels?PageSize=2");
    }
}

/// That each fault shows the self-test proves: a rule must notice it. Of a variant nothing is noticed.
#[test]
fn every_variant_changes_the_scenario() {
    let clean = scenario(&[], &[], None);
    assert_eq!(
        clean,
        scenario(&[], &[], None),
        "the scenario is reproducible"
    );
    let silent: Vec<&str> = Variant::ALL
        .iter()
        .filter(|variant| variant.id().starts_with("chat/") || variant.id().starts_with("media/"))
        .filter(|variant| scenario(&[], &[**variant], Some(&clean)) == clean)
        .map(|variant| variant.id())
        .collect();
    assert_eq!(silent, [""; 0], "these change nothing");
}

/// What was answered and sent, step by step.
pub(super) struct Recorder<'a> {
    pub(super) world: World,
    told: Vec<String>,
    /// The expected results; the scenario stops at the first difference.
    clean: Option<&'a [String]>,
    differs: bool,
}

impl Recorder<'_> {
    fn note(&mut self, told: String) {
        let expected = self.clean.map(|clean| clean.get(self.told.len()));
        self.differs |= expected.is_some_and(|expected| expected != Some(&told));
        self.told.push(told);
    }

    fn record(&mut self, step: &str, response: &Response) -> Value {
        let body = String::from_utf8_lossy(&response.body);
        let kind = response.headers.media_type().unwrap_or_default();
        let sizes = (response.headers.len(), response.body.len());
        self.note(format!(
            "{step}: {} {sizes:?} {kind} {body}",
            response.status
        ));
        serde_json::from_slice(&response.body).unwrap_or(Value::Null)
    }

    pub(super) fn call(&mut self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        if self.differs {
            return Value::Null;
        }
        let response = self.world.call(method, path, form);
        let value = self.record(&format!("{method} {form:?}"), &response);
        self.deliver();
        value
    }

    pub(super) fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Value {
        self.call("POST", path, form)
    }

    pub(super) fn get(&mut self, path: &str) -> Value {
        self.call("GET", path, &[])
    }

    /// Delivers due callbacks; the path determines the response of the receiver.
    fn deliver(&mut self) {
        for _ in 0..10 {
            for callback in self.world.callbacks() {
                let outcome = match callback.request.path() {
                    "/timeout" => Delivery::TimedOut,
                    path => path
                        .trim_start_matches('/')
                        .parse()
                        .map_or(Delivery::Answered(200), Delivery::Answered),
                };
                self.note(format!(
                    "callback {} {} {:?} {}",
                    callback.request.method,
                    callback.url,
                    callback.timeout,
                    String::from_utf8_lossy(&callback.request.body)
                ));
                self.world.reference.delivered(callback.id, outcome);
            }
        }
    }

    pub(super) fn hook(&mut self, hook: &str, args: Value) -> Value {
        if self.differs {
            return Value::Null;
        }
        let response = self.world.try_hook(hook, args);
        self.record(hook, &response)
    }

    pub(super) fn upload(&mut self, bytes: &[u8], change: impl FnOnce(&mut Request)) -> Value {
        if self.differs {
            return Value::Null;
        }
        let response = self.world.upload(bytes, change);
        self.record("upload", &response)
    }

    /// Fetches with other credentials than usual.
    fn get_as(&mut self, authorization: &str, path: &str) {
        self.call_as(authorization, "GET", path);
    }

    /// Asks with other credentials than usual.
    pub(super) fn call_as(&mut self, authorization: &str, method: &str, path: &str) {
        let mut request = Request::new(method, self.world.path(path));
        request.headers.set("Authorization", authorization);
        let response = self.world.send(request);
        self.record(authorization, &response);
    }
}

pub(super) fn sid(value: &Value) -> String {
    value["sid"].as_str().unwrap_or("none").to_owned()
}

/// Everything that the document lets a client, a person and a device do, and most of what it
/// refuses.
fn scenario(faults: &[Fault], variants: &[Variant], clean: Option<&[String]>) -> Vec<String> {
    let mut recorder = Recorder {
        told: Vec::new(),
        clean,
        differs: false,
        world: World::without_service(faults, variants),
    };
    let service = recorder.post("/chat/v2/Services", &[("FriendlyName", "s")]);
    if service["sid"].is_null() {
        return recorder.told;
    }
    recorder.world.service = service;
    services_and_roles(&mut recorder);
    channels(&mut recorder);
    users_and_invites(&mut recorder);
    members(&mut recorder);
    webhooks(&mut recorder);
    user_channels(&mut recorder);
    bindings(&mut recorder);
    media(&mut recorder);
    credentials(&mut recorder);
    boundary::run(&mut recorder);
    recorder.told
}

fn services_and_roles(recorder: &mut Recorder<'_>) {
    let other = recorder.post("/chat/v2/Services", &[("FriendlyName", "other")]);
    recorder.post("/chat/v2/Services", &[]);
    for query in [
        "",
        "?PageSize=0",
        "?PageSize=1",
        "?PageSize=1&Page=1&PageToken=PA1",
        "?PageSize=1001",
    ] {
        recorder.get(&format!("/chat/v2/Services{query}"));
    }
    let at = format!("/chat/v2/Services/{}", sid(&other));
    recorder.get(&at);
    recorder.post(&format!("{at}/Users"), &[("Identity", "foreign")]);
    recorder.post(&format!("{at}/Channels"), &[("UniqueName", "foreign")]);
    recorder.get("Channels/foreign/Members");
    let (long, longer) = ("r".repeat(64), "r".repeat(65));
    let role = recorder.post(
        "Roles",
        &[
            ("FriendlyName", &long),
            ("Type", "deployment"),
            ("Permission", "p"),
            ("Permission", "q"),
        ],
    );
    recorder.get(&format!("Roles/{}", sid(&role)));
    recorder.get(&format!("{at}/Roles/{}", sid(&role)));
    let of_channels = [
        ("FriendlyName", "c"),
        ("Type", "channel"),
        ("Permission", "p"),
    ];
    recorder.post("Roles", &of_channels);
    for form in [
        [
            ("FriendlyName", &*longer),
            ("Type", "channel"),
            ("Permission", "p"),
        ],
        [
            ("FriendlyName", "r"),
            ("Type", "other"),
            ("Permission", "p"),
        ],
        [
            ("FriendlyName", ""),
            ("Type", "channel"),
            ("Permission", "p"),
        ],
        [("FriendlyName", "r"), ("Type", ""), ("Permission", "p")],
        [
            ("FriendlyName", "r"),
            ("Type", "channel"),
            ("Permission", ""),
        ],
    ] {
        recorder.post("Roles", &form);
    }
    recorder.world.now = from_unix_ms(START_MS + 60_000);
    let role = sid(&role);
    recorder.post(
        &at,
        &[("DefaultServiceRoleSid", &role), ("FriendlyName", "n")],
    );
    let own_role = text(&recorder.world.service, "/default_service_role_sid").to_owned();
    let own = recorder.world.path("").trim_end_matches('/').to_owned();
    recorder.post(&own, &[("FriendlyName", "renamed")]);
    recorder.post(&own, &[("DefaultServiceRoleSid", &role)]);
    recorder.post(&own, &[("DefaultServiceRoleSid", &own_role)]);
    recorder.get(&own);
    recorder.hook(
        "configure_service",
        json!({"limits": {"channel_members": 3, "user_channels": 3}}),
    );
}

fn channels(recorder: &mut Recorder<'_>) {
    let (long, longer) = ("c".repeat(64), "c".repeat(65));
    let date = "2020-01-02T03:04:05Z";
    recorder.post(
        "Channels",
        &[
            ("FriendlyName", &*long),
            ("UniqueName", &*long),
            ("Attributes", "{\"a\":1}"),
            ("Type", "private"),
            ("DateCreated", date),
            ("DateUpdated", date),
            ("CreatedBy", "creator"),
        ],
    );
    for form in [
        [("FriendlyName", &*longer)],
        [("UniqueName", &longer)],
        [("UniqueName", &long)],
        [("FriendlyName", "twin")],
        [("FriendlyName", "twin")],
        [("UniqueName", "foreign")],
        [("UniqueName", "lobby")],
        [("Type", "other")],
        [("Attributes", "{")],
        [("Attributes", "")],
    ] {
        recorder.post("Channels", &form);
    }
}

fn users_and_invites(recorder: &mut Recorder<'_>) {
    for form in [
        [("Identity", "Dora"), ("FriendlyName", "D")],
        [("Identity", "dora"), ("Attributes", "[1]")],
        [("Identity", "dora"), ("Attributes", "{}")],
        [("Identity", "emil"), ("Attributes", "{")],
        [("Identity", "foreign"), ("Attributes", "{}")],
        [("Identity", ""), ("Attributes", "{}")],
    ] {
        recorder.post("Users", &form);
    }
    let role = text(&recorder.world.service, "/default_service_role_sid").to_owned();
    let roles = [
        ("FriendlyName", "r"),
        ("Type", "deployment"),
        ("Permission", "p"),
    ];
    let other = sid(&recorder.post("Roles", &roles));
    recorder.post("Users", &[("Identity", "fred"), ("RoleSid", &other)]);
    recorder.post("Users", &[("Identity", "gina"), ("RoleSid", &role)]);
    recorder.hook("configure_service", json!({"reachability_enabled": true}));
    recorder.post("Users", &[("Identity", "hans")]);
    recorder.hook("configure_service", json!({"reachability_enabled": false}));
    let creator = text(&recorder.world.service, "/default_channel_creator_role_sid").to_owned();
    for form in [
        &[("Identity", "Ivo")][..],
        &[("Identity", "jan"), ("RoleSid", creator.as_str())],
        &[],
    ] {
        let invite = recorder.post("Channels/lobby/Invites", form);
        recorder.get(&format!("Channels/lobby/Invites/{}", sid(&invite)));
    }
    recorder.get("Users/Ivo/Channels/lobby");
    recorder.get("Users/Ivo/Channels");
}

fn members(recorder: &mut Recorder<'_>) {
    let creator = text(&recorder.world.service, "/default_channel_creator_role_sid").to_owned();
    let members = "Channels/lobby/Members";
    for form in [
        &[("Identity", "Ann"), ("Attributes", "[2]")][..],
        &[("Identity", "bob"), ("RoleSid", creator.as_str())],
        &[("Identity", "cid"), ("Attributes", "{")],
        &[("Identity", ""), ("Attributes", "{}")],
        &[("Identity", "cid"), ("LastConsumedMessageIndex", "1")],
        &[("Identity", "dan")],
    ] {
        recorder.post(members, form);
    }
    let long = "c".repeat(64);
    recorder.post(
        &format!("Channels/{long}/Members"),
        &[("Identity", "creator")],
    );
    for query in [
        "",
        "?PageSize=2",
        "?PageSize=2&Page=1&PageToken=PA2",
        "?Identity=bob",
        "?Identity=bob&Identity=Ann&PageSize=1",
    ] {
        recorder.get(&format!("{members}{query}"));
    }
    recorder.world.now = from_unix_ms(START_MS + 120_000);
    recorder.get(&format!("{members}/bob"));
    recorder.post(&format!("{members}/Ann"), &[("RoleSid", &creator)]);
    recorder.post(
        &format!("{members}/Ann"),
        &[("LastConsumedMessageIndex", "1")],
    );
    recorder.get(&format!("{members}/Ann"));
    for name in ["one", "two", "three"] {
        recorder.post("Channels", &[("UniqueName", name)]);
        recorder.post(&format!("Channels/{name}/Members"), &[("Identity", "Ann")]);
    }
    recorder.post(&format!("{members}/Ann"), &[("RoleSid", &creator)]);
    recorder.get("Channels/one/Members/Ann");
    for form in [
        &[("From", "kim"), ("Body", "hello"), ("Attributes", "3")][..],
        &[("LastUpdatedBy", "lea"), ("Body", "")],
        &[("Attributes", "{")],
        &[],
    ] {
        recorder.post("Channels/lobby/Messages", form);
    }
    recorder.get("Users/kim/Channels");
    let messaging = format!("MG{}", "b".repeat(32));
    let channel = recorder.post("Channels", &[("Type", "public"), ("UniqueName", "v3")]);
    let base = recorder.world.path("Channels").replace("/v2/", "/v3/");
    for (channel, form) in [
        ("lobby", &[("Type", "private")][..]),
        ("lobby", &[("MessagingServiceSid", &*messaging)]),
        (&*sid(&channel), &[("Type", "other")]),
        ("lobby", &[]),
    ] {
        recorder.post(&format!("{base}/{channel}"), form);
    }
}

fn webhooks(recorder: &mut Recorder<'_>) {
    let at = "Channels/two/Webhooks";
    let (url, filter) = ("Configuration.Url", "Configuration.Filters");
    let (trigger, method) = ("Configuration.Triggers", "Configuration.Method");
    let retries = "Configuration.RetryCount";
    let flow = format!("FW{}", "c".repeat(32));
    for form in [
        &[("Type", "webhook"), (url, "http://h/429"), (retries, "3")][..],
        &[
            ("Type", "webhook"),
            (url, "http://h/503"),
            (retries, "1"),
            (method, "GET"),
        ],
        &[
            ("Type", "webhook"),
            (url, "http://h/504"),
            (retries, "1"),
            (filter, "onOther"),
            (filter, "onMessageSent"),
        ],
        &[
            ("Type", "webhook"),
            (url, "http://h/a"),
            (filter, "onOther"),
        ],
    ] {
        recorder.post(at, form);
    }
    let five = [
        (trigger, "t"),
        (trigger, "magic"),
        (trigger, "x1"),
        (trigger, "x2"),
        (trigger, "x3"),
    ];
    let with_type = |n: usize| {
        let mut form = vec![
            ("Type", "trigger"),
            (url, "http://h/timeout"),
            (retries, "1"),
        ];
        form.extend(five.iter().cycle().take(n));
        form
    };
    recorder.post(at, &with_type(6));
    recorder.post(at, &with_type(5));
    recorder.post(at, &[("Type", "webhook")]);
    let at = "Channels/one/Webhooks";
    for form in [
        &[("Type", "studio"), ("Configuration.FlowSid", flow.as_str())][..],
        &[("Type", "other")],
        &[("Type", "")],
        &[("Type", "webhook"), (method, "PUT")],
        &[("Type", "webhook"), (retries, "4")],
        &[("Type", "trigger"), (retries, "0")],
        &[("Type", "webhook"), (url, "http://h/200"), (retries, "1")],
        &[("Type", "webhook"), (url, "http://h/500"), (retries, "1")],
    ] {
        recorder.post(at, form);
    }
    let webhook = recorder.get(at)["webhooks"][0].clone();
    let webhook = format!("{at}/{}", sid(&webhook));
    recorder.get(&webhook);
    let webhook = recorder.post(at, &[("Type", "webhook")]);
    let sid = sid(&webhook);
    let webhook = format!("{at}/{sid}");
    let changes = [(url, "http://h/b"), (method, "GET"), (filter, "x")];
    recorder.post(&webhook, &changes);
    recorder.post(&webhook, &[]);
    recorder.get(&webhook);
    recorder.get(&format!("Channels/two/Webhooks/{sid}"));
    recorder.hook(
        "configure_service",
        json!({
            "pre_webhook_url": "http://h/pre", "post_webhook_url": "http://h/post",
            "webhook_filters": ["onMessageSend", "onMessageSent"],
        }),
    );
    for channel in ["one", "two"] {
        let messages = format!("Channels/{channel}/Messages");
        for body in ["plain", "some magic word", "t"] {
            recorder.post(&messages, &[("Body", body)]);
        }
        let silent = recorder.world.call_with("POST", &messages, &[], &[]);
        recorder.record("without header", &silent);
        recorder.deliver();
        recorder.post(
            &format!("Channels/{channel}/Members"),
            &[("Identity", "mia")],
        );
    }
}

fn user_channels(recorder: &mut Recorder<'_>) {
    let at = "Users/Ann/Channels/lobby";
    recorder.get(at);
    for form in [
        [("NotificationLevel", "muted")],
        [("NotificationLevel", "loud")],
        [("LastConsumedMessageIndex", "2")],
        [("LastConsumptionTimestamp", "2021-01-01T00:00:00Z")],
    ] {
        recorder.post(at, &form);
    }
    recorder.get(at);
    recorder.get("Channels/lobby/Members/Ann");
    recorder.get("Users/bob/Channels/lobby");
    for query in ["", "?PageSize=51"] {
        recorder.get(&format!("Users/Ann/Channels{query}"));
    }
    let args = json!({"channel_sid": "lobby", "identity": "bob"});
    recorder.hook("leave_channel", args);
    recorder.get("Users/bob/Channels/lobby");
    recorder.get("Users/bob/Channels");
    recorder.post(at, &[]);
}

fn bindings(recorder: &mut Recorder<'_>) {
    let mut sids = Vec::new();
    for (identity, kind, device) in [
        ("Ann", "apn", "d1"),
        ("Ann", "gcm", "d1"),
        ("bob", "fcm", "d2"),
        ("cid", "fcm", "d2"),
        ("Ann", "apn", "d1"),
    ] {
        let args = json!({
            "identity": identity, "binding_type": kind, "device": device, "endpoint": "E",
        });
        let answer = recorder.hook("register_binding", args);
        sids.push(answer["binding_sid"].as_str().unwrap_or("none").to_owned());
    }
    for at in [
        "Bindings",
        "Bindings?BindingType=apn&BindingType=fcm",
        "Bindings?Identity=Ann&Identity=bob",
        "Users/Ann/Bindings",
        "Users/Ann/Bindings?BindingType=gcm",
        "Users/Ann/Bindings?BindingType=gcm&BindingType=apn",
    ] {
        recorder.get(at);
    }
    for at in [
        format!("Users/Ann/Bindings/{}", sids[1]),
        format!("Bindings/{}", sids[2]),
    ] {
        recorder.get(&at);
        recorder.call("DELETE", &at, &[]);
        recorder.get(&at);
        recorder.get("Bindings");
    }
}

fn media(recorder: &mut Recorder<'_>) {
    let media = recorder.upload(b"a\xffb", |_| {});
    let sid = sid(&media);
    recorder.post("Channels/v3/Messages", &[("MediaSid", &sid)]);
    let target = |pointer: &str| {
        let url = media.pointer(pointer).and_then(Value::as_str);
        url.unwrap_or_default().replace("http://x", "")
    };
    for pointer in ["/url", "/links/content", "/links/content_direct_temporary"] {
        recorder.get(&target(pointer));
    }
    recorder.upload(b"abc", |r| r.headers.remove("Content-Size"));
    recorder.upload(b"abc", |r| r.headers.set("Content-Size", "1"));
    let services = recorder.get("/chat/v2/Services");
    let other = services["services"][1]["sid"].as_str().unwrap_or("none");
    recorder.get(&format!("/media/v1/Services/{other}/Media/{sid}"));
    recorder.upload(b"abc", |r| {
        let body = String::from_utf8_lossy(&r.body).replace("\"media\"", "\"file\"");
        r.body = body.into_bytes();
    });
    recorder.hook("configure_service", json!({"media": {"size_limit_mb": 1}}));
    for length in [1_000_001, 1024 * 1024 + 1] {
        recorder.upload(&vec![b'x'; length], |_| {});
    }
}

fn credentials(recorder: &mut Recorder<'_>) {
    let encode = |user: &str, password: &str| {
        let pair = format!("{user}:{password}");
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        format!("Basic {encoded}")
    };
    let service = text(&recorder.world.service, "/sid").to_owned();
    let media = format!("/media/v1/Services/{service}/Media/none");
    for path in ["Users/Ann/Channels", media.as_str()] {
        recorder.get_as(&encode(account::SID, account::AUTH_TOKEN), path);
        recorder.get_as(&encode(account::SID, "wrong"), path);
        recorder.get_as("", path);
    }
}
