//! Media: what is uploaded comes back, and what is refused.

use super::*;

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
            r.headers.set("Content-Type", "image/png");
        }),
        ("no boundary", |r| {
            r.headers.set("Content-Type", "multipart/form-data");
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
    assert_eq!(world.upload(&vec![b'x'; 1024 * 1024], |_| {}).status, 201);
    assert_eq!(
        world.upload(&vec![b'x'; 1024 * 1024 + 1], |_| {}).status,
        413
    );
}
