//! Connections to a target: proxies, token commands, and the command that repeats a request.

use crate::hostile::pages::{answer, ok, only_page};
use crate::hostile::target::{Act, Target};
use crate::program::{conformant, run};
use conformant_record::RunRecord;
use std::path::Path;

const LIST: [&str; 5] = [
    "run",
    "--filter",
    "flow/read-flows/happy",
    "--report",
    "json=run.json",
];

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("the disk is writable");
}

fn keep(bytes: Vec<u8>) -> Vec<Act> {
    vec![Act::Send(bytes), Act::Keep]
}

#[test]
fn a_rejected_token_is_replaced() {
    let target = Target::answering(|asked| match asked.header("Authorization") {
        "Bearer token-2" => keep(ok(only_page("http://127.0.0.1").to_string())),
        _ => keep(answer("401 No", "", "")),
    });
    let folder = tempfile::tempdir().expect("the disk is writable");
    write(
        folder.path(),
        "token.sh",
        "echo x >> count; echo token-$(wc -l < count | tr -d ' ')",
    );
    let flow = format!(
        "targets: {{flow: {{url: \"{}/flow\", credentials: {{command: [sh, token.sh]}}}}}}",
        target.origin()
    );
    write(folder.path(), "conformant.yaml", &flow);
    let (code, out, err) = run(folder.path(), &LIST);
    assert_eq!(code, 0, "{out}{err}");

    write(folder.path(), "token.sh", "exit 3");
    let (code, _, err) = run(folder.path(), &LIST);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("targets.flow.credentials.command: sh ended with exit status: 3"),
        "{err}"
    );
}

#[test]
fn a_named_proxy_stands_before_every_target_but_this_machine() {
    let proxy = Target::answering(|_| keep(ok(only_page("http://flow.test").to_string())));
    let folder = tempfile::tempdir().expect("the disk is writable");
    let through = |url: &str| {
        let proxy = proxy.origin().replace("http://", "http://me:you@");
        let lines = format!("proxy: {proxy}\ntargets: {{flow: {{url: \"{url}\"}}}}");
        write(folder.path(), "conformant.yaml", &lines);
        run(folder.path(), &LIST)
    };
    // The name does not resolve: only the proxy is contacted.
    let (code, out, err) = through("http://flow.test/flow");
    assert_eq!(code, 0, "{out}{err}");
    let asked = proxy.asked();
    assert!(
        asked[0]
            .head
            .starts_with("GET http://flow.test/flow/v1/Flows "),
        "{asked:?}"
    );
    assert_eq!(asked[0].header("Proxy-Authorization"), "Basic bWU6eW91");

    let own = Target::answering(|_| keep(ok(only_page("http://127.0.0.1").to_string())));
    let (code, out, err) = through(&format!("{}/flow", own.origin()));
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(
        proxy.asked().len(),
        asked.len(),
        "it was asked for this machine"
    );
}

#[test]
fn the_repeat_line_holds_every_header_and_the_configurations_own_variables() {
    let target = Target::answering(|_| keep(ok("{}")));
    let folder = tempfile::tempdir().expect("the disk is writable");
    let lines = format!(
        "targets:\n  flow:\n    url: {}/flow\n    username: the-key\n    password: ${{FLOW_SECRET}}\n    \
         headers: {{ X-Tenant-Key: \"${{TENANT_KEY}}\", X-Plain: plain }}\n",
        target.origin()
    );
    write(folder.path(), "conformant.yaml", &lines);
    let done = conformant(folder.path(), &LIST)
        .env("FLOW_SECRET", "s3cr3t-of-flow")
        .env("TENANT_KEY", "s3cr3t-of-tenant")
        .output()
        .expect("the program can be started");
    assert_eq!(done.status.code(), Some(1));
    let json = std::fs::read(folder.path().join("run.json")).expect("a report");
    let record: RunRecord = serde_json::from_slice(&json).expect("it is a record");
    let line = &record.findings[0].reproduce;
    for words in [
        "-u \"the-key:$FLOW_SECRET\"",
        "-H \"X-Tenant-Key: $TENANT_KEY\"",
        "-H 'X-Plain: plain'",
    ] {
        assert!(line.contains(words), "{words} is missing in {line}");
    }
    assert!(!String::from_utf8_lossy(&json).contains("s3cr3t"));
}
