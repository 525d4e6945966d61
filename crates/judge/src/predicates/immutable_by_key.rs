//! `immutable` with `key`: all representations with one key have the same values in these fields.

use super::prelude::*;
use crate::compare::{references_no_resource, same};
use std::collections::BTreeMap;

/// Within one run of a scenario, representations of the same resource (same `key`) agree in these
/// fields, whichever operation they came from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImmutableByKey {
    /// The representation.
    kind: String,
    /// What identifies the resource: `/sid`.
    key: String,
    /// Fields that never change.
    fields: Vec<String>,
    /// Whether people may change them. Not judged after they did, or may have.
    #[serde(default)]
    changed_by_people: bool,
}

impl Predicate for ImmutableByKey {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("key", &self.key)
            .pointers("fields", &self.fields);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        if self.changed_by_people && context.history.changed_by_people(&self.kind) {
            return;
        }
        let mut first: BTreeMap<String, &Representation<'_>> = BTreeMap::new();
        for later in context.of_kind(&self.kind) {
            let key = later
                .value(&self.key)
                .filter(|key| !references_no_resource(&self.key, key));
            let Some(identity) = key.map(Value::to_string) else {
                continue;
            };
            let Some(earlier) = first.get(&identity).copied() else {
                verdicts.record_vacuous(Vacuity::Alone);
                first.insert(identity, later);
                continue;
            };
            let both = |field: &String| Some((named(earlier, field)?, named(later, field)?));
            let fields = self.fields.iter().filter(|field| both(field).is_some());
            let Some(sites) = Sites::collect(fields.map(|field| later.site(field))) else {
                continue;
            };
            let wrong = self.fields.iter().find_map(|field| {
                let (before, after) = both(field)?;
                let fact = Fact::new(
                    "changed",
                    format!("{}, as before", json::short(before)),
                    json::short(after),
                );
                (!same(before, after)).then(|| (later.site(field), fact))
            });
            let earlier = earlier.site(&self.key).exchange(context.evidence);
            verdicts.instance(sites).after(earlier).conclude_at(wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let shown = |kind: &str, field: &str, representations: [Value; 2]| {
            let service = if kind == "flow/flow" { "flow" } else { "chat" };
            let parameters = json!({"kind": kind, "key": "/sid", "fields": [field]});
            let [first, later] = representations;
            let rule = Example::for_rule(service, parameters);
            rule.payload(kind, first).payload(kind, later)
        };
        let flows = |first: &str, later: &str, created: &str| {
            let first = json!({"sid": first, "date_created": "2026-01-01T00:00:00Z"});
            let later = json!({"sid": later, "date_created": created});
            shown("flow/flow", "/date_created", [first, later])
        };
        let bindings = ["", "US1"].map(|user| json!({"sid": "BS1", "user_sid": user}));
        let undated = [
            json!({"sid": "FW1", "date_created": ""}),
            json!({"sid": "FW1"}),
        ];
        vec![
            flows("FW1", "FW1", "2026-01-01T00:00:00+00:00").passes(),
            flows("FW1", "FW1", "2026-01-01T00:00:01Z").fails("/date_created"),
            flows("FW1", "FW2", "2026-01-01T00:00:01Z").not_judged(),
            shown("flow/flow", "/date_created", undated).not_judged(),
            // A binding at the service may name no user.
            shown("chat/binding", "/user_sid", bindings).not_judged(),
            // Without a key, the resource is unknown.
            flows("", "", "2026-01-01T00:00:01Z").not_judged(),
        ]
    }
}

/// What it shows there, but for the SID of no resource.
fn named<'r>(shown: &'r Representation<'_>, field: &str) -> Option<&'r Value> {
    let value = shown.value(field)?;
    (!references_no_resource(field, value)).then_some(value)
}
