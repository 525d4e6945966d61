//! `field-presence`: a field is present once another one has one of these values. Judges responses and payloads.

use super::prelude::*;

/// Where the value at `when` is one of `is`, `field` is there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldRequiredWhen {
    /// The representation.
    kind: String,
    /// The field that is to be there.
    field: String,
    /// The field that decides.
    when: String,
    /// Values under which `field` is there; left out: any text that is not empty.
    #[serde(default)]
    is: Vec<Value>,
}

impl Predicate for FieldRequiredWhen {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("field", &self.field)
            .pointer("when", &self.when);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for shown in context.of_kind(&self.kind) {
            let Some(decides) = shown.value(&self.when) else {
                continue;
            };
            let is_due = if self.is.is_empty() {
                decides.as_str().is_some_and(|text| !text.is_empty())
            } else {
                self.is.iter().any(|value| json::equal(value, decides))
            };
            let site = shown.site(&self.field);
            let is_broken = shown
                .broken
                .iter()
                .any(|at| json::overlap(site.pointer(), at));
            if !is_due || is_broken || verdicts.has_finding_at(&site) {
                continue;
            }
            let is_there = shown
                .value(&self.field)
                .is_some_and(|value| !value.is_null());
            let fact = Fact::new(
                "missing-field",
                format!("present, as {} is {}", self.when, json::short(decides)),
                "nothing",
            );
            let sites = [shown.site(&self.when), site];
            verdicts.conclude(sites, (!is_there).then_some(fact));
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const DEVICE: &str = "/approval_request/device";
        let rule = Example::for_rule(
            "auth",
            json!({
                "kind": "auth/approval-request-fetch", "field": DEVICE, "when": "/approval_request/status",
                "is": ["approved", "denied"],
            }),
        );
        let request = |request: Value| json!({"approval_request": request});
        let fetched = |shown: Value| rule.shown("fetch-approval-request", request(shown));
        let shown = request(json!({"status": "approved"}));
        vec![
            fetched(json!({"status": "approved", "device": {"id": 1}})).passes(),
            fetched(json!({"status": "denied"})).fails(DEVICE),
            fetched(json!({"status": "denied", "device": null})).fails(DEVICE),
            fetched(json!({"status": "pending"})).not_judged(),
            rule.payload("auth/approval-request-fetch", shown)
                .fails(DEVICE),
        ]
    }
}
