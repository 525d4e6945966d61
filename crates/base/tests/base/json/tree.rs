//! Tests of `json::tree`.

use conformant_base::json::{Limits, Note, ParseFault, Parsed, parse};
use proptest::prelude::*;
use serde_json::Value;

fn plain(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// The text as the first item of an array before another item.
fn before(text: &str, other: &str, limits: Limits) -> Result<(Value, Vec<Note>), ParseFault> {
    let whole = format!("[{text},{other}]");
    let Parsed { mut value, notes } = parse(whole.as_bytes(), limits)?;
    Ok((value[0].take(), notes))
}

proptest! {
    /// The fast path accepts only documents without oddities, and reads them as the careful reader does. A text that
    /// contains the beginning of a reserved key is left to the careful reader.
    #[test]
    fn it_is_plain_where_its_tokens_are(
        text in "([{}\\[\\],:]|\"[a-c\\\\n]{0,2}\"|-?[0-9.e+]{1,4}|null|true| |(\\{\"[ab]\":){1,3}|[\\]}]{1,3}|\"\\$serde_json::private::Number\":\"1\"|\"\\\\u0024serde_json::private::RawValue\"){0,12}",
        depth in 0_usize..5,
        nodes in 0_usize..10,
    ) {
        let limits = Limits { depth, nodes, bytes: 1_000 };
        let careful = before(&text, "\"$serde_json::private::\"", limits);
        prop_assert_eq!(before(&text, "\"$serde_json::PRIVATE::\"", limits), careful);
    }

    /// The tree equals that of `serde_json`, and errors have the same positions.
    #[test]
    fn it_is_the_same_tree(text in "([{}\\[\\],:]|\"[a-c\\\\n]{0,2}\"|-?[0-9.e+]{1,4}|null|true| ){0,30}") {
        match (parse(text.as_bytes(), Limits::default()), plain(&text)) {
            (Ok(lean), Ok(plain)) => prop_assert_eq!(lean.value.to_string(), plain.to_string()),
            (Err(ParseFault::Syntax { reason, at }), Err(plain)) => {
                let lean = format!("{reason} at line {} column {}", at.line, at.column);
                prop_assert_eq!(lean, plain.to_string());
            }
            (Err(ParseFault::Empty), Err(plain)) => prop_assert!(plain.is_eof(), "{plain:?}"),
            (lean, plain) => prop_assert!(false, "{lean:?} {plain:?}"),
        }
    }
}

#[test]
fn numbers_keep_their_text_and_of_a_key_the_last_value_counts() {
    let text = r#"{"b":1.50,"a":[-0,1E+2,1e999999,123456789012345678901234567890],"b":{"c":2}}"#;
    let lean = parse(text.as_bytes(), Limits::default()).unwrap().value;
    assert_eq!(lean.to_string(), plain(text).unwrap().to_string());
    assert_eq!(lean["b"], serde_json::json!({"c": 2}));
}
