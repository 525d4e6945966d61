//! The committed fixtures match the generator and cover every rule that a payload can break. The generator survives
//! interruption, full disks and closed pipes.
//!
//! The trials of `tests/conformance` verify each fixture.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS and WORLD are for the tests, not for the program"
)]

use crate::program::{Folder, ended, is_campaign, root, run};
use conformant_fixtures::{Entry, Filing, Manifest, Set, Wanted};
use conformant_judge::{Need, predicate_of};
use conformant_rulebook::{AppliesTo, Origin, Rule, Rulebook};
use conformant_schema::Schemas;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

const REPAIR: &str = "repair: BLESS=1 cargo test --test it fixtures, then read the diff";

#[test]
fn the_committed_set_is_what_the_generator_makes() {
    let rulebook = conformant_judge::load::shared();
    let subjects = conformant_fixtures::subjects(rulebook);
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (schemas, calm) = (Schemas::default(), AtomicBool::new(false));
    let wanted = Wanted::committed(&subjects, jobs);
    let made = conformant_fixtures::make(rulebook, &schemas, &wanted, &calm)
        .expect("every kind has a plan");
    let folder = root().join("fixtures");
    if std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() {
        made.write(&folder, &calm)
            .expect("the folder can be written");
    }
    let differing = differing(&made, &folder);
    assert!(
        differing.is_empty(),
        "{} files of fixtures/ differ from the generator's output: {:?}\n{REPAIR}",
        differing.len(),
        &differing[..differing.len().min(10)]
    );
}

/// Files that differ, are missing, or are superfluous.
fn differing(made: &Set, folder: &Path) -> Vec<String> {
    let manifest = serde_json::to_vec_pretty(&made.manifest).expect("a manifest is JSON");
    let readme = made.manifest.readme().into_bytes();
    let mut due = vec![
        ("manifest.json", [manifest, b"\n".to_vec()].concat()),
        ("README.md", readme),
    ];
    let files = made.files.iter();
    due.extend(files.map(|(file, bytes)| (file.as_str(), bytes.clone())));
    let is_other = |(file, bytes): &&(&str, Vec<u8>)| {
        fs::read(folder.join(file)).map_or(true, |found| found != *bytes)
    };
    let others = due.iter().filter(is_other);
    let mut differing: Vec<String> = others.map(|(file, _)| (*file).to_owned()).collect();
    let known: BTreeSet<_> = due.iter().map(|(file, _)| folder.join(file)).collect();
    let present = crate::program::files(folder, &[]).into_iter();
    let stray = present.filter(|path| !known.contains(path));
    differing.extend(stray.map(|path| path.display().to_string()));
    differing
}

#[test]
fn a_changed_missing_or_stray_file_is_noticed() {
    let rulebook = conformant_judge::load::shared();
    let all = conformant_fixtures::subjects(rulebook);
    let wanted = Wanted {
        subjects: all.iter().filter(|s| s.name == "flow/flow").collect(),
        texts: Vec::new(),
        invalid: false,
        filing: Filing::Tree,
        ..Wanted::committed(&all, 1)
    };
    let (schemas, calm) = (Schemas::default(), AtomicBool::new(false));
    let made =
        conformant_fixtures::make(rulebook, &schemas, &wanted, &calm).expect("it has a plan");
    let home = Folder::new();
    let folder = home.join("set");
    made.write(&folder, &calm)
        .expect("the folder can be written");
    assert_eq!(differing(&made, &folder), [""; 0]);
    home.write("set/flow/flow/valid-0.json", "{}");
    fs::remove_file(folder.join("flow/flow/valid-1.json")).expect("it can be taken away");
    home.write("set/stray.json", "{}");
    assert_eq!(differing(&made, &folder).len(), 3);
}

/// Whether a payload alone can break a rule, with the configuration and clock of its set.
fn is_of_payload(rule: &Rule) -> bool {
    match &rule.origin {
        Origin::Property { .. } | Origin::NoOtherFields { .. } => true,
        Origin::Written(written) => {
            let predicate = predicate_of(rule);
            let by_itself = predicate.is_some_and(|p| p.needs().contains(&Need::Document));
            // Fixtures are of one type each; a rule about several is broken by faults of the reference.
            let is_of_several = predicate.is_some_and(|p| {
                let applies_to = p.applies_to();
                matches!(applies_to, AppliesTo::Kinds(kinds) if kinds.len() > 1)
            });
            by_itself && written.kind().is_some() && !is_of_several
        }
        Origin::Operation { .. }
        | Origin::Parameter { .. }
        | Origin::Credentials { .. }
        | Origin::ListKey { .. }
        | Origin::ListWalk { .. }
        | Origin::Either => false,
    }
}

fn unbroken(rulebook: &Rulebook, entries: &[Entry]) -> BTreeSet<String> {
    let broken: BTreeSet<&str> = entries
        .iter()
        .filter_map(|e| e.breaks_rule.as_deref())
        .collect();
    let rules = rulebook.rules.values().filter(|r| is_of_payload(r));
    rules
        .map(|rule| rule.id.clone())
        .filter(|id| !broken.contains(id.as_str()))
        .collect()
}

#[test]
fn every_rule_that_a_payload_can_break_is_broken_by_a_committed_fixture() {
    let rulebook = conformant_judge::load::shared();
    let Manifest { mut fixtures, .. } =
        conformant_fixtures::read(&root().join("fixtures")).expect("the manifest is sound");
    let left = unbroken(rulebook, &fixtures);
    assert!(
        left.is_empty(),
        "no committed fixture breaks these: {left:#?}"
    );
    fixtures.retain(|e| e.breaks_rule.as_deref() != Some("flow/execution/status"));
    assert_eq!(
        unbroken(rulebook, &fixtures),
        BTreeSet::from(["flow/execution/status".to_owned()]),
        "a rule without a fixture is reported"
    );
}

#[test]
fn streams_of_several_kinds_are_files_that_verify() {
    let home = Folder::new();
    let kinds = "--kind events/*/4 --kind chat/user --kind token --kind qr";
    let options = "--count 30 --format ndjson --invalid --out set";
    home.run(0, &format!("fixtures generate {kinds} {options}"));
    let lines = |file: &str| home.read(&format!("set/{file}")).lines().count();
    assert_eq!(lines("events/MessageSent/4.ndjson"), 30);
    assert_eq!(lines("token.txt"), 30);
    assert!(lines("qr.invalid.txt") > 5);
    home.run(0, "fixtures verify set");
    let text = home.read("set/token.txt");
    home.write("set/token.txt", text.replacen("ey", "eY", 1));
    let (message, _) = home.run(1, "fixtures verify set");
    assert!(message.contains("\ntoken.txt: line 1: "), "{message}");
}

/// Generates a small set in a folder `set`.
const SMALL_SET: &str =
    "fixtures generate --kind auth/user-create --kind qr --kind flow/flow --invalid --out set";

#[test]
fn a_set_holds_the_same_fixtures_as_a_tree_and_in_lines() {
    let made = |format: &str| {
        let home = Folder::new();
        home.run(0, &format!("{SMALL_SET} --format {format}"));
        home.run(0, "fixtures verify set");
        let manifest = conformant_fixtures::read(&home.join("set")).expect("it is sound");
        let known = |entry: Entry| Entry {
            file: String::new(),
            line: None,
            sha256: String::new(),
            ..entry
        };
        let entries = manifest.fixtures.into_iter().map(known);
        let files = crate::program::files(&home.join("set/auth"), &[]);
        (entries.collect::<Vec<_>>(), files.len())
    };
    let (tree, files) = made("json");
    let (lines, files_of_lines) = made("ndjson");
    assert_eq!(
        files,
        tree.iter()
            .filter(|entry| entry.name.starts_with("auth/"))
            .count()
    );
    // Valid and invalid documents, each as JSON and as XML.
    assert_eq!(files_of_lines, 4);
    assert_eq!(tree, lines);
    let broken = lines.iter().filter(|entry| !entry.valid);
    let schema = broken.map(|entry| (entry.breaks_schema, entry.name.rsplit('.').next()));
    let schema: BTreeSet<_> = schema.collect();
    assert!(schema.contains(&(Some(true), Some("json"))), "{schema:?}");
    assert!(schema.contains(&(None, Some("xml"))), "{schema:?}");
    assert!(schema.contains(&(None, Some("txt"))), "{schema:?}");
}

#[test]
fn a_long_set_is_verified_with_its_invalid_documents() {
    let home = Folder::new();
    home.run(0, &format!("{SMALL_SET} --format ndjson --count 1500"));
    let (message, _) = home.run(0, "fixtures verify set");
    let proved: u64 = message
        .split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a number comes first");
    assert!(proved > 4_500, "{message}");
    let text = home.read("set/flow/flow.ndjson");
    let (_, rest) = text.split_once('\n').expect("lines");
    home.write("set/flow/flow.ndjson", rest);
    let (message, _) = home.run(1, "fixtures verify set");
    assert!(
        message.contains("found 1499 lines, expected 1500"),
        "{message}"
    );
}

#[test]
fn an_added_changed_or_misjudged_line_is_reported() {
    let home = Folder::new();
    home.run(0, &format!("{SMALL_SET} --format ndjson"));
    let verify = |what: &str| {
        let (message, _) = home.run(1, "fixtures verify set");
        assert!(message.contains(what), "{message}");
    };
    let (file, manifest) = ("set/flow/flow.invalid.ndjson", "set/manifest.json");
    let (text, listed) = (home.read(file), home.read(manifest));
    let count = text.lines().count();
    home.write(file, format!("{text}{{}}\n"));
    verify(&format!(
        "flow/flow.invalid.ndjson: line {}: not listed in the manifest",
        count + 1
    ));
    home.write(file, text.replacen("\"sid\"", "\"Sid\"", 1));
    verify("was changed: its SHA-256");
    home.write(file, &text);
    let other = listed.replacen("\"breaks_schema\": true", "\"breaks_schema\": false", 1);
    home.write(manifest, other);
    verify("breaks_schema is Some(false), found true");
    let other = listed.replacen("_rule\": \"flow/flow/", "_rule\": \"flow/other/", 1);
    home.write(manifest, other);
    verify("expected flow/other/");
    home.write(manifest, &listed);
    home.write("set/stray.json", "{}");
    verify("stray.json: not listed in the manifest");
}

#[test]
fn the_committed_set_is_a_few_files_and_its_manifest_fits_its_schema() {
    let folder = root().join("fixtures");
    let count = crate::program::files(&folder, &[]).len();
    assert!(count < 200, "{count} files");
    let (code, schema, _) = run(&root(), &["schema", "manifest"]);
    assert_eq!(code, 0);
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("a schema is JSON");
    let manifest = fs::read(folder.join("manifest.json")).expect("it is there");
    let manifest = serde_json::from_slice(&manifest).expect("a manifest is JSON");
    let schemas = Schemas::default();
    assert!(schemas.fits("manifest", &schema, &manifest));
    let other = serde_json::json!({"schema_version": 2, "seed": 0, "fixtures": []});
    assert!(!schemas.fits("manifest", &schema, &other));
}

/// Number of resources in the data set; `WORLD=10000` sets more.
fn world_resources() -> String {
    let count = if is_campaign() { "900" } else { "300" };
    std::env::var("WORLD").unwrap_or_else(|_| count.to_owned())
}

#[test]
fn a_generated_data_set_breaks_no_rule() {
    let home = Folder::new();
    let count = world_resources();
    let generate = |further: &str| {
        let line = format!("fixtures generate --world --seed 5 --count {count} {further}");
        home.run(0, &line).0
    };
    let one = generate("--jobs 1");
    assert!(
        one.lines().count() >= count.parse().expect("a number"),
        "{count}"
    );
    assert_eq!(one, generate("--jobs 3"));
    home.write("world.har", generate("--format har"));
    let (out, _) = home.run(0, "check world.har --as har");
    assert!(out.contains("passed: "), "{out}");
    generate("--out world");
    let (out, _) = home.run(0, "fixtures verify world");
    assert_eq!(out, format!("{} fixtures, 0 failed\n", one.lines().count()));
}

#[test]
fn any_number_of_threads_gives_the_same_set() {
    let home = Folder::new();
    let made = |jobs: &str| {
        let kinds = "--kind flow/* --kind token --invalid --seed 9";
        home.run(
            0,
            &format!("fixtures generate {kinds} --jobs {jobs} --out {jobs}"),
        );
        home.read(&format!("{jobs}/manifest.json"))
    };
    assert_eq!(made("1"), made("5"));
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let home = Folder::new();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("it can be opened");
    let mut command = home.command("fixtures generate --kind flow/flow --count 9999");
    let (code, _, message) = ended(command.stdout(full));
    assert_eq!(code, 3, "{message}");
    assert!(
        message.contains("standard output: No space left"),
        "{message}"
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = Folder::new();
    for invalid in ["--invalid", ""] {
        let line = format!("fixtures generate --kind chat/user --count 99999 {invalid}");
        let mut child = home
            .command(&line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        out.read_line(&mut String::new()).expect("a line comes");
        drop(out);
        let mut message = String::new();
        let mut err = child.stderr.take().expect("it is piped");
        err.read_to_string(&mut message).expect("it is text");
        let status = child.wait().expect("it ends");
        assert_eq!((status.code(), message.as_str()), (Some(0), ""));
    }
}

/// Generates a set in a folder `set`.
#[cfg(unix)]
const FLOWS: &str = "fixtures generate --kind flow/flow --format ndjson --out set";

/// Begins to generate a set that takes forever.
#[cfg(unix)]
fn endless(folder: &Folder) -> std::process::Child {
    let mut command = folder.command(&format!("{FLOWS} --count 4000000000"));
    let started = command.stderr(Stdio::null()).spawn();
    started.expect("it can be started")
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_the_old_set() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let home = Folder::new();
        home.run(0, FLOWS);
        let before = home.read("set/manifest.json");
        let mut child = endless(&home);
        until(&mut child, || home.names().len() == 2);
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status()
            .expect("kill is there");
        assert!(sent.success());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(home.names(), ["set"]);
        assert_eq!(before, home.read("set/manifest.json"));
    }
}

#[cfg(unix)]
#[test]
fn leftovers_of_a_killed_process_are_removed_by_the_next() {
    let home = Folder::new();
    let mut child = endless(&home);
    let begun = |e: fs::DirEntry| e.path().join("new").exists();
    until(&mut child, || {
        let mut inside = home.read_dir().expect("it is a folder");
        inside.any(|e| e.is_ok_and(begun))
    });
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(home.names().len(), 1);
    home.run(0, FLOWS);
    assert_eq!(home.names(), ["set"]);
}

/// Polls until a condition holds, while the process lives.
#[cfg(unix)]
fn until(child: &mut std::process::Child, is_so: impl Fn() -> bool) {
    while !is_so() {
        let ended = child.try_wait().expect("it can be asked");
        assert_eq!(ended, None, "it ended by itself");
        std::thread::yield_now();
    }
}
