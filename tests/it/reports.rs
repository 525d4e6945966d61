//! One example of each report in `reports/examples/`: a run of the media service against the reference with four faults.
//! They match the present output; `BLESS=1 cargo test --test it reports` writes them.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::program::root;
use conformant_base::redact::Redactor;
use conformant_engine::plan::{self, Selection};
use conformant_engine::sessions::Offline;
use conformant_engine::{Options, Target};
use conformant_judge::prove::Mode;
use conformant_record::{KnownDefect, RunEvent, RunRecord};
use conformant_reference::Fault;
use conformant_report::console::{self, Look};
use conformant_report::{Format, Settings, redact_record};
use conformant_schema::Schemas;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const FAULTS: [&str; 4] = [
    "media/content-type-lost",
    "media/service-sid-wrong",
    "media/content-altered",
    "media/missing-credentials-accepted",
];

/// Faults of the self-test's record.
fn known() -> Vec<KnownDefect> {
    let path = root().join("specs/kill-matrix.yaml");
    let bytes = std::fs::read(&path).expect("the matrix is there");
    let rows: BTreeMap<String, BTreeSet<String>> =
        conformant_rulebook::parse_file("kill-matrix.yaml", &bytes)
            .expect("the matrix can be read");
    let known = rows.into_iter().filter_map(|(name, rules)| {
        let fault = Fault::from_id(name.strip_prefix("fault ")?)?;
        Some(KnownDefect {
            id: fault.id().to_owned(),
            says: fault.says().to_owned(),
            rules,
        })
    });
    known.collect()
}

fn record() -> RunRecord {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let faults = FAULTS.map(|id| Fault::from_id(id).expect("there is a fault of that name"));
    let sessions = Offline::in_process(
        0,
        faults.into(),
        BTreeSet::new(),
        Target::all_of_reference(),
    );
    let selection = Selection {
        services: vec!["media".to_owned()],
        ..Selection::default()
    };
    let planned = plan::plan(&rulebook, &selection, None);
    let options = Options {
        seed: 0,
        jobs: 2,
        shuffle: false,
        run_max: Duration::from_secs(600),
        prove: Mode::Rules,
        evidence_writer: None,
    };
    let mut record = None;
    conformant_engine::run(
        &rulebook,
        &Schemas::default(),
        &planned,
        &sessions,
        &options,
        &AtomicBool::new(false),
        &mut |event| {
            if let RunEvent::Finished { record: finished } = event {
                record = Some(*finished);
            }
        },
        |record, _| conformant_record::add_defects(record, &known()),
    );
    let mut record = record.expect("a run ends with its record");
    redact_record(&mut record, &Redactor::default());
    record
}

fn file_of(format: Format) -> &'static str {
    match format {
        Format::Json => "run.json",
        Format::Junit => "junit.xml",
        Format::Html => "run.html",
        Format::Markdown => "run.md",
        Format::Sarif => "run.sarif",
        Format::Ctrf => "ctrf.json",
        Format::Github => "github.txt",
        Format::Statement => "statement.json",
    }
}

#[test]
fn examples_are_what_is_written_today() {
    let record = record();
    assert!(record.complete && record.defects.len() >= FAULTS.len() - 1);
    let settings = Settings::default();
    // A statement needs an evidence file: `results.rs`.
    let formats = Format::ALL.into_iter();
    let formats = formats.filter(|format| *format != Format::Statement);
    let reports = formats.map(|format| (file_of(format), format.render(&record, settings)));
    let console = ("console.txt", console::render(&record, &Look::default()));
    let folder = root().join("reports/examples");
    let blessing = std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none();
    let mut others = Vec::new();
    for (name, text) in reports.chain([console]) {
        let path = folder.join(name);
        if blessing {
            std::fs::create_dir_all(&folder).expect("the disk is writable");
            std::fs::write(&path, &text).expect("the disk is writable");
        }
        if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            others.push(name);
        }
    }
    assert!(
        others.is_empty(),
        "reports/examples: {others:?} differ from the present output; \
         BLESS=1 cargo test --test it reports, then read the diff"
    );
}
