//! The kill matrix holds: every fault is caught by exactly the recorded rules, nothing valid is flagged, no rule is dead.
//!
//! Without optimization only the named faults and variations of one service are tried; `conformant selftest` in CI tries
//! everything.

use crate::program::run;
use conformant_engine::Target;
use conformant_reference::Fault;
use conformant_schema::Schemas;
use conformant_selftest::{Recorded, Selftest};
use std::collections::BTreeSet;

#[test]
fn the_kill_matrix_holds() {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let schemas = Schemas::default();
    let filters = if cfg!(debug_assertions) {
        vec!["fault flow/*".to_owned(), "variant flow/*".to_owned()]
    } else {
        Vec::new()
    };
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let targets = Target::all_of_reference();
    let selftest = Selftest {
        rulebook: &rulebook,
        schemas: &schemas,
        targets,
        jobs,
        filters,
    };
    let matrix = selftest.run(&|_, _| {});
    let recorded = recorded();
    assert!(
        matrix.rows.len() > 10,
        "only {} trials were made",
        matrix.rows.len()
    );
    let odd: Vec<&String> = matrix
        .rows
        .keys()
        .filter(|name| !matrix.state(name, &recorded).is_expected())
        .collect();
    assert!(
        odd.is_empty()
            && matrix.unclean.is_empty()
            && matrix.dead(&recorded).next().is_none()
            && matrix.idle.is_empty(),
        "{}\nread the rows; `BLESS=1 cargo run --release -- selftest` records the matrix again",
        matrix.render(&recorded)
    );
}

/// A sample of what `conformant selftest --pairs 1000` tries; CI tries more.
#[test]
fn pairs_of_faults_are_reported_and_pairs_of_variations_are_not() {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let schemas = Schemas::default();
    let selftest = Selftest {
        rulebook: &rulebook,
        schemas: &schemas,
        targets: Target::all_of_reference(),
        jobs: 1,
        filters: Vec::new(),
    };
    let count = if cfg!(debug_assertions) { 20 } else { 100 };
    let pairs = selftest.pairs(count, 1, &recorded(), &|_| ());
    assert!(pairs.defects >= count / 2, "{}", pairs.render());
    assert!(pairs.holds(), "{}", pairs.render());
}

#[test]
fn the_kill_matrix_records_every_fault_and_no_other() {
    let recorded = recorded();
    let recorded: BTreeSet<&str> = recorded
        .caught_by
        .keys()
        .filter_map(|name| name.strip_prefix("fault "))
        .collect();
    let known: BTreeSet<&str> = Fault::ALL.iter().map(|f| f.id()).collect();
    let differing: Vec<&&str> = recorded.symmetric_difference(&known).collect();
    assert!(
        differing.is_empty(),
        "run `BLESS=1 cargo run --release -- selftest` and read the diff: {differing:?}"
    );
}

#[test]
fn a_self_test_has_json_and_markdown_reports() {
    let folder = tempfile::tempdir().expect("there is room");
    let fault = "fault flow/meta-page-size-wrong";
    let filter = ["selftest", "--filter", fault];
    let reports = ["--report", "json=told.json", "--report", "markdown=-"];
    let (code, out, err) = run(folder.path(), &[&filter[..], &reports].concat());
    assert_eq!(code, 0, "{out}{err}");
    let told = std::fs::read(folder.path().join("told.json")).expect("a report");
    let told: serde_json::Value = serde_json::from_slice(&told).expect("it is JSON");
    assert_eq!(told["holds"], true);
    let trials = told["trials"].as_array().expect("a list");
    assert_eq!(trials.len(), 1);
    assert_eq!(
        (&trials[0]["id"], &trials[0]["state"]),
        (&fault.into(), &"killed".into())
    );
    assert_eq!(trials[0]["failed_by"], trials[0]["killed_by"]);
    assert!(out.contains(&format!("| `{fault}` | killed |")), "{out}");

    let (code, out, err) = run(
        folder.path(),
        &[&filter[..], &["--report", "html=x.html"]].concat(),
    );
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.contains("expected json or markdown"), "{err}");
    assert!(!folder.path().join("x.html").exists());
}

#[test]
fn known_gaps_list_existing_faults_and_variations() {
    let unknown = recorded().not_yet;
    let unknown = unknown.unknown();
    assert!(
        unknown.is_empty(),
        "specs/not-yet-caught.yaml names what is gone; remove it from the list: {unknown:?}"
    );
}

fn recorded() -> Recorded {
    let caught_by = include_str!("../../specs/kill-matrix.yaml");
    let not_yet = include_str!("../../specs/not-yet-caught.yaml");
    Recorded {
        caught_by: conformant_rulebook::parse_file("specs/kill-matrix.yaml", caught_by.as_bytes())
            .expect("the record is sound"),
        not_yet: conformant_rulebook::parse_file("specs/not-yet-caught.yaml", not_yet.as_bytes())
            .expect("the list is sound"),
    }
}
