//! Invalid uploads.

use super::*;

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
