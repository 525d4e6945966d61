//! `parameter-echo` with `default`: an accepted response contains the default of a parameter that was not sent.

use super::prelude::*;

/// If the parameter is omitted, the response has this value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterDefault {
    /// Operation ids without the service.
    operations: Vec<String>,
    /// Parameter as the document spells it.
    parameter: String,
    /// Where to look.
    at: String,
    /// The stated default.
    #[serde(rename = "default")]
    value: Value,
}

impl Predicate for ParameterDefault {
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
        for operation in &self.operations {
            for (index, seen) in verdicts.exchanges_of(operation) {
                if seen.exchange.sent.contains_key(&self.parameter) {
                    continue;
                }
                let Some(got) = seen.value(&self.at) else {
                    continue;
                };
                let fact = differs(&self.parameter, &self.value, got);
                verdicts.conclude(Site::answer(index, &self.at), fact);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule(
            "flow",
            json!({
                "operations": ["read-flows"], "parameter": "PageSize", "at": "/meta/page_size",
                "default": 50,
            }),
        );
        let page = |size: u64| json!({"meta": {"page_size": size}, "flows": []});
        let sent = json!({"PageSize": "20"});
        vec![
            rule.shown("read-flows", page(50)).passes(),
            rule.shown("read-flows", page(20)).fails("/meta/page_size"),
            rule.answered("read-flows", sent, page(20)).not_judged(),
        ]
    }
}

/// The difference between the documented default and `got`; `None` if they agree.
pub(crate) fn differs(parameter: &str, default: &Value, got: &Value) -> Option<Fact> {
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
