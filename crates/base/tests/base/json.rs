//! JSON as it comes from strangers: limits, notes, positions, and what compares as the same.

use conformant_base::json::{
    Limits, Note, ParseFault, Parsed, digits, equal, excerpt, expand, get, join, parse, segments,
};
use proptest::prelude::*;
use serde_json::{Value, json};

mod excerpt;
mod tree;
mod window;

/// Keys that `serde_json` would interpret.
const RESERVED_KEYS: [&str; 2] = [
    "$serde_json::private::Number",
    "$serde_json::private::RawValue",
];

fn read(text: &str) -> Result<Parsed, ParseFault> {
    parse(text.as_bytes(), Limits::default())
}

#[test]
fn a_plain_document_is_read_without_notes() {
    let parsed = read(" {\"a\": [1, {\"b\": null}], \"c\": \"x\\\"{\"} ").unwrap();
    assert_eq!(parsed.value, json!({"a": [1, {"b": null}], "c": "x\"{"}));
    assert_eq!(parsed.notes, []);
}

#[test]
fn numbers_keep_their_text() {
    let text = "[18446744073709551617,1.0,1e999999,0.10]";
    assert_eq!(
        read(text)
            .unwrap()
            .value
            .to_string()
            .to_lowercase()
            .replace("e+", "e"),
        text
    );
}

#[test]
fn digits_of_a_number_have_no_exponent() {
    for (number, digits) in [
        ("7330061e0", "7330061"),
        ("1.0", "1"),
        ("-25e2", "-2500"),
        ("1.5", "1.5"),
        ("0", "0"),
        ("12345678901234567890123", "12345678901234567890123"),
    ] {
        assert_eq!(digits_of(number), digits, "{number}");
    }
    assert_eq!(digits_of("1e99"), "1e+99");
}

fn digits_of(text: &str) -> String {
    digits(&text.parse().expect("it is a number"))
}

#[test]
fn numbers_compare_as_decimals() {
    let number = |text: &str| read(text).unwrap().value;
    for (a, b) in [("1", "1.0"), ("100", "1e2"), ("-0", "0"), ("0.5", "5E-1")] {
        assert!(equal(&number(a), &number(b)), "{a} {b}");
    }
    for (a, b) in [
        ("9007199254740993", "9007199254740992"),
        ("1", "-1"),
        ("1e999999999999999999999", "1e999999999999999999998"),
        ("10", "1"),
    ] {
        assert!(!equal(&number(a), &number(b)), "{a} {b}");
    }
}

#[test]
fn a_byte_order_mark_is_noted() {
    assert_eq!(read("\u{feff}1").unwrap().notes, [Note::ByteOrderMark]);
}

#[test]
fn duplicate_keys_are_noted_with_both_positions_and_the_lost_value() {
    let parsed = read("{\"a\": [0, {\"s\": [1],\n \"\\u0073\": 2}]}").unwrap();
    assert_eq!(parsed.value, json!({"a": [0, {"s": 2}]}));
    let [
        Note::DuplicateKey {
            pointer,
            first,
            second,
            earlier,
        },
    ] = &parsed.notes[..]
    else {
        panic!("{:?}", parsed.notes)
    };
    assert_eq!(pointer, "/a/1/s");
    assert_eq!(
        (first.line, first.column, second.line, second.column),
        (1, 12, 2, 2)
    );
    assert_eq!(earlier, &json!([1]));
}

#[test]
fn limits_hold_before_a_tree_is_built() {
    let deep = "[".repeat(100_000);
    assert!(matches!(read(&deep), Err(ParseFault::TooDeep { limit: 64, at }) if at.byte == 64));
    let fits = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    assert!(read(&fits).is_ok());
    let many = format!("[{}1]", "1,".repeat(250_000));
    assert!(matches!(read(&many), Err(ParseFault::TooManyNodes { .. })));
    let large = " ".repeat(9 * 1024 * 1024);
    assert!(matches!(read(&large), Err(ParseFault::TooLarge { .. })));
}

#[test]
fn what_is_not_json_is_refused_with_its_position() {
    for (text, line, column) in [
        ("<html>", 1, 1),
        ("{\"a\": 1,\n \"b\": NaN}", 2, 7),
        ("[1] [2]", 1, 5),
        ("[1,]", 1, 4),
        ("{\"a\": \"x\ty\"}", 1, 9),
    ] {
        match read(text) {
            Err(ParseFault::Syntax { at, .. }) => {
                assert_eq!((at.line, at.column), (line, column), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["", " \n", "\u{feff}"] {
        assert_eq!(read(text), Err(ParseFault::Empty));
    }
    for text in ["\"\\ud800\"", "{\"a\"", "[", "\"", "\"\\", "nul"] {
        assert!(
            matches!(read(text), Err(ParseFault::Syntax { .. })),
            "{text}"
        );
    }
    let fault = parse(b"\"ab\xff\"", Limits::default());
    assert!(matches!(fault, Err(ParseFault::NotUtf8 { at }) if at.byte == 3));
}

#[test]
fn keys_with_a_meaning_inside_the_reader_are_refused() {
    for key in RESERVED_KEYS {
        assert!(matches!(
            read(&format!("{{\"a\": {{\"{key}\": \"1\"}}}}")),
            Err(ParseFault::ReservedKey { .. })
        ));
    }
}

#[test]
fn a_pointer_leads_where_rfc_6901_says() {
    let value = json!({"": 0, "a/b": [10, {"m~n": 1}], "0": {"": 2}, "+1": 3});
    for pointer in [
        "",
        "/",
        "/a~1b",
        "/a~1b/0",
        "/a~1b/00",
        "/a~1b/+1",
        "/a~1b/1/m~0n",
        "/a~1b/2",
        "/a~1b/-",
        "/0/",
        "/+1",
        "a",
        "//",
        "/a/b",
        "/a~1b/0/x",
    ] {
        assert_eq!(get(&value, pointer), value.pointer(pointer), "{pointer}");
    }
}

#[test]
fn pointers_escape_and_expand() {
    assert_eq!(join("/a", "x~/y"), "/a/x~0~1y");
    assert_eq!(segments("/x~0~1y/").collect::<Vec<_>>(), ["x~/y", ""]);
    let value = json!({"items": [{"a/b": 1}, {}, {"a/b": 2}], "m": {"x": 3, "y": 4}});
    let found = |pattern: &str| -> Vec<String> {
        expand(&value, pattern)
            .into_iter()
            .map(|(at, v)| format!("{at}={v}"))
            .collect()
    };
    assert_eq!(
        found("/items/*/a~1b"),
        ["/items/0/a~1b=1", "/items/2/a~1b=2"]
    );
    assert_eq!(found("/m/*"), ["/m/x=3", "/m/y=4"]);
    assert_eq!(found("/m/x/deeper"), Vec::<String>::new());
    assert_eq!(expand(&value, "").len(), 1);
}

#[test]
fn excerpts_are_bounded() {
    assert_eq!(
        excerpt(&json!({"a": ["b\u{7}", 1]}), 80),
        "{\"a\":[\"b\\u0007\",1]}"
    );
    let long = excerpt(&Value::String("x".repeat(1_000_000)), 10);
    assert_eq!(long, "\"xxxxxxxxx… (1000000 characters)");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, Limits::default());
    }

    #[test]
    fn near_json_does_not_make_it_panic(text in "[\\[\\]{}:,\"\\\\ a1e.\\-\u{e9}]{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn whatever_serde_reads_is_read_the_same(text in "[\\[\\]{}:,\" 1]{0,12}") {
        let theirs = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(read(&text).map(|p| p.value).ok(), theirs.ok());
    }
}
