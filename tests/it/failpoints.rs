//! Each write, rename, sync, spawn and connection fails once: the exit code is a documented one, the old or the complete
//! new file is present, and no other file is left.
//!
//! Release builds have no failpoints, so that nothing is tested there.

use crate::hostile::command::{Ended, conformant, run};
use crate::hostile::process::falling_silent_after;
use crate::program::{Folder, one_in};
use conformant_base::failpoint::Failpoint;

/// What a run leaves in its folder.
fn left(folder: &Folder) -> Vec<String> {
    let mut names = folder.names();
    names.retain(|name| name != ".git" && name != "conformant.yaml");
    names
}

fn judged(folder: &Folder, script: &str) -> Ended {
    let target = falling_silent_after(usize::MAX);
    folder.write(
        "conformant.yaml",
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

fn generated(folder: &Folder, seed: &str, script: &str) -> Ended {
    let mut command = conformant(folder);
    command.args(["fixtures", "generate", "--kind", "flow/flow"]);
    command.args(["--out", "set", "--seed", seed]);
    run(command.env("CONFORMANT_FAILPOINTS", script))
}

/// Expected result for each place, so that a new place needs a row.
#[test]
fn a_single_failure_is_reported_and_loses_nothing() {
    if !cfg!(debug_assertions) {
        return;
    }
    for place in one_in(3, Failpoint::ALL.into()) {
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
    let folder = Folder::with_limits();
    folder.write("run.json", "the old one");
    let ended = judged(&folder, place.name());
    assert_eq!(ended.exit, Some(3), "{place:?}: {ended:?}");
    assert!(ended.stderr.contains("run.json"), "{place:?}: {ended:?}");
    assert!(ended.stdout.contains("passed: "), "{place:?}: {ended:?}");
    assert_eq!(folder.read("run.json"), "the old one", "{place:?}");
    assert_eq!(left(&folder), ["run.json"], "{place:?}");
}

fn set(place: Failpoint, is_there: bool) {
    let folder = Folder::with_limits();
    let manifest = || std::fs::read(folder.join("set/manifest.json")).ok();
    if is_there {
        assert_eq!(generated(&folder, "1", "").exit, Some(0));
    }
    let before = manifest();
    let ended = generated(&folder, "2", place.name());
    assert_eq!(ended.exit, Some(3), "{place:?}: {ended:?}");
    assert!(
        ended.stderr.contains("no space left"),
        "{place:?}: {ended:?}"
    );
    assert_eq!(manifest(), before, "{place:?}");
    let expected: &[&str] = if is_there { &["set"] } else { &[] };
    assert_eq!(left(&folder), expected, "{place:?}");
    // With space on the disk it succeeds.
    assert_eq!(generated(&folder, "2", "").exit, Some(0));
    assert_ne!(manifest(), before);
    assert_eq!(left(&folder), ["set"]);
}

/// A failure between the program and the target is neither a finding nor a pass.
fn world(place: Failpoint) {
    let folder = Folder::with_limits();
    let ended = judged(&folder, place.name());
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
