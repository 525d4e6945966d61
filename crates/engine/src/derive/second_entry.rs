//! Lists and hashes with an invalid second entry.

use super::cases::{Cases, accepted, captured, either, only, refused, slug};
use super::parameters::FOREIGN;
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Parameter, ParameterLocation};
use serde_json::{Map, Value, json};

/// Each parameter with several entries.
pub(super) fn derive(cases: &mut Cases<'_>) {
    for parameter in &cases.operation.parameters {
        let steps = match parameter.schema.get("type").and_then(Value::as_str) {
            Some("array") => of_list(cases, parameter),
            Some("object") => of_hash(cases, parameter),
            Some(_) | None => Vec::new(),
        };
        if !steps.is_empty() {
            let what = format!("the second of {} is wrong", parameter.name);
            let case = format!("{}-second-wrong", slug(parameter));
            cases.after_setup(&case, &what, steps);
        }
    }
}

fn of_list(cases: &Cases<'_>, parameter: &Parameter) -> Vec<Step> {
    let items = &parameter.schema["items"];
    let right = cases.value_of(&parameter.name).and_then(|v| v.get(0));
    let Some(right) = right else {
        return Vec::new();
    };
    let call = |step: Call, values: Value| cases.call(step, &only(&parameter.name, values));
    if let Some(members) = items.get("properties").and_then(Value::as_object) {
        // The members of a list of objects are documented, and the answer contains none of them.
        let wrong = wrong_objects(members, right);
        return wrong
            .into_iter()
            .map(|wrong| call(refused(&parameter.rule), json!([right, wrong])))
            .collect();
    }
    if parameter.place != ParameterLocation::Query {
        return Vec::new();
    }
    // An unknown name is a valid value; the list is then empty.
    let (nothing, step) = match items.get("enum") {
        Some(_) => (json!(FOREIGN), either()),
        None => (json!("${unique.nobody}"), accepted(&parameter.rule)),
    };
    vec![
        call(step.clone(), json!([right, nothing])),
        call(step.clone(), json!([nothing, right])),
        call(step, json!([nothing])),
    ]
}

/// The valid object with one invalid member at a time, under another name if there are several.
fn wrong_objects(members: &Map<String, Value>, right: &Value) -> Vec<Value> {
    let mut wrong = Vec::new();
    let mut second = right.clone();
    for (name, schema) in members {
        let words = schema.get("enum").and_then(Value::as_array);
        let another = words
            .into_iter()
            .flatten()
            .find(|w| right.get(name) != Some(w));
        if let Some(another) = another {
            second[name] = another.clone();
        }
    }
    for (name, schema) in members {
        let https = schema.get("pattern").and_then(Value::as_str) == Some("^https:");
        let mut broken = second.clone();
        if schema.get("enum").is_some() {
            broken[name] = json!(FOREIGN);
        } else if let Some(url) = second[name].as_str().filter(|_| https) {
            broken[name] = json!(url.replacen("https:", "http:", 1));
        } else {
            continue;
        }
        wrong.push(broken);
    }
    wrong
}

/// A hash whose second key is one character too long.
fn of_hash(cases: &Cases<'_>, parameter: &Parameter) -> Vec<Step> {
    let Some(max) = parameter
        .schema
        .pointer("/propertyNames/maxLength")
        .and_then(Value::as_u64)
    else {
        return Vec::new();
    };
    let length = usize::try_from(max).unwrap_or_default() + 1;
    let long: String = "abcdefghij".chars().cycle().take(length).collect();
    let wrong = json!({"first": "one", long: "two"});
    let step = captured("made", either());
    let call = cases.call(step, &only(&parameter.name, wrong));
    let sent = call.with().cloned().unwrap_or_default();
    let again = cases.reread("made", &sent);
    std::iter::once(call).chain(again).collect()
}
