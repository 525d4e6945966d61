//! `never-after`: once something was ended, what needs it is not accepted any more.

use super::prelude::*;
use crate::judge::acceptance::Acceptance;
use std::collections::BTreeMap;

/// Once `after` was accepted, `operation` is not accepted for the same path parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeverAfter {
    /// The operation that ends the thing: `delete-flow`.
    after: String,
    /// The operation that must fail from then on: `fetch-flow`.
    operation: String,
    /// Path parameters that name the thing, in both operations.
    parameters: Vec<String>,
}

impl Check for NeverAfter {
    fn predicate(&self) -> &'static str {
        Self::NAME
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Operations(vec![&self.after, &self.operation])
    }

    fn names(&self, names: &mut Names<'_>) {
        for (key, name) in [("after", &self.after), ("operation", &self.operation)] {
            let mut operation = names.operation(key, name);
            for (n, parameter) in self.parameters.iter().enumerate() {
                operation.parameter(&format!("parameters/{n}"), parameter);
            }
        }
    }
}

impl Predicate for NeverAfter {
    const NAME: &'static str = "never-after";

    fn needs() -> &'static [Need] {
        &[Need::History]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let mut ended: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for (index, seen) in case.seen.iter().enumerate() {
            let exchange = seen.exchange;
            if exchange.service != rule.service {
                continue;
            }
            let named = self.parameters.iter();
            let named: Option<Vec<String>> =
                named.map(|p| exchange.sent.get(p).map(Value::to_string)).collect();
            let Some(named) = named else { continue };
            if exchange.operation == self.after && seen.acceptance == Acceptance::Accepted {
                ended.insert(named, index);
                continue;
            }
            let Some(end) = ended.get(&named).filter(|_| exchange.operation == self.operation)
            else {
                continue;
            };
            if let Acceptance::Inconclusive(why) = &seen.acceptance {
                verdicts.inconclusive(rule, why);
                continue;
            }
            let accepted = seen.acceptance == Acceptance::Accepted;
            let instance = verdicts.instance(rule, [*end, index].map(Site::Exchange));
            instance.conclude(accepted.then(|| Fact {
                kind: "accepted",
                expected: format!("a refusal, because {} was accepted before", self.after),
                actual: "an accepted request".into(),
                message: format!("{} was accepted after {}", self.operation, self.after),
            }));
        }
    }

    fn examples() -> Vec<Example> {
        let parameters =
            json!({"after": "delete-flow", "operation": "fetch-flow", "parameters": ["Sid"]});
        let sid = || json!({"Sid": "FW1"});
        let flow = json!({
            "sid": "FW1", "account_sid": "AC1", "friendly_name": "", "status": "draft", "version": 1,
            "date_created": "", "date_updated": null, "url": "", "links": {},
        });
        let there = Example::of("flow", parameters).answered("fetch-flow", sid(), flow.clone());
        let gone = there.clone().deleted("delete-flow", sid());
        vec![
            gone.clone().refused("fetch-flow", sid()).passes(),
            gone.clone().answered("fetch-flow", sid(), flow).fails(""),
            gone.too_many("fetch-flow", sid()).not_judged(),
            there.not_judged(),
        ]
    }
}
