//! `field-presence` with `otherwise`: a field is present exactly when another one has one of these values.

use super::prelude::*;
use crate::payload::Document;

/// `field` is present exactly when the value at `when` is one of `is`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FieldPresence {
    /// That the field is absent under all other values.
    #[serde(rename = "otherwise")]
    _otherwise: Otherwise,
    /// The representation.
    kind: String,
    /// The field whose presence is judged.
    field: String,
    /// The field that decides.
    when: String,
    /// Values under which `field` is present.
    is: Vec<Value>,
    /// Whether it may be absent under those values.
    #[serde(default)]
    may_be_absent: bool,
}

/// The state of a field under other values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Otherwise {
    /// It is absent.
    Absent,
}

impl Predicate for FieldPresence {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("field", &self.field)
            .pointer("when", &self.when);
    }

    fn payload(&self) -> Option<PayloadRule> {
        Some(PayloadRule::PresentOnlyWhen {
            field: self.field.clone(),
            when: self.when.clone(),
            is: self.is.clone(),
            may_be_absent: self.may_be_absent,
        })
    }

    /// Judged with the representation that it is about.
    fn evaluate(&self, _: &mut Verdicts<'_>) {}

    fn payload_mismatches(&self, document: &Document<'_>) -> Option<Vec<(String, Fact)>> {
        let decides = json::get(document.value, &self.when)?;
        if document.is_broken(&self.field) || document.is_broken(&self.when) {
            return None;
        }
        let due = self.is.iter().any(|value| json::equal(value, decides));
        // Null means absent.
        let there = json::get(document.value, &self.field).filter(|v| !v.is_null());
        let state = format!("{} is {}", self.when, json::excerpt(decides, 60));
        let (kind, expected, actual, how) = match (due, there) {
            (true, None) if !self.may_be_absent => {
                let expected = format!("present, as {state}");
                ("missing-field", expected, "nothing".to_owned(), "missing")
            }
            (false, Some(value)) => {
                let expected = format!("absent, as {state}");
                (
                    "extra-field",
                    expected,
                    json::excerpt(value, 160),
                    "present",
                )
            }
            // Present or absent, it cannot be wrong.
            (true, _) if self.may_be_absent => return None,
            (true, _) | (false, None) => return Some(Vec::new()),
        };
        let fact = Fact {
            kind,
            expected,
            actual,
            message: format!("{} is {how} although {state}", self.field),
        };
        Some(vec![(self.field.clone(), fact)])
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let [field, when] = [&self.field, &self.when].map(|at| sites.last().below(at));
        vec![
            Mutation::new(field.clone(), Change::Gone),
            Mutation::new(field, Change::To(json!({}))),
            Mutation::new(when, Change::Near),
        ]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const DEVICE: &str = "/approval_request/device";
        let of = |may_be_absent: bool, request: Value| {
            let parameters = json!({
                "kind": "auth/approval-request-fetch", "field": DEVICE, "when": "/approval_request/status",
                "is": ["approved"], "otherwise": "absent", "may-be-absent": may_be_absent,
            });
            let shown = json!({"approval_request": request});
            Example::for_rule("auth", parameters).payload("auth/approval-request-fetch", shown)
        };
        vec![
            of(false, json!({"status": "approved", "device": {}})).passes(),
            of(false, json!({"status": "pending", "device": null})).passes(),
            of(true, json!({"status": "approved"})).not_judged(),
            of(false, json!({"status": "approved"})).fails(DEVICE),
            of(false, json!({"status": "pending", "device": {}})).fails(DEVICE),
            of(false, json!({"device": {}})).not_judged(),
        ]
    }
}
