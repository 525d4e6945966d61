//! Exploration as a user meets it: findings as stories that play again, budgets of nothing, folders that cannot be written, targets that die.

use crate::program::{Served, run};
use conformant::engine::Target;
use conformant::engine::sessions::Offline;
use conformant::explore::{Budget, Explored, Explorer, Manner, file_of};
use conformant::reference::{Fault, Variant};
use conformant::rulebook::Rulebook;
use conformant::schema::Schemas;
use conformant::selftest::{ExploredBy, Selftest};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

static RULEBOOK: LazyLock<Rulebook> =
    LazyLock::new(|| Rulebook::embedded().expect("the embedded rulebook is sound"));

fn manner(sequences: u64, service: &str) -> Manner {
    Manner {
        seed: 3,
        budget: Budget::Sequences(sequences),
        jobs: 2,
        only_safe: false,
        services: vec![service.to_owned()],
        is_live: false,
    }
}

fn explored(manner: Manner, faults: BTreeSet<Fault>) -> Explored {
    let schemas = Schemas::default();
    let targets = Target::all_of_reference();
    let sessions = Offline::in_process(3, faults, BTreeSet::<Variant>::new(), targets);
    Explorer::new(&RULEBOOK, &schemas, manner).explore(&sessions, &AtomicBool::new(false))
}

#[test]
fn the_clean_reference_is_accused_of_nothing() {
    let explored = explored(manner(60, "flow"), BTreeSet::new());
    assert!(explored.found.is_empty(), "{:?}", explored.found);
    assert_eq!((explored.sequences, explored.given_up), (60, None));
    let (operations, all) = explored.coverage.operations;
    assert!(operations * 10 >= all * 8, "{:?}", explored.coverage);
    assert!(explored.coverage.rules.0 > 0 && explored.coverage.pairs.0 > 0);
}

#[test]
fn the_same_seed_finds_the_same_whatever_the_number_of_jobs() {
    let faults = || BTreeSet::from([Fault::from_id("flow/page-skips").expect("it is there")]);
    let told = |jobs| {
        let explored = explored(
            Manner {
                jobs,
                ..manner(40, "flow")
            },
            faults(),
        );
        let found = explored.found.iter();
        let told: Vec<String> = found
            .map(|f| format!("{} {}", f.finding.rule, f.told()))
            .collect();
        (told, explored.exchanges, explored.coverage)
    };
    assert_eq!(told(1), told(4));
}

#[test]
fn a_finding_is_a_story_of_six_steps_that_plays_red_and_green_once_it_is_mended() {
    const FAULT: &str = "flow/meta-page-size-wrong";
    let faults = BTreeSet::from([Fault::from_id(FAULT).expect("it is there")]);
    let explored = explored(manner(60, "flow"), faults);
    let found = explored.found.first().expect("the fault is found");
    assert!(
        !found.is_flaky && found.scenario.steps.len() <= 6,
        "{}",
        found.told()
    );
    let folder = tempfile::tempdir().expect("there is room");
    let (name, text) = file_of(found);
    let file = folder.path().join("found").join(name);
    std::fs::create_dir_all(file.parent().expect("it has a folder")).expect("there is room");
    std::fs::write(&file, text).expect("there is room");
    let play = |served: &Served| {
        let target = format!("all={}", served.url);
        let control = format!("{}/_control", served.url);
        let mut arguments = vec!["run", "--scenarios", "found", "--filter", "flow/explored/*"];
        arguments.extend(["--target", &target, "--hooks", &control]);
        run(folder.path(), &arguments)
    };
    let broken = Served::start(folder.path(), &["--fault", FAULT]);
    let (code, out, err) = play(&broken);
    assert_eq!(code, 1, "{out}{err}");
    let mended = Served::start(folder.path(), &[]);
    let (code, out, err) = play(&mended);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn what_cannot_be_is_said_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("there is room");
    std::fs::write(folder.path().join("file"), "").expect("there is room");
    for (arguments, said) in [
        (
            &["explore", "--budget", "0"][..],
            "nothing can be explored in that",
        ),
        (
            &["explore", "--budget", "0s"][..],
            "nothing can be explored in that",
        ),
        (&["explore", "--budget", "soon"][..], "neither a time"),
        (
            &["explore", "--budget", "1", "--save", "file/below"][..],
            "cannot be written to",
        ),
    ] {
        let (code, out, err) = run(folder.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}{err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
    }
}

#[test]
fn a_target_that_is_gone_is_trouble() {
    let folder = tempfile::tempdir().expect("there is room");
    let target = {
        let served = Served::start(folder.path(), &[]);
        format!("media={}/media", served.url)
    };
    let (code, out, err) = run(
        folder.path(),
        &[
            "explore",
            "--target",
            &target,
            "--only-safe",
            "--budget",
            "50",
        ],
    );
    assert!(code == 3 || code == 4, "{code}: {out}{err}");
    assert!(
        err.contains("answers no more") || err.contains("nothing was explored"),
        "{err}"
    );
}

/// A fixed sample, in seconds; `selftest --explore` tries all. A rulebook that grows draws other sequences, so that a sample may lose a little.
#[test]
fn exploration_alone_finds_its_share_of_the_named_faults() {
    const SLACK: usize = 12;
    let recorded = include_str!("../../specs/explored.yaml");
    let recorded: ExploredBy =
        conformant::rulebook::parse_file("specs/explored.yaml", recorded.as_bytes())
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
        rulebook: &RULEBOOK,
        schemas: &schemas,
        targets: Target::all_of_reference(),
        jobs: 2,
        filters: Vec::new(),
    };
    let share = selftest.explored_sample();
    assert!(share > 0, "exploration finds nothing any more");
    assert!(
        share + SLACK >= recorded.sample_percent,
        "{share} % of the sample, recorded {} %",
        recorded.sample_percent
    );
}
