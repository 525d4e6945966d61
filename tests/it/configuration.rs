//! What the program says about a configuration: mistakes with a proposal, variables that nothing reads, the documents, and the
//! rulebook in a folder.

use crate::program::{Folder, Served, ended, root};
use conformant_rulebook::trace;
use std::path::Path;

#[test]
fn mistakes_in_a_configuration_come_with_a_proposal() {
    let folder = Folder::new();
    for (text, expected) in [
        (
            "targets: { flow: { url: 127.0.0.1:4010 } }",
            "targets.flow.url: 127.0.0.1:4010: it is not an absolute URL (no scheme, such as http://); did you mean http://127.0.0.1:4010? (conformant.yaml:1)",
        ),
        (
            "limits: { timeout: 10 }",
            "limits.timeout: invalid duration `10`: expected a number above zero and a unit, such as `500ms`, `10s` or `5m`; did you mean `10s`? (conformant.yaml:1)",
        ),
        (
            "limits: { timeout: 10 s }",
            "limits.timeout: invalid duration `10 s`: expected a number above zero and a unit, such as `500ms`, `10s` or `5m`; did you mean `10s`? (conformant.yaml:1)",
        ),
        (
            "limits: { timeout: 0s }",
            "limits.timeout: invalid duration `0s`: expected a number above zero and a unit, such as `500ms`, `10s` or `5m` (conformant.yaml:1)",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', from: '12025550100' } }",
            "targets.flow.from: invalid phone number `12025550100`: expected E.164, such as `+12025550100` (in quotes) (conformant.yaml:1)",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', to: [abc] } }",
            "targets.flow.to: invalid phone number `abc`: expected E.164, such as `+12025550123` (in quotes) (conformant.yaml:1)",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', flow_sid: abc } }",
            "targets.flow.flow_sid: invalid value `abc`: FlowSid must match ^FW[0-9a-fA-F]{32}$; `conformant explain targets.flow.flow_sid` describes it",
        ),
        (
            "limits: { rate: 50 }",
            "limits.rate: invalid rate `50`: expected requests per second, such as `50/s`; did you mean `50/s`? (conformant.yaml:1)",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', username: key, password: hunter2 } }",
            "the file contains the secret itself at targets.flow.password; write `${FLOW_PASSWORD}` and set FLOW_PASSWORD in the environment (conformant.yaml:1)",
        ),
        (
            "callbacks: { listen: 8080 }",
            "callbacks.listen: invalid address `8080`: expected ADDRESS:PORT, such as 127.0.0.1:8080 (port 0: any free one) (conformant.yaml:1)",
        ),
        (
            " \n",
            "conformant.yaml is empty, expected a configuration; delete it and write one with `conformant init --target SERVICE=URL`",
        ),
    ] {
        folder.write("conformant.yaml", text);
        let (_, err) = folder.run(2, "doctor --config conformant.yaml");
        assert_eq!(err, format!("error: {expected}\n"), "{text}");
    }
    for (text, expected) in [
        (
            "callbacks: 8080\n",
            "a mapping, such as { listen: \"127.0.0.1:8080\" }",
        ),
        (
            "hooks: { create_flow: { command: [true] } }\n",
            "put numbers, true, false and null in quotation marks",
        ),
    ] {
        folder.write("conformant.yaml", text);
        let (_, err) = folder.run(2, "doctor");
        assert!(err.contains(expected), "{text}: {err}");
    }
}

#[test]
fn an_address_is_blamed_on_what_gives_it() {
    let folder = Folder::new();
    folder.write(
        "conformant.yaml",
        "targets: { flow: { url: 'http://127.0.0.1:9' } }\n",
    );
    let (_, err) = folder.run(2, "run --target flow=127.0.0.1:9");
    assert!(
        err.contains("error: --target flow: 127.0.0.1:9: ") && !err.contains("conformant.yaml:"),
        "{err}"
    );
    let mut run = folder.command("run");
    let (code, _, err) = ended(run.env("CONFORMANT_FLOW_URL", "http://me:x@127.0.0.1:9"));
    assert!(
        code == 2
            && err.contains("error: CONFORMANT_FLOW_URL: ")
            && err.contains("; set targets.flow.username and targets.flow.password"),
        "{err}"
    );
}

#[test]
fn a_bare_list_of_waivers_is_an_error_that_names_the_missing_key() {
    let folder = Folder::new();
    folder.write("waivers.yaml", "# accepted\n- rule: flow/flow/sid\n");
    let (_, err) = folder.run(2, "run --reference --waivers waivers.yaml");
    let expected = "error: waivers.yaml: found a list, expected the key `waivers`; write the line `waivers:` above the list\n";
    assert_eq!(err, expected);
}

#[test]
fn a_secret_in_the_file_is_a_warning_and_is_not_printed() {
    let folder = Folder::new();
    let text = "proxy: 'http://me:hunter11111@127.0.0.1:9'\ntargets: { auth: { url: 'http://127.0.0.1:9', headers: { X-Auth-API-Key: hunter22222 } } }\n\
        hooks: { reset: { http: { url: 'http://127.0.0.1:9/', headers: { Authorization: Bearer hunter33333 } } } }\n";
    folder.write("conformant.yaml", text);
    let (_, out, err) = folder.output("run --dry-run --filter auth/create-user/happy");
    for expected in [
        "warning: the file contains the secret itself at proxy; write `${PROXY}` and set PROXY in the environment",
        "warning: the file contains the secret itself at targets.auth.headers.X-Auth-API-Key; write `${AUTH_API_KEY}` and set AUTH_API_KEY in the environment",
        "warning: the file contains the secret itself at hooks.reset.http.headers.Authorization; write `${RESET_TOKEN}` and set RESET_TOKEN in the environment",
    ] {
        let count = err.matches(expected).count();
        assert_eq!(count, 1, "{expected} {err}");
    }
    assert!(!format!("{out}{err}").contains("hunter"), "{out}{err}");
}

#[test]
fn a_path_in_the_configuration_needs_no_leading_slash() {
    let folder = Folder::new();
    let preview = |path: &str| {
        let text = format!(
            "targets: {{ auth: {{ url: 'http://127.0.0.1:9/auth', user_status_path: '{path}' }} }}\n"
        );
        folder.write("conformant.yaml", &text);
        folder.run(0, "run --dry-run --filter auth/*status*").0
    };
    let (with, without) = (
        preview("/users/{AUTH_ID}/status"),
        preview("users/{AUTH_ID}/status"),
    );
    assert!(with.contains("http://127.0.0.1:9/auth/users/"), "{with}");
    assert_eq!(with, without);
}

#[test]
fn a_variable_that_no_target_reads_is_a_hint() {
    let folder = Folder::new();
    let hint = |variable: &str, more: &str| {
        let line = format!("run --dry-run --filter flow/read-flows/happy {more}");
        let (_, _, err) = ended(folder.command(&line).env(variable, "x"));
        err
    };
    for variable in [
        "CONFORMANT_FLOW_PASSWORD",
        "FLOW_SECRET",
        "CONFORMANT_FLOW_USERNAME",
    ] {
        assert_eq!(
            hint(variable, ""),
            format!(
                "hint: {variable} is set, but no target reads it: add --target flow=URL, set CONFORMANT_FLOW_URL, or write a configuration with `conformant init`\n"
            )
        );
        assert_eq!(hint(variable, "--reference"), "");
    }
    assert_eq!(hint("UNRELATED", ""), "");
    let misspelled = "warning: CONFORMANT_FLWO_URL is set, but no service is named `flwo`; did you mean CONFORMANT_FLOW_URL?\n";
    assert_eq!(hint("CONFORMANT_FLWO_URL", ""), misspelled);
    assert_eq!(hint("CONFORMANT_DOWNLOADS_URL", ""), "");
}

#[test]
fn problems_of_added_scenarios_name_the_file_of_the_user() {
    let folder = Folder::new();
    let text =
        "scenarios:\n  - id: flow/mine/first\n    says: x\n    steps:\n      - call: read-flwos\n";
    folder.write("own/flow/mine.yaml", text);
    let (_, err) = folder.run(2, "run --reference --scenarios own");
    let place = Path::new("own").join("flow").join("mine.yaml");
    assert!(
        err.contains(&format!("--> {}:5:15", place.display())),
        "{err}"
    );
}

#[test]
fn the_rulebook_is_exported_for_the_next_event_version() {
    let folder = Folder::new();
    let (_, err) = folder.run(2, "events new MessageSent");
    let proposed = "`conformant specs export specs` writes the embedded one";
    assert!(err.contains(proposed), "{err}");
    let (out, _) = folder.run(0, "specs export specs");
    assert!(out.ends_with("read them with `--specs specs`\n"), "{out}");
    let guide = std::fs::read(folder.join("specs/README.md")).expect("it was written");
    let own = std::fs::read(root().join("specs/README.md")).expect("it is there");
    assert_eq!(guide, own);
    let (out, _) = folder.run(0, "events new MessageSent");
    let copied = "specs/events/MessageSent/5.yaml is a copy";
    assert!(out.contains(copied), "{out}");
    let (_, err) = folder.run(2, "events new MessageSent");
    let unedited = "MessageSent/5 is still equal to MessageSent/4";
    assert!(err.contains(unedited), "{err}");
    let (_, err) = folder.run(0, "events check");
    assert!(err.contains("embedded rulebook"), "{err}");
    // Nothing is overwritten.
    let (_, err) = folder.run(2, "specs export specs");
    assert!(err.contains("specs exists and is kept"), "{err}");
    assert!(folder.join("specs/events/MessageSent/5.yaml").is_file());
}

#[test]
fn explain_prints_cited_sentences_of_the_documents_of_the_user() {
    const RULE: &str = "flow/read-executions/most-recent-first";
    let folder = Folder::new();
    let (_, out, _) = folder.output(&format!("explain {RULE}"));
    assert!(!out.contains("line 86   "), "{out}");
    assert!(
        out.contains("  document   D3 is \"Flow Service Specification\"\n"),
        "{out}"
    );

    // A document whose line 86 is another one than that of the rulebook.
    let mut text = "# Flow Service Specification\n## Endpoints\n".to_owned();
    text += &"\n".repeat(83);
    text += "An invented sentence. And another one.\n";
    folder.write("documents/three.txt", &text);
    folder.write("conformant.yaml", "documents: documents\n");
    let (out, _) = folder.run(0, &format!("explain {RULE}"));
    let differs = "  line 86    it differs from the document that the rulebook cites; see `conformant trace`\n";
    assert!(out.contains(differs), "{out}");

    // With a lock that knows it, the cited sentence is printed.
    folder.run(0, "specs export own");
    let units = trace::units("D3".parse().expect("an id"), &text);
    let lock = format!(
        "D3 86.1 {} rules {RULE}\nD3 86.2 {} narrative\n",
        units[0].hash, units[1].hash
    );
    folder.write("own/documents.lock", &lock);
    let (out, _) = folder.run(0, &format!("explain {RULE} --specs own"));
    assert!(
        out.contains("  line 86    An invented sentence.\n"),
        "{out}"
    );

    // So is it on the page and in the report folder.
    let served = Served::start(&folder, &["--fault", "flow/executions-oldest-first"]);
    let run = "run --prove off --specs own --filter flow/read-executions/* --report html=page.html --report dir=results";
    folder.run(1, &format!("{run} {}", served.options()));
    let quoted = "<blockquote><span>line 86</span>An invented sentence.</blockquote>";
    assert!(folder.read("page.html").contains(quoted));
    let defect = folder.read("results/defect-1.md");
    assert!(
        defect.contains("- line 86: `An invented sentence.`\n"),
        "{defect}"
    );

    let (_, out, _) = folder.output("explain auth/user-create/user/id");
    assert!(
        out.contains("  documents  "),
        "a missing document is named: {out}"
    );
}

#[test]
fn an_unreachable_or_unauthorized_target_is_the_last_line_and_the_exit_code() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let flow = format!("flow={}/flow", served.url);
    let unreachable = "error: flow cannot be reached at http://127.0.0.1:9: ";
    let unauthorized = "error: flow answers nothing but 401 and 403";
    for (command, target, expected) in [
        ("run", "flow=http://127.0.0.1:9", unreachable),
        ("run", &flow, unauthorized),
        ("explore --budget 5", "flow=http://127.0.0.1:9", unreachable),
        ("explore --budget 5", &flow, "error: flow at "),
    ] {
        let (out, err) = folder.run(3, &format!("{command} --target {target}"));
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with(expected), "{command} {err}");
        // Nothing was judged, so that nothing fails, and there are no figures.
        assert!(
            !out.contains("FAIL ") && !out.contains("detection "),
            "{out}"
        );
        assert!(!out.contains("interrupted"), "{out}");
    }
    let user = "AC00000000000000000000000000000001";
    let wrong = format!(
        "targets: {{ flow: {{ url: {}/flow, username: {user}, password: \"${{WRONG}}\" }} }}\n",
        served.url
    );
    folder.write("wrong.yaml", &wrong);
    let line = "run --config wrong.yaml --filter flow/read-flows/happy";
    let (exit, out, err) = ended(folder.command(line).env("WRONG", "a-wrong-password"));
    let last = err.lines().last().unwrap_or_default();
    assert!(exit == 3 && last.starts_with(unauthorized), "{line}: {err}");
    assert!(!out.contains("FAIL "), "{out}");
    // A bearer token is sent in place of user name and password.
    folder.write(
        "wrong.yaml",
        wrong.replace("username:", "bearer: \"${WRONG}\", username:"),
    );
    let (_, _, err) = ended(folder.command(line).env("WRONG", "a-wrong-password"));
    for expected in [
        "nothing but 401 and 403 to the configured bearer token or Authorization header",
        "username and password are configured too, but not sent",
    ] {
        assert!(err.contains(expected), "{err}");
    }
    let options = format!("--target all={} --hooks http://127.0.0.1:9", served.url);
    let line = format!("run {options} --filter flow/read-flows/beyond-a-page");
    let (_, err) = folder.run(3, &line);
    let expected = "error: --hooks http://127.0.0.1:9: nothing answers there: ";
    assert!(err.contains(expected), "{err}");
    let line = line.replace("http://127.0.0.1:9", &served.url);
    let (_, err) = folder.run(2, &line);
    assert!(
        err.contains(&format!("did you mean {}/_control?", served.url)),
        "{err}"
    );
}

#[test]
fn mistakes_about_hooks_services_and_credentials_are_named_before_a_run() {
    let folder = Folder::new();
    folder.write(
        "c.yaml",
        "targets: { flow: { url: 'http://127.0.0.1:9', username: key, password: '${SECRET' } }\nproxy: http://u:hidden-1@p.test:1\n",
    );
    folder.write(
        "unset.yaml",
        "targets:\n  auth:\n    url: 'http://127.0.0.1/auth?key=hidden-1'\n    headers: { X-Auth-API-Key: \"${AUTH_API_KEY}\",\n      Authorization: \"Bearer ${TOK}\" }\n",
    );
    folder.write("empty.yaml", "targets:\n");
    let reachable = "run --target flow=http://127.0.0.1:9";
    for (code, line, expected) in [
        (
            2,
            "run --hooks http://127.0.0.1:9",
            "--hooks: expected a target",
        ),
        (
            2,
            "run --target flow=http://u:hidden-1@127.0.0.1:9",
            "--target flow: http://[redacted]@127.0.0.1:9: it contains credentials, which are configured apart from the \
             address; set targets.flow.username",
        ),
        (
            2,
            &format!("{reachable} --hooks http://u:hidden-1@127.0.0.1:9"),
            "set a token in CONFORMANT_CONTROL_TOKEN",
        ),
        (
            2,
            "proxy --upstream flow=http://u:hidden-1@127.0.0.1:9",
            "--upstream flow=http://[redacted]@127.0.0.1:9",
        ),
        (
            2,
            "run --config unset.yaml",
            "the environment has no AUTH_API_KEY, which targets.auth.headers.X-Auth-API-Key names (unset.yaml:4)",
        ),
        (
            2,
            "run --config unset.yaml",
            "the environment has no TOK, which targets.auth.headers.Authorization names (unset.yaml:5)",
        ),
        (
            2,
            "run --config unset.yaml",
            "targets.auth.url: http://127.0.0.1/auth?…: a base URL must not have a query or fragment (unset.yaml:3)",
        ),
        (
            2,
            "run --config empty.yaml",
            "invalid type: nothing, expected a mapping of keys and values",
        ),
        (
            2,
            "run --config c.yaml",
            "`${SECRET` at targets.flow.password is not closed",
        ),
        (
            4,
            &format!("{reachable} --service auth"),
            "auth has no target",
        ),
        (2, "run --partition 1/2", "did you mean `hash:1/2`?"),
    ] {
        let (out, err) = folder.run(code, line);
        assert!(err.contains(expected), "{line}: {out}{err}");
        assert!(!format!("{out}{err}").contains("hidden-1"), "{line}: {err}");
    }
}

#[test]
fn hook_commands_are_found_beside_the_configuration() {
    let folder = Folder::new();
    folder.run(0, "init --out own --target flow=http://127.0.0.1:9");
    let (out, _) = folder.run(3, "doctor --config own/conformant.yaml");
    assert!(!out.contains("hook.sh"), "{out}");
    folder.write(
        "own/hooks/hook.sh",
        "echo '{\"now\": \"2026-01-01T00:00:00Z\"}'\n",
    );
    let (out, _) = folder.run(3, "doctor --config own/conformant.yaml");
    assert!(
        out.contains("hook advance_clock: it is \"2026-01-01T"),
        "{out}"
    );
}

/// A report names the variables of the reference's public credentials. Setting them leaves its other settings as they are.
#[test]
fn the_public_credentials_of_the_reference_as_variables_change_nothing() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let judged = |variables: &[(&str, &str)], filter: &str| {
        let options = served.options();
        let line = format!("run {options} --prove off --filter {filter} --report json=run.json");
        let mut command = folder.command(&line);
        let (code, out, err) = ended(command.envs(variables.iter().copied()));
        assert_eq!(code, 0, "{out}{err}");
        let record: serde_json::Value = folder.json("run.json");
        record["summary"]["rules"].clone()
    };
    for (filter, variables) in [
        (
            "auth/approval-requests/own-callback-url",
            &[(
                "CONFORMANT_AUTH_API_KEY",
                "reference-production-api-key-0001",
            )][..],
        ),
        (
            "flow/accounts/*",
            &[
                ("CONFORMANT_FLOW_USERNAME", "reference-api-key"),
                ("CONFORMANT_FLOW_PASSWORD", "reference-api-secret"),
            ],
        ),
    ] {
        assert_eq!(judged(variables, filter), judged(&[], filter), "{filter}");
    }
}
