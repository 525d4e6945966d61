//! Members and user channels: status, counts, levels, limits.

use super::*;

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
    let after = json!({
        "unread_messages_count": 2, "last_consumed_message_index": 1,
        "notification_level": "muted",
    });
    shows(&world.get(&at), &after);
    // The member shows the same thing, with the time.
    shows(
        &world.get(&format!("{members}/ann")),
        &json!({
            "last_consumed_message_index": 1,
            "last_consumption_timestamp": "2026-01-01T00:00:00Z",
        }),
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
