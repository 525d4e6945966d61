//! Each write, rename, sync, spawn and connection fails once: the exit code is a documented one, the old or the complete
//! new file is present, and no other file is left.
//!
//! Release builds have no failpoints, so that nothing is tested there.

use crate::hostile::command::{Ended, conformant, folder, run, write};
use crate::hostile::pages::{ok, only_page};
use crate::hostile::target::{Act, Target};
use conformant_base::failpoint::Failpoint;
use std::path::Path;

fn target() -> Target {
    Target::answering(|_| {
        vec![
            Act::Send(ok(only_page("http://127.0.0.1").to_string())),
            Act::Keep,
        ]
    })
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != ".git" && name != "conformant.yaml")
        .collect();
    names.sort();
    names
}

fn judged(folder: &Path, script: &str) -> Ended {
    let target = target();
    write(
        &folder.join("conformant.yaml"),
        format!(
            "targets: {{flow: {{url: {}/flow}}}}\nlimits: {{timeout: 2s}}\n\
             hooks: {{advance_clock: {{command: [\"true\"]}}}}\n",
            target.origin()
        ),
    );
    let mut command = conformant(folder);
    command.args(["run", "--filter", "flow/read-flows/happy", "--jobs", "1"]);
    command.args(["--report", "json=run.json"]);
    run(command.env("CONFORMANT_FAILPOINTS", script))
}

fn generated(folder: &Path, seed: &str, script: &str) -> Ended {
    let mut command = conformant(folder);
    command.args([
        "fixtures",
        "generate",
        "--kind",
        "flow/flow",
        "--out",
        "set",
        "--seed",
        seed,
    ]);
    run(command.env("CONFORMANT_FAILPOINTS", script))
}

/// Expected result for each place, so that a new place needs a row.
#[test]
fn a_single_failure_is_reported_and_loses_nothing() {
    if !cfg!(debug_assertions) {
        return;
    }
    for place in Failpoint::ALL {
        match place {
            Failpoint::ReportWrite | Failpoint::ReportSync | Failpoint::ReportRename => {
                report(place);
            }
            Failpoint::SetWrite | Failpoint::SetExchange => set(place, true),
            Failpoint::SetRename => set(place, false),
            Failpoint::Connect | Failpoint::Listen | Failpoint::HookSpawn => world(place),
        }
    }
}

fn report(place: Failpoint) {
    let folder = folder();
    write(&folder.path().join("run.json"), "the old one");
    let ended = judged(folder.path(), place.name());
    assert_eq!(ended.exit, Some(3), "{place:?}: {ended:?}");
    assert!(ended.stderr.contains("run.json"), "{place:?}: {ended:?}");
    assert!(ended.stdout.contains("passed: "), "{place:?}: {ended:?}");
    let left = std::fs::read_to_string(folder.path().join("run.json")).expect("the report");
    assert_eq!(left, "the old one", "{place:?}");
    assert_eq!(names(folder.path()), ["run.json"], "{place:?}");
}

fn set(place: Failpoint, is_there: bool) {
    let folder = folder();
    let manifest = || std::fs::read(folder.path().join("set/manifest.json")).ok();
    if is_there {
        assert_eq!(generated(folder.path(), "1", "").exit, Some(0));
    }
    let before = manifest();
    let ended = generated(folder.path(), "2", place.name());
    assert_eq!(ended.exit, Some(3), "{place:?}: {ended:?}");
    assert!(
        ended.stderr.contains("no space left"),
        "{place:?}: {ended:?}"
    );
    assert_eq!(manifest(), before, "{place:?}");
    let left: &[&str] = if is_there { &["set"] } else { &[] };
    assert_eq!(names(folder.path()), left, "{place:?}");
    // With space on the disk it succeeds.
    assert_eq!(generated(folder.path(), "2", "").exit, Some(0));
    assert_ne!(manifest(), before);
    assert_eq!(names(folder.path()), ["set"]);
}

/// A failure between the program and the target is neither a finding nor a pass.
fn world(place: Failpoint) {
    let folder = folder();
    let ended = judged(folder.path(), place.name());
    // A hook that cannot be started counts as missing.
    let codes: &[i32] = if place == Failpoint::HookSpawn {
        &[0, 3, 4]
    } else {
        &[3, 4]
    };
    assert!(
        ended.exit.is_some_and(|exit| codes.contains(&exit)),
        "{place:?}: {ended:?}"
    );
    assert!(!ended.stdout.contains("FAIL"), "{place:?}: {ended:?}");
}
