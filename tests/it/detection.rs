//! The defects that the estimated detection rate is made of are those of `tests/foreign/expected.txt`.
//! `BLESS=1 cargo test --test it detection` writes them.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::program::root;
use std::fmt::Write as _;

const HEAD: &str = "\
# For each defect of the third-party implementation in tests/foreign, the classes of the rules that report it. Written by
# `BLESS=1 cargo test --test it detection` from tests/foreign/expected.txt; the estimated detection rate is made of it.
defects:
";

#[test]
fn the_known_defects_are_those_of_the_third_party_implementation() {
    let expected = std::fs::read_to_string(root().join("tests/foreign/expected.txt"));
    let expected = expected.expect("it is there");
    let lines = expected
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut defects: Vec<Vec<&str>> = lines
        .map(|line| {
            let mut classes: Vec<&str> = line.split(' ').skip(1).collect();
            classes.retain(|class| *class != "nothing");
            classes.sort_unstable();
            classes
        })
        .collect();
    defects.sort();
    let mut made = HEAD.to_owned();
    for classes in &defects {
        let _ = writeln!(made, "  - [{}]", classes.join(", "));
    }
    let place = root()
        .join("specs")
        .join(conformant_selftest::THIRD_PARTY_FILE);
    if std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(&place, &made).expect("the disk is writable");
    }
    assert!(
        std::fs::read_to_string(&place).is_ok_and(|text| text == made),
        "specs/{} differs; repair: BLESS=1 cargo test --test it detection",
        conformant_selftest::THIRD_PARTY_FILE
    );
}
