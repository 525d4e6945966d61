//! One example of each report in `reports/examples/`: a run of the media service against the reference with four faults.
//! They match the present output; `BLESS=1 cargo test --test it reports` writes them.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::program::{Served, conformant, root, run};
use conformant_base::redact::Redactor;
use conformant_engine::plan::{self, Selection};
use conformant_engine::sessions::Offline;
use conformant_engine::{Options, Target};
use conformant_judge::prove::Mode;
use conformant_record::{KnownDefect, KnownDefects, RunEvent, RunRecord};
use conformant_reference::Fault;
use conformant_report::console::Look;
use conformant_report::{Console, Consumer as _, Format, Settings, redact_record};
use conformant_schema::Schemas;
use serde_json::Value;
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
fn known() -> KnownDefects {
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
    KnownDefects {
        defects: known.collect(),
        third_party: Vec::new(),
    }
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
        |record, _| conformant_record::add_defects(record, &known(), false),
    );
    let mut record = record.expect("a run ends with its record");
    redact_record(&mut record, &Redactor::default());
    record
}

fn file_of(format: Format) -> &'static str {
    match format {
        Format::Json => "run.json",
        Format::Junit => "junit.xml",
        Format::Jsonl => "run.jsonl",
        Format::Dir => "folder",
        Format::Html => "run.html",
        Format::Markdown => "run.md",
        Format::Sarif => "run.sarif",
        Format::Ctrf => "ctrf.json",
        Format::Github => "github.txt",
        Format::Statement => "statement.json",
    }
}

/// What the console prints at the end of a run.
fn on_console(record: &RunRecord) -> String {
    let mut out = Vec::new();
    Console::new(&mut out, Look::default()).event(&RunEvent::Finished {
        record: Box::new(record.clone()),
    });
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn examples_are_what_is_written_today() {
    let record = record();
    assert!(record.complete && record.defects.len() >= FAULTS.len() - 1);
    let settings = Settings::default();
    // A statement needs an evidence file: `results.rs`.
    let formats = Format::ALL.into_iter();
    let formats = formats.filter(|format| ![Format::Statement, Format::Dir].contains(format));
    let reports = formats.map(|format| (file_of(format), format.render(&record, settings)));
    let reports = reports.map(|(name, text)| (name.to_owned(), text));
    let console = ("console.txt".to_owned(), on_console(&record));
    let folder_files = conformant_report::folder_files(&record, settings).into_iter();
    let folder_files =
        folder_files.map(|(name, text)| (format!("{}/{name}", file_of(Format::Dir)), text));
    let folder = root().join("reports/examples");
    let blessing = std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none();
    let mut others = Vec::new();
    for (name, text) in reports.chain([console]).chain(folder_files) {
        let path = folder.join(&name);
        if blessing {
            std::fs::create_dir_all(path.parent().expect("a folder"))
                .expect("the disk is writable");
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

#[test]
fn events_are_streamed_as_lines_of_the_published_schema() {
    let folder = folder();
    let arguments = "run --reference --prove off --filter flow/read-flows/* --report jsonl=- \
                     --report jsonl=events.jsonl";
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let (code, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let file = std::fs::read_to_string(folder.path().join("events.jsonl"));
    let file = file.expect("the run has ended");
    assert_eq!(file.lines().count(), stdout.lines().count());
    let (_, schema, _) = run(folder.path(), &["schema", "jsonl"]);
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in stdout.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert!(schema.is_valid(&line), "{line}");
        let event = line["event"].as_str().expect("its name");
        *counts.entry(event.to_owned()).or_default() += 1;
    }
    assert_eq!(counts["scenario-started"], counts["scenario-ended"]);
    assert_eq!((counts["run-started"], counts["run-ended"]), (1, 1));
}

#[test]
fn a_folder_of_reports_can_be_read_alone_and_needs_a_path() {
    let folder = folder();
    let report = |report| {
        let arguments = "run --reference --prove off --filter flow/read-flows/happy --report";
        let arguments: Vec<&str> = arguments.split_whitespace().chain([report]).collect();
        run(folder.path(), &arguments)
    };
    let (code, stdout, stderr) = report("dir=out");
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("out/README.md"), "{stdout}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name));
    let index = read("README.md").expect("an index");
    assert!(index.starts_with("# passed: "), "{index}");
    conformant_report::read(read("run.json").expect("a record").as_bytes()).expect("a record");
    let (code, _, stderr) = report("dir=-");
    assert_eq!(code, 2);
    assert!(stderr.contains("expected its path"), "{stderr}");
}

#[test]
fn a_live_run_of_a_ci_system_names_its_build() {
    let folder = folder();
    let serving = Served::start(folder.path(), &[]);
    let target = format!("flow={}/flow", serving.url);
    let hooks = format!("{}/_control", serving.url);
    let arguments =
        "run --prove off --filter flow/read-flows/happy --report json=run.json --target";
    let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
    arguments.extend([target.as_str(), "--hooks", hooks.as_str()]);
    let output = conformant(folder.path(), &arguments)
        .envs([
            ("CI_JOB_URL", "https://ci.example/7"),
            ("CI_COMMIT_SHA", "c0ffee"),
        ])
        .env_remove("GITHUB_SHA")
        .env_remove("GITHUB_RUN_ID")
        .output()
        .expect("it starts");
    let record = std::fs::read(folder.path().join("run.json"));
    let record = record.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!(record["build"]["url"], "https://ci.example/7");
    assert_eq!(record["build"]["revision"], "c0ffee");
}

/// A folder that ends the search for a configuration.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join(".git")).expect("a folder");
    folder
}
