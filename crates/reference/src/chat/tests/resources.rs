//! Invalid requests, links and empty names.

use super::*;

#[test]
fn requests_outside_the_document_are_refused() {
    let mut world = World::new();
    world.channel(&[("UniqueName", "taken")]);
    world.accepted("POST", "Users", &[("Identity", "ann")]);
    let long = "u".repeat(65);
    let service_role = text(&world.service["default_service_role_sid"]);
    for (path, form) in [
        ("/chat/v2/Services", ""),
        ("/chat/v1/Services", "FriendlyName=s"),
        ("Channels", "FriendlyName=LONG"),
        ("Channels", "UniqueName=LONG"),
        ("Channels", "UniqueName=taken"),
        ("Channels", "Type=secret"),
        ("Channels", "Attributes={"),
        ("Channels", "DateCreated=yesterday"),
        ("Users", ""),
        ("Users", "Identity=ann"),
        ("Roles", "FriendlyName=r&Type=channel"),
        ("Roles", "FriendlyName=r&Permission=p"),
        ("Roles", "Type=channel&Permission=p"),
        ("Roles", "FriendlyName=LONG&Type=channel&Permission=p"),
        ("Roles", "FriendlyName=r&Type=x&Permission=p"),
        ("Channels/taken/Members", ""),
        ("Channels/taken/Members", "Identity=x&RoleSid=SERVICE_ROLE"),
        (
            "Channels/taken/Members",
            "Identity=x&LastConsumedMessageIndex=-1",
        ),
        (
            "Channels/taken/Messages",
            "MediaSid=ME00000000000000000000000000000000",
        ),
        ("Channels/taken/Invites", ""),
        ("Channels/taken/Webhooks", ""),
        ("Channels/taken/Webhooks", "Type=x"),
        (
            "Channels/taken/Webhooks",
            "Type=webhook&Configuration.Method=PUT",
        ),
        (
            "Channels/taken/Webhooks",
            "Type=webhook&Configuration.RetryCount=4",
        ),
        (
            "Channels/taken/Webhooks",
            "Type=webhook&Configuration.RetryCount=-1",
        ),
        (
            "Channels/taken/Webhooks",
            "Type=studio&Configuration.FlowSid=FW1",
        ),
        ("Channels/taken/Webhooks", "Type=trigger&SIX_TRIGGERS"),
        ("Channels/nowhere/Messages", ""),
    ] {
        let form = form
            .replace("LONG", &long)
            .replace("SERVICE_ROLE", &service_role)
            .replace("SIX_TRIGGERS", &["Configuration.Triggers=t"; 6].join("&"));
        let pairs: Vec<(&str, &str)> = form.split('&').filter_map(|p| p.split_once('=')).collect();
        let response = world.client.call("POST", &world.path(path), &pairs);
        assert!(!response.is_success(), "{path} {form}: {response:?}");
    }
    world.accepted("POST", "Users", &[("Identity", "Ann")]);
    world.service = world.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "other")]);
    world.accepted("POST", "Users", &[("Identity", "ann")]);
    world.accepted("POST", "Channels", &[("UniqueName", "taken")]);
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

/// D2, Resources: links of operations that no scenario calls lead to resources.
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
            let found = world.get(link);
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
