//! `order` with `direction`: the values of a list are in order. Equal values may be in any order.

use super::prelude::*;
use crate::compare::instant;
use std::cmp::Ordering;

/// The values at `at` are in that order; equal consecutive values may be in any order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListOrder {
    /// Operation id of the list.
    operation: String,
    /// For example `/executions/*/date_created`.
    at: String,
    /// Which way.
    direction: Direction,
}

/// Ascending or descending.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Direction {
    /// Smallest or oldest first.
    Ascending,
    /// Largest or most recent first.
    Descending,
}

impl Predicate for ListOrder {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .answers("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    /// Judges each page on its own, and each walk as one list.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let pages = verdicts.exchanges_of(&self.operation);
        let mut lists: Vec<Vec<usize>> = pages.map(|(index, _)| vec![index]).collect();
        let of_list = |service: &str, operation: &str| {
            service == verdicts.rule.service && operation == self.operation
        };
        let walks = context.evidence.walks.iter();
        lists.extend(
            walks
                .filter(|w| of_list(&w.service, &w.operation) && w.pages.len() > 1)
                .map(|w| w.pages.clone()),
        );
        for pages in lists {
            let values: Vec<(Site, &Value)> = pages
                .iter()
                .flat_map(|&page| {
                    let found = context.seen[page].select(&self.at).into_iter();
                    found.map(move |(at, value)| (Site::answer(page, at), value))
                })
                .collect();
            let sites = Sites::collect(values.iter().map(|(site, _)| site.clone()));
            let Some(sites) = sites.filter(|_| values.len() > 1) else {
                verdicts.record_vacuous(Vacuity::Alone);
                continue;
            };
            let mut pairs = values.windows(2);
            let wrong = pairs.find(|pair| self.direction.is_against(pair[0].1, pair[1].1));
            let wrong = wrong.map(|pair| {
                let before = json::short(pair[0].1);
                let fact = Fact::new(
                    "order",
                    match self.direction {
                        Direction::Ascending => format!("at or after {before}"),
                        Direction::Descending => format!("at or before {before}"),
                    },
                    json::short(pair[1].1),
                );
                (pair[1].0.clone(), fact)
            });
            verdicts.conclude_at(sites, wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule(
            "flow",
            json!({
                "operation": "read-executions", "at": "/executions/*/date_created",
                "direction": "descending",
            }),
        );
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01+00:00");
        let shown = |created: &[&str]| {
            let items = created.iter().map(|at| json!({"date_created": at}));
            page("executions", items.collect::<Vec<_>>())
        };
        let listed = |created: &[&str]| rule.shown("read-executions", shown(created));
        vec![
            listed(&[late, early]).passes(),
            listed(&[early, early]).passes(),
            listed(&[early, late]).fails("/executions/1/date_created"),
            listed(&[early])
                .shown("read-executions", shown(&[late]))
                .walked(2)
                .fails("/executions/0/date_created"),
            listed(&[early]).not_judged(),
        ]
    }
}

impl Direction {
    fn is_against(self, before: &Value, after: &Value) -> bool {
        let order = match (instant(before), instant(after)) {
            // To the second: spellings without fractions do not determine the order within a second.
            (Some(before), Some(after)) => before.as_second().cmp(&after.as_second()),
            (_, _) => match (before.as_f64(), after.as_f64()) {
                (Some(before), Some(after)) => before.total_cmp(&after),
                (_, _) => Ordering::Equal,
            },
        };
        match self {
            Self::Ascending => order == Ordering::Greater,
            Self::Descending => order == Ordering::Less,
        }
    }
}
