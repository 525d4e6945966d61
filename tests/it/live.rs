//! A live target: `serve` and `run` as two processes that share only a URL.

use crate::program::{Folder, Served, is_campaign, one_in};
use conformant_record::{Level, RuleResult, RunRecord, Verdict};
use std::io::BufRead as _;

/// A fault that one field shows, and the rule that must report it.
const FAULT: &str = "flow/meta-page-size-wrong";

fn run_line(served: &Served, selection: &str) -> String {
    let prove = if is_campaign() { "rules" } else { "off" };
    let options = served.options();
    format!("run {options} --report json=run.json --prove {prove} {selection}")
}

/// Output and record of a run that must end with this code.
fn judge(served: &Served, folder: &Folder, code: i32, selection: &str) -> (String, RunRecord) {
    let (out, _) = folder.run(code, &run_line(served, selection));
    (out, folder.json("run.json"))
}

#[test]
fn a_broken_target_fails_with_all_details() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", FAULT]);
    let (out, record) = judge(&served, &folder, 1, "--filter flow/read-flows/*");

    let rulebook = conformant_judge::load::shared();
    let finding = record.findings.first().expect("the fault is found");
    let rule = rulebook
        .rules
        .get(&finding.rule)
        .expect("findings name rules");
    let result = record
        .rules
        .iter()
        .find(|r| r.id == rule.id)
        .expect("it is in the report");
    assert!(!result.source.lines.is_empty(), "{result:?}");
    for detail in [
        &rule.id,
        &rule.source.section,
        &finding.operation,
        &finding.pointer,
        &finding.expected,
    ] {
        assert!(!detail.is_empty(), "{finding:?}");
        assert!(
            out.contains(detail.as_str()),
            "the console does not show {detail:?}:\n{out}"
        );
    }
    for line in &rule.source.lines {
        assert!(
            out.contains(&line.to_string()),
            "the console does not show line {line}:\n{out}"
        );
    }
    assert!(
        out.contains(finding.actual.as_str()) && !finding.actual.is_empty(),
        "{finding:?}\n{out}"
    );
    assert!(
        finding.reproduce.starts_with("curl ") && finding.reproduce.contains(&served.url),
        "{finding:?}"
    );
    let secret = conformant_reference::account::AUTH_TOKEN;
    assert!(!out.contains(secret), "the console shows a secret");
    let diff = record.findings.iter().find(|f| !f.diff.is_empty());
    if let Some(finding) = diff {
        assert!(
            finding.diff.contains("\n-") && finding.diff.contains("\n+"),
            "{}",
            finding.diff
        );
    }
}

#[test]
fn timings_include_the_shortest_possible_time() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let (out, record) = judge(&served, &folder, 0, "--filter auth/*callback* --timings");
    let wall = record.wall.expect("time is real");
    let timings = wall.timings.expect("it was asked for");
    assert_eq!(timings.scenarios.len(), record.scenarios.len());
    assert!(
        timings.lower_bound <= wall.seconds + 0.1,
        "{}",
        timings.lower_bound
    );
    let waited = timings.spent.callbacks + timings.spent.time + timings.spent.hooks;
    assert!(waited > 0.0, "{:?}", timings.spent);
    assert!(out.contains(&timings.because), "{out}");
    for scenario in &timings.scenarios {
        let parts = scenario.spent.by_itself() + scenario.spent.turn;
        assert!((parts - scenario.seconds).abs() < 0.05, "{scenario:?}");
    }

    let (_, err) = folder.run(2, "run --timings");
    assert!(err.contains("--target"), "{err}");
}

/// Scenarios that move the target's clock or its callbacks run at the same time as others that depend on both.
///
/// The campaign runs all scenarios, by which every rule is judged.
#[test]
fn a_part_of_a_run_on_the_clean_target_passes_and_the_whole_judges_every_rule() {
    const PARTS: usize = 6;
    /// What a live run leaves open: the list of services is shared, and no mutation breaks the timestamps of devices.
    const UNDECIDED: [&str; 3] = [
        "auth/devices/details-timestamp",
        "chat/create-service/made-once",
        "chat/create-service/refused-leaves-nothing",
    ];
    let folder = Folder::new();
    let people = "people: { new_cellphone: 202-555-01## }\n";
    folder.write("conformant.yaml", people);
    let served = Served::start(&folder, &[]);
    // Waits are real here, and overlap.
    let parts = (1..=PARTS).map(|part| format!("slice:{part}/{PARTS}"));
    let part = one_in(PARTS, parts.collect());
    let selection = match is_campaign() {
        true => "--jobs 32".to_owned(),
        false => format!("--jobs 32 --partition {}", part[0]),
    };
    let (out, record) = judge(&served, &folder, 0, &selection);
    assert!(record.complete && record.findings.is_empty(), "{out}");
    let counts = &record.summary.rules;
    let pass_min = if is_campaign() { 1_000 } else { 300 };
    assert!(
        counts.pass > pass_min,
        "only {} rules were judged",
        counts.pass
    );
    let left_open =
        |rule: &&RuleResult| matches!(rule.verdict, Verdict::NotJudged | Verdict::Inconclusive);
    let mut left_open = record.rules.iter().filter(left_open);
    let is_whole =
        left_open.all(|rule| rule.level == Level::Should || UNDECIDED.contains(&rule.id.as_str()));
    assert!(is_whole || !is_campaign(), "{out}");
    for service in ["auth", "chat", "flow", "media"] {
        assert!(record.targets[service].starts_with(&served.url));
    }

    // The clock has moved by years: a second run reads the time.
    judge(&served, &folder, 0, "--filter auth/tokens/* --jobs 32");
}

/// Each run uses new unique names, because a live target keeps those of the last one.
/// The target rejects a change with 409 while it processes another one, which is legal.
#[test]
fn changes_that_a_busy_target_rejects_are_repeated_alone() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--variant", "contended-409"]);
    let selection = "--filter chat/create-service/* --races off --jobs 16";
    let (_, record) = judge(&served, &folder, 0, selection);
    let rule = record
        .rules
        .iter()
        .find(|rule| rule.id == "chat/create-service");
    assert_eq!(rule.map(|rule| rule.verdict), Some(Verdict::Pass));
}

#[test]
fn a_second_run_on_the_same_target_is_as_clean_as_the_first() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let selection = "--filter auth/registrations/* --jobs 32";
    let (_, first) = judge(&served, &folder, 0, selection);
    let (_, second) = judge(&served, &folder, 0, selection);
    assert_ne!(first.seed, second.seed);
    // What a scenario observes outside its topic depends on clock changes of other scenarios.
    for record in [&first, &second] {
        let counts = &record.summary.rules;
        assert_eq!((counts.fail, counts.inconclusive, counts.error), (0, 0, 0));
        // Other topics show the effect of a bad token and of one that is scanned twice at the same time.
        let elsewhere = [
            "auth/registration/failed-has-no-state",
            "auth/registration/one-completion",
            "auth/registration/one-user",
        ];
        let of_the_topic = |rule: &&RuleResult| {
            rule.id.starts_with("auth/registration/") && !elsewhere.contains(&rule.id.as_str())
        };
        for rule in record.rules.iter().filter(of_the_topic) {
            let is_judged = matches!(rule.verdict, Verdict::Pass | Verdict::NotApplicable);
            assert!(is_judged, "{rule:?}");
        }
    }
}

/// An explicit seed repeats the order, not the names, unless these are given too.
#[test]
fn a_run_with_an_explicit_seed_has_names_of_its_own() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let filters = "--filter auth/registrations/completed --filter auth/registrations/expired";
    let selection = &format!("--seed 77 {filters}");
    for _ in 0..2 {
        let (_, record) = judge(&served, &folder, 0, selection);
        assert_eq!(record.seed, 77);
    }
    let names = format!("{selection} --names first");
    // The second of these runs meets what the first one left under its names.
    judge(&served, &folder, 0, &names);
    let (code, out, _) = folder.output(&run_line(&served, &names));
    assert_ne!(code, 1, "{out}");
    let record: RunRecord = folder.json("run.json");
    assert!(record.findings.is_empty(), "{out}");
    let words: Vec<&str> = out.split_whitespace().collect();
    let reason = "an earlier run may have used these names";
    assert!(words.join(" ").contains(reason), "{out}");
    let (_, err) = folder.run(2, "run --names 'not plain'");
    assert!(err.contains("invalid --names"), "{err}");
}

/// Scenarios that name the same people take turns, each with an execution in a flow of its own.
#[test]
fn a_target_with_one_execution_per_person_is_judged_completely() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--variant", "flow/one-per-person"]);
    let selection = "--service flow --filter flow/create-execution/* --filter flow/executions/*";
    let (_, record) = judge(&served, &folder, 0, selection);
    let undecided = record
        .scenarios
        .iter()
        .filter(|s| s.verdict != Verdict::Pass);
    let undecided: Vec<_> = undecided.map(|s| (&s.id, &s.reason)).collect();
    assert!(undecided.is_empty(), "{undecided:?}");
}

/// A target that dies is the result, and not hundreds of refused connections.
#[test]
fn a_target_that_dies_ends_the_run() {
    let folder = Folder::new();
    let mut served = Served::start(&folder, &["--log", "-"]);
    let line = format!(
        "run {} --service chat --prove off --jobs 1",
        served.options()
    );
    let (_, err) = std::thread::scope(|scope| {
        let running = scope.spawn(|| folder.run(3, &line));
        let requests = (&mut served.output).lines().take(300);
        assert_eq!(requests.map_while(Result::ok).count(), 300);
        drop(served);
        running.join().expect("the run ends")
    });
    assert!(
        err.contains("chat stopped answering, which ended the run"),
        "{err}"
    );
}

/// Only the reference, identified by its control plane, gets the reference's values.
#[test]
fn unconfigured_values_are_not_sent() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let target = format!("all={}", served.url);
    let flow = format!("targets: {{flow: {{flow_sid: FW{}}}}}", "0".repeat(32));
    folder.write("conformant.yaml", flow);
    let selection = "--filter flow/create-execution/* --report json=run.json";
    let (_, out, _) = folder.output(&format!("run --target {target} {selection}"));
    let record: RunRecord = folder.json("run.json");
    assert_eq!(record.findings, [], "{out}");
    let reasons: Vec<&str> = record.scenarios.iter().map(|s| s.reason.as_str()).collect();
    assert!(
        reasons
            .iter()
            .any(|r| r.contains("not configured: targets.flow.")),
        "{reasons:?}"
    );
    assert!(!folder.read("run.json").contains("reference-api"));
}

#[test]
fn a_target_that_is_not_there_is_trouble_and_never_conformant() {
    let folder = Folder::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let target = format!("flow=http://{}", free.local_addr().expect("it is bound"));
    drop(free);
    folder.run(3, &format!("run --target {target}"));
    assert!(
        folder.join("reports/run.json").is_file(),
        "the report is written all the same"
    );
    folder.run(
        0,
        "run --reference --filter flow/read-flows/happy --report json=main.json",
    );
    // What was not judged cannot be new.
    let (_, err) = folder.run(4, "compare --fail-on-new main.json reports/run.json");
    let expected = "error: reports/run.json: the run ended early or judged too little: repeat it";
    assert!(err.contains(expected), "{err}");
    // Neither can what the second run did not select. It may select more.
    folder.run(
        0,
        "run --reference --filter flow/fetch-flow/happy --report json=less.json",
    );
    let (_, err) = folder.run(4, "compare --fail-on-new main.json less.json");
    for expected in [
        "error: less.json: the run judged too little: no result for ",
        "that main.json judged, such as flow/",
        "run both with the same selection",
    ] {
        assert!(err.contains(expected), "{err}");
    }
    folder.run(0, "compare main.json less.json");
    folder.run(
        0,
        "run --reference --filter flow/*/happy --report json=more.json",
    );
    folder.run(0, "compare --fail-on-new main.json more.json");
}

/// Each run takes two of ten phone numbers that the target must not know yet.
#[test]
fn numbers_that_earlier_runs_used_are_replaced() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    folder.write(
        "conformant.yaml",
        "people: { new_cellphone: 202-555-012# }\n",
    );
    for run in 1..=3 {
        let names = format!("--seed 1 --names 0000000{run}");
        let target = format!("--target all={0} --hooks {0}/_control", served.url);
        folder.run(
            0,
            &format!("run {target} {names} --prove off --filter auth/users/old-number"),
        );
    }
}
