//! Documents against the embedded rulebook: one defect gives one violation of the deepest rule.

use conformant_judge::load::shared as rulebook;
use conformant_rulebook::{OTHER_FIELDS_KEY, RULE_KEY};
use conformant_schema::{DEFECTS_MAX, Schemas, compile, is_date_time};
use serde_json::{Value, json};

fn execution() -> Value {
    let sid = |prefix: &str| format!("{prefix}{}", "0a".repeat(16));
    json!({
        "sid": sid("FN"), "account_sid": sid("AC"), "flow_sid": sid("FW"),
        "contact_sid": sid("FC"), "contact_channel_address": "+15005550006",
        "context": {}, "status": "active", "date_created": "2026-01-01T00:00:00Z",
        "date_updated": null, "url": "http://127.0.0.1/flow/v1/x",
        "links": {"steps": "http://127.0.0.1/flow/v1/x/Steps"},
    })
}

fn broken(kind: &str, value: &Value) -> Vec<(String, String, &'static str)> {
    Schemas::default()
        .violations(rulebook(), kind, value)
        .into_iter()
        .map(|v| (v.pointer, v.rule, v.kind))
        .collect()
}

/// One violation with this rule at this place.
fn only(pointer: &str, rule: &str, kind: &'static str) -> Vec<(String, String, &'static str)> {
    vec![(pointer.to_owned(), rule.to_owned(), kind)]
}

#[test]
fn a_representation_as_shown_breaks_nothing() {
    assert_eq!(broken("flow/execution", &execution()), []);
    let examined = Schemas::default().examine(rulebook(), "flow/execution", &execution());
    assert!(
        examined
            .judged
            .contains(&"flow/execution/status".to_owned())
    );
    assert!(
        examined
            .judged
            .contains(&"flow/execution/no-other-fields".to_owned())
    );
    assert!(
        !examined
            .judged
            .contains(&"flow/execution/links/execution-context".to_owned())
    );
}

#[test]
fn one_defect_is_one_violation_of_the_deepest_rule() {
    let with = |field: &str, value: Value| {
        let mut execution = execution();
        execution[field] = value;
        broken("flow/execution", &execution)
    };
    for (field, value, rule, kind) in [
        ("sid", Value::Null, "sid", "null"),
        ("sid", json!(1), "sid", "type"),
        ("sid", json!("FN12"), "sid", "pattern"),
        ("status", json!("done"), "status", "enum"),
        ("date_created", json!("today"), "date-created", "format"),
        (
            "date_created",
            json!("2026-01-01T00:00:00-05:00"),
            "date-created",
            "pattern",
        ),
        ("date_updated", json!("x"), "date-updated", "format"),
        ("date_updated", json!(1), "date-updated", "type"),
    ] {
        let rule = format!("flow/execution/{rule}");
        let broken = only(&format!("/{field}"), &rule, kind);
        assert_eq!(with(field, value), broken, "{field} {kind}");
    }
    let steps = only("/links/steps", "flow/execution/links/steps", "type");
    assert_eq!(with("links", json!({"steps": 1})), steps);
    assert_eq!(with("links", json!({"anything": "x"})), []);
    let offset = json!("2026-01-01T00:00:00.5+0000");
    assert_eq!(with("date_created", offset), []);
}

#[test]
fn missing_and_unlisted_fields_have_their_rules() {
    let mut value = execution();
    value.as_object_mut().unwrap().remove("status");
    assert_eq!(
        broken("flow/execution", &value),
        only("/status", "flow/execution/status", "missing-field")
    );
    let mut value = execution();
    value["a/b"] = json!(1);
    assert_eq!(
        broken("flow/execution", &value),
        only("/a~1b", "flow/execution/no-other-fields", "extra-field")
    );
}

#[test]
fn items_of_a_page_are_judged_by_their_own_rules() {
    let mut item = execution();
    item["status"] = json!("done");
    let meta = json!({
        "page": 0, "page_size": 50, "first_page_url": "http://127.0.0.1/x", "url": "http://127.0.0.1/x",
        "previous_page_url": null, "next_page_url": null, "key": "executions",
    });
    let page = json!({"meta": meta, "executions": [execution(), item]});
    assert_eq!(
        broken("flow/execution[]", &page),
        only("/executions/1/status", "flow/execution/status", "enum")
    );
    assert_eq!(
        broken("flow/execution[]", &json!({"meta": meta})),
        only(
            "/executions",
            "flow/read-executions/executions",
            "missing-field"
        )
    );
    for root in [json!(42), json!(null), json!([])] {
        let found = broken("flow/execution[]", &root);
        assert_eq!(found.len(), 1, "{root}");
        assert_eq!(found[0].0, "");
    }
}

#[test]
fn a_broken_item_far_behind_in_a_long_list_is_found() {
    let mut items = vec![execution(); 1_203];
    items[1_202]["status"] = json!("asleep");
    let meta = json!({
        "page": 0, "page_size": 50, "first_page_url": null, "previous_page_url": null,
        "url": "http://h/x", "next_page_url": null, "key": "executions",
    });
    let mut page = json!({"meta": meta, "executions": items});
    let one = only("/executions/1202/status", "flow/execution/status", "enum");
    assert_eq!(broken("flow/execution[]", &page), one);
    page["executions"] = json!(vec![json!({}); 100_000]);
    let found = broken("flow/execution[]", &page).len();
    assert!((1..=DEFECTS_MAX).contains(&found), "{found}");
}

#[test]
fn a_text_that_should_hold_json_is_read() {
    let mut role = json!({"attributes": "{\"a\": "});
    let pick = |value: &Value| {
        broken("chat/user", value)
            .into_iter()
            .filter(|(at, _, _)| at == "/attributes")
            .collect::<Vec<_>>()
    };
    assert_eq!(
        pick(&role),
        only("/attributes", "chat/user/attributes", "json-text")
    );
    role["attributes"] = json!("{}");
    assert_eq!(pick(&role), []);
}

#[test]
fn every_schema_compiles_and_names_rules_that_exist() {
    fn names(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value.as_str()) {
                        (RULE_KEY | OTHER_FIELDS_KEY, Some(rule)) => {
                            found.push(rule.to_owned());
                        }
                        _ => names(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    for kind in rulebook().kinds.values() {
        compile(&kind.schema).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
        let mut found = Vec::new();
        names(&kind.schema, &mut found);
        for rule in found {
            assert!(
                rulebook().rules.contains_key(&rule),
                "{}: {rule}",
                kind.name
            );
        }
    }
}

#[test]
fn date_times_are_iso_8601_with_an_offset() {
    for fine in [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.123456Z",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00+0000",
        "2026-01-01t00:00:00z",
    ] {
        assert!(is_date_time(fine), "{fine}");
    }
    for wrong in [
        "2026-01-01",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-01-01T00:00:00Z[UTC]",
        "Thu, 01 Jan 2026 00:00:00 GMT",
        "",
    ] {
        assert!(!is_date_time(wrong), "{wrong}");
    }
}
