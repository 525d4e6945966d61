//! `check`, `proxy` and `serve` agree in their findings about client requests.

use crate::hostile::command::{Running, conformant};
use crate::program::{BASIC, Folder, Served};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

impl Served {
    /// Creates a service with this form, as a client does.
    fn create_service(&self, form: &str) {
        let host = self.url.strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(host).expect("it listens");
        let request = format!(
            "POST /chat/v2/Services HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {BASIC}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    }
}

/// The findings of a record as `RULE SUBJECT`; checks that rules of services passed or were not judged.
fn found(report: &Path) -> Vec<String> {
    let text = std::fs::read(report).expect("a report");
    let record: Value = serde_json::from_slice(&text).expect("JSON");
    let summary = |finding: &Value| {
        let whom = finding["subject"].as_str().unwrap_or("service");
        format!("{} {whom}", finding["rule"].as_str().expect("a rule"))
    };
    let rules = record["rules"].as_array().expect("a list");
    for rule in rules.iter().filter(|rule| rule["verdict"] == "fail") {
        let id = rule["id"].as_str().expect("an id");
        assert_eq!(
            rule["subject"] == "request",
            id.contains("/request"),
            "{id}"
        );
    }
    let findings = record["findings"].as_array().expect("a list");
    findings.iter().map(summary).collect()
}

const WRONG: &str = "friendly_name=a";
const RIGHT: &str = "FriendlyName=a&AnythingElse=b";
const MISSPELT: &str = "chat/create-service/request/friendly-name request";

#[test]
fn the_reference_judges_its_clients() {
    for (form, exit, expected) in [(RIGHT, Some(0), vec![]), (WRONG, Some(1), vec![MISSPELT])] {
        let folder = Folder::with_limits();
        let flags = ["--judge", "requests", "--report", "json=serve.json"];
        let served = Served::start(&folder, &flags);
        served.create_service(form);
        assert_eq!(served.end(), exit, "{form}");
        assert_eq!(found(&folder.join("serve.json")), expected);
    }
}

#[test]
fn a_proxy_is_a_gate_for_clients_for_services_or_for_both() {
    for (side, form, exit, expected) in [
        ("requests", RIGHT, Some(0), vec![]),
        ("requests", WRONG, Some(1), vec![MISSPELT]),
        // The refusal of an invalid request is not judged.
        ("responses", WRONG, Some(4), vec![]),
        ("both", WRONG, Some(1), vec![MISSPELT]),
    ] {
        let folder = Folder::with_limits();
        let served = Served::start(&folder, &[]);
        let upstream = format!("all={}", served.url);
        let mut command = conformant(&folder);
        command.args(["proxy", "--upstream", &upstream, "--judge", side]);
        let proxy = Served::listen(command.args(["--report", "json=proxy.json"]));
        proxy.create_service(form);
        assert_eq!(proxy.end(), exit, "{side} {form}");
        let found = found(&folder.join("proxy.json"));
        assert_eq!(found, expected, "{side} {form}");
    }
}

#[test]
fn a_recording_distinguishes_client_and_service_findings() {
    let folder = Folder::with_limits();
    let mut answer = crate::program::first_fixture("chat/service");
    answer["read_status_enabled"] = json!("true");
    let entry = |form: &str, answer: Value| {
        json!({
            "startedDateTime": "2026-01-01T00:00:00Z", "time": 1,
            "request": {
                "method": "POST", "url": "http://h/v2/Services",
                "headers": [{"name": "Authorization", "value": "[redacted]"}],
                "postData": {"mimeType": "application/x-www-form-urlencoded", "text": form},
            },
            "response": {
                "status": 201, "headers": [],
                "content": {"mimeType": "application/json", "text": answer.to_string()},
            },
        })
    };
    let recording = json!({"log": {"entries": [entry(WRONG, answer)]}});
    folder.write("x.har", recording.to_string());
    for (side, of_client, of_service) in [
        ("requests", true, false),
        ("responses", false, true),
        ("both", true, true),
    ] {
        let mut command = conformant(&folder);
        command.args(["check", "x.har", "--as", "har", "--judge", side]);
        let ended = Running::start(command.args(["--report", "json=har.json"])).end();
        assert_eq!(ended.exit, Some(1), "{ended:?}");
        let found = found(&folder.join("har.json"));
        assert_eq!(found.iter().any(|f| f == MISSPELT), of_client, "{found:?}");
        let accused = "chat/service/read-status-enabled service".to_owned();
        assert_eq!(found.contains(&accused), of_service, "{found:?}");
    }
}
