//! Fixtures and exports into unusable places: the error has advice, and no partial output is left.

use super::program::{files, run};
use std::fs;
use std::path::Path;

/// Each command that writes a folder, without the folder.
const WAYS: [&[&str]; 3] = [
    &["fixtures", "generate", "--kind", "flow/flow", "--out"],
    &[
        "fixtures",
        "generate",
        "--kind",
        "flow/flow",
        "--format",
        "ndjson",
        "--out",
    ],
    &["fixtures", "export", "--format", "asyncapi"],
];

fn check(folder: &str, code: i32, expected: &str) {
    for way in WAYS {
        let home = tempfile::tempdir().expect("the disk is writable");
        let here = home.path().join("here");
        fs::create_dir_all(here.join("occupied")).expect("the disk is writable");
        fs::write(here.join("file"), "mine").expect("the disk is writable");
        fs::write(here.join("occupied/notes"), "mine").expect("the disk is writable");
        let before = names(home.path());
        let arguments = [way, &[folder]].concat();
        let (ended, _, error) = run(&here, &arguments);
        assert_eq!(ended, code, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert_eq!(names(home.path()), before, "{arguments:?} left something");
        let kept = fs::read_to_string(here.join("file")).expect("it is still there");
        assert_eq!(kept, "mine");
    }
}

fn names(folder: &Path) -> Vec<std::path::PathBuf> {
    files(folder, &[])
}

#[test]
fn a_path_that_climbs_is_refused() {
    check("../out", 2, "use a path without `..`");
    check("new/../../out", 2, "use a path without `..`");
}

#[test]
fn a_file_is_not_a_folder() {
    check("file", 3, "use a folder");
}

#[test]
fn a_folder_with_other_content_is_kept() {
    check("occupied", 2, "use an empty or new folder");
}

#[test]
fn an_impossible_folder_is_an_error() {
    check("file/below", 3, "use a folder");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for format in ["hurl", "har", "openapi"] {
        let home = tempfile::tempdir().expect("the disk is writable");
        let made = ["first", "second"].map(|folder| {
            let arguments = [
                "fixtures",
                "export",
                "--format",
                format,
                "--service",
                "media",
                folder,
            ];
            let (ended, _, error) = run(home.path(), &arguments);
            assert_eq!(ended, 0, "{error}");
            let folder = home.path().join(folder);
            let paths = files(&folder, &[]).into_iter();
            let read = paths.map(|path| {
                let bytes = fs::read(&path).expect("it was written");
                let name = path.strip_prefix(&folder).expect("it is in the folder");
                (name.to_owned(), bytes)
            });
            read.collect::<Vec<_>>()
        });
        assert!(made[0].len() > 2, "{format}");
        assert!(
            made[0] == made[1],
            "{format} differs from one run to the next"
        );
    }
}
