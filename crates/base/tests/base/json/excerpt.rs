//! Tests of `json::excerpt`.

use conformant_base::json::excerpt;
use serde_json::json;

#[test]
fn a_cut_value_has_its_size() {
    for (value, shown) in [
        (json!({"name": "flow"}), "{\"na… (1 field)"),
        (json!({"a": 1, "b": 2}), "{\"a\"… (2 fields)"),
        (json!(["abcdef"]), "[\"ab… (1 item)"),
        (json!("abcdef"), "\"abc… (6 characters)"),
        (json!([1]), "[1]"),
    ] {
        assert_eq!(excerpt(&value, 4), shown);
    }
}
