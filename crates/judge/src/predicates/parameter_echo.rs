//! `parameter-echo`: an accepted response contains the value of a parameter. With `default`: the default of one that was not
//! sent.

use super::prelude::*;
use crate::compare::agrees;
use crate::parameter::beyond;
use conformant_rulebook::rules::Comparison;

/// A parameter comes back in the response. Prefer `x-echo`; write this for cases that it cannot express.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterEcho {
    /// Operation ids without the service.
    operations: Vec<String>,
    /// Parameter as the document spells it.
    parameter: String,
    /// Where it comes back.
    at: String,
    /// How the two are compared.
    #[serde(default, rename = "as")]
    compare: Comparison,
    /// Further accepted values.
    #[serde(default)]
    or: Vec<Value>,
    /// The stated default. Judges requests without the parameter in place of those with it; not used with `as` and `or`.
    #[serde(default)]
    default: Option<Value>,
}

impl Predicate for ParameterEcho {
    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            operation
                .parameter("parameter", &self.parameter)
                .answers("at", &self.at);
        });
        let is_compared = self.compare != Comparison::default() || !self.or.is_empty();
        if self.default.is_some() && is_compared {
            references.problem("default", "not used with `as` and `or`");
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for operation in &self.operations {
            for (index, seen) in verdicts.exchanges_of(operation) {
                match (seen.exchange.sent.get(&self.parameter), &self.default) {
                    (None, Some(default)) => {
                        if let Some(got) = seen.value(&self.at) {
                            let fact = differs_from_default(&self.parameter, default, got);
                            verdicts.conclude(Site::answer(index, &self.at), fact);
                        }
                    }
                    (Some(sent), None) => self.evaluate_sent(index, seen, sent, verdicts),
                    (None, None) | (Some(_), Some(_)) => {}
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = |operation: &str, parameter: &str, at: &str| json!({"operations": [operation], "parameter": parameter, "at": at});
        let echo = rule("read-executions", "FlowSid", "/executions/*/flow_sid");
        let echo = Example::for_rule("flow", echo);
        let listed = |flows: &[&str]| {
            let items: Vec<Value> = flows.iter().map(|flow| json!({"flow_sid": flow})).collect();
            let sent = json!({"FlowSid": "FW1"});
            echo.answered("read-executions", sent, page("executions", items))
        };
        let mut default = rule("read-flows", "PageSize", "/meta/page_size");
        default["default"] = json!(50);
        let default = Example::for_rule("flow", default);
        let page = |size: u64| json!({"meta": {"page_size": size}, "flows": []});
        let sent = json!({"PageSize": "20"});
        vec![
            listed(&["FW1", "FW1"]).passes(),
            listed(&["FW1", "FW2"]).fails("/executions/1/flow_sid"),
            listed(&[]).not_judged(),
            default.shown("read-flows", page(50)).passes(),
            default
                .shown("read-flows", page(20))
                .fails("/meta/page_size"),
            default.answered("read-flows", sent, page(20)).not_judged(),
        ]
    }
}

impl ParameterEcho {
    fn evaluate_sent(
        &self,
        index: usize,
        seen: &Seen<'_>,
        sent: &Value,
        verdicts: &mut Verdicts<'_>,
    ) {
        let mut parameters = seen.operation.iter().flat_map(|o| &o.parameters);
        let parameter = parameters.find(|p| p.name == self.parameter);
        let is_beyond = parameter.is_some_and(|p| beyond(sent, &p.schema).is_some());
        let context = verdicts.context;
        // A value beyond its bound may be cut, and what exists already comes back unchanged.
        if !is_beyond && !context.history.returns_existing(context, index) {
            let wrong = |got: &Value| differs(sent, got, self.compare, &self.or);
            verdicts.conclude_each(index, &self.at, wrong);
        }
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

/// The difference between the documented default and `got`; `None` if they agree.
pub(crate) fn differs_from_default(parameter: &str, default: &Value, got: &Value) -> Option<Fact> {
    if json::equal(default, got) {
        return None;
    }
    let (expected, actual) = (json::short(default), json::short(got));
    Some(Fact {
        kind: "default",
        message: format!("{parameter} was left out: expected the default {expected}, got {actual}"),
        expected,
        actual,
    })
}
