//! `ordered-by`: the values of a list stand in a stated order; equal neighbours are free.

use super::case::{Case, Fact, Judgement};
use super::echoes::instant;
use crate::json;
use crate::rulebook::Rule;
use crate::rulebook::rules::Direction;
use serde_json::Value;
use std::cmp::Ordering;

/// Judges each page by itself, and each walk as one list.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    operation: &str,
    at: &str,
    direction: Direction,
    judgement: &mut Judgement,
) {
    let mut lists: Vec<Vec<usize>> = case
        .of_operation(&rule.service, operation)
        .map(|(index, _)| vec![index])
        .collect();
    let walks = case.evidence.walks.iter();
    lists.extend(
        walks
            .filter(|w| w.service == rule.service && w.operation == operation && w.pages.len() > 1)
            .map(|w| w.pages.clone()),
    );
    for pages in lists {
        let values: Vec<(usize, String, &Value)> = pages
            .iter()
            .flat_map(|&page| {
                case.seen[page]
                    .select(at)
                    .into_iter()
                    .map(move |(pointer, v)| (page, pointer, v))
            })
            .collect();
        if values.len() < 2 {
            continue;
        }
        let wrong = values
            .windows(2)
            .find(|pair| is_wrong(pair[0].2, pair[1].2, direction));
        let finding = wrong.map(|pair| {
            let (page, pointer, value) = &pair[1];
            let fact = Fact {
                pointer: pointer.clone(),
                kind: "order",
                expected: match direction {
                    Direction::Ascending => format!("at or after {}", json::short(pair[0].2)),
                    Direction::Descending => format!("at or before {}", json::short(pair[0].2)),
                },
                actual: json::short(value),
                ..Fact::default()
            };
            case.finding(&rule.id, Some(*page), fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}

fn is_wrong(before: &Value, after: &Value, direction: Direction) -> bool {
    let order = match (instant(before), instant(after)) {
        // To the second: what a spelling leaves out orders nothing.
        (Some(before), Some(after)) => before.as_second().cmp(&after.as_second()),
        (_, _) => match (before.as_f64(), after.as_f64()) {
            (Some(before), Some(after)) => before.total_cmp(&after),
            (_, _) => Ordering::Equal,
        },
    };
    match direction {
        Direction::Ascending => order == Ordering::Greater,
        Direction::Descending => order == Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_step_against_the_direction_is_wrong() {
        let (early, late) = (
            json!("2026-01-01T00:00:00Z"),
            json!("2026-01-01T00:00:01+00:00"),
        );
        assert!(!is_wrong(&late, &early, Direction::Descending));
        assert!(is_wrong(&early, &late, Direction::Descending));
        assert!(!is_wrong(&early, &early, Direction::Descending));
        assert!(is_wrong(&json!(2), &json!(1), Direction::Ascending));
        assert!(!is_wrong(&json!(1), &json!(1), Direction::Ascending));
    }
}
