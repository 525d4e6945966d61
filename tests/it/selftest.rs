//! The kill matrix: every fault is caught by exactly the recorded rules, and neither an allowed variation nor the
//! clean reference is flagged.
//!
//! These tests run a sample of its rows; `.ci/campaigns selftest` runs all of them.

use crate::program::{Folder, copy_of, is_campaign, one_in, root};
use conformant_engine::Target;
use conformant_judge::load::shared as rulebook;
use conformant_reference::{Fault, Switch, Variant};
use conformant_schema::Schemas;
use conformant_selftest::{Matrix, Pairs, Recorded, Selftest};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::LazyLock;

/// Of all rows one in so many is tried.
const ONE_IN: usize = 300;
/// Rows of changed files that are tried at most: a larger change needs the campaign.
const CHANGED_MAX: usize = 12;

/// Both begin with all scenarios on the clean reference, so that these are run once.
static TRIED: LazyLock<(usize, Matrix, Pairs)> = LazyLock::new(|| {
    let schemas = Schemas::default();
    let recorded = recorded();
    let filters = if !cfg!(debug_assertions) {
        Vec::new()
    } else if is_campaign() {
        vec!["fault flow/*".to_owned(), "variant flow/*".to_owned()]
    } else {
        rows_to_try(&recorded)
    };
    let due = filters.len();
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let targets = Target::all_of_reference();
    let selftest = Selftest {
        rulebook: rulebook(),
        schemas: &schemas,
        targets,
        jobs,
        filters,
        enough: Some(&recorded.caught_by),
        seed: 0,
    };
    let (matrix, pairs) = selftest.run_with_pairs((pairs_count(), 1), &recorded);
    (due, matrix, pairs)
});

fn pairs_count() -> usize {
    match (cfg!(debug_assertions), is_campaign()) {
        (true, false) => 4,
        (true, true) => 20,
        (false, _) => 100,
    }
}

#[test]
fn the_kill_matrix_holds() {
    let (due, matrix, _) = &*TRIED;
    let recorded = recorded();
    assert!(
        matrix.rows.len() > 3 && matrix.rows.len() >= *due,
        "{} rows were tried, expected at least {due}",
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
        "{}\nread the rows; `BLESS=1 cargo run --release -- selftest` writes the matrix",
        matrix.render(&recorded)
    );
}

/// A sample of all rows, and the rows of changed files: those that a changed line of the matrix or of the declared
/// faults names, and those whose rules a changed file of the rulebook states.
fn rows_to_try(recorded: &Recorded) -> Vec<String> {
    let faults = Fault::ALL.iter().map(|f| format!("fault {}", f.id()));
    let variants = Variant::ALL.iter().map(|v| format!("variant {}", v.id()));
    let named: BTreeSet<String> = faults.chain(variants).collect();
    let generated = recorded.caught_by.keys();
    let generated = generated
        .filter(|row| row.starts_with("generated "))
        .cloned();
    let all = named.iter().cloned().chain(generated);
    let mut rows = one_in(ONE_IN, all.collect());
    let changed = changed_words();
    let is_changed = |switch: &Switch| {
        let (row, id, name) = match switch {
            Switch::Fault(it) => (format!("fault {}", it.id()), it.id(), format!("{it:?}")),
            Switch::Variant(it) => (format!("variant {}", it.id()), it.id(), format!("{it:?}")),
        };
        let rules = recorded.caught_by.get(&row).into_iter().flatten();
        let mut words = rules.map(String::as_str).chain([id, &name]);
        let is_named = words.any(|word| changed.contains(word));
        is_named.then_some(row)
    };
    let of_changed: Vec<String> = Switch::all().filter_map(|s| is_changed(&s)).collect();
    let n = of_changed.len().div_ceil(CHANGED_MAX).max(1);
    rows.extend(one_in(n, of_changed));
    rows.sort();
    rows.dedup();
    rows
}

/// Ids and names in what differs from the last commit but one: in changed lines of files that list all faults, and in the
/// whole of other changed files of the rulebook and the reference.
fn changed_words() -> BTreeSet<String> {
    const LISTS: [&str; 4] = [
        "specs/kill-matrix.yaml",
        "specs/not-yet-caught.yaml",
        "crates/reference/faults.json",
        "crates/reference/variants.json",
    ];
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.args(arguments).current_dir(root()).output();
        output.map_or(String::new(), |o| {
            String::from_utf8_lossy(&o.stdout).into_owned()
        })
    };
    let lines = git(&[&["diff", "--unified=0", "HEAD~1", "--"], &LISTS[..]].concat());
    let files = git(&[
        "diff",
        "--name-only",
        "HEAD~1",
        "--",
        "specs",
        "crates/reference/src",
    ]);
    let files = files.lines().filter(|file| !LISTS.contains(file));
    // A file that was removed states nothing.
    let texts = files.filter_map(|file| std::fs::read_to_string(root().join(file)).ok());
    let changed_lines = lines.lines().filter(|line| line.starts_with(['+', '-']));
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_');
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c| !is_part(c)).filter(|word| word.len() > 4);
        words.map(str::to_owned).collect()
    };
    let in_lines = changed_lines.flat_map(|line| words(&line[1..]));
    in_lines
        .chain(texts.flat_map(|text| words(&text)))
        .collect()
}

/// A sample of what `.ci/campaigns pairs` tries.
#[test]
fn two_faults_at_once_are_both_reported_and_several_allowed_variations_are_not_flagged() {
    let (_, _, pairs) = &*TRIED;
    assert!(pairs.defects >= pairs_count() / 2, "{}", pairs.render());
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
    let folder = Folder::new();
    let fault = "fault flow/meta-page-size-wrong";
    // A self-test begins with all scenarios of its rulebook: those of one service take a seventh of the time.
    let specs = match is_campaign() {
        true => "",
        false => {
            let of_flow = [
                "specs/flow",
                "specs/common.yaml",
                "specs/kill-matrix.yaml",
                "specs/not-yet-caught.yaml",
            ];
            copy_of(&of_flow, &folder);
            "--specs specs"
        }
    };
    let selftest = format!("selftest {specs} --filter '{fault}' --report");
    let (out, _) = folder.run(
        0,
        &format!("{selftest} json=report.json --report markdown=-"),
    );
    let report: serde_json::Value = folder.json("report.json");
    assert_eq!(report["holds"], true);
    let trials = report["trials"].as_array().expect("a list");
    assert_eq!(trials.len(), 1);
    assert_eq!(
        (&trials[0]["id"], &trials[0]["state"]),
        (&fault.into(), &"killed".into())
    );
    assert_eq!(trials[0]["failed_by"], trials[0]["killed_by"]);
    assert!(out.contains(&format!("| `{fault}` | killed |")), "{out}");

    let (_, err) = folder.run(2, &format!("{selftest} html=x.html"));
    assert!(err.contains("expected json or markdown"), "{err}");
    assert!(!folder.join("x.html").exists());
}

#[test]
fn known_gaps_list_existing_faults_and_variations() {
    let unknown = recorded().known_gaps;
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
        known_gaps: conformant_rulebook::parse_file(
            "specs/not-yet-caught.yaml",
            not_yet.as_bytes(),
        )
        .expect("the list is sound"),
    }
}
