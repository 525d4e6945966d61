//! Tests of `read`.

use conformant_yaml::{ambiguous, from_node, read};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

#[test]
fn a_document_becomes_json_and_knows_its_places() {
    let text = "a:\n  - { b: 1, c: [x, null, true] }\n200: \"no\"\n";
    let node = read(text).unwrap();
    assert_eq!(
        node.to_json(),
        json!({"a": [{"b": 1, "c": ["x", null, true]}], "200": "no"})
    );
    let at = |pointer: &str| {
        let span = node.place(pointer);
        &text[span.start..span.start + span.length]
    };
    assert_eq!(at("/a/0/c/0"), "x");
    assert_eq!(at("/a/0/c"), "c");
    assert_eq!(at("/200"), "\"no\"");
    assert_eq!(at("/a/0/b/deeper"), "1");
}

#[test]
fn strictness() {
    for (text, word) in [
        ("a: 1\na: 2\n", "duplicate"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge"),
        ("a: 1\n---\nb: 2\n", "document"),
        ("a: !x 1\n", "tag"),
        ("a: *unknown\n", "anchor"),
        ("a: [1\n", ""),
        ("a: .inf\n", ""),
    ] {
        let fault = read(text).expect_err(text);
        assert!(
            fault.message.to_lowercase().contains(word),
            "{text}: {}",
            fault.message
        );
    }
    assert_eq!(read("a: no").unwrap().to_json(), json!({"a": "no"}));
}

#[test]
fn budgets_hold() {
    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    assert!(read(&deep).is_err());
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for n in 1..40 {
        let list = format!("*a{},", n - 1).repeat(9);
        bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    assert!(read(&bomb).is_err());
}

#[test]
fn types_are_read_with_the_place_of_what_does_not_fit() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Thing {
        name: String,
        count: Option<u8>,
    }
    let misfit = |text: &str| {
        let node = read(text).unwrap();
        let fault = from_node::<Thing>(&node).unwrap_err();
        let span = fault.span.unwrap();
        (
            text[span.start..span.start + span.length].to_owned(),
            fault.message,
        )
    };
    assert_eq!(misfit("name: x\ncuont: 1").0, "cuont");
    assert_eq!(misfit("name: x\ncount: many").0, "many");
    assert!(misfit("count: 1").1.contains("`name` is missing"));
}

#[test]
fn plain_scalars_that_readers_disagree_about_are_found() {
    let text = "a: NO\nb: \"NO\"\nc: 010\nd: 1.10\ne: 1e3\nf: 12:30\ng: 3.1.0\nh: ~\non: 1\ni: 10\nj: 0.5\nk: true\nl: 1.0\n";
    let mut found = Vec::new();
    ambiguous(&read(text).unwrap(), text, &mut found);
    let words: Vec<_> = found.into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["NO", "010", "1.10", "1e3", "12:30", "~", "on"]);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ a-c:\\-\\[\\]{}&*!|>'\"#%@,?~<0-9\\n\u{e9}]{0,80}") {
        if let Ok(node) = read(&text) {
            let mut found = Vec::new();
            ambiguous(&node, &text, &mut found);
            let _ = node.place("/a/0/b");
        }
    }
}
