//! Faults of `former`: each changes the responses that its text names.

use super::*;

/// Requests once `cat` has left `room`, by what their response shows. The later ones follow a deletion, too.
const REQUESTS: [(&str, &str, &str, &str); 30] = [
    ("members", "GET", "Channels/room/Members", ""),
    ("filtered", "GET", "Channels/room/Members?Identity=cat", ""),
    (
        "fetched by identity",
        "GET",
        "Channels/room/Members/cat",
        "",
    ),
    ("fetched by SID", "GET", "Channels/room/Members/CAT", ""),
    (
        "updated",
        "POST",
        "Channels/room/Members/cat",
        "Attributes={}",
    ),
    ("unread", "GET", "Users/bob/Channels/room", ""),
    ("user channels", "GET", "Users/cat/Channels", ""),
    ("bindings", "GET", "Users/cat/Bindings", ""),
    ("invite", "GET", "Channels/room/Invites/INVITE", ""),
    ("webhooks", "GET", "Channels/room/Webhooks", ""),
    ("channel", "GET", "Channels/room", ""),
    ("deletion", "DELETE", "Bindings/ANN", ""),
    ("by type", "GET", "Bindings?BindingType=fcm", ""),
    ("same identity", "GET", "SECOND/Bindings?Identity=ann", ""),
    ("same endpoint", "GET", "SECOND/Bindings?Identity=zoe", ""),
    ("members after deletion", "GET", "Channels/room/Members", ""),
    ("message", "POST", "Channels/room/Messages", "Body=x"),
    ("members after message", "GET", "Channels/room/Members", ""),
    ("bindings after message", "GET", "Bindings", ""),
    (
        "invitation",
        "POST",
        "Channels/room/Invites",
        "Identity=fay",
    ),
    ("members after invite", "GET", "Channels/room/Members", ""),
    (
        "update",
        "POST",
        "Channels/room/Members/bob",
        "Attributes={}",
    ),
    ("members after update", "GET", "Channels/room/Members", ""),
    ("join", "POST", "Channels/room/Members", "Identity=gus"),
    ("bindings after join", "GET", "Bindings", ""),
    ("second deletion", "DELETE", "Bindings/BOB", ""),
    ("bindings after deletion", "GET", "Bindings", ""),
    ("renaming", "POST", "", "FriendlyName=t"),
    ("bindings after renaming", "GET", "Users/ann/Bindings", ""),
    ("bindings after leave", "GET", "Bindings?Identity=ann", ""),
];

/// The responses to the requests.
fn responses(faults: &[Fault]) -> Vec<Response> {
    let mut second = World::with(faults);
    let (_, path) = second.channel(&[]);
    second.accepted("POST", &format!("{path}/Members"), &[("Identity", "cat")]);
    second.bind("ann", "another");
    second.bind("zoe", "ann");
    let service = second.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "s")]);
    let mut world = World { service, ..second };
    for name in ["other", "room"] {
        world.channel(&[("UniqueName", name)]);
    }
    world.accepted("POST", "Channels/other/Members", &[("Identity", "dan")]);
    let [_, _, cat] = ["ann", "bob", "cat"]
        .map(|name| world.accepted("POST", "Channels/room/Members", &[("Identity", name)]));
    let [ann, bob, _] = ["ann", "bob", "cat"].map(|name| world.bind(name, name));
    let invite = world.accepted("POST", "Channels/room/Invites", &[("Identity", "eve")]);
    let webhook = [("Type", "webhook"), ("Configuration.Url", "http://x")];
    world.accepted("POST", "Channels/room/Webhooks", &webhook);
    for _ in 0..2 {
        world.accepted("POST", "Channels/room/Messages", &[]);
    }
    let position = [("LastConsumedMessageIndex", "0")];
    world.accepted("POST", "Channels/room/Members/bob", &position);
    let leave = |identity: &str| json!({"channel_sid": "room", "identity": identity});
    world.hook("leave_channel", leave("cat"));
    let mut responses = Vec::new();
    let services = world.client.get("/chat/v2/Services");
    let second = text(&services["services"][0]["url"]);
    for (name, method, path, form) in REQUESTS {
        if name == "bindings after leave" {
            world.hook("leave_channel", leave("gus"));
        }
        let path = path
            .replace("CAT", &text(&cat["sid"]))
            .replace("INVITE", &text(&invite["sid"]))
            .replace("SECOND", &second)
            .replace("ANN", &ann)
            .replace("BOB", &bob);
        let form: Vec<_> = form.split_once('=').into_iter().collect();
        let path = world.path(&path);
        responses.push(world.client.call(method, path.trim_end_matches('/'), &form));
    }
    responses
}

#[test]
fn each_fault_of_deletions_and_leaves_shows_first_where_its_text_says() {
    let clean = responses(&[]);
    for (fault, expected) in [
        (Fault::ChatLeavingListsOtherChannel, "members"),
        (Fault::ChatLeaverListedByIdentity, "filtered"),
        (Fault::ChatLeaverFetchedByIdentity, "fetched by identity"),
        (Fault::ChatLeaverFetchedBySid, "fetched by SID"),
        (Fault::ChatLeaverUpdated, "updated"),
        (Fault::ChatLeavingListsOtherService, "user channels"),
        (Fault::ChatLeavingTakesBindings, "bindings"),
        (Fault::ChatLeavingTakesInvites, "invite"),
        (Fault::ChatLeavingTakesWebhooks, "webhooks"),
        (Fault::ChatLeavingLowersMessagesCount, "channel"),
        (Fault::ChatLeavingClearsPositions, "members"),
        (Fault::ChatLeavingRaisesUnreadCount, "unread"),
        (Fault::ChatDeletedBindingListedByType, "by type"),
        (
            Fault::ChatDeleteBindingTakesIdentityElsewhere,
            "same identity",
        ),
        (
            Fault::ChatDeleteBindingTakesEndpointElsewhere,
            "same endpoint",
        ),
        (
            Fault::ChatDeleteBindingEndsMemberships,
            "members after deletion",
        ),
        (
            Fault::ChatDeleteBindingRestoresMembers,
            "members after deletion",
        ),
        (Fault::ChatLeaverReturnsWithMessage, "members after message"),
        (
            Fault::ChatDeletedBindingReturnsOnMessage,
            "bindings after message",
        ),
        (Fault::ChatLeaverReturnsWithInvite, "members after invite"),
        (Fault::ChatLeaverReturnsWithUpdate, "members after update"),
        (
            Fault::ChatDeletedBindingReturnsOnJoin,
            "bindings after join",
        ),
        (
            Fault::ChatDeletedBindingReturnsOnDeletion,
            "bindings after deletion",
        ),
        (
            Fault::ChatDeletedBindingReturnsOnUpdate,
            "bindings after renaming",
        ),
        (
            Fault::ChatDeletedBindingReturnsOnLeave,
            "bindings after leave",
        ),
    ] {
        let responses = responses(&[fault]);
        let first = responses.iter().zip(&clean).position(|(a, b)| a != b);
        let shown = first.map(|at| REQUESTS[at].0);
        assert_eq!(shown, Some(expected), "{}", fault.id());
    }
}
