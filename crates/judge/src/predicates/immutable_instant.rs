//! `immutable` with `at`: all observations of a resource show the same instant, in every representation and format.
//!
//! Does not judge times that are not in ISO 8601, nor a difference of one second.

use super::prelude::*;
use crate::compare::instant;
use conformant_base::clock::Timestamp;
use jiff::SignedDuration;

/// The tolerance between two representations: one of them may have whole seconds.
const ROUNDING: SignedDuration = SignedDuration::from_secs(1);

/// A time is the same in every observation of its resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImmutableInstant {
    /// The representation that shows it; what else shows the resource may show it earlier.
    of: String,
    /// Where.
    at: String,
}

impl Predicate for ImmutableInstant {
    fn references(&self, references: &mut References) {
        references.kind("of", &self.of).pointer("at", &self.at);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let Some(about) = context.about(&self.of) else {
            return;
        };
        let of = about.of().unwrap_or(&self.of);
        for (_, resource) in context.history.resources.of_kind(of) {
            let mut first: Option<(Site, Timestamp)> = None;
            for observation in &resource.observations {
                let Some(shown) = observation.representation(context) else {
                    continue;
                };
                let site = shown.site(&self.at);
                let Some(at) = shown.value(&self.at).and_then(instant) else {
                    continue;
                };
                let is_this = observation.shown_type == self.of;
                let Some((before, was)) = &first else {
                    first = Some((site, at));
                    if is_this {
                        verdicts.record_vacuous(Vacuity::Alone);
                    }
                    continue;
                };
                if !is_this || verdicts.has_finding_at(&site) {
                    continue;
                }
                let fact = || {
                    Fact::new(
                        "another-instant",
                        format!("{was}, as before"),
                        at.to_string(),
                    )
                };
                let wrong = at.duration_since(*was).abs() > ROUNDING;
                verdicts
                    .instance([before.clone(), site])
                    .after(before.exchange(context.evidence))
                    .conclude(wrong.then(fact));
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        vec![Mutation::new(sites.last().clone(), Change::Up)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = "/approval_request/created_at";
        let shown =
            |created: &str| json!({"approval_request": {"uuid": "u1", "created_at": created}});
        let rule = Example::for_rule(
            "auth",
            json!({"of": "auth/approval-request-fetch", "at": at}),
        );
        let made = |created: &str| rule.shown("create-approval-request", shown(created));
        let fetched = |scene: &ExampleBuilder, format: &str, created: &str| {
            let path = json!({"FORMAT": format, "PUSH_UUID": "u1"});
            scene.answered("fetch-approval-request", path, shown(created))
        };
        let noon = "2026-01-01T12:00:00.25Z";
        let today = fetched(&made("today"), "json", noon);
        vec![
            fetched(&made(noon), "json", "2026-01-01T12:00:00+00:00").passes(),
            fetched(&made(noon), "json", "2026-01-01T13:00:00Z").fails(at),
            fetched(&today, "xml", "2026-01-01T12:01:00Z").fails(at),
            fetched(&made(noon), "xml", "1767268800").not_judged(),
            made(noon).not_judged(),
        ]
    }
}
