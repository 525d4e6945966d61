//! `no-longer-than`: an array holds no more items than a number in the same answer says.

use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;
use serde_json::Value;

/// Judges every accepted answer of these operations.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operations: &[String],
    at: &str,
    size: &str,
    judgement: &mut Judgement,
) {
    for operation in operations {
        for (index, seen) in case.of_operation(&rule.service, operation) {
            let (Some(items), Some(most)) = (
                seen.whole(at).and_then(Value::as_array),
                seen.value(size).and_then(Value::as_u64),
            ) else {
                continue;
            };
            let finding = (items.len() as u64 > most).then(|| {
                let fact = Fact {
                    pointer: at.to_owned(),
                    kind: "bound",
                    expected: format!("at most {most} items, as {size} says"),
                    actual: format!("{} items", items.len()),
                    ..Fact::default()
                };
                case.finding(&rule.id, Some(index), fact)
            });
            judgement.conclude(&rule.id, finding);
        }
    }
}
