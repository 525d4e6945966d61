//! `order` with `direction`: the values of a list are in order. Equal values may be in any order.
//!
//! `order` with `scope`: a number grows with each resource created in a scope. Gaps are allowed. Resources created at
//! the same time only have different numbers.

use super::prelude::*;
use std::cmp::Ordering;

/// The values at `at` are in that order; equal consecutive values may be in any order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListOrder {
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

/// In order of creation, this number grows within each scope; gaps are free.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreationOrder {
    /// The operation that creates the resources.
    operation: String,
    /// The number.
    at: String,
    /// Fields that make up the scope: `[/channel_sid]`.
    scope: Vec<String>,
}

impl Predicate for CreationOrder {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .answers("at", &self.at)
            .all_answer("scope", &self.scope);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let moments = &context.history.moments;
        let mut created: Vec<_> = verdicts.exchanges_of(&self.operation).collect();
        created.sort_by_key(|(index, _)| moments[*index].event);
        let mut scopes: BTreeMap<String, Vec<Created>> = BTreeMap::new();
        for (index, seen) in created {
            let Some(number) = seen.value(&self.at).and_then(Value::as_i64) else {
                continue;
            };
            let scope = self.scope.iter();
            let scope: Option<Vec<String>> =
                scope.map(|s| seen.value(s).map(Value::to_string)).collect();
            let Some(scope) = scope else { continue };
            let known = scopes.entry(scope.join("\n")).or_default();
            let moment = moments[index];
            let compared = Created::compared(known, &moment);
            let broken = compared.iter().find(|one| one.breaks(&moment, number));
            match broken.or(compared.first()) {
                None => verdicts.record_vacuous(Vacuity::Alone),
                Some(one) => {
                    let sites = [one.index, index].map(|index| Site::answer(index, &self.at));
                    let fact = broken.map(|one| {
                        Fact::new(
                            "order",
                            match one.moment.is_before(&moment) {
                                true => format!("more than {}", one.number),
                                false => format!("not {}", one.number),
                            },
                            number.to_string(),
                        )
                    });
                    verdicts.conclude(sites, fact);
                }
            }
            known.push(Created {
                index,
                number,
                moment,
            });
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters =
            json!({"operation": "create-message", "at": "/index", "scope": ["/channel_sid"]});
        let created = |scene: &ExampleBuilder, channel: &str, index: i64| {
            scene.shown(
                "create-message",
                json!({"channel_sid": channel, "index": index}),
            )
        };
        let first = created(&Example::for_rule("chat", parameters), "CH1", 4);
        let in_any_order = created(&first, "CH1", 3).raced(2);
        vec![
            created(&first, "CH1", 9).passes(),
            created(&first, "CH1", 4).fails("/index"),
            created(&first, "CH2", 0).not_judged(),
            // Requests at the same time may be served in any order, each under its own number.
            in_any_order.passes(),
            created(&first, "CH1", 4).raced(2).fails("/index"),
            created(&in_any_order, "CH1", 4).fails("/index"),
        ]
    }
}

/// A resource that was created.
#[derive(Clone, Copy)]
struct Created {
    index: usize,
    number: i64,
    moment: Moment,
}

impl Created {
    /// The earlier resources that a new one is compared with: those created at the same time, and the last
    /// one before with those created at its time.
    fn compared(known: &[Self], moment: &Moment) -> Vec<Self> {
        let last = known.iter().rev().find(|one| one.moment.is_before(moment));
        let counts = |one: &&Self| {
            let is_last = last.is_some_and(|last| {
                one.index == last.index
                    || one.moment.overlaps(&last.moment) && one.moment.is_before(moment)
            });
            is_last || one.moment.overlaps(moment)
        };
        known.iter().filter(counts).copied().collect()
    }

    /// Whether a later or simultaneous resource cannot have that number.
    fn breaks(&self, moment: &Moment, number: i64) -> bool {
        match self.moment.is_before(moment) {
            true => number <= self.number,
            false => number == self.number,
        }
    }
}
