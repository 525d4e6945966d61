//! Scripts of `reproduce`: the response that decides, the effects of hooks, and further credentials.

use crate::program::{Folder, Served, ended, one_in};
use serde_json::Value;
use std::process::Command;

/// A script of `reproduce` for the first finding of a rule.
struct Script {
    folder: Folder,
    text: String,
}

impl Script {
    /// Runs a scenario against a server with that fault.
    fn of(fault: &str, scenario: &str, rule: &str) -> (Self, Served) {
        let folder = Folder::new();
        let served = Served::start(&folder, &["--fault", fault]);
        let options = served.options();
        let selection = format!("--filter {scenario} --prove off --report json=run.json");
        folder.run(1, &format!("run {options} {selection}"));
        let record: Value = folder.json("run.json");
        let findings = record["findings"].as_array().expect("a list");
        assert!(findings.iter().any(|f| f["rule"] == rule), "{findings:#?}");
        let (text, _) = folder.run(0, &format!("reproduce run.json {rule} {options}"));
        folder.write("again.sh", &text);
        (Self { folder, text }, served)
    }

    /// Runs the script against a server: the exit code, and what it prints apart from the response.
    fn run(&self, served: &Served) -> (i32, String) {
        let mut bash = Command::new("bash");
        bash.arg("again.sh").current_dir(&*self.folder);
        for service in ["chat", "flow", "media"] {
            let variable = format!("{}_URL", service.to_uppercase());
            bash.env(variable, format!("{}/{service}", served.url));
        }
        bash.env("CONTROL_URL", format!("{}/_control", served.url));
        bash.env("CONFORMANT", env!("CARGO_BIN_EXE_conformant"));
        let (code, _, err) = ended(&mut bash);
        (code, err)
    }

    /// Expects 1 from the server with the fault and 0 from one without.
    fn decides(&self, broken: &Served) {
        let fixed = Served::start(&self.folder, &[]);
        for (served, expected) in [(broken, 1), (&fixed, 0)] {
            let (code, err) = self.run(served);
            assert_eq!(code, expected, "{err}\n{}", self.text);
        }
    }
}

/// Hooks would change the target of the run while the requests go to another one.
#[test]
fn a_script_sent_elsewhere_needs_the_address_of_the_hooks() {
    let rule = "flow/create-execution";
    let scenario = "flow/create-execution/happy";
    let (script, broken) = Script::of("flow/parameters-required", scenario, rule);
    let head = "# To send it elsewhere, set FLOW_URL to the base URL of the service, and CONTROL_URL to that of its hooks.\n";
    assert!(script.text.contains(head), "{}", script.text);
    let other = Served::start(&script.folder, &[]);
    let mut bash = Command::new("bash");
    bash.arg("again.sh").current_dir(&*script.folder);
    bash.env("FLOW_URL", format!("{}/flow", other.url));
    let (code, _, err) = ended(&mut bash);
    let expected = format!(
        "FLOW_URL is set, and CONTROL_URL is not, so that the hooks would change the target of the run ({}/_control): set it to \
         the base URL of the hooks\n",
        broken.url
    );
    assert_eq!(
        (code, err.as_str()),
        (2, expected.as_str()),
        "{}",
        script.text
    );
    script.decides(&broken);
}

/// A defect does not show without the requests before it, nor in a response of another status.
#[test]
fn a_script_with_a_refused_request_does_not_blame_the_target() {
    let rule = "chat/create-channel/friendly-name";
    let scenario = "chat/create-channel/optional-friendly-name";
    let (script, broken) = Script::of("chat/channel-friendly-name-ignored", scenario, rule);
    script.decides(&broken);
    let end = "\ncat \"$answer\"; echo\n";
    let rows = [
        (
            "\ndue\n",
            "\nstatus=409\ndue\n",
            "create-service: status 409",
        ),
        (
            end,
            &format!("\nstatus=409{end}"),
            "create-channel: status 409",
        ),
    ];
    for (place, refused, why) in rows {
        script
            .folder
            .write("again.sh", script.text.replacen(place, refused, 1));
        let (code, err) = script.run(&broken);
        assert!(code == 3 && err.contains(why), "{code}: {err}");
    }
}

/// Where the requests of a scenario do not decide by themselves, its script has `conformant` run it: a walk over pages, and
/// events, which come from hooks only.
#[test]
fn a_script_of_what_requests_do_not_decide_runs_the_scenario() {
    let rows = vec![
        (
            "chat/page-repeats",
            "chat/read-members/walk",
            "chat/read-members/walk",
        ),
        (
            "events/downstream-id-number",
            "events/bulk-send/*",
            "events/message-queued/downstream-id",
        ),
    ];
    for (fault, scenario, rule) in one_in(2, rows) {
        let (script, broken) = Script::of(fault, scenario, rule);
        assert!(script.text.contains("\nrun_scenario "), "{}", script.text);
        script.decides(&broken);
    }
}

/// Functions that a script does not use are left out; each that it uses is there.
#[test]
fn a_script_contains_only_what_it_uses() {
    let rule = "chat/services/channel-members-default";
    let (script, _broken) = Script::of(
        "chat/channel-members-default",
        "chat/bindings/registered",
        rule,
    );
    for unused in [
        "walk() {",
        "pass_time() {",
        "undecided() {",
        "expect_member() {",
    ] {
        assert!(!script.text.contains(unused), "{unused}: {}", script.text);
    }
    for used in [
        "default() {",
        "stop() {",
        "call() {",
        "expect_value() {",
        "absent() {",
    ] {
        assert!(script.text.contains(used), "{used}: {}", script.text);
    }
}

#[test]
fn a_script_asserts_on_the_response_of_the_finding_and_ends_there() {
    let rule = "chat/services/channel-members-default";
    let scenario = "chat/bindings/registered";
    let (script, broken) = Script::of("chat/channel-members-default", scenario, rule);
    assert!(!script.text.contains("register_binding"), "{}", script.text);
    script.decides(&broken);
}

#[test]
fn a_script_counts_the_effect_of_its_hooks() {
    let scenario = "flow/flows/published-alone";
    let (script, broken) = Script::of("flow/publish-takes-all", scenario, "flow/flow/shown-alike");
    script.decides(&broken);
}

#[test]
fn a_script_sends_the_credentials_of_a_second_account() {
    let rule = "flow/read-flows/page-size";
    let scenario = "flow/accounts/flow-kept";
    let (script, broken) = Script::of("flow/page-size-default", scenario, rule);
    assert!(script.text.contains("second-api-key"), "{}", script.text);
    script.decides(&broken);
}

#[test]
fn a_script_judges_what_a_second_account_is_shown() {
    let fault = "flow/other-account-fetches-execution";
    let scenario = "flow/fetch-execution/other-account";
    let (script, broken) = Script::of(fault, scenario, "flow/accounts/not-shown");
    script.decides(&broken);
}

#[test]
fn a_script_composes_half_of_each_pair_of_credentials() {
    let rule = "chat/read-services/credentials";
    let scenario = "chat/read-services/credentials-mixed";
    let (script, broken) = Script::of("chat/halves-of-two-pairs", scenario, rule);
    let expected = "-u \"$CONFORMANT_CHAT_ACCOUNT_SID:$CONFORMANT_CHAT_PASSWORD\"";
    assert!(script.text.contains(expected), "{}", script.text);
    script.decides(&broken);
}
