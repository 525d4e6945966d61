//! `conformant proxy` between `conformant run` and `conformant serve`: three processes.

use crate::hostile::command::{Running, conformant};
use crate::hostile::target::{Target, send};
use crate::program::{Folder, Served};
use base64::Engine as _;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

/// A fault that a single response shows.
const FAULT: &str = "flow/meta-page-size-wrong";
/// The scenarios that run through the proxy.
const FILTER: &str = "flow/read-*";

/// A proxy in front of the reference.
fn proxy(folder: &Path, upstream: &str) -> Served {
    let mut command = conformant(folder);
    command.args(["proxy", "--upstream", &format!("all={upstream}")]);
    // A run also sends invalid requests.
    Served::listen(command.args(["--report", "json=proxy.json", "--judge", "responses"]))
}

/// Ends a proxy; returns exit code and record.
fn end(proxy: Served, folder: &Path) -> (Option<i32>, Value) {
    let exit = proxy.end();
    let json = std::fs::read(folder.join("proxy.json")).expect("a report");
    (exit, serde_json::from_slice(&json).expect("JSON"))
}

/// Exit code and broken rules.
type Found = (Option<i32>, Vec<String>);

/// Rules and exit codes of a run through a proxy, and of the proxy.
fn through(faults: &[&str]) -> (Found, Found) {
    let folder = Folder::with_limits();
    let served = Served::start(&folder, faults);
    let proxy = proxy(&folder, &served.url);
    let mut command = conformant(&folder);
    command.args(["run", "--filter", FILTER, "--prove", "off"]);
    command.args(["--target", &format!("all={}", proxy.url)]);
    command.args(["--hooks", &format!("{}/_control", served.url)]);
    command.args(["--report", "json=run.json"]);
    let ended = Running::start(&mut command).end();
    let run: Value = folder.json("run.json");
    let (exit, record) = end(proxy, &folder);
    assert_eq!(record["complete"], true);
    assert!(
        record["summary"]["exchanges"].as_u64() > Some(20),
        "{record}"
    );
    ((ended.exit, rules(&run)), (exit, rules(&record)))
}

fn rules(record: &Value) -> Vec<String> {
    let findings = record["findings"].as_array().expect("a list");
    let mut rules: Vec<String> = findings
        .iter()
        .filter_map(|f| Some(f["rule"].as_str()?.to_owned()))
        .collect();
    rules.sort();
    rules.dedup();
    rules
}

#[test]
fn clean_traffic_has_no_findings() {
    let (run, proxy) = through(&[]);
    assert_eq!(proxy, (Some(0), Vec::new()));
    // Links in responses bypass the proxy, which the run detects: it does not follow pages to another origin.
    assert!(run.1.iter().all(|rule| rule.ends_with("/walk")), "{run:?}");
}

#[test]
fn a_defect_is_seen_on_the_way_by_the_rule_that_a_run_finds_it_by() {
    let (run, proxy) = through(&["--fault", FAULT]);
    assert_eq!(proxy.0, Some(1), "{proxy:?}");
    let named = "flow/read-flows/page-size".to_owned();
    assert!(proxy.1.contains(&named), "{proxy:?}");
    assert!(
        proxy.1.iter().all(|rule| rule.ends_with("/page-size")),
        "{proxy:?}"
    );
    for rule in &proxy.1 {
        assert!(run.1.contains(rule), "{rule}: {run:?}");
    }
}

#[test]
fn an_unreachable_target_is_an_infrastructure_error() {
    let folder = Folder::with_limits();
    let proxy = proxy(&folder, "http://127.0.0.1:9");
    let mut command = conformant(&folder);
    command.args(["run", "--filter", "flow/read-flows/happy"]);
    command.args(["--target", &format!("all={}", proxy.url)]);
    Running::start(&mut command).end();
    let (exit, record) = end(proxy, &folder);
    assert_eq!(exit, Some(3));
    assert_eq!(rules(&record), Vec::<String>::new());
}

/// Sends requests without a body through a proxy that ends after the last one; returns exit code, output, errors and record.
fn proxied(upstream: &str, requests: &[(&str, &str)]) -> (Option<i32>, String, String, Value) {
    proxied_with(upstream, requests, "both")
}

/// As `proxied`, judging this side.
fn proxied_with(
    upstream: &str,
    requests: &[(&str, &str)],
    side: &str,
) -> (Option<i32>, String, String, Value) {
    let folder = Folder::with_limits();
    let mut command = conformant(&folder);
    command.args(["proxy", "--upstream", upstream, "--for", "20s"]);
    command.args(["--judge", side]);
    // Those that the proxy answers itself do not count.
    let forwarded = requests
        .iter()
        .filter(|(path, _)| path.starts_with("/flow"))
        .count();
    command.args(["--max-exchanges", &forwarded.to_string()]);
    command.args(["--report", "json=proxy.json"]);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("it says where it is");
    let address = line
        .trim()
        .trim_start_matches("listening http://")
        .to_owned();
    for (path, headers) in requests {
        let mut stream = std::net::TcpStream::connect(&address).expect("the proxy listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it can be sent");
        std::io::Read::read_to_string(&mut stream, &mut line).expect("it is answered");
    }
    std::io::Read::read_to_string(&mut lines, &mut line).expect("it ends");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), line, err, folder.json("proxy.json"))
}

#[test]
fn an_upstream_that_is_never_reached_is_the_last_line_also_after_findings_about_the_client() {
    // The client sends no credentials, which is a finding of its own.
    let (exit, out, err, record) = proxied("flow=http://127.0.0.1:9", &[("/flow/v1/Flows", "")]);
    assert_eq!(exit, Some(3), "{err}");
    let last = err.lines().last().unwrap_or_default();
    let expected = "error: http://127.0.0.1:9 cannot be reached: refused: ";
    assert!(last.starts_with(expected), "{err}");
    assert!(!out.contains("not conformant"), "{out}");
    let expected = "not concluded (exit 3): nothing is judged of the service; clients break 1 rule";
    assert!(out.contains(expected), "{out}");
    assert_eq!(record["exit"], 3);
    let finding = &record["findings"][0]["rule"];
    assert_eq!(finding, "flow/read-flows/request/credentials");
    let cause = record["errors"][0].as_str().unwrap_or_default();
    assert!(cause.contains("cannot be reached"), "{record}");
}

#[test]
fn mistakes_of_clients_are_not_those_of_the_service() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let upstream = format!("flow={}/flow", served.url);
    // Without credentials, everything is answered with 401.
    let (exit, out, err, _) = proxied(&upstream, &[("/flow/v1/Flows", "")]);
    let last = err.lines().last().unwrap_or_default();
    assert_eq!(exit, Some(3), "{out}{err}");
    assert!(last.contains(" answered nothing but 401 and 403"), "{err}");
    assert!(!out.contains("not conformant"), "{out}");
    let basic =
        base64::engine::general_purpose::STANDARD.encode("reference-api-key:reference-api-secret");
    let headers = format!("Authorization: Basic {basic}\r\n");
    let requests = [
        ("/v1/Flows", headers.as_str()),
        ("/flow/v1/Flows?page_size=5", headers.as_str()),
    ];
    let (exit, out, err, record) = proxied(&upstream, &requests);
    assert_eq!(exit, Some(1), "{out}{err}");
    let rules = rules(&record);
    assert_eq!(rules, ["flow/read-flows/request/page-size"], "{out}");
    let expected = "mistakes of clients: 1 rule broken; the service keeps every rule judged (";
    assert!(out.contains(expected), "{out}");
    assert!(!out.contains("not conformant"), "{out}");
    // The request that the proxy answered itself is counted, and its answer names the cause.
    let why = "the first path segment must be a service (flow)";
    assert!(out.contains(&format!("\r\n\r\n{why}\n")), "{out}");
    let expected =
        format!("1 request answered by the proxy with 404, such as GET /v1/Flows: {why}");
    assert!(err.contains(&expected), "{err}");
}

#[test]
fn an_upstream_that_answers_as_no_service_does_is_not_passed_by_its_clients() {
    let basic =
        base64::engine::general_purpose::STANDARD.encode("reference-api-key:reference-api-secret");
    let headers = format!("Authorization: Basic {basic}\r\n");
    let requests = [("/flow/v1/Flows", headers.as_str())];
    let page = "Content-Type: text/html\r\nContent-Length: 5\r\n\r\n<p>hi";
    for (status, line) in [
        ("500", "500 Internal Server Error"),
        ("302", "302 Found\r\nLocation: /login"),
        ("200", "200 OK"),
    ] {
        let answer = format!("HTTP/1.1 {line}\r\n{page}");
        let target = Target::answering(move |_| send(&answer));
        let upstream = format!("flow={}/flow", target.origin());
        let (exit, out, err, _) = proxied(&upstream, &requests);
        let last = err.lines().last().unwrap_or_default();
        assert_eq!(exit, Some(3), "{status}: {out}{err}");
        assert!(last.contains(&format!(": status {status} (1);")), "{err}");
        assert!(!out.contains("passed"), "{out}");
        let (exit, out, err, _) = proxied_with(&upstream, &requests, "requests");
        assert_eq!(exit, Some(0), "{status}: {out}{err}");
    }
    // An answer of another service shows no wrong address, but says nothing of this one either.
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let upstream = format!("flow={}/flwo", served.url);
    let (exit, out, err, _) = proxied(&upstream, &requests);
    assert_eq!(exit, Some(4), "{out}{err}");
    let expected = "nothing judged of the service (exit 4): requests of clients keep ";
    assert!(out.contains(expected), "{out}");
}
