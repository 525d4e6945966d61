//! Fixtures and exports into unusable places: the error has advice, and no partial output is left.

use super::program::{Folder, files, one_in};
use std::fs;

/// Each command that writes a folder, without the folder.
const WAYS: [&str; 3] = [
    "fixtures generate --kind flow/flow --out",
    "fixtures generate --kind flow/flow --format ndjson --out",
    "fixtures export --format asyncapi",
];

fn check(folder: &str, code: i32, expected: &str) {
    for way in WAYS {
        let here = Folder::new();
        here.write("file", "mine");
        here.write("occupied/notes", "mine");
        let before = files(&here, &[]);
        let line = format!("{way} {folder}");
        let (_, error) = here.run(code, &line);
        assert!(error.contains(expected), "{line}: {error}");
        assert_eq!(files(&here, &[]), before, "{line} left something");
        assert_eq!(here.read("file"), "mine");
    }
}

#[test]
fn a_path_that_climbs_is_refused() {
    check("../out", 2, "use a relative path without `..`");
    check("new/../../out", 2, "use a relative path without `..`");
}

#[test]
fn a_file_is_not_a_folder() {
    check("file", 2, "use a folder");
}

#[test]
fn a_folder_with_other_content_is_kept() {
    check("occupied", 2, "use an empty or new folder");
}

#[test]
fn an_impossible_folder_is_an_error() {
    check("file/below", 2, "use a folder");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for format in one_in(3, vec!["hurl", "har", "openapi"]) {
        let home = Folder::new();
        let made = ["first", "second"].map(|folder| {
            let line = format!("fixtures export --format {format} --service media {folder}");
            home.run(0, &line);
            let folder = home.join(folder);
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
