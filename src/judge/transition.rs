//! `transition`: the observed states of one thing move only along stated steps.

use super::case::{Case, Fact, Judgement};
use crate::rulebook::Rule;
use serde_json::Value;
use std::collections::BTreeMap;

/// Judges each thing that was seen at least twice. Between two sights several steps may have been
/// taken, so any state that can be reached will do.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    key: &str,
    at: &str,
    steps: &[(String, String)],
    judgement: &mut Judgement,
) {
    let mut last: BTreeMap<String, &str> = BTreeMap::new();
    for thing in case.of_kind(kind) {
        let (Some(identity), Some(state)) = (
            thing.value(key).map(Value::to_string),
            thing.value(at).and_then(Value::as_str),
        ) else {
            continue;
        };
        let Some(before) = last.insert(identity, state) else {
            continue;
        };
        let finding = (!can_reach(before, state, steps)).then(|| {
            let fact = Fact {
                pointer: format!("{}{at}", thing.prefix),
                kind: "transition",
                expected: format!("{before} or what follows it"),
                actual: state.to_owned(),
                message: format!("moved from {before} to {state}"),
            };
            case.finding(&rule.id, thing.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}

fn can_reach(from: &str, to: &str, steps: &[(String, String)]) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(state) = reached.get(next).copied() {
        if state == to {
            return true;
        }
        for (before, after) in steps {
            if before == state && !reached.contains(&after.as_str()) {
                reached.push(after);
            }
        }
        next += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::can_reach;

    #[test]
    fn states_are_reached_along_steps_and_never_back() {
        let steps: Vec<(String, String)> = [("a", "b"), ("b", "c")]
            .map(|(x, y)| (x.to_owned(), y.to_owned()))
            .to_vec();
        for (from, to, reachable) in [
            ("a", "a", true),
            ("a", "b", true),
            ("a", "c", true),
            ("c", "a", false),
            ("b", "x", false),
        ] {
            assert_eq!(can_reach(from, to, &steps), reachable, "{from} -> {to}");
        }
    }
}
