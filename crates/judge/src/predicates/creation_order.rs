//! `order` with `scope`: a number grows with each resource created in a scope. Gaps are allowed.

use super::prelude::*;
use std::collections::BTreeMap;

/// In order of creation, this number grows within each scope; gaps are free.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreationOrder {
    /// The operation that creates the resources.
    operation: String,
    /// The number.
    at: String,
    /// Fields that make up the scope: `[/channel_sid]`.
    scope: Vec<String>,
}

impl Predicate for CreationOrder {
    fn subject(&self) -> Subject {
        Subject::operation(&self.operation)
    }

    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .answers("at", &self.at)
            .all_answer("scope", &self.scope);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn evaluate(&self, context: &Context<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let mut last: BTreeMap<String, (usize, i64)> = BTreeMap::new();
        for (index, seen) in context.of_operation(&rule.service, &self.operation) {
            let Some(number) = seen.value(&self.at).and_then(Value::as_i64) else {
                continue;
            };
            let scope = self.scope.iter();
            let scope: Option<Vec<String>> =
                scope.map(|s| seen.value(s).map(Value::to_string)).collect();
            let Some(scope) = scope else { continue };
            let Some((earlier, before)) = last.insert(scope.join("\n"), (index, number)) else {
                verdicts.record_vacuous(rule, Vacuity::Alone);
                continue;
            };
            let sites = [earlier, index].map(|index| Site::answer(index, &self.at));
            let instance = verdicts.instance(rule, sites);
            instance.conclude((number <= before).then(|| Fact {
                kind: "order",
                expected: format!("more than {before}"),
                actual: number.to_string(),
                ..Fact::default()
            }));
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters =
            json!({"operation": "create-message", "at": "/index", "scope": ["/channel_sid"]});
        let scene = Example::for_rule("chat", parameters);
        let message = |channel: &str, index: i64| json!({"channel_sid": channel, "index": index});
        let first = scene.shown("create-message", message("CH1", 4));
        vec![
            first
                .clone()
                .shown("create-message", message("CH1", 9))
                .passes(),
            first
                .clone()
                .shown("create-message", message("CH1", 4))
                .fails("/index"),
            first
                .shown("create-message", message("CH2", 0))
                .not_judged(),
        ]
    }
}
