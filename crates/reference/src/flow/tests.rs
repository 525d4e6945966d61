//! The flow service as clients see it; `listing` has tests of pages.

use super::account;
use crate::{Fault, Reference, Settings, Variant};
use base64::Engine as _;
use conformant_base::clock::{Timestamp, VIRTUAL_START_MS, from_unix_ms};
use conformant_base::http::{Request, Response, percent_encode};
use conformant_base::ids::is_sid;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// A client of one reference, which takes its time.
struct Client {
    reference: Reference,
    now: Timestamp,
    credentials: Option<(&'static str, &'static str)>,
    scheme: &'static str,
}

impl Client {
    fn new(faults: &[Fault], variants: &[Variant]) -> Self {
        let now = from_unix_ms(VIRTUAL_START_MS);
        let settings = Settings {
            seed: 7,
            origin: "http://x".to_owned(),
            faults: faults.iter().copied().collect(),
            variants: variants.iter().copied().collect(),
        };
        Self {
            reference: Reference::new(settings, now),
            now,
            credentials: Some((account::API_KEY, account::API_SECRET)),
            scheme: "Basic",
        }
    }

    fn send(&mut self, method: &str, target: &str, form: &[(&str, &str)]) -> Response {
        let mut request = Request::new(method, target);
        // Real clients label every request as a form.
        request
            .headers
            .set("Content-Type", "application/x-www-form-urlencoded");
        if let Some((user, password)) = self.credentials {
            let encoded =
                base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
            request
                .headers
                .set("Authorization", format!("{} {encoded}", self.scheme));
        }
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
    let mut client = Client::new(&[], &[]);
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
fn credentials_are_checked() {
    let check = |faults: &[Fault], credentials, accepted| {
        let mut client = Client::new(faults, &[]);
        client.credentials = credentials;
        let seen = client.get("/flow/v1/Flows").is_some();
        assert_eq!(seen, accepted, "{faults:?} {credentials:?}");
    };
    let key = Some((account::API_KEY, account::API_SECRET));
    let sid = Some((account::SID, account::AUTH_TOKEN));
    let wrong_password = Some((account::API_KEY, account::AUTH_TOKEN));
    let wrong_user = Some(("nobody", account::API_SECRET));
    for (credentials, accepted) in [
        (key, true),
        (sid, true),
        (wrong_password, false),
        (wrong_user, false),
        (None, false),
    ] {
        check(&[], credentials, accepted);
    }
    check(&[Fault::FlowCredentialsNotNeeded], None, true);
    check(&[Fault::FlowCredentialsNotNeeded], wrong_user, false);
    check(&[Fault::FlowPasswordNotChecked], wrong_password, true);
    check(&[Fault::FlowUserNotChecked], wrong_user, true);
    check(&[Fault::FlowApiKeyRefused], key, false);
    check(&[Fault::FlowAccountSidRefused], sid, false);
}

#[test]
fn an_execution_shows_what_it_was_created_with() {
    let mut client = Client::new(&[], &[]);
    let mut form = PLAIN.to_vec();
    form.push(("Parameters", r#"{"name":"Zoë","n":{"deep":[1]}}"#));
    let execution = client.execute(&form).unwrap();
    assert_eq!(execution["contact_channel_address"], "+15551234567");
    assert_eq!(execution["status"], "active");
    assert_eq!(execution["date_created"], "2026-01-01T00:00:00Z");
    let context = &execution["context"];
    assert_eq!(context["contact"]["channel"]["address"], "+15551234567");
    assert_eq!(context["flow"]["channel"]["address"], "+15557654321");
    assert_eq!(
        context["flow"]["data"],
        json!({"name": "Zoë", "n": {"deep": [1]}})
    );
    assert_eq!(
        client.get(execution["url"].as_str().unwrap()),
        Some(execution.clone())
    );
    for link in ["steps", "execution_context"] {
        assert!(
            client
                .get(execution["links"][link].as_str().unwrap())
                .is_some(),
            "{link}"
        );
    }
}

#[test]
fn inputs_are_checked() {
    let check = |to, from, parameters, accepted| {
        let form: Vec<_> = [("To", to), ("From", from), ("Parameters", parameters)]
            .into_iter()
            .filter_map(|(name, value): (_, Option<&str>)| Some((name, value?)))
            .collect();
        let made = Client::new(&[], &[]).execute(&form).is_some();
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
    let mut client = Client::new(&[], &[]);
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
fn page_links_of_a_filtered_list_keep_the_filter() {
    let mut client = Client::new(&[], &[]);
    for _ in 0..4 {
        client.execute(&PLAIN).unwrap();
        client.now += Duration::from_secs(60);
    }
    let path = format!("/flow/v1/Flows/{}/Executions", client.flow_sid());
    let target = format!("{path}?DateCreatedTo=2026-01-01T00%3A03%3A00-00%3A00&PageSize=2");
    let first = client.get(&target).unwrap();
    let second = client
        .get(first["meta"]["next_page_url"].as_str().unwrap())
        .unwrap();
    assert_eq!(
        first["executions"][0]["date_created"],
        "2026-01-01T00:02:00Z"
    );
    assert_eq!(second["executions"].as_array().unwrap().len(), 1);
    assert_eq!(second["meta"]["next_page_url"], Value::Null);
}

#[test]
fn steps_begin_and_end() {
    let mut client = Client::new(&[], &[]);
    let execution = client.execute(&PLAIN).unwrap();
    let ids = json!({"flow_sid": execution["flow_sid"], "execution_sid": execution["sid"]});
    let steps = text(&execution["links"]["steps"]);
    let page = client.get(&steps).unwrap();
    let [running, first] = page["steps"].as_array().unwrap().as_slice() else {
        panic!("{page}");
    };
    assert_eq!(
        first["transitioned_to"],
        running["transitioned_from"]
            .as_str()
            .map_or(json!("?"), |_| json!("ask"))
    );
    assert_eq!(running["date_updated"], Value::Null);
    assert!(first["date_updated"].is_string());
    client.now += Duration::from_secs(5);
    let begun: Vec<_> = (0..2)
        .map(|_| text(&client.hook("advance_step", &ids)["step_sid"]))
        .collect();
    let page = client.get(&steps).unwrap();
    let latest = &page["steps"][0];
    assert_eq!(latest["sid"], begun[1].as_str());
    assert_eq!(latest["parent_step_sid"], begun[0].as_str());
    assert_eq!(page["steps"][1]["parent_step_sid"], Value::Null);
    assert_eq!(
        client.get(latest["url"].as_str().unwrap()).as_ref(),
        Some(latest)
    );
    assert!(
        client
            .get(latest["links"]["step_context"].as_str().unwrap())
            .is_some()
    );
    // The end of a step sets its variables, for the step and for the execution.
    assert!(page["steps"][2]["context"]["widgets"]["ask"].is_object());
    let context = &client.get(execution["url"].as_str().unwrap()).unwrap()["context"];
    assert!(context["widgets"]["run_survey"].is_object());
}

#[test]
fn a_subflow_names_the_step_that_started_it() {
    let mut client = Client::new(&[], &[]);
    let execution = client.execute(&PLAIN).unwrap();
    let ids = json!({"flow_sid": execution["flow_sid"], "execution_sid": execution["sid"]});
    let steps = text(&execution["links"]["steps"]);
    let running = client.listed(&steps, "steps")[0].clone();
    let started = client.hook("start_subflow", &ids);
    let first = client
        .get(&format!("{steps}/{}", text(&started["step_sid"])))
        .unwrap();
    assert_eq!(first["parent_step_sid"], json!(running));
    assert_eq!(started["parent_step_sid"], json!(running));
    client.hook("advance_step", &ids);
    let next = &client.get(&steps).unwrap()["steps"][0];
    assert_eq!(next["parent_step_sid"], Value::Null);
}

#[test]
fn executions_end_for_good() {
    let mut client = Client::new(&[], &[]);
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

#[test]
fn flows_are_created_published_and_deleted() {
    let mut client = Client::new(&[], &[]);
    let made = client.hook("create_flow", &json!({"friendly_name": "Fresh"}));
    let path = format!("/flow/v1/Flows/{}", made["flow_sid"].as_str().unwrap());
    let draft = client.get(&path).unwrap();
    assert_eq!(
        (&draft["status"], &draft["version"]),
        (&json!("draft"), &json!(0))
    );
    for version in 1..3 {
        client.hook("publish_flow", &json!({"flow_sid": made["flow_sid"]}));
        let flow = client.get(&path).unwrap();
        assert_eq!(
            (&flow["status"], &flow["version"]),
            (&json!("published"), &json!(version))
        );
    }
    let response = client.send("POST", &format!("{path}/Executions"), &PLAIN);
    let execution = text(&json_of(&response)["url"]);
    assert!(client.get(&execution).is_some());
    assert!(client.send("DELETE", &path, &[]).is_success());
    for gone in [&path, &execution, &format!("{path}/Executions")] {
        assert!(client.get(gone).is_none(), "{gone}");
    }
    assert_eq!(
        client.get("/flow/v1/Flows").unwrap()["flows"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(!client.send("DELETE", &path, &[]).is_success());
}

/// One action of a client.
enum Action {
    Ask(&'static str, String, Vec<(&'static str, String)>),
    Hook(&'static str, Value),
    /// Changes the credentials of what follows.
    Sign(Option<(&'static str, &'static str)>),
    /// Sends right credentials under another scheme from now on.
    SignAs(&'static str),
    /// Starts a subflow in the newest execution, and reads its steps.
    Subflow,
    /// Reads something below the newest execution.
    AskBelowNewest(String),
}

/// A scenario that covers every behavior once. The SIDs are those of this seed.
fn scenario() -> Vec<Action> {
    let mut client = Client::new(&[], &[]);
    let flows = client.listed("/flow/v1/Flows", "flows");
    let [first, second] = flows.as_slice() else {
        panic!("{flows:?}");
    };
    let at = |sid: &str| format!("/flow/v1/Flows/{sid}");
    let executions = at(first) + "/Executions";
    let pair = |name, value: &str| (name, value.to_owned());
    let (to, from) = (pair("To", PLAIN[0].1), pair("From", PLAIN[1].1));
    let mut actions: Vec<Action> = [
        vec![to.clone(), from.clone()],
        vec![to.clone()],
        vec![from.clone()],
        vec![to.clone(), from.clone(), pair("Parameters", r#"{"a":"b"}"#)],
        vec![to.clone(), from.clone(), pair("Parameters", "no JSON")],
        vec![to.clone(), from.clone(), pair("Parameters", "[1]")],
        vec![to.clone(), pair("From", &format!("MG{}", "0f".repeat(16)))],
    ]
    .into_iter()
    .map(|form| Action::Ask("POST", executions.clone(), form))
    .collect();
    // What has only just been created is listed or not.
    actions.insert(5, Action::Ask("GET", executions.clone(), Vec::new()));
    actions.push(Action::Ask(
        "POST",
        at(second) + "/Executions",
        vec![to, from],
    ));
    client.run(&actions);
    let execution = client.listed(&format!("{executions}?PageSize=1"), "executions")[0].clone();
    let steps = format!("{executions}/{execution}/Steps");
    let step = client.listed(&steps, "steps")[0].clone();
    let get = |target: String| Action::Ask("GET", target, Vec::new());
    actions.extend([
        get("/flow/v1/Flows".to_owned()),
        get("/flow/v1/Flows?PageSize=1".to_owned()),
        get("/flow/v1/Flows?PageSize=0".to_owned()),
        get("/flow/v1/Flows?PageSize=2000".to_owned()),
        get("/flow/v1/Flows?PageSize=2".to_owned()),
        get(at(first)),
        get(executions.clone()),
        get(format!("{executions}/{execution}")),
        get(steps.clone()),
        get(format!("{steps}/{step}")),
    ]);
    let page = client.get("/flow/v1/Flows?PageSize=1").unwrap();
    actions.push(get(
        text(&page["meta"]["next_page_url"]).replace("http://x", "")
    ));
    // Executions were created at 00:00, 00:01 and so on; each action takes a minute.
    for query in [
        "DateCreatedFrom=2026-01-01T00%3A03%3A00Z",
        "DateCreatedTo=2026-01-01T00%3A03%3A00Z",
        "DateCreatedFrom=2026-01-01T00%3A03%3A00Z&DateCreatedTo=2026-01-01T00%3A05%3A00Z",
        "DateCreatedFrom=2025-12-31T23%3A03%3A00-01%3A00",
    ] {
        actions.push(get(format!("{executions}?{query}")));
    }
    let ids = json!({"flow_sid": first, "execution_sid": execution});
    for hook in ["advance_step", "end_execution"] {
        actions.push(Action::Hook(hook, ids.clone()));
        actions.push(get(format!("{executions}/{execution}")));
        actions.push(get(format!("{executions}/{execution}")));
    }
    actions.push(get(steps.clone()));
    actions.push(Action::Hook("publish_flow", json!({"flow_sid": first})));
    actions.push(get(at(first)));
    actions.push(get("/flow/v1/Flows".to_owned()));
    actions.push(get(executions.clone()));
    actions.extend(strangers());
    actions.extend([
        get("/flow/v1/Flows?PageSize=1&Page=1&PageToken=PA1".to_owned()),
        get(steps.clone()),
        Action::Ask("DELETE", at(second), Vec::new()),
        Action::SignAs("Bearer"),
        get("/flow/v1/Flows".to_owned()),
        Action::Sign(Some((account::API_KEY, account::API_SECRET))),
    ]);
    actions.extend(further(&executions, [first, second], &execution, &step));
    actions.push(Action::Ask("DELETE", at(first), Vec::new()));
    actions.extend([
        get("/flow/v1/Flows".to_owned()),
        get(at(first)),
        get(at(second)),
        get(at(second) + "/Executions"),
        get(format!("{executions}/{execution}")),
        Action::Ask(
            "POST",
            executions.clone(),
            with_parameters("+15552009999", "{}"),
        ),
    ]);
    actions
}

/// The list of flows with credentials of every kind, the last of them none.
fn strangers() -> Vec<Action> {
    let mut actions = Vec::new();
    for credentials in [
        Some((account::API_KEY, "wrong")),
        Some(("nobody", "wrong")),
        Some((account::SID, account::AUTH_TOKEN)),
        Some(("REFERENCE-API-KEY", account::API_SECRET)),
        Some((account::API_KEY, "reference-api")),
        Some((account::API_KEY, account::AUTH_TOKEN)),
        Some((account::API_KEY, "")),
        None,
    ] {
        actions.extend([
            Action::Sign(credentials),
            Action::Ask("GET", "/flow/v1/Flows".to_owned(), Vec::new()),
        ]);
    }
    actions
}

/// The form of an execution for a person with parameters.
fn with_parameters(to: &str, parameters: &str) -> Vec<(&'static str, String)> {
    vec![
        ("To", to.to_owned()),
        ("From", PLAIN[1].1.to_owned()),
        ("Parameters", parameters.to_owned()),
    ]
}

/// Other scopes, more than a few, limits by one, a subflow.
fn further(
    executions: &str,
    [first, second]: [&String; 2],
    execution: &str,
    step: &str,
) -> Vec<Action> {
    let get = |target: String| Action::Ask("GET", target, Vec::new());
    let elsewhere = executions.replace(first, second);
    let mut actions = vec![
        get(format!("{elsewhere}/{execution}")),
        get(format!("{elsewhere}/{execution}/Steps")),
        get("/flow/v1/Flows?PageSize=1000".to_owned()),
        get("/flow/v1/Flows?PageSize=1001".to_owned()),
        get("/flow/v1/Flows?PageToken=nobodys".to_owned()),
    ];
    let rich = r#"{"a":" b ","e":"😀","h":"<b>","n":1.5,"t":true,"z":null,"o":{"p":[1]}}"#;
    for number in 0..56 {
        let form = with_parameters(&format!("+1555200{number:04}"), rich);
        actions.push(Action::Ask("POST", executions.to_owned(), form));
    }
    let others = with_parameters("+15552008888", r#"{"q":2}"#);
    actions.push(Action::Ask("POST", executions.to_owned(), others));
    let until = "DateCreatedTo=2026-01-01T00%3A03%3A00Z";
    for query in [
        "",
        "?PageSize=20",
        "?PageSize=20&Page=1&PageToken=PA30",
        "?PageSize=20&Page=2&PageToken=PA50",
        "?PageSize=50&Page=1&PageToken=PA30",
        &format!("?{until}&PageSize=3&Page=1&PageToken=PA100"),
    ] {
        actions.push(get(format!("{executions}{query}")));
    }
    let ids = json!({"flow_sid": first, "execution_sid": execution});
    actions.push(Action::Hook("start_subflow", ids));
    actions.push(Action::Subflow);
    // A step of the execution that has ended, under one that has not.
    actions.push(Action::AskBelowNewest(format!("/Steps/{step}")));
    actions
}

impl Client {
    /// The path of the flow's newest execution, and the arguments that name it in a hook.
    fn newest(&mut self) -> (String, Value) {
        let mut first = |target: &str, key: &str| {
            let response = self.send("GET", target, &[]);
            let page: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            let sid = page[key][0]["sid"].as_str();
            sid.unwrap_or("none").to_owned()
        };
        let flow = first("/flow/v1/Flows", "flows");
        let executions = format!("/flow/v1/Flows/{flow}/Executions");
        let sid = first(&format!("{executions}?PageSize=1"), "executions");
        let ids = json!({"flow_sid": flow, "execution_sid": sid});
        (format!("{executions}/{sid}"), ids)
    }

    /// Runs the actions a minute apart, except executions of one pair, and returns the responses.
    fn run(&mut self, actions: &[Action]) -> String {
        let mut seen = String::new();
        for (index, action) in actions.iter().enumerate() {
            let response = match action {
                Action::Ask(method, target, form) => {
                    let form: Vec<_> = form.iter().map(|(n, v)| (*n, v.as_str())).collect();
                    self.send(method, target, &form)
                }
                Action::Hook(name, args) => {
                    let mut request = Request::new("POST", format!("/_control/{name}"));
                    request.body = args.to_string().into_bytes();
                    self.reference.handle(&request, self.now)
                }
                Action::Sign(credentials) => {
                    self.credentials = *credentials;
                    self.scheme = "Basic";
                    continue;
                }
                Action::SignAs(scheme) => {
                    self.credentials = Some((account::API_KEY, account::API_SECRET));
                    self.scheme = scheme;
                    continue;
                }
                Action::Subflow => {
                    let (path, ids) = self.newest();
                    let mut request = Request::new("POST", "/_control/start_subflow");
                    request.body = ids.to_string().into_bytes();
                    self.reference.handle(&request, self.now);
                    self.send("GET", &format!("{path}/Steps"), &[])
                }
                Action::AskBelowNewest(below) => {
                    let (path, _) = self.newest();
                    self.send("GET", &format!("{path}{below}"), &[])
                }
            };
            let body = String::from_utf8_lossy(&response.body).into_owned();
            let kind = response
                .headers
                .get("Content-Type")
                .unwrap_or_default()
                .to_owned();
            let fields = response.headers.len();
            writeln!(seen, "{index} {} {kind} {fields} {body}", response.status).unwrap();
            // The last two executions of the first flow share a second.
            if !(3..=5).contains(&index) {
                self.now += Duration::from_secs(60);
            }
        }
        seen
    }
}

/// That each fault shows the self-test proves: a rule must notice it. Of a variant nothing is noticed.
#[test]
fn every_variant_of_this_service_changes_what_a_client_sees() {
    let scenario = scenario();
    let plain = Client::new(&[], &[]).run(&scenario);
    assert_eq!(
        plain,
        Client::new(&[], &[]).run(&scenario),
        "the same seed gives the same bytes"
    );
    let others = ["chat/", "media/", "auth/", "events/"];
    let silent: Vec<&str> = Variant::ALL
        .iter()
        .filter(|variant| others.iter().all(|other| !variant.id().starts_with(other)))
        .filter(|variant| Client::new(&[], &[**variant]).run(&scenario) == plain)
        .map(|variant| variant.id())
        .collect();
    assert_eq!(silent, [""; 0], "these change nothing");
}
