//! Tests of `json::window`.

use conformant_base::json::window;
use serde_json::{Value, json};

/// Lines in total.
const LINES_MAX: usize = 40;

#[test]
fn what_stands_around_the_place_is_shown_and_the_rest_is_counted() {
    let flows: Vec<Value> = (0..100).map(|n| json!({"sid": n, "name": "x"})).collect();
    let page = json!({"flows": flows, "meta": {"key": "flows", "page_size": 101}});
    let (text, marked) = window(&page, "/meta/page_size");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[marked - 1], "    \"page_size\": 101");
    assert!(
        lines[1].starts_with("  \"flows\": [{\"sid\":0,") && lines[1].ends_with("(100 items),")
    );
    let (text, marked) = window(&page, "/flows/50/sid");
    assert_eq!(text.lines().nth(marked - 1), Some("      \"sid\": 50,"));
    assert!(text.contains("    … 46 more items\n") && text.contains("    … 45 more items\n"));
}

#[test]
fn a_missing_member_is_marked_where_it_would_stand() {
    let (text, marked) = window(&json!({"a": 1}), "/b");
    assert_eq!(
        (text.as_str(), marked),
        ("{\n  \"a\": 1\n  … no \"b\"\n}", 3)
    );
}

#[test]
fn no_document_makes_many_or_long_lines() {
    let mut deep = json!("x".repeat(10_000));
    for _ in 0..100 {
        deep = json!({"a": deep, "b": vec!["y".repeat(500); 500]});
    }
    for pointer in ["", "/a/a/a/a", "/a/b/499", "/nowhere/at/all"] {
        let (text, marked) = window(&deep, pointer);
        assert!(
            text.lines().count() <= LINES_MAX && marked <= LINES_MAX,
            "{pointer}"
        );
        assert!(text.len() < 8_000, "{pointer}: {}", text.len());
    }
}
