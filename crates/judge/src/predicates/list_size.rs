//! `list-size`: an array has at most as many items as a number says: a constant, or one in the same response.

use super::prelude::*;

/// The array at `at` has at most so many items.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ListSize {
    /// Operation ids without the service.
    operations: Vec<String>,
    /// The array; the list of the operation if omitted.
    #[serde(default)]
    at: Option<String>,
    /// The bound. Either this or `size` is given.
    #[serde(default)]
    at_most: Option<u64>,
    /// With `at-most`: the rule that so many resources are accepted, for derived scenarios.
    #[serde(default)]
    #[expect(dead_code, reason = "the engine reads it from the parameters")]
    accepts: Option<String>,
    /// The bound in the same response: `/meta/page_size`.
    #[serde(default)]
    size: Option<String>,
    /// The parameter with the bound; nothing is judged where it is not sent.
    #[serde(default)]
    parameter: Option<String>,
}

impl Predicate for ListSize {
    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            for (key, at) in [("at", &self.at), ("size", &self.size)] {
                if let Some(at) = at {
                    operation.answers(key, at);
                }
            }
            if let Some(parameter) = &self.parameter {
                operation.parameter("parameter", parameter);
            }
        });
        let bounds = [
            self.at_most.is_some(),
            self.size.is_some(),
            self.parameter.is_some(),
        ];
        if bounds.into_iter().filter(|is_given| *is_given).count() != 1 {
            let message = "expected one of `at-most`, `size` and `parameter`";
            references.problem("at-most", message);
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for operation in &self.operations {
            for (index, seen) in verdicts.exchanges_of(operation) {
                let own = seen.operation.and_then(|o| o.items_at());
                let own = own.unwrap_or_default();
                let at = self.at.as_ref().unwrap_or(&own);
                let stated = self.size.as_ref();
                let stated = stated.and_then(|size| Some((size, seen.value(size)?.as_u64()?)));
                let sent = self.parameter.as_ref();
                let sent = sent.and_then(|name| seen.exchange.sent.get(name)?.as_u64());
                let most = self.at_most.or(stated.map(|(_, most)| most)).or(sent);
                let items = seen.whole(at).and_then(Value::as_array);
                let Some((items, most)) = items.zip(most) else {
                    continue;
                };
                if items.is_empty() {
                    verdicts.record_vacuous(Vacuity::Empty);
                    continue;
                }
                let (sites, reason) = match stated {
                    Some((size, _)) => {
                        let sites = [size, at].map(|at| Site::answer(index, at));
                        (Sites::from(sites), format!(", as {size} says"))
                    }
                    None => (Sites::from(Site::answer(index, at)), String::new()),
                };
                let is_longer = items.len() as u64 > most;
                let fact = is_longer.then(|| {
                    let expected = format!("at most {most} items{reason}");
                    Fact::new("bound", expected, format!("{} items", items.len()))
                });
                verdicts.conclude(sites, fact);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let constant = json!({"operations": ["read-webhooks"], "at": "/webhooks", "at-most": 2});
        let webhooks = |operation: &str, items: Value| {
            Example::for_rule("chat", constant.clone()).shown(operation, page("webhooks", items))
        };
        let flows = |size: Value| {
            let parameters =
                json!({"operations": ["read-flows"], "at": "/flows", "size": "/meta/page_size"});
            let page = json!({"meta": {"page_size": size}, "flows": [{"sid": "FW1"}]});
            Example::for_rule("flow", parameters).shown("read-flows", page)
        };
        vec![
            webhooks("read-webhooks", json!([1, 2])).passes(),
            webhooks("read-webhooks", json!([1, 2, 3])).fails("/webhooks"),
            webhooks("read-webhooks", json!([])).not_judged(),
            webhooks("read-members", json!([1, 2, 3])).not_judged(),
            flows(json!(1)).passes(),
            flows(json!(0)).fails("/flows"),
            flows(json!("1")).not_judged(),
        ]
    }
}
