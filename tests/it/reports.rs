//! One example of each report in `reports/examples/`: a run of the media service against the reference with four faults.
//! They match the present output; `BLESS=1 cargo test --test it reports` writes them.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::offline;
use crate::program::{Folder, Served, ended, root};
use conformant_base::redact::Redactor;
use conformant_engine::Target;
use conformant_engine::plan::{self, Selection};
use conformant_engine::sessions::Offline;
use conformant_judge::prove::Mode;
use conformant_record::{FaultPattern, KnownDefects, RunEvent, RunRecord};
use conformant_reference::Fault;
use conformant_report::console::Look;
use conformant_report::{Console, Consumer as _, Format, Settings, redact};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
        Some(FaultPattern {
            id: fault.id().to_owned(),
            says: fault.says().to_owned(),
            rules,
        })
    });
    KnownDefects {
        faults: known.collect(),
        ..KnownDefects::default()
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
    let options = offline::options(0, 2, Mode::Rules);
    let mut record = offline::record(&rulebook, &planned, &sessions, &options);
    conformant_record::add_defects(&mut record, &known(), false);
    redact(&mut record, &Redactor::default());
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
    let reports = "--report jsonl=- --report jsonl=events.jsonl";
    let line = format!("run --reference --prove off --filter flow/read-flows/* {reports}");
    let (stdout, _) = folder.run(0, &line);
    let file = folder.read("events.jsonl");
    assert_eq!(file.lines().count(), stdout.lines().count());
    let (schema, _) = folder.run(0, "schema jsonl");
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
    let report = |code: i32, report: &str| {
        let line = "run --reference --prove off --filter flow/read-flows/happy --report";
        folder.run(code, &format!("{line} {report}"))
    };
    let (stdout, _) = report(0, "dir=out");
    assert!(stdout.contains("out/README.md"), "{stdout}");
    let index = folder.read("out/README.md");
    assert!(index.starts_with("# passed: "), "{index}");
    conformant_report::read(folder.read("out/run.json").as_bytes()).expect("a record");
    let (_, stderr) = report(2, "dir=-");
    assert!(stderr.contains("expected its path"), "{stderr}");
}

#[test]
fn a_live_run_of_a_ci_system_names_its_build() {
    let folder = folder();
    let serving = Served::start(&folder, &[]);
    let options = format!("--target flow={0}/flow --hooks {0}/_control", serving.url);
    let selection = "--prove off --filter flow/read-flows/happy --report json=run.json";
    let mut command = folder.command(&format!("run {selection} {options}"));
    command.env("CI_JOB_URL", "https://ci.example/7");
    command.env("CI_COMMIT_SHA", "c0ffee");
    ended(command.env_remove("GITHUB_SHA").env_remove("GITHUB_RUN_ID"));
    let record: Value = folder.json("run.json");
    assert_eq!(record["build"]["url"], "https://ci.example/7");
    assert_eq!(record["build"]["revision"], "c0ffee");
}

/// A folder that ends the search for a configuration.
fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.join(".git")).expect("a folder");
    folder
}
