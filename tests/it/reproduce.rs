//! `reproduce`: a finding as a chain that fails with the fault and passes without it.

use crate::program::{Served, is_campaign, run};
use std::path::Path;
use std::process::Command;

/// A run against the reference with that fault; its record is `run.json` in the folder.
fn found(folder: &Path, fault: &str, filter: &str) -> Served {
    let served = Served::start(folder, &["--fault", fault]);
    let (target, control) = (
        format!("all={}", served.url),
        format!("{}/_control", served.url),
    );
    let arguments = [
        "run",
        "--target",
        &target,
        "--hooks",
        &control,
        "--filter",
        filter,
        "--strict",
        "--prove",
        "off",
        "--report",
        "json=run.json",
    ];
    let (code, out, err) = run(folder, &arguments);
    assert_eq!(code, 1, "{fault}: {out}{err}");
    served
}

/// Exit code of the scenario that reproduces a finding, run against a server.
fn exit_code(folder: &Path, served: &Served) -> i32 {
    let (target, control) = (
        format!("all={}", served.url),
        format!("{}/_control", served.url),
    );
    let arguments = [
        "run",
        "--scenarios",
        "again",
        "--filter",
        "*/reproduced/*",
        "--strict",
        "--prove",
        "off",
        "--target",
        &target,
        "--hooks",
        &control,
    ];
    let (code, out, err) = run(folder, &arguments);
    assert!(code == 0 || code == 1, "{out}{err}");
    code
}

/// Findings of an invariant, a list, a schema, a refusal, credentials and a scenario. Each of the scenarios finds its
/// fault without a wait; the campaign runs all scenarios of the topic.
#[test]
fn a_reproduced_finding_fails_on_the_faulty_target_and_passes_on_the_fixed_one() {
    for (fault, topic, scenario) in [
        (
            "chat/webhook-updated-in-every-channel",
            "chat/update-webhook",
            "channel-sid-other",
        ),
        ("flow/page-skips", "flow/read-executions", "beyond-a-page"),
        (
            "flow/meta-page-size-wrong",
            "flow/read-executions",
            "all-optional",
        ),
        (
            "chat/friendly-name-65",
            "chat/create-channel",
            "friendly-name-over-max",
        ),
        (
            "chat/wrong-credentials-accepted",
            "chat/fetch-member",
            "credentials-wrong",
        ),
        (
            "chat/unread-count-all",
            "chat/user-channels",
            "consumed-in-one-channel",
        ),
    ] {
        let scenario = if is_campaign() { "*" } else { scenario };
        let folder = tempfile::tempdir().expect("the temporary folder is writable");
        let folder = folder.path();
        let broken = found(folder, fault, &format!("{topic}/{scenario}"));
        let record = std::fs::read_to_string(folder.join("run.json")).expect("it was written");
        let record: serde_json::Value = serde_json::from_str(&record).expect("it is JSON");
        let rule = record["findings"][0]["rule"].as_str().expect("a rule");
        let (code, file, err) = run(
            folder,
            &["reproduce", "run.json", rule, "--format", "scenario"],
        );
        assert_eq!(code, 0, "{fault}: {err}");
        assert!(!file.contains("expect") || file.contains("rule"), "{file}");
        let service = fault.split('/').next().expect("it has a service");
        std::fs::create_dir_all(folder.join("again").join(service))
            .expect("the temporary folder is writable");
        std::fs::write(folder.join("again").join(service).join("it.yaml"), &file)
            .expect("the temporary folder is writable");
        assert_eq!(
            exit_code(folder, &broken),
            1,
            "{fault} is not found again:\n{file}"
        );
        let fixed = Served::start(folder, &[]);
        assert_eq!(
            exit_code(folder, &fixed),
            0,
            "the scenario of {fault} fails on a target without the fault:\n{file}"
        );
    }
}

/// One by its status, one by its shape, one by a list that is longer than the recorded one and may lag behind.
#[test]
fn a_script_sends_the_chain_and_checks_the_last_response() {
    for (fault, filter) in [
        (
            "chat/wrong-credentials-accepted",
            "chat/fetch-member/credentials-wrong",
        ),
        ("flow/name-null", "flow/read-flows/happy"),
        ("flow/page-skips", "flow/read-flows/beyond-a-page"),
    ] {
        let folder = tempfile::tempdir().expect("the temporary folder is writable");
        let folder = folder.path();
        let broken = found(folder, fault, filter);
        let (target, hooks) = (
            format!("all={}", broken.url),
            format!("{}/_control", broken.url),
        );
        let (code, script, err) = run(
            folder,
            &[
                "reproduce",
                "run.json",
                "1",
                "--target",
                &target,
                "--hooks",
                &hooks,
            ],
        );
        assert_eq!(code, 0, "{err}");
        if fault == "flow/page-skips" {
            for part in [
                "\nwalk '[\"meta\",\"next_page_url\"]'",
                "\nread_again() {",
                "\nhooks='create_flow",
            ] {
                assert!(script.contains(part), "{part} is missing:\n{script}");
            }
        }
        std::fs::write(folder.join("again.sh"), &script).expect("the temporary folder is writable");
        let sent = |served: &Served| {
            let output = Command::new("bash")
                .arg("again.sh")
                .current_dir(folder)
                .env("CHAT_URL", format!("{}/chat", served.url))
                .env("FLOW_URL", format!("{}/flow", served.url))
                .env("CONTROL_URL", format!("{}/_control", served.url))
                .env("CONFORMANT", env!("CARGO_BIN_EXE_conformant"))
                .output();
            output.expect("bash can be started").status.code()
        };
        assert_eq!(sent(&broken), Some(1), "{fault} is not red:\n{script}");
        let mended = Served::start(folder, &[]);
        assert_eq!(sent(&mended), Some(0), "{fault} is not green:\n{script}");
    }
}

/// One run with several defects: a value, texts of any characters, a missing member, a refusal, and a rule of a history.
/// `N` is the number on the console.
#[test]
fn scripts_of_a_red_run_end_with_1_on_the_faulty_target_and_with_0_on_the_fixed_one() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    let faults = [
        ("flow/page-size-default", "flow/read-flows/happy"),
        (
            "flow/parameters-emoji-dropped",
            "flow/create-execution/parameters-rich",
        ),
        ("flow/listed-flow-differs", "flow/flows/listed"),
        (
            "chat/channel-type-private-refused",
            "chat/create-channel/type=private",
        ),
        (
            "chat/wrong-credentials-accepted",
            "chat/fetch-member/credentials-wrong",
        ),
        ("media/temporary-link-missing", "media/upload-media/happy"),
    ];
    let of_server: Vec<&str> = faults
        .iter()
        .flat_map(|(fault, _)| ["--fault", fault])
        .collect();
    let broken = Served::start(folder, &of_server);
    let target = format!("all={}", broken.url);
    let hooks = format!("{}/_control", broken.url);
    let of_target = ["--target", &target, "--hooks", &hooks];
    let filters = faults
        .iter()
        .flat_map(|(_, scenario)| ["--filter", scenario]);
    let mut words = vec!["run", "--prove", "off", "--report", "json=run.json"];
    words.extend(of_target);
    words.extend(filters);
    let (code, console, err) = run(folder, &words);
    assert_eq!(code, 1, "{console}{err}");
    assert!(
        console.contains("conformant reproduce run.json N"),
        "{console}"
    );
    let numbered = |line: &&str| {
        line.strip_prefix("FAIL ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let last_screen = console.rsplit(" by urgency: ").next().unwrap_or_default();
    let defects: Vec<&str> = last_screen.lines().filter(numbered).collect();
    assert!(defects.len() >= 5, "{console}");
    for line in defects {
        let (number, title) = line["FAIL ".len()..].split_once(". ").expect("a number");
        let mut words = vec!["reproduce", "run.json", number];
        words.extend(of_target);
        let (code, script, err) = run(folder, &words);
        assert_eq!(code, 0, "{line}: {err}");
        let (_, seen) = title.split_once(": ").expect("operation and observation");
        let begin: String = seen.chars().take(15).collect();
        assert!(
            script
                .lines()
                .nth(1)
                .is_some_and(|line| line.contains(&begin)),
            "{title} is not the subject of\n{script}"
        );
        assert!(
            script.contains("\n# Expected: ") && script.contains("\n# Actual: "),
            "{script}"
        );
        let is_hidden = |c: char| c == '\u{200d}' || (c.is_control() && c != '\n');
        assert!(!script.contains(is_hidden), "{script}");
        std::fs::write(folder.join("again.sh"), &script).expect("the temporary folder is writable");
        for (faults, expected) in [(of_server.as_slice(), 1), (&[], 0)] {
            let served = Served::start(folder, faults);
            let (code, err) = executed(folder, &served);
            assert_eq!(code, Some(expected), "{line}: {err}\n{script}");
            assert!(expected == 0 || err.contains("The defect shows: "), "{err}");
        }
        // The project's own reader takes the same defect as a scenario.
        let words = ["reproduce", "run.json", number, "--format", "scenario"];
        let (code, file, err) = run(folder, &words);
        assert_eq!(code, 0, "{line}: {err}");
        let id = file.split("- id: ").nth(1).expect("it has a scenario");
        let service = id.split('/').next().unwrap_or_default();
        let below = folder.join("again").join(number).join(service);
        std::fs::create_dir_all(&below).expect("the temporary folder is writable");
        std::fs::write(below.join("it.yaml"), &file).expect("the temporary folder is writable");
        let again = format!("again/{number}");
        let words = [
            "run",
            "--reference",
            "--dry-run",
            "--scenarios",
            &again,
            "--filter",
            "*/reproduced/*",
        ];
        let (code, out, err) = run(folder, &words);
        assert_eq!(code, 0, "{line}: {out}{err}\n{file}");
    }
}

/// Runs `again.sh` against a server: the exit code, and what it prints apart from the response.
fn executed(folder: &Path, served: &Served) -> (Option<i32>, String) {
    let output = Command::new("bash")
        .arg("again.sh")
        .current_dir(folder)
        .env("CHAT_URL", format!("{}/chat", served.url))
        .env("FLOW_URL", format!("{}/flow", served.url))
        .env("MEDIA_URL", format!("{}/media", served.url))
        .env("CONTROL_URL", format!("{}/_control", served.url))
        .env("CONFORMANT", env!("CARGO_BIN_EXE_conformant"))
        .output()
        .expect("bash can be started");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), err)
}

#[test]
fn a_script_without_its_variables_ends_with_2_and_names_them() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    let served = found(folder, "flow/name-null", "flow/read-flows/happy");
    let (code, script, err) = run(folder, &["reproduce", "run.json", "1"]);
    assert_eq!(code, 0, "{err}");
    std::fs::write(folder.join("again.sh"), &script).expect("the temporary folder is writable");
    let (code, err) = executed(folder, &served);
    assert_eq!(code, Some(2), "{err}");
    let expected = "CONFORMANT_FLOW_USERNAME is not set: set it to the user name for flow\n";
    assert_eq!(err, expected);
}

#[test]
fn a_hurl_file_fails_where_the_defect_shows() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    for (fault, filter, expected) in [
        (
            "flow/meta-page-size-wrong",
            "flow/read-flows/happy",
            "jsonpath \"$.meta.page_size\" == 50\n",
        ),
        (
            "flow/name-null",
            "flow/read-flows/happy",
            "# These asserts do not decide whether the defect shows",
        ),
    ] {
        drop(found(folder, fault, filter));
        let (code, file, err) = run(folder, &["reproduce", "run.json", "1", "--format", "hurl"]);
        assert_eq!(code, 0, "{err}");
        assert!(file.contains(expected), "{file}");
        assert_eq!(file.matches("[Asserts]").count(), 1, "{file}");
    }
}

#[test]
fn a_chain_contains_no_responses_and_no_secrets() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    let broken = found(folder, "flow/page-skips", "flow/read-executions/page-urls");
    let record = std::fs::read_to_string(folder.join("run.json")).expect("it was written");
    let sids: Vec<&str> = record
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() == 34 && word.starts_with("FN"))
        .collect();
    assert!(!sids.is_empty(), "{record}");
    for format in ["sh", "hurl", "scenario"] {
        let (code, text, err) = run(folder, &["reproduce", "run.json", "1", "--format", format]);
        assert_eq!(code, 0, "{err}");
        assert!(
            sids.iter().all(|sid| !text.contains(sid)),
            "{format}: {text}"
        );
        assert!(!text.contains("reference-api-secret"), "{format}: {text}");
        let names_it = text.contains("CONFORMANT_FLOW_PASSWORD") || format == "scenario";
        assert!(names_it, "{format}: {text}");
    }
    drop(broken);
}

#[test]
fn irreproducible_findings_are_errors() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    drop(found(
        folder,
        "flow/meta-page-size-wrong",
        "flow/read-executions/all-optional",
    ));
    for (finding, expected) in [
        ("0", "defect 0 does not exist"),
        ("900000", "defect 900000 does not exist"),
        (
            "flow/no-such-rule",
            "has no finding of rule flow/no-such-rule",
        ),
    ] {
        let (code, out, err) = run(folder, &["reproduce", "run.json", finding]);
        assert_eq!(code, 2, "{finding}: {out}{err}");
        assert!(err.contains(expected), "{finding}: {err}");
    }
    let record = std::fs::read_to_string(folder.join("run.json")).expect("it was written");
    let gone = record.replace("\"scenario\": \"flow/", "\"scenario\": \"flow/gone/");
    std::fs::write(folder.join("gone.json"), gone).expect("the temporary folder is writable");
    let (code, _, err) = run(folder, &["reproduce", "gone.json", "1"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("unknown scenario flow/gone/"), "{err}");
    let clean = Served::start(folder, &[]);
    let target = format!("all={}", clean.url);
    let (code, _, err) = run(
        folder,
        &[
            "run",
            "--target",
            &target,
            "--hooks",
            &format!("{}/_control", clean.url),
            "--filter",
            "flow/read-flows/happy",
            "--report",
            "json=clean.json",
        ],
    );
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(folder, &["reproduce", "clean.json", "1"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("that run has no findings"), "{err}");
}

/// The commands that the console prints for a red run against a live target with hooks, callbacks and people.
#[test]
fn each_printed_command_finds_its_finding_again_in_an_empty_folder() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    let faults = [
        "--fault",
        "flow/meta-page-size-wrong",
        "--fault",
        "auth/approval-not-taken",
    ];
    let served = Served::start(folder, &faults);
    let (target, control) = (
        format!("all={}", served.url),
        format!("{}/_control", served.url),
    );
    let mut command = crate::program::conformant(
        folder,
        &[
            "run",
            "--target",
            &target,
            "--filter",
            "flow/read-flows/happy",
            "--filter",
            "auth/approval-requests/approved",
            "--prove",
            "off",
            "--report",
            "json=run.json",
        ],
    );
    // The environment is part of what a command must repeat.
    let output = command.env("CONFORMANT_HOOKS", &control).output();
    let output = output.expect("the program can be started");
    assert_eq!(output.status.code(), Some(1));
    let console = String::from_utf8_lossy(&output.stdout);
    assert!(
        console.starts_with(&format!("target: {}\n", served.url)),
        "{console}"
    );
    let printed: Vec<&str> = console
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("reproduce conformant "))
        .collect();
    assert!(printed.len() > 1, "{console}");
    let elsewhere = tempfile::tempdir().expect("the temporary folder is writable");
    let elsewhere = elsewhere.path();
    for command in printed {
        assert!(!command.contains("reference-api-secret"), "{command}");
        let command = crate::sessions::Session::new("the console", command).arguments;
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.extend(["--report", "json=again.json"]);
        let (code, out, err) = run(elsewhere, &words);
        assert_eq!(code, 1, "{words:?}: {out}{err}");
        let keys = |folder: &Path, name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).expect("it was written");
            let record: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            let findings = record["findings"].as_array().expect("a list").clone();
            let key = |f: &serde_json::Value| {
                ["rule", "scenario", "step", "pointer", "kind"].map(|key| f[key].to_string())
            };
            findings
                .iter()
                .map(key)
                .collect::<std::collections::BTreeSet<_>>()
        };
        let (all, again) = (keys(folder, "run.json"), keys(elsewhere, "again.json"));
        let scenario = words.iter().skip_while(|word| **word != "--filter").nth(1);
        let scenario = format!("\"{}\"", scenario.expect("it has a filter"));
        let expected = all.into_iter().filter(|key| key[1] == scenario).collect();
        assert_eq!(again, expected, "{words:?}");
    }
}

/// The same for a run with a configuration file, a seed, names and settings from the environment.
#[test]
fn printed_commands_of_a_configured_run_find_their_findings_again() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    let faults = [
        "--fault",
        "flow/meta-page-size-wrong",
        "--fault",
        "chat/channel-type-private-refused",
    ];
    let served = Served::start(folder, &faults);
    let url = &served.url;
    let configuration = format!(
        "targets:\n  flow: {{ url: '{url}/flow', username: reference-api-key, password: '${{FLOW_SECRET}}' }}\n  \
         chat: {{ url: '{url}/chat', username: reference-api-key, password: '${{FLOW_SECRET}}' }}\n"
    );
    std::fs::write(folder.join("conformant.yaml"), configuration)
        .expect("the temporary folder is writable");
    let hooks = format!("{url}/_control");
    let words = [
        "run",
        "--hooks",
        &hooks,
        "--seed",
        "7",
        "--names",
        "red",
        "--strict",
        "--prove",
        "off",
        "--filter",
        "flow/read-flows/happy",
        "--filter",
        "chat/create-channel/type=private",
        "--report",
        "json=run.json",
    ];
    let secret = "reference-api-secret";
    let output = crate::program::conformant(folder, &words)
        .env("FLOW_SECRET", secret)
        .output();
    let output = output.expect("the program can be started");
    let console = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{console}");
    assert!(!console.contains(secret), "{console}");
    let lines = console
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("reproduce conformant "));
    let printed: Vec<&str> = lines.collect();
    assert!(printed.len() > 1, "{console}");
    for command in printed {
        for part in ["--hooks ", "--config ", "--seed 7", "--strict"] {
            assert!(command.contains(part), "{part} is missing in {command}");
        }
        let command = crate::sessions::Session::new("the console", command).arguments;
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.extend(["--report", "json=again.json"]);
        let again = crate::program::conformant(folder, &words)
            .env("FLOW_SECRET", secret)
            .output();
        let again = again.expect("the program can be started");
        assert_eq!(again.status.code(), Some(1), "{words:?}");
        let scenario = words.iter().skip_while(|word| **word != "--filter").nth(1);
        let rules = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).expect("it was written");
            let record: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            let findings = record["findings"].as_array().expect("a list").clone();
            let of_scenario = findings
                .into_iter()
                .filter(|f| f["scenario"].as_str() == scenario.copied());
            of_scenario
                .map(|f| f["rule"].to_string())
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(rules("again.json"), rules("run.json"), "{words:?}");
        assert!(!rules("again.json").is_empty(), "{words:?}");
    }
}

#[test]
fn a_callback_that_did_not_come_is_expected_after_the_request_before_it() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = folder.path();
    let served = Served::start(folder, &["--fault", "chat/webhook-silent"]);
    let (target, control) = (
        format!("all={}", served.url),
        format!("{}/_control", served.url),
    );
    std::fs::write(folder.join("conformant.yaml"), "limits: { callback: 1s }\n")
        .expect("the temporary folder is writable");
    let (code, out, err) = run(
        folder,
        &[
            "run",
            "--target",
            &target,
            "--hooks",
            &control,
            "--filter",
            "chat/callbacks/after-an-update",
            "--prove",
            "off",
        ],
    );
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains(": no callback came within 1s, expected at least 1\n"),
        "{out}"
    );
    assert!(!out.contains("caused by"), "{out}");
    let after = out
        .split("  expected after ")
        .nth(1)
        .expect("it is printed");
    let request = after.split("->").next().unwrap_or_default().trim();
    // The set-up creates a message after the update of the webhook.
    assert!(
        request.starts_with("POST") && request.ends_with("/Messages"),
        "{request}"
    );
}
