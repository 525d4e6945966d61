//! `parameter-echo`: an accepted response contains the value of a parameter.

use super::prelude::*;
use crate::compare::agrees;
use crate::parameter::beyond;
use conformant_rulebook::rules::Comparison;

/// A parameter comes back in the response. Prefer `x-echo`; write this for cases that it cannot express.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterEcho {
    /// Operation ids without the service.
    pub operations: Vec<String>,
    /// Parameter as the document spells it.
    pub parameter: String,
    /// Where it comes back.
    pub at: String,
    /// How the two are compared.
    #[serde(default, rename = "as")]
    pub compare: Comparison,
    /// Further accepted values.
    #[serde(default)]
    or: Vec<Value>,
}

impl Predicate for ParameterEcho {
    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            operation
                .parameter("parameter", &self.parameter)
                .answers("at", &self.at);
        });
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for operation in &self.operations {
            for (index, seen) in verdicts.exchanges_of(operation) {
                let Some(sent) = seen.exchange.sent.get(&self.parameter) else {
                    continue;
                };
                let mut parameters = seen.operation.iter().flat_map(|o| &o.parameters);
                let parameter = parameters.find(|p| p.name == self.parameter);
                let is_beyond = parameter.is_some_and(|p| beyond(sent, &p.schema).is_some());
                // A value beyond its bound may be cut, and what exists already comes back unchanged.
                if is_beyond || context.history.returns_existing(context, index) {
                    continue;
                }
                let values = seen.select(&self.at);
                let places = values.iter().map(|(at, _)| Site::answer(index, at));
                let Some(sites) = Sites::collect(places) else {
                    verdicts.record_vacuous(Vacuity::Empty);
                    continue;
                };
                let wrong = values.iter().find_map(|(at, got)| {
                    let fact = differs(sent, got, self.compare, &self.or)?;
                    Some((Site::answer(index, at), fact))
                });
                verdicts.conclude_at(sites, wrong);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule(
            "flow",
            json!({"operations": ["read-executions"], "parameter": "FlowSid", "at": "/executions/*/flow_sid"}),
        );
        let listed = |flows: &[&str]| {
            let items: Vec<Value> = flows.iter().map(|flow| json!({"flow_sid": flow})).collect();
            let sent = json!({"FlowSid": "FW1"});
            rule.answered("read-executions", sent, page("executions", items))
        };
        vec![
            listed(&["FW1", "FW1"]).passes(),
            listed(&["FW1", "FW2"]).fails("/executions/1/flow_sid"),
            listed(&[]).not_judged(),
        ]
    }
}

/// The difference between `sent` and the returned value; `None` if they agree.
pub(crate) fn differs(
    sent: &Value,
    got: &Value,
    compare: Comparison,
    or: &[Value],
) -> Option<Fact> {
    if agrees(compare, sent, got) || or.contains(got) {
        return None;
    }
    let expected = json::short(sent);
    let actual = json::short(got);
    Some(Fact {
        kind: "not-honoured",
        message: format!("sent {expected}, came back as {actual}"),
        expected,
        actual,
    })
}
