//! `unique-value`: two resources never have the same value within a scope.
//!
//! `unique-value` with `kinds`: two resources never have the same `url`. Does not judge its target.

use super::prelude::*;

/// Two resources (different `key`) never share this value within the same scope.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UniqueValue {
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
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
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
                verdicts.record_vacuous(Vacuity::Alone);
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
            verdicts.conclude(sites, fact);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters = |kind: &str, scope: &str, together: bool| {
            json!({
                "kind": kind, "key": "/sid", "at": "/identity", "scope": [scope],
                "together": together,
            })
        };
        let user = |scene: &ExampleBuilder, service: &str, sid: &str, identity: Value| {
            let user = json!({"service_sid": service, "sid": sid, "identity": identity});
            scene.payload("chat/user", user)
        };
        let everywhere = Example::for_rule("chat", parameters("chat/user", "/service_sid", false));
        let first = user(&everywhere, "IS1", "US1", json!("ann"));
        let together = Example::for_rule("chat", parameters("chat/member", "/channel_sid", true));
        let listed = |scene: &ExampleBuilder, members: Value| {
            scene.shown("read-members", page("members", members))
        };
        let (ann, again) = (member("1", "ann"), member("2", "ann"));
        vec![
            user(&first, "IS1", "US2", json!("bob")).passes(),
            user(&first, "IS1", "US2", json!("ann")).fails("/identity"),
            user(&first, "IS2", "US2", json!("ann")).not_judged(),
            user(&first, "IS1", "US2", Value::Null).not_judged(),
            user(&first, "IS1", "US1", json!("ann")).not_judged(),
            listed(&together, json!([ann, member("2", "bob")])).passes(),
            listed(&together, json!([ann, again])).fails("/members/1/identity"),
            listed(&listed(&together, json!([ann])), json!([again])).not_judged(),
        ]
    }
}

/// What a resource gives as its own address no other resource of its kind gives as its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UniqueUrl {
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
            let expected = "an address that no other one has";
            Fact::new("not-unique", expected, json::short(&Value::from(url)))
        });
        let sites = [other, resource].map(|shown| shown.site(URL));
        verdicts.conclude(sites, fact);
    }
}
