//! Tests of `step_format`.

use conformant_rulebook::step::Step;
use serde_json::{Value, json};

/// The names of all verbs.
const VERBS: [&str; 9] = [
    "call",
    "get",
    "hook",
    "listen",
    "await",
    "token",
    "wait",
    "use",
    "concurrently",
];

fn read(step: Value) -> serde_json::Result<Value> {
    let step: Step = serde_json::from_value(step)?;
    let whole = serde_json::to_value(&step)?;
    let said = whole.as_object().into_iter().flatten();
    let said = said.filter(|(_, v)| !v.is_null() && **v != json!(false) && **v != json!([]));
    Ok(said.map(|(k, v)| (k.clone(), v.clone())).collect())
}

#[test]
fn keys_stand_in_any_order() {
    let plain = json!({"hook": "lease", "with": {"a": 1}, "capture": "it", "setup": true});
    assert_eq!(read(plain.clone()).unwrap(), plain);
    let turned: Value = plain
        .as_object()
        .into_iter()
        .flatten()
        .rev()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    assert_eq!(read(turned).unwrap(), plain);
}

#[test]
fn keys_of_other_verbs_are_rejected() {
    for (step, says) in [
        (json!({}), "a step without a verb"),
        (json!({"setup": true}), "a step without a verb"),
        (
            json!({"wait": "2s", "use": "x"}),
            "a step with 2 verbs: wait, use",
        ),
        (
            json!({"wait": "2s", "walk": true}),
            "invalid key `walk` of `wait`: it belongs to call",
        ),
        (
            json!({"walk": true, "wait": "2s"}),
            "invalid key `walk` of `wait`: it belongs to call",
        ),
        (
            json!({"wait": "2s", "walks": true}),
            "unknown field `walks`",
        ),
        (
            json!({"walks": true, "wait": "2s"}),
            "unknown field `walks`",
        ),
        (json!({"wait": 2}), "expected a string"),
    ] {
        let fault = read(step).unwrap_err().to_string();
        assert!(fault.contains(says), "{fault}");
    }
}

#[test]
fn the_schema_has_one_form_for_each_verb() {
    let schema = schemars::schema_for!(Step).to_value();
    let forms = schema["oneOf"].as_array().unwrap();
    assert_eq!(forms.len(), VERBS.len());
    for (form, word) in forms.iter().zip(VERBS) {
        assert_eq!(form["additionalProperties"], false);
        let required = form["required"].as_array().unwrap();
        assert_eq!(required, &[json!(word)]);
        assert!(form["properties"].get("repeat").is_some());
    }
}
