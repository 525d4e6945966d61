//! `one-spelling`: where a document spells a word in several ways, one target uses one of them.

use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;
use serde_json::Value;

/// Judges every value after the first that uses one of the spellings.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    at: &str,
    of: &[String],
    judgement: &mut Judgement,
) {
    let mut first: Option<&str> = None;
    for thing in case.of_kind(kind) {
        let Some(word) = thing.value(at).and_then(Value::as_str) else {
            continue;
        };
        if !of.iter().any(|spelling| spelling == word) {
            continue;
        }
        let used = *first.get_or_insert(word);
        let finding = (used != word).then(|| {
            let fact = Fact {
                pointer: format!("{}{at}", thing.prefix),
                kind: "spelling",
                expected: format!("{used}, as before"),
                actual: word.to_owned(),
                ..Fact::default()
            };
            case.finding(&rule.id, thing.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}
