//! `rejects-parameter`: a request with an invalid value of a parameter is rejected.

use super::prelude::*;
use regex::Regex;
use std::sync::OnceLock;

/// A request with such a value is refused.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectsParameter {
    /// Operation id without the service.
    operation: String,
    /// Parameter as the document spells it.
    parameter: String,
    /// Which values within the parameter are judged; the parameter itself if omitted.
    #[serde(default)]
    at: String,
    /// The regular expression of valid values.
    #[serde(default)]
    like: Option<String>,
    /// A value that must be among the values.
    #[serde(default)]
    holds: Option<Value>,
    /// Whether it must be JSON, sent as a text.
    #[serde(default)]
    json: bool,
    #[serde(skip)]
    compiled: Compiled,
}

/// The expression, compiled once; not printed.
#[derive(Default)]
struct Compiled(OnceLock<Option<Regex>>);

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compiled")
    }
}

impl Predicate for RejectsParameter {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .parameter("parameter", &self.parameter);
        if self.like.is_some() && self.pattern().is_none() {
            references.problem("like", "not a regular expression");
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(&self.operation) {
            let sent = seen.exchange.sent.get(&self.parameter);
            let Some(wrong) = sent.and_then(|sent| self.wrong(sent)) else {
                continue;
            };
            let site = Site::Exchange(index);
            match &seen.acceptance {
                Acceptance::Inconclusive(why) => verdicts.inconclusive(why),
                _ if verdicts.has_finding_at(&site) || !seen.exchange.credentials.sees_ours() => {}
                found @ (Acceptance::Accepted | Acceptance::Rejected(_)) => {
                    let fact = Fact {
                        kind: "accepted",
                        expected: "a refusal".to_owned(),
                        actual: "accepted".to_owned(),
                        message: format!(
                            "{}: {wrong}, and the request was accepted",
                            self.parameter
                        ),
                    };
                    let accepted = *found == Acceptance::Accepted;
                    verdicts.conclude(site, accepted.then_some(fact));
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const CREATE: &str = "create-execution";
        let rule = |mut parameters: Value| {
            parameters["operation"] = json!(CREATE);
            parameters["parameter"] = json!("Parameters");
            Example::for_rule("flow", parameters)
        };
        let sent =
            |value: &Value| json!({"FlowSid": "FW1", "To": "a", "From": "b", "Parameters": value});
        let taken = |scene: &ExampleBuilder, value: &Value| {
            let sent = sent(value);
            scene.answered(CREATE, sent, json!({"sid": "FN1", "flow_sid": "FW1"}))
        };
        // An accepted request, so that a mutation can use its response.
        let refused = |scene: &ExampleBuilder, value: &Value| {
            let good = taken(scene, &json!([{"url": "https://a"}]));
            good.refused(CREATE, sent(value))
        };
        let list = json!([{"url": "https://a"}, {"url": "http://b"}]);
        let is_json = rule(json!({"json": true}));
        let like = rule(json!({"at": "/*/url", "like": "^https://"}));
        vec![
            refused(&is_json, &json!("{")).passes(),
            taken(&is_json, &json!("{")).fails(""),
            taken(&is_json, &json!("{}")).not_judged(),
            taken(&like, &list).fails(""),
            refused(&like, &list).passes(),
            taken(&rule(json!({"at": "/*/url", "holds": "https://c"})), &list).fails(""),
        ]
    }
}

impl RejectsParameter {
    fn pattern(&self) -> Option<&Regex> {
        let compile = || Regex::new(self.like.as_deref()?).ok();
        self.compiled.0.get_or_init(compile).as_ref()
    }

    /// What is wrong with a sent value; `None` if it is valid.
    fn wrong(&self, sent: &Value) -> Option<String> {
        if self.json
            && sent
                .as_str()
                .is_some_and(|text| json::parse_text(text).is_none())
        {
            return Some(format!("{} is not JSON", json::short(sent)));
        }
        let values = json::expand(sent, &self.at);
        if let Some(needed) = &self.holds
            && !values.is_empty()
            && !values.iter().any(|(_, value)| json::equal(value, needed))
        {
            return Some(format!("{} is not among them", json::short(needed)));
        }
        let pattern = self.pattern()?;
        let mut texts = values.iter().map(|(_, value)| as_text(value));
        let strange = texts.find(|text| !pattern.is_match(text))?;
        Some(format!(
            "{} is not what may stand there",
            json::short(&Value::from(strange))
        ))
    }
}
