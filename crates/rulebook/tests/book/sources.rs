//! Tests of `sources`.

use crate::bad_files::{files, load};
use conformant_judge::load::from_dir;
use conformant_rulebook::{Problems, parse_file};
use conformant_yaml::Form;
use serde_json::Value;
use std::path::Path;

#[test]
fn trees_from_the_build_equal_trees_read_now() {
    let yaml = conformant_specs::FILES
        .iter()
        .filter(|file| file.path.rsplit('.').next() == Some("yaml"));
    let mut read = 0;
    for file in yaml {
        let path = file.path;
        let text = std::str::from_utf8(file.bytes).unwrap();
        let built = Form(file.tree).node();
        let built = built.unwrap_or_else(|| panic!("{path} is not there"));
        assert_eq!(built, conformant_yaml::read(text).unwrap(), "{path}");
        // Other bytes under the same path are read, not taken from the build.
        let value = parse_file::<Value>(path, file.bytes).unwrap();
        assert_eq!(value, built.to_json(), "{path}");
        let changed = parse_file::<Value>(path, format!("{text}\nadded: 1\n").as_bytes()).unwrap();
        assert_eq!(
            (&value["added"], &changed["added"]),
            (&Value::Null, &1.into()),
            "{path}"
        );
        read += 1;
    }
    assert!(read > 50, "{read} files");
    assert!(conformant_specs::file("conformant.yaml").is_none());
}

#[test]
fn the_digest_depends_on_paths_and_bytes() {
    let of = |files: &[(&str, String)]| {
        let rulebook = load(files).unwrap_or_else(|problems| panic!("{problems}"));
        rulebook.digest().to_owned()
    };
    let plain = files();
    assert_eq!(of(&plain).len(), 64);
    let turned: Vec<_> = plain.iter().rev().cloned().collect();
    assert_eq!(of(&plain), of(&turned));
    let mut changed = plain.clone();
    changed[3].1.push_str("# changed\n");
    assert_ne!(of(&plain), of(&changed));
    // One after the other, path and bytes are the same as before.
    let (mut longer_bytes, mut longer_path) = (plain.clone(), plain);
    let rules = longer_path[3].1.clone();
    longer_bytes[3].1 = format!("#.yaml\n{rules}");
    longer_path[3] = ("flow/rules/flows.yaml#.yaml", format!("\n{rules}"));
    assert_ne!(of(&longer_bytes), of(&longer_path));
}

/// A folder with the files of the example.
fn example() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("the disk is writable");
    for (path, text) in files() {
        let path = dir.path().join(path);
        let folder = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(folder).expect("the disk is writable");
        std::fs::write(path, text).expect("the disk is writable");
    }
    dir
}

/// Each file that has a problem, with the problem.
fn named(problems: &Problems) -> Vec<(&str, &str)> {
    let problems = problems.iter();
    problems
        .map(|p| (p.file.as_str(), p.message.as_str()))
        .collect()
}

#[test]
fn hidden_and_irregular_files_are_not_read() {
    let dir = example();
    std::fs::write(dir.path().join(".swap"), "x").unwrap();
    let rulebook = from_dir(dir.path()).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(rulebook.digest(), load(&files()).unwrap().digest());
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("link.yaml")).unwrap();
    let problems = from_dir(dir.path()).unwrap_err();
    assert_eq!(named(&problems), [("link.yaml", "is not a regular file")]);
}

#[test]
fn a_folder_that_is_too_deep_is_a_problem() {
    let dir = example();
    let deep = dir.path().join("1/2/3/4/5/6/7");
    std::fs::create_dir_all(deep.join("8")).unwrap();
    std::fs::write(deep.join("read.yaml"), "a: 1").unwrap();
    std::fs::write(deep.join("8/ignored.yaml"), "a: 1").unwrap();
    let problems = from_dir(dir.path()).unwrap_err();
    assert_eq!(
        named(&problems),
        [
            (
                "1/2/3/4/5/6/7/8",
                "is not read: a file may be in at most 7 folders"
            ),
            ("1/2/3/4/5/6/7/read.yaml", "unexpected file in the rulebook"),
        ]
    );
}

#[test]
fn a_missing_folder_is_a_problem() {
    let problems = from_dir(Path::new("/nowhere/at/all")).unwrap_err();
    let unread = named(&problems).into_iter();
    let unread = unread.filter(|(_, message)| message.starts_with("cannot be read"));
    let unread: Vec<&str> = unread.map(|(path, _)| path).collect();
    assert_eq!(unread, ["/nowhere/at/all"]);
}
