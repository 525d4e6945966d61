//! `bounded`: an array holds at most so many items.

use super::prelude::*;

/// The array at `at` holds at most that many items.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bounded {
    /// Operation ids without the service.
    operations: Vec<String>,
    /// The array.
    at: String,
    /// The bound.
    at_most: u64,
}

impl Predicate for Bounded {
    fn subject(&self) -> Subject {
        Subject::Operations(self.operations.clone())
    }

    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            operation.answers("at", &self.at);
        });
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for operation in &self.operations {
            for (index, seen) in case.of_operation(&rule.service, operation) {
                let Some(items) = seen.whole(&self.at).and_then(Value::as_array) else {
                    continue;
                };
                if items.is_empty() {
                    verdicts.trivial(rule, Trivial::Empty);
                    continue;
                }
                let is_beyond = items.len() as u64 > self.at_most;
                let instance = verdicts.instance(rule, Site::answer(index, &self.at));
                instance.conclude(is_beyond.then(|| Fact {
                    kind: "bound",
                    expected: format!("at most {} items", self.at_most),
                    actual: format!("{} items", items.len()),
                    ..Fact::default()
                }));
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters = json!({"operations": ["read-webhooks"], "at": "/webhooks", "at-most": 2});
        let scene = Example::of("chat", parameters);
        let page = |items: Value| json!({"meta": {"key": "webhooks"}, "webhooks": items});
        vec![
            scene
                .clone()
                .shown("read-webhooks", page(json!([1, 2])))
                .passes(),
            scene
                .clone()
                .shown("read-webhooks", page(json!([1, 2, 3])))
                .fails("/webhooks"),
            scene
                .clone()
                .shown("read-webhooks", page(json!([])))
                .not_judged(),
            scene
                .clone()
                .shown("read-members", page(json!([1, 2, 3])))
                .not_judged(),
            scene.not_judged(),
        ]
    }
}
