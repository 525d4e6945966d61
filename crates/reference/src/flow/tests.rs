//! The flow service through requests: what scenarios do not assert.

use crate::Fault;
use crate::testing::{Client, text};
use conformant_base::http::percent_encode;
use conformant_base::ids::is_sid;
use serde_json::json;
use std::time::Duration;

impl Client {
    fn executions(&mut self) -> String {
        text(&self.get("/flow/v1/Flows")["flows"][0]["links"]["executions"])
    }

    fn listed(&mut self, target: &str) -> Vec<String> {
        let page = self.get(target);
        let items = page["executions"].as_array().unwrap();
        items.iter().map(|item| text(&item["sid"])).collect()
    }
}

const PLAIN: [(&str, &str); 2] = [("To", "+15551234567"), ("From", "+15557654321")];

#[test]
fn a_fresh_account_has_a_published_and_a_draft_flow() {
    let mut client = Client::new(&[], &[]);
    let page = client.get("/flow/v1/Flows");
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
        assert_eq!(client.get(flow["url"].as_str().unwrap()), *flow);
        for link in ["engagements", "executions"] {
            client.get(flow["links"][link].as_str().unwrap());
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
        let mut client = Client::new(&[], &[]);
        let target = client.executions();
        let made = client.call("POST", &target, &form);
        assert_eq!(made.is_success(), accepted, "{form:?}");
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
    let mut client = Client::new(&[], &[]);
    let path = client.executions();
    let mut made = Vec::new();
    for _ in 0..3 {
        made.insert(0, text(&client.accepted("POST", &path, &PLAIN)["sid"]));
        client.now += Duration::from_millis(60_500);
    }
    assert_eq!(client.listed(&path), made);
    // The three were created at 00:00:00.0, 00:01:00.5 and 00:02:01.0.
    let mut check = |from: &str, to: &str, expected: &[String]| {
        let query = [("DateCreatedFrom", from), ("DateCreatedTo", to)]
            .into_iter()
            .filter(|(_, bound)| !bound.is_empty())
            .map(|(name, bound)| format!("{name}={}", percent_encode(bound)))
            .collect::<Vec<_>>()
            .join("&");
        assert_eq!(
            client.listed(&format!("{path}?{query}")),
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
    let wrong = format!("{path}?DateCreatedFrom=yesterday");
    assert!(!client.call("GET", &wrong, &[]).is_success());
}

#[test]
fn executions_end_for_good() {
    let mut client = Client::new(&[], &[]);
    let path = client.executions();
    let execution = client.accepted("POST", &path, &PLAIN);
    let ids = json!({"flow_sid": execution["flow_sid"], "execution_sid": execution["sid"]});
    client.hook("end_execution", &ids);
    for _ in 0..3 {
        assert_eq!(client.get(&text(&execution["url"]))["status"], "ended");
    }
    assert_eq!(client.try_hook("advance_step", &ids).0, 422);
}

#[test]
fn each_fault_of_a_deletion_or_move_shows_where_its_text_says() {
    // Whether a deleted flow is served after another deletion, the status of the other one, and the order of dates.
    let seen = |faults: &[Fault]| {
        let mut client = Client::new(faults, &[]);
        let execution = client.executions();
        let execution = client.accepted("POST", &execution, &PLAIN);
        let args = json!({"flow_sid": execution["flow_sid"], "execution_sid": execution["sid"]});
        client.hook("advance_step", &args);
        let moved = client.get(&text(&execution["url"]));
        let is_ordered = text(&moved["date_created"]) <= text(&moved["date_updated"]);
        let deleted = ["x", "y"].map(|name| {
            let flow = client.hook("create_flow", &json!({"friendly_name": name}));
            format!("/flow/v1/Flows/{}", text(&flow["flow_sid"]))
        });
        for path in &deleted {
            assert!(client.call("DELETE", path, &[]).is_success());
        }
        let is_served = client.call("GET", &deleted[0], &[]).is_success();
        let published = client.get("/flow/v1/Flows")["flows"][0]["status"] == "published";
        [!is_served, published, is_ordered]
    };
    assert_eq!(seen(&[]), [true, true, true]);
    for (fault, expected) in [
        (Fault::FlowDeletedFlowReturnsOnDeletion, [false, true, true]),
        (Fault::FlowDeleteUnpublishesOthers, [true, false, true]),
        (
            Fault::FlowMovedExecutionUpdatedBeforeCreated,
            [true, true, false],
        ),
    ] {
        assert_eq!(seen(&[fault]), expected, "{}", fault.id());
    }
}
