//! A recording has the same findings as the live exchanges; invalid entries are counted and named.

use super::entry::{PostData, span};
use crate::traffic::apart;
use crate::{Checker, Counts, Kind, Surroundings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Headers, Request};
use conformant_engine::plan;
use conformant_engine::request::authorize;
use conformant_engine::sessions::Offline;
use conformant_engine::{Planned, ScenarioRun, Sessions, Target, run_scenario};
use conformant_judge::evidence::{Evidence, Exchange, Expectation, FollowedLink, Outcome};
use conformant_judge::judge;
use conformant_judge::load::{shared as rulebook, shared_schemas};
use conformant_record::{Finding, RunRecord, Subject, Verdict};
use conformant_reference::Fault;
use conformant_reference::SERVICES;
use conformant_rulebook::scenario::Credentials;
use serde_json::Value;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// The exchanges of a scenario, as another tool records them.
fn recorded(exchanges: &[Exchange]) -> Vec<Value> {
    let fields = |headers: &Headers| -> Vec<Value> {
        headers
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    };
    let record = |exchange: &Exchange| {
        let Outcome::Answered { response, .. } = &exchange.outcome else {
            panic!("no response in process")
        };
        let mut request = json!({
            "method": exchange.request.method, "url": format!("{}{}", exchange.base, exchange.request.target),
            "httpVersion": "HTTP/1.1", "headers": fields(&exchange.request.headers), "cookies": [],
            "queryString": [], "headersSize": -1, "bodySize": exchange.request.body.len(),
        });
        if !exchange.request.body.is_empty() {
            request["postData"] =
                json!({"mimeType": "", "text": String::from_utf8_lossy(&exchange.request.body)});
        }
        json!({
            "startedDateTime": exchange.span.began.to_string(), "time": 0, "cache": {}, "timings": {},
            "request": request,
            "response": {
                "status": response.status, "statusText": "", "headers": fields(&response.headers),
                "content": {"size": response.body.len(), "encoding": "base64", "text": STANDARD.encode(&response.body)},
            },
        })
    };
    exchanges.iter().map(record).collect()
}

fn har(entries: &[Value]) -> String {
    json!({"log": {"version": "1.2", "creator": {"name": "x"}, "pages": [{"id": "p"}], "entries": entries}}).to_string()
}

fn check(
    text: &str,
    targets: &[(&str, &str)],
) -> (Checker<'static>, Result<(), crate::CheckError>) {
    let targets = targets
        .iter()
        .map(|(service, url)| ((*service).to_owned(), (*url).to_owned()));
    let surroundings = Surroundings {
        targets: targets.collect(),
        second_accounts: BTreeMap::from([("flow".to_owned(), second_account())]),
        ..Surroundings::default()
    };
    let mut checker = Checker::new(rulebook(), Kind::Har, surroundings);
    let result = checker.file("run.har", &mut text.as_bytes());
    (checker, result)
}

/// The result for a recording with these entries.
fn judged(entries: &[Value]) -> (RunRecord, Counts) {
    let (checker, result) = check(&har(entries), &[]);
    result.unwrap();
    checker.finish()
}

/// The rules that a recording with these entries breaks.
fn broken_by(entries: &[Value]) -> BTreeSet<String> {
    let findings = judged(entries).0.findings.into_iter();
    findings.map(|finding| finding.rule).collect()
}

/// The header fields of the reference's second account.
fn second_account() -> Headers {
    let target = Target::of_reference("flow", "");
    let mut request = Request::new("GET", "/");
    authorize(&target, Credentials::OtherAccount, &mut request).unwrap();
    request.headers
}

/// The part of a finding that is the same in a recording and live.
fn essence(
    findings: &[Finding],
    numbers: Option<&[usize]>,
) -> BTreeSet<(String, usize, String, String)> {
    findings
        .iter()
        .map(|f| {
            let number = numbers.map_or(f.exchange, |numbers| numbers[f.exchange - 1]);
            (f.rule.clone(), number, f.pointer.clone(), f.kind.clone())
        })
        .collect()
}

/// The live findings, without those that need a scenario.
fn live(exchanges: Vec<Exchange>, configured: Value) -> Vec<Finding> {
    let exchanges = exchanges.into_iter().map(|e| Exchange {
        expectation: Expectation::Either,
        ..e
    });
    let evidence = Evidence {
        exchanges: exchanges.collect(),
        configured,
        ..Evidence::default()
    };
    judge(rulebook(), shared_schemas(), &evidence).findings
}

fn exchanges_of(scenario: &str, fault: Option<Fault>) -> (Vec<Exchange>, Value) {
    let targets: BTreeMap<String, Target> = SERVICES
        .iter()
        .map(|s| {
            (
                (*s).to_owned(),
                Target::of_reference(s, &format!("http://127.0.0.1:9/{s}")),
            )
        })
        .collect();
    let sessions = Offline::in_process(0, fault.into_iter().collect(), BTreeSet::new(), targets);
    let planned = planned()
        .iter()
        .find(|p| p.scenario.id == scenario)
        .unwrap();
    let session = sessions.open(planned).unwrap();
    let calm = AtomicBool::new(false);
    let scenario_run = ScenarioRun::new(rulebook(), shared_schemas(), planned, (0, 0));
    let outcome = run_scenario(scenario_run, session.as_ref(), &calm);
    (outcome.evidence.exchanges, outcome.evidence.configured)
}

#[test]
fn a_service_at_several_origins_is_several_services() {
    let (first, _) = exchanges_of("flow/executions/ended", None);
    let elsewhere = first.iter().cloned().map(|exchange| Exchange {
        base: exchange.base.replacen("://", "://other.", 1),
        ..exchange
    });
    let both = first.iter().cloned().zip(elsewhere);
    let mut mixed: Vec<Exchange> = both.flat_map(|(one, other)| [one, other]).collect();
    for follower in [2, 3] {
        mixed[follower].via = Some(FollowedLink {
            exchange: 0,
            pointer: "/url".to_owned(),
        });
    }
    let parts = apart(mixed);
    let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
    assert_eq!(sizes, [first.len(), first.len()]);
    assert!(
        parts[0][1]
            .via
            .as_ref()
            .is_some_and(|via| via.exchange == 0)
    );
    assert!(parts[1][1].via.is_none(), "shown by another service");
    assert_eq!(apart(first).len(), 1);
}

/// The plan, computed once for all tests.
fn planned() -> &'static [Planned<'static>] {
    static PLANNED: OnceLock<Vec<Planned<'static>>> = OnceLock::new();
    PLANNED.get_or_init(|| plan::all(rulebook()))
}

/// The campaign `samples` runs all scenarios, other runs every so many.
const EVERY_SCENARIO: usize = 12;

#[expect(
    clippy::disallowed_methods,
    reason = "a setting of the tests, not of the program"
)]
fn is_campaign() -> bool {
    std::env::var_os("CAMPAIGN").is_some_and(|name| name == "samples")
}

#[test]
fn a_recording_brings_the_same_findings_as_the_exchanges_live() {
    let mut found = 0;
    let mut seen = BTreeSet::new();
    for fault in Fault::ALL {
        let service = fault.id().split('/').next().unwrap_or_default();
        let scenario = match service {
            "chat" => "chat/create-channel/happy",
            "flow" => "flow/create-execution/happy",
            _ => continue,
        };
        let (exchanges, configured) = exchanges_of(scenario, Some(*fault));
        let text = har(&recorded(&exchanges));
        // Most faults do not show in these scenarios.
        if !seen.insert(text.clone()) {
            continue;
        }
        let (checker, result) = check(&text, &[]);
        result.unwrap();
        let (record, counts) = checker.finish();
        assert_eq!(
            (counts.documents, counts.foreign),
            (exchanges.len(), 0),
            "{}",
            fault.id()
        );
        let live = live(exchanges, configured);
        assert_eq!(
            essence(&record.findings, None),
            essence(&live, None),
            "{}",
            fault.id()
        );
        found += live.len();
    }
    assert!(found > 5, "the faults show in {found} findings");
    assert!(seen.len() > 5, "{} different recordings", seen.len());
}

#[test]
fn a_valid_recording_without_user_actions_has_no_findings() {
    let every = if is_campaign() { 1 } else { EVERY_SCENARIO };
    let mut documents = 0;
    let mut found = BTreeSet::new();
    for planned in planned().iter().step_by(every) {
        let (exchanges, _) = exchanges_of(&planned.scenario.id, None);
        let is_race = exchanges.iter().any(|exchange| exchange.race.is_some());
        let entries = if is_race {
            recorded_race(&exchanges)
        } else {
            recorded(&exchanges)
        };
        let (record, counts) = judged(&entries);
        documents += counts.documents;
        // Findings about clients are right: many scenarios send invalid requests.
        let findings = record.findings.into_iter();
        let findings = findings.filter(|finding| finding.subject == Subject::Service);
        found
            .extend(findings.map(|f| format!("{}: {} {}", planned.scenario.id, f.rule, f.message)));
    }
    assert!(documents > 4_000 / every, "{documents} exchanges");
    assert!(found.is_empty(), "{} findings: {found:#?}", found.len());
}

#[test]
fn exchanges_without_times_are_not_ordered() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let first = span("2026-01-01T00:00:00Z", Some(1.5));
    assert_eq!(first.ended, at("2026-01-01T00:00:00.0015Z"));
    let second = span("2026-01-01T00:00:01Z", Some(0.0));
    assert!(first.is_before(&second) && !second.is_before(&first));
    for unknown in [
        span("", Some(1.0)),
        span("yesterday", None),
        span("2025-01-01T00:00:00Z", None),
        span("2025-01-01T00:00:00Z", Some(-1.0)),
        span("2025-01-01T00:00:00Z", Some(f64::NAN)),
    ] {
        assert!(!unknown.is_before(&first), "{unknown:?}");
    }
}

fn execution(change: impl FnOnce(&mut Value)) -> Value {
    let (exchanges, _) = exchanges_of("flow/fetch-execution/happy", None);
    let mut entry = recorded(&exchanges).pop().unwrap();
    change(&mut entry);
    entry
}

#[test]
fn a_recording_may_begin_with_a_byte_order_mark() {
    let (exchanges, _) = exchanges_of("flow/read-flows/happy", None);
    let (_, result) = check(&format!("\u{feff}{}", har(&recorded(&exchanges))), &[]);
    result.unwrap();
}

#[test]
fn entries_are_named_by_number_and_foreign_ones_passed_over() {
    let broken = |entry: &mut Value| {
        let bytes = STANDARD
            .decode(entry["response"]["content"]["text"].as_str().unwrap())
            .unwrap();
        let mut body: Value = serde_json::from_slice(&bytes).unwrap();
        body["status"] = json!("done");
        entry["response"]["content"] =
            json!({"size": 1, "mimeType": "application/json", "text": body.to_string()});
    };
    let foreign = json!({
        "request": {"method": "GET", "url": "https://cdn.example/v2/US0123456789/logo.png?a=1", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"size": 3, "text": "png"}},
    });
    let text = har(&[foreign, execution(|_| {}), execution(broken)]);
    for targets in [&[][..], &[("flow", "http://reference.invalid/flow/")][..]] {
        let (checker, result) = check(&text, targets);
        result.unwrap();
        let note = &checker.notes()[0];
        let expected = "(responses may link to it): GET /v2/…/logo.png (1)";
        assert!(note.ends_with(expected), "{note}");
        let (record, counts) = checker.finish();
        assert_eq!(
            (counts.documents, counts.foreign, counts.skipped),
            (2, 1, 0)
        );
        let found: Vec<_> = record
            .findings
            .iter()
            .map(|f| (f.rule.as_str(), f.exchange, f.step))
            .collect();
        assert_eq!(found, [("flow/execution/status", 3, 3)]);
        assert!(
            record.findings[0]
                .reproduce
                .contains("http://reference.invalid/flow/v1/"),
            "{}",
            record.findings[0].reproduce
        );
    }
    let (checker, _) = check(&text, &[("flow", "http://other.invalid/flow")]);
    assert_eq!(checker.finish().1.foreign, 3);
}

#[test]
fn a_success_with_another_document_decides_nothing() {
    for text in ["{}", "oops", ""] {
        let other = execution(|e| {
            e["response"]["content"] =
                json!({"size": text.len(), "mimeType": "application/json", "text": text});
        });
        let (record, _) = judged(&[other]);
        assert_eq!(record.findings.len(), 0, "{text}");
        let rules = record.rules.iter();
        let undecided: Vec<&str> = rules
            .filter(|rule| rule.verdict == Verdict::Inconclusive)
            .map(|rule| rule.id.as_str())
            .collect();
        assert_eq!(undecided, ["flow/fetch-execution"], "{text}");
    }
}

#[test]
fn missing_parts_of_a_recording_are_not_findings() {
    let unrecorded = execution(|e| e["response"]["content"] = json!({"size": 99}));
    let blocked = execution(|e| e["response"]["status"] = json!(0));
    let refused = execution(|e| {
        e["response"] = json!({"status": 404, "content": {"size": 0, "text": ""}});
    });
    let (record, counts) = judged(&[unrecorded, blocked, refused]);
    assert_eq!((record.findings.len(), counts.documents), (0, 3));
}

#[test]
fn entries_that_are_none_are_counted_and_the_others_judged() {
    let wrong = [
        json!(1),
        json!({}),
        execution(|e| e["request"]["url"] = json!("no address")),
        execution(|e| e["response"]["content"]["text"] = json!("%%%")),
        execution(|e| e["response"]["content"]["encoding"] = json!("rot13")),
        execution(|e| e["request"]["headers"] = json!({"a": "b"})),
        execution(|_| {}),
    ];
    let (checker, result) = check(&har(&wrong), &[]);
    result.unwrap();
    assert_eq!(checker.notes().len(), 6);
    let (_, counts) = checker.finish();
    assert_eq!((counts.skipped, counts.documents), (6, 1));
}

#[test]
fn a_file_other_than_har_is_an_error() {
    for text in [
        "",
        "[]",
        "{}",
        "{\"log\": 1}",
        "{\"log\": {}}",
        "{\"log\": {\"entries\": [1,",
        "{\"log\": {\"entries\": []}} x",
    ] {
        assert!(check(text, &[]).1.is_err(), "{text}");
    }
    assert!(check("{\"log\": {\"entries\": []}}", &[]).1.is_ok());
}

#[test]
fn an_upload_is_read_from_its_parameters() {
    let data = json!({
        "mimeType": "multipart/form-data; boundary=gone",
        "params": [{"name": "media", "fileName": "dot.png", "contentType": "image/png"}],
    });
    let data: PostData = serde_json::from_value(data).unwrap();
    let (media_type, body) = data.body().unwrap();
    assert!(
        media_type
            .unwrap()
            .starts_with("multipart/form-data; boundary=part-")
    );
    assert!(
        String::from_utf8(body)
            .unwrap()
            .contains("filename=\"dot.png\"")
    );
}

#[test]
fn a_huge_entry_is_refused_without_being_held() {
    let start: &[u8] = b"{\"log\": {\"entries\": [\"";
    let mut endless = start.chain(io::repeat(b'x'));
    let mut checker = Checker::new(rulebook(), Kind::Har, Surroundings::default());
    let error = checker
        .file("run.har", &mut endless)
        .unwrap_err()
        .to_string();
    assert!(error.contains("entry 1"), "{error}");
}

/// The exchanges of a race as another tool records them: one second apart, those of the race at the same time.
fn recorded_race(exchanges: &[Exchange]) -> Vec<Value> {
    let mut entries = recorded(exchanges);
    let mut second = 0;
    for (entry, pair) in entries.iter_mut().zip(1..) {
        let (own, next) = (
            exchanges[pair - 1].race,
            exchanges.get(pair).map(|e| e.race),
        );
        let started = clock::from_unix_ms(1_800_000_000_000 + second * 1000);
        entry["startedDateTime"] = json!(started.to_string());
        entry["time"] = json!(if own.is_some() { 500 } else { 20 });
        if own.is_none() || next != Some(own) {
            second += 1;
        }
    }
    entries
}

#[test]
fn entries_that_overlap_are_judged_as_requests_at_the_same_time() {
    let (exchanges, _) = exchanges_of("chat/create-message/race-creations", None);
    let raced: Vec<usize> = (0..exchanges.len())
        .filter(|&index| exchanges[index].race.is_some())
        .collect();
    let entries = recorded_race(&exchanges);
    assert_eq!(broken_by(&entries), BTreeSet::new());
    // The answers came in another order.
    let mut turned = entries.clone();
    turned.swap(raced[0], raced[1]);
    assert_eq!(broken_by(&turned), BTreeSet::new());
    // Two messages with one number are wrong in any order.
    let number = |entry: &Value| {
        let text = entry["response"]["content"]["text"].as_str().unwrap();
        let body = STANDARD.decode(text).unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let mut same = entries.clone();
    let mut second = number(&same[raced[1]]);
    second["index"] = number(&same[raced[0]])["index"].clone();
    same[raced[1]]["response"]["content"]["text"] = json!(STANDARD.encode(second.to_string()));
    assert_eq!(
        broken_by(&same),
        BTreeSet::from(["chat/messages/index-increases".to_owned()])
    );
}

#[test]
fn requests_of_a_second_account_are_not_those_of_the_first() {
    for scenario in [
        "chat/fetch-binding/other-account",
        "chat/fetch-user-binding/other-account",
        "flow/fetch-step/other-account",
    ] {
        let (exchanges, _) = exchanges_of(scenario, None);
        let mut entries = recorded(&exchanges);
        assert_eq!(broken_by(&entries), BTreeSet::new(), "{scenario}");
        // With one account, a resource that is shown is not found at its own address.
        for entry in &mut entries {
            entry["request"]["headers"] = json!([]);
        }
        assert!(!broken_by(&entries).is_empty(), "{scenario}");
    }
}

#[test]
fn what_a_second_account_is_shown_is_judged_in_a_recording_too() {
    let fault = Some(Fault::FlowOtherAccountFetchesExecution);
    let scenario = "flow/fetch-execution/other-account";
    for (fault, expected) in [(None, None), (fault, Some("flow/accounts/not-shown"))] {
        let (exchanges, _) = exchanges_of(scenario, fault);
        let expected = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(broken_by(&recorded(&exchanges)), expected);
    }
}
