//! Hooks and leases that misbehave: each is named, nothing legal is flagged.

use crate::hostile::pages::{answer, ok};
use crate::hostile::target::{Act, Target, keep};
use crate::program::{Folder, Served, one_in};
use conformant_record::RunRecord;

/// Runs one scenario with a hook of its own, and checks exit code and what is printed.
fn check(name: &str, hook: &str, acts: Vec<Act>, limits: &str, expected: (i32, &str)) {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let bench = Target::answering(move |_| acts.clone());
    let url = format!("{}/{hook}", bench.origin());
    let configuration =
        format!("limits: {limits}\nhooks: {{{hook}: {{http: {{url: '{url}'}}}}}}\n");
    folder.write("conformant.yaml", configuration);
    let options = served.options();
    let filter = "auth/registrations/failed-webhook";
    let (code, out, err) = folder.output(&format!(
        "run {options} --filter {filter} --prove off --report json=run.json"
    ));
    assert_eq!(code, expected.0, "{name}: {out}{err}");
    let record: RunRecord = folder.json("run.json");
    assert_eq!(record.findings, [], "{name}: {out}{err}");
    let printed = format!("{out}{err}{}", record.scenarios[0].reason);
    assert!(printed.contains(expected.1), "{name}: {printed}");
    assert!(!bench.asked().is_empty(), "{name}: {printed}");
}

#[test]
fn hooks_that_misbehave_are_named_and_nothing_is_flagged() {
    let html = answer(
        "200 OK",
        "Content-Type: text/html\r\n",
        "<html>log in</html>",
    );
    let conflict = answer("409 Conflict", "", "busy");
    let granted = ok(r#"{"granted": true}"#);
    let twice = [granted.clone(), granted].concat();
    let quick = "{timeout: 2s}";
    let normal = "{timeout: 10s}";
    let rows = vec![
        (
            "late",
            "scan_registration",
            vec![Act::Hold],
            quick,
            (3, "hook scan_registration failed"),
        ),
        (
            "409",
            "scan_registration",
            vec![Act::Send(conflict.clone())],
            normal,
            (3, "status 409: busy"),
        ),
        (
            "HTML",
            "scan_registration",
            vec![Act::Send(html.clone())],
            normal,
            (3, "its result is not JSON"),
        ),
        (
            "lease HTML",
            "lease",
            vec![Act::Send(html)],
            normal,
            (3, "hook lease failed"),
        ),
        (
            "lease 409",
            "lease",
            vec![Act::Send(conflict)],
            normal,
            (3, "hook lease failed"),
        ),
        ("twice", "lease", keep(twice), normal, (0, "passed")),
    ];
    for (name, hook, acts, limits, expected) in one_in(3, rows) {
        check(name, hook, acts, limits, expected);
    }
}

#[test]
fn a_lease_that_is_never_granted_is_named() {
    let refused = keep(ok(r#"{"granted": false}"#));
    let expected = (3, "hook lease: not granted until the run ended");
    check("lease", "lease", refused, "{run: 6s}", expected);
}

#[test]
fn a_wrong_path_of_the_user_status_is_named_and_not_flagged() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let path = "/nowhere/{FORMAT}/{AUTH_ID}";
    let configuration = format!("targets: {{auth: {{user_status_path: '{path}'}}}}\n");
    folder.write("conformant.yaml", configuration);
    let options = served.options();
    let filter = "auth/user-status/happy";
    let line = format!("run {options} --filter {filter}");
    let (out, err) = folder.run(4, &line);
    assert!(
        format!("{out}{err}").contains("targets.auth.user_status_path"),
        "{out}{err}"
    );
}
