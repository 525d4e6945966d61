//! `parent-scope` with `other`: a reference names another resource than the one that shows it.

use super::prelude::*;

/// A field names another resource of the same kind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceToOther {
    /// The representation.
    kind: String,
    /// The field that names a resource of that kind.
    at: String,
    /// That it never names the resource itself.
    #[serde(rename = "other")]
    _other: bool,
}

impl Predicate for ReferenceToOther {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let identity = context.identity(&self.kind);
        let Some(key) = identity.and_then(|identity| identity.key.first()) else {
            return;
        };
        for shown in context.of_kind(&self.kind) {
            let names = |at: &str| {
                let text = shown.value(at)?.as_str()?;
                let is_broken = verdicts.has_finding_at(&shown.site(at));
                (!text.is_empty() && !is_broken).then_some(text)
            };
            let (Some(own), Some(named)) = (names(key), names(&self.at)) else {
                continue;
            };
            let wrong = (own == named).then(|| {
                Fact::new(
                    "names-itself",
                    "another resource",
                    format!("{named}, the resource itself"),
                )
            });
            let sites = [shown.site(key), shown.site(&self.at)];
            verdicts.conclude(sites, wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters = json!({"kind": "flow/step", "at": "/parent_step_sid", "other": true});
        let step = |parent: Value| {
            let rule = Example::for_rule("flow", parameters.clone());
            rule.payload(
                "flow/step",
                json!({"sid": "FT1", "parent_step_sid": parent}),
            )
        };
        vec![
            step(json!("FT2")).passes(),
            step(json!("FT1")).fails("/parent_step_sid"),
            step(Value::Null).not_judged(),
        ]
    }
}
