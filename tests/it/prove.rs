//! Mutation testing of a run: vacuous rules, surviving mutants, and what would detect them.

use crate::program::{Folder, Served, ended};
use conformant_record::{Proof, RunRecord, Verdict};

fn record(folder: &Folder, options: &str) -> (i32, String, RunRecord) {
    record_with(folder, options, &[])
}

fn record_with(
    folder: &Folder,
    options: &str,
    environment: &[(&str, &str)],
) -> (i32, String, RunRecord) {
    let mut command = folder.command(&format!("run --report json=run.json {options}"));
    let (code, out, _) = ended(command.envs(environment.iter().copied()));
    (code, out, folder.json("run.json"))
}

fn proof(record: &RunRecord) -> &Proof {
    record.proof.as_ref().expect("a run proves itself")
}

#[test]
fn every_rule_that_passes_on_the_reference_can_fail() {
    let folder = Folder::new();
    // Without optimization two services represent all of them.
    let services = match cfg!(debug_assertions) {
        true => "--service flow --service media",
        false => "",
    };
    let (code, out, record) = record(&folder, services);
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
    assert!(
        out.contains("passing rules detect a changed response"),
        "{out}"
    );
}

#[test]
fn a_sample_lists_surviving_mutants_and_remedies() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let target = format!("flow={}/flow", served.url);
    let filters = "--filter flow/*/happy --filter flow/flows/*";
    let options = format!("--target {target} --seed 1 --prove sample {filters}");
    // Credentials and no hooks: no simulated people and devices.
    let secrets = [
        ("CONFORMANT_FLOW_USERNAME", "reference-api-key"),
        ("CONFORMANT_FLOW_PASSWORD", "reference-api-secret"),
    ];
    let (_, out, record) = record_with(&folder, &options, &secrets);
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
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/page-token-ignored"]);
    let options = served.options();
    let filter = "--filter flow/read-flows/beyond-a-page";
    let (_, out, record) = record(&folder, &format!("{options} {filter}"));
    assert!(record.summary.rules.pass > 20, "{out}");
    let proof = proof(&record);
    assert!(proof.rules.is_empty(), "{out}");
    assert_eq!(proof.unproven, record.summary.rules.pass, "{out}");
}

#[test]
fn mutation_testing_can_be_turned_off() {
    let folder = Folder::new();
    let (code, out, record) = record(&folder, "--prove off --filter flow/read-flows/happy");
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
