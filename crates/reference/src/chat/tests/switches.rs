//! Every variant changes the result of one long scenario and passes a plain one.

use super::*;

/// The plain scenario passes under every variant.
#[test]
fn variants_keep_the_story_whole() {
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
fn every_variant_shows_in_the_story() {
    let clean = story(&[], &[], None);
    assert_eq!(
        clean,
        story(&[], &[], None),
        "the scenario is reproducible"
    );
    let silent: Vec<&str> = Variant::ALL
        .iter()
        .filter(|variant| variant.id().starts_with("chat/") || variant.id().starts_with("media/"))
        .filter(|variant| story(&[], &[**variant], Some(&clean)) == clean)
        .map(|variant| variant.id())
        .collect();
    assert_eq!(silent, [""; 0], "these change nothing");
}

/// What was answered and sent, step by step.
pub(super) struct Teller<'a> {
    pub(super) world: World,
    told: Vec<String>,
    /// The expected results; the scenario stops at the first difference.
    clean: Option<&'a [String]>,
    differs: bool,
}

impl Teller<'_> {
    fn note(&mut self, told: String) {
        let expected = self.clean.map(|clean| clean.get(self.told.len()));
        self.differs |= expected.is_some_and(|expected| expected != Some(&told));
        self.told.push(told);
    }

    fn tell(&mut self, step: &str, response: &Response) -> Value {
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
        let value = self.tell(&format!("{method} {form:?}"), &response);
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
        self.tell(hook, &response)
    }

    pub(super) fn upload(&mut self, bytes: &[u8], change: impl FnOnce(&mut Request)) -> Value {
        if self.differs {
            return Value::Null;
        }
        let response = self.world.upload(bytes, change);
        self.tell("upload", &response)
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
        self.tell(authorization, &response);
    }
}

pub(super) fn sid(value: &Value) -> String {
    value["sid"].as_str().unwrap_or("none").to_owned()
}

/// Everything that the document lets a client, a person and a device do, and most of what it
/// refuses.
fn story(faults: &[Fault], variants: &[Variant], clean: Option<&[String]>) -> Vec<String> {
    let mut teller = Teller {
        told: Vec::new(),
        clean,
        differs: false,
        world: World::without_service(faults, variants),
    };
    let service = teller.post("/chat/v2/Services", &[("FriendlyName", "s")]);
    if service["sid"].is_null() {
        return teller.told;
    }
    teller.world.service = service;
    services_and_roles(&mut teller);
    channels(&mut teller);
    users_and_invites(&mut teller);
    members(&mut teller);
    webhooks(&mut teller);
    user_channels(&mut teller);
    bindings(&mut teller);
    media(&mut teller);
    credentials(&mut teller);
    near_misses::tell(&mut teller);
    teller.told
}

fn services_and_roles(teller: &mut Teller<'_>) {
    let other = teller.post("/chat/v2/Services", &[("FriendlyName", "other")]);
    teller.post("/chat/v2/Services", &[]);
    for query in [
        "",
        "?PageSize=0",
        "?PageSize=1",
        "?PageSize=1&Page=1&PageToken=PA1",
        "?PageSize=1001",
    ] {
        teller.get(&format!("/chat/v2/Services{query}"));
    }
    let at = format!("/chat/v2/Services/{}", sid(&other));
    teller.get(&at);
    teller.post(&format!("{at}/Users"), &[("Identity", "foreign")]);
    teller.post(&format!("{at}/Channels"), &[("UniqueName", "foreign")]);
    teller.get("Channels/foreign/Members");
    let (long, longer) = ("r".repeat(64), "r".repeat(65));
    let role = teller.post(
        "Roles",
        &[
            ("FriendlyName", &long),
            ("Type", "deployment"),
            ("Permission", "p"),
            ("Permission", "q"),
        ],
    );
    teller.get(&format!("Roles/{}", sid(&role)));
    teller.get(&format!("{at}/Roles/{}", sid(&role)));
    let of_channels = [
        ("FriendlyName", "c"),
        ("Type", "channel"),
        ("Permission", "p"),
    ];
    teller.post("Roles", &of_channels);
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
        teller.post("Roles", &form);
    }
    teller.world.now = from_unix_ms(START_MS + 60_000);
    let role = sid(&role);
    teller.post(
        &at,
        &[("DefaultServiceRoleSid", &role), ("FriendlyName", "n")],
    );
    let own_role = text(&teller.world.service, "/default_service_role_sid").to_owned();
    let own = teller.world.path("").trim_end_matches('/').to_owned();
    teller.post(&own, &[("FriendlyName", "renamed")]);
    teller.post(&own, &[("DefaultServiceRoleSid", &role)]);
    teller.post(&own, &[("DefaultServiceRoleSid", &own_role)]);
    teller.get(&own);
    teller.hook(
        "configure_service",
        json!({"limits": {"channel_members": 3, "user_channels": 3}}),
    );
}

fn channels(teller: &mut Teller<'_>) {
    let (long, longer) = ("c".repeat(64), "c".repeat(65));
    let date = "2020-01-02T03:04:05Z";
    teller.post(
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
        teller.post("Channels", &form);
    }
}

fn users_and_invites(teller: &mut Teller<'_>) {
    for form in [
        [("Identity", "Dora"), ("FriendlyName", "D")],
        [("Identity", "dora"), ("Attributes", "[1]")],
        [("Identity", "dora"), ("Attributes", "{}")],
        [("Identity", "emil"), ("Attributes", "{")],
        [("Identity", "foreign"), ("Attributes", "{}")],
        [("Identity", ""), ("Attributes", "{}")],
    ] {
        teller.post("Users", &form);
    }
    let role = text(&teller.world.service, "/default_service_role_sid").to_owned();
    let roles = [
        ("FriendlyName", "r"),
        ("Type", "deployment"),
        ("Permission", "p"),
    ];
    let other = sid(&teller.post("Roles", &roles));
    teller.post("Users", &[("Identity", "fred"), ("RoleSid", &other)]);
    teller.post("Users", &[("Identity", "gina"), ("RoleSid", &role)]);
    teller.hook("configure_service", json!({"reachability_enabled": true}));
    teller.post("Users", &[("Identity", "hans")]);
    teller.hook("configure_service", json!({"reachability_enabled": false}));
    let creator = text(&teller.world.service, "/default_channel_creator_role_sid").to_owned();
    for form in [
        &[("Identity", "Ivo")][..],
        &[("Identity", "jan"), ("RoleSid", creator.as_str())],
        &[],
    ] {
        let invite = teller.post("Channels/lobby/Invites", form);
        teller.get(&format!("Channels/lobby/Invites/{}", sid(&invite)));
    }
    teller.get("Users/Ivo/Channels/lobby");
    teller.get("Users/Ivo/Channels");
}

fn members(teller: &mut Teller<'_>) {
    let creator = text(&teller.world.service, "/default_channel_creator_role_sid").to_owned();
    let members = "Channels/lobby/Members";
    for form in [
        &[("Identity", "Ann"), ("Attributes", "[2]")][..],
        &[("Identity", "bob"), ("RoleSid", creator.as_str())],
        &[("Identity", "cid"), ("Attributes", "{")],
        &[("Identity", ""), ("Attributes", "{}")],
        &[("Identity", "cid"), ("LastConsumedMessageIndex", "1")],
        &[("Identity", "dan")],
    ] {
        teller.post(members, form);
    }
    let long = "c".repeat(64);
    teller.post(
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
        teller.get(&format!("{members}{query}"));
    }
    teller.world.now = from_unix_ms(START_MS + 120_000);
    teller.get(&format!("{members}/bob"));
    teller.post(&format!("{members}/Ann"), &[("RoleSid", &creator)]);
    teller.post(
        &format!("{members}/Ann"),
        &[("LastConsumedMessageIndex", "1")],
    );
    teller.get(&format!("{members}/Ann"));
    for name in ["one", "two", "three"] {
        teller.post("Channels", &[("UniqueName", name)]);
        teller.post(&format!("Channels/{name}/Members"), &[("Identity", "Ann")]);
    }
    teller.post(&format!("{members}/Ann"), &[("RoleSid", &creator)]);
    teller.get("Channels/one/Members/Ann");
    for form in [
        &[("From", "kim"), ("Body", "hello"), ("Attributes", "3")][..],
        &[("LastUpdatedBy", "lea"), ("Body", "")],
        &[("Attributes", "{")],
        &[],
    ] {
        teller.post("Channels/lobby/Messages", form);
    }
    teller.get("Users/kim/Channels");
    let messaging = format!("MG{}", "b".repeat(32));
    let channel = teller.post("Channels", &[("Type", "public"), ("UniqueName", "v3")]);
    let base = teller.world.path("Channels").replace("/v2/", "/v3/");
    for (channel, form) in [
        ("lobby", &[("Type", "private")][..]),
        ("lobby", &[("MessagingServiceSid", &*messaging)]),
        (&*sid(&channel), &[("Type", "other")]),
        ("lobby", &[]),
    ] {
        teller.post(&format!("{base}/{channel}"), form);
    }
}

fn webhooks(teller: &mut Teller<'_>) {
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
        teller.post(at, form);
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
    teller.post(at, &with_type(6));
    teller.post(at, &with_type(5));
    teller.post(at, &[("Type", "webhook")]);
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
        teller.post(at, form);
    }
    let webhook = teller.get(at)["webhooks"][0].clone();
    let webhook = format!("{at}/{}", sid(&webhook));
    teller.get(&webhook);
    let webhook = teller.post(at, &[("Type", "webhook")]);
    let sid = sid(&webhook);
    let webhook = format!("{at}/{sid}");
    let changes = [(url, "http://h/b"), (method, "GET"), (filter, "x")];
    teller.post(&webhook, &changes);
    teller.post(&webhook, &[]);
    teller.get(&webhook);
    teller.get(&format!("Channels/two/Webhooks/{sid}"));
    teller.hook(
        "configure_service",
        json!({
            "pre_webhook_url": "http://h/pre", "post_webhook_url": "http://h/post",
            "webhook_filters": ["onMessageSend", "onMessageSent"],
        }),
    );
    for channel in ["one", "two"] {
        let messages = format!("Channels/{channel}/Messages");
        for body in ["plain", "some magic word", "t"] {
            teller.post(&messages, &[("Body", body)]);
        }
        let silent = teller.world.call_with("POST", &messages, &[], &[]);
        teller.tell("without header", &silent);
        teller.deliver();
        teller.post(
            &format!("Channels/{channel}/Members"),
            &[("Identity", "mia")],
        );
    }
}

fn user_channels(teller: &mut Teller<'_>) {
    let at = "Users/Ann/Channels/lobby";
    teller.get(at);
    for form in [
        [("NotificationLevel", "muted")],
        [("NotificationLevel", "loud")],
        [("LastConsumedMessageIndex", "2")],
        [("LastConsumptionTimestamp", "2021-01-01T00:00:00Z")],
    ] {
        teller.post(at, &form);
    }
    teller.get(at);
    teller.get("Channels/lobby/Members/Ann");
    teller.get("Users/bob/Channels/lobby");
    for query in ["", "?PageSize=51"] {
        teller.get(&format!("Users/Ann/Channels{query}"));
    }
    let args = json!({"channel_sid": "lobby", "identity": "bob"});
    teller.hook("leave_channel", args);
    teller.get("Users/bob/Channels/lobby");
    teller.get("Users/bob/Channels");
    teller.post(at, &[]);
}

fn bindings(teller: &mut Teller<'_>) {
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
        let answer = teller.hook("register_binding", args);
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
        teller.get(at);
    }
    for at in [
        format!("Users/Ann/Bindings/{}", sids[1]),
        format!("Bindings/{}", sids[2]),
    ] {
        teller.get(&at);
        teller.call("DELETE", &at, &[]);
        teller.get(&at);
        teller.get("Bindings");
    }
}

fn media(teller: &mut Teller<'_>) {
    let media = teller.upload(b"a\xffb", |_| {});
    let sid = sid(&media);
    teller.post("Channels/v3/Messages", &[("MediaSid", &sid)]);
    let target = |pointer: &str| {
        let url = media.pointer(pointer).and_then(Value::as_str);
        url.unwrap_or_default().replace("http://x", "")
    };
    for pointer in ["/url", "/links/content", "/links/content_direct_temporary"] {
        teller.get(&target(pointer));
    }
    teller.upload(b"abc", |r| r.headers.remove("Content-Size"));
    teller.upload(b"abc", |r| r.headers.set("Content-Size", "1"));
    let services = teller.get("/chat/v2/Services");
    let other = services["services"][1]["sid"].as_str().unwrap_or("none");
    teller.get(&format!("/media/v1/Services/{other}/Media/{sid}"));
    teller.upload(b"abc", |r| {
        let body = String::from_utf8_lossy(&r.body).replace("\"media\"", "\"file\"");
        r.body = body.into_bytes();
    });
    teller.hook("configure_service", json!({"media": {"size_limit_mb": 1}}));
    for length in [1_000_001, 1024 * 1024 + 1] {
        teller.upload(&vec![b'x'; length], |_| {});
    }
}

fn credentials(teller: &mut Teller<'_>) {
    let encode = |user: &str, password: &str| {
        let pair = format!("{user}:{password}");
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        format!("Basic {encoded}")
    };
    let service = text(&teller.world.service, "/sid").to_owned();
    let media = format!("/media/v1/Services/{service}/Media/none");
    for path in ["Users/Ann/Channels", media.as_str()] {
        teller.get_as(&encode(account::SID, account::AUTH_TOKEN), path);
        teller.get_as(&encode(account::SID, "wrong"), path);
        teller.get_as("", path);
    }
}
