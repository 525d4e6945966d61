//! `response-format` with `of`: a response documented as empty has no body.

use super::prelude::*;
use crate::acceptance::Acceptance;
use crate::evidence::Outcome;
use conformant_rulebook::Action;

/// The accepted response of this operation has no body.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmptyResponse {
    /// The operation with its service.
    of: OperationName,
}

impl Predicate for EmptyResponse {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| {
            o.does == Action::Ends && o.response.is_none()
        }))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(self.of.id()) {
            let Outcome::Answered { response, .. } = &seen.exchange.outcome else {
                continue;
            };
            if seen.acceptance != Acceptance::Accepted {
                continue;
            }
            let wrong = (!response.body.is_empty()).then(|| {
                Fact::new(
                    "unexpected-body",
                    "no body",
                    format!("{} bytes", response.body.len()),
                )
            });
            verdicts.conclude(Site::Exchange(index), wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("chat", json!({"of": "chat/delete-binding"}));
        let operation = "delete-binding";
        vec![
            rule.deleted(operation, json!({})).passes(),
            rule.written(operation, json!({}), "{}").fails(""),
            rule.refused(operation, json!({})).not_judged(),
        ]
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        vec![Mutation::new(sites.last().clone(), Change::Text("{}"))]
    }
}
