//! Exploration: findings as scenarios that reproduce, empty budgets, unwritable folders, failing targets.

use crate::hostile::target::{Target as Broken, send};
use crate::program::{Folder, Served, conformant, ended, one_in};
use conformant_base::clock;
use conformant_engine::session::{OpenError, Session};
use conformant_engine::sessions::{Offline, ask};
use conformant_engine::{Hook, Planned, Sessions, Target};
use conformant_explore::{Budget, Certainty, ExploreOptions, Explored, Explorer, Shrunk, file_of};
use conformant_judge::load::shared as rulebook;
use conformant_net::transport::{BaseUrl, Client, Limits};
use conformant_reference::{Fault, Variant};
use conformant_schema::Schemas;
use conformant_selftest::{ExploredBy, Selftest};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn options(sequences: u64, service: &str) -> ExploreOptions {
    ExploreOptions {
        seed: 3,
        budget: Budget::Sequences(sequences),
        jobs: 2,
        only_safe: false,
        services: vec![service.to_owned()],
        is_live: false,
    }
}

fn explored(options: ExploreOptions, faults: BTreeSet<Fault>) -> Explored {
    let schemas = Schemas::default();
    let targets = Target::all_of_reference();
    let sessions = Offline::in_process(3, faults, BTreeSet::<Variant>::new(), targets);
    Explorer::new(rulebook(), &schemas, options).explore(&sessions, &AtomicBool::new(false))
}

#[test]
fn the_clean_reference_has_no_findings() {
    let explored = explored(options(60, "flow"), BTreeSet::new());
    assert!(explored.found.is_empty(), "{:?}", explored.found);
    assert_eq!((explored.sequences, explored.given_up), (60, None));
    let (operations, all) = explored.coverage.operations;
    assert!(operations * 10 >= all * 8, "{:?}", explored.coverage);
    assert!(explored.coverage.rules.0 > 0 && explored.coverage.pairs.0 > 0);
}

#[test]
fn former_false_positives_stay_fixed() {
    let folder = Folder::new();
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/explored");
    let line = format!("run --strict --filter */explored/* --prove off --scenarios {scenarios}");
    let (out, _) = folder.run(0, &line);
    assert!(out.contains("scenarios   8 pass\n"), "{out}");
}

#[test]
fn the_same_seed_finds_the_same_whatever_the_number_of_jobs() {
    let faults = || BTreeSet::from([Fault::from_id("flow/page-skips").expect("it is there")]);
    let explore_with = |jobs| {
        let explored = explored(
            ExploreOptions {
                jobs,
                ..options(40, "flow")
            },
            faults(),
        );
        let found = explored.found.iter();
        let lines: Vec<String> = found
            .map(|f| format!("{} {}", f.finding.rule, f.to_text()))
            .collect();
        (lines, explored.exchanges, explored.coverage)
    };
    assert_eq!(explore_with(1), explore_with(4));
}

/// A resource deleted with another, a stale read, a list that loses items between its pages, and wrong metadata of a page.
#[test]
fn a_finding_is_a_scenario_of_six_steps_that_fails_on_the_fault_and_passes_without_it() {
    let rows = vec![
        ("flow/delete-takes-all", "others"),
        ("chat/member-fetch-stale", "member"),
        ("flow/page-skips", "holds-each-execution"),
        ("flow/meta-page-size-wrong", "flow/list-meta/page-size"),
    ];
    for (fault, rule) in one_in(4, rows) {
        let service = fault.split('/').next().expect("it has a service");
        let faults = BTreeSet::from([Fault::from_id(fault).expect("it is there")]);
        // Most are found by far fewer sequences than the most that are allowed.
        let budgets = [50, 150, 400].into_iter();
        let mut explored =
            budgets.map(|sequences| explored(options(sequences, service), faults.clone()));
        let is_due = |found: &Shrunk| found.finding.rule.contains(rule);
        let found = explored.find_map(|explored| explored.found.into_iter().find(is_due));
        let found = &found.unwrap_or_else(|| panic!("no rule like {rule} finds {fault}"));
        assert_eq!(
            found.certainty,
            Certainty::Sure,
            "{fault}: {}",
            found.to_text()
        );
        assert!(
            found.scenario.steps.len() <= 6,
            "{fault}: {}",
            found.to_text()
        );
        plays_red_and_green(fault, found);
    }
}

fn plays_red_and_green(fault: &str, found: &Shrunk) {
    let folder = Folder::new();
    let (name, text) = file_of(found);
    let file = folder.join("found").join(name);
    std::fs::create_dir_all(file.parent().expect("it has a folder"))
        .expect("the temporary folder is writable");
    std::fs::write(&file, text).expect("the temporary folder is writable");
    let run_scenario = |code: i32, served: &Served| {
        let filter = "--scenarios found --filter */explored/* --strict --prove off";
        folder.run(code, &format!("run {filter} {}", served.options()));
    };
    let broken = Served::start(&folder, &["--fault", fault]);
    run_scenario(1, &broken);
    let fixed = Served::start(&folder, &[]);
    run_scenario(0, &fixed);
}

#[test]
fn the_printed_command_runs_the_saved_scenarios_against_the_explored_target() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    let url = &served.url;
    let line =
        format!("explore --target all={url} --hooks {url}/_control --budget 20 --seed 9 --save");
    let mut words: Vec<&str> = line.split(' ').collect();
    words.push("my finds");
    let (code, _, err) = ended(&mut conformant(&folder, &words));
    assert_eq!(code, 1, "{err}");
    let last = err.lines().last().unwrap_or_default();
    let (_, command) = last.split_once("run them: ").expect("it is named");
    assert_eq!(
        command,
        format!(
            "conformant run --target all={url} --hooks {url}/_control --seed 9 --scenarios 'my finds' --filter '*/explored/*'"
        )
    );
    let words = conformant_base::text::shell_words(command);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let (code, out, err) = ended(&mut conformant(&folder, &words));
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("flow/read-flows/page-size"), "{out}");
}

/// Reference instances of which only the first ones are as expected, or exist.
struct Moody<'a> {
    first: Offline<'a>,
    then: Option<Offline<'a>>,
    left: AtomicUsize,
}

impl Sessions for Moody<'_> {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, OpenError> {
        let is_first = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        match (&self.then, is_first) {
            (_, true) => self.first.open(planned),
            (Some(then), false) => then.open(planned),
            (None, false) => Err(OpenError {
                url: "nowhere".to_owned(),
                source: BaseUrl::parse("nowhere").expect_err("an invalid address"),
            }),
        }
    }

    fn targets(&self) -> BTreeMap<String, String> {
        self.first.targets()
    }
}

fn moody(fault: &str, first: usize, then: Option<BTreeSet<Fault>>, sequences: u64) -> Explored {
    let schemas = Schemas::default();
    let worlds = |faults| {
        let targets = Target::all_of_reference();
        Offline::in_process(3, faults, BTreeSet::<Variant>::new(), targets)
    };
    let sessions = Moody {
        first: worlds(BTreeSet::from(
            [Fault::from_id(fault).expect("it is there")],
        )),
        then: then.map(worlds),
        left: AtomicUsize::new(first),
    };
    let options = ExploreOptions {
        jobs: 1,
        ..options(sequences, "flow")
    };
    Explorer::new(rulebook(), &schemas, options).explore(&sessions, &AtomicBool::new(false))
}

#[test]
fn progress_is_reported() {
    let schemas = Schemas::default();
    let targets = Target::all_of_reference();
    let sessions = Offline::in_process(3, BTreeSet::new(), BTreeSet::<Variant>::new(), targets);
    let explorer = Explorer::new(rulebook(), &schemas, options(20, "flow"));
    assert_eq!(explorer.progress().sequences, 0);
    let explored = explorer.explore(&sessions, &AtomicBool::new(false));
    let far = explorer.progress();
    assert_eq!(far.sequences, explored.sequences);
    assert_eq!(far.exchanges, explored.exchanges as u64);
    assert_eq!(far.shrinking, 0, "no findings");
}

/// After requests that may be refused, such as those with wrong credentials, exploration does not wait for a person.
#[test]
fn a_refusal_that_was_to_be_expected_is_not_waited_for() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--log", "served.ndjson"]);
    let target = format!("flow={}/flow", served.url);
    let hooks = format!("{}/_control", served.url);
    let line = format!("explore --target {target} --hooks {hooks} --budget 40 --seed 5 --jobs 1");
    let (out, _) = folder.run(0, &line);
    assert!(out.contains("\npassed: "), "{out}");
    let log = folder.read("served.ndjson");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let is_refused = |line: &serde_json::Value| {
        line["method"] == "POST"
            && line["target"]
                .as_str()
                .is_some_and(|t| t.ends_with("/Executions"))
            && line["status"].as_u64() >= Some(400)
    };
    let looks = |line: &serde_json::Value| {
        let target = line["target"].as_str();
        target.is_some_and(|t| t.ends_with("/Executions?PageSize=1000"))
    };
    assert!(lines.iter().any(is_refused), "some are refused");
    let waited = lines
        .windows(2)
        .find(|two| is_refused(&two[0]) && looks(&two[1]));
    assert!(waited.is_none(), "{waited:?}");
}

/// Pauses of hours are drawn, too. Without a hook that moves the clock they are left out.
#[test]
fn without_a_clock_hook_no_sequence_waits_for_hours() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let served = Served::start(folder.path(), &[]);
    let target = format!("chat={}/chat", served.url);
    let mut command = conformant(
        folder.path(),
        &[
            "explore", "--target", &target, "--budget", "40", "--seed", "5", "--jobs", "1",
        ],
    );
    command.env(
        "CONFORMANT_CHAT_USERNAME",
        conformant_reference::account::API_KEY,
    );
    command.env(
        "CONFORMANT_CHAT_PASSWORD",
        conformant_reference::account::API_SECRET,
    );
    let began = clock::monotonic();
    let output = command.output().expect("the program can be started");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}");
    assert!(began.elapsed() < Duration::from_secs(60), "{out}");
}

/// Parallel sequences and other runs share the clock of the target.
#[test]
fn findings_during_a_clock_change_are_left_out() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    let target = format!("flow={}/flow", served.url);
    let control = format!("{}/_control", served.url);
    let explore = || {
        folder.output(&format!(
            "explore --target {target} --hooks {control} --budget 4 --seed 5 --jobs 1"
        ))
    };
    let (code, out, err) = explore();
    assert_eq!(code, 1, "{out}{err}");
    let hook = &Hook::control_plane(&rulebook().index, &control, None)["advance_clock"];
    let client = Client::new(Limits::default());
    let is_over = AtomicBool::new(false);
    let (code, out, err) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                ask(hook, &json!({"seconds": 60}), &client).expect("it can be moved");
            }
        });
        let ended = explore();
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("\npassed: "), "{out}");
    assert!(out.contains("in doubt "), "{out}");
}

#[test]
fn a_finding_that_does_not_recur_is_flaky() {
    let explored = moody("flow/meta-page-size-wrong", 40, Some(BTreeSet::new()), 40);
    let found = explored.found.first().expect("it came once");
    let Certainty::Flaky { first, again } = &found.certainty else {
        panic!("{:?}", found.certainty);
    };
    assert!(found.is_flaky() && !first.is_empty(), "{first:?}");
    assert_eq!(first.len(), again.len(), "{first:?} {again:?}");
    assert!(first.iter().all(|line| line.contains("flow/")), "{first:?}");
}

#[test]
fn what_was_found_until_the_target_dies_is_kept() {
    let explored = moody("flow/meta-page-size-wrong", 20, None, 500);
    let why = explored.given_up.as_deref().unwrap_or_default();
    assert!(
        why.starts_with("failed to open a session at nowhere: "),
        "{why}"
    );
    assert!(explored.sequences < 30, "{}", explored.sequences);
    let found = explored.found.first().expect("it was found before");
    assert_eq!(found.certainty, Certainty::Untried);
    assert!(!found.scenario.steps.is_empty());
    assert!(explored.coverage.operations.0 > 0);
}

#[test]
fn invalid_arguments_are_reported_before_anything_is_sent() {
    let folder = Folder::new();
    folder.write("file", "");
    for (budget, expected) in [
        ("0", "is too small"),
        ("0s", "is too small"),
        ("soon", "invalid --budget"),
        ("1 --save file/below", "failed to write to --save"),
    ] {
        let (_, err) = folder.run(2, &format!("explore --budget {budget}"));
        assert!(err.contains(expected), "{budget}: {err}");
    }
}

#[test]
fn a_target_that_is_gone_is_trouble() {
    let folder = Folder::new();
    let target = {
        let served = Served::start(&folder, &[]);
        format!("media={}/media", served.url)
    };
    let line = format!("explore --target {target} --only-safe --budget 50");
    let (_, err) = folder.run(3, &line);
    assert!(err.contains("media cannot be reached at "), "{err}");
}

/// A fixed sample that takes seconds; `selftest --explore` tries all. When the rulebook grows, other sequences are drawn, so
/// that the share of a sample may fall a little.
#[test]
fn exploration_alone_finds_its_share_of_the_named_faults() {
    const SLACK: usize = 12;
    let recorded = include_str!("../../specs/explored.yaml");
    let recorded: ExploredBy =
        conformant_rulebook::parse_file("specs/explored.yaml", recorded.as_bytes())
            .expect("it is well-formed");
    let gone: Vec<&String> = recorded
        .found
        .iter()
        .filter(|id| Fault::from_id(id).is_none())
        .collect();
    assert!(
        gone.is_empty(),
        "specs/explored.yaml names what is gone: {gone:?}"
    );
    let schemas = Schemas::default();
    let selftest = Selftest {
        rulebook: rulebook(),
        schemas: &schemas,
        targets: Target::all_of_reference(),
        jobs: 2,
        filters: Vec::new(),
        enough: None,
        seed: 1,
    };
    let share = selftest.explored_sample();
    assert!(share > 0, "exploration finds nothing any more");
    assert!(
        share + SLACK >= recorded.sample_percent,
        "{share} % of the sample, recorded {} %",
        recorded.sample_percent
    );
}

#[test]
fn only_selected_services_need_a_target_that_serves() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let chat = Broken::answering(|_| send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
    let flow = format!("explore --target flow={}/flow", served.url);
    let both = format!("{flow} --target chat={}/chat", chat.origin());
    let few = "--budget 2 --only-safe --seed 1";
    let explore = |line: String| {
        let mut command = folder.command(&line);
        command.env("CONFORMANT_FLOW_USERNAME", "reference-api-key");
        command.env("CONFORMANT_FLOW_PASSWORD", "reference-api-secret");
        ended(&mut command)
    };
    let (code, out, err) = explore(format!("{both} --service flow {few}"));
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = explore(format!("{flow} --service chat {few}"));
    assert!(
        code == 4 && err.contains("chat has no target"),
        "{code}: {err}"
    );
}
