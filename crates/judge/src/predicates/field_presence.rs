//! `field-presence`: a field is present where another one has one of these values, and with `otherwise` only there.

use super::prelude::*;
use crate::payload::Document;

/// Where the value at `when` is one of `is`, `field` is there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FieldPresence {
    /// The representation.
    kind: String,
    /// The field whose presence is judged.
    field: String,
    /// The field that decides.
    when: String,
    /// Values under which `field` is there; left out: any text that is not empty.
    #[serde(default)]
    is: Vec<Value>,
    /// That the field is absent under all other values.
    #[serde(default)]
    otherwise: Option<Otherwise>,
    /// With `otherwise`: whether it may be absent under those values, too.
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
        match &self.otherwise {
            None if self.may_be_absent => {
                references.problem("may-be-absent", "used with `otherwise` only");
            }
            Some(_) if self.is.is_empty() => references.problem("is", "needed with `otherwise`"),
            None | Some(_) => {}
        }
    }

    fn payload(&self) -> Option<PayloadRule> {
        self.otherwise
            .as_ref()
            .map(|Otherwise::Absent| PayloadRule::PresentOnlyWhen {
                field: self.field.clone(),
                when: self.when.clone(),
                is: self.is.clone(),
                may_be_absent: self.may_be_absent,
            })
    }

    fn needs(&self) -> &'static [Need] {
        match self.otherwise {
            Some(_) => &[Need::Document],
            None => &[Need::Answer],
        }
    }

    /// With `otherwise`, judged with the representation that it is about.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        if self.otherwise.is_some() {
            return;
        }
        for shown in verdicts.context.of_kind(&self.kind) {
            let Some(decides) = shown.value(&self.when) else {
                continue;
            };
            let is_due = match self.is.as_slice() {
                [] => decides.as_str().is_some_and(|text| !text.is_empty()),
                _ => self.is_due(decides),
            };
            let site = shown.site(&self.field);
            let mut broken = shown.broken.iter();
            let is_broken = broken.any(|at| json::overlap(site.pointer(), at));
            if !is_due || is_broken || verdicts.has_finding_at(&site) {
                continue;
            }
            let field = shown.value(&self.field).filter(|value| !value.is_null());
            let fact = || {
                let expected = format!("present, as {} is {}", self.when, json::short(decides));
                Fact::new("missing-field", expected, "nothing")
            };
            let sites = [shown.site(&self.when), site];
            verdicts.conclude(sites, field.is_none().then(fact));
        }
    }

    fn payload_mismatches(&self, document: &Document<'_>) -> Option<Vec<(String, Fact)>> {
        self.otherwise.as_ref()?;
        let decides = json::get(document.value, &self.when)?;
        if document.is_broken(&self.field) || document.is_broken(&self.when) {
            return None;
        }
        // Null means absent.
        let there = json::get(document.value, &self.field).filter(|v| !v.is_null());
        let state = format!("{} is {}", self.when, json::excerpt(decides, 60));
        let (kind, expected, actual, how) = match (self.is_due(decides), there) {
            (true, None) if !self.may_be_absent => {
                let expected = format!("present, as {state}");
                ("missing-field", expected, "nothing".to_owned(), "missing")
            }
            (false, Some(value)) => {
                let (expected, actual) = (format!("absent, as {state}"), json::excerpt(value, 160));
                ("extra-field", expected, actual, "present")
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
        if self.otherwise.is_none() {
            return Mutation::of_sites(sites);
        }
        let [field, when] = [&self.field, &self.when].map(|at| sites.last().below(at));
        vec![
            Mutation::new(field.clone(), Change::Gone),
            Mutation::new(field, Change::To(json!({}))),
            Mutation::new(when, Change::Near),
        ]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const KIND: &str = "auth/approval-request-fetch";
        const DEVICE: &str = "/approval_request/device";
        let rule = |is: &[&str], mut further: Value| {
            further["kind"] = json!(KIND);
            further["field"] = json!(DEVICE);
            further["when"] = json!("/approval_request/status");
            further["is"] = json!(is);
            Example::for_rule("auth", further)
        };
        let request = |request: Value| json!({"approval_request": request});
        let present = rule(&["approved", "denied"], json!({}));
        let fetched = |shown: Value| present.shown("fetch-approval-request", request(shown));
        let only = |may_be_absent: bool, shown: Value| {
            let further = json!({"otherwise": "absent", "may-be-absent": may_be_absent});
            rule(&["approved"], further).payload(KIND, request(shown))
        };
        let approved = json!({"status": "approved"});
        vec![
            fetched(json!({"status": "approved", "device": {"id": 1}})).passes(),
            fetched(json!({"status": "denied"})).fails(DEVICE),
            fetched(json!({"status": "denied", "device": null})).fails(DEVICE),
            fetched(json!({"status": "pending"})).not_judged(),
            present
                .payload(KIND, request(approved.clone()))
                .fails(DEVICE),
            only(false, json!({"status": "approved", "device": {}})).passes(),
            only(false, json!({"status": "pending", "device": null})).passes(),
            only(true, approved.clone()).not_judged(),
            only(false, approved).fails(DEVICE),
            only(false, json!({"status": "pending", "device": {}})).fails(DEVICE),
            only(false, json!({"device": {}})).not_judged(),
        ]
    }
}

impl FieldPresence {
    fn is_due(&self, decides: &Value) -> bool {
        self.is.iter().any(|value| json::equal(value, decides))
    }
}
