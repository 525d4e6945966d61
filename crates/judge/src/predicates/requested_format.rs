//! `response-format` with `parameter`: the response has the format that a parameter requests.

use super::prelude::*;
use crate::acceptance::Acceptance;
use crate::compare::as_text;
use crate::evidence::Outcome;

/// The body of an accepted response, or of a rejection whose body is documented, is written in the format that this path
/// parameter names, `json` or `xml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestedFormat {
    /// Path parameter as the document spells it: `FORMAT`.
    parameter: String,
}

impl Predicate for RequestedFormat {
    fn subject(&self) -> Subject {
        Subject::Parameter(self.parameter.clone())
    }

    fn references(&self, references: &mut References) {
        references.any_parameter("parameter", &self.parameter);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (index, seen) in context.seen.iter().enumerate() {
            let exchange = seen.exchange;
            let Some(asked) = exchange.sent.get(&self.parameter).map(as_text) else {
                continue;
            };
            let Outcome::Answered { response, .. } = &exchange.outcome else {
                continue;
            };
            // The bodies of other rejections are not documented, such as those of a rate limit.
            let is_documented = match seen.acceptance {
                Acceptance::Accepted => true,
                Acceptance::Rejected(_) => {
                    let mut payloads = context.evidence.payloads.iter();
                    matches!(response.status, 200..=299 | 400 | 422)
                        && payloads.any(|payload| payload.step == exchange.step)
                }
                Acceptance::Inconclusive(_) => false,
            };
            let named = asked == "xml" || asked == "json";
            if exchange.service != verdicts.rule.service
                || !is_documented
                || response.body.is_empty()
                || !named
            {
                continue;
            }
            // A byte order mark is not part of the text, and the width of characters does not matter here.
            let mut text = response.body.iter().filter(|b| b.is_ascii_graphic());
            let is_xml = text.next() == Some(&b'<');
            let got = if is_xml { "xml" } else { "json" };
            let fact = (got != asked).then(|| {
                Fact::new(
                    "format",
                    format!("{asked}, as {} asks", self.parameter),
                    got.to_owned(),
                )
            });
            verdicts.conclude(Site::Exchange(index), fact);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let texts = ["{}", "<a/>"].into_iter();
        texts
            .map(|text| Mutation::new(sites.last().clone(), Change::Text(text)))
            .collect()
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("auth", json!({"parameter": "FORMAT"}));
        let shown = |format: &str| {
            let user = r#"{"success": true, "user": {"id": 1}, "message": ""}"#;
            rule.written("create-user", json!({"FORMAT": format}), user)
        };
        let refused = rule.refused("create-user", json!({"FORMAT": "xml"}));
        let error = "auth/user-create-error";
        vec![
            shown("json").passes(),
            shown("xml").fails(""),
            shown("yaml").not_judged(),
            refused.rejected_as(400, error, "<hash/>").passes(),
            refused.rejected_as(400, error, "{}").fails(""),
            refused.not_judged(),
            refused.rejected_as(429, error, "{}").not_judged(),
        ]
    }
}
