//! Invalid and unusual bodies.

use crate::hostile::command::{Judged, judge, judge_in};
use crate::hostile::pages::{answer, ok, only_page};
use crate::hostile::target::{Act, Target, send};
use crate::hostile::wire::Due::{Cause, Fails, Fine};
use crate::hostile::wire::{Row, check, each, row};
use crate::program::{Folder, one_in};
use serde_json::{Value, json};

/// The page with its only flow changed.
fn with(pointer: &str, value: Value) -> Vec<Act> {
    let mut page = only_page("http://127.0.0.1");
    let slot = page.pointer_mut(pointer).expect("a member");
    *slot = value;
    send(ok(page.to_string()))
}

/// The page as text with one part replaced.
fn replaced(old: &str, new: &str) -> Vec<Act> {
    let page = only_page("http://127.0.0.1").to_string();
    assert!(page.contains(old), "{old}");
    send(ok(page.replacen(old, new, 1)))
}

fn typed(headers: &str) -> Vec<Act> {
    send(answer(
        "200 OK",
        headers,
        only_page("http://127.0.0.1").to_string(),
    ))
}

fn nested(levels: usize) -> Vec<Act> {
    let inner = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    replaced("\"A flow\"", &inner)
}

#[expect(clippy::too_many_lines, reason = "a table of answers")]
fn rows() -> Vec<Row> {
    let page = only_page("http://127.0.0.1").to_string();
    let utf16: Vec<u8> = page.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let not_utf8 = {
        let mut bytes = page.clone().into_bytes();
        let at = page.find("A flow").expect("a name");
        bytes[at] = 0xff;
        bytes
    };
    vec![
        // Not text, not JSON.
        row(
            "html",
            send(answer(
                "200 OK",
                "Content-Type: text/html\r\n",
                "<html>\x1b[2J</html>",
            )),
            Cause(&["text/html in place of JSON"]),
        ),
        row("nothing", send(ok("")), Fails("200 without a body")),
        row(
            "blanks",
            send(ok(" \n".repeat(1000))),
            Fails("empty, expected JSON"),
        ),
        row(
            "not utf-8",
            send(ok(&not_utf8)),
            Fails("not valid UTF-8 at byte "),
        ),
        row(
            "utf-16",
            send(ok([&[0xff, 0xfe], &utf16[..]].concat())),
            Fails("not valid UTF-8 at byte 0"),
        ),
        row("utf-16 without a mark", send(ok(&utf16)), Fails("not JSON")),
        row("nul", send(ok([0; 64])), Fails("not JSON")),
        row(
            "a mark before it",
            send(ok(format!("\u{feff}{page}"))),
            Fine,
        ),
        row(
            "nan",
            replaced("\"version\":1", "\"version\":NaN"),
            Fails("not JSON"),
        ),
        row(
            "json5",
            replaced("\"version\"", "version"),
            Fails("not JSON"),
        ),
        row(
            "two documents",
            send(ok(format!("{page}{page}"))),
            Fails("trailing characters at line 1"),
        ),
        row(
            "half a document",
            send(ok(&page[..page.len() / 2])),
            Fails("not JSON: EOF"),
        ),
        row(
            "raw control",
            replaced("A flow", "A\u{1}flow"),
            Fails("not JSON: control character"),
        ),
        row(
            "lone surrogate",
            replaced("A flow", "\\ud800"),
            Fails("not JSON"),
        ),
        row("escaped nul", replaced("A flow", "\\u0000"), Fine),
        row(
            "xml for json",
            send(answer(
                "200 OK",
                "Content-Type: application/xml\r\n",
                "<page><meta/></page>",
            )),
            Fails("application/xml in place of JSON"),
        ),
        // Too much.
        row(
            "depth 65",
            nested(63),
            Fails("nested deeper than 64 levels"),
        ),
        row(
            "depth 100,000",
            nested(100_000),
            Fails("nested deeper than 64 levels"),
        ),
        row(
            "300,000 values",
            replaced("\"A flow\"", &format!("[{}0]", "1,".repeat(300_000))),
            Fails("more than 250000 values"),
        ),
        row(
            "a long text",
            with("/flows/0/friendly_name", json!("x".repeat(4_000_000))),
            Fine,
        ),
        row(
            "20 MiB",
            send(ok(" ".repeat(20 << 20))),
            Cause(&["body-over-limit(8 MiB)", "timeout(body, "]),
        ),
        row(
            "50,000 broken items",
            with("/flows", json!(vec![json!({}); 50_000])),
            Fails("/flows/0/sid"),
        ),
        row(
            "20,000 broken items, more than one way",
            with("/flows", json!(vec![json!({"sid": 1, "x": null}); 20_000])),
            Fails("/flows/0/sid"),
        ),
        // Numbers.
        row(
            "1e999999",
            replaced("\"version\":1", "\"version\":1e999999"),
            Fine,
        ),
        row(
            "1e-999999",
            replaced("\"version\":1", "\"version\":1e-999999"),
            Fails("flow/flow/version"),
        ),
        row(
            "400 digits",
            replaced("\"version\":1", &format!("\"version\":{}", "9".repeat(400))),
            Fine,
        ),
        row(
            "page size 2^64+1",
            replaced("\"page_size\":50", "\"page_size\":18446744073709551617"),
            Fails("flow/list-meta/page-size"),
        ),
        row(
            "1.5 for an integer",
            replaced("\"version\":1", "\"version\":1.5"),
            Fails("flow/flow/version"),
        ),
        // Other types.
        row("null", send(ok("null")), Fails("another document")),
        row("42", send(ok("42")), Fails("another document")),
        row("an array", send(ok("[]")), Fails("another document")),
        row(
            "an error body",
            send(ok("{\"error\": true}")),
            Fails("another document"),
        ),
        row(
            "object for an array",
            with("/flows", json!({})),
            Fails("/flows"),
        ),
        row(
            "array for an object",
            with("/flows/0", json!([])),
            Fails("/flows/0"),
        ),
        row(
            "text for a number",
            with("/flows/0/version", json!("1")),
            Fails("/flows/0/version"),
        ),
        row(
            "number for a text",
            with("/flows/0/status", json!(1)),
            Fails("/flows/0/status"),
        ),
        row(
            "null for a sid",
            with("/flows/0/sid", Value::Null),
            Fails("/flows/0/sid"),
        ),
        row(
            "key of another array",
            with("/meta/key", json!("__proto__")),
            Fails("/meta/key"),
        ),
        // Keys.
        row(
            "a key twice",
            replaced("\"version\":1", "\"version\":2,\"version\":1"),
            Fine,
        ),
        row(
            "twice, one of them wrong",
            replaced("\"version\":1", "\"version\":\"2\",\"version\":1"),
            Fails("the earlier of two values"),
        ),
        row(
            "odd keys",
            replaced(
                "\"version\":1",
                r#""version":1,"":0,"/":1,"~":2,"__proto__":3,"$ref":"file:///etc/passwd""#,
            ),
            Fine,
        ),
        row(
            "a key that a reader reserves",
            replaced(
                "\"version\":1",
                r#""version":{"$serde_json::private::Number":"1"}"#,
            ),
            Fails("is reserved by the JSON parser"),
        ),
        // The media type alone is not a finding: no document states it.
        row("no type", typed(""), Fine),
        row("another type", typed("Content-Type: text/plain\r\n"), Fine),
        row("a garbled type", typed("Content-Type: ;;=\"\\\r\n"), Fine),
    ]
}

#[test]
fn bodies_that_are_not_what_they_should_be() {
    each(&one_in(6, rows()), |row| {
        let acts = row.acts.clone();
        let target = Target::answering(move |_| acts.clone());
        check(row.name, &judge(&target, "flow/read-flows/happy"), row.due);
    });
}

#[test]
fn a_key_that_stands_twice_is_a_warning_with_both_places() {
    let target = Target::answering(|_| replaced("\"version\":1", "\"version\":2,\"version\":1"));
    let Judged { record, .. } = judge(&target, "flow/read-flows/happy");
    let findings = record["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 1, "{findings:?}");
    let member_text = |member: &str| findings[0][member].as_str().unwrap_or_default();
    assert_eq!(
        [
            member_text("rule"),
            member_text("level"),
            member_text("kind"),
            member_text("pointer")
        ],
        [
            "flow/flow/no-other-fields",
            "should",
            "duplicate-key",
            "/flows/0/version"
        ]
    );
    assert!(
        member_text("message").matches("line 1, column ").count() == 2,
        "{}",
        member_text("message")
    );
}

#[test]
fn a_byte_order_mark_is_a_warning() {
    let target = Target::answering(|_| {
        let body = format!("\u{feff}{}", only_page("http://127.0.0.1"));
        vec![Act::Send(ok(body))]
    });
    let Judged { record, ended, .. } = judge(&target, "flow/read-flows/happy");
    assert_eq!(ended.exit, Some(0), "{}", ended.stdout);
    let findings = record["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 1, "{findings:?}");
    let member_text = |member: &str| findings[0][member].as_str().unwrap_or_default();
    assert_eq!(
        [
            member_text("rule"),
            member_text("level"),
            member_text("kind")
        ],
        ["flow/json/plain", "should", "byte-order-mark"]
    );
}

#[test]
fn xml_is_read_without_what_it_declares() {
    let bomb = "<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY a \"&lol;&lol;\">]><hash><success>&a;</success></hash>";
    let outside =
        "<!DOCTYPE x SYSTEM \"http://127.0.0.1:9/x.dtd\"><hash><success>true</success></hash>";
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let attributes: Vec<String> = (0..100_000).map(|n| format!("a{n}=\"\"")).collect();
    let wide = format!("<hash {}/>", attributes.join(" "));
    for (name, xml, word) in [
        ("bomb", bomb, "a document type at byte 0"),
        ("outside", outside, "a document type at byte 0"),
        ("deep", &deep, "with XML that cannot be read"),
        ("wide", &wide, "with XML that cannot be read"),
        ("half", "<hash><success>", "with XML that cannot be read"),
    ] {
        let answer = answer("200 OK", "Content-Type: application/xml\r\n", xml);
        let target = Target::answering(move |_| send(&answer));
        let url = format!("auth={}/auth", target.origin());
        let judged = judge_in(&Folder::with_limits(), &url, "auth/create-user/happy");
        check(name, &judged, Fails(word));
    }
}
