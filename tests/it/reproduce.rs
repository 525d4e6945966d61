//! `reproduce`: a finding as a chain that fails with the fault and passes without it.

use crate::program::{Folder, Served, ended, is_campaign, one_in};
use crate::sessions::words;
use std::collections::BTreeSet;
use std::process::Command;

/// A run against the reference with that fault; its record is `run.json` in the folder.
fn found(folder: &Folder, fault: &str, filter: &str) -> Served {
    let served = Served::start(folder, &["--fault", fault]);
    let options = format!(
        "{} --strict --prove off --report json=run.json",
        served.options()
    );
    folder.run(1, &format!("run {options} --filter {filter}"));
    served
}

/// Exit code of the scenario that reproduces a finding, run against a server.
fn exit_code(folder: &Folder, served: &Served) -> i32 {
    let selection = "--scenarios again --filter */reproduced/* --strict --prove off";
    let (code, out, err) = folder.output(&format!("run {selection} {}", served.options()));
    assert!(code == 0 || code == 1, "{out}{err}");
    code
}

/// Findings of an invariant, a list, a schema, a refusal, credentials and a scenario. Each of the scenarios finds its
/// fault without a wait; the campaign runs all scenarios of the topic.
#[test]
fn a_reproduced_finding_fails_on_the_faulty_target_and_passes_on_the_fixed_one() {
    let rows = vec![
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
    ];
    for (fault, topic, scenario) in one_in(6, rows) {
        let scenario = if is_campaign() { "*" } else { scenario };
        let folder = Folder::new();
        let broken = found(&folder, fault, &format!("{topic}/{scenario}"));
        let record: serde_json::Value = folder.json("run.json");
        let rule = record["findings"][0]["rule"].as_str().expect("a rule");
        let line = format!("reproduce run.json {rule} --format scenario");
        let (file, note) = folder.run(0, &line);
        let again = format!("conformant run {} ", broken.options());
        assert!(note.contains(&again), "{again} is missing: {note}");
        assert!(!file.contains("expect") || file.contains("rule"), "{file}");
        let service = fault.split('/').next().expect("it has a service");
        folder.write(&format!("again/{service}/it.yaml"), &file);
        assert_eq!(
            exit_code(&folder, &broken),
            1,
            "{fault} is not found again:\n{file}"
        );
        let fixed = Served::start(&folder, &[]);
        assert_eq!(
            exit_code(&folder, &fixed),
            0,
            "the scenario of {fault} fails on a target without the fault:\n{file}"
        );
    }
}

/// One by its status, one by its shape, one by a list that is longer than the recorded one and may lag behind.
#[test]
fn a_script_sends_the_chain_and_checks_the_last_response() {
    let rows = vec![
        (
            "chat/wrong-credentials-accepted",
            "chat/fetch-member/credentials-wrong",
        ),
        ("flow/name-null", "flow/read-flows/happy"),
        ("flow/page-skips", "flow/read-flows/beyond-a-page"),
    ];
    for (fault, filter) in one_in(3, rows) {
        let folder = Folder::new();
        let broken = found(&folder, fault, filter);
        let options = broken.options();
        let (script, _) = folder.run(0, &format!("reproduce run.json 1 {options}"));
        if fault == "flow/page-skips" {
            for part in [
                "\nwalk '[\"meta\",\"next_page_url\"]'",
                "\nread_again() {",
                "\nhooks='create_flow",
            ] {
                assert!(script.contains(part), "{part} is missing:\n{script}");
            }
        }
        folder.write("again.sh", &script);
        let (code, _) = executed(&folder, &broken);
        assert_eq!(code, 1, "{fault} is not red:\n{script}");
        let mended = Served::start(&folder, &[]);
        let (code, _) = executed(&folder, &mended);
        assert_eq!(code, 0, "{fault} is not green:\n{script}");
        let (file, _) = folder.run(0, "reproduce run.json 1 --format hurl");
        let control = format!("# --variable control_url is '{}/_control'\n", broken.url);
        assert!(
            !file.contains("{{control_url}}") || file.contains(&control),
            "{file}"
        );
        // A first request that the target refuses.
        folder.write("again.sh", script.replace("\ndue\n", "\nstatus=409\ndue\n"));
        let (code, err) = executed(&folder, &mended);
        assert!(
            code == 3 || !script.contains("\ndue\n"),
            "{code}: {err}\n{script}"
        );
    }
}

/// One run with several defects: a value, texts of any characters, a missing member, a refusal, and a rule of a history.
/// `N` is the number on the console.
#[test]
fn scripts_of_a_red_run_end_with_1_on_the_faulty_target_and_with_0_on_the_fixed_one() {
    let folder = Folder::new();
    let faults = [
        ("flow/page-size-default", "flow/read-flows/happy"),
        (
            "flow/parameters-emoji-dropped",
            "flow/create-execution/parameters-rich",
        ),
        ("flow/listed-flow-differs", "flow/flows/listed"),
        // A fixed target refuses what the faulty one applies in full: once in requests, once as a scenario.
        (
            "chat/channel-friendly-name-unbounded",
            "chat/create-channel/friendly-name-over-max",
        ),
        (
            "chat/retry-count-unbounded",
            "chat/create-webhook/configuration-retry-count-over-max",
        ),
        // A role of another service may be refused, and a fixed target does so.
        (
            "chat/user-foreign-role",
            "chat/create-user/role-sid-elsewhere",
        ),
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
    let broken = Served::start(&folder, &of_server);
    let options = broken.options();
    let filters = faults.map(|(_, scenario)| format!(" --filter {scenario}"));
    let filters = filters.concat();
    let line = format!("run --prove off --report json=run.json {options}{filters}");
    let (console, _) = folder.run(1, &line);
    assert!(
        console.contains("conformant reproduce run.json N"),
        "{console}"
    );
    let defects: Vec<&str> = console.lines().filter(|line| is_numbered(line)).collect();
    assert!(defects.len() >= 5, "{console}");
    for line in one_in(6, defects) {
        let (number, title) = line["FAIL ".len()..].split_once(". ").expect("a number");
        let (script, _) = folder.run(0, &format!("reproduce run.json {number} {options}"));
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
        folder.write("again.sh", &script);
        for (faults, expected) in [(of_server.as_slice(), 1), (&[], 0)] {
            let served = Served::start(&folder, faults);
            let (code, err) = executed(&folder, &served);
            assert_eq!(code, expected, "{line}: {err}\n{script}");
            assert!(expected == 0 || err.contains("The defect shows: "), "{err}");
        }
        // The project's own reader takes the same defect as a scenario.
        let (file, _) = folder.run(0, &format!("reproduce run.json {number} --format scenario"));
        let id = file.split("- id: ").nth(1).expect("it has a scenario");
        let service = id.split('/').next().unwrap_or_default();
        let again = format!("again/{number}");
        folder.write(&format!("{again}/{service}/it.yaml"), &file);
        let line = format!("run --reference --dry-run --scenarios {again} --filter */reproduced/*");
        folder.run(0, &line);
    }
}

/// The hooks of the reference gave the run its credentials, and give them to the script.
#[test]
fn a_script_for_a_target_of_the_configuration_has_the_credentials_of_the_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/page-size-default"]);
    let target = format!("targets:\n  flow: {{ url: '{}/flow' }}\n", served.url);
    folder.write("conformant.yaml", target);
    let hooks = format!("--hooks {}/_control", served.url);
    let filter = "--prove off --filter flow/read-flows/happy";
    folder.run(1, &format!("run {hooks} {filter} --report json=run.json"));
    let (script, _) = folder.run(0, "reproduce run.json 1");
    folder.write("again.sh", &script);
    let (code, err) = executed(&folder, &served);
    assert_eq!(code, 1, "{err}\n{script}");
}

/// Whatever a run finds, no script blames a target without the fault, and each command that a script prints can be run.
#[test]
fn no_script_of_a_red_run_blames_a_correct_target() {
    let rows: Vec<(&[&str], &[&str])> = vec![
        // A name that the run sent, and that the script does not.
        (
            &["chat/channel-friendly-name-ignored"],
            &["chat/create-channel/optional-friendly-name"],
        ),
        (
            &["chat/message-body-ignored"],
            &["chat/create-message/optional-body"],
        ),
        // `equals: null`.
        (
            &["chat/message-last-updated-by-ignored"],
            &[
                "chat/messages/last-updated-by",
                "chat/create-message/optional-last-updated-by",
            ],
        ),
        // A correct target refuses the request whose response shows the value.
        (
            &["chat/unique-name-not-unique", "chat/channel-type-ignored"],
            &["chat/channels/refused-namesake"],
        ),
        (
            &["flow/listed-step-differs", "flow/page-size-default"],
            &["flow/read-steps/happy", "flow/read-flows/happy"],
        ),
        (&["media/temporary-link-missing"], &["media/upload-media/*"]),
    ];
    let clean_folder = Folder::new();
    let clean = Served::start(&clean_folder, &[]);
    for (faults, filters) in one_in(6, rows) {
        let folder = Folder::new();
        let of_server: Vec<&str> = faults.iter().flat_map(|f| ["--fault", f]).collect();
        let broken = Served::start(&folder, &of_server);
        let options = broken.options();
        let filters: String = filters.iter().map(|f| format!(" --filter {f}")).collect();
        let line = format!("run --prove off --report json=run.json {options}{filters}");
        let (console, _) = folder.run(1, &line);
        let defects = console.lines().filter(|line| is_numbered(line)).count();
        assert!(defects > 0, "{console}");
        for number in 1..=defects {
            let (script, _) = folder.run(0, &format!("reproduce run.json {number} {options}"));
            folder.write("again.sh", &script);
            let (code, err) = executed(&folder, &clean);
            assert!(
                code == 0 || code == 4,
                "{faults:?}: {code}: {err}\n{script}"
            );
            let (code, err) = executed(&folder, &broken);
            assert!(
                code == 1 || code == 4,
                "{faults:?}: {code}: {err}\n{script}"
            );
            let Some((_, commands)) = err.split_once("let conformant judge it:\n") else {
                continue;
            };
            let program = env!("CARGO_BIN_EXE_conformant");
            let commands = commands.replace("conformant ", &format!("{program} "));
            let mut bash = Command::new("bash");
            bash.args(["-c", &commands]).current_dir(&*folder);
            let (code, out, err) = ended(&mut bash);
            assert_eq!(code, 1, "{faults:?}: {commands}\n{out}{err}");
        }
    }
}

/// Whether a line of the console begins a defect.
fn is_numbered(line: &str) -> bool {
    line.strip_prefix("FAIL ")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Runs `again.sh` against a server: the exit code, and what it prints apart from the response.
fn executed(folder: &Folder, served: &Served) -> (i32, String) {
    let (code, _, err) = ended(&mut script_of(folder, served));
    (code, err)
}

/// The response with the defect is XML, in which the script does not find the id that the next request needs.
#[test]
fn a_script_judges_the_response_that_lacks_what_it_needs() {
    let folder = Folder::new();
    let scenario = "auth/approval-requests/answered-in-both-formats";
    let served = found(&folder, "auth/json-is-xml", scenario);
    let run = folder.json::<serde_json::Value>("run.json");
    let body = run["exchanges"][0]["response_body"].as_str();
    assert!(
        body.is_some_and(|body| body.starts_with("<?xml")),
        "{body:?}"
    );
    let (script, _) = folder.run(0, "reproduce run.json 1");
    folder.write("again.sh", script);
    let (code, err) = executed(&folder, &served);
    assert_eq!(code, 1, "{err}");
    let (code, err) = executed(&folder, &Served::start(&folder, &[]));
    assert_eq!(code, 0, "{err}");
}

/// The reference makes the flow of such a script by hooks; the run found one in the list.
#[test]
fn a_script_of_a_run_without_hooks_calls_none() {
    let folder = Folder::new();
    let faulty = Served::start(&folder, &["--fault", "flow/created-ended"]);
    let clean = Served::start(&folder, &[]);
    let configuration = |url: &str| {
        let text = format!(
            "targets:\n  flow:\n    url: {url}/flow\n    username: reference-api-key\n    password: '${{PW}}'\n    \
             to: '+12025550143'\n    from: '+12025550100'\n"
        );
        folder.write("conformant.yaml", text);
    };
    let with_password = |command: &mut Command, expected: i32| {
        let (code, out, err) = ended(command.env("PW", "reference-api-secret"));
        assert_eq!(code, expected, "{out}{err}");
        out
    };
    configuration(&faulty.url);
    let line = "run -q --prove off --filter flow/create-execution/happy --report json=run.json";
    with_password(&mut folder.command(line), 1);
    let script = with_password(&mut folder.command("reproduce run.json 1"), 0);
    folder.write("again.sh", script);
    for (url, expected) in [(&faulty.url, 1), (&clean.url, 0)] {
        configuration(url);
        let mut bash = Command::new("bash");
        bash.arg("again.sh").current_dir(&*folder);
        bash.env("CONFORMANT", env!("CARGO_BIN_EXE_conformant"));
        bash.env("FLOW_URL", format!("{url}/flow"));
        with_password(&mut bash, expected);
    }
}

fn script_of(folder: &Folder, served: &Served) -> Command {
    let mut bash = Command::new("bash");
    bash.arg("again.sh").current_dir(&**folder);
    for service in ["auth", "chat", "flow", "media"] {
        let variable = format!("{}_URL", service.to_uppercase());
        bash.env(variable, format!("{}/{service}", served.url));
    }
    bash.env("CONTROL_URL", format!("{}/_control", served.url));
    bash.env("CONFORMANT", env!("CARGO_BIN_EXE_conformant"));
    bash
}

/// Bytes of a file, a filter that later pages lose, a link to an address without an operation, a callback that does not come,
/// and a refusal whose counterpart ends the resource.
#[test]
fn a_script_runs_the_scenario_where_exchanges_do_not_decide() {
    let rows = vec![
        ("media/last-line-end-lost", "media/media/awkward-content"),
        (
            "chat/later-page-forgets-filters",
            "chat/read-bindings/beyond-a-page",
        ),
        ("flow/executions-link-wrong", "flow/flows/url"),
        ("chat/webhook-filters-ignored", "chat/callbacks/filters"),
        (
            "flow/credentials-not-needed",
            "flow/delete-flow/credentials-near",
        ),
    ];
    for (fault, filter) in one_in(5, rows) {
        let folder = Folder::new();
        let broken = found(&folder, fault, filter);
        let (script, _) = folder.run(0, "reproduce run.json 1");
        folder.write("again.sh", &script);
        let (code, err) = executed(&folder, &broken);
        assert_eq!(code, 1, "{fault}: {err}\n{script}");
        let (code, err) = executed(&folder, &Served::start(&folder, &[]));
        assert_eq!(code, 0, "{fault}: {err}\n{script}");
    }
}

/// What is compared with the last response is left out, or changes when the list is read a second time.
#[test]
fn a_script_runs_the_whole_scenario_before_it_ends_with_0() {
    let rows = vec![
        ("flow/delete-by-name", "flow/delete-flow/others-stay"),
        ("chat/page-stops-early", "chat/bindings/both-filters"),
    ];
    for (fault, filter) in one_in(2, rows) {
        let folder = Folder::new();
        let broken = found(&folder, fault, filter);
        let (script, _) = folder.run(0, "reproduce run.json 1");
        folder.write("again.sh", &script);
        let (code, err) = executed(&folder, &broken);
        assert_eq!(code, 1, "{fault}: {err}\n{script}");
        assert!(err.contains("(in the whole scenario)"), "{err}");
        let (code, err) = executed(&folder, &Served::start(&folder, &[]));
        assert_eq!(code, 0, "{fault}: {err}\n{script}");
    }
}

#[test]
fn a_script_without_its_variables_ends_with_2_and_names_them() {
    let folder = Folder::new();
    let served = found(&folder, "flow/name-null", "flow/read-flows/happy");
    let (script, _) = folder.run(0, "reproduce run.json 1");
    folder.write("again.sh", &script);
    let (code, err) = executed(&folder, &served);
    assert_eq!(code, 1, "the hooks are those of the reference: {err}");
    let mut without_program = script_of(&folder, &served);
    let (code, _, err) = ended(without_program.env("CONFORMANT", "./missing"));
    assert!(
        code == 2 && err.starts_with("CONFORMANT is not set: "),
        "nothing is sent: {code}: {err}"
    );
    // Hooks that do not answer could be those of any target.
    drop(served);
    let (script, _) = folder.run(0, "reproduce run.json 1");
    folder.write("again.sh", &script);
    let (code, err) = executed(
        &folder,
        &Served::start(&folder, &["--fault", "flow/name-null"]),
    );
    assert_eq!(code, 2, "{err}");
    let expected = "CONFORMANT_FLOW_USERNAME is not set: set it to the user name for flow\n\
        CONFORMANT_FLOW_PASSWORD is not set: set it to the password for flow\n";
    assert_eq!(err, expected);
}

#[test]
fn a_script_is_written_without_the_secrets_that_it_asks_for() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    let file = format!(
        "targets: {{ flow: {{ url: '{}/flow', username: '${{FLOW_KEY}}', password: '${{FLOW_SECRET}}' }} }}\n",
        served.url
    );
    folder.write("conformant.yaml", &file);
    let secrets = [
        ("FLOW_KEY", "reference-api-key"),
        ("FLOW_SECRET", "reference-api-secret"),
    ];
    let mut run = folder.command("run --filter flow/read-flows/happy --report json=run.json");
    let (code, out, err) = ended(run.envs(secrets));
    assert_eq!(code, 1, "{out}{err}");
    let (script, _) = folder.run(0, "reproduce run.json 1");
    folder.write("again.sh", &script);
    let (code, err) = executed(&folder, &served);
    assert_eq!(
        (code, err.as_str()),
        (
            2,
            "FLOW_KEY is not set: set it to the value that the configuration of flow uses\n\
             FLOW_SECRET is not set: set it to the value that the configuration of flow uses\n"
        )
    );
    let (code, out, err) = ended(script_of(&folder, &served).envs(secrets));
    assert_eq!(code, 1, "{out}{err}");
}

#[test]
fn a_hurl_file_fails_where_the_defect_shows() {
    let folder = Folder::new();
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
        drop(found(&folder, fault, filter));
        let (file, _) = folder.run(0, "reproduce run.json 1 --format hurl");
        assert!(file.contains(expected), "{file}");
        assert_eq!(file.matches("[Asserts]").count(), 1, "{file}");
    }
}

#[test]
fn a_chain_contains_no_responses_and_no_secrets() {
    let folder = Folder::new();
    // Once it is gone, its hooks do not say that it is the reference, whose credentials are public.
    drop(found(
        &folder,
        "flow/page-skips",
        "flow/read-executions/page-urls",
    ));
    let record = folder.read("run.json");
    let sids: Vec<&str> = record
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() == 34 && word.starts_with("FN"))
        .collect();
    assert!(!sids.is_empty(), "{record}");
    for format in ["sh", "hurl", "scenario"] {
        let (text, _) = folder.run(0, &format!("reproduce run.json 1 --format {format}"));
        assert!(
            sids.iter().all(|sid| !text.contains(sid)),
            "{format}: {text}"
        );
        assert!(!text.contains("reference-api-secret"), "{format}: {text}");
        let names_it = text.contains("CONFORMANT_FLOW_PASSWORD") || format == "scenario";
        assert!(names_it, "{format}: {text}");
    }
}

#[test]
fn irreproducible_findings_are_errors() {
    let folder = Folder::new();
    drop(found(
        &folder,
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
        let (_, err) = folder.run(2, &format!("reproduce run.json {finding}"));
        assert!(err.contains(expected), "{finding}: {err}");
    }
    let record = folder.read("run.json");
    let gone = record.replace("\"scenario\": \"flow/", "\"scenario\": \"flow/gone/");
    folder.write("gone.json", gone);
    let (_, err) = folder.run(2, "reproduce gone.json 1");
    assert!(err.contains("unknown scenario flow/gone/"), "{err}");
    let clean = Served::start(&folder, &[]);
    let selection = "--filter flow/read-flows/happy --report json=clean.json";
    folder.run(0, &format!("run {} {selection}", clean.options()));
    let (_, err) = folder.run(2, "reproduce clean.json 1");
    assert!(err.contains("that run has no findings"), "{err}");
}

/// The commands that the console prints for a red run against a live target with hooks, callbacks and people.
#[test]
fn each_printed_command_finds_its_finding_again_in_an_empty_folder() {
    let folder = Folder::new();
    let faults = ["flow/meta-page-size-wrong", "auth/approval-not-taken"];
    let served = Served::start(&folder, &faults.map(|fault| ["--fault", fault]).concat());
    let filters = "--filter flow/read-flows/happy --filter auth/approval-requests/approved";
    let options = format!(
        "--target all={} --prove off --report json=run.json",
        served.url
    );
    let mut command = folder.command(&format!("run {options} {filters}"));
    // The environment is part of what a command must repeat.
    let (code, console, err) =
        ended(command.env("CONFORMANT_HOOKS", format!("{}/_control", served.url)));
    assert_eq!(code, 1, "{console}{err}");
    assert!(
        console.starts_with(&format!("target: {}\n", served.url)),
        "{console}"
    );
    let again = &|command: &str| {
        assert!(!command.contains("reference-api-secret"), "{command}");
        let elsewhere = Folder::new();
        elsewhere.run(1, &format!("{command} --report json=again.json"));
        let (all, again) = (
            found_in(&folder, "run.json"),
            found_in(&elsewhere, "again.json"),
        );
        let scenario = format!("\"{}\"", filter_of(command));
        let expected = all.into_iter().filter(|key| key[1] == scenario).collect();
        assert_eq!(again, expected, "{command}");
    };
    // They wait for callbacks, all at the same time.
    std::thread::scope(|scope| {
        for command in printed_commands(&console) {
            scope.spawn(move || again(command));
        }
    });
}

/// The commands by which the console reproduces findings.
fn printed_commands(console: &str) -> Vec<&str> {
    let lines = console.lines().map(str::trim_start);
    let commands = lines.filter_map(|line| line.strip_prefix("run again conformant "));
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() > 1, "{console}");
    commands
}

/// The scenario that a command runs.
fn filter_of(command: &str) -> String {
    let mut words = words(command).into_iter();
    words.find(|word| word == "--filter");
    words.next().expect("it has a filter")
}

/// The findings of a record: rule, scenario, step, pointer and kind.
fn found_in(folder: &Folder, record: &str) -> BTreeSet<[String; 5]> {
    let record: serde_json::Value = folder.json(record);
    let findings = record["findings"].as_array().expect("a list").iter();
    let keys = ["rule", "scenario", "step", "pointer", "kind"];
    findings
        .map(|f| keys.map(|key| f[key].to_string()))
        .collect()
}

/// The same for a run with a configuration file, a seed, names and settings from the environment.
#[test]
fn printed_commands_of_a_configured_run_find_their_findings_again() {
    let folder = Folder::new();
    let faults = [
        "flow/meta-page-size-wrong",
        "chat/channel-type-private-refused",
    ];
    let served = Served::start(&folder, &faults.map(|fault| ["--fault", fault]).concat());
    let url = &served.url;
    let configuration = format!(
        "targets:\n  flow: {{ url: '{url}/flow', username: reference-api-key, password: '${{FLOW_SECRET}}' }}\n  \
         chat: {{ url: '{url}/chat', username: reference-api-key, password: '${{FLOW_SECRET}}' }}\n"
    );
    folder.write("conformant.yaml", configuration);
    let options = format!("--hooks {url}/_control --seed 7 --names red --strict --prove off");
    let filters = "--filter flow/read-flows/happy --filter chat/create-channel/type=private";
    let secret = "reference-api-secret";
    let run = |line: &str| {
        let (code, console, err) = ended(folder.command(line).env("FLOW_SECRET", secret));
        assert_eq!(code, 1, "{line}: {console}{err}");
        console
    };
    let console = run(&format!("run {options} {filters} --report json=run.json"));
    assert!(!console.contains(secret), "{console}");
    for command in printed_commands(&console) {
        for part in ["--hooks ", "--config ", "--seed 7", "--strict"] {
            assert!(command.contains(part), "{part} is missing in {command}");
        }
        run(&format!("{command} --report json=again.json"));
        let scenario = format!("\"{}\"", filter_of(command));
        let rules = |record: &str| {
            let found = found_in(&folder, record).into_iter();
            let of_scenario = found.filter(|key| key[1] == scenario);
            of_scenario.map(|[rule, ..]| rule).collect::<BTreeSet<_>>()
        };
        assert_eq!(rules("again.json"), rules("run.json"), "{command}");
        assert!(!rules("again.json").is_empty(), "{command}");
    }
}

#[test]
fn a_callback_that_did_not_come_is_expected_after_the_request_before_it() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "chat/webhook-silent"]);
    let options = served.options();
    folder.write("conformant.yaml", "limits: { callback: 1s }\n");
    let filter = "--filter chat/callbacks/after-an-update --prove off";
    let (out, _) = folder.run(1, &format!("run {options} {filter}"));
    assert!(
        out.contains(": no callback came within 1s, expected at least 1\n"),
        "{out}"
    );
    assert!(!out.contains("caused by"), "{out}");
    let after = out
        .split("  request before ")
        .nth(1)
        .expect("it is printed");
    let request = after.split("->").next().unwrap_or_default().trim();
    // The set-up creates a message after the update of the webhook.
    assert!(
        request.starts_with("POST") && request.ends_with("/Messages"),
        "{request}"
    );
}

/// One needs a registration token, one a callback receiver, and one the time of an earlier response.
#[test]
fn a_defect_that_requests_cannot_express_is_a_script_that_runs_its_scenario() {
    let rows = vec![
        ("auth/token-good-refused", "auth/accounts/registration"),
        ("chat/webhook-silent", "chat/callbacks/after-an-update"),
        (
            "flow/later-page-forgets-filters",
            "flow/date-filters/on-later-pages",
        ),
    ];
    for (fault, filter) in one_in(3, rows) {
        let folder = Folder::new();
        folder.write("conformant.yaml", "limits: { callback: 1s }\n");
        let broken = found(&folder, fault, filter);
        let (script, note) = folder.run(0, "reproduce run.json 1");
        assert!(
            note.contains("conformant runs them as a scenario"),
            "{note}"
        );
        // The scenario is the one of the format `scenario`, byte for byte.
        let (scenario, _) = folder.run(0, "reproduce run.json 1 --format scenario");
        assert!(
            script.contains(&format!("<<'SCENARIO'\n{scenario}SCENARIO\n")),
            "{script}"
        );
        folder.write("again.sh", &script);
        let (code, err) = executed(&folder, &broken);
        assert!(
            code == 1 && err.contains("The defect shows: "),
            "{code}: {err}"
        );
        let fixed = Served::start(&folder, &[]);
        let (code, err) = executed(&folder, &fixed);
        assert!(code == 0 && err.contains("does not show"), "{code}: {err}");
        let without = |name: &str, value: &str| {
            let mut bash = script_of(&folder, &fixed);
            ended(bash.env(name, value))
        };
        for (name, value, expected) in [
            (
                "CONFORMANT",
                "./missing",
                "CONFORMANT is not set: set it to the path",
            ),
            ("CONTROL_URL", "", "CONTROL_URL is not, so that the hooks"),
        ] {
            let (code, _, err) = without(name, value);
            assert!(code == 2 && err.contains(expected), "{name} {code}: {err}");
        }
        let (text, refused) = folder.run(2, "reproduce run.json 1 --format hurl");
        assert_eq!(text, "", "a file of it would not be for hurl");
        let commands: Vec<&str> = refused.lines().skip(1).collect();
        let [write, run] = commands.as_slice() else {
            panic!("two commands: {refused}");
        };
        let expected = "conformant reproduce run.json 1 --format scenario >reproduced/";
        assert!(write.contains(expected), "{write}");
        assert!(run.contains("--scenarios reproduced "), "{run}");
    }
}

#[test]
fn the_folder_of_scenarios_is_taken_from_the_record() {
    let folder = Folder::new();
    let scenario =
        "scenarios:\n  - id: flow/own/a\n    says: x.\n    steps:\n      - call: read-flows\n";
    folder.write("own/flow/a.yaml", scenario);
    let filter = "flow/own/a --scenarios own";
    drop(found(&folder, "flow/meta-page-size-wrong", filter));
    folder.run(0, "reproduce run.json 1");
    std::fs::remove_dir_all(folder.join("own")).expect("it can be removed");
    let (_, err) = folder.run(2, "reproduce run.json 1");
    let expected = "unknown scenario flow/own/a: ";
    assert!(err.contains(expected), "{err}");
    assert!(err.contains("the run had --scenarios own"), "{err}");
}
