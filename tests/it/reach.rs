//! Connections to a target: proxies, token commands, and the command that repeats a request.

use crate::hostile::pages::{answer, flows, ok, only_page};
use crate::hostile::target::{Target, keep};
use crate::program::{Folder, ended};
use conformant_record::RunRecord;

const LIST: &str = "run --filter flow/read-flows/happy --report json=run.json";

/// No document states the status of a refusal.
#[test]
fn refusals_with_the_status_of_a_success_or_of_a_failed_server_are_named() {
    for (refusal, status, exit) in [(answer("500 No", "", ""), 500, 0), (ok("{}"), 200, 4)] {
        let target =
            Target::answering(
                move |asked| match asked.header("Authorization") == "Bearer one" {
                    true => keep(flows()),
                    false => keep(refusal.clone()),
                },
            );
        let folder = Folder::new();
        folder.write(
            "conformant.yaml",
            format!(
                "targets: {{flow: {{url: \"{}/flow\", credentials: {{command: [echo, one]}}}}}}",
                target.origin()
            ),
        );
        let (out, _) = folder.run(exit, "run --filter flow/read-flows/credentials-wrong");
        let expected = format!("refusals    read-flows refused with status {status}, which counts");
        assert!(out.contains(&expected), "{out}");
    }
}

#[test]
fn a_rejected_token_is_replaced() {
    let target = Target::answering(|asked| match asked.header("Authorization") {
        "Bearer token-2" => keep(flows()),
        _ => keep(answer("401 No", "", "")),
    });
    let folder = Folder::new();
    folder.write(
        "token.sh",
        "echo x >> count; echo token-$(wc -l < count | tr -d ' ')",
    );
    let flow = format!(
        "targets: {{flow: {{url: \"{}/flow\", credentials: {{command: [sh, token.sh]}}}}}}",
        target.origin()
    );
    folder.write("conformant.yaml", &flow);
    folder.run(0, LIST);

    folder.write("token.sh", "exit 3");
    let (_, err) = folder.run(2, LIST);
    assert!(
        err.contains("targets.flow.credentials.command: sh ended with exit status: 3"),
        "{err}"
    );
}

#[test]
fn a_named_proxy_stands_before_every_target_but_this_machine() {
    let proxy = Target::answering(|_| keep(ok(only_page("http://flow.test").to_string())));
    let folder = Folder::new();
    let through = |url: &str| {
        let proxy = proxy.origin().replace("http://", "http://me:you@");
        let lines = format!("proxy: {proxy}\ntargets: {{flow: {{url: \"{url}\"}}}}");
        folder.write("conformant.yaml", &lines);
        folder.run(0, LIST);
    };
    // The name does not resolve: only the proxy is contacted.
    through("http://flow.test/flow");
    let asked = proxy.asked();
    assert!(
        asked[0]
            .head
            .starts_with("GET http://flow.test/flow/v1/Flows "),
        "{asked:?}"
    );
    assert_eq!(asked[0].header("Proxy-Authorization"), "Basic bWU6eW91");

    let own = Target::answering(|_| keep(flows()));
    through(&format!("{}/flow", own.origin()));
    assert_eq!(
        proxy.asked().len(),
        asked.len(),
        "it was asked for this machine"
    );
}

#[test]
fn the_repeat_line_holds_every_header_and_the_configurations_own_variables() {
    let target = Target::answering(|_| keep(ok("{}")));
    let folder = Folder::new();
    let lines = format!(
        "targets:\n  flow:\n    url: {}/flow\n    username: the-key\n    password: ${{FLOW_SECRET}}\n    \
         headers: {{ X-Tenant-Key: \"${{TENANT_KEY}}\", X-Plain: plain }}\n",
        target.origin()
    );
    folder.write("conformant.yaml", &lines);
    let mut command = folder.command(LIST);
    command.env("FLOW_SECRET", "s3cr3t-of-flow");
    command.env("TENANT_KEY", "s3cr3t-of-tenant");
    assert_eq!(ended(&mut command).0, 1);
    let record: RunRecord = folder.json("run.json");
    let line = &record.findings[0].reproduce;
    for words in [
        "-u \"the-key:$FLOW_SECRET\"",
        "-H \"X-Tenant-Key: $TENANT_KEY\"",
        "-H 'X-Plain: plain'",
    ] {
        assert!(line.contains(words), "{words} is missing in {line}");
    }
    assert!(!folder.read("run.json").contains("s3cr3t"));
}
