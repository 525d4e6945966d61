//! Alternative values for the places that decide a rule: values that a schema or the sent request allows, and values that
//! violate the statement of a step.

use super::change::Change;
use super::evidence::{Evidence, Statement};
use super::mutation::Mutation;
use super::sites::{Site, Sites};
use conformant_base::json;
use conformant_rulebook::expect::Comparison;
use conformant_rulebook::{Place, Resolved, types};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Values below a place that are mutated one by one.
const LEAVES_MAX: usize = 24;
/// Sent values that are tried in other places.
const SENT_MAX: usize = 12;
/// Maximum depth of a generated document.
const DEPTH_MAX: usize = 8;

/// Mutations of the places that decide a written rule, in addition to those that its predicate proposes.
pub(super) fn propose_mutations(
    evidence: &Evidence,
    sites: &Sites,
    schema_at: &dyn Fn(&Site) -> Vec<Value>,
) -> Vec<Mutation> {
    let mut mutations = Vec::new();
    for site in sites.iter() {
        if let Site::Result { statement, .. } = site
            && let Some(stated) = evidence.statements.get(*statement)
        {
            mutations.extend(violate_statement(*statement, stated));
        }
        let there = document(evidence, site)
            .and_then(|d| json::expand(d, site.pointer()).into_iter().next());
        let Some((_, value)) = there else {
            continue;
        };
        let to = |value: Value| Mutation::new(site.clone(), Change::To(value));
        mutations.extend(schema_at(site).into_iter().map(to));
        match value {
            Value::Number(_) => mutations.extend([json!(0), json!(1)].map(to)),
            Value::String(_) => mutations.extend(sent_texts(evidence).into_iter().map(to)),
            Value::Array(_) | Value::Object(_) => {
                if let Value::Array(items) = value {
                    mutations.push(to(Value::Array(Vec::new())));
                    mutations.extend(with_former_item(evidence, site, items).map(to));
                }
                let mut leaves = Vec::new();
                json::visit_leaves(value, &mut |leaf, _| {
                    if leaves.len() < LEAVES_MAX {
                        leaves.push(leaf.to_owned());
                    }
                });
                for leaf in &leaves {
                    let at = |change| Mutation::new(site.below(leaf), change);
                    mutations.extend([Change::To(Value::Null), Change::Near, Change::Gone].map(at));
                }
            }
            Value::Null => mutations.extend(plausible_values("").into_iter().map(to)),
            Value::Bool(_) => {}
        }
    }
    mutations
}

/// The list with an item that the same list contained before and no longer contains, as an incomplete deletion would leave it.
fn with_former_item(evidence: &Evidence, site: &Site, items: &[Value]) -> Option<Value> {
    let at = site.exchange(evidence)?;
    let now = evidence.exchanges.get(at)?;
    let earlier = evidence.exchanges[..at].iter().rev();
    let mut earlier = earlier.filter(|e| {
        e.service == now.service && e.operation == now.operation && e.status() == now.status()
    });
    let sid = |item: &Value| item.get("sid").cloned();
    let gone = earlier.find_map(|before| {
        let listed = before.document()?.pointer(site.pointer())?.as_array()?;
        let is_gone =
            |item: &&Value| sid(item).is_some() && items.iter().all(|here| sid(here) != sid(item));
        listed.iter().find(is_gone).cloned()
    })?;
    Some(items.iter().cloned().chain([gone]).collect())
}

/// Texts from the requests of the scenario. A value that must not be shown is usually one of them.
fn sent_texts(evidence: &Evidence) -> Vec<Value> {
    let values = evidence.exchanges.iter().flat_map(|e| e.sent.values());
    let texts: BTreeSet<&str> = values
        .filter_map(Value::as_str)
        .filter(|t| t.len() > 3)
        .collect();
    texts.into_iter().take(SENT_MAX).map(Value::from).collect()
}

/// Results that violate a statement.
fn violate_statement(statement: usize, stated: &Statement) -> Vec<Mutation> {
    let expect = &stated.expect;
    let at = |pointer: &str, value: Value| {
        Mutation::new(Site::result(statement, pointer), Change::To(value))
    };
    let here = |value: Value| at(&expect.at, value);
    match &expect.is {
        Comparison::Differs(value) => vec![here(value.clone())],
        Comparison::Absent(true) => vec![here(json!("conformant"))],
        Comparison::AtMost(most) => vec![here(json!(most + 1))],
        Comparison::AtLeast(_) => vec![here(json!(0)), here(json!([]))],
        Comparison::Excludes(value) => with_item(&stated.result, &expect.at, value)
            .map(|(list, with)| at(&list, with))
            .into_iter()
            .collect(),
        // An interpolated pattern is a literal text, escaped.
        Comparison::Unlike(pattern) => vec![here(json!(pattern.replace('\\', "")))],
        Comparison::Equals(_)
        | Comparison::OneOf(_)
        | Comparison::Absent(false)
        | Comparison::Includes(_)
        | Comparison::SameJson(_)
        | Comparison::Matches(_)
        | Comparison::NotBefore(_) => Vec::new(),
    }
}

/// The list that a pointer with `*` goes through, extended by an item with the value.
fn with_item(result: &Value, pointer: &str, value: &Value) -> Option<(String, Value)> {
    let (list, below) = pointer.split_once("/*").unwrap_or((pointer, ""));
    let mut items = result.pointer(list)?.as_array()?.clone();
    let item = if below.is_empty() {
        value.clone()
    } else {
        let item = items.first().cloned().unwrap_or_else(|| json!({}));
        with_value(&item, below, value.clone()).unwrap_or_else(|| nest(below, value))
    };
    items.push(item);
    Some((list.to_owned(), Value::Array(items)))
}

/// `/a/b` and 1 become `{"a": {"b": 1}}`.
fn nest(pointer: &str, value: &Value) -> Value {
    let segments: Vec<String> = json::segments(pointer).collect();
    segments
        .into_iter()
        .rev()
        .fold(value.clone(), |inner, name| {
            Value::Object(Map::from_iter([(name, inner)]))
        })
}

fn document<'e>(evidence: &'e Evidence, site: &Site) -> Option<&'e Value> {
    match site {
        Site::Payload { payload, .. } => evidence.payloads.get(*payload).map(|p| &*p.value),
        Site::Result { statement, .. } => evidence.statements.get(*statement).map(|s| &*s.result),
        Site::Hook { event, .. } => evidence.hook(*event)?.result.as_deref().ok(),
        Site::Delivery { .. } => None,
        Site::Exchange(_) | Site::Answer { .. } | Site::Walk(_) => {
            let exchange = evidence.exchanges.get(site.exchange(evidence)?)?;
            exchange.document().map(|d| &**d)
        }
    }
}

/// The smallest document that a schema accepts, as far as the schema alone determines it. Used where no accepted response
/// was observed.
pub(super) fn generate_minimal(root: &Value) -> Value {
    generate(&Place::root(root).always(), 0)
}

fn generate(place: &Resolved<'_>, depth: usize) -> Value {
    let keyword = |name: &str| place.all(name).next();
    if let Some(value) = keyword("const")
        .or_else(|| keyword("examples")?.get(0))
        .or_else(|| keyword("enum")?.get(0))
    {
        return value.clone();
    }
    let types = match place.has("type") {
        true => place.constraints().types,
        false if place.has("properties") => types::OBJECT,
        false => types::NONE,
    };
    if types & types::OBJECT != 0 {
        let required: BTreeSet<&str> = place.required().collect();
        let required = required.into_iter().filter(|_| depth < DEPTH_MAX);
        let members = required.map(|name| {
            let value = match place.lists(name) {
                true => generate(&place.member(name).always(), depth + 1),
                false => Value::Null,
            };
            (name.to_owned(), value)
        });
        return Value::Object(members.collect());
    }
    if types & types::NULL != 0 {
        Value::Null
    } else if types & types::ARRAY != 0 {
        json!([])
    } else if types & types::BOOLEAN != 0 {
        json!(true)
    } else if types & types::INTEGER != 0 {
        keyword("minimum").cloned().unwrap_or_else(|| json!(1))
    } else if let Some(prefix) = place
        .text("pattern")
        .and_then(|p| p.strip_prefix('^')?.split('[').next())
    {
        json!(format!("{prefix}{}", "0123456789abcdef".repeat(2)))
    } else {
        match place.text("format") {
            Some("date-time") => json!("2026-01-01T00:00:00Z"),
            Some("uri" | "url") => json!("http://reference.invalid/"),
            Some(_) | None => json!("x"),
        }
    }
}

/// The document with a value at a place. A missing member is added.
pub(super) fn with_value(document: &Value, pointer: &str, value: Value) -> Option<Value> {
    let mut changed = document.clone();
    json::set(&mut changed, pointer, value).then_some(changed)
}

/// Values in the formats that the documents use; `expected` may contain the prefix of a SID.
pub(super) fn plausible_values(expected: &str) -> Vec<Value> {
    let digits = "0123456789abcdef".repeat(2);
    let pattern = expected.split_once('^').map_or("", |(_, pattern)| pattern);
    let prefix = pattern.trim_start_matches('(').get(..2).unwrap_or("XX");
    // The message names the only value.
    let only = expected
        .strip_prefix('`')
        .and_then(|text| text.strip_suffix('`'));
    let fixed = [
        json!("{}"),
        json!("2026-01-01T00:00:00Z"),
        json!("http://reference.invalid/"),
        json!("01234567-89ab-cdef-0123-456789abcdef"),
        json!("+12025550100"),
        json!(format!("{prefix}{digits}")),
        json!("x"),
        json!("GET"),
        json!(1),
        json!([]),
        json!({}),
        json!(true),
        json!(null),
    ];
    only.map(Value::from).into_iter().chain(fixed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A rule that requires null (never edited, never online) fails for any other valid value.
    #[test]
    fn a_null_is_changed_into_what_could_stand_there() {
        let evidence = super::super::predicate::of_payload("media/media", json!({"at": null}));
        let sites = Sites::from(Site::payload(0, "/at"));
        let mutations = propose_mutations(&evidence, &sites, &|_| Vec::new());
        for value in [json!("2026-01-01T00:00:00Z"), json!(true), json!(1)] {
            let to = Change::To(value);
            assert!(mutations.iter().any(|m| m.change == to), "{to:?}");
        }
    }

    #[test]
    fn a_statement_names_what_it_does_not_hold_of() {
        for expect in [
            json!({"at": "/flows/*/sid", "excludes": "FW1"}),
            json!({"at": "/flows", "at-least": 1}),
            json!({"at": "/count", "at-most": 1}),
            json!({"at": "/gone", "absent": true}),
            json!({"at": "/count", "differs": 5}),
        ] {
            let mut full = expect.clone();
            full["rule"] = json!("a/b");
            let result = json!({"flows": [{"sid": "FW2"}], "count": 1});
            let statement = Statement {
                expect: serde_json::from_value(full).expect("a statement"),
                result: Arc::new(result),
                step: 1,
                exchange: None,
            };
            let mutations = violate_statement(0, &statement);
            let mut evidence = Evidence {
                statements: vec![statement],
                ..Evidence::default()
            };
            let is_broken = mutations.iter().any(|mutation| {
                let undo = mutation.make(&mut evidence);
                let stated = &evidence.statements[0];
                let holds = super::super::holds(&stated.expect, &stated.result);
                undo.expect("it can be made").restore(&mut evidence);
                !holds
            });
            assert!(is_broken, "{expect}");
        }
    }

    #[test]
    fn a_made_document_has_what_is_required() {
        let schema = json!({
            "type": "object", "required": ["sid", "links", "n", "at"],
            "properties": {
                "sid": {"$ref": "#/$defs/sid"}, "n": {"type": ["integer", "null"]}, "other": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
                "links": {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}},
            },
            "$defs": {"sid": {"type": "string", "pattern": "^FW[0-9a-f]{32}$"}},
        });
        let sid = format!("FW{}", "0123456789abcdef".repeat(2));
        let made =
            json!({"at": "2026-01-01T00:00:00Z", "links": {"to": "x"}, "n": null, "sid": sid});
        assert_eq!(generate_minimal(&schema), made);
    }
}
