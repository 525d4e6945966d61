//! Tests of `diff`.

use conformant_base::diff::{DIFF_BYTES_MAX, DIFF_LINES_MAX, unified_diff};
use proptest::prelude::*;

#[test]
fn diffs_are_unified_and_count_lines_of_the_whole() {
    let lines = |last: &str| {
        let mut all: Vec<String> = (1..20).map(|n| n.to_string()).collect();
        all.push(last.to_owned());
        all.join("\n")
    };
    assert_eq!(
        unified_diff(&lines("x"), &lines("\u{1b}y")),
        "--- expected\n+++ actual\n@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-x\n+\\x1by\n"
    );
    assert_eq!(unified_diff("a", "a"), "");
}

#[test]
fn long_diffs_end_with_how_much_more_there_is() {
    let numbered = |letter| {
        let lines: Vec<_> = (0..100_000).map(|n| format!("{letter}{n}\n")).collect();
        lines.concat()
    };
    let diff = unified_diff(&numbered('a'), &numbered('b'));
    assert_eq!(diff.lines().count(), DIFF_LINES_MAX + 1);
    assert!(
        diff.ends_with("… 101803 more lines\n"),
        "{:?}",
        diff.lines().last()
    );
    let diff = unified_diff(&"x".repeat(100_000), &"y".repeat(100_000));
    assert!(diff.len() < 5_000, "{}", diff.len());
}

proptest! {
    #[test]
    fn any_two_texts_have_a_bounded_diff(old in ".{0,400}", new in "(\\PC*\n){0,40}") {
        let diff = unified_diff(&old, &new);
        prop_assert!(diff.len() <= DIFF_BYTES_MAX + 64);
        prop_assert_eq!(diff.is_empty(), old == new);
    }
}
