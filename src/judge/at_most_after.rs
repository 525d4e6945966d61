//! `at-most-after`: a time lies at most so long after another one; either may be now.

use super::case::{Case, Fact, Judgement, Representation};
use crate::rulebook::Rule;

/// Seconds by which clocks may differ where a time is compared with now (D1: clocks are to be kept
/// in sync, which no clock is to the second).
const SKEW_SECONDS: f64 = 5.0;

/// Judges every representation of the kind that has the times: the later one and the earlier one
/// by pointer, now where there is none.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    (at, after): (Option<&str>, Option<&str>),
    seconds: u64,
    judgement: &mut Judgement,
) {
    let skew = if at.is_none() || after.is_none() {
        SKEW_SECONDS
    } else {
        0.0
    };
    for thing in case.of_kind(kind) {
        let times = (seconds_at(case, thing, at), seconds_at(case, thing, after));
        let (Some(later), Some(earlier)) = times else {
            continue;
        };
        let apart = later - earlier;
        #[expect(
            clippy::cast_precision_loss,
            reason = "bounds are minutes, not centuries"
        )]
        let finding = (apart > seconds as f64 + skew).then(|| {
            let (from, to) = (after.unwrap_or("now"), at.unwrap_or("now"));
            let fact = Fact {
                pointer: format!("{}{}", thing.prefix, at.or(after).unwrap_or_default()),
                kind: "too-late",
                expected: format!("{to} at most {seconds} s after {from}"),
                actual: format!("{apart} s after it"),
                ..Fact::default()
            };
            case.finding(&rule.id, thing.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}

fn seconds_at(case: &Case<'_>, thing: &Representation<'_>, pointer: Option<&str>) -> Option<f64> {
    match pointer {
        Some(pointer) => thing.value(pointer).and_then(serde_json::Value::as_f64),
        None => case.evidence.now.map(|now| now.as_duration().as_secs_f64()),
    }
}
