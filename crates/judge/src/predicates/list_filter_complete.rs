//! `list-filter` with `filters`: a filtered list contains each resource of its scope that matches the filter.
//!
//! Does not judge resources that were not observed before, nor changes within the consistency window.

use super::list_filter::Keeps;
use super::prelude::*;
use crate::history::{Appearance, List, ResourceId};
use std::collections::BTreeMap;

/// A list that was asked for with these filters, and with no others, holds what fits them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFilterComplete {
    /// Operation ids of the lists, without the service.
    operations: Vec<String>,
    /// By parameter: which value of an item it is about, and how.
    filters: BTreeMap<String, FilteredValue>,
    /// Whether it was read page by page, or on one page.
    #[serde(default)]
    paged: Option<bool>,
}

/// What a filter is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilteredValue {
    /// The value of an item.
    at: String,
    /// How it relates to what was sent.
    keeps: Keeps,
}

impl Predicate for ListFilterComplete {
    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            for parameter in self.filters.keys() {
                operation.parameter("filters", parameter);
            }
        });
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for list in &context.history.lists {
            let of = &list.operation;
            let is_ours = of.service == verdicts.rule.service && self.operations.contains(&of.id);
            let same = list.filters.keys().eq(self.filters.keys());
            let paged = self
                .paged
                .is_none_or(|paged| paged == (list.pages.len() > 1));
            if is_ours && same && paged && list.is_complete && !list.is_attempt {
                self.evaluate_list(list, verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters = json!({
            "operations": ["read-members"], "filters": {"Identity": {"at": "/identity", "keeps": "one-of"}},
        });
        let (ann, bob) = (member("1", "ann"), member("2", "bob"));
        let read = |scene: &ExampleBuilder, sent: Value, members: Value| {
            scene.answered("read-members", in_channel(sent), page("members", members))
        };
        let made = Example::for_rule("chat", parameters)
            .answered("create-member", in_channel(json!({})), ann.clone())
            .answered("create-member", in_channel(json!({})), bob.clone());
        let listed = read(&made, json!({}), json!([ann, bob]));
        let changed = listed.answered("create-member", in_channel(json!({})), json!({}));
        let filtered = |scene: &ExampleBuilder, members: Value| {
            read(scene, json!({"Identity": "ann"}), members)
        };
        vec![
            filtered(&listed, json!([ann])).passes(),
            filtered(&listed, json!([])).fails("/members"),
            filtered(&made, json!([])).not_judged(),
            // The answer names no resource, so that it may be that of ann.
            filtered(&changed, json!([])).not_judged(),
            listed.not_judged(),
        ]
    }
}

impl ListFilterComplete {
    fn evaluate_list(&self, list: &List<'_>, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(of) = context.about(list.item_type).and_then(Annotations::of) else {
            return;
        };
        let wanted = history.resources.of_kind(of).filter(|&(id, _)| {
            let since = history.exists_throughout(id, list);
            let is_shown = list.holds(id) || was_listed(context, id, list);
            history.is_exclusive(id)
                && history.belongs(id, list) == Some(true)
                && since.is_some_and(|since| is_shown || since.is_settled(&list.first))
                && self.fits(context, id, list)
        });
        let wanted: Vec<ResourceId> = wanted.map(|(id, _)| id).collect();
        let Some(sites) = list.sites().filter(|_| !wanted.is_empty()) else {
            verdicts.record_vacuous(Vacuity::Empty);
            return;
        };
        if sites.iter().any(|site| verdicts.has_finding_at(site)) {
            return;
        }
        let missing = wanted.into_iter().find(|&id| !list.holds(id));
        let wrong = missing.map(|id| {
            let key = history.resources.get(id).shown();
            let filters = list
                .filters
                .iter()
                .map(|(name, value)| match value.as_str() {
                    Some(text) => format!("{name}={text}"),
                    None => format!("{name}={}", json::short(value)),
                });
            let filters: Vec<String> = filters.collect();
            Fact::new(
                "not-listed",
                format!("{key} in the list for {}", filters.join(" and ")),
                list.without_it(),
            )
        });
        verdicts.conclude(sites, wrong);
    }

    /// Whether all filters match the last observation of a resource, with no action since.
    fn fits(&self, context: &Context<'_>, id: ResourceId, list: &List<'_>) -> bool {
        let history = &context.history;
        self.filters.iter().all(|(parameter, about)| {
            let mut observations = history.resources.get(id).observations.iter().rev();
            let seen = observations
                .find(|s| s.moment.is_before(&list.first) && s.value(context, &about.at).is_some());
            let Some(observation) = seen else {
                return false;
            };
            let kind = history.resources.get(id).kind;
            let touched = history.writes.iter().any(|write| {
                let is_its_own =
                    write.exchange().is_some() && write.exchange() == observation.exchange;
                let between = write.moment.may_follow(&observation.moment)
                    && !list.first.is_before(&write.moment);
                between && !is_its_own && write.may_touch(id, kind)
            });
            let value = observation.value(context, &about.at);
            let sent = list.filters.get(parameter.as_str());
            !touched
                && value
                    .zip(sent)
                    .is_some_and(|(value, sent)| about.keeps.fits(sent, value))
        })
    }
}

/// Whether the same list showed a resource before.
fn was_listed(context: &Context<'_>, id: ResourceId, list: &List<'_>) -> bool {
    let mut observations = context.history.resources.get(id).observations.iter();
    observations.any(|observation| {
        let by = observation
            .exchange
            .map(|index| context.seen[index].exchange);
        let same = by.is_some_and(|e| {
            e.operation == list.operation.id && e.service == list.operation.service
        });
        matches!(observation.shows, Appearance::Item(_))
            && same
            && observation.moment.is_before(&list.first)
    })
}
