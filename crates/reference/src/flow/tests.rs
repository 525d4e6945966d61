//! The flow service through requests: what scenarios do not assert.

use crate::{Reference, Settings, account};
use base64::Engine as _;
use conformant_base::clock::{Timestamp, VIRTUAL_START_MS, from_unix_ms};
use conformant_base::http::{Request, Response, percent_encode};
use conformant_base::ids::is_sid;
use serde_json::{Value, json};
use std::time::Duration;

/// A client of one reference, which takes its time.
struct Client {
    reference: Reference,
    now: Timestamp,
}

impl Client {
    fn new() -> Self {
        let now = from_unix_ms(VIRTUAL_START_MS);
        let settings = Settings {
            seed: 7,
            origin: "http://x".to_owned(),
            ..Settings::default()
        };
        Self {
            reference: Reference::new(settings, now),
            now,
        }
    }

    fn send(&mut self, method: &str, target: &str, form: &[(&str, &str)]) -> Response {
        let mut request = Request::new(method, target);
        // Real clients label every request as a form.
        request
            .headers
            .set("Content-Type", "application/x-www-form-urlencoded");
        let pair = format!("{}:{}", account::API_KEY, account::API_SECRET);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        request
            .headers
            .set("Authorization", format!("Basic {encoded}"));
        request.body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish()
            .into_bytes();
        self.reference.handle(&request, self.now)
    }

    fn get(&mut self, target: &str) -> Option<Value> {
        let target = target.strip_prefix("http://x").unwrap_or(target).to_owned();
        let response = self.send("GET", &target, &[]);
        response.is_success().then(|| json_of(&response))
    }

    fn hook(&mut self, name: &str, args: &Value) -> Value {
        let mut request = Request::new("POST", format!("/_control/{name}"));
        request.body = args.to_string().into_bytes();
        let response = self.reference.handle(&request, self.now);
        assert!(
            response.is_success(),
            "{name}: {}",
            String::from_utf8_lossy(&response.body)
        );
        json_of(&response)
    }

    fn flow_sid(&mut self) -> String {
        text(&self.get("/flow/v1/Flows").unwrap()["flows"][0]["sid"])
    }

    fn execute(&mut self, form: &[(&str, &str)]) -> Option<Value> {
        let flow = self.flow_sid();
        let response = self.send("POST", &format!("/flow/v1/Flows/{flow}/Executions"), form);
        response.is_success().then(|| json_of(&response))
    }

    fn listed(&mut self, target: &str, key: &str) -> Vec<String> {
        let page = self.get(target).unwrap();
        page[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| text(&item["sid"]))
            .collect()
    }
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

const PLAIN: [(&str, &str); 2] = [("To", "+15551234567"), ("From", "+15557654321")];

#[test]
fn a_fresh_account_has_a_published_and_a_draft_flow() {
    let mut client = Client::new();
    let page = client.get("/flow/v1/Flows").unwrap();
    let flows = page["flows"].as_array().unwrap();
    let seen: Vec<_> = flows
        .iter()
        .map(|f| (&f["status"], &f["version"]))
        .collect();
    assert_eq!(
        seen,
        [
            (&json!("published"), &json!(1)),
            (&json!("draft"), &json!(0))
        ]
    );
    for flow in flows {
        assert!(is_sid(flow["sid"].as_str().unwrap(), "FW"));
        assert_eq!(
            client.get(flow["url"].as_str().unwrap()).as_ref(),
            Some(flow)
        );
        for link in ["engagements", "executions"] {
            assert!(
                client.get(flow["links"][link].as_str().unwrap()).is_some(),
                "{link}"
            );
        }
    }
}

#[test]
fn inputs_are_checked() {
    let check = |to, from, parameters, accepted| {
        let form: Vec<_> = [("To", to), ("From", from), ("Parameters", parameters)]
            .into_iter()
            .filter_map(|(name, value): (_, Option<&str>)| Some((name, value?)))
            .collect();
        let made = Client::new().execute(&form).is_some();
        assert_eq!(made, accepted, "{form:?}");
    };
    let (phone, service) = ("+15551234567", format!("MG{}", "0f".repeat(16)));
    for to in [phone, "agent@example.org", "client:ada"] {
        check(Some(to), Some(phone), None, true);
    }
    for to in [
        "",
        "5551234567",
        "+05551234567",
        "+1555123456789012",
        "client:",
        "@x",
        "+1555x",
    ] {
        check(Some(to), Some(phone), None, false);
    }
    check(Some(phone), Some(&service), None, true);
    for from in ["", "client:ada", "MG0f"] {
        check(Some(phone), Some(from), None, false);
    }
    check(None, Some(phone), None, false);
    check(Some(phone), None, None, false);
    for parameters in ["{}", r#"{"a":[1,null]}"#, "[1]", "7"] {
        check(Some(phone), Some(phone), Some(parameters), true);
    }
    for parameters in ["", "{", "name=Ada"] {
        check(Some(phone), Some(phone), Some(parameters), false);
    }
}

#[test]
fn executions_are_listed_most_recent_first_within_their_dates() {
    let mut client = Client::new();
    let mut made = Vec::new();
    for _ in 0..3 {
        made.insert(0, text(&client.execute(&PLAIN).unwrap()["sid"]));
        client.now += Duration::from_millis(60_500);
    }
    let path = format!("/flow/v1/Flows/{}/Executions", client.flow_sid());
    assert_eq!(client.listed(&path, "executions"), made);
    // The three were created at 00:00:00.0, 00:01:00.5 and 00:02:01.0.
    let mut check = |from: &str, to: &str, expected: &[String]| {
        let query = [("DateCreatedFrom", from), ("DateCreatedTo", to)]
            .into_iter()
            .filter(|(_, bound)| !bound.is_empty())
            .map(|(name, bound)| format!("{name}={}", percent_encode(bound)))
            .collect::<Vec<_>>()
            .join("&");
        assert_eq!(
            client.listed(&format!("{path}?{query}"), "executions"),
            expected,
            "{query}"
        );
    };
    check("2026-01-01T00:01:00-00:00", "", &made[..2]);
    check("2026-01-01T00:01:01-00:00", "", &made[..1]);
    check("", "2026-01-01T00:01:00-00:00", &made[2..]);
    check("", "2026-01-01T00:01:01-00:00", &made[1..]);
    check(
        "2025-12-31T19:01:00-05:00",
        "2026-01-01T01:02:01+01:00",
        &made[1..2],
    );
    check("2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", &[]);
    assert!(
        client
            .get(&format!("{path}?DateCreatedFrom=yesterday"))
            .is_none()
    );
}

#[test]
fn executions_end_for_good() {
    let mut client = Client::new();
    let execution = client.execute(&PLAIN).unwrap();
    let ids = json!({"flow_sid": execution["flow_sid"], "execution_sid": execution["sid"]});
    client.hook("end_execution", &ids);
    let url = text(&execution["url"]);
    for _ in 0..3 {
        assert_eq!(client.get(&url).unwrap()["status"], "ended");
    }
    assert!(
        client
            .reference
            .handle(
                &Request {
                    body: ids.to_string().into(),
                    ..Request::new("POST", "/_control/advance_step")
                },
                client.now,
            )
            .status
            >= 400
    );
}
