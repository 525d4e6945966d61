//! What the program says about a configuration: mistakes with a proposal, variables that nothing reads, the documents, and the
//! rulebook in a folder.

use crate::program::{Served, conformant, root, run};
use conformant_rulebook::trace;
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    let parent = path.parent().expect("it is in a folder");
    std::fs::create_dir_all(parent).expect("the disk is writable");
    std::fs::write(path, text).expect("the disk is writable");
}

#[test]
fn mistakes_in_a_configuration_come_with_a_proposal() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    for (text, expected) in [
        (
            "targets: { flow: { url: 127.0.0.1:4010 } }",
            "targets.flow.url: 127.0.0.1:4010: it is not an absolute URL (relative URL without a base); did you mean http://127.0.0.1:4010?",
        ),
        (
            "limits: { timeout: 10 }",
            "limits.timeout: invalid duration `10`: expected a number and a unit, such as `500ms`, `10s` or `5m`; did you mean `10s`?",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', from: '12025550100' } }",
            "targets.flow.from: invalid phone number `12025550100`: expected E.164, such as `+12025550100` (in quotes)",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', flow_sid: abc } }",
            "targets.flow.flow_sid: invalid value `abc`: FlowSid must match ^FW[0-9a-fA-F]{32}$; `conformant explain targets.flow.flow_sid` describes it",
        ),
        (
            "limits: { rate: 50 }",
            "limits.rate: invalid rate `50`: expected requests per second, such as `50/s`; did you mean `50/s`?",
        ),
        (
            "targets: { flow: { url: 'http://127.0.0.1:9', username: key, password: hunter2 } }",
            "the file contains the secret itself at targets.flow.password; write `${FLOW_PASSWORD}` and set FLOW_PASSWORD in the environment",
        ),
    ] {
        write(folder, "conformant.yaml", text);
        let (code, out, err) = run(folder, &["doctor"]);
        assert_eq!(code, 2, "{text} {out}{err}");
        assert_eq!(err, format!("error: {expected}\n"), "{text}");
    }
}

#[test]
fn a_secret_header_in_the_file_is_a_warning_and_is_not_printed() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let text = "targets: { auth: { url: 'http://127.0.0.1:9', headers: { X-Auth-API-Key: hunter22222 } } }\n\
        hooks: { reset: { http: { url: 'http://127.0.0.1:9/', headers: { Authorization: Bearer hunter33333 } } } }\n";
    write(folder, "conformant.yaml", text);
    let (_, out, err) = run(
        folder,
        &["run", "--dry-run", "--filter", "auth/create-user/happy"],
    );
    for expected in [
        "warning: the file contains the secret itself at targets.auth.headers.X-Auth-API-Key; write `${AUTH_API_KEY}` and set AUTH_API_KEY in the environment",
        "warning: the file contains the secret itself at hooks.reset.http.headers.Authorization; write `${RESET_TOKEN}` and set RESET_TOKEN in the environment",
    ] {
        assert!(err.contains(expected), "{expected} is missing: {err}");
    }
    assert!(!format!("{out}{err}").contains("hunter"), "{out}{err}");
}

#[test]
fn a_path_in_the_configuration_needs_no_leading_slash() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let preview = |path: &str| {
        let text = format!(
            "targets: {{ auth: {{ url: 'http://127.0.0.1:9/auth', user_status_path: '{path}' }} }}\n"
        );
        write(folder, "conformant.yaml", &text);
        let filter = ["run", "--dry-run", "--filter", "auth/*status*"];
        let (code, out, err) = run(folder, &filter);
        assert_eq!(code, 0, "{err}");
        out
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
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let hint = |variable: &str, more: &[&str]| {
        let arguments = [
            &["run", "--dry-run", "--filter", "flow/read-flows/happy"],
            more,
        ]
        .concat();
        let mut command = conformant(folder, &arguments);
        let output = command
            .env(variable, "x")
            .output()
            .expect("it can be started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for variable in [
        "CONFORMANT_FLOW_PASSWORD",
        "FLOW_SECRET",
        "CONFORMANT_FLOW_USERNAME",
    ] {
        assert_eq!(
            hint(variable, &[]),
            format!(
                "hint: {variable} is set, but no target reads it: add --target flow=URL, set CONFORMANT_FLOW_URL, or write a configuration with `conformant init`\n"
            )
        );
        assert_eq!(hint(variable, &["--reference"]), "");
    }
    assert_eq!(hint("UNRELATED", &[]), "");
}

#[test]
fn problems_of_added_scenarios_name_the_file_of_the_user() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let text =
        "scenarios:\n  - id: flow/mine/first\n    says: x\n    steps:\n      - call: read-flwos\n";
    write(folder, "own/flow/mine.yaml", text);
    let (code, _, err) = run(folder, &["run", "--reference", "--scenarios", "own"]);
    assert_eq!(code, 2, "{err}");
    let place = Path::new("own").join("flow").join("mine.yaml");
    assert!(
        err.contains(&format!("--> {}:5:15", place.display())),
        "{err}"
    );
}

#[test]
fn the_rulebook_is_exported_for_the_next_event_version() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let (code, _, err) = run(folder, &["events", "new", "MessageSent"]);
    assert_eq!(code, 2, "{err}");
    let proposed = "`conformant specs export specs` writes the embedded one";
    assert!(err.contains(proposed), "{err}");
    let (code, out, err) = run(folder, &["specs", "export", "specs"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.ends_with("read them with `--specs specs`\n"), "{out}");
    let guide = std::fs::read(folder.join("specs/README.md")).expect("it was written");
    let own = std::fs::read(root().join("specs/README.md")).expect("it is there");
    assert_eq!(guide, own);
    let (code, out, err) = run(folder, &["events", "new", "MessageSent"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("events/MessageSent/5.yaml is a copy"), "{out}");
    // Nothing is overwritten.
    let (code, _, err) = run(folder, &["specs", "export", "specs"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("specs exists and is kept"), "{err}");
    assert!(folder.join("specs/events/MessageSent/5.yaml").is_file());
}

#[test]
fn explain_prints_cited_sentences_of_the_documents_of_the_user() {
    const RULE: &str = "flow/read-executions/most-recent-first";
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let (_, out, _) = run(folder, &["explain", RULE]);
    assert!(!out.contains("line 86   "), "{out}");
    assert!(
        out.contains("  document   D3 is \"Flow Service Specification\"\n"),
        "{out}"
    );

    // A document whose line 86 is another one than that of the rulebook.
    let mut text = "# Flow Service Specification\n## Endpoints\n".to_owned();
    text += &"\n".repeat(83);
    text += "An invented sentence. And another one.\n";
    write(folder, "documents/three.txt", &text);
    write(folder, "conformant.yaml", "documents: documents\n");
    let (code, out, err) = run(folder, &["explain", RULE]);
    assert_eq!(code, 0, "{err}");
    let differs = "  line 86    it differs from the document that the rulebook cites; see `conformant trace`\n";
    assert!(out.contains(differs), "{out}");

    // With a lock that knows it, the cited sentence is printed.
    let (code, _, err) = run(folder, &["specs", "export", "own"]);
    assert_eq!(code, 0, "{err}");
    let units = trace::units("D3".parse().expect("an id"), &text);
    let lock = format!(
        "D3 86.1 {} rules {RULE}\nD3 86.2 {} narrative\n",
        units[0].hash, units[1].hash
    );
    write(folder, "own/documents.lock", &lock);
    let (code, out, err) = run(folder, &["explain", RULE, "--specs", "own"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("  line 86    An invented sentence.\n"),
        "{out}"
    );

    let (_, out, _) = run(folder, &["explain", "auth/user-create/user/id"]);
    assert!(
        out.contains("  documents  "),
        "a missing document is named: {out}"
    );
}

#[test]
fn an_unreachable_or_unauthorized_target_is_the_last_line_and_the_exit_code() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let folder = folder.path();
    let served = Served::start(folder, &[]);
    let flow = format!("flow={}/flow", served.url);
    let unreachable = "error: flow cannot be reached at http://127.0.0.1:9: ";
    for (arguments, expected) in [
        (
            &["run", "--target", "flow=http://127.0.0.1:9"][..],
            unreachable,
        ),
        (
            &["run", "--target", &flow],
            "error: flow answers nothing but 401 and 403",
        ),
        (
            &[
                "explore",
                "--budget",
                "5",
                "--target",
                "flow=http://127.0.0.1:9",
            ],
            unreachable,
        ),
        (
            &["explore", "--budget", "5", "--target", &flow],
            "error: flow at ",
        ),
    ] {
        let (code, out, err) = run(folder, arguments);
        assert_eq!(code, 3, "{arguments:?} {out}{err}");
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with(expected), "{arguments:?} {err}");
        // Nothing was judged, so that nothing fails, and there are no figures.
        assert!(
            !out.contains("FAIL ") && !out.contains("detection "),
            "{out}"
        );
        assert!(!out.contains("interrupted"), "{out}");
    }
    let hooks = [
        "run",
        "--target",
        &format!("all={}", served.url),
        "--hooks",
        "http://127.0.0.1:9",
    ];
    let filter = ["--filter", "flow/read-flows/beyond-a-page"];
    let (code, out, err) = run(folder, &[&hooks[..], &filter].concat());
    assert_eq!(code, 3, "{out}{err}");
    let expected = "error: hook create_flow failed, so that its scenarios are inconclusive: ";
    assert_eq!(err.matches(expected).count(), 1, "{err}");
}
