//! Unattended runs: targets that limit, refuse or serve other runs as well, and failing hooks.

use crate::hostile::pages::{flows, ok};
use crate::hostile::target::{Target, keep};
use crate::program::{Folder, Served, ended, one_in};
use conformant_record::{RunRecord, Verdict};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn a_target_that_limits_is_judged_completely_only_later() {
    let page = || keep(flows());
    let busy = "HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    let target = Target::answering(move |asked| match asked.number % 3 {
        0 => page(),
        _ => keep(busy),
    });
    let folder = Folder::new();
    let flow = format!("flow={}/flow", target.origin());
    let line = format!("run --target {flow} --filter flow/read-flows/happy --report json=run.json");
    let (out, err) = folder.run(0, &line);
    let record = folder.json::<RunRecord>("run.json");
    assert_eq!(record.scenarios[0].verdict, Verdict::Pass, "{out}");
    assert_eq!(err.matches("has a rate limit").count(), 1, "{err}");
}

#[test]
fn wrong_credentials_stop_the_run_soon() {
    let refusal = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
    let target = Target::answering(move |_| keep(refusal));
    let folder = Folder::new();
    let flow = format!("flow={}/flow", target.origin());
    let line = format!("run --target {flow} --service flow --report json=run.json");
    let mut command = folder.command(&line);
    command.env("CONFORMANT_FLOW_USERNAME", "somebody");
    command.env("CONFORMANT_FLOW_PASSWORD", "not-the-password");
    let (code, _, err) = ended(&mut command);
    assert_eq!(code, 3, "{err}");
    assert_eq!(
        err.matches("answers nothing but 401 and 403").count(),
        1,
        "{err}"
    );
    assert!(
        target.asked().len() < 60,
        "{} requests",
        target.asked().len()
    );
    let record = folder.json::<RunRecord>("run.json");
    assert!(!record.complete);
    assert_eq!(record.findings, [], "our mistake is not a finding");
}

#[test]
fn a_run_that_its_time_limit_ends_names_the_limit() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let options = format!("--target flow={0}/flow --hooks {0}/_control", served.url);
    let line = format!("run {options} --global-timeout 1s --report json=run.json");
    let (out, err) = folder.run(3, &line);
    let why = folder.json::<RunRecord>("run.json").ended_early;
    let why = why.expect("the run is cut");
    assert!(
        why.starts_with("time limit limits.run (1s) reached; "),
        "{why}"
    );
    assert!(err.contains(&format!("error: {why}")), "{err}");
    assert!(!out.contains("next: conformant doctor"), "{out}");
}

#[test]
fn one_rejected_request_without_credentials_is_no_finding() {
    let refusal = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
    let target = Target::answering(move |_| keep(refusal));
    let folder = Folder::new();
    let flow = format!("flow={}/flow", target.origin());
    let only = "--filter flow/read-flows/happy --report json=run.json";
    let (_, err) = folder.run(3, &format!("run --target {flow} {only}"));
    assert!(err.contains("because none are configured"), "{err}");
    assert_eq!(folder.json::<RunRecord>("run.json").findings, []);
}

/// One 403 may concern one operation only; the probe shows that all are rejected.
#[test]
fn a_single_scenario_that_is_rejected_shows_wrong_credentials() {
    let refusal = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
    let target = Target::answering(move |_| keep(refusal));
    for scenario in ["read-flows/happy", "fetch-flow/credentials-none"] {
        let folder = Folder::new();
        let flow = format!("flow={}/flow", target.origin());
        let line = format!("run --target {flow} --filter flow/{scenario} --report json=run.json");
        let mut command = folder.command(&line);
        command.env("CONFORMANT_FLOW_USERNAME", "name");
        command.env("CONFORMANT_FLOW_PASSWORD", "not-the-password");
        let (code, out, err) = ended(&mut command);
        assert_eq!(code, 3, "{out}{err}");
        let expected =
            "error: flow answers nothing but 401 and 403 to the credentials that are configured";
        assert!(err.contains(expected), "{err}");
        assert_eq!(folder.json::<RunRecord>("run.json").findings, []);
    }
}

/// Without their hooks, these scenarios end before their first request.
#[test]
fn a_selection_that_sends_no_request_still_tries_the_target() {
    let refusal = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
    let empty = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n";
    for (answer, says) in [
        (Some(refusal), "error: flow answers nothing but 401 and 403"),
        (Some(empty), "answers every request with status 503"),
        (
            None,
            "error: flow cannot be reached at http://127.0.0.1:9/flow",
        ),
    ] {
        let target = answer.map(|answer| Target::answering(move |_| keep(answer)));
        let nobody = "http://127.0.0.1:9".to_owned();
        let origin = target.as_ref().map_or(nobody, Target::origin);
        let folder = Folder::new();
        let line = format!("run --target flow={origin}/flow --filter flow/delete-flow/gone");
        let mut command = folder.command(&format!("{line} --report json=run.json"));
        command.env("CONFORMANT_FLOW_USERNAME", "name");
        command.env("CONFORMANT_FLOW_PASSWORD", "not-the-password");
        let (code, out, err) = ended(&mut command);
        assert_eq!(code, 3, "{out}{err}");
        assert!(err.contains(says), "{err}");
        let record = folder.json::<RunRecord>("run.json");
        assert!(record.errors[0].contains("flow"), "{:?}", record.errors);
    }
}

/// Nothing of such a target is judged, and every report says why.
#[test]
fn a_target_that_serves_no_request_fails_the_run_with_its_reason() {
    let redirect =
        "HTTP/1.1 302 Found\r\nLocation: https://login.example.com/\r\nContent-Length: 0\r\n\r\n";
    let limit = "HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
    let gateway = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n";
    let absent = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let tls = "\u{15}\u{3}\u{3}\0\u{2}\u{2}F";
    let rows = vec![
        (
            redirect,
            "chat,flow",
            "answered 302 with a redirect to https://login.example.com/; correct targets.chat.url",
        ),
        (
            limit,
            "chat,flow",
            "answers every request with status 429, so that nothing of it is judged; raise its rate limit",
        ),
        (
            gateway,
            "chat,flow",
            "answers every request with status 503, so that nothing of it is judged; start the service",
        ),
        (
            absent,
            "auth,flow",
            "answered 404 also without credentials; correct targets.auth.url",
        ),
        (
            tls,
            "chat,flow",
            "what answers does not speak HTTP: looks like TLS; the response starts with 15 03 03",
        ),
    ];
    for (answer, services, says) in one_in(3, rows) {
        let target = Target::answering(move |_| keep(answer));
        let folder = Folder::new();
        let mut line = "run --filter */happy --prove off".to_owned();
        for service in services.split(',') {
            line += &format!(" --target {service}={}/{service}", target.origin());
        }
        for format in [
            "json", "jsonl", "junit", "html", "markdown", "sarif", "ctrf", "github",
        ] {
            line += &format!(" --report {format}=run.{format}");
        }
        let (out, err) = folder.run(3, &format!("{line} --report dir=reports"));
        assert!(err.contains(says), "{err}");
        for service in services.split(',') {
            let named = |line: &str| line.starts_with("error: ") && line.contains(service);
            assert!(err.lines().any(named), "{service} is missing in {err}");
        }
        assert!(!out.contains("FAIL"), "{out}");
        let record = folder.json::<RunRecord>("run.json");
        assert_eq!(record.findings, []);
        let first = &record.errors[0];
        for (file, expected) in [
            ("run.jsonl", format!("\"errors\": [\"{first}")),
            ("run.junit", format!("<error message=\"{first}")),
            ("run.html", format!("Error: {first}").replace('/', "&#x2f;")),
            (
                "run.markdown",
                format!("- **error**: `{first}").replace('`', ""),
            ),
            ("run.sarif", format!("\"text\": \"{first}\"")),
            ("run.ctrf", format!("\"message\": \"{first}\"")),
            ("run.github", format!("::error title=target::{first}")),
            (
                "reports/README.md",
                format!("- **error**: `{first}").replace('`', ""),
            ),
        ] {
            let report = folder.read(file).replace('`', "");
            let expected = expected.replace('`', "");
            assert!(report.contains(&expected), "{file}: {expected}\n{report}");
        }
    }
}

/// A route to a target that closes every connection at its third request, and those of which this returns true at their
/// first one; returns how many it closed.
fn cutting_relay(target: String, is_cut_at_once: fn(usize) -> bool) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a bound socket"));
    let cut = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&cut);
    std::thread::spawn(move || {
        for (nth, client) in listener.incoming().map_while(Result::ok).enumerate() {
            let (target, cut) = (target.clone(), Arc::clone(&count));
            let requests = if is_cut_at_once(nth) { 0 } else { 2 };
            std::thread::spawn(move || relayed(client, &target, &cut, requests));
        }
    });
    (url, cut)
}

fn relayed(
    mut client: TcpStream,
    target: &str,
    cut: &AtomicUsize,
    requests: usize,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target)?;
    let (mut answers, mut back) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut request = [0; 16 * 1024];
    for _ in 0..requests {
        let length = client.read(&mut request)?;
        server.write_all(&request[..length])?;
    }
    if client.read(&mut request)? > 0 {
        cut.fetch_add(1, Ordering::Relaxed);
    }
    client.shutdown(Shutdown::Both)?;
    server.shutdown(Shutdown::Both)
}

#[test]
fn closed_connections_are_not_findings() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let address = served.url.trim_start_matches("http://");
    let (url, cut) = cutting_relay(address.to_owned(), |_| false);
    let options = format!("--target all={url} --hooks {}/_control", served.url);
    let line = format!("run {options} --filter chat/*/happy --jobs 1 --report json=run.json");
    let (out, _) = folder.run(0, &line);
    assert!(cut.load(Ordering::Relaxed) > 0, "no connection was cut");
    let record = folder.json::<RunRecord>("run.json");
    let verdicts = record.scenarios.iter().map(|s| s.verdict);
    assert!(verdicts.clone().count() > 10, "{out}");
    assert!(verdicts.clone().all(|v| v == Verdict::Pass), "{out}");
}

#[test]
fn requests_without_an_answer_are_the_stated_reason_of_the_exit_code() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let address = served.url.trim_start_matches("http://");
    let (url, _) = cutting_relay(address.to_owned(), |nth| nth > 2 && nth.is_multiple_of(3));
    let options = format!("--target all={url} --hooks {}/_control", served.url);
    let line = format!("run {options} --filter chat/*/happy --jobs 1 --prove off");
    let (out, err) = folder.run(3, &format!("{line} --report json=run.json"));
    let says = " got no answer that can be judged, the first in chat/";
    let error = err.lines().find(|line| line.contains(says));
    assert!(
        error.is_some_and(|line| line.starts_with("error: ")),
        "{out}{err}"
    );
    let record = folder.json::<RunRecord>("run.json");
    assert_eq!(record.findings, []);
    assert!(record.errors[0].contains(says), "{:?}", record.errors);
}

#[test]
fn a_hook_that_is_down_is_trouble_and_is_named() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let hooks = "hooks: {end_execution: {http: {url: 'http://127.0.0.1:9/end'}}}";
    folder.write("conformant.yaml", hooks);
    let options = served.options();
    let filter = "flow/executions/ended";
    let line = format!("run {options} --filter {filter}");
    let (out, err) = folder.run(3, &line);
    assert!(
        out.contains("hook end_execution failed: POST http://127.0.0.1:9/end"),
        "{out}{err}"
    );
}

/// A dead target cannot send the awaited callback; a live one without it has a defect.
#[test]
fn a_target_that_dies_during_a_wait_is_not_flagged() {
    for dies in [true, false] {
        let folder = Folder::new();
        let served = Served::start(&folder, &["--fault", "auth/failed-webhook-missing"]);
        let options = served.options();
        let living = Mutex::new(Some(served));
        // The last step before the wait is a user action.
        let scanned = Target::answering(move |_| {
            if dies {
                drop(living.lock().expect("no holder panics").take());
            }
            keep(ok(r#"{"registered": false}"#))
        });
        let scan = format!("{}/scan", scanned.origin());
        let hooks = format!("hooks: {{scan_registration: {{http: {{url: '{scan}'}}}}}}");
        folder.write(
            "conformant.yaml",
            format!("limits: {{callback: 200ms}}\n{hooks}"),
        );
        let selection = "--filter auth/registrations/failed-webhook --report json=run.json";
        let (code, out, err) = folder.output(&format!("run {options} {selection}"));
        // A live target gets a second chance to send the callback.
        let scans = if dies { 1 } else { 2 };
        assert_eq!(scanned.asked().len(), scans, "{out}{err}");
        let record = folder.json::<RunRecord>("run.json");
        let findings = record.findings.iter().map(|f| f.rule.as_str());
        let accused: Vec<&str> = findings.collect();
        let scenario = &record.scenarios[0];
        if dies {
            assert_eq!(accused, [""; 0], "{out}{err}");
            assert_eq!(
                (code, scenario.verdict),
                (3, Verdict::Inconclusive),
                "{out}{err}"
            );
            assert!(
                scenario.reason.contains("no callback within 200ms, and "),
                "{scenario:?}"
            );
        } else {
            assert_eq!(accused, ["auth/registration/failed-webhook"], "{out}{err}");
        }
    }
}

/// Four concurrent runs on one target, each with scenarios that move its clock and set its callback addresses, agree with
/// a single run.
#[test]
fn four_parts_at_once_are_one_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let options = served.options();
    let part = |part: &str| {
        let own = Folder::new();
        let filters = ["registrations", "tokens", "approval-requests"]
            .map(|topic| format!("--filter auth/{topic} "))
            .concat();
        let more = format!("{filters} --report json=run.json --prove off {part}");
        own.run(0, &format!("run {options} {more}"));
        own.json::<RunRecord>("run.json")
    };
    let part = &part;
    let parts = [1, 2, 3, 4].map(|number| format!("--partition slice:{number}/4"));
    let parts: Vec<RunRecord> = std::thread::scope(|scope| {
        let running = parts.map(|p| scope.spawn(move || part(&p)));
        running
            .map(|r| r.join().expect("each part is clean"))
            .into()
    });
    let merged = conformant_versions::merge(&parts).expect("they belong together");
    let whole = part("");
    // Where another run has just moved the clock, a rule about time may be inconclusive; other verdicts agree.
    let is_open = |verdict| matches!(verdict, Verdict::NotJudged | Verdict::Inconclusive);
    let both = merged.rules.iter().zip(&whole.rules);
    let differing: Vec<_> = both
        .filter(|(part, whole)| part.verdict != whole.verdict)
        .collect();
    for (part, whole) in &differing {
        assert_eq!(part.id, whole.id);
        assert!(
            is_open(part.verdict) || is_open(whole.verdict),
            "{part:?} {whole:?}"
        );
    }
    assert!(differing.len() <= 2, "{differing:?}");
}

#[test]
fn an_error_answer_brings_one_finding_of_its_operation() {
    for status in ["400 No", "500 Oh", "501 Oh"] {
        let body = r#"{"flows": [], "success": false}"#;
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let target = Target::answering(move |_| keep(&answer));
        let folder = Folder::new();
        let flow = format!("flow={}/flow", target.origin());
        let selection = "--filter flow/read-flows/happy --report json=run.json";
        let mut command = folder.command(&format!("run --target {flow} {selection}"));
        command.envs([
            ("CONFORMANT_FLOW_USERNAME", "a"),
            ("CONFORMANT_FLOW_PASSWORD", "b"),
        ]);
        let output = ended(&mut command);
        let findings = folder.json::<RunRecord>("run.json").findings;
        let rules: Vec<&str> = findings.iter().map(|f| f.rule.as_str()).collect();
        assert_eq!(rules, ["flow/read-flows"], "{status}: {output:?}");
    }
}
