//! Chat and media as a whole, through requests.

use crate::clock::{Timestamp, from_unix_ms};
use crate::http::{Request, Response};
use crate::reference::{Callback, Delivery, Fault, Reference, Settings, Variant, account};
use base64::Engine as _;
use serde_json::{Value, json};

const START_MS: i64 = 1_767_225_600_000;

/// A reference with one service, asked the way clients ask.
struct World {
    reference: Reference,
    now: Timestamp,
    service: Value,
}

impl World {
    fn new() -> Self {
        Self::with(&[], &[])
    }

    fn with(faults: &[Fault], variants: &[Variant]) -> Self {
        let settings = Settings {
            seed: 7,
            origin: "http://x".to_owned(),
            faults: faults.iter().copied().collect(),
            variants: variants.iter().copied().collect(),
        };
        let now = from_unix_ms(START_MS);
        let mut world = Self {
            reference: Reference::new(settings, now),
            now,
            service: Value::Null,
        };
        world.service = world.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "s")]);
        world
    }

    fn send(&mut self, mut request: Request) -> Response {
        let pair = format!("{}:{}", account::API_KEY, account::API_SECRET);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        if request.headers.get("Authorization").is_none() {
            request
                .headers
                .set("Authorization", format!("Basic {encoded}"));
        }
        self.reference.handle(&request, self.now)
    }

    /// A path below the service, or an absolute one.
    fn path(&self, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        format!("/chat/v2/Services/{}/{path}", text(&self.service, "/sid"))
    }

    fn call(&mut self, method: &str, path: &str, form: &[(&str, &str)]) -> Response {
        self.call_with(
            method,
            path,
            form,
            &[("X-Platform-Webhook-Enabled", "true")],
        )
    }

    fn call_with(
        &mut self,
        method: &str,
        path: &str,
        form: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = Request::new(method, self.path(path));
        // Real clients label GET requests too.
        let form_type = "application/x-www-form-urlencoded";
        request.headers.set("Content-Type", form_type);
        for (name, value) in headers {
            request.headers.set(name, *value);
        }
        request.body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish()
            .into_bytes();
        self.send(request)
    }

    fn accepted(&mut self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        let response = self.call(method, path, form);
        assert!(
            response.is_success(),
            "{method} {path} {form:?}: {response:?}"
        );
        serde_json::from_slice(&response.body).unwrap()
    }

    fn get(&mut self, path: &str) -> Value {
        self.accepted("GET", path, &[])
    }

    fn refused(&mut self, method: &str, path: &str, form: &[(&str, &str)]) {
        let response = self.call(method, path, form);
        assert!(
            !response.is_success(),
            "{method} {path} {form:?}: {response:?}"
        );
    }

    fn hook(&mut self, hook: &str, mut args: Value) -> Value {
        args["service_sid"] = self.service["sid"].clone();
        let mut request = Request::new("POST", format!("/_control/{hook}"));
        request.body = args.to_string().into_bytes();
        let response = self.send(request);
        assert_eq!(response.status, 200, "{hook}: {response:?}");
        serde_json::from_slice(&response.body).unwrap()
    }

    /// A channel and its path.
    fn channel(&mut self, form: &[(&str, &str)]) -> (Value, String) {
        let channel = self.accepted("POST", "Channels", form);
        let path = format!("Channels/{}", text(&channel, "/sid"));
        (channel, path)
    }

    fn callbacks(&mut self) -> Vec<Callback> {
        self.reference.take_callbacks()
    }

    /// Uploads a file the way the document asks for.
    fn upload(&mut self, bytes: &[u8], change: impl FnOnce(&mut Request)) -> Response {
        let path = format!("/media/v1/Services/{}/Media", text(&self.service, "/sid"));
        let mut request = Request::new("POST", path);
        let boundary = "multipart/form-data; boundary=\"b0undary\"";
        request.headers.set("Content-Type", boundary);
        request.headers.set("Content-Size", bytes.len().to_string());
        let mut body = b"--b0undary\r\nContent-Disposition: form-data; name=\"media\"; \
            filename=\"p.png\"\r\nContent-Type: image/png\r\n\r\n"
            .to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n--b0undary--\r\n");
        request.body = body;
        change(&mut request);
        self.send(request)
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} in {value}"))
}

/// Each of the expected fields is there with that value.
fn shows(value: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&value[name], expected, "{name} of {value}");
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

#[test]
fn representations_have_the_fields_of_their_tables() {
    let mut world = World::new();
    let (channel, path) = world.channel(&[]);
    let member = world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
    let message = world.accepted("POST", &format!("{path}/Messages"), &[]);
    let invite = world.accepted("POST", &format!("{path}/Invites"), &[("Identity", "bob")]);
    let webhook = world.accepted("POST", &format!("{path}/Webhooks"), &[("Type", "webhook")]);
    let user = world.accepted("POST", "Users", &[("Identity", "cid")]);
    let role_sid = text(&world.service, "/default_channel_role_sid").to_owned();
    let role = world.get(&format!("Roles/{role_sid}"));
    let user_channel = world.get(&format!("Users/ann/{path}"));
    let args = json!({"identity": "ann", "binding_type": "apn", "endpoint": "e"});
    let binding_sid = world.hook("register_binding", args);
    let binding_sid = text(&binding_sid, "/binding_sid");
    let binding = world.get(&format!("Bindings/{binding_sid}"));
    let user_binding = world.get(&format!("Users/ann/Bindings/{binding_sid}"));
    let media: Value = serde_json::from_slice(&world.upload(b"x", |_| {}).body).unwrap();
    for (value, expected) in [
        (
            &world.service.clone(),
            "account_sid consumption_report_interval date_created date_updated \
             default_channel_creator_role_sid default_channel_role_sid default_service_role_sid \
             friendly_name limits links media notifications post_webhook_retry_count \
             post_webhook_url pre_webhook_retry_count pre_webhook_url reachability_enabled \
             read_status_enabled sid typing_indicator_timeout url webhook_filters webhook_method",
        ),
        (
            &channel,
            "account_sid attributes created_by date_created date_updated friendly_name links \
             members_count messages_count service_sid sid type unique_name url",
        ),
        (
            &member,
            "account_sid attributes channel_sid date_created date_updated identity \
             last_consumed_message_index last_consumption_timestamp role_sid service_sid sid url",
        ),
        (
            &message,
            "account_sid attributes body channel_sid date_created date_updated from index \
             last_updated_by media service_sid sid to type url was_edited",
        ),
        (
            &user,
            "account_sid attributes date_created date_updated friendly_name identity \
             is_notifiable is_online joined_channels_count links role_sid service_sid sid url",
        ),
        (
            &role,
            "account_sid date_created date_updated friendly_name permissions service_sid sid \
             type url",
        ),
        (
            &invite,
            "account_sid channel_sid created_by date_created date_updated identity role_sid \
             service_sid sid url",
        ),
        (
            &webhook,
            "account_sid channel_sid configuration date_created date_updated service_sid sid \
             type url",
        ),
        (
            &user_channel,
            "account_sid channel_sid last_consumed_message_index links member_sid \
             notification_level service_sid status unread_messages_count url user_sid",
        ),
        (
            &binding,
            "account_sid binding_type credential_sid date_created date_updated endpoint identity \
             service_sid sid url",
        ),
        (
            &user_binding,
            "account_sid binding_type credential_sid date_created date_updated endpoint identity \
             message_types service_sid sid url user_sid",
        ),
        (
            &media,
            "account_sid author channel_sid content_type date_created date_updated file_name \
             links message_sid service_sid sid size url",
        ),
    ] {
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(keys(value), expected);
    }
}

#[test]
fn defaults_are_the_stated_ones() {
    let mut world = World::new();
    shows(
        &world.service,
        &json!({
            "read_status_enabled": true,
            "reachability_enabled": false,
            "typing_indicator_timeout": 5,
            "limits": {"channel_members": 250, "user_channels": 100},
            "webhook_method": "POST",
            "pre_webhook_retry_count": 0,
            "post_webhook_retry_count": 0,
        }),
    );
    let (channel, path) = world.channel(&[]);
    let counts = json!({"attributes": "{}", "created_by": "system", "members_count": 0, "messages_count": 0});
    shows(&channel, &counts);
    let message = world.accepted("POST", &format!("{path}/Messages"), &[]);
    shows(
        &message,
        &json!({"attributes": "{}", "from": "system", "body": "", "type": "text", "media": null}),
    );
    let webhook = world.accepted("POST", &format!("{path}/Webhooks"), &[("Type", "webhook")]);
    shows(&webhook["configuration"], &json!({"retry_count": 0}));
    let service = world.service.clone();
    let member = world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
    let invite = world.accepted("POST", &format!("{path}/Invites"), &[("Identity", "bob")]);
    let user = world.accepted("POST", "Users", &[("Identity", "cid")]);
    assert_eq!(member["role_sid"], service["default_channel_role_sid"]);
    assert_eq!(invite["role_sid"], service["default_channel_role_sid"]);
    assert_eq!(user["role_sid"], service["default_service_role_sid"]);
    let other = world.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "t")]);
    assert_ne!(
        other["default_service_role_sid"],
        service["default_service_role_sid"]
    );
}

#[test]
fn given_values_come_back() {
    let mut world = World::new();
    let role = |kind| {
        [
            ("FriendlyName", "r"),
            ("Type", kind),
            ("Permission", "a"),
            ("Permission", "b"),
        ]
    };
    let channel_role = world.accepted("POST", "Roles", &role("channel"));
    let service_role = world.accepted("POST", "Roles", &role("deployment"));
    shows(
        &channel_role,
        &json!({"friendly_name": "r", "type": "channel", "permissions": ["a", "b"]}),
    );
    let long = "u".repeat(64);
    let date = "2020-01-02T03:04:05Z";
    let (channel, path) = world.channel(&[
        ("FriendlyName", &long),
        ("UniqueName", &long),
        ("Attributes", "{\"a\": 1}"),
        ("Type", "private"),
        ("DateCreated", date),
        ("DateUpdated", date),
        ("CreatedBy", "ann"),
    ]);
    shows(
        &channel,
        &json!({
            "friendly_name": long, "unique_name": long, "attributes": "{\"a\": 1}",
            "type": "private", "date_created": date, "date_updated": date, "created_by": "ann",
        }),
    );
    let role_sid = text(&channel_role, "/sid").to_owned();
    let member = world.accepted(
        "POST",
        &format!("{path}/Members"),
        &[
            ("Identity", "Ann B"),
            ("RoleSid", &role_sid),
            ("LastConsumedMessageIndex", "3"),
            ("LastConsumptionTimestamp", date),
            ("DateCreated", date),
            ("Attributes", "[1]"),
        ],
    );
    shows(
        &member,
        &json!({
            "identity": "Ann B", "role_sid": role_sid, "last_consumed_message_index": 3,
            "last_consumption_timestamp": date, "date_created": date, "attributes": "[1]",
        }),
    );
    let message = world.accepted(
        "POST",
        &format!("{path}/Messages"),
        &[
            ("From", "dan"),
            ("Body", "hi"),
            ("LastUpdatedBy", "eve"),
            ("Attributes", "1"),
        ],
    );
    shows(
        &message,
        &json!({
            "from": "dan", "body": "hi", "last_updated_by": "eve", "attributes": "1",
            "to": channel["sid"], "channel_sid": channel["sid"],
        }),
    );
    let user_role = text(&service_role, "/sid").to_owned();
    let user = world.accepted(
        "POST",
        "Users",
        &[
            ("Identity", "fay"),
            ("RoleSid", &user_role),
            ("FriendlyName", "Fay"),
            ("Attributes", "{}"),
        ],
    );
    shows(
        &user,
        &json!({"identity": "fay", "role_sid": user_role, "friendly_name": "Fay"}),
    );
    // Everybody who was named is a user now.
    for identity in ["ann", "Ann%20B", "dan", "eve", "fay"] {
        world.get(&format!("Users/{identity}/Channels"));
    }
    world.refused("GET", "Users/gus/Channels", &[]);
}

#[test]
fn requests_outside_the_document_are_refused() {
    let mut world = World::new();
    let (_, path) = world.channel(&[("UniqueName", "taken")]);
    world.accepted("POST", "Users", &[("Identity", "ann")]);
    let long = "u".repeat(65);
    let service_role = text(&world.service, "/default_service_role_sid").to_owned();
    let cases: Vec<(String, Vec<(&str, &str)>)> = vec![
        ("/chat/v2/Services".into(), vec![]),
        ("/chat/v1/Services".into(), vec![("FriendlyName", "s")]),
        ("Channels".into(), vec![("FriendlyName", &long)]),
        ("Channels".into(), vec![("UniqueName", &long)]),
        ("Channels".into(), vec![("UniqueName", "taken")]),
        ("Channels".into(), vec![("Type", "secret")]),
        ("Channels".into(), vec![("Attributes", "{")]),
        ("Channels".into(), vec![("DateCreated", "yesterday")]),
        ("Users".into(), vec![]),
        ("Users".into(), vec![("Identity", "ann")]),
        (
            "Roles".into(),
            vec![("FriendlyName", "r"), ("Type", "channel")],
        ),
        (
            "Roles".into(),
            vec![("FriendlyName", "r"), ("Permission", "p")],
        ),
        (
            "Roles".into(),
            vec![("Type", "channel"), ("Permission", "p")],
        ),
        (
            "Roles".into(),
            vec![
                ("FriendlyName", &long),
                ("Type", "channel"),
                ("Permission", "p"),
            ],
        ),
        (
            "Roles".into(),
            vec![("FriendlyName", "r"), ("Type", "x"), ("Permission", "p")],
        ),
        (format!("{path}/Members"), vec![]),
        (
            format!("{path}/Members"),
            vec![("Identity", "x"), ("RoleSid", &service_role)],
        ),
        (
            format!("{path}/Members"),
            vec![("Identity", "x"), ("LastConsumedMessageIndex", "-1")],
        ),
        (
            format!("{path}/Messages"),
            vec![("MediaSid", "ME00000000000000000000000000000000")],
        ),
        (format!("{path}/Invites"), vec![]),
        (format!("{path}/Webhooks"), vec![]),
        (format!("{path}/Webhooks"), vec![("Type", "x")]),
        (
            format!("{path}/Webhooks"),
            vec![("Type", "webhook"), ("Configuration.Method", "PUT")],
        ),
        (
            format!("{path}/Webhooks"),
            vec![("Type", "webhook"), ("Configuration.RetryCount", "4")],
        ),
        (
            format!("{path}/Webhooks"),
            vec![("Type", "webhook"), ("Configuration.RetryCount", "-1")],
        ),
        (
            format!("{path}/Webhooks"),
            vec![("Type", "studio"), ("Configuration.FlowSid", "FW1")],
        ),
        (
            format!("{path}/Webhooks"),
            vec![("Type", "trigger"); 1]
                .into_iter()
                .chain(vec![("Configuration.Triggers", "t"); 6])
                .collect(),
        ),
        ("Channels/nowhere/Messages".into(), vec![]),
    ];
    for (path, form) in cases {
        world.refused("POST", &path, &form);
    }
    world.accepted("POST", "Users", &[("Identity", "Ann")]);
    world.service = world.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "other")]);
    world.accepted("POST", "Users", &[("Identity", "ann")]);
    world.accepted("POST", "Channels", &[("UniqueName", "taken")]);
}

#[test]
fn names_and_identities_stand_in_for_sids() {
    let mut world = World::new();
    let (channel, path) = world.channel(&[("UniqueName", "lob by")]);
    let member = world.accepted("POST", "Channels/lob%20by/Members", &[("Identity", "a/n")]);
    let member_sid = text(&member, "/sid").to_owned();
    for channel in ["lob%20by", text(&channel, "/sid")] {
        for sid in ["a%2Fn", member_sid.as_str()] {
            let at = format!("Channels/{channel}/Members/{sid}");
            assert_eq!(world.get(&at), member);
            world.accepted("POST", &at, &[]);
        }
        let list = world.get(&format!("Channels/{channel}/Members"));
        assert_eq!(list["members"].as_array().unwrap().len(), 1);
        world.accepted("POST", &format!("Channels/{channel}/Messages"), &[]);
        let invite = world.accepted(
            "POST",
            &format!("Channels/{channel}/Invites"),
            &[("Identity", channel)],
        );
        world.get(&format!(
            "Channels/{channel}/Invites/{}",
            text(&invite, "/sid")
        ));
        let webhook = world.accepted(
            "POST",
            &format!("Channels/{channel}/Webhooks"),
            &[("Type", "studio")],
        );
        let at = format!("Channels/{channel}/Webhooks/{}", text(&webhook, "/sid"));
        world.get(&at);
        world.accepted("POST", &at, &[]);
        world.get(&format!("Users/a%2Fn/Channels/{channel}"));
        world.accepted("POST", &format!("Users/a%2Fn/Channels/{channel}"), &[]);
    }
    let v3 = world.path(&path).replace("/v2/", "/v3/");
    world.accepted("POST", &v3, &[("Type", "private")]);
    let named = v3.replace(text(&channel, "/sid"), "lob%20by");
    let updated = world.accepted("POST", &named, &[]);
    let counts = json!({"type": "private", "members_count": 1, "messages_count": 2});
    shows(&updated, &counts);
    assert!(text(&updated, "/messaging_service_sid").starts_with("MG"));
    let messaging = format!("MG{}", "a".repeat(32));
    let updated = world.accepted("POST", &v3, &[("MessagingServiceSid", &messaging)]);
    shows(
        &updated,
        &json!({"messaging_service_sid": messaging, "type": "private"}),
    );
}

#[test]
fn messages_are_counted_as_unread_until_consumed() {
    let mut world = World::new();
    let (_, path) = world.channel(&[]);
    let members = format!("{path}/Members");
    world.accepted("POST", &members, &[("Identity", "ann")]);
    let mut last = None;
    for _ in 0..4 {
        let message = world.accepted("POST", &format!("{path}/Messages"), &[]);
        let index = message["index"].as_u64();
        assert!(index > last);
        last = index;
    }
    let at = format!("Users/ann/{path}");
    shows(
        &world.get(&at),
        &json!({"status": "joined", "unread_messages_count": 4, "notification_level": "default"}),
    );
    world.accepted(
        "POST",
        &at,
        &[
            ("LastConsumedMessageIndex", "1"),
            ("NotificationLevel", "muted"),
        ],
    );
    let after = json!({"unread_messages_count": 2, "last_consumed_message_index": 1, "notification_level": "muted"});
    shows(&world.get(&at), &after);
    // The member shows the same thing, with the time.
    shows(
        &world.get(&format!("{members}/ann")),
        &json!({"last_consumed_message_index": 1, "last_consumption_timestamp": "2026-01-01T00:00:00Z"}),
    );
    let date = "2021-01-01T00:00:00Z";
    world.accepted("POST", &at, &[("LastConsumptionTimestamp", date)]);
    let member = world.get(&format!("{members}/ann"));
    shows(&member, &json!({"last_consumption_timestamp": date}));
    world.accepted(
        "POST",
        &format!("{members}/ann"),
        &[("LastConsumedMessageIndex", "3")],
    );
    shows(&world.get(&at), &json!({"unread_messages_count": 0}));
    world.refused("POST", &at, &[("NotificationLevel", "loud")]);
}

#[test]
fn a_notification_level_belongs_to_one_pair() {
    let mut world = World::new();
    let paths = [world.channel(&[]).1, world.channel(&[]).1];
    for path in &paths {
        for identity in ["ann", "bob"] {
            world.accepted(
                "POST",
                &format!("{path}/Members"),
                &[("Identity", identity)],
            );
        }
    }
    world.accepted(
        "POST",
        &format!("Users/ann/{}", paths[0]),
        &[("NotificationLevel", "muted")],
    );
    for (user, path, level) in [
        ("ann", &paths[0], "muted"),
        ("ann", &paths[1], "default"),
        ("bob", &paths[0], "default"),
    ] {
        let at = format!("Users/{user}/{path}");
        shows(&world.get(&at), &json!({"notification_level": level}));
    }
}

#[test]
fn user_channels_follow_invitation_joining_and_leaving() {
    let mut world = World::new();
    let (channel, path) = world.channel(&[]);
    let creator_role = text(&world.service, "/default_channel_creator_role_sid").to_owned();
    let invitation = [("Identity", "ann"), ("RoleSid", creator_role.as_str())];
    world.accepted("POST", &format!("{path}/Invites"), &invitation);
    let at = format!("Users/ann/{path}");
    let invited = world.get(&at);
    shows(&invited, &json!({"status": "invited"}));
    let args = json!({"channel_sid": channel["sid"], "identity": "ann"});
    world.hook("join_channel", args.clone());
    shows(
        &world.get(&at),
        &json!({"status": "joined", "member_sid": invited["member_sid"]}),
    );
    let member = world.get(&format!("{path}/Members/ann"));
    shows(
        &member,
        &json!({"sid": invited["member_sid"], "role_sid": creator_role}),
    );
    world.hook("leave_channel", args);
    shows(&world.get(&at), &json!({"status": "notParticipating"}));
    world.refused("GET", &format!("{path}/Members/ann"), &[]);
    let list = world.get("Users/ann/Channels");
    assert_eq!(list["channels"].as_array().unwrap().len(), 1);
}

#[test]
fn limits_hold_on_both_sides() {
    let mut world = World::new();
    world.hook(
        "configure_service",
        json!({"limits": {"channel_members": 2, "user_channels": 3}}),
    );
    let service = world.path("");
    let service = world.get(service.trim_end_matches('/'));
    shows(
        &service,
        &json!({"limits": {"channel_members": 2, "user_channels": 3}}),
    );
    let paths: Vec<String> = (0..4).map(|_| world.channel(&[]).1).collect();
    for path in &paths[..3] {
        world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
    }
    world.refused(
        "POST",
        &format!("{}/Members", paths[3]),
        &[("Identity", "ann")],
    );
    world.accepted(
        "POST",
        &format!("{}/Members", paths[0]),
        &[("Identity", "bob")],
    );
    world.refused(
        "POST",
        &format!("{}/Members", paths[0]),
        &[("Identity", "cid")],
    );
    for path in &paths[..2] {
        for _ in 0..5 {
            world.accepted("POST", &format!("{path}/Webhooks"), &[("Type", "webhook")]);
        }
        world.refused("POST", &format!("{path}/Webhooks"), &[("Type", "webhook")]);
    }
}

#[test]
fn webhooks_leave_as_configured() {
    let mut world = World::new();
    let (channel, path) = world.channel(&[]);
    let webhooks = format!("{path}/Webhooks");
    let url = ("Configuration.Url", "http://h/hook?k=v");
    let filter = |name| ("Configuration.Filters", name);
    let retries = ("Configuration.RetryCount", "2");
    let method = ("Configuration.Method", "GET");
    let trigger = |text| ("Configuration.Triggers", text);
    let sent = [
        ("Type", "webhook"),
        url,
        filter("onOther"),
        filter("onMessageSent"),
        retries,
    ];
    world.accepted("POST", &webhooks, &sent);
    world.accepted(
        "POST",
        &webhooks,
        &[("Type", "webhook"), url, filter("onOther")],
    );
    let triggers = [
        ("Type", "trigger"),
        url,
        method,
        trigger("magic"),
        trigger("word"),
    ];
    world.accepted("POST", &webhooks, &triggers);
    let flow = format!("FW{}", "0".repeat(32));
    world.accepted(
        "POST",
        &webhooks,
        &[("Type", "studio"), url, ("Configuration.FlowSid", &flow)],
    );
    let messages = format!("{path}/Messages");
    assert!(world.callbacks().is_empty());
    world.accepted("POST", &messages, &[("Body", "plain")]);
    let sent = world.callbacks();
    assert_eq!(sent.len(), 1);
    let callback = &sent[0];
    assert_eq!(
        (callback.request.method.as_str(), callback.retries_left),
        ("POST", 2)
    );
    assert_eq!(
        (callback.url.as_str(), callback.timeout.as_secs()),
        ("http://h/hook?k=v", 5)
    );
    let body = form_urlencoded::parse(&callback.request.body)
        .into_owned()
        .collect::<Vec<_>>();
    for pair in [
        ("EventType", "onMessageSent"),
        ("Body", "plain"),
        ("ChannelSid", text(&channel, "/sid")),
    ] {
        assert!(
            body.contains(&(pair.0.to_owned(), pair.1.to_owned())),
            "{pair:?} {body:?}"
        );
    }
    world.accepted("POST", &messages, &[("Body", "a sword here")]);
    let sent = world.callbacks();
    let methods: Vec<&str> = sent.iter().map(|c| c.request.method.as_str()).collect();
    assert_eq!(methods, ["POST", "GET"]);
    assert!(
        sent[1]
            .request
            .target
            .starts_with("/hook?k=v&EventType=onMessageSent&")
    );
    // Without the header, or with `false`, nobody is called.
    for headers in [&[][..], &[("X-Platform-Webhook-Enabled", "false")]] {
        world.call_with("POST", &messages, &[("Body", "magic")], headers);
        assert!(world.callbacks().is_empty());
    }
}

#[test]
fn deliveries_are_repeated_as_often_as_configured() {
    let attempts = |faults: &[Fault], outcome: Delivery| {
        let mut world = World::with(faults, &[]);
        let (_, path) = world.channel(&[]);
        let url = ("Configuration.Url", "http://h/");
        let webhook = [("Type", "webhook"), url, ("Configuration.RetryCount", "3")];
        world.accepted("POST", &format!("{path}/Webhooks"), &webhook);
        world.accepted("POST", &format!("{path}/Messages"), &[]);
        let mut attempts = 0;
        loop {
            let due = world.callbacks();
            let [callback] = due.as_slice() else {
                return attempts;
            };
            attempts += 1;
            world.reference.delivered(callback.id, outcome);
        }
    };
    for (outcome, expected) in [
        (Delivery::TimedOut, 4),
        (Delivery::Answered(429), 4),
        (Delivery::Answered(503), 4),
        (Delivery::Answered(504), 4),
        (Delivery::Answered(200), 1),
        (Delivery::Answered(500), 1),
        (Delivery::Unreachable, 1),
    ] {
        assert_eq!(attempts(&[], outcome), expected, "{outcome:?}");
    }
    for (fault, outcome, expected) in [
        (Fault::ChatRetriesNone, Delivery::TimedOut, 1),
        (Fault::ChatRetriesOneLess, Delivery::TimedOut, 3),
        (Fault::ChatRetriesOneMore, Delivery::TimedOut, 5),
        (Fault::ChatRetryNotOnTimeout, Delivery::TimedOut, 1),
        (Fault::ChatRetryNotOn429, Delivery::Answered(429), 1),
        (Fault::ChatRetryNotOn503, Delivery::Answered(503), 1),
        (Fault::ChatRetryNotOn504, Delivery::Answered(504), 1),
        (Fault::ChatRetryOn200, Delivery::Answered(200), 4),
        (Fault::ChatRetryOn500, Delivery::Answered(500), 4),
    ] {
        assert_eq!(attempts(&[fault], outcome), expected, "{fault:?}");
    }
}

#[test]
fn service_webhooks_are_called_before_and_after() {
    let mut world = World::new();
    let (_, path) = world.channel(&[]);
    world.hook(
        "configure_service",
        json!({
            "pre_webhook_url": "http://h/pre", "post_webhook_url": "http://h/post",
            "webhook_method": "GET", "webhook_filters": ["onMessageSend", "onMessageSent"],
            "pre_webhook_retry_count": 1, "post_webhook_retry_count": 2,
        }),
    );
    world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
    world.accepted("POST", &format!("{path}/Messages"), &[("Body", "b")]);
    let sent: Vec<(String, u32)> = world
        .callbacks()
        .iter()
        .map(|c| (c.request.path().to_owned(), c.retries_left))
        .collect();
    assert_eq!(sent, [("/pre".to_owned(), 1), ("/post".to_owned(), 2)]);
}

#[test]
fn bindings_are_unique_filtered_and_deleted() {
    let mut world = World::new();
    let mut register = |identity: &str, kind: &str, device: &str| {
        let args =
            json!({"identity": identity, "binding_type": kind, "device": device, "endpoint": "e"});
        text(&world.hook("register_binding", args), "/binding_sid").to_owned()
    };
    let first = register("ann", "apn", "d1");
    assert_eq!(register("ann", "apn", "d1"), first);
    let others = [
        register("ann", "gcm", "d1"),
        register("ann", "apn", "d2"),
        register("bob", "fcm", "d1"),
    ];
    assert!(!others.contains(&first));
    for (at, count) in [
        ("Bindings", 4),
        ("Bindings?BindingType=apn", 2),
        ("Bindings?BindingType=apn&BindingType=fcm", 3),
        ("Bindings?Identity=bob", 1),
        ("Bindings?Identity=ann&Identity=bob", 4),
        ("Bindings?Identity=Bob", 0),
        ("Bindings?Identity=ann&BindingType=gcm", 1),
        ("Users/ann/Bindings", 3),
        ("Users/ann/Bindings?BindingType=apn&BindingType=gcm", 3),
        ("Users/ann/Bindings?BindingType=gcm", 1),
    ] {
        let list = world.get(at);
        assert_eq!(list["meta"]["key"], "bindings");
        assert_eq!(list["bindings"].as_array().unwrap().len(), count, "{at}");
    }
    world.refused("GET", "Users/ann/Bindings?BindingType=sms", &[]);
    world.refused("GET", &format!("Users/bob/Bindings/{first}"), &[]);
    for at in [
        format!("Users/ann/Bindings/{first}"),
        format!("Bindings/{}", others[2]),
    ] {
        world.get(&at);
        assert_eq!(world.call("DELETE", &at, &[]).status, 204);
        world.refused("GET", &at, &[]);
        world.refused("DELETE", &at, &[]);
    }
}

#[test]
fn lists_are_walked_by_following_their_links() {
    let mut world = World::new();
    let (_, path) = world.channel(&[]);
    for n in 0..7 {
        world.accepted(
            "POST",
            &format!("{path}/Members"),
            &[("Identity", &format!("m{n}"))],
        );
    }
    let query = "Identity=m1&Identity=m2&Identity=m3&Identity=m5&Identity=m6&PageSize=2";
    let mut at = Some(format!("{path}/Members?{query}"));
    let mut seen = Vec::new();
    while let Some(target) = at {
        let page = world.get(&target);
        let key = text(&page, "/meta/key");
        seen.extend(
            page[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|m| text(m, "/identity").to_owned()),
        );
        let next = page["meta"]["next_page_url"].as_str();
        at = next.map(|url| url.strip_prefix("http://x").unwrap().to_owned());
    }
    assert_eq!(seen, ["m1", "m2", "m3", "m5", "m6"]);
}

#[test]
fn updates_are_kept() {
    let mut world = World::new();
    let (_, path) = world.channel(&[]);
    world.now = from_unix_ms(START_MS + 60_000);
    let role = [
        ("FriendlyName", "r"),
        ("Type", "deployment"),
        ("Permission", "p"),
    ];
    let role = world.accepted("POST", "Roles", &role);
    let role_sid = text(&role, "/sid").to_owned();
    let at = world.path("").trim_end_matches('/').to_owned();
    world.accepted(
        "POST",
        &at,
        &[("FriendlyName", "n"), ("DefaultServiceRoleSid", &role_sid)],
    );
    let expected = json!({
        "friendly_name": "n", "default_service_role_sid": role_sid,
        "date_created": "2026-01-01T00:00:00Z", "date_updated": "2026-01-01T00:01:00Z",
    });
    shows(&world.get(&at), &expected);
    let user = world.accepted("POST", "Users", &[("Identity", "ann")]);
    shows(&user, &json!({"role_sid": role_sid}));
    world.refused("POST", &at, &[("DefaultServiceRoleSid", "RL0")]);
    let webhook = world.accepted("POST", &format!("{path}/Webhooks"), &[("Type", "webhook")]);
    let at = format!("{path}/Webhooks/{}", text(&webhook, "/sid"));
    world.accepted(
        "POST",
        &at,
        &[
            ("Configuration.Url", "http://h/"),
            ("Configuration.Method", "GET"),
        ],
    );
    let webhook = world.get(&at);
    shows(
        &webhook["configuration"],
        &json!({"url": "http://h/", "method": "GET"}),
    );
}

#[test]
fn files_come_back_as_they_were_uploaded() {
    let mut world = World::new();
    let bytes = b"\x89PNG\r\n--b0\r\n\xff\x00 end";
    let response = world.upload(bytes, |_| {});
    let media: Value = serde_json::from_slice(&response.body).unwrap();
    let expected = json!({
        "size": bytes.len(), "content_type": "image/png", "file_name": "p.png",
        "date_updated": null, "channel_sid": null, "message_sid": null,
    });
    shows(&media, &expected);
    let target = |media: &Value, pointer: &str| {
        text(media, pointer)
            .strip_prefix("http://x")
            .unwrap()
            .to_owned()
    };
    assert_eq!(world.get(&target(&media, "/url")), media);
    let content = world.call("GET", &target(&media, "/links/content"), &[]);
    assert_eq!(
        (content.headers.media_type().as_deref(), &content.body[..]),
        (Some("image/png"), &bytes[..])
    );
    let direct = Request::new("GET", target(&media, "/links/content_direct_temporary"));
    let served = world.reference.handle(&direct, world.now);
    assert_eq!((served.status, &served.body[..]), (200, &bytes[..]));
    let later = from_unix_ms(START_MS + 301_000);
    assert_eq!(world.reference.handle(&direct, later).status, 403);
    let (channel, path) = world.channel(&[]);
    let sid = text(&media, "/sid").to_owned();
    let message = world.accepted("POST", &format!("{path}/Messages"), &[("MediaSid", &sid)]);
    let shown =
        json!({"content_type": "image/png", "filename": "p.png", "sid": sid, "size": bytes.len()});
    shows(&message, &json!({"type": "media", "media": shown}));
    let media = world.get(&target(&media, "/url"));
    shows(
        &media,
        &json!({"channel_sid": channel["sid"], "message_sid": message["sid"]}),
    );
}

#[test]
fn uploads_that_are_not_as_stated_are_refused() {
    type Change = fn(&mut Request);
    let changes: [(&str, Change); 6] = [
        ("no multipart", |r| {
            r.headers.set("Content-Type", "image/png")
        }),
        ("no boundary", |r| {
            r.headers.set("Content-Type", "multipart/form-data")
        }),
        ("no size", |r| r.headers.remove("Content-Size")),
        ("another size", |r| r.headers.set("Content-Size", "4")),
        ("no end", |r| r.body.truncate(r.body.len() - 6)),
        ("another part", |r| {
            let text = String::from_utf8(r.body.clone()).unwrap();
            r.body = text.replace("\"media\"", "\"file\"").into_bytes();
        }),
    ];
    let mut world = World::new();
    assert_eq!(world.upload(b"abc", |_| {}).status, 201);
    for (name, change) in changes {
        assert!(!world.upload(b"abc", change).is_success(), "{name}");
    }
    world.hook("configure_service", json!({"media": {"size_limit_mb": 1}}));
    assert_eq!(world.upload(&[b'x'; 1024 * 1024], |_| {}).status, 201);
    assert_eq!(world.upload(&[b'x'; 1024 * 1024 + 1], |_| {}).status, 413);
}

#[test]
fn credentials_are_checked_on_chat_and_media() {
    let mut world = World::new();
    let encode = |pair: String| base64::engine::general_purpose::STANDARD.encode(pair);
    let chat = world.path("").trim_end_matches('/').to_owned();
    let upload = world.upload(b"x", |_| {});
    let upload: Value = serde_json::from_slice(&upload.body).unwrap();
    let media = text(&upload, "/url")
        .strip_prefix("http://x")
        .unwrap()
        .to_owned();
    for target in [&chat, &media] {
        for (authorization, accepted) in [
            (
                format!(
                    "Basic {}",
                    encode(format!("{}:{}", account::SID, account::AUTH_TOKEN))
                ),
                true,
            ),
            (
                format!("Basic {}", encode(format!("{}:wrong", account::API_KEY))),
                false,
            ),
            (String::new(), false),
        ] {
            let mut request = Request::new("GET", target.clone());
            request.headers.set("Authorization", authorization.clone());
            let response = world.reference.handle(&request, world.now);
            assert_eq!(response.is_success(), accepted, "{target} {authorization}");
        }
    }
}

/// Every freedom still answers the plain story.
#[test]
fn variants_keep_the_story_whole() {
    for variant in Variant::ALL {
        let mut world = World::with(&[], &[*variant]);
        let (_, path) = world.channel(&[("UniqueName", "lobby")]);
        world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
        world.accepted(
            "POST",
            &format!("{path}/Messages"),
            &[("From", "ann"), ("Body", "b")],
        );
        let at = format!("Users/ann/{path}");
        world.accepted("POST", &at, &[("LastConsumedMessageIndex", "0")]);
        world.get("Users/ann/Channels?PageSize=2");
    }
}
