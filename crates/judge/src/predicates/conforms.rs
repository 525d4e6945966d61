//! `conforms`: a second opinion about one place of a representation.

use super::prelude::*;
use crate::payload::Document;

/// The value at `at` in every representation of `kind` matches a JSON Schema. If nothing is at
/// `at`, nothing is judged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Conforms {
    /// The representation: `flow/execution`; list items and callbacks included.
    kind: String,
    /// Where; empty for the whole.
    #[serde(default)]
    at: String,
    /// JSON Schema 2020-12; may `$ref` common definitions as `common.yaml#/$defs/NAME`.
    schema: Value,
}

impl Predicate for Conforms {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
    }

    fn payload(&self) -> Option<PayloadRule> {
        Some(PayloadRule::Conforms {
            at: self.at.clone(),
            schema: self.schema.clone(),
        })
    }

    /// Judged with the representation that it is about.
    fn evaluate(&self, _: &mut Verdicts<'_>) {}

    fn payload_mismatches(&self, document: &Document<'_>) -> Option<Vec<(String, Fact)>> {
        let mut places = json::expand(document.value, &self.at);
        places.retain(|(at, _)| !document.is_under_broken(at));
        if places.is_empty() {
            return None;
        }
        let mut wrong = Vec::new();
        for (at, value) in places {
            let schemas = document.schemas;
            for defect in schemas.misfits(&document.rule.id, &self.schema, value) {
                let defect = defect.renamed_in(document.root, document.value, &at);
                if document.is_under_broken(&defect.pointer) {
                    continue;
                }
                let fact = Fact {
                    message: defect.message(),
                    kind: defect.kind,
                    expected: defect.expected,
                    actual: defect.actual,
                };
                wrong.push((defect.pointer, fact));
            }
        }
        Some(wrong)
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let values = [
            json!(null),
            json!(true),
            json!("someone@example.com"),
            json!(-7),
            json!({}),
            json!({"conformant_extra_member": null}),
        ];
        let site = sites.last().below(&self.at);
        // What a schema is there to keep out, it may name.
        let kept_out = self.schema.pointer("/not/examples/0").cloned();
        let most = self.schema.get("maximum").and_then(Value::as_i64);
        let beyond = most.map(|most| json!(most + 1));
        let values = kept_out.into_iter().chain(beyond).chain(values);
        Mutation::at(&site, values.map(Change::To))
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters =
            json!({"kind": "flow/execution", "at": "/links", "schema": {"required": ["steps"]}});
        let rule = Example::for_rule("flow", parameters);
        let shown = |execution: Value| rule.payload("flow/execution", execution);
        vec![
            shown(json!({"links": {"steps": "/v1"}})).passes(),
            shown(json!({"links": {}})).fails("/links/steps"),
            shown(json!({})).not_judged(),
        ]
    }
}
