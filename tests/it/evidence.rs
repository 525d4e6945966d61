//! Evidence of a run is kept and judged again: identical verdicts with the same rulebook, others with another one.

use crate::offline;
use conformant_base::redact::Redactor;
use conformant_engine::evidence_file::{EvaluatedRun, EvidenceWriter, Head, Reader, evaluate};
use conformant_engine::plan::{self, Selection};
use conformant_engine::sessions::Offline;
use conformant_engine::{RunEnd, Sessions as _, Target};
use conformant_judge::prove::Mode;
use conformant_record::{RunRecord, Verdict};
use conformant_reference::Fault;
use conformant_rulebook::Rulebook;
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

const STATUS: &str = "flow/execution/status";

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A run of some scenarios with its evidence; the secrets are not those of the reference.
fn run(filters: &[&str], faults: &[&str], secrets: &[&str]) -> (RunRecord, Vec<u8>) {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let selection = Selection {
        filters: filters.iter().map(|f| (*f).to_owned()).collect(),
        ..Selection::default()
    };
    let planned = plan::plan(&rulebook, &selection, None);
    let fault = |id: &&str| Fault::from_id(id).expect("there is a fault of that name");
    let faults = faults.iter().map(fault).collect();
    let target = Target::all_of_reference();
    let sessions = Offline::in_process(7, faults, BTreeSet::new(), target);
    let file = Shared::default();
    let mut head = Head::of(&rulebook, &planned, 7);
    head.targets = sessions.targets();
    let keeper = EvidenceWriter::begin(Box::new(file.clone()), Redactor::new(secrets), &head);
    let mut options = offline::options(7, 3, Mode::Off);
    options.evidence_writer = Some(Arc::clone(&keeper));
    let record = offline::record(&rulebook, &planned, &sessions, &options);
    keeper
        .end(true, &RunEnd::default())
        .expect("memory takes everything");
    let kept = file.0.lock().expect("no thread panics").clone();
    (record, kept)
}

fn judged(kept: &[u8], rulebook: &Rulebook) -> EvaluatedRun {
    evaluate(&mut Reader::open(kept).expect("it is evidence"), rulebook)
}

fn plain(kept: &[u8]) -> String {
    let mut text = String::new();
    let mut unpacked = flate2::read::MultiGzDecoder::new(kept);
    unpacked.read_to_string(&mut text).expect("it is text");
    text
}

fn verdict(record: &RunRecord, id: &str) -> Verdict {
    let rule = record.rules.iter().find(|rule| rule.id == id);
    rule.expect("the rule is there").verdict
}

#[test]
fn the_same_rulebook_concludes_the_same_of_what_was_kept() {
    let filters = [
        "auth/*",
        "chat/webhooks/*",
        "chat/*/walk",
        "chat/races/messages-with-webhook",
        "media/*",
        "flow/*",
        "events/*",
    ];
    let faults = [
        "flow/meta-page-size-wrong",
        "auth/token-signature-unchecked",
    ];
    let (record, kept) = run(&filters, &faults, &[]);
    assert!(record.findings.len() > 2, "there is something to differ in");
    let again = judged(
        &kept,
        &conformant_judge::load::embedded().expect("it is sound"),
    );
    assert_eq!(again.notes, Vec::<String>::new());
    assert_eq!(again.record.rules, record.rules);
    // The commands that reproduce them contain credentials, which are not kept.
    let summary = |record: &RunRecord| -> Vec<_> {
        let findings = record.findings.iter();
        findings
            .map(|f| {
                (
                    f.rule.clone(),
                    f.exchange,
                    f.pointer.clone(),
                    f.message.clone(),
                )
            })
            .collect()
    };
    assert_eq!(summary(&again.record), summary(&record));
    assert_eq!(again.record.summary, record.summary);
    assert_eq!(again.record.open_points, record.open_points);
}

#[test]
fn a_changed_rule_concludes_otherwise() {
    let (record, kept) = run(&["flow/fetch-execution/*"], &[], &[]);
    assert_eq!(verdict(&record, STATUS), Verdict::Pass);
    let specs = tempfile::tempdir().expect("a folder can be made");
    for entry in walkdir::WalkDir::new("specs").into_iter().flatten() {
        let path = specs
            .path()
            .join(entry.path().strip_prefix("specs").expect("below"));
        match entry.file_type().is_dir() {
            true => std::fs::create_dir_all(&path).expect("a folder can be made"),
            false => drop(std::fs::copy(entry.path(), &path).expect("a file can be copied")),
        }
    }
    let changed = specs.path().join("flow/schemas/execution.yaml");
    let text = std::fs::read_to_string(&changed).expect("it was copied");
    assert!(text.contains("enum: [active, ended]"));
    let text = text.replace("enum: [active, ended]", "enum: [running, ended]");
    std::fs::write(&changed, text).expect("it can be written");
    let folder: Option<&Path> = Some(specs.path());
    let rulebook =
        conformant_judge::load::load(folder, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let again = judged(&kept, &rulebook);
    assert_eq!(verdict(&again.record, STATUS), Verdict::Fail);
    assert!(
        again.notes[0].contains("another rulebook"),
        "{:?}",
        again.notes
    );
}

#[test]
fn complete_scenarios_of_a_truncated_file_are_judged() {
    let (record, kept) = run(&["flow/fetch-execution/*"], &[], &[]);
    let rulebook = conformant_judge::load::embedded().expect("it is sound");
    for length in [kept.len() - 1, kept.len() / 2] {
        let again = judged(&kept[..length], &rulebook);
        assert!(!again.record.complete);
        assert!(
            again.notes[0].starts_with("the evidence is truncated after "),
            "{:?}",
            again.notes
        );
        assert!(again.record.scenarios.len() <= record.scenarios.len());
    }
    assert!(
        judged(&kept[..kept.len() / 2], &rulebook)
            .record
            .scenarios
            .len()
            > 1
    );
    let foreign = Reader::open(&kept[..5]).expect_err("nothing whole stands there");
    assert!(
        foreign.to_string().starts_with("not an evidence file"),
        "{foreign}"
    );
}

/// An echoed secret is redacted in each encoding, and its absence is not reported.
#[test]
fn no_secret_is_kept() {
    // The name of a flow's widget, a part of an address, a password that looks like a status.
    let secrets = ["active", "/Executions", "executions"];
    let filters = ["flow/*-execution/happy", "flow/read-executions/walk"];
    let (record, kept) = run(&filters, &[], &secrets);
    let text = plain(&kept);
    let stories: String = text.lines().skip(1).collect();
    assert!(stories.contains("[redacted]"));
    for secret in secrets {
        assert!(!stories.contains(secret), "{secret} was kept");
    }
    let again = judged(
        &kept,
        &conformant_judge::load::embedded().expect("it is sound"),
    );
    assert_eq!(record.findings, []);
    assert_eq!(again.record.findings, []);
    assert_eq!(verdict(&again.record, STATUS), Verdict::Inconclusive);
}

#[test]
fn credentials_are_not_kept() {
    let (_, kept) = run(
        &["auth/registrations/*", "flow/fetch-flow/credentials-*"],
        &[],
        &[],
    );
    let text = plain(&kept);
    let bare = text.replace("Authorization: [redacted]", "");
    assert!(!bare.contains("Authorization:"), "credentials were kept");
    let application = Target::all_of_reference();
    let key = application["auth"].values["application"]["api_key"].as_str();
    assert!(!text.contains(key.expect("the reference has one")));
}
