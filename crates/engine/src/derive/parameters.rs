//! Cases for each parameter: omitted, unknown, each enumeration value and one outside, both sides of each bound, each
//! optional one, and all together.

use super::cases::{Cases, accepted, captured, either, only, refused, slug};
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Action, Parameter, ParameterLocation};
use serde_json::{Map, Value, json};

/// A text that is in no enumeration.
pub(super) const FOREIGN: &str = "conformant-foreign";

/// The documented request, and one case per change of a parameter.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let own_rule = cases.own_rule();
    let what = "the documented request is accepted";
    cases.add("happy", what, accepted(&own_rule), &Map::new());
    for parameter in &cases.operation.parameters {
        of_parameter(cases, parameter);
    }
    if cases.happy.optional.len() > 1 {
        let step = captured("made", accepted(&own_rule));
        let call = cases.call(step, &cases.happy.optional);
        let again = again(cases, &call);
        let steps = std::iter::once(call).chain(again);
        cases.after_setup("all-optional", "every optional parameter at once", steps);
    }
}

/// Reads what a write has written, with its answer captured as `made`.
fn again(cases: &Cases<'_>, call: &Step) -> Vec<Step> {
    let sent = call.with().cloned().unwrap_or_default();
    if cases.creates() {
        return cases.reread_found("made", &sent);
    }
    let writes = cases.operation.does == Action::Changes;
    let look = cases.look_here(&sent).filter(|_| writes);
    look.into_iter().collect()
}

fn of_parameter(cases: &mut Cases<'_>, parameter: &Parameter) {
    let (slug, name) = (slug(parameter), &parameter.name);
    if parameter.required && parameter.place != ParameterLocation::Path {
        let what = format!("{name} is left out");
        let without = only(name, Value::Null);
        let step = refused(&parameter.rule);
        cases.add(&format!("without-{slug}"), &what, step, &without);
    }
    if parameter.names_a_resource(cases.operation) {
        unknown(cases, parameter);
    }
    let words = parameter.schema.get("enum").and_then(Value::as_array);
    for value in words.into_iter().flatten() {
        let word = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let (case, what) = (format!("{slug}={word}"), format!("{name} {word}"));
        accept(cases, &case, &what, parameter, value.clone());
    }
    if words.is_some() {
        let what = format!("{name} outside its enumeration");
        try_out(cases, &format!("{slug}-foreign"), &what, parameter, FOREIGN);
    }
    bounds(cases, parameter);
    if let Some(value) = cases.happy.optional.get(name) {
        let (case, what) = (format!("optional-{slug}"), format!("with {name}"));
        accept(cases, &case, &what, parameter, value.clone());
    }
}

/// A path that identifies nothing, after the valid baseline request.
fn unknown(cases: &mut Cases<'_>, parameter: &Parameter) {
    let nothing = only(&parameter.name, names_nothing(&parameter.schema));
    let baseline = cases.call(Call::default(), &Map::new());
    let step = cases.call(refused(&parameter.rule), &nothing);
    let (case, what) = (
        format!("unknown-{}", slug(parameter)),
        format!("{} names nothing", parameter.name),
    );
    cases.after_setup(&case, &what, [baseline, step]);
}

fn bounds(cases: &mut Cases<'_>, parameter: &Parameter) {
    let (slug, name) = (slug(parameter), &parameter.name);
    let bound = |key: &str| parameter.schema.get(key).and_then(Value::as_i64);
    let text = |length: i64| {
        let seed = if parameter.schema.get("pattern").is_some() {
            String::new()
        } else {
            format!("${{unique.{slug}}}-")
        };
        json!({"$text": seed, "length": length})
    };
    let items = |count: i64| {
        (1..=count)
            .map(|n| json!(format!("conformant-{n}")))
            .collect()
    };
    let upper = [
        (
            "maxLength",
            "of {} characters",
            &text as &dyn Fn(i64) -> Value,
        ),
        ("maximum", "{}", &|n| json!(n)),
        ("maxItems", "with {} values", &items),
    ];
    for (key, words, made) in upper {
        if let Some(max) = bound(key) {
            let says = |n: i64| format!("{name} {}", words.replace("{}", &n.to_string()));
            let case = format!("{slug}-at-max");
            accept(cases, &case, &says(max), parameter, made(max));
            let case = format!("{slug}-over-max");
            try_out(cases, &case, &says(max + 1), parameter, made(max + 1));
        }
    }
    if let Some(min) = bound("minimum") {
        let says = |n: i64| format!("{name} {n}");
        let case = format!("{slug}-at-min");
        accept(cases, &case, &says(min), parameter, json!(min));
        let case = format!("{slug}-under-min");
        try_out(cases, &case, &says(min - 1), parameter, min - 1);
    }
}

fn accept(cases: &mut Cases<'_>, case: &str, what: &str, parameter: &Parameter, value: Value) {
    let with = only(&parameter.name, value);
    cases.add(case, what, accepted(&parameter.rule), &with);
}

fn try_out(
    cases: &mut Cases<'_>,
    case: &str,
    what: &str,
    parameter: &Parameter,
    value: impl Into<Value>,
) {
    cases.add(case, what, either(), &only(&parameter.name, value));
}

/// A well-formed value that identifies no resource.
fn names_nothing(schema: &Value) -> Value {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let prefix = text("pattern").strip_prefix('^').and_then(|p| p.get(..2));
    match prefix {
        Some(prefix) if text("pattern").contains("{32}") => {
            json!(format!("{prefix}{}", "f".repeat(32)))
        }
        Some(_) | None if text("type") == "integer" => json!(999_999_999),
        Some(_) | None if text("format") == "uuid" => json!("00000000-0000-4000-8000-000000000000"),
        Some(_) | None => json!("${unique.nothing}"),
    }
}
