//! Each invalid request has exactly its finding; allowed variations and our own scenarios have none.

use super::{Completeness, validate_request};
use crate::evidence::{Evidence, Exchange, Expectation, Outcome, Poll, Span};
use crate::load::shared as of_specs;
use conformant_base::http::Request;
use conformant_engine::request::recognize;
use conformant_record::{Level, Subject};
use conformant_rulebook::scenario::Credentials;
use conformant_schema::Schemas;
use serde_json::Map;
use std::sync::Arc;

/// A key and its secret.
const BASIC: &str = "Basic a2V5OnNlY3JldA==";
const FORM: &str = "application/x-www-form-urlencoded";

/// A request as a line, header fields as lines and, behind an empty line, a body.
fn request(text: &str) -> Request {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut request = Request::new(method, target);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        request.headers.add(name, value);
    }
    request.body = body.replace('\n', "\r\n").into_bytes();
    request
}

/// A request with right credentials and, where it has a body, a form's media type.
fn usual(line: &str, body: &str) -> String {
    let media_type = if body.is_empty() {
        String::new()
    } else {
        format!("\nContent-Type: {FORM}")
    };
    format!("{line}\nAuthorization: {BASIC}{media_type}\n\n{body}")
}

/// What is found, as `RULE KIND`.
fn found(text: &str, kept: Completeness) -> Vec<String> {
    let rulebook = of_specs();
    let exchange = exchange(text);
    let operation = rulebook.operation(&exchange.service, &exchange.operation);
    let schemas = Schemas::default();
    let judged = validate_request(
        rulebook,
        &schemas,
        operation.unwrap(),
        &exchange,
        kept,
        "test",
    );
    let listed = judged.findings.iter().map(|finding| {
        assert_eq!(finding.subject, Subject::Request);
        assert!(rulebook.requests.contains_key(&finding.rule));
        assert!(!rulebook.rules.contains_key(&finding.rule));
        format!("{} {}", finding.rule, finding.kind)
    });
    listed.collect()
}

/// The request as an exchange without a response.
fn exchange(text: &str) -> Exchange {
    let rulebook = of_specs();
    let request = request(text);
    let operations = rulebook.services.values();
    let operations = operations.flat_map(|service| service.operations.values());
    let path = request.path().to_owned();
    let (operation, sent) = recognize(operations, &request, &path, &Map::new())
        .unwrap_or_else(|| panic!("no operation: {text}"));
    Exchange {
        step: 1,
        service: operation.service.clone(),
        operation: operation.id.clone(),
        sent,
        credentials: Credentials::Default,
        base: "http://127.0.0.1".to_owned(),
        request,
        outcome: Outcome::none(),
        expectation: Expectation::Either,
        span: Span::UNKNOWN,
        via: None,
        poll: Poll::Once,
        shell: Arc::default(),
        setup: false,
        race: None,
    }
}

const CHANNELS: &str = "POST /v2/Services/IS1/Channels";
const USERS: &str = "POST /v2/Services/IS1/Users";
const ROLES: &str = "POST /v2/Services/IS1/Roles";
const WEBHOOKS: &str = "POST /v2/Services/IS1/Channels/c/Webhooks";
const EXECUTIONS: &str = "/v1/Flows/FW0123456789abcdef0123456789abcdef/Executions";

#[test]
#[expect(clippy::too_many_lines, reason = "a table of requests")]
fn a_wrong_request_brings_exactly_its_finding() {
    let executions = format!("POST {EXECUTIONS}");
    let reading = |query: &str| format!("GET {EXECUTIONS}?{query}");
    let approval = "POST /onetouch/json/users/7/approval_requests";
    let long = "x".repeat(65);
    let mut differing = Vec::new();
    for (line, body, expected) in [
        (
            CHANNELS,
            "friendlyName=a",
            "chat/create-channel/request/friendly-name misspelt",
        ),
        (
            CHANNELS,
            "unique_name=a",
            "chat/create-channel/request/unique-name misspelt",
        ),
        (
            CHANNELS,
            "Type=Public",
            "chat/create-channel/request/type enum",
        ),
        (
            CHANNELS,
            "Attributes=%7Bno",
            "chat/create-channel/request/attributes json-text",
        ),
        (
            CHANNELS,
            "DateCreated=2026-01-01",
            "chat/create-channel/request/date-created format",
        ),
        (
            CHANNELS,
            "Type=public&Type=private",
            "chat/create-channel/request/type repeated",
        ),
        (
            CHANNELS,
            &format!("UniqueName={long}"),
            "chat/create-channel/request/unique-name bound",
        ),
        (
            "POST /v2/Services/IS1/Channels?UniqueName=a",
            "FriendlyName=b",
            "chat/create-channel/request/unique-name place",
        ),
        (
            USERS,
            "FriendlyName=a",
            "chat/create-user/request/identity required-parameter",
        ),
        (
            USERS,
            "identity=a",
            "chat/create-user/request/identity misspelt",
        ),
        (
            USERS,
            "Identity=a&RoleSid=RL12",
            "chat/create-user/request/role-sid pattern",
        ),
        (
            ROLES,
            "FriendlyName=a&Type=channel&Permission[]=b",
            "chat/create-role/request/permission misspelt",
        ),
        (
            ROLES,
            "FriendlyName=a&Type=channel&Permission.0=b&Permission.1=c",
            "chat/create-role/request/permission misspelt",
        ),
        (
            WEBHOOKS,
            "Type=webhook&Configuration[Url]=http://x/",
            "chat/create-webhook/request/configuration-url misspelt",
        ),
        (
            WEBHOOKS,
            "Type=webhook&Configuration_Url=http://x/",
            "chat/create-webhook/request/configuration-url misspelt",
        ),
        (
            WEBHOOKS,
            "Type=webhook&Configuration.RetryCount=4",
            "chat/create-webhook/request/configuration-retry-count bound",
        ),
        (
            WEBHOOKS,
            "Type=webhook&Configuration.RetryCount=two",
            "chat/create-webhook/request/configuration-retry-count type",
        ),
        (
            WEBHOOKS,
            "Type=trigger&Configuration.Triggers=1&Configuration.Triggers=2&Configuration.Triggers=3&Configuration.Triggers=4&Configuration.Triggers=5&Configuration.Triggers=6",
            "chat/create-webhook/request/configuration-triggers bound",
        ),
        (
            "GET /v2/Services?PageSize=1001",
            "",
            "chat/read-services/request/page-size bound",
        ),
        (
            "GET /v2/Services?pageSize=10",
            "",
            "chat/read-services/request/page-size misspelt",
        ),
        (
            "GET /v2/Services/IS1/Bindings?BindingType=sms",
            "",
            "chat/read-bindings/request/binding-type enum",
        ),
        (
            &executions,
            "From=%2B1",
            "flow/create-execution/request/to required-parameter",
        ),
        (
            &executions,
            "To=%2B1&From=%2B2&Parameters=[",
            "flow/create-execution/request/parameters json-text",
        ),
        (
            "GET /v1/Flows/FL1",
            "",
            "flow/fetch-flow/request/sid pattern",
        ),
        (
            &reading("DateCreatedFrom=2026-01-01T00:00:00+01:00"),
            "",
            "flow/read-executions/request/date-created-from format",
        ),
        (
            &reading("DateCreatedTo=01/02/2026"),
            "",
            "flow/read-executions/request/date-created-to format",
        ),
        (
            approval,
            "details[a]=b",
            "auth/create-approval-request/request/message required-parameter",
        ),
        (
            approval,
            "message=a&details[abcdefghijklmnopqrstu]=b",
            "auth/create-approval-request/request/details shape",
        ),
        (
            approval,
            "message=a&seconds_to_expire=soon",
            "auth/create-approval-request/request/seconds-to-expire type",
        ),
        (
            "GET /onetouch/yaml/approval_requests/1",
            "",
            "auth/fetch-approval-request/request/format enum",
        ),
        (
            "GET /protected/json/registrations/status?customUserId=1",
            "",
            "auth/poll-registration-status/request/custom-user-id misspelt",
        ),
    ] {
        let found = found(&usual(line, body), Completeness::Whole);
        if found != [expected] {
            differing.push(format!("{line} {body}: {found:?}, not {expected}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn what_a_body_says_it_is_belongs_to_it() {
    let create = |media_type: &str, body: &str| {
        let text = format!("{USERS}\nAuthorization: {BASIC}\nContent-Type: {media_type}\n\n{body}");
        found(&text, Completeness::Whole)
    };
    let encoding = ["chat/create-user/request encoding"];
    assert_eq!(create("application/json", r#"{"Identity":"a"}"#), encoding);
    assert_eq!(create(FORM, r#"{"Identity":"a"}"#), encoding);
    assert_eq!(create("text/plain", "Identity=a"), encoding);
    let upload = |media_type: &str, name: &str, size: &str| {
        let body = format!(
            "--b\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a\"\n\nfour\n--b--\n"
        );
        let text = format!(
            "POST /v1/Services/IS1/Media\nAuthorization: {BASIC}\nContent-Size: {size}\n\
             Content-Type: {media_type}\n\n{body}"
        );
        found(&text, Completeness::Whole)
    };
    let multipart = "multipart/form-data; boundary=b";
    assert_eq!(upload(multipart, "media", "4"), [""; 0]);
    assert_eq!(
        upload(multipart, "file", "4"),
        ["media/upload-media/request/media required-parameter"]
    );
    assert_eq!(
        upload(multipart, "Media", "4"),
        ["media/upload-media/request/media misspelt"]
    );
    assert_eq!(
        upload(multipart, "media", "90"),
        ["media/upload-media/request/content-size size"]
    );
    assert_eq!(
        upload("multipart/form-data", "media", "4"),
        ["media/upload-media/request encoding"]
    );
    assert_eq!(
        upload(FORM, "media", "4"),
        ["media/upload-media/request encoding"]
    );
    let user = |body: &str| {
        let line = "POST /protected/json/users/new\nContent-Type: application/json";
        found(&format!("{line}\n\n{body}"), Completeness::Whole)
    };
    let nested = |country: &str| {
        user(&format!(
            r#"{{"user":{{"email":"a@b.c","cellphone":"5","country_code":{country}}}}}"#
        ))
    };
    assert_eq!(nested(r#""1""#), [""; 0]);
    assert_eq!(
        nested("1"),
        ["auth/create-user/request/user-country-code type"]
    );
}

#[test]
fn advice_is_no_demand() {
    let rule = "chat/create-user/request/identity-advised";
    let mail = usual(USERS, "Identity=a%40b.example");
    assert_eq!(
        found(&mail, Completeness::Whole),
        [format!("{rule} advice")]
    );
    assert_eq!(of_specs().requests[rule].level, Level::Should);
    let number = "GET /protected/json/registrations/status?custom_user_id=12025550123";
    let rule = "auth/poll-registration-status/request/custom-user-id-advised advice";
    assert_eq!(found(number, Completeness::Whole), [rule]);
}

#[test]
fn credentials_have_the_form_that_is_shown() {
    let with = |field: &str, kept| found(&format!("GET /v2/Services{field}"), kept);
    let wrong = ["chat/read-services/request/credentials credentials"];
    for field in [
        "",
        "\nAuthorization: Bearer abc",
        "\nAuthorization: Basic key:secret",
        "\nAuthorization: Basic a2V5",
        "\nAuthorization: Basic OnNlY3JldA==",
    ] {
        assert_eq!(with(field, Completeness::Whole), wrong, "{field}");
    }
    let none: [&str; 0] = [];
    for field in [BASIC, "basic a2V5OnNlY3JldA==", "BASIC  a2V5OnNlY3JldA=="] {
        assert_eq!(
            with(&format!("\nAuthorization: {field}"), Completeness::Whole),
            none
        );
    }
    // A recording may have been cleaned of them.
    for field in [
        "",
        "\nAuthorization: [redacted]",
        "\nAuthorization: Basic ***",
    ] {
        assert_eq!(with(field, Completeness::Cleaned), none, "{field}");
    }
    assert_eq!(
        with("\nAuthorization: Bearer abc", Completeness::Cleaned),
        wrong
    );
    // How applications show their key to the authentication service is not shown.
    assert_eq!(
        found(
            "GET /onetouch/json/approval_requests/1",
            Completeness::Whole
        ),
        none
    );
}

#[test]
fn a_legal_freedom_brings_nothing() {
    let none: [&str; 0] = [];
    let executions = format!("POST {EXECUTIONS}");
    let reading = |query: &str| format!("GET {EXECUTIONS}?{query}");
    let approval = "POST /onetouch/xml/users/7/approval_requests";
    let mut differing = Vec::new();
    for (line, body) in [
        (CHANNELS, ""),
        (CHANNELS, "Type=private&UniqueName=a&FriendlyName=b"),
        (CHANNELS, "FriendlyName=b&UniqueName=a&Type=private"),
        (CHANNELS, "UniqueName=%61%20b+c&%46riendlyName=d"),
        (
            CHANNELS,
            "Attributes=%7B%7D&DateCreated=2026-01-01T00:00:00Z",
        ),
        (CHANNELS, "DateCreated=2026-01-01T00:00%2B00"),
        (CHANNELS, "SomethingElse=1&another_one=2"),
        (CHANNELS, "Type=public&Type=public"),
        (USERS, "Identity=a&FriendlyName="),
        (
            ROLES,
            "FriendlyName=a&Type=channel&Permission=b&Permission=c",
        ),
        (ROLES, "FriendlyName=a&Type=deployment&Permission=b"),
        (
            WEBHOOKS,
            "Type=studio&Configuration.FlowSid=FW0123456789ABCDEF0123456789abcdef",
        ),
        (
            "GET /v2/Services/IS1/Bindings?BindingType=apn&BindingType=fcm&Identity=a&Identity=b",
            "",
        ),
        (
            "GET /v2/Services/IS1/Users/me%40home/Channels?PageSize=51",
            "",
        ),
        (&executions, "From=%2B2&To=%2B1"),
        (
            &reading(
                "DateCreatedFrom=2026-01-01T00:00:00-00:00&DateCreatedTo=2026-01-01T00:00:00%2B01:00",
            ),
            "",
        ),
        (
            approval,
            "message=a&details[k]=v&hidden_details.k=v&logos=[]&seconds_to_expire=0",
        ),
        (
            "GET /protected/json/registrations/status?custom_user_id=6f0c1a2e-0d5b-4a52-9b0e-3a1f5e7c9d11",
            "",
        ),
    ] {
        let found = found(&usual(line, body), Completeness::Whole);
        if !found.is_empty() {
            differing.push(format!("{line} {body}: {found:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    for fields in [
        "X-Anything: 1\nUser-Agent: b\nAccept: */*",
        "x-platform-webhook-enabled: true",
        "content-TYPE: application/x-www-form-urlencoded; charset=UTF-8",
        "Content-Type: APPLICATION/X-WWW-FORM-URLENCODED",
    ] {
        let text = format!("{CHANNELS}\n{fields}\nAuthorization: {BASIC}\n\nUniqueName=a");
        assert_eq!(found(&text, Completeness::Whole), none, "{fields}");
    }
    let shouted = format!("{CHANNELS}\nAuthorization: {BASIC}\nX-Platform-Webhook-Enabled: True");
    let header = ["chat/create-channel/request/x-platform-webhook-enabled enum"];
    assert_eq!(found(&shouted, Completeness::Whole), header);
}

#[test]
fn a_story_whose_request_is_none_is_our_own_fault() {
    let find_invalid_requests = |body: &str, expectation: Expectation| {
        let sent = Exchange {
            expectation,
            ..exchange(&usual(CHANNELS, body))
        };
        let evidence = Evidence {
            exchanges: vec![sent],
            ..Evidence::default()
        };
        super::find_invalid_requests(of_specs(), &Schemas::default(), &evidence, &[]).len()
    };
    let meant = || Expectation::Accepted("chat/create-channel".to_owned());
    let refused = || Expectation::Rejected("chat/create-channel/type".to_owned());
    assert_eq!(find_invalid_requests("Type=Public", meant()), 1);
    assert_eq!(find_invalid_requests("Type=public", meant()), 0);
    assert_eq!(find_invalid_requests("Type=Public", refused()), 0);
    assert_eq!(find_invalid_requests("Type=Public", Expectation::Either), 0);
}
