//! Each invalid request has exactly its finding; allowed variations and our own scenarios have none.

use super::{Completeness, validate_request};
use crate::evidence::{Evidence, Exchange, Expectation};
use crate::load::{shared as of_specs, shared_schemas};
use conformant_base::http::Request;
use conformant_engine::request::recognize;
use conformant_record::{Level, Subject};
use serde_json::Map;

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
    let judged = validate_request(
        rulebook,
        shared_schemas(),
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
    let path = request.path().to_owned();
    let (operation, sent) = recognize(rulebook.operations(), &request, &path, &Map::new())
        .unwrap_or_else(|| panic!("no operation: {text}"));
    Exchange {
        step: 1,
        service: operation.service.clone(),
        operation: operation.id.clone(),
        sent,
        base: "http://127.0.0.1".to_owned(),
        request,
        ..Exchange::default()
    }
}

const CHANNELS: &str = "POST /v2/Services/IS1/Channels";
const USERS: &str = "POST /v2/Services/IS1/Users";

/// Request line, body, and the finding; none for allowed variations.
const REQUESTS: &str = include_str!("requests.json");

#[test]
fn a_request_brings_exactly_its_finding() {
    let rows: Vec<(String, String, String)> = serde_json::from_str(REQUESTS).unwrap();
    let mut differing = Vec::new();
    for (line, body, expected) in rows {
        let found = found(&usual(&line, &body), Completeness::Whole).join(", ");
        if found != expected {
            differing.push(format!("{line} {body}: {found}, not {expected}"));
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
    for (media_type, name, size, wrong) in [
        (multipart, "file", "4", "request/media required-parameter"),
        (multipart, "Media", "4", "request/media misspelt"),
        (multipart, "media", "90", "request/content-size size"),
        ("multipart/form-data", "media", "4", "request encoding"),
        (FORM, "media", "4", "request encoding"),
    ] {
        let wrong = [format!("media/upload-media/{wrong}")];
        assert_eq!(upload(media_type, name, size), wrong);
    }
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
fn allowed_header_fields_bring_nothing() {
    let none: [&str; 0] = [];
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
        super::find_invalid_requests(of_specs(), shared_schemas(), &evidence, &[]).len()
    };
    let meant = || Expectation::Accepted("chat/create-channel".to_owned());
    let refused = || Expectation::Rejected("chat/create-channel/type".to_owned());
    assert_eq!(find_invalid_requests("Type=Public", meant()), 1);
    assert_eq!(find_invalid_requests("Type=public", meant()), 0);
    assert_eq!(find_invalid_requests("Type=Public", refused()), 0);
    assert_eq!(find_invalid_requests("Type=Public", Expectation::Either), 0);
}
