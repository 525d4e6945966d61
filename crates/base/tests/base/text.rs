//! Tests of `text`.

use conformant_base::text::{
    canonical_json, did_you_mean, escape, escape_line, excerpt, glob, is_deceptive, safe_json,
    shell_quoted, shell_words,
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn a_quoted_command_line_has_the_words_that_were_quoted() {
    let words = ["run", "--filter", "flow/*", "it's", "", "a b", "$x", "\\"];
    let line = words.map(shell_quoted).join(" ");
    assert_eq!(line, r"run --filter 'flow/*' 'it'\''s' '' 'a b' '$x' '\'");
    assert_eq!(shell_words(&line), words);
}

#[test]
fn what_deceives_becomes_visible() {
    let cases = [
        ("plain ü 漢\n\tx", "plain ü 漢\n\tx"),
        ("\u{1b}[31mred\u{7}", "\\x1b[31mred\\x07"),
        ("a\rb\u{8}\u{7f}\u{9b}", "a\\rb\\x08\\x7f\\x9b"),
        ("\u{202e}abc\u{2066}", "\\u{202e}abc\\u{2066}"),
        (
            "a\u{2028}b\u{200b}c\u{feff}",
            "a\\u{2028}b\\u{200b}c\\u{feff}",
        ),
    ];
    for (raw, shown) in cases {
        assert_eq!(escape(raw), shown);
    }
    assert_eq!(escape_line("a\n\tb"), "a\\n\\tb");
}

#[test]
fn a_plain_text_has_nothing_to_escape() {
    let signs = [
        'a', ' ', ':', '#', '[', '\n', '\t', '\r', '\u{7f}', '\u{1b}', '\u{202e}', 'é',
    ];
    let mut plain = 0;
    let texts = (0..signs.len().pow(4)).map(|number| {
        let at = |place: u32| signs[number / signs.len().pow(place) % signs.len()];
        (0..4).map(at).collect::<String>()
    });
    for text in texts {
        // At the end, so that what comes before is not plain as a whole and is escaped one by one.
        let with_end = format!("{text}\u{7f}");
        for escape in [escape, escape_line] {
            let whole = escape(&with_end);
            let shown = escape(&text);
            assert_eq!(whole.strip_suffix("\\x7f"), Some(&*shown), "{text:?}");
            plain += usize::from(shown == text);
        }
    }
    assert!(plain > 1_000, "{plain}");
}

#[test]
fn commands_of_ci_services_are_broken_up() {
    let cases = [
        ("::error::x", "\\x3a:error::x"),
        ("a\n  ::set-env name=x::y", "a\n  \\x3a:set-env name=x::y"),
        ("a ::1 b\n::1 c::d", "a ::1 b\n::1 c::d"),
        ("wrapped ::debug::x", "wrapped \\x3a:debug::x"),
        ("see ##vso[task.complete]", "see \\x23#vso[task.complete]"),
        ("##[error]", "\\x23#[error]"),
        ("###teamcity[x]", "#\\x23#teamcity[x]"),
        ("## Heading", "## Heading"),
    ];
    for (raw, shown) in cases {
        assert_eq!(escape(raw), shown);
    }
}

#[test]
fn excerpts_are_cut_between_characters_and_say_so() {
    assert_eq!(excerpt("short", 5), "short");
    assert_eq!(excerpt("üüü", 3), "ü… (4 more bytes)");
}

#[test]
fn canonical_json_sorts_keys_and_keeps_numbers() {
    let value: Value = serde_json::from_str(r#"{"b":[1.0,1e400],"a":{},"c":[]}"#).unwrap();
    assert_eq!(
        canonical_json(&value),
        "{\n  \"a\": {},\n  \"b\": [\n    1.0,\n    1e+400\n  ],\n  \"c\": []\n}\n"
    );
}

#[test]
fn the_likely_word_is_proposed() {
    assert_eq!(
        did_you_mean("juint", &["json", "junit", "tap"]),
        Some("junit")
    );
    assert_eq!(did_you_mean("pdf", &["json", "junit"]), None);
    let ids = ["flow/delete-open", "flow/open/errors", "flow/read-flows"];
    assert_eq!(did_you_mean("flow/nope", &ids), None);
    assert_eq!(
        did_you_mean("Sent/9", &["Sent/4", "Read/4"]),
        Some("Sent/4")
    );
    assert_eq!(did_you_mean("flow/read-flow", &ids), Some(ids[2]));
}

#[test]
fn safe_json_holds_no_command_and_no_control() {
    let text = safe_json(&json!({"a": "##vso[x]\u{202e}\u{e0041}\u{9b}", "##[b]": 1})).unwrap();
    assert_eq!(
        text,
        "{\n  \"a\": \"\\u0023#vso[x]\\u202e\\udb40\\udc41\\u009b\",\n  \"\\u0023#[b]\": 1\n}\n"
    );
}

proptest! {
    #[test]
    fn nothing_deceptive_survives(text in any::<String>()) {
        let shown = escape(&text);
        prop_assert!(!shown.contains(is_deceptive));
        prop_assert!(!escape_line(&text).contains(['\n', '\t']));
        prop_assert_eq!(escape(&shown), shown.clone());
    }

    #[test]
    fn safe_json_decodes_to_the_same(text in any::<String>()) {
        let safe = safe_json(&text).unwrap();
        prop_assert!(!safe.trim_end().contains(is_deceptive));
        prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }
}

#[test]
fn globs_match_whole_ids_and_folders() {
    for (pattern, text, matches) in [
        ("flow/executions", "flow/executions/ended", true),
        ("flow/exec", "flow/executions/ended", false),
        ("flow/*", "flow/executions/ended", true),
        ("*/ended", "flow/executions/ended", true),
        ("flow/*/ended", "flow/executions/ended", true),
        ("*walk*", "flow/read-flows/walk", true),
        ("chat/*", "flow/x", false),
        ("flow/", "flow/x", true),
    ] {
        assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
    }
}
