//! Later part of the scenario that covers every fault: boundary-invalid, misplaced, repeated and long values.

use super::switches::{Recorder, sid};
use super::*;

/// Continues in a separate service with a sibling.
pub(super) fn run(recorder: &mut Recorder<'_>) {
    let first = recorder.world.service.clone();
    recorder.world.service = recorder.post(
        "/chat/v2/Services",
        &[("FriendlyName", "<b>&".repeat(80).as_str())],
    );
    if recorder.world.service["sid"].is_null() {
        return;
    }
    scopes(recorder, &first);
    texts(recorder);
    updates(recorder);
    limits(recorder);
    again(recorder);
    lists(recorder);
    callbacks(recorder);
    media(recorder);
    credentials(recorder);
    later(recorder);
}

fn later(recorder: &mut Recorder<'_>) {
    recorder.world.now = from_unix_ms(START_MS + 900_000);
    recorder.get("Channels/Scope/Members");
    recorder.get("Channels/Scope/Webhooks");
    recorder.get("Bindings");
    recorder.get("/chat/v2/Services");
    recorder.post("Channels/Scope/Messages", &[("Body", "late")]);
    recorder.get("Channels/Scope");
    recorder.post(
        "Users/Ann/Channels/Scope",
        &[("LastConsumedMessageIndex", "0")],
    );
    recorder.get("Channels/Scope/Members/Ann");
    recorder.post("Channels", &[("UniqueName", "late")]);
    let own = recorder.world.path("").trim_end_matches('/').to_owned();
    recorder.get(&own);
}

/// Lets a second pass, so that what an update moves can be seen.
fn tick(recorder: &mut Recorder<'_>) {
    recorder.world.now += std::time::Duration::from_secs(1);
}

fn scopes(recorder: &mut Recorder<'_>, first: &Value) {
    let elsewhere = format!("/chat/v2/Services/{}", text(first, "/sid"));
    let role = recorder.post(
        &format!("{elsewhere}/Roles"),
        &[
            ("FriendlyName", "r"),
            ("Type", "channel"),
            ("Permission", "p"),
        ],
    );
    let deployment = text(first, "/default_service_role_sid").to_owned();
    let role = sid(&role);
    recorder.post("Channels", &[("UniqueName", "Scope")]);
    let other = recorder.post("Channels", &[("UniqueName", "Other")]);
    let other = sid(&other);
    let own = recorder.world.path("").trim_end_matches('/').to_owned();
    let refused = [
        ("DefaultServiceRoleSid", deployment.as_str()),
        ("FriendlyName", "x"),
    ];
    recorder.post(&own, &refused);
    recorder.get(&own);
    recorder.post("Users", &[("Identity", "una"), ("RoleSid", &deployment)]);
    recorder.post(
        "Channels/Scope/Members",
        &[("Identity", "vic"), ("RoleSid", &role)],
    );
    recorder.get("Channels/Scope/Members");
    recorder.post(
        "Channels/Scope/Invites",
        &[("Identity", "wim"), ("RoleSid", &role)],
    );
    let member = recorder.post("Channels/Scope/Members", &[("Identity", "Xen")]);
    let invite = recorder.post("Channels/Scope/Invites", &[("Identity", "yan")]);
    recorder.post("Channels/Scope/Invites", &[("Identity", "zoe")]);
    let webhook = recorder.post("Channels/Scope/Webhooks", &[("Type", "webhook")]);
    let member = format!("Channels/{other}/Members/{}", sid(&member));
    recorder.get(&member);
    recorder.post(&member, &[("LastConsumedMessageIndex", "0")]);
    recorder.get(&format!("Channels/{other}/Invites/{}", sid(&invite)));
    tick(recorder);
    recorder.post("Channels/Scope/Members", &[("Identity", "yan")]);
    recorder.get(&format!("Channels/Scope/Invites/{}", sid(&invite)));
    let webhook = format!("Channels/{other}/Webhooks/{}", sid(&webhook));
    recorder.post(&webhook, &[("Configuration.Url", "http://h/x")]);
    for at in [
        "Channels/scope/Members",
        "Channels/Scope/Members/xen",
        "Users/xen/Channels",
    ] {
        recorder.get(at);
    }
    recorder.get("Channels/Scope/Members?Identity=xen");
    recorder.get("Channels/Scope/Members?Identity=Xe");
    let mut sids = Vec::new();
    for (identity, kind) in [("Xen", "apn"), ("Xen", "gcm"), ("una", "apn")] {
        let args = json!({"identity": identity, "binding_type": kind, "endpoint": kind});
        let answer = recorder.hook("register_binding", args);
        sids.push(answer["binding_sid"].as_str().unwrap_or("none").to_owned());
    }
    recorder.get("Bindings?Identity=xen");
    recorder.get("Bindings?Identity=Xen&BindingType=apn");
    recorder.get(&format!("{elsewhere}/Bindings/{}", sids[0]));
    recorder.get(&format!("{elsewhere}/Channels/{other}/Members"));
    let v3 = format!("{elsewhere}/Channels/{other}").replace("/v2/", "/v3/");
    recorder.post(&v3, &[("Type", "private")]);
    recorder.hook("configure_service", json!({"reachability_enabled": true}));
    recorder.hook("set_online", json!({"identity": "Xen", "online": true}));
    let user = recorder.get("Users/Xen");
    recorder.get(&format!("{elsewhere}/Users/{}/Channels", sid(&user)));
    recorder.get(&format!("Users/una/Bindings/{}", sids[0]));
    recorder.call("DELETE", &format!("{elsewhere}/Bindings/{}", sids[0]), &[]);
    recorder.call("DELETE", &format!("Users/una/Bindings/{}", sids[1]), &[]);
    recorder.get("Bindings");
    recorder.call("DELETE", &format!("Bindings/{}", sids[0]), &[]);
    recorder.get("Bindings");
}

fn texts(recorder: &mut Recorder<'_>) {
    let rich = " 😀 <b> e\u{301} 1+1\r\nB ";
    let long = "é".repeat(300);
    for body in [rich, &long] {
        recorder.post("Channels/Scope/Messages", &[("Body", body)]);
    }
    recorder.post(
        "Channels",
        &[("FriendlyName", "😀<b>"), ("UniqueName", " Rich ")],
    );
    let attributes = [("Attributes", r#"{"a":"😀 1+1"}"#)];
    recorder.post("Channels", &attributes);
    let user = [("Identity", " Rene\u{301} "), ("FriendlyName", "R 😀")];
    recorder.post("Users", &user);
    recorder.post("Channels/Other/Members", &[("Identity", " spaced ")]);
    recorder.post("Channels/Other/Invites", &[("Identity", " guest ")]);
    let role = [
        ("FriendlyName", " r "),
        ("Type", "channel"),
        ("Permission", "p"),
        ("Permission", "q"),
    ];
    recorder.post("Roles", &role);
    let url = [
        ("Type", "webhook"),
        ("Configuration.Url", "http://h/Path?q=1"),
    ];
    recorder.post("Channels/Other/Webhooks", &url);
}

fn updates(recorder: &mut Recorder<'_>) {
    recorder.world.now = from_unix_ms(START_MS + 600_000);
    let creator = text(&recorder.world.service, "/default_channel_creator_role_sid").to_owned();
    let roles = [
        ("FriendlyName", "d"),
        ("Type", "deployment"),
        ("Permission", "p"),
    ];
    let role = sid(&recorder.post("Roles", &roles));
    let own = recorder.world.path("").trim_end_matches('/').to_owned();
    recorder.hook(
        "configure_service",
        json!({"limits": {"channel_members": 90, "user_channels": 80}}),
    );
    recorder.post(&own, &[("DefaultServiceRoleSid", &role)]);
    recorder.post(&own, &[("FriendlyName", "renamed")]);
    recorder.get("/chat/v2/Services");
    recorder.post("/chat/v2/Services", &[("FriendlyName", "")]);
    recorder.get("/chat/v2/Services");
    let at = "Channels/Scope/Members";
    let ann = [
        ("Identity", "Ann"),
        ("RoleSid", creator.as_str()),
        ("Attributes", "[1]"),
    ];
    recorder.post(at, &ann);
    recorder.post(at, &[("Identity", "Ben")]);
    recorder.post(&format!("{at}/Ann"), &[("LastConsumedMessageIndex", "1")]);
    tick(recorder);
    recorder.post(&format!("{at}/Ann"), &[("Attributes", "[2]")]);
    recorder.get(&format!("{at}/Ann"));
    tick(recorder);
    recorder.post(&format!("{at}/Ann"), &[("RoleSid", &creator)]);
    tick(recorder);
    recorder.post(&format!("{at}/Ann"), &[("Attributes", "{")]);
    recorder.get(&format!("{at}/Ann"));
    recorder.get(at);
    let bad = format!("RL{}", "0".repeat(32));
    recorder.post(at, &[("Identity", "Cleo"), ("RoleSid", &bad)]);
    recorder.get(&format!("{at}/Cleo"));
    recorder.post("Channels", &[("UniqueName", "Bad"), ("Attributes", "{")]);
    recorder.get("Channels/Bad/Members");
    recorder.post(
        "Channels/Scope/Messages",
        &[("Body", "b"), ("Attributes", "{")],
    );
    let v3 = recorder
        .world
        .path("Channels/Scope")
        .replace("/v2/", "/v3/");
    let messaging = format!("MG{}", "a".repeat(32));
    recorder.post(&v3, &[("MessagingServiceSid", &messaging)]);
    recorder.post(&v3, &[("Type", "private")]);
    tick(recorder);
    recorder.post(&v3, &[("Type", "other")]);
    recorder.get("Channels/Scope");
    let named = [
        ("UniqueName", "Named"),
        ("FriendlyName", "n"),
        ("Attributes", "[1]"),
    ];
    recorder.post("Channels", &named);
    recorder.post(&v3.replace("Scope", "Named"), &[]);
    recorder.post(&v3.replace("Scope", "Other"), &[]);
    let at = "Users/Ann/Channels/Scope";
    recorder.post(at, &[("NotificationLevel", "muted")]);
    recorder.post(at, &[("LastConsumedMessageIndex", "1")]);
    recorder.post(at, &[("NotificationLevel", "muted")]);
    recorder.post(
        at,
        &[
            ("NotificationLevel", "loud"),
            ("LastConsumedMessageIndex", "0"),
        ],
    );
    recorder.get(at);
    recorder.get("Users/Ben/Channels/Scope");
    recorder.get("Users/Ann/Channels");
    webhook_updates(recorder);
    recorder.post("Channels/Named/Members", &[("Identity", "Ben")]);
    recorder.hook(
        "leave_channel",
        json!({"channel_sid": "Scope", "identity": "Ben"}),
    );
    recorder.get("Channels/Scope/Members");
    recorder.get("Channels/Named/Members");
    recorder.get("Channels/Scope");
}

fn webhook_updates(recorder: &mut Recorder<'_>) {
    let at = "Channels/Named/Webhooks";
    let url = "Configuration.Url";
    let filter = "Configuration.Filters";
    let first = [
        ("Type", "webhook"),
        (url, "http://h/first"),
        (filter, "a"),
        (filter, "b"),
    ];
    let first = sid(&recorder.post(at, &first));
    recorder.post(at, &[("Type", "webhook"), (url, "http://h/second")]);
    let own = format!("{at}/{first}");
    tick(recorder);
    recorder.post(&own, &[(url, "http://h/changed")]);
    recorder.get(&own);
    let refused = [(url, "http://h/refused"), ("Configuration.RetryCount", "9")];
    recorder.post(&own, &refused);
    recorder.get(&own);
    recorder.post(
        at,
        &[("Type", "webhook"), ("Configuration.RetryCount", "9")],
    );
    recorder.get(at);
}

fn limits(recorder: &mut Recorder<'_>) {
    let (by_one, by_two) = ("n".repeat(65), "n".repeat(66));
    for name in [&by_one, &by_two] {
        recorder.post("Channels", &[("FriendlyName", name)]);
        recorder.post("Channels", &[("UniqueName", name)]);
        let role = [
            ("FriendlyName", name.as_str()),
            ("Type", "channel"),
            ("Permission", "p"),
        ];
        recorder.post("Roles", &role);
    }
    recorder.post("Channels", &[("UniqueName", "full")]);
    for _ in 0..6 {
        recorder.post("Channels/full/Webhooks", &[("Type", "webhook")]);
    }
    let trigger = "Configuration.Triggers";
    let mut six = vec![("Type", "trigger")];
    six.extend(["a", "b", "c", "d", "e", "f"].map(|t| (trigger, t)));
    recorder.post("Channels/Other/Webhooks", &six);
    let four = [("Type", "webhook"), ("Configuration.RetryCount", "4")];
    recorder.post("Channels/Other/Webhooks", &four);
    recorder.hook(
        "configure_service",
        json!({"limits": {"channel_members": 1, "user_channels": 1}}),
    );
    for channel in ["full", "Named"] {
        recorder.post(
            &format!("Channels/{channel}/Members"),
            &[("Identity", "Gus")],
        );
    }
    recorder.post("Channels/full/Members", &[("Identity", "Hal")]);
    recorder.hook(
        "configure_service",
        json!({"limits": {"channel_members": 900, "user_channels": 900}}),
    );
    for size in [1000, 1001] {
        recorder.get(&format!("Bindings?PageSize={size}"));
    }
}

/// What is done a second time.
fn again(recorder: &mut Recorder<'_>) {
    let role = [
        ("FriendlyName", "r"),
        ("Type", "channel"),
        ("Permission", "q"),
        ("Permission", "p"),
    ];
    recorder.post("Roles", &role);
    recorder.post("Channels", &[("UniqueName", "again")]);
    for _ in 0..2 {
        recorder.post("Channels/again/Members", &[("Identity", "tim")]);
        recorder.post("Channels/again/Invites", &[("Identity", "ugo")]);
    }
    let args = json!({"identity": "tim", "binding_type": "apn", "endpoint": "E"});
    let answer = recorder.hook("register_binding", args);
    let at = format!(
        "Bindings/{}",
        answer["binding_sid"].as_str().unwrap_or("none")
    );
    for _ in 0..2 {
        recorder.call("DELETE", &at, &[]);
    }
    recorder.get("Bindings?BindingType=sms");
}

fn lists(recorder: &mut Recorder<'_>) {
    recorder.post("Channels", &[("UniqueName", "long")]);
    for number in 0..56 {
        let identity = format!("m{number}");
        recorder.post("Channels/long/Members", &[("Identity", &identity)]);
    }
    for _ in 0..12 {
        recorder.post("Channels/long/Messages", &[("Body", "b")]);
    }
    recorder.get("Channels/long");
    for query in [
        "",
        "?PageSize=20",
        "?PageSize=20&Page=1&PageToken=PA20",
        "?PageSize=20&Page=2&PageToken=PA40",
        "?Page=1&PageToken=PA50",
        "?Identity=m1&Identity=m5&Identity=m9&PageSize=1&Page=1&PageToken=PA2",
    ] {
        recorder.get(&format!("Channels/long/Members{query}"));
    }
}

fn callbacks(recorder: &mut Recorder<'_>) {
    recorder.hook(
        "configure_service",
        json!({
            "pre_webhook_url": "http://h/503", "post_webhook_url": "http://h/post",
            "pre_webhook_retry_count": 1,
            "webhook_filters": ["onMessageSent", "onMemberAdded"],
        }),
    );
    let at = "Channels/Called/Webhooks";
    recorder.post("Channels", &[("UniqueName", "Called")]);
    let (url, retries) = ("Configuration.Url", "Configuration.RetryCount");
    let filter = ("Configuration.Filters", "onMessageSent");
    for receiver in ["http://h/503", "http://h/400", "http://h/502"] {
        recorder.post(
            at,
            &[("Type", "webhook"), (url, receiver), (retries, "3"), filter],
        );
    }
    let triggers = [
        ("Configuration.Triggers", "zzz"),
        ("Configuration.Triggers", "magic"),
        ("Configuration.Triggers", "m.n"),
    ];
    let mut trigger = vec![("Type", "trigger"), (url, "http://h/trigger")];
    trigger.extend(triggers);
    recorder.post(at, &trigger);
    let flow = format!("FW{}", "c".repeat(32));
    let studio = [
        ("Type", "studio"),
        (url, "http://h/studio"),
        ("Configuration.FlowSid", &flow),
    ];
    recorder.post(at, &studio);
    // The channel has five of three types by now.
    recorder.post(at, &trigger);
    for body in ["magic", "MAGIC", "magical", "man"] {
        recorder.post("Channels/Called/Messages", &[("Body", body)]);
    }
    let beside = [("Body", "quiet"), ("From", "magic")];
    recorder.post("Channels/Called/Messages", &beside);
    recorder.post("Channels/Called/Members", &[("Identity", "ida")]);
    recorder.hook(
        "configure_service",
        json!({
            "webhook_filters": ["onMessageSend", "onMessageSent"],
        }),
    );
    recorder.post("Channels/Called/Messages", &[("Body", "b")]);
}

fn media(recorder: &mut Recorder<'_>) {
    let mut every: Vec<u8> = (0..=255).collect();
    every.extend_from_slice(b"a\r\nb\n");
    let long = vec![b'x'; 70_000];
    let mut sids = Vec::new();
    for bytes in [&every, &long, &b"end\n".to_vec()] {
        let media = recorder.upload(bytes, |r| {
            let at = r.body.windows(5).position(|w| w == b"p.png").unwrap_or(0);
            r.body.splice(at..at + 5, "Bild \u{e9}.PNG".bytes());
        });
        for pointer in ["/links/content", "/links/content_direct_temporary"] {
            let url = media.pointer(pointer).and_then(Value::as_str);
            recorder.get(&url.unwrap_or_default().replace("http://x", ""));
        }
        sids.push(sid(&media));
    }
    recorder.post("Channels/Called/Messages", &[("MediaSid", &sids[1])]);
    let service = text(&recorder.world.service, "/sid").to_owned();
    recorder.get(&format!("/media/v1/Services/{service}/Media/{}", sids[2]));
    let others = recorder.get("/chat/v2/Services");
    let first = others["services"][0]["sid"].as_str().unwrap_or("none");
    let at = format!("/chat/v2/Services/{first}/Channels/three/Messages");
    recorder.post(&at, &[("MediaSid", &sids[0])]);
    recorder.upload(b"raw", |r| {
        r.headers.set("Content-Type", "application/octet-stream");
        r.body = b"raw".to_vec();
    });
    recorder.upload(b"any", |r| {
        let body = String::from_utf8_lossy(&r.body).replace("\"media\"", "\"file\"");
        r.body = body.into_bytes();
    });
    recorder.hook("configure_service", json!({"media": {"size_limit_mb": 1}}));
    recorder.upload(&vec![b'x'; 1024 * 1024 + 1], |_| {});
    recorder.world.now = from_unix_ms(START_MS + 700_000);
    recorder.get(&format!("/media/v1/Services/{service}/Media/{}", sids[2]));
}

fn credentials(recorder: &mut Recorder<'_>) {
    let encode = |scheme: &str, user: &str, password: &str| {
        let pair = format!("{user}:{password}");
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        format!("{scheme} {encoded}")
    };
    let service = text(&recorder.world.service, "/sid").to_owned();
    let media = format!("/media/v1/Services/{service}/Media/none");
    let upper = account::API_KEY.to_uppercase();
    let spaced = format!("{} ", account::API_SECRET);
    let v3 = recorder
        .world
        .path("Channels/Scope")
        .replace("/v2/", "/v3/");
    let listed = recorder.get("Channels/long/Members?PageSize=2");
    let next = listed["meta"]["next_page_url"].as_str().unwrap_or_default();
    let next = next.replace("http://x", "");
    for attempt in [
        encode("Basic", &upper, account::API_SECRET),
        encode("Basic", account::API_KEY, &spaced),
        encode("Basic", account::API_KEY, account::AUTH_TOKEN),
        encode("Basic", account::API_KEY, ""),
        encode("Bearer", account::API_KEY, account::API_SECRET),
        "none".to_owned(),
    ] {
        recorder.call_as(&attempt, "GET", "Bindings");
        if !next.is_empty() {
            recorder.call_as(&attempt, "GET", &next);
        }
        recorder.call_as(&attempt, "GET", "Channels/long/Members");
        recorder.call_as(&attempt, "POST", "Channels/long/Members/m1");
        recorder.call_as(&attempt, "DELETE", "Bindings/none");
        recorder.call_as(&attempt, "POST", &v3);
        recorder.call_as(&attempt, "GET", &media);
    }
}
