//! `list-filter` with `parameter`: each item of a filtered list matches the filter.
//!
//! `list-filter` with `filters`: a filtered list contains each resource of its scope that matches the filter.
//!
//! Does not judge resources that were not observed before, nor changes within the consistency window.

use super::prelude::*;

/// When the query parameter is sent, each listed item fits it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFilter {
    /// Operation id of the list.
    operation: String,
    /// Query parameter as the document spells it.
    parameter: String,
    /// The items' values: `/executions/*/date_created`.
    at: String,
    /// How they must relate to what was sent.
    keeps: Keeps,
}

/// How listed values relate to a filter.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Keeps {
    /// On or after the instant sent, at whole seconds.
    AtOrAfter,
    /// Before the instant sent, at whole seconds.
    Before,
    /// One of the values sent.
    OneOf,
}

impl Predicate for ListFilter {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .parameter("parameter", &self.parameter)
            .answers("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(&self.operation) {
            let Some(sent) = seen.exchange.sent.get(&self.parameter) else {
                continue;
            };
            verdicts.conclude_each(index, &self.at, |value| {
                (!self.keeps.fits(sent, value)).then(|| {
                    let (how, what) = (self.keeps.words(), json::short(sent));
                    let expected = format!("{how} {what}, as {} asks", self.parameter);
                    Fact::new("filter", expected, json::short(value))
                })
            });
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const LIST: &str = "read-executions";
        let of = |parameter: &str, at: &str, keeps: &str| {
            let at = format!("/executions/*/{at}");
            let parameters =
                json!({"operation": LIST, "parameter": parameter, "at": at, "keeps": keeps});
            Example::for_rule("flow", parameters)
        };
        let bound = "2026-01-01T00:00:00-00:00";
        let listed = |name: &str, value: &str| page("executions", json!([{name: value}]));
        let from = |created: &str| {
            let rule = of("DateCreatedFrom", "date_created", "at-or-after");
            let sent = json!({"DateCreatedFrom": bound});
            rule.answered(LIST, sent, listed("date_created", created))
        };
        let to = |created: &str| {
            let rule = of("DateCreatedTo", "date_created", "before");
            let sent = json!({"DateCreatedTo": bound});
            rule.answered(LIST, sent, listed("date_created", created))
        };
        let of_status = of("Status", "status", "one-of");
        let status = |status: &str| {
            let sent = json!({"Status": ["active", "waiting"]});
            of_status.answered(LIST, sent, listed("status", status))
        };
        vec![
            from("2026-01-01T00:00:00Z").passes(),
            from("2025-12-31T23:59:59Z").fails("/executions/0/date_created"),
            to("2025-12-31T23:59:59Z").passes(),
            to("2026-01-01T00:00:00Z").fails("/executions/0/date_created"),
            status("active").passes(),
            status("ended").fails("/executions/0/status"),
            of_status
                .shown(LIST, listed("status", "ended"))
                .not_judged(),
        ]
    }
}

impl Keeps {
    const fn words(self) -> &'static str {
        match self {
            Self::AtOrAfter => "on or after",
            Self::Before => "before",
            Self::OneOf => "one of",
        }
    }

    fn fits(self, sent: &Value, value: &Value) -> bool {
        let seconds = |v: &Value| instant(v).map(conformant_base::clock::Timestamp::as_second);
        let instants = seconds(sent).zip(seconds(value));
        match self {
            Self::AtOrAfter => instants.is_none_or(|(sent, value)| value >= sent),
            Self::Before => instants.is_none_or(|(sent, value)| value < sent),
            Self::OneOf => match sent.as_array() {
                Some(words) => words.iter().any(|word| as_text(word) == as_text(value)),
                None => as_text(sent) == as_text(value),
            },
        }
    }
}

/// A list that was asked for with these filters, and with no others, holds what fits them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFilterComplete {
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
        let was_shown = |id| list.holds(id) || was_listed(context, id, list);
        let Some(mut wanted) = history.due_in(context, list, was_shown) else {
            return;
        };
        wanted.retain(|id| self.fits(context, *id, list));
        let Some(sites) = verdicts.sites_of(list, &wanted) else {
            return;
        };
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
            let expected = format!("{key} in the list for {}", filters.join(" and "));
            Fact::new("not-listed", expected, list.without_it())
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
            let mut between = history.writes_between(id, (&observation.moment, &list.first));
            let touched = between.any(|write| {
                write.moment.event != observation.moment.event && !write.is_by(observation.exchange)
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
