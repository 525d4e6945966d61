//! `no-longer-than`: an array holds no more items than a number in the same answer says.

use super::prelude::*;

/// The array at `at` holds no more items than the number at `size` in the same answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoLongerThan {
    /// Operation ids without the service.
    operations: Vec<String>,
    /// The array; the list's own where left out.
    #[serde(default)]
    at: Option<String>,
    /// The number: `/meta/page_size`.
    size: String,
}

impl Predicate for NoLongerThan {
    fn subject(&self) -> Subject {
        Subject::Operations(self.operations.clone())
    }

    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            if let Some(at) = &self.at {
                operation.answers("at", at);
            }
            operation.answers("size", &self.size);
        });
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for operation in &self.operations {
            for (index, seen) in case.of_operation(&rule.service, operation) {
                let key = seen.operation.and_then(|o| o.list_key.as_deref());
                let own = json::join("", key.unwrap_or_default());
                let at = self.at.as_ref().unwrap_or(&own);
                let (Some(items), Some(most)) = (
                    seen.whole(at).and_then(Value::as_array),
                    seen.value(&self.size).and_then(Value::as_u64),
                ) else {
                    continue;
                };
                if items.is_empty() {
                    verdicts.trivial(rule, Trivial::Empty);
                    continue;
                }
                let is_longer = items.len() as u64 > most;
                let sites = [&self.size, at].map(|at| Site::answer(index, at));
                let instance = verdicts.instance(rule, sites);
                instance.conclude(is_longer.then(|| Fact {
                    kind: "bound",
                    expected: format!("at most {most} items, as {} says", self.size),
                    actual: format!("{} items", items.len()),
                    ..Fact::default()
                }));
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters =
            json!({"operations": ["read-flows"], "at": "/flows", "size": "/meta/page_size"});
        let scene = Example::of("flow", parameters);
        let page = |size: Value| json!({"meta": {"page_size": size}, "flows": [{"sid": "FW1"}]});
        vec![
            scene.clone().shown("read-flows", page(json!(1))).passes(),
            scene
                .clone()
                .shown("read-flows", page(json!(0)))
                .fails("/flows"),
            scene.shown("read-flows", page(json!("1"))).not_judged(),
        ]
    }
}
