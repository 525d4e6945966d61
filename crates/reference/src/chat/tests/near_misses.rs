//! Later part of the scenario that covers every fault: boundary-invalid, misplaced, repeated and long values.

use super::switches::{Teller, sid};
use super::*;

/// Continues in a separate service with a sibling.
pub(super) fn tell(teller: &mut Teller<'_>) {
    let first = teller.world.service.clone();
    teller.world.service = teller.post(
        "/chat/v2/Services",
        &[("FriendlyName", "<b>&".repeat(80).as_str())],
    );
    if teller.world.service["sid"].is_null() {
        return;
    }
    scopes(teller, &first);
    texts(teller);
    updates(teller);
    limits(teller);
    again(teller);
    lists(teller);
    callbacks(teller);
    media(teller);
    credentials(teller);
    later(teller);
}

fn later(teller: &mut Teller<'_>) {
    teller.world.now = from_unix_ms(START_MS + 900_000);
    teller.get("Channels/Scope/Members");
    teller.get("Channels/Scope/Webhooks");
    teller.get("Bindings");
    teller.get("/chat/v2/Services");
    teller.post("Channels/Scope/Messages", &[("Body", "late")]);
    teller.get("Channels/Scope");
    teller.post(
        "Users/Ann/Channels/Scope",
        &[("LastConsumedMessageIndex", "0")],
    );
    teller.get("Channels/Scope/Members/Ann");
    teller.post("Channels", &[("UniqueName", "late")]);
    let own = teller.world.path("").trim_end_matches('/').to_owned();
    teller.get(&own);
}

/// Lets a second pass, so that what an update moves can be seen.
fn tick(teller: &mut Teller<'_>) {
    teller.world.now += std::time::Duration::from_secs(1);
}

fn scopes(teller: &mut Teller<'_>, first: &Value) {
    let elsewhere = format!("/chat/v2/Services/{}", text(first, "/sid"));
    let role = teller.post(
        &format!("{elsewhere}/Roles"),
        &[
            ("FriendlyName", "r"),
            ("Type", "channel"),
            ("Permission", "p"),
        ],
    );
    let deployment = text(first, "/default_service_role_sid").to_owned();
    let role = sid(&role);
    teller.post("Channels", &[("UniqueName", "Scope")]);
    let other = teller.post("Channels", &[("UniqueName", "Other")]);
    let other = sid(&other);
    let own = teller.world.path("").trim_end_matches('/').to_owned();
    let refused = [
        ("DefaultServiceRoleSid", deployment.as_str()),
        ("FriendlyName", "x"),
    ];
    teller.post(&own, &refused);
    teller.get(&own);
    teller.post("Users", &[("Identity", "una"), ("RoleSid", &deployment)]);
    teller.post(
        "Channels/Scope/Members",
        &[("Identity", "vic"), ("RoleSid", &role)],
    );
    teller.get("Channels/Scope/Members");
    teller.post(
        "Channels/Scope/Invites",
        &[("Identity", "wim"), ("RoleSid", &role)],
    );
    let member = teller.post("Channels/Scope/Members", &[("Identity", "Xen")]);
    let invite = teller.post("Channels/Scope/Invites", &[("Identity", "yan")]);
    teller.post("Channels/Scope/Invites", &[("Identity", "zoe")]);
    let webhook = teller.post("Channels/Scope/Webhooks", &[("Type", "webhook")]);
    let member = format!("Channels/{other}/Members/{}", sid(&member));
    teller.get(&member);
    teller.post(&member, &[("LastConsumedMessageIndex", "0")]);
    teller.get(&format!("Channels/{other}/Invites/{}", sid(&invite)));
    tick(teller);
    teller.post("Channels/Scope/Members", &[("Identity", "yan")]);
    teller.get(&format!("Channels/Scope/Invites/{}", sid(&invite)));
    let webhook = format!("Channels/{other}/Webhooks/{}", sid(&webhook));
    teller.post(&webhook, &[("Configuration.Url", "http://h/x")]);
    for at in [
        "Channels/scope/Members",
        "Channels/Scope/Members/xen",
        "Users/xen/Channels",
    ] {
        teller.get(at);
    }
    teller.get("Channels/Scope/Members?Identity=xen");
    teller.get("Channels/Scope/Members?Identity=Xe");
    let mut sids = Vec::new();
    for (identity, kind) in [("Xen", "apn"), ("Xen", "gcm"), ("una", "apn")] {
        let args = json!({"identity": identity, "binding_type": kind, "endpoint": kind});
        let answer = teller.hook("register_binding", args);
        sids.push(answer["binding_sid"].as_str().unwrap_or("none").to_owned());
    }
    teller.get("Bindings?Identity=xen");
    teller.get("Bindings?Identity=Xen&BindingType=apn");
    teller.get(&format!("{elsewhere}/Bindings/{}", sids[0]));
    teller.get(&format!("{elsewhere}/Channels/{other}/Members"));
    let v3 = format!("{elsewhere}/Channels/{other}").replace("/v2/", "/v3/");
    teller.post(&v3, &[("Type", "private")]);
    teller.hook("configure_service", json!({"reachability_enabled": true}));
    teller.hook("set_online", json!({"identity": "Xen", "online": true}));
    let user = teller.get("Users/Xen");
    teller.get(&format!("{elsewhere}/Users/{}/Channels", sid(&user)));
    teller.get(&format!("Users/una/Bindings/{}", sids[0]));
    teller.call("DELETE", &format!("{elsewhere}/Bindings/{}", sids[0]), &[]);
    teller.call("DELETE", &format!("Users/una/Bindings/{}", sids[1]), &[]);
    teller.get("Bindings");
    teller.call("DELETE", &format!("Bindings/{}", sids[0]), &[]);
    teller.get("Bindings");
}

fn texts(teller: &mut Teller<'_>) {
    let rich = " 😀 <b> e\u{301} 1+1\r\nB ";
    let long = "é".repeat(300);
    for body in [rich, &long] {
        teller.post("Channels/Scope/Messages", &[("Body", body)]);
    }
    teller.post(
        "Channels",
        &[("FriendlyName", "😀<b>"), ("UniqueName", " Rich ")],
    );
    let attributes = [("Attributes", r#"{"a":"😀 1+1"}"#)];
    teller.post("Channels", &attributes);
    let user = [("Identity", " Rene\u{301} "), ("FriendlyName", "R 😀")];
    teller.post("Users", &user);
    teller.post("Channels/Other/Members", &[("Identity", " spaced ")]);
    teller.post("Channels/Other/Invites", &[("Identity", " guest ")]);
    let role = [
        ("FriendlyName", " r "),
        ("Type", "channel"),
        ("Permission", "p"),
        ("Permission", "q"),
    ];
    teller.post("Roles", &role);
    let url = [
        ("Type", "webhook"),
        ("Configuration.Url", "http://h/Path?q=1"),
    ];
    teller.post("Channels/Other/Webhooks", &url);
}

fn updates(teller: &mut Teller<'_>) {
    teller.world.now = from_unix_ms(START_MS + 600_000);
    let creator = text(&teller.world.service, "/default_channel_creator_role_sid").to_owned();
    let roles = [
        ("FriendlyName", "d"),
        ("Type", "deployment"),
        ("Permission", "p"),
    ];
    let role = sid(&teller.post("Roles", &roles));
    let own = teller.world.path("").trim_end_matches('/').to_owned();
    teller.hook(
        "configure_service",
        json!({"limits": {"channel_members": 90, "user_channels": 80}}),
    );
    teller.post(&own, &[("DefaultServiceRoleSid", &role)]);
    teller.post(&own, &[("FriendlyName", "renamed")]);
    teller.get("/chat/v2/Services");
    teller.post("/chat/v2/Services", &[("FriendlyName", "")]);
    teller.get("/chat/v2/Services");
    let at = "Channels/Scope/Members";
    let ann = [
        ("Identity", "Ann"),
        ("RoleSid", creator.as_str()),
        ("Attributes", "[1]"),
    ];
    teller.post(at, &ann);
    teller.post(at, &[("Identity", "Ben")]);
    teller.post(&format!("{at}/Ann"), &[("LastConsumedMessageIndex", "1")]);
    tick(teller);
    teller.post(&format!("{at}/Ann"), &[("Attributes", "[2]")]);
    teller.get(&format!("{at}/Ann"));
    tick(teller);
    teller.post(&format!("{at}/Ann"), &[("RoleSid", &creator)]);
    tick(teller);
    teller.post(&format!("{at}/Ann"), &[("Attributes", "{")]);
    teller.get(&format!("{at}/Ann"));
    teller.get(at);
    let bad = format!("RL{}", "0".repeat(32));
    teller.post(at, &[("Identity", "Cleo"), ("RoleSid", &bad)]);
    teller.get(&format!("{at}/Cleo"));
    teller.post("Channels", &[("UniqueName", "Bad"), ("Attributes", "{")]);
    teller.get("Channels/Bad/Members");
    teller.post(
        "Channels/Scope/Messages",
        &[("Body", "b"), ("Attributes", "{")],
    );
    let v3 = teller.world.path("Channels/Scope").replace("/v2/", "/v3/");
    let messaging = format!("MG{}", "a".repeat(32));
    teller.post(&v3, &[("MessagingServiceSid", &messaging)]);
    teller.post(&v3, &[("Type", "private")]);
    tick(teller);
    teller.post(&v3, &[("Type", "other")]);
    teller.get("Channels/Scope");
    let named = [
        ("UniqueName", "Named"),
        ("FriendlyName", "n"),
        ("Attributes", "[1]"),
    ];
    teller.post("Channels", &named);
    teller.post(&v3.replace("Scope", "Named"), &[]);
    teller.post(&v3.replace("Scope", "Other"), &[]);
    let at = "Users/Ann/Channels/Scope";
    teller.post(at, &[("NotificationLevel", "muted")]);
    teller.post(at, &[("LastConsumedMessageIndex", "1")]);
    teller.post(at, &[("NotificationLevel", "muted")]);
    teller.post(
        at,
        &[
            ("NotificationLevel", "loud"),
            ("LastConsumedMessageIndex", "0"),
        ],
    );
    teller.get(at);
    teller.get("Users/Ben/Channels/Scope");
    teller.get("Users/Ann/Channels");
    webhook_updates(teller);
    teller.post("Channels/Named/Members", &[("Identity", "Ben")]);
    teller.hook(
        "leave_channel",
        json!({"channel_sid": "Scope", "identity": "Ben"}),
    );
    teller.get("Channels/Scope/Members");
    teller.get("Channels/Named/Members");
    teller.get("Channels/Scope");
}

fn webhook_updates(teller: &mut Teller<'_>) {
    let at = "Channels/Named/Webhooks";
    let url = "Configuration.Url";
    let filter = "Configuration.Filters";
    let first = [
        ("Type", "webhook"),
        (url, "http://h/first"),
        (filter, "a"),
        (filter, "b"),
    ];
    let first = sid(&teller.post(at, &first));
    teller.post(at, &[("Type", "webhook"), (url, "http://h/second")]);
    let own = format!("{at}/{first}");
    tick(teller);
    teller.post(&own, &[(url, "http://h/changed")]);
    teller.get(&own);
    let refused = [(url, "http://h/refused"), ("Configuration.RetryCount", "9")];
    teller.post(&own, &refused);
    teller.get(&own);
    teller.post(
        at,
        &[("Type", "webhook"), ("Configuration.RetryCount", "9")],
    );
    teller.get(at);
}

fn limits(teller: &mut Teller<'_>) {
    let (by_one, by_two) = ("n".repeat(65), "n".repeat(66));
    for name in [&by_one, &by_two] {
        teller.post("Channels", &[("FriendlyName", name)]);
        teller.post("Channels", &[("UniqueName", name)]);
        let role = [
            ("FriendlyName", name.as_str()),
            ("Type", "channel"),
            ("Permission", "p"),
        ];
        teller.post("Roles", &role);
    }
    teller.post("Channels", &[("UniqueName", "full")]);
    for _ in 0..6 {
        teller.post("Channels/full/Webhooks", &[("Type", "webhook")]);
    }
    let trigger = "Configuration.Triggers";
    let mut six = vec![("Type", "trigger")];
    six.extend(["a", "b", "c", "d", "e", "f"].map(|t| (trigger, t)));
    teller.post("Channels/Other/Webhooks", &six);
    let four = [("Type", "webhook"), ("Configuration.RetryCount", "4")];
    teller.post("Channels/Other/Webhooks", &four);
    teller.hook(
        "configure_service",
        json!({"limits": {"channel_members": 1, "user_channels": 1}}),
    );
    for channel in ["full", "Named"] {
        teller.post(
            &format!("Channels/{channel}/Members"),
            &[("Identity", "Gus")],
        );
    }
    teller.post("Channels/full/Members", &[("Identity", "Hal")]);
    teller.hook(
        "configure_service",
        json!({"limits": {"channel_members": 900, "user_channels": 900}}),
    );
    for size in [1000, 1001] {
        teller.get(&format!("Bindings?PageSize={size}"));
    }
}

/// What is done a second time.
fn again(teller: &mut Teller<'_>) {
    let role = [
        ("FriendlyName", "r"),
        ("Type", "channel"),
        ("Permission", "q"),
        ("Permission", "p"),
    ];
    teller.post("Roles", &role);
    teller.post("Channels", &[("UniqueName", "again")]);
    for _ in 0..2 {
        teller.post("Channels/again/Members", &[("Identity", "tim")]);
        teller.post("Channels/again/Invites", &[("Identity", "ugo")]);
    }
    let args = json!({"identity": "tim", "binding_type": "apn", "endpoint": "E"});
    let answer = teller.hook("register_binding", args);
    let at = format!(
        "Bindings/{}",
        answer["binding_sid"].as_str().unwrap_or("none")
    );
    for _ in 0..2 {
        teller.call("DELETE", &at, &[]);
    }
    teller.get("Bindings?BindingType=sms");
}

fn lists(teller: &mut Teller<'_>) {
    teller.post("Channels", &[("UniqueName", "long")]);
    for number in 0..56 {
        let identity = format!("m{number}");
        teller.post("Channels/long/Members", &[("Identity", &identity)]);
    }
    for _ in 0..12 {
        teller.post("Channels/long/Messages", &[("Body", "b")]);
    }
    teller.get("Channels/long");
    for query in [
        "",
        "?PageSize=20",
        "?PageSize=20&Page=1&PageToken=PA20",
        "?PageSize=20&Page=2&PageToken=PA40",
        "?Page=1&PageToken=PA50",
        "?Identity=m1&Identity=m5&Identity=m9&PageSize=1&Page=1&PageToken=PA2",
    ] {
        teller.get(&format!("Channels/long/Members{query}"));
    }
}

fn callbacks(teller: &mut Teller<'_>) {
    teller.hook(
        "configure_service",
        json!({
            "pre_webhook_url": "http://h/503", "post_webhook_url": "http://h/post",
            "pre_webhook_retry_count": 1,
            "webhook_filters": ["onMessageSent", "onMemberAdded"],
        }),
    );
    let at = "Channels/Called/Webhooks";
    teller.post("Channels", &[("UniqueName", "Called")]);
    let (url, retries) = ("Configuration.Url", "Configuration.RetryCount");
    let filter = ("Configuration.Filters", "onMessageSent");
    for receiver in ["http://h/503", "http://h/400", "http://h/502"] {
        teller.post(
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
    teller.post(at, &trigger);
    let flow = format!("FW{}", "c".repeat(32));
    let studio = [
        ("Type", "studio"),
        (url, "http://h/studio"),
        ("Configuration.FlowSid", &flow),
    ];
    teller.post(at, &studio);
    // The channel has five of three types by now.
    teller.post(at, &trigger);
    for body in ["magic", "MAGIC", "magical", "man"] {
        teller.post("Channels/Called/Messages", &[("Body", body)]);
    }
    let beside = [("Body", "quiet"), ("From", "magic")];
    teller.post("Channels/Called/Messages", &beside);
    teller.post("Channels/Called/Members", &[("Identity", "ida")]);
    teller.hook(
        "configure_service",
        json!({
            "webhook_filters": ["onMessageSend", "onMessageSent"],
        }),
    );
    teller.post("Channels/Called/Messages", &[("Body", "b")]);
}

fn media(teller: &mut Teller<'_>) {
    let mut every: Vec<u8> = (0..=255).collect();
    every.extend_from_slice(b"a\r\nb\n");
    let long = vec![b'x'; 70_000];
    let mut sids = Vec::new();
    for bytes in [&every, &long, &b"end\n".to_vec()] {
        let media = teller.upload(bytes, |r| {
            let at = r.body.windows(5).position(|w| w == b"p.png").unwrap_or(0);
            r.body.splice(at..at + 5, "Bild \u{e9}.PNG".bytes());
        });
        for pointer in ["/links/content", "/links/content_direct_temporary"] {
            let url = media.pointer(pointer).and_then(Value::as_str);
            teller.get(&url.unwrap_or_default().replace("http://x", ""));
        }
        sids.push(sid(&media));
    }
    teller.post("Channels/Called/Messages", &[("MediaSid", &sids[1])]);
    let service = text(&teller.world.service, "/sid").to_owned();
    teller.get(&format!("/media/v1/Services/{service}/Media/{}", sids[2]));
    let others = teller.get("/chat/v2/Services");
    let first = others["services"][0]["sid"].as_str().unwrap_or("none");
    let at = format!("/chat/v2/Services/{first}/Channels/three/Messages");
    teller.post(&at, &[("MediaSid", &sids[0])]);
    teller.upload(b"raw", |r| {
        r.headers.set("Content-Type", "application/octet-stream");
        r.body = b"raw".to_vec();
    });
    teller.upload(b"any", |r| {
        let body = String::from_utf8_lossy(&r.body).replace("\"media\"", "\"file\"");
        r.body = body.into_bytes();
    });
    teller.hook("configure_service", json!({"media": {"size_limit_mb": 1}}));
    teller.upload(&vec![b'x'; 1024 * 1024 + 1], |_| {});
    teller.world.now = from_unix_ms(START_MS + 700_000);
    teller.get(&format!("/media/v1/Services/{service}/Media/{}", sids[2]));
}

fn credentials(teller: &mut Teller<'_>) {
    let encode = |scheme: &str, user: &str, password: &str| {
        let pair = format!("{user}:{password}");
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        format!("{scheme} {encoded}")
    };
    let service = text(&teller.world.service, "/sid").to_owned();
    let media = format!("/media/v1/Services/{service}/Media/none");
    let upper = account::API_KEY.to_uppercase();
    let spaced = format!("{} ", account::API_SECRET);
    let v3 = teller.world.path("Channels/Scope").replace("/v2/", "/v3/");
    let listed = teller.get("Channels/long/Members?PageSize=2");
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
        teller.call_as(&attempt, "GET", "Bindings");
        if !next.is_empty() {
            teller.call_as(&attempt, "GET", &next);
        }
        teller.call_as(&attempt, "GET", "Channels/long/Members");
        teller.call_as(&attempt, "POST", "Channels/long/Members/m1");
        teller.call_as(&attempt, "DELETE", "Bindings/none");
        teller.call_as(&attempt, "POST", &v3);
        teller.call_as(&attempt, "GET", &media);
    }
}
