//! `never-after`: once something was ended, what needs it is not accepted any more.

use super::acceptance::Acceptance;
use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;
use serde_json::Value;
use std::collections::BTreeSet;

/// Judges every exchange of `operation` behind an accepted `after` with the same parameters.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    after: &str,
    operation: &str,
    parameters: &[String],
    judgement: &mut Judgement,
) {
    let mut ended: BTreeSet<Vec<String>> = BTreeSet::new();
    for (index, seen) in case.seen.iter().enumerate() {
        if seen.exchange.service != rule.service {
            continue;
        }
        let named: Option<Vec<String>> = parameters
            .iter()
            .map(|p| seen.exchange.sent.get(p).map(Value::to_string))
            .collect();
        let Some(named) = named else { continue };
        if seen.exchange.operation == after && seen.acceptance == Acceptance::Accepted {
            ended.insert(named);
        } else if seen.exchange.operation == operation && ended.contains(&named) {
            match &seen.acceptance {
                Acceptance::Accepted => {
                    let fact = Fact {
                        kind: "accepted",
                        expected: format!("a refusal, because {after} was accepted before"),
                        actual: "an accepted request".into(),
                        message: format!("{operation} was accepted after {after}"),
                        ..Fact::default()
                    };
                    judgement.conclude(&rule.id, Some(case.finding(&rule.id, Some(index), fact)));
                }
                Acceptance::Rejected(_) => judgement.judged(&rule.id),
                Acceptance::Inconclusive(why) => judgement.inconclusive(&rule.id, why),
            }
        }
    }
}
