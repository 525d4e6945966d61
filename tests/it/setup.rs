//! Setting up a target: `init`, `doctor`, `baseline`, and the preview of a run.

use crate::program::{Served, conformant, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn init_writes_what_a_run_can_read_and_never_writes_over_it() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let arguments = [
        "init",
        "--target",
        "flow=http://127.0.0.1:9/flow",
        "--ci",
        "gitlab",
    ];
    let (code, out, err) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{out}{err}");
    let written = read(folder.path(), "conformant.yaml");
    assert!(written.contains("did not answer: refused"), "{written}");
    assert!(read(folder.path(), ".gitlab-ci.yml").contains("conformant run"));
    // Editors use the schema file next to the configuration.
    assert!(written.starts_with("# yaml-language-server: $schema=conformant.schema.json\n"));
    let schema: serde_json::Value =
        serde_json::from_str(&read(folder.path(), "conformant.schema.json")).expect("it is JSON");
    assert!(schema["properties"]["targets"].is_object(), "{schema}");

    let dry = [
        "run",
        "--dry-run",
        "--filter",
        "flow/create-execution/happy",
    ];
    let (code, out, err) = run(folder.path(), &dry);
    assert_eq!(code, 0, "{written}{err}");
    assert!(
        out.contains("POST http://127.0.0.1:9/flow/v1/Flows/"),
        "{out}"
    );

    let hook = ["sh", "hooks/hook.sh", "approve_request", "uuid=1"];
    let status = Command::new(hook[0])
        .args(&hook[1..])
        .current_dir(folder.path())
        .status();
    assert_eq!(status.expect("there is a shell").code(), Some(95));

    let (code, _, err) = run(folder.path(), &arguments);
    assert_eq!(code, 2, "{err}");
    assert_eq!(read(folder.path(), "conformant.yaml"), written);
    assert!(err.contains("exists and is kept"), "{err}");
}

#[test]
fn doctor_reports_what_a_run_would_leave_out() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let served = Served::start(folder.path(), &[]);
    let target = format!("all={}", served.url);
    let hooks = format!("{}/_control", served.url);
    let (code, out, err) = run(
        folder.path(),
        &["doctor", "--target", &target, "--hooks", &hooks],
    );
    assert_eq!(code, 0, "{out}{err}");
    for expected in [
        "ok   flow: reachable",
        "ok   chat: credentials: accepted: GET /chat/v2/Services answered 200, refused without them",
        "ok   hook advance_clock: it is ",
        "is reachable from here and from the target",
        "a run would leave out nothing",
    ] {
        assert!(out.contains(expected), "{expected} is missing:\n{out}");
    }

    let flow = format!("flow={}/flow", served.url);
    let (code, out, _) = run(
        folder.path(),
        &["doctor", "--target", &flow, "--format", "json"],
    );
    assert_eq!(code, 3, "{out}");
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
    // Only what is configured is mentioned.
    assert!(
        !reasons
            .iter()
            .any(|why| why.contains("chat") || why.contains("approve_request")),
        "{reasons:?}"
    );

    let (code, _, err) = run(folder.path(), &["doctor"]);
    assert_eq!(code, 2, "{err}");
}

/// The hook succeeded, but no callback arrived: this is how a firewall between the two is detected.
#[test]
fn doctor_detects_missing_callbacks() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let served = Served::start(folder.path(), &[]);
    let config = json!({
        "targets": {"flow": {"url": format!("{}/flow", served.url)}},
        "hooks": {"call_back": {"command": ["true", "${url}"]}},
        "limits": {"callback": "100ms"},
    });
    let written = std::fs::write(folder.path().join("conformant.yaml"), config.to_string());
    written.expect("the disk is writable");
    let (code, out, err) = run(folder.path(), &["doctor"]);
    assert_eq!(code, 3, "{out}{err}");
    assert!(out.contains("FAIL callback address: "), "{out}");
    assert!(
        out.contains("not from the target: no callback arrived within 100ms"),
        "{out}"
    );
}

/// Judges the flow service with waivers; returns the exit code.
fn judged(served: &Served, folder: &Path) -> i32 {
    let target = format!("all={}", served.url);
    let hooks = format!("{}/_control", served.url);
    let arguments = ["run", "--target", &target, "--hooks", &hooks];
    let selection = [
        "--prove",
        "off",
        "--filter",
        "flow/read-flows/*",
        "--filter",
        "flow/fetch-flow/*",
    ];
    let reports = ["--report", "json=run.json", "--waivers", "waivers.yaml"];
    let done = conformant(folder, &[&arguments[..], &selection, &reports].concat()).output();
    done.expect("it can be started")
        .status
        .code()
        .expect("it ends")
}

#[test]
fn a_baseline_accepts_present_failures_only() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let broken = Served::start(folder.path(), &["--fault", "flow/meta-page-size-wrong"]);
    std::fs::write(folder.path().join("waivers.yaml"), "waivers: []\n")
        .expect("the disk is writable");
    assert_eq!(judged(&broken, folder.path()), 1);

    let (code, _, err) = run(folder.path(), &["baseline", "run.json"]);
    assert_eq!(code, 2, "without a reason: {err}");
    let who = ["--reason", "ticket 4711", "--owner", "the flow team"];
    let (code, _, err) = run(
        folder.path(),
        &[&["baseline", "run.json"], &who[..]].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let accepted = read(folder.path(), "waivers.yaml");
    for expected in [
        "operation: \"flow/read-flows\"",
        "pointer: \"/meta/page_size\"",
        "owner: \"the flow team\"",
    ] {
        assert!(accepted.contains(expected), "{accepted}");
    }
    assert_eq!(judged(&broken, folder.path()), 0);

    // What is still broken is kept.
    let (code, _, err) = run(folder.path(), &["baseline", "run.json", "--update"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(read(folder.path(), "waivers.yaml"), accepted);

    let mended = Served::start(folder.path(), &[]);
    assert_eq!(
        judged(&mended, folder.path()),
        0,
        "a part of a run does not report stale waivers"
    );
    let (code, _, err) = run(folder.path(), &["baseline", "run.json", "--update"]);
    assert_eq!(code, 0, "{err}");
    assert!(read(folder.path(), "waivers.yaml").ends_with("waivers: []\n"));
}
