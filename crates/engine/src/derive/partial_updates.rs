//! Partial updates: rejected updates, then all parameters at once, each one alone, and none. The resource is read in
//! between.

use super::boundary::is_sid;
use super::cases::{Cases, calling, either, needs_nothing, only, rename_all, unique};
use super::parameters::FOREIGN;
use super::repeated_reads::{a_while, settled, walk};
use conformant_rulebook::rules::Comparison;
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Operation, Parameter, ParameterLocation};
use serde_json::{Map, Value, json};

/// One case, if the operation updates a resource.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let is_partial = matches!(cases.operation.method.as_str(), "POST" | "PATCH");
    let is_change = is_partial && cases.operation.path.ends_with('}');
    if !is_change || cases.happy.optional.is_empty() {
        return;
    }
    let mut own = cases.happy.with.clone();
    let mut steps = Vec::new();
    if let Some((make, with)) = made_with_everything(cases, "whole") {
        steps.push(make);
        own = with;
    }
    let call = |with: &Map<String, Value>| {
        let mut all = own.clone();
        all.extend(with.clone());
        cases.call(either(), &all)
    };
    let look = || cases.look_here(&own);
    let optional = &cases.optional();
    // The list must show an invalid update that was applied.
    steps.extend(look());
    steps.push(a_while());
    for parameter in &cases.operation.parameters {
        for wrong in wrong_values(cases, parameter) {
            let mut with = optional.clone();
            with.insert(parameter.name.clone(), wrong);
            steps.push(call(&with));
            steps.extend(look());
        }
    }
    let set = call(optional);
    steps.push(set.clone());
    for (name, value) in optional {
        steps.push(call(&only(name, value.clone())));
        steps.push(set.clone());
    }
    steps.push(call(&Map::new()));
    steps.extend(look());
    // The list agrees once it has caught up.
    if let Some(walk) = walk(cases, &own) {
        steps.extend([settled(), walk]);
    }
    cases.after_setup(
        "rest",
        "one parameter after the other, and refused ones",
        steps,
    );
}

/// Values that violate a documented constraint of a parameter: one of another form, and one just beyond a bound or
/// that identifies nothing.
pub(super) fn wrong_values(cases: &Cases<'_>, parameter: &Parameter) -> Vec<Value> {
    if parameter.place != ParameterLocation::Body {
        return Vec::new();
    }
    let bound = |key: &str| parameter.schema.get(key).and_then(Value::as_i64);
    let beyond = if let Some(max) = bound("maximum") {
        Some(json!(max + 1))
    } else if let Some(max) = bound("maxLength") {
        Some(json!({"$text": "beyond", "length": max + 1}))
    } else if is_sid(parameter) {
        let own = cases.optional().remove(&parameter.name);
        let own = own.or_else(|| cases.happy.with.get(&parameter.name).cloned());
        own.map(|own| json!({"$near": own, "by": "last"}))
    } else {
        None
    };
    wrong_form(parameter).into_iter().chain(beyond).collect()
}

fn wrong_form(parameter: &Parameter) -> Option<Value> {
    let is_json = parameter
        .echo
        .as_ref()
        .is_some_and(|echo| echo.compare == Comparison::Json)
        || parameter.schema.get("contentMediaType").is_some();
    if parameter.schema.get("enum").is_some() || is_sid(parameter) {
        Some(json!(FOREIGN))
    } else if is_json {
        Some(json!("{"))
    } else if parameter.schema.get("type").is_some_and(|t| t == "integer") {
        Some(json!("many"))
    } else {
        None
    }
}

/// The step that creates another resource of the operation's type with all optional parameters, and the operation's
/// happy parameters for it.
fn made_with_everything(cases: &Cases<'_>, name: &str) -> Option<(Step, Map<String, Value>)> {
    let (collection, _) = cases.operation.path.rsplit_once('/')?;
    let collection = collection.replacen("/v3/", "/v2/", 1);
    let creates = |o: &&Operation| o.method == "POST" && o.path == collection;
    let maker = cases.service.operations.values().find(creates)?;
    let happy = cases.service.happy.get(&maker.id)?;
    let path = cases.path();
    let last = path.last().filter(|_| path.len() > 1)?.name.clone();
    let mut with = happy.with.clone();
    let optional = happy
        .optional
        .iter()
        .filter(|(_, value)| needs_nothing(value));
    with.extend(optional.map(|(name, value)| (name.clone(), value.clone())));
    let mut with = rename_all(&with, &unique(|word| format!("whole-{word}")));
    with.extend(Cases::path_of(maker, &cases.happy.with));
    let capture = Some(name.to_owned());
    let step = calling(
        maker,
        with,
        Call {
            capture,
            ..either()
        },
    );
    let mut own = cases.happy.with.clone();
    let key = cases.key_of(maker).unwrap_or_else(|| "/sid".to_owned());
    own.insert(last, json!(format!("${{{name}{}}}", key.replace('/', "."))));
    Some((step, own))
}
