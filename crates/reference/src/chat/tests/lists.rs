//! Lists: filters, deletion, walks.

use super::*;

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
