//! `unique-value`: two resources never have the same value within a scope.

use super::prelude::*;
use std::collections::BTreeMap;

/// Two resources (different `key`) never share this value within the same scope.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniqueValue {
    /// The representation.
    kind: String,
    /// What identifies the resource: `/sid`.
    key: String,
    /// The value that must differ; null is never a clash.
    at: String,
    /// Fields that make up the scope: `[/service_sid]`; empty for everywhere.
    scope: Vec<String>,
    /// Compare only resources of one response, because a value may be used again once its resource is deleted.
    #[serde(default)]
    together: bool,
}

impl Predicate for UniqueValue {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("key", &self.key)
            .pointer("at", &self.at)
            .pointers("scope", &self.scope);
    }

    /// Judges each resource when it is first observed together with another one of its scope.
    fn evaluate(&self, context: &Context<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let mut scopes: BTreeMap<String, BTreeMap<String, (String, Site)>> = BTreeMap::new();
        for resource in context.of_kind(&self.kind) {
            // Null and the empty text are unset names.
            let value = resource.value(&self.at);
            let Some(value) = value.filter(|v| !v.is_null() && *v != "") else {
                continue;
            };
            let (Some(identity), Some(mut scope)) = (
                resource.value(&self.key).map(Value::to_string),
                resource.key(&self.scope),
            ) else {
                continue;
            };
            let site = resource.site(&self.at);
            if self.together {
                let Some(exchange) = site.exchange(context.evidence) else {
                    continue;
                };
                scope = format!("{scope}\n{exchange}");
            }
            let owners = scopes.entry(scope).or_default();
            let others = owners.values().filter(|(owner, _)| *owner != identity);
            let sites = Sites::first_with_last(others.map(|(_, site)| site), site.clone());
            let (owner, _) = owners
                .entry(value.to_string())
                .or_insert_with(|| (identity.clone(), site));
            let Some(sites) = sites else {
                verdicts.record_vacuous(rule, Vacuity::Alone);
                continue;
            };
            let fact = (*owner != identity).then(|| Fact {
                kind: "not-unique",
                expected: format!("a value that {owner} does not have"),
                actual: json::short(value),
                message: format!(
                    "{} belongs to {owner} and to {identity}",
                    json::short(value)
                ),
            });
            verdicts.instance(rule, sites).conclude(fact);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "chat/user";
        let parameters = json!({
            "kind": kind, "key": "/sid", "at": "/identity", "scope": ["/service_sid"],
        });
        let user = |service: &str, sid: &str, identity: Value| json!({"service_sid": service, "sid": sid, "identity": identity});
        let together = json!({
            "kind": "chat/member", "key": "/sid", "at": "/identity", "scope": ["/channel_sid"], "together": true,
        });
        let together = Example::for_rule("chat", together);
        let member =
            |sid: &str, name: &str| json!({"channel_sid": "CH1", "sid": sid, "identity": name});
        let listed = |scene: ExampleBuilder, members: Value| {
            scene.shown(
                "read-members",
                json!({"members": members, "meta": {"key": "members"}}),
            )
        };
        let (ann, again) = (member("MB1", "ann"), member("MB2", "ann"));
        let first =
            Example::for_rule("chat", parameters).payload(kind, user("IS1", "US1", json!("ann")));
        vec![
            first
                .clone()
                .payload(kind, user("IS1", "US2", json!("bob")))
                .passes(),
            first
                .clone()
                .payload(kind, user("IS1", "US2", json!("ann")))
                .fails("/identity"),
            first
                .clone()
                .payload(kind, user("IS2", "US2", json!("ann")))
                .not_judged(),
            first
                .clone()
                .payload(kind, user("IS1", "US2", Value::Null))
                .not_judged(),
            first
                .clone()
                .payload(kind, user("IS1", "US1", json!("ann")))
                .not_judged(),
            listed(together.clone(), json!([ann, member("MB2", "bob")])).passes(),
            listed(together.clone(), json!([ann, again])).fails("/members/1/identity"),
            listed(listed(together, json!([ann])), json!([again])).not_judged(),
        ]
    }
}
