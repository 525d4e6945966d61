//! Tests of `title`.

use conformant_record::{Finding, Verdict, defects, title, with_types, without_names};

/// The title of a finding of this operation, pointer and kind, with its expectation, observation and message. `{a}`,
/// `{b}` and `{c}` stand for identifiers, `{both}` for the usual comparison.
fn titled(rule: &str, at: [&str; 3], seen: [&str; 3]) -> String {
    let [operation, pointer, kind] = at.map(str::to_owned);
    let [expected, actual, message] = seen.map(|text| {
        text.replace("{a}", "316599da8ef4b3176873271edb4bf91f")
            .replace("{b}", "316599da8ef4b3176873271edb4bf910")
            .replace("{c}", "0555af5e8276bf05f8520f48af36da17")
    });
    let both = format!("expected {expected}, got {actual}");
    title(&Finding {
        service: rule.split('/').next().unwrap_or_default().into(),
        exchange: usize::from(!operation.is_empty()),
        message: message.replace("{both}", &both),
        operation,
        pointer,
        kind,
        expected,
        actual,
        ..crate::sample::finding(rule)
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of findings")]
fn titles_of_each_kind_name_operation_field_expected_and_actual() {
    for (rule, at, seen, expected) in [
        (
            "chat/urls/link-to-the-last-message",
            ["", "/json/links/*", "bound"],
            ["at least 5", "4", "/json/links/*: {both}"],
            "urls: `links` has 4 items, expected at least 5",
        ),
        (
            "chat/urls/link-to-the-last-message",
            ["", "", "story"],
            ["at least 5", "4", "/json/links/*: {both}"],
            "urls: `links` has 4 items, expected at least 5",
        ),
        (
            "flow/read-flows/page-size",
            ["read-flows", "/meta/page_size", "default"],
            [
                "50",
                "51",
                "PageSize was left out: expected the default 50, got 51",
            ],
            "read-flows: `meta.page_size` is 51, expected 50 (the default)",
        ),
        (
            "flow/flow/name",
            ["read-flows", "/flows/0/name", "missing-field"],
            ["a string", "nothing", "/flows/0/name is missing"],
            "read-flows: `flows[].name` is missing, expected a string",
        ),
        (
            "flow/flow/status",
            ["create-flow", "/status", "enum"],
            [
                "one of a, b",
                "\"c\"",
                "/status is \"c\", expected one of a, b",
            ],
            "create-flow: `status` is \"c\", expected one of a, b",
        ),
        (
            "flow/flow/sid",
            ["create-flow", "/sid", "not-honoured"],
            ["\"x\"", "\"y\"", "sent \"x\", came back as \"y\""],
            "create-flow: `sid` is \"y\", expected \"x\"",
        ),
        (
            "flow/flow/sid",
            ["create-flow", "/sid", "not-honoured"],
            [
                "\"IS{a}\"",
                "\"IS{b}\"",
                "sent one SID, came back as another one",
            ],
            "create-flow: `sid` is not the expected \"IS…\", but another IS…",
        ),
        (
            "chat/lists/none-missed-meanwhile",
            ["read-members", "", "story"],
            [
                "\"MB{a}\" among them",
                "\"MB{b}\", \"MB{c}\"",
                "/items/*/sid: {both}",
            ],
            "read-members: `items[].sid` lacks \"MB…\", has 2 others",
        ),
        (
            "chat/bindings/shows-what-was-registered",
            ["read-user-bindings", "", "story"],
            [
                "\"invited_to_channel\" among them",
                "\"new_message\"",
                "/items/*/message_types/*: {both}",
            ],
            "read-user-bindings: `items[].message_types[]` lacks \"invited_to_channel\", has \"new_message\"",
        ),
        (
            "chat/callback",
            ["", "/count", "bound"],
            ["at least 1", "0", "/count: {both} (waited 30s)"],
            "no callback came within 30s, expected at least 1",
        ),
        (
            "chat/callback",
            ["", "/count", "bound"],
            [
                "at least 6",
                "3",
                "/count: {both} (waited 30s) (or the hook a or b had no effect)",
            ],
            "3 callbacks came within 30s, expected at least 6 (or the hook a or b had no effect)",
        ),
        (
            "chat/channels/same-everywhere",
            ["create-channel", "/date_created", "changed"],
            [
                "\"2026-11-26T22:33:54Z\", as before",
                "\"2026-11-26T22:33:55Z\"",
                "{both}",
            ],
            "create-channel: `date_created` changed (was 22:33:54, now 22:33:55)",
        ),
        (
            "flow/executions/same-everywhere",
            ["create-execution", "/flow_sid", "changed"],
            ["\"FW{a}\", as before", "\"FW{b}\"", "{both}"],
            "create-execution: `flow_sid` changed (was \"FW…\", now another one)",
        ),
        (
            "chat/services/own-role",
            ["fetch-service", "/default_role_sid", "not-unique"],
            [
                "a value that \"IS{a}\" does not have",
                "\"RL{b}\"",
                "\"RL1\" belongs to \"IS1\" and to \"IS2\"",
            ],
            "fetch-service: `default_role_sid` is \"RL…\" in two resources, expected a different value in each",
        ),
        (
            "chat/create-role/body",
            ["create-role", "", "encoding"],
            ["a body as application/xml", "application/json", "{both}"],
            "create-role: the body is sent as application/json, expected application/xml",
        ),
        (
            "chat/fetch-role/type",
            ["fetch-role", "/type", "story"],
            ["\"deployment\"", "nothing there", "/type: {both}"],
            "fetch-role: `type` is missing, expected \"deployment\"",
        ),
        (
            "chat/fetch-role/type",
            ["fetch-role", "/type", "story"],
            ["5", "\"5\"", "/type: {both}"],
            "fetch-role: `type` is \"5\", expected 5",
        ),
        (
            "chat/members/others-stay",
            ["fetch-member", "/index", "changed"],
            [
                "7, as before",
                "null",
                "/index of MB1 went from 7 to null although update-member named another",
            ],
            "fetch-member: `index` changed (was 7, now null) although update-member named another",
        ),
        (
            "chat/create-channel/credentials",
            ["create-channel", "", "accepted"],
            [
                "a refusal",
                "accepted with 201",
                "create-channel was accepted, but must be rejected",
            ],
            "create-channel: accepted with 201, expected a refusal (credentials)",
        ),
        (
            "chat/create-channel",
            ["create-channel", "", "refused"],
            [
                "an accepted request: 2xx",
                "status 404",
                "create-channel was refused: status 404",
            ],
            "create-channel: status 404, expected an accepted request",
        ),
        (
            "chat/create-user/role-default",
            ["create-user", "/role_sid", "initial"],
            ["\"RL{a}\"", "\"RL{b}\"", "/role_sid of a new user: {both}"],
            "create-user: `role_sid` of a new user is not the expected \"RL…\", but another RL…",
        ),
        (
            "auth/registration/completed-webhook",
            ["", "", "story"],
            [
                "\"a\" among them",
                "\"b\"",
                "/requests/*/json/events/*/event: {both} (waited 30s)",
            ],
            "registration: `events[].event` of the callback lacks \"a\", has \"b\" (waited 30s)",
        ),
        (
            "auth/registration/completed-webhook",
            ["", "", "story"],
            [
                "\"a\" among them",
                "nothing",
                "/requests/*/json/events/*/event: {both} (waited 30s)",
            ],
            "registration: no callback came with `events[].event` \"a\" (waited 30s)",
        ),
        (
            "auth/approvals/no-empty-details",
            ["", "", "story"],
            [
                "{} not among them",
                "{\"a\": 1}, {}",
                "/requests/*/details contains {}, which must not be there",
            ],
            "approvals: `requests[].details` contains {}, which must not be there",
        ),
        (
            "auth/registration-token/key-enforced",
            ["", "/registered", "registered"],
            [
                "not registered",
                "registered",
                "a token with another key: {both}",
            ],
            "registration-token: `registered` is registered, expected not registered (a token with another key)",
        ),
        (
            "chat/bindings/listed",
            ["read-bindings", "/bindings", "not-listed"],
            ["BS{a} in the list", "a list without it", "{both}"],
            "read-bindings: `bindings` lacks BS…, expected in the list",
        ),
        (
            "flow/read-executions/from-is-inclusive",
            ["read-executions", "/executions", "not-listed"],
            [
                "FN{a} in the list for PageSize=1",
                "3 pages without it",
                "{both}",
            ],
            "read-executions: `executions` lacks FN… (3 pages), expected in the list for PageSize=1",
        ),
        (
            "flow/delete-flow/others-stay",
            ["fetch-flow", "", "gone"],
            [
                "FW{a}, which delete-flow did not name",
                "not found",
                "{both}",
            ],
            "fetch-flow: FW… is gone after delete-flow, which did not name it",
        ),
        (
            "chat/create-channel/retry-count",
            ["create-channel", "/retry_count", "bound"],
            ["at most 3: refused or cut", "4 applied in full", "{both}"],
            "create-channel: `retry_count` is 4, expected at most 3 (values beyond are refused or cut)",
        ),
        (
            "flow/delete-flow/gone",
            ["fetch-flow", "", "found"],
            ["no FW{a} after delete-flow", "found", "{both}"],
            "fetch-flow: FW… is still found after delete-flow",
        ),
        (
            "flow/steps/context-as-then",
            ["read-steps", "/steps/0/context", "story"],
            [
                "{\"contact\":{\"channel\":{\"address\":\"a\"}},\"flow\":{\"data\":{\"x\":\"{a}34567890\"}}}",
                "{\"contact\":{\"channel\":{\"address\":\"b\"}},\"flow\":{\"data\":{\"x\":\"{a}34567890\"}}}",
                "/steps/0/context: {both}",
            ],
            "read-steps: `steps[].context.contact.channel.address` is \"b\", expected \"a\"",
        ),
        (
            "flow/fetch-execution/context",
            ["fetch-execution", "/context", "story"],
            [
                "not {\"contact\": {\"channel\": {\"address\": \"a text that is long\"}}, \"flow\": {\"data\": \"another text that is long\"}}",
                "{\"contact\": {\"channel\": {\"address\": \"a text that is long\"}}, \"flow\": {\"data\": \"another text that is long\"}}",
                "/context: {both}",
            ],
            "fetch-execution: `context` has a value that it must not have",
        ),
        (
            "flow/create-execution/each-its-own",
            ["create-execution", "/sid", "story"],
            ["not \"FN{a}\"", "\"FN{a}\"", "/sid: {both}"],
            "create-execution: `sid` is \"FN…\", expected any other value",
        ),
        (
            "chat/channels/invites-link",
            ["read-members", "", "leads-elsewhere"],
            ["chat/channel CH{a}", "a list of chat/member", "{both}"],
            "read-members: a link leads to a list of chat/member, expected chat/channel CH…",
        ),
        (
            "events/operation-processing/emitted",
            ["", "/events", "not-told"],
            [
                "an event com.operation.processing",
                "6× com.message.queued, 6× com.message.sent, 6× com.message.undelivered, 1× com.operation.completed",
                "/events: {both}",
            ],
            "operation-processing: no event com.operation.processing",
        ),
        (
            "events/operation-processing/fields",
            ["", "/events", "story"],
            [
                "an event com.operation.processing",
                "6× com.message.queued, 6× com.message.sent, 6× com.message.undelivered, 1× com.operation.completed",
                "/events: {both}",
            ],
            "operation-processing: `events` has another value, expected an event com.operation.processing",
        ),
        (
            "media/content/bytes",
            ["", "", "bytes"],
            ["the 6 uploaded bytes", "5 bytes", "{both}"],
            "content: 5 bytes, expected the 6 uploaded bytes",
        ),
    ] {
        assert_eq!(titled(rule, at, seen), expected);
    }
    let long = "x ".repeat(200);
    let title = titled("f/a", ["create-flow", "", ""], ["", "", &long]);
    assert!(
        title.ends_with("x…") && title.chars().count() < 160,
        "{title}"
    );
}

#[test]
fn a_title_about_a_refusal_names_what_the_scenario_sends() {
    let titled = |scenario: &str| {
        title(&Finding {
            operation: "create-user".into(),
            scenario: scenario.into(),
            kind: "refused".into(),
            expected: "an accepted request".into(),
            actual: "status 409".into(),
            message: "create-user was refused: status 409".into(),
            ..Finding::default()
        })
    };
    let plain = "create-user: status 409, expected an accepted request";
    assert_eq!(titled("chat/create-user/happy"), plain);
    assert_eq!(
        titled("chat/users/identity-in-another-case[x=1]"),
        format!("{plain} (scenario identity-in-another-case)")
    );
}

#[test]
fn a_title_counts_the_other_operations_that_show_the_same() {
    let finding = |operation: &str, pointer: &str| Finding {
        rule: "f/a".into(),
        operation: operation.into(),
        pointer: pointer.into(),
        message: "x is 1".into(),
        ..Finding::default()
    };
    let all = [finding("a-b", ""), finding("c-d", ""), finding("e-f", "/x")];
    let defects = defects(&[crate::sample::rule("f/a", Verdict::Fail)], &all, &[]);
    let titles: Vec<&str> = defects.iter().map(|defect| defect.title.as_str()).collect();
    assert_eq!(titles, ["a-b and 1 more operation: x is 1"]);
}

#[test]
fn long_identifiers_are_left_out_of_what_findings_share() {
    let text = "/items/0 is \"CH0123456789abcdef0123456789abcdef\", not-a-number";
    assert_eq!(without_names(text), "/items/0 is \"…\", not-a-number");
    let names = with_types(&format!("{text} user-90de2604cd0a1"));
    assert_eq!(names, "/items/0 is \"CH…\", not-a-number user-…");
}
