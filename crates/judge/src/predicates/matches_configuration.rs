//! `matches-configuration`: a value is the one in the configuration of the service.

use super::prelude::*;
use crate::evidence::Evidence;
use crate::predicate::of_payload;

/// The value at `at` is the one in the service's configuration, compared as text; not judged where
/// the configuration has none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MatchesConfiguration {
    /// The representation.
    kind: String,
    /// Where.
    at: String,
    /// Key below the service's target: `application.name`.
    key: String,
}

impl Predicate for MatchesConfiguration {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Document, Need::Configuration]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let pointer = format!("/{}/{}", verdicts.rule.service, self.key.replace('.', "/"));
        let Some(wanted) = json::get(&context.evidence.configured, &pointer) else {
            return;
        };
        for resource in context.of_kind(&self.kind) {
            let Some(value) = resource.value(&self.at) else {
                continue;
            };
            let differs = as_text(value) != as_text(wanted);
            let fact = differs.then(|| {
                let expected = format!("{}, as {} is configured", json::short(wanted), self.key);
                Fact::new("configured", expected, json::short(value))
            });
            verdicts.conclude(resource.site(&self.at), fact);
        }
    }

    fn example_evidence(&self, rule: &Rule, kind: &str, value: Value) -> Evidence {
        let mut configured = json!({});
        let mut slot = &mut configured[rule.service.as_str()];
        for part in self.key.split('.') {
            slot = &mut slot[part];
        }
        *slot = value.pointer(&self.at).cloned().unwrap_or_default();
        Evidence {
            configured,
            ..of_payload(kind, value)
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "auth/registration-token";
        let parameters = json!({"kind": kind, "at": "/claims/iss", "key": "application.name"});
        let rule = Example::for_rule("auth", parameters);
        let shop = rule.configured(json!({"auth": {"application": {"name": "Shop"}}}));
        let token = |issuer: &str| json!({"claims": {"iss": issuer}});
        vec![
            shop.payload(kind, token("Shop")).passes(),
            shop.payload(kind, token("shop")).fails("/claims/iss"),
            shop.payload(kind, json!({"claims": {}})).not_judged(),
            rule.payload(kind, token("shop")).not_judged(),
        ]
    }
}
