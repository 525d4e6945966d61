//! Every resource: its fields, defaults, given values, addresses and refusals.

use super::*;

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
             message_types service_sid sid url user_sid",
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
    let counts = json!({
        "attributes": "{}", "created_by": "system", "members_count": 0, "messages_count": 0,
    });
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
    // All named identities are users now.
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

/// D2, Resources: where links lead, something is.
#[test]
fn every_link_leads_somewhere() {
    let mut world = World::new();
    let (channel, path) = world.channel(&[]);
    world.accepted("POST", &format!("{path}/Members"), &[("Identity", "ann")]);
    let message = world.accepted("POST", &format!("{path}/Messages"), &[("Body", "b")]);
    let user = world.accepted("POST", "Users", &[("Identity", "bob")]);
    world.accepted("POST", &format!("{path}/Invites"), &[("Identity", "bob")]);
    let place = world.get(&format!("Users/ann/{path}"));
    let fetched = world.get(&path);
    assert_eq!(fetched["links"]["last_message"], message["url"]);
    for (thing, own) in [
        (world.service.clone(), 4),
        (fetched, 5),
        (message, 0),
        (user, 2),
        (place, 2),
        (channel, 5),
    ] {
        let links = thing["links"].as_object().map(serde_json::Map::len);
        assert_eq!(links.unwrap_or_default(), own, "{thing}");
        let links = thing["links"].as_object().into_iter().flatten();
        for (_, link) in links.chain([(&String::new(), &thing["url"])]) {
            let Some(link) = link.as_str() else { continue };
            let found = world.get(link.strip_prefix("http://x").unwrap());
            if *link == thing["url"] {
                assert_eq!(found["url"], thing["url"]);
            }
        }
    }
    // D2, User: null on lists.
    world.hook("configure_service", json!({"reachability_enabled": true}));
    world.hook("set_online", json!({"identity": "bob", "online": true}));
    assert_eq!(world.get("Users/bob")["is_online"], json!(true));
    let listed = world.get("Users");
    assert!(
        listed["users"]
            .as_array()
            .unwrap()
            .iter()
            .all(|user| user["is_online"].is_null() && user["is_notifiable"].is_null())
    );
}

/// A text that was sent comes back as a text, and an empty name names nothing.
#[test]
fn empty_names_are_stored_and_identify_no_channel() {
    let mut world = World::new();
    for _ in 0..2 {
        let (channel, _) = world.channel(&[("UniqueName", ""), ("FriendlyName", "")]);
        shows(&channel, &json!({"unique_name": "", "friendly_name": ""}));
    }
    let (channel, _) = world.channel(&[]);
    shows(
        &channel,
        &json!({"unique_name": null, "friendly_name": null}),
    );
}
