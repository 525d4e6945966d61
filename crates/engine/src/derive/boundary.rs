//! Boundary-invalid values: the smallest changes of valid values.
//!
//! No document states whether letter case or spaces count in a value, so such a value may be accepted or rejected. A
//! value that an enumeration or a pattern forbids must have no effect.

use super::cases::{Cases, either, only, refused, slug};
use crate::boundary::BoundaryChange;
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Parameter, ParameterLocation};
use serde_json::{Value, json};

/// The changes of a SID.
pub(super) const OF_SIDS: [&str; 3] = ["last", "short", "long"];

/// Changes of each value that the operation's schema lists, and of its path.
pub(super) fn derive(cases: &mut Cases<'_>) {
    for parameter in &cases.operation.parameters {
        if !matches!(
            parameter.place,
            ParameterLocation::Body | ParameterLocation::Query
        ) {
            continue;
        }
        if let Some(words) = parameter.schema.get("enum").and_then(Value::as_array) {
            let word = words.iter().find_map(Value::as_str);
            let values = word
                .into_iter()
                .flat_map(|word| BoundaryChange::ALL.map(|(n, _)| n.apply(word)));
            let values: Vec<Value> = values.map(Value::from).collect();
            values_near(cases, parameter, &values);
        } else if is_sid(parameter) {
            let right = cases.value_of(&parameter.name).cloned();
            let values = right
                .into_iter()
                .flat_map(|right| OF_SIDS.map(|by| near(&right, by)));
            let values: Vec<Value> = values.collect();
            values_near(cases, parameter, &values);
        }
    }
    path_near(cases);
    names_in_other_case(cases);
}

/// Natural names in another letter case. They identify another resource or none.
fn names_in_other_case(cases: &mut Cases<'_>) {
    let mut named: Vec<(String, Vec<Step>)> = Vec::new();
    for (parameter, name) in names_in_path(cases) {
        let value = Value::String(name);
        let baseline = only(&parameter.name, value.clone());
        let mut other = cases.again(1);
        other.insert(parameter.name.clone(), near(&value, "other-case"));
        let steps = vec![
            cases.call(Call::default(), &baseline),
            cases.call(refused(&parameter.rule), &other),
        ];
        named.push((slug(parameter).to_owned(), steps));
    }
    for parameter in &cases.operation.parameters {
        let items = &parameter.schema["items"];
        let is_free = items.get("enum").is_none() && items["type"] == "string";
        let value = cases
            .happy
            .optional
            .get(&parameter.name)
            .and_then(|v| v.get(0));
        if let Some(value) =
            value.filter(|_| is_free && parameter.place == ParameterLocation::Query)
        {
            let call = |values: Value| cases.call(either(), &only(&parameter.name, values));
            let other = near(value, "other-case");
            // Texts with a common prefix or suffix are different names.
            let others = ["short", "long", "last"].map(|by| call(json!([near(value, by)])));
            let mut steps = vec![call(json!([other])), call(json!([other, value]))];
            steps.extend(others);
            named.push((slug(parameter).to_owned(), steps));
        }
    }
    for (slug, steps) in named {
        let what = format!("{slug} in another letter case");
        cases.after_setup(&format!("{slug}-other-case"), &what, steps);
    }
}

/// Path parameters that accept a natural name in place of a SID, each with the interpolation of that name.
fn names_in_path<'c>(cases: &Cases<'c>) -> Vec<(&'c Parameter, String)> {
    let kinds = &cases.rulebook.kinds;
    let own = cases
        .operation
        .resource
        .as_ref()
        .and_then(|kind| kinds.get(kind));
    let Some(own) = own else {
        return Vec::new();
    };
    let above = own
        .annotations
        .parents
        .iter()
        .map(|(_, kind)| kinds.get(kind));
    let of_path = above.chain([Some(own)]);
    let path = cases.path().into_iter().zip(of_path);
    let named = path.filter(|(p, _)| p.names_a_resource(cases.operation));
    named
        .filter_map(|(parameter, kind)| {
            let field = kind?.annotations.identity.as_ref()?.names.first()?;
            let value = cases.happy.with.get(&parameter.name)?.as_str()?;
            let name = value.strip_suffix(".sid}")?;
            Some((
                parameter,
                format!("{name}.{}}}", field.trim_start_matches('/')),
            ))
        })
        .collect()
}

fn values_near(cases: &mut Cases<'_>, parameter: &Parameter, values: &[Value]) {
    if values.is_empty() {
        return;
    }
    let steps: Vec<Step> = values
        .iter()
        .enumerate()
        .map(|(n, value)| {
            let mut with = cases.again(n);
            with.insert(parameter.name.clone(), value.clone());
            cases.call(either(), &with)
        })
        .collect();
    let what = format!("{} that is nearly right", parameter.name);
    cases.after_setup(&format!("{}-near", slug(parameter)), &what, steps);
}

/// Paths that differ by one character, then the correct path.
fn path_near(cases: &mut Cases<'_>) {
    let mut steps = Vec::new();
    for parameter in cases.path() {
        let Some(value) = cases
            .happy
            .with
            .get(&parameter.name)
            .filter(|v| reads_a_sid(v))
        else {
            continue;
        };
        let step = match parameter.names_a_resource(cases.operation) {
            true => refused(&parameter.rule),
            false => either(),
        };
        steps.extend(
            OF_SIDS.map(|by| cases.call(step.clone(), &only(&parameter.name, near(value, by)))),
        );
    }
    if steps.is_empty() {
        return;
    }
    steps.extend(cases.look_here(&cases.happy.with));
    let what = "paths that are one character off";
    cases.after_setup("path-near", what, steps);
}

fn near(value: &Value, by: &str) -> Value {
    json!({"$near": value, "by": by})
}

/// Whether a parameter's value is a SID.
pub(super) fn is_sid(parameter: &Parameter) -> bool {
    let pattern = parameter.schema.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(|p| p.contains("{32}"))
}

/// Whether a value is read from a field that contains a SID.
pub(super) fn reads_a_sid(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.starts_with("${") && text.ends_with("sid}")
}
