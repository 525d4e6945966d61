//! Webhook requests: who is called, how, and how often.

use super::*;

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
    let body = url::form_urlencoded::parse(&callback.request.body)
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
    // Without the header, or with `false`, no webhook is called.
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
    let sent: Vec<(String, bool, u32)> = world
        .callbacks()
        .iter()
        .map(|c| (c.request.path().to_owned(), c.is_before, c.retries_left))
        .collect();
    assert_eq!(
        sent,
        [("/pre".to_owned(), true, 1), ("/post".to_owned(), false, 2)]
    );
}
