//! Setting up a target: `init`, `doctor`, `baseline`, and the preview of a run.

use crate::program::{Folder, Served, ended, run};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

#[test]
fn init_writes_what_a_run_can_read_and_never_writes_over_it() {
    let folder = Folder::new();
    let init = "init --target flow=http://127.0.0.1:9/flow --ci gitlab";
    folder.run(0, init);
    let written = folder.read("conformant.yaml");
    assert!(written.contains("did not answer: refused"), "{written}");
    assert!(folder.read(".gitlab-ci.yml").contains("conformant run"));
    // Editors use the schema file next to the configuration.
    assert!(written.starts_with("# yaml-language-server: $schema=conformant.schema.json\n"));
    let schema: Value = folder.json("conformant.schema.json");
    assert!(schema["properties"]["targets"].is_object(), "{schema}");

    let (out, _) = folder.run(0, "run --dry-run --filter flow/create-execution/happy");
    assert!(
        out.contains("POST http://127.0.0.1:9/flow/v1/Flows/"),
        "{out}"
    );

    let hook = ["sh", "hooks/hook.sh", "approve_request", "uuid=1"];
    let status = Command::new(hook[0])
        .args(&hook[1..])
        .current_dir(&*folder)
        .status();
    assert_eq!(status.expect("there is a shell").code(), Some(95));

    let (_, err) = folder.run(2, init);
    assert_eq!(folder.read("conformant.yaml"), written);
    assert!(err.contains("exists and is kept"), "{err}");
}

#[test]
fn doctor_reports_what_a_run_would_leave_out() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let options = served.options();
    let (out, _) = folder.run(0, &format!("doctor {options}"));
    for expected in [
        "ok   flow: reachable",
        "ok   chat: credentials: accepted: GET /chat/v2/Services answered 200, refused without them",
        "ok   hook advance_clock: it is ",
        "is reachable from here and from the target",
        "not judged: 4 scenarios, people.new_cellphone is not set (auth/devices/",
    ] {
        assert!(out.contains(expected), "{expected} is missing:\n{out}");
    }

    let flow = format!("flow={}/flow", served.url);
    let (out, _) = folder.run(3, &format!("doctor --target {flow} --format json"));
    let report: Value = serde_json::from_str(&out).expect("it is JSON");
    let checks = report["checks"].as_array().expect("a list");
    let credentials = checks
        .iter()
        .find(|check| check["what"] == "flow: credentials");
    assert_eq!(credentials.expect("it was looked at")["ok"], false, "{out}");
    let reasons: Vec<&str> = report["not_judged"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|left_out| left_out["why"].as_str())
        .collect();
    assert!(
        reasons.contains(&"hook create_flow is not configured"),
        "{reasons:?}"
    );
    let unset: Vec<&str> = report["not_set"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["key"].as_str())
        .collect();
    assert!(unset.contains(&"targets.flow.to"), "{unset:?}");
    assert!(
        out.contains("set targets.flow.to, which ") && out.contains("explain targets.flow.to`"),
        "{out}"
    );
    // Only what is configured is mentioned.
    assert!(
        !reasons
            .iter()
            .any(|why| why.contains("chat") || why.contains("approve_request")),
        "{reasons:?}"
    );

    folder.run(2, "doctor");
}

#[test]
fn a_wrong_account_token_and_a_flow_that_is_not_there_are_mistakes_of_the_configuration() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let configured = |more: &str| {
        folder.write(
            "conformant.yaml",
            format!(
                "targets:\n  flow: {{ url: '{}/flow', username: reference-api-key, password: '${{RIGHT}}', {more} }}\n",
                served.url
            ),
        );
    };
    let outcome = |line: &str| {
        let mut command = folder.command(line);
        let (code, out, err) = ended(
            command
                .env("RIGHT", "reference-api-secret")
                .env("TOKEN", "reference-auth-token")
                .env("WRONG", "other"),
        );
        let all = format!("{out}{err}");
        (code, all.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    configured("account_sid: AC0000000000000000000000000000c0ff, auth_token: '${WRONG}'");
    let (code, out) = outcome("doctor");
    assert!(
        code == 3 && out.contains("flow: account SID: refused: GET /flow/v1/Flows answered 401"),
        "{code} {out}"
    );
    let (_, out) = outcome("run --prove off --filter flow/read-flows/*");
    let cause = "(or targets.flow.account_sid and auth_token are not those of the account)";
    assert!(out.contains(cause), "{out}");

    configured(
        "flow_sid: FW00000000000000000000000000000001, to: '+12025550123', from: '+12025550100'",
    );
    let (code, out) = outcome("doctor");
    let says = "flow: flow_sid: FW00000000000000000000000000000001 is not there";
    assert!(code == 3 && out.contains(says), "{code} {out}");
    let (code, out) = outcome("run --prove off --filter flow/create-execution/happy");
    let says =
        "targets.flow.flow_sid is FW00000000000000000000000000000001, which flow does not have";
    assert!(code == 3 && out.contains(says), "{code} {out}");

    // A second account that is the first one with other credentials.
    let flow = created_flow(&served);
    configured(&format!(
        "flow_sid: {flow}, to: '+12025550123', from: '+12025550100'"
    ));
    let accounts =
        "accounts:\n  flow: { username: AC00000000000000000000000000c0ffee, password: '${TOKEN}' }\n".to_owned();
    folder.write(
        "conformant.yaml",
        folder.read("conformant.yaml") + &accounts,
    );
    let (_, out) = outcome("doctor");
    let says = format!("the second account sees {flow}, too: ");
    let todo = ". check accounts.flow: its credentials may belong to the account of targets.flow";
    assert!(out.contains(&says) && out.contains(todo), "{out}");
}

/// A flow that the hook of a served reference creates.
fn created_flow(served: &Served) -> String {
    let host = served.url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let body = "{\"friendly_name\":\"x\"}";
    let request = format!(
        "POST /_control/create_flow HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let sid = answer.split('"').find(|text| text.starts_with("FW"));
    sid.expect("the result names the flow").to_owned()
}

/// The account is configured, so that a run that cannot use it has not judged what was requested.
#[test]
fn a_rejected_second_account_ends_a_run_with_3_and_names_its_key() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let credentials = "username: reference-api-key, password: '${RIGHT}'";
    folder.write(
        "conformant.yaml",
        format!(
            "targets:\n  flow: {{ url: '{}/flow', {credentials} }}\naccounts:\n  flow: {{ username: other, password: '${{WRONG}}' }}\n",
            served.url
        ),
    );
    let run = |filters: &str| {
        let mut command = folder.command(&format!(
            "run --prove off --hooks {}/_control {filters}",
            served.url
        ));
        command.env("RIGHT", "reference-api-secret");
        let (code, out, err) = ended(command.env("WRONG", "wrong"));
        assert_eq!(code, 3, "{out}{err}");
        let expected =
            "error: flow rejects the credentials of the second account; correct accounts.flow ";
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with(expected), "{err}");
        out
    };
    let out = run("--filter flow/accounts/*");
    assert!(out.contains("(exit 3)"), "{out}");
    run("--filter flow/accounts/* --filter flow/read-flows/happy");
}

#[test]
fn doctor_starts_with_what_prevents_a_run_and_ends_with_what_to_do() {
    let folder = Folder::new();
    let (out, _) = folder.run(3, "doctor --target flow=http://127.0.0.1:9");
    let headline = "cannot judge: flow cannot be reached at http://127.0.0.1:9: refused: ";
    assert!(out.starts_with(headline), "{out}");
    let tasks = out.split_once("\nto do\n").expect("tasks are listed").1;
    let tasks: Vec<&str> = tasks.lines().collect();
    assert_eq!(
        tasks,
        [
            "  1. start flow, or correct targets.flow.url (http://127.0.0.1:9)",
            "  2. then call this command again: it lists what else a run needs",
        ]
    );
    let served = Served::start(&folder, &[]);
    let (out, _) = folder.run(3, &format!("doctor --target flow={}/flow", served.url));
    let tasks = out.split_once("\nto do\n").expect("tasks are listed").1;
    let tasks: Vec<&str> = tasks.lines().collect();
    assert!(
        tasks[0].starts_with("  1. configure credentials of targets.flow"),
        "{tasks:?}"
    );
    for task in [
        "  2. configure the hook advance_clock: a run is then about six times faster",
        "  3. set targets.flow.from",
    ] {
        assert!(tasks.iter().any(|line| line.starts_with(task)), "{tasks:?}");
    }
    assert!(
        tasks
            .iter()
            .any(|line| line.contains(". implement the hook ")),
        "{tasks:?}"
    );
    let accounts = tasks
        .iter()
        .any(|line| line.contains(". configure `accounts`"));
    assert!(accounts, "{tasks:?}");
    // Nothing that is not configured is mentioned.
    for other in ["callback address", "rate limit", "chat", "auth/"] {
        assert!(!out.contains(other), "{other}: {out}");
    }
}

/// The base URL without its path, and a page in place of the service.
#[test]
fn doctor_detects_an_address_of_another_server() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    for (url, why) in [
        (
            served.url.clone(),
            "GET /v1/Flows answered 404 where the documents have a resource",
        ),
        (
            server(|_| ("200 OK", "Content-Type: text/html\r\n", "<html></html>")),
            "answered 200 with text/html in place of JSON",
        ),
    ] {
        let target = format!("flow={url}");
        let (out, _) = folder.run(3, &format!("doctor --target {target}"));
        assert!(out.starts_with("cannot judge: flow at "), "{out}");
        assert!(
            out.lines().next().is_some_and(|line| line.ends_with(why)),
            "{out}"
        );
        assert!(!out.contains("credentials: accepted"), "{out}");
        assert!(out.contains("\n  1. correct targets.flow.url ("), "{out}");
        for command in [&["explore", "--budget", "5"][..], &["run"]] {
            let arguments = [command, &["--target", &target]].concat();
            let (code, out, err) = run(&folder, &arguments);
            assert_eq!(code, 3, "{command:?} {out}{err}");
            let expected = "error: the address of flow leads elsewhere: ";
            assert!(
                err.contains(expected) && err.contains(why),
                "{command:?} {err}"
            );
            assert!(!out.contains("FAIL"), "{command:?} {out}");
        }
    }
    // Also if only requests with other credentials are selected, and if several addresses are wrong.
    let wrong = format!("{}/api", served.url);
    let hooks = format!("--hooks {}/_control", served.url);
    for selection in [
        "--filter flow/read-flows/*",
        "--filter flow/read-flows/credentials-account",
        "--filter flow/read-flows/* --filter chat/read-services/*",
    ] {
        let line = format!("run --target all={wrong} {hooks} {selection}");
        let (out, err) = folder.run(3, &line);
        assert!(
            err.contains("error: the address of flow leads elsewhere: "),
            "{err}"
        );
        assert!(
            out.contains("nothing judged (exit 3)"),
            "{selection} {out}{err}"
        );
        assert!(!out.contains("FAIL"), "{selection} {out}");
    }
    let tls = served.url.replace("http://", "https://");
    let target = format!("flow={tls}/flow");
    let only = [
        "run",
        "--filter",
        "flow/read-flows/happy",
        "--target",
        &target,
    ];
    let (code, out, err) = run(&folder, &only);
    assert_eq!(code, 3, "{out}{err}");
    assert!(
        err.contains("error: flow cannot be reached at https://"),
        "{err}"
    );
}

/// Such as a proxy that needs a password of its own.
#[test]
fn doctor_takes_no_answer_of_another_server_for_accepted_credentials() {
    let folder = Folder::new();
    for status in ["405 Method Not Allowed", "407 Proxy", "421 Misdirected"] {
        let url = server(move |_| (status, "Content-Type: application/json\r\n", "{}"));
        let (out, _) = folder.run(3, &format!("doctor --target flow={url}"));
        let code = &status[..3];
        let headline = format!("cannot judge: flow at {url}: GET /v1/Flows answered {code}");
        assert!(out.starts_with(&headline), "{out}");
        assert!(
            out.contains("find out why flow does not serve this request"),
            "{out}"
        );
    }
}

/// The stub of `init` reports that it is not supported; absent credentials differ from wrong ones.
#[test]
fn doctor_separates_what_is_missing_from_what_is_wrong() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let target = format!("flow={}/flow", served.url);
    folder.run(0, &format!("init --target {target}"));
    let (out, _) = folder.run(3, "doctor");
    let headline = format!(
        "cannot judge: flow at {}/flow needs credentials, and none are configured: status 401\n",
        served.url
    );
    assert!(out.starts_with(&headline), "{out}");
    assert!(
        out.contains("--   callback address: reachable from here; from the target unknown: "),
        "{out}"
    );
    assert_eq!(out.matches("FAIL").count(), 1, "{out}");
    assert!(!out.contains("repair the hook"), "{out}");
    // `init` writes stubs for the hooks of all services.
    assert!(
        out.contains("--   hook create_flow: ") && !out.contains("approve_request"),
        "{out}"
    );
}

#[test]
fn a_hook_is_ok_only_after_a_call_that_succeeded() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let stub = ["sh", "hooks/hook.sh", "deny_request", "uuid=${uuid}"];
    let control = format!("{}/_control/collect_events", served.url);
    let config = json!({
        "targets": {
            "auth": {"url": format!("{}/auth", served.url)},
            "flow": {"url": format!("{}/flow", served.url)},
        },
        "hooks": {
            "collect_events": {"http": {"url": control}},
            "deny_request": {"command": stub, "probe": {"uuid": "none"}},
            "create_flow": {"command": ["echo", "{}"], "probe": {}},
            "publish_flow": {"command": ["true"]},
        },
    });
    folder.write("conformant.yaml", config.to_string());
    folder.run(0, "init --out made");
    let moved = std::fs::rename(folder.join("made/hooks"), folder.join("hooks"));
    moved.expect("the disk is writable");

    let (_, out, _) = folder.output("doctor");
    assert!(!out.contains("ok   hook "), "{out}");
    assert!(
        out.contains("--   hook deny_request: sh found, not called; add --probe; "),
        "{out}"
    );
    assert!(
        out.contains(". try the hooks by harmless calls: conformant doctor --probe\n"),
        "{out}"
    );

    let (out, _) = folder.run(3, "doctor --probe");
    for expected in [
        "ok   hook collect_events: called with {}; needed by ",
        "--   hook deny_request: reports that it is not supported; needed by ",
        "FAIL hook create_flow: called with {}: expected `flow_sid` in its result, got {}; ",
        "--   hook publish_flow: true found, not called, because no harmless call is declared (hooks.publish_flow.probe); ",
        "hook deny_request reports that it is not supported",
        ". repair the hook create_flow; `conformant explain create_flow` describes it\n",
    ] {
        assert!(out.contains(expected), "{expected} is missing:\n{out}");
    }
}

/// Each verdict that is not about a finding names what to do.
#[test]
fn a_run_without_findings_that_fails_names_the_remedy() {
    let folder = Folder::new();
    folder.write(
        "waivers.yaml",
        "waivers: [{ rule: flow/read-flows/page-size, reason: known, expires: 2020-01-01 }]\n",
    );
    let served = Served::start(&folder, &[]);
    let options = format!(
        "{} --filter flow/read-flows/happy --prove off",
        served.options()
    );
    let (out, err) = folder.run(4, &format!("run {options} --require-complete"));
    let next = "next: run without --filter, which leaves out what --require-complete demands\n";
    assert!(out.ends_with(next), "{out}{err}");

    let (out, err) = folder.run(1, &format!("run {options} --waivers waivers.yaml"));
    assert!(
        out.contains("failed (exit 1): 1 waiver does not apply, "),
        "{out}{err}"
    );
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let next = "next: correct the waivers: the waiver of flow/read-flows/page-size expired on 2020-01-01: known";
    assert!(out.ends_with(next), "{out}{err}");

    folder.write(
        "conformant.yaml",
        "targets: { all: { url: \"http://127.0.0.1:9\" } }\n",
    );
    let (_, err) = folder.run(2, "run");
    assert!(
        err.contains("targets.all: only a flag names all services at once: give --target all=URL, or write each "),
        "{err}"
    );
}

/// A stub that answers every call is not ok in `doctor`, and a run does not blame the service alone for it.
#[test]
fn a_hook_without_effect_is_not_ok_and_is_named_as_a_cause() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let stub = |body: &'static str| {
        server(move |_| ("200 OK", "Content-Type: application/json\r\n", body))
    };
    let made = r#"{"flow_sid": "FW0000000000000000000000000000abcd"}"#;
    let hooks = |clock: &'static str| {
        json!({"hooks": {
            "advance_clock": {"http": {"url": stub(clock)}},
            "approve_request": {"http": {"url": stub("{}")}, "probe": {"uuid": "none"}},
            "create_flow": {"http": {"url": stub(made)}},
            "publish_flow": {"http": {"url": stub("{}")}},
        }})
    };
    folder.write("conformant.yaml", hooks("{}").to_string());
    let options = served.options();

    let (out, _) = folder.run(0, &format!("doctor --probe {options}"));
    for expected in [
        "--   hook advance_clock: answered; its effect was not checked, because its result has no `now`; ",
        "--   hook approve_request: called with {\"uuid\":\"none\"} and answered; its effect was not checked; ",
        ". let the hook advance_clock return `now`, the time of the target afterwards, which shows its effect\n",
    ] {
        assert!(out.contains(expected), "{expected} is missing:\n{out}");
    }

    let is_named = |scenario: &str, hook: &str| {
        let line = format!("run {options} --filter {scenario} --report json={hook}.json");
        let (out, _) = folder.run(1, &line);
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        let cause = format!("(or the hook {hook} had no effect)");
        assert!(out.contains(&cause), "{scenario}: {out}");
    };
    // Both wait for an effect, at the same time.
    std::thread::scope(|scope| {
        scope.spawn(|| is_named("auth/approval-requests/default-expiry", "advance_clock"));
        is_named("auth/approval-requests/approved", "approve_request");
    });
    let (_, err) = folder.run(
        3,
        &format!("run {options} --filter flow/create-execution/happy"),
    );
    assert!(
        err.contains(
            "it returned FW0000000000000000000000000000abcd, which flow does not have: GET "
        ),
        "{err}"
    );

    folder.write(
        "conformant.yaml",
        hooks(r#"{"now": "2026-01-01T00:00:00Z"}"#).to_string(),
    );
    let (out, _) = folder.run(3, &format!("doctor --probe {options}"));
    assert!(
        out.contains("FAIL hook advance_clock: did not move the clock: `now` "),
        "{out}"
    );

    std::fs::remove_file(folder.join("conformant.yaml")).expect("it was written");
    let (out, _) = folder.run(0, &format!("doctor --probe {options}"));
    assert!(
        out.contains("ok   hook advance_clock: moved the clock by 5 s; it is "),
        "{out}"
    );
}

/// A server that answers each request by its head, in lower case: status line, further fields, body.
fn server(
    answer: impl Fn(&str) -> (&'static str, &'static str, &'static str) + Send + 'static,
) -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                head += &std::mem::take(&mut line).to_ascii_lowercase();
            }
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            let _ = reader.read_exact(&mut body);
            let (status, fields, body) = answer(&head);
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn doctor_accepts_no_credentials_that_a_target_never_looked_at() {
    for status in [
        "500 Internal Server Error",
        "302 Found",
        "429 Too Many Requests",
    ] {
        let url = server(move |_| (status, "", "{}"));
        let folder = Folder::new();
        let (out, _) = folder.run(3, &format!("doctor --target flow={url}"));
        let code = &status[..3];
        let expected = format!("FAIL flow: answers: GET /v1/Flows answered {code}");
        assert!(out.contains(&expected), "{out}");
        assert!(!out.contains("flow: credentials"), "{out}");
        let (_, err) = folder.run(3, &format!("explore --budget 5 --target flow={url}"));
        assert!(err.contains(&format!("answered {code}")), "{err}");
    }
}

/// An empty success and the JSON of another service are not ok.
#[test]
fn doctor_compares_the_answer_with_what_the_documents_have_there() {
    for (body, why) in [
        ("", "without a body"),
        ("{}", "with another document than flow/flow[]"),
        (
            "{\"channels\": [], \"status\": \"ok\"}",
            "with another document than flow/flow[]",
        ),
        (
            "{\"meta\": ",
            "with no media type in place of JSON (not JSON: EOF",
        ),
    ] {
        let url = server(move |_| ("200 OK", "", body));
        let folder = Folder::new();
        let (out, _) = folder.run(3, &format!("doctor --target flow={url}"));
        let says = format!("GET /v1/Flows answered 200 {why}");
        assert!(
            out.starts_with(&format!("cannot judge: flow at {url}: {says}")),
            "{out}"
        );
        assert!(
            out.contains(&format!("FAIL flow: answers: {says}")),
            "{out}"
        );
        assert!(!out.contains("flow: credentials"), "{out}");
        assert!(out.contains("  1. find out what answers at "), "{out}");
    }
}

#[test]
fn doctor_finds_an_address_where_a_creation_is_absent() {
    let url = server(|_| ("404 Not Found", "", "{}"));
    let folder = Folder::new();
    let (out, _) = folder.run(3, &format!("doctor --target auth={url}"));
    let expected = format!("cannot judge: auth at {url}: POST ");
    assert!(out.starts_with(&expected), "{out}");
    assert!(
        out.contains(&format!("correct targets.auth.url ({url})")),
        "{out}"
    );
}

/// A service that reads JSON alone.
#[test]
fn doctor_names_the_key_for_the_encoding_that_a_service_reads() {
    let url = server(|head| match head.contains("x-www-form-urlencoded") {
        true => ("415 Unsupported Media Type", "", "{}"),
        false => ("400 Bad Request", "", "{}"),
    });
    let folder = Folder::new();
    let (out, _) = folder.run(3, &format!("doctor --target auth={url}"));
    for expected in [
        "FAIL auth: body of create-user: sent as form; an empty body got 415 as form and 400 as json",
        ". set `targets.auth.body: { create-user: json }`\n",
        ". set `targets.auth.body: { create-approval-request: json }`\n",
    ] {
        assert!(out.contains(expected), "{expected} is missing:\n{out}");
    }
    let config = json!({"targets": {"auth": {"url": url, "body": "json"}}});
    folder.write("conformant.yaml", config.to_string());
    let (_, out, _) = folder.output("doctor");
    assert!(
        out.contains("ok   auth: body of create-user: sent as json"),
        "{out}"
    );
}

/// The hook succeeded, but no callback arrived: it does nothing, or a firewall is between the two.
#[test]
fn doctor_detects_missing_callbacks() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let config = json!({
        "targets": {"flow": {"url": format!("{}/flow", served.url)}},
        "hooks": {"call_back": {"command": ["true", "${url}"]}},
        "limits": {"callback": "100ms"},
    });
    folder.write("conformant.yaml", config.to_string());
    let (out, _) = folder.run(3, "doctor");
    assert!(out.contains("FAIL callback address: "), "{out}");
    let why = "hook call_back answered, but no callback arrived within 100ms: the hook may not have asked the target, or ";
    assert!(out.contains(why), "{out}");
    assert!(out.contains(". check that the hook call_back "), "{out}");
}

#[test]
fn doctor_says_that_a_port_is_in_use() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = json!({
        "targets": {"flow": {"url": "http://127.0.0.1:9/flow"}},
        "callbacks": {"listen": taken.local_addr().unwrap().to_string()},
    });
    folder.write("conformant.yaml", config.to_string());
    let (out, _) = folder.run(3, "doctor");
    let todo = ". set `callbacks.listen` to another port, or stop the program that uses this one";
    assert!(out.contains(todo), "{out}");
}

#[test]
fn doctor_names_the_common_address_of_hooks_that_are_absent() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let wrong = format!("{}/control", served.url);
    let (out, _) = folder.run(
        3,
        &format!("doctor --target all={} --hooks {wrong}", served.url),
    );
    let todo = format!(". correct the address of the hooks, {wrong}/ (--hooks");
    assert_eq!(out.matches(&todo).count(), 1, "{out}");
    assert!(!out.contains("repair the hook"), "{out}");
}

/// Judges a part of the media service with waivers; returns the exit code.
fn judged(served: &Served, folder: &Folder) -> i32 {
    let options = served.options();
    let selection =
        "--prove off --filter media/upload-media/happy --filter media/fetch-media/happy";
    let reports = "--report json=run.json --waivers waivers.yaml";
    folder
        .output(&format!("run {options} {selection} {reports}"))
        .0
}

#[test]
fn a_baseline_accepts_present_failures_only() {
    let folder = Folder::new();
    let broken = Served::start(&folder, &["--fault", "media/temporary-link-missing"]);
    folder.write("waivers.yaml", "waivers: []\n");
    assert_eq!(judged(&broken, &folder), 1);

    folder.run(2, "baseline run.json");
    let line = "baseline run.json --reason 'ticket 4711' --owner 'the media team'";
    folder.run(0, line);
    let accepted = folder.read("waivers.yaml");
    for expected in [
        "operation: \"media/upload-media\"",
        "pointer: \"/links/content_direct_temporary\"",
        "owner: \"the media team\"",
    ] {
        assert!(accepted.contains(expected), "{accepted}");
    }
    assert_eq!(judged(&broken, &folder), 0);

    // What is still broken is kept.
    folder.run(0, "baseline run.json --update");
    assert_eq!(folder.read("waivers.yaml"), accepted);

    let mended = Served::start(&folder, &[]);
    assert_eq!(
        judged(&mended, &folder),
        0,
        "a part of a run does not report stale waivers"
    );
    // It does not show what is fixed, either.
    let (_, err) = folder.run(0, "baseline run.json --update");
    assert!(err.contains("run.json: the run had --filter "), "{err}");
    assert!(err.contains("no waiver is removed"), "{err}");
    assert_eq!(folder.read("waivers.yaml"), accepted);
    let whole = format!(
        "run --target media={0}/media --target chat={0}/chat --service media --hooks {0}/_control --prove off",
        mended.url
    );
    folder.run(0, &format!("{whole} --min-judged 0 --report json=run.json"));
    folder.run(0, "baseline run.json --update");
    assert!(folder.read("waivers.yaml").ends_with("waivers: []\n"));
}

#[test]
fn init_writes_a_job_to_include_where_a_gitlab_pipeline_exists() {
    let folder = Folder::new();
    folder.write(".gitlab-ci.yml", "build:\n  script: [make]\n");
    let (out, err) = folder.run(0, "init --target flow=http://127.0.0.1:9/flow");
    assert!(out.contains(".gitlab/conformant.yml\n"), "{out}");
    let todo = ".gitlab-ci.yml exists and is kept: add `include: [{ local: .gitlab/conformant.yml }]` to it";
    assert!(err.contains(todo), "{err}");
    assert_eq!(folder.read(".gitlab-ci.yml"), "build:\n  script: [make]\n");
    assert!(
        folder
            .read(".gitlab/conformant.yml")
            .contains("conformant run")
    );
}

#[test]
fn a_run_without_a_target_is_refused_in_ci_and_where_one_is_required() {
    const JUDGE: &str = "run --filter flow/read-flows/happy --prove off";
    const EXPLORE: &str = "explore --budget 1 --seed 1 --service flow";
    let folder = Folder::new();
    let execute = |command: &str, more: &str, ci: &str| {
        let line = format!("{command} {more}");
        ended(folder.command(&line).env("CI", ci))
    };
    // Services that do not set `CI` have a variable of their own.
    let (code, _, err) = ended(folder.command(JUDGE).env("TF_BUILD", "True"));
    assert!(code == 2 && err.contains("and TF_BUILD is set"), "{err}");
    for (more, ci, expected, says) in [
        (
            "",
            "",
            0,
            "target: built-in reference (no target configured)\n",
        ),
        (
            "",
            "true",
            2,
            "no target to judge: there is no conformant.yaml, and CI is set",
        ),
        ("--reference", "true", 0, "target: built-in reference\n"),
        ("--require-target", "", 2, "no target to judge"),
        (
            "--target flow=http://127.0.0.1:9",
            "true",
            3,
            "target: http://127.0.0.1:9\n",
        ),
    ] {
        for command in [JUDGE, EXPLORE] {
            if command == EXPLORE && more == "--require-target" {
                continue;
            }
            let (code, out, err) = execute(command, more, ci);
            assert_eq!(code, expected, "{command} {more} {out}{err}");
            let is_shown = out.contains(says) || err.contains(says);
            assert!(is_shown, "{command} {more} {out}{err}");
            assert_eq!(out.starts_with("target: "), code != 2, "{command} {out}");
        }
    }
    let (_, text, _) = execute(JUDGE, "", "");
    let verdict = text.lines().find(|line| line.starts_with("passed: "));
    let verdict = verdict.expect("the verdict is printed");
    assert!(
        verdict.ends_with(" · target: built-in reference (no target configured)"),
        "{verdict}"
    );
}

#[test]
fn mistakes_that_would_waste_a_run_are_refused_before_it() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("taken")).expect("the disk is writable");
    folder.write("file", "");
    let waivers =
        "waivers:\n  - { rule: flow/read-flows/page-sise, reason: x, expires: 2099-01-01 }\n";
    folder.write("w.yaml", waivers);
    folder.write(
        "all.yaml",
        "waivers: [{ rule: '*', reason: x, expires: 2099-01-01 }]",
    );
    for (more, expected) in [
        (
            "--waivers all.yaml",
            "--waivers: `*` would accept every failure: name the rules",
        ),
        (
            "--jobs 0",
            "invalid value '0' for '--jobs <N>': expected a number from 1",
        ),
        ("--report json=taken", "--report: taken is a folder"),
        (
            "--report json=file/run.json",
            "--report: file/run.json cannot be written: ",
        ),
        (
            "--waivers w.yaml",
            "no rule is named flow/read-flows/page-sise; did you mean flow/read-flows/page-size?",
        ),
        (
            "--filter flow/raed-flows/*",
            "error: --filter flow/raed-flows/*: no scenario of the rulebook has such an id",
        ),
        (
            "--history file/runs",
            "--history: file/runs cannot be written: ",
        ),
        (
            "--specs none",
            "error: --specs none: expected a folder with a rulebook",
        ),
    ] {
        let line = format!("run --reference --filter flow/read-flows/happy {more}");
        let (out, err) = folder.run(2, &line);
        assert!(
            err.contains(expected) && out.is_empty(),
            "{more} {out}{err}"
        );
    }
    folder.run(2, "fixtures generate --count 0 --out x");
    let (out, _) = folder.run(4, "run --reference --filter flow/none-such");
    assert_eq!(out, "");
}
