//! `at-most-after`: a time lies at most so long after another one, or after now.

use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;

/// Seconds by which clocks may differ where a time is compared with now (D1: clocks are to be kept
/// in sync, which no clock is to the second).
const SKEW_SECONDS: f64 = 5.0;

/// Judges every representation of the kind that has the times.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    at: &str,
    after: Option<&str>,
    seconds: u64,
    judgement: &mut Judgement,
) {
    for thing in case.of_kind(kind) {
        let Some(later) = thing.value(at).and_then(serde_json::Value::as_f64) else { continue };
        let (earlier, skew, name) = match after {
            Some(pointer) => (thing.value(pointer).and_then(serde_json::Value::as_f64), 0.0, pointer),
            None => (case.evidence.now.map(|now| now.as_duration().as_secs_f64()), SKEW_SECONDS, "now"),
        };
        let Some(earlier) = earlier else { continue };
        let apart = later - earlier;
        #[expect(clippy::cast_precision_loss, reason = "bounds are minutes, not centuries")]
        let finding = (apart > seconds as f64 + skew).then(|| {
            let fact = Fact {
                pointer: format!("{}{at}", thing.prefix),
                kind: "too-late",
                expected: format!("at most {seconds} s after {name}"),
                actual: format!("{apart} s after it"),
                ..Fact::default()
            };
            case.finding(&rule.id, thing.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}
