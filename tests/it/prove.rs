//! Mutation testing of a run: vacuous rules, surviving mutants, and what would detect them.

use crate::program::{Served, conformant};
use conformant_record::{Proof, RunRecord, Verdict};
use std::path::Path;

fn record(folder: &Path, arguments: &[&str]) -> (i32, String, RunRecord) {
    record_with(folder, arguments, &[])
}

fn record_with(
    folder: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (i32, String, RunRecord) {
    let mut all = vec!["run", "--report", "json=run.json"];
    all.extend(arguments);
    let mut command = conformant(folder, &all);
    command.envs(environment.iter().copied());
    let ended = command.output().expect("the program can be started");
    let out = String::from_utf8_lossy(&ended.stdout).into_owned();
    let json = std::fs::read(folder.join("run.json"));
    let json = json.unwrap_or_else(|e| panic!("no report: {e}\n{out}"));
    let record = serde_json::from_slice(&json).expect("the report is a record");
    (ended.status.code().expect("it ends by itself"), out, record)
}

fn proof(record: &RunRecord) -> &Proof {
    record.proof.as_ref().expect("a run proves itself")
}

#[test]
fn every_rule_that_passes_on_the_reference_can_fail() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    // Without optimization two services represent all of them.
    let services: &[&str] = if cfg!(debug_assertions) {
        &["--service", "flow", "--service", "media"]
    } else {
        &[]
    };
    let (code, out, record) = record(folder.path(), services);
    assert_eq!(code, 0, "{out}");
    let proof = proof(&record);
    assert_eq!(proof.mode, "rules");
    let vacuous: Vec<&String> = proof
        .rules
        .iter()
        .filter(|(_, changes)| changes.broke == 0)
        .map(|(rule, _)| rule)
        .collect();
    assert!(vacuous.is_empty(), "nothing breaks {vacuous:?}");
    assert!(proof.proven > 100 && proof.sample.is_none());
    assert_eq!(proof.proven + proof.unproven, record.summary.rules.pass);
    assert!(out.contains("detect a mutation of the responses"), "{out}");
}

#[test]
fn a_sample_lists_surviving_mutants_and_remedies() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let served = Served::start(folder.path(), &[]);
    let target = format!("flow={}/flow", served.url);
    let arguments = [
        "--target",
        &target,
        "--seed",
        "1",
        "--prove",
        "sample",
        "--filter",
        "flow/*/happy",
        "--filter",
        "flow/flows/*",
    ];
    // Credentials and no hooks: no simulated people and devices.
    let secrets = [
        ("CONFORMANT_FLOW_USERNAME", "reference-api-key"),
        ("CONFORMANT_FLOW_PASSWORD", "reference-api-secret"),
    ];
    let (_, out, record) = record_with(folder.path(), &arguments, &secrets);
    let sample = proof(&record)
        .sample
        .as_ref()
        .expect("a sample was asked for");
    assert!(
        sample.made > sample.noticed && sample.noticed > 0,
        "{sample:?}"
    );
    let listed: usize = sample.blind.iter().map(|b| b.made - b.noticed).sum();
    assert!(listed > 0 && listed <= sample.made - sample.noticed);
    assert!(out.contains("undetected mutations"), "{out}");
    // Their mutants survive, and the report lists them.
    let needs_hooks = sample
        .blind
        .iter()
        .any(|b| b.would.iter().any(|w| w.starts_with("hook ")));
    assert!(needs_hooks, "{:?}", sample.blind);
}

/// After each mutation all evidence of a scenario is judged again: an unlimited list would take minutes.
#[test]
fn an_endless_list_is_judged_but_not_mutated() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let served = Served::start(folder.path(), &["--fault", "flow/page-token-ignored"]);
    let target = format!("all={}", served.url);
    let hooks = format!("{}/_control", served.url);
    let scenario = "flow/read-flows/beyond-a-page";
    let arguments = ["--target", &target, "--hooks", &hooks, "--filter", scenario];
    let (_, out, record) = record(folder.path(), &arguments);
    assert!(record.summary.rules.pass > 20, "{out}");
    let proof = proof(&record);
    assert!(proof.rules.is_empty(), "{out}");
    assert_eq!(proof.unproven, record.summary.rules.pass, "{out}");
}

#[test]
fn mutation_testing_can_be_turned_off() {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let arguments = ["--prove", "off", "--filter", "flow/read-flows/happy"];
    let (code, out, record) = record(folder.path(), &arguments);
    assert_eq!(code, 0, "{out}");
    assert!(
        record.proof.is_none() && !out.contains("mutations "),
        "{out}"
    );
    assert!(
        record
            .rules
            .iter()
            .any(|rule| rule.verdict == Verdict::Pass)
    );
}
