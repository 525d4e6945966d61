//! `bounded`: an array holds at most so many items.

use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;

/// Judges every accepted answer of these operations.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operations: &[String],
    at: &str,
    at_most: u64,
    judgement: &mut Judgement,
) {
    for operation in operations {
        for (index, seen) in case.of_operation(&rule.service, operation) {
            let Some(items) = seen.whole(at).and_then(serde_json::Value::as_array) else {
                continue;
            };
            let finding = (items.len() as u64 > at_most).then(|| {
                let fact = Fact {
                    pointer: at.to_owned(),
                    kind: "bound",
                    expected: format!("at most {at_most} items"),
                    actual: format!("{} items", items.len()),
                    ..Fact::default()
                };
                case.finding(&rule.id, Some(index), fact)
            });
            judgement.conclude(&rule.id, finding);
        }
    }
}
