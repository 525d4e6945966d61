//! `unique-value` with `kinds`: two resources never have the same `url`. Does not judge its target.

use super::prelude::*;
use std::collections::BTreeMap;

/// What a resource gives as its own address no other resource of its kind gives as its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniqueUrl {
    /// The representations, each with an identity and a field `url`.
    kinds: Vec<String>,
}

const URL: &str = "/url";

impl Predicate for UniqueUrl {
    fn references(&self, references: &mut References) {
        for kind in &self.kinds {
            references.kind("kinds", kind).pointer("kinds", URL);
        }
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for name in &self.kinds {
            if let Some(identity) = context.identity(name) {
                evaluate_kind((name, &identity.key), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "chat/webhook";
        let beside = |sid: &str, url: Value| {
            Example::for_rule("chat", json!({"kinds": [kind]}))
                .payload(kind, json!({"sid": "WH1", "url": "/hooks/WH1"}))
                .payload(kind, json!({"sid": sid, "url": url}))
        };
        vec![
            beside("WH2", json!("/hooks/WH2")).passes(),
            beside("WH2", json!("/hooks/WH1")).fails("/url"),
            beside("WH1", json!("/hooks/WH1")).not_judged(),
            beside("WH2", Value::Null).not_judged(),
        ]
    }
}

fn evaluate_kind((kind, key): (&str, &[String]), verdicts: &mut Verdicts<'_>) {
    let context = verdicts.context;
    let mut owners: BTreeMap<&str, &Representation<'_>> = BTreeMap::new();
    for resource in context.of_kind(kind) {
        let url = resource.value(URL).and_then(Value::as_str);
        let (Some(url), Some(identity)) = (url.filter(|url| !url.is_empty()), resource.key(key))
        else {
            continue;
        };
        let is_another = |owner: &&Representation<'_>| owner.key(key).as_ref() != Some(&identity);
        let owner = *owners.entry(url).or_insert(resource);
        let clash = Some(owner).filter(is_another);
        let Some(other) = clash.or_else(|| owners.values().copied().find(is_another)) else {
            verdicts.record_vacuous(Vacuity::Alone);
            continue;
        };
        let fact = clash.map(|_| {
            Fact::new(
                "not-unique",
                "an address that no other one has",
                json::short(&Value::from(url)),
            )
        });
        let sites = [other, resource].map(|shown| shown.site(URL));
        verdicts.conclude(sites, fact);
    }
}
