//! `list-complete`: a list contains each existing resource once, after the consistency window.

use super::prelude::*;
use crate::evidence::WalkEnd;

/// This list holds what exists in its scope, each resource once.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListComplete {
    /// The list operation with its service.
    of: OperationName,
}

impl Predicate for ListComplete {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| o.does == Action::Lists))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let of = self.of.id();
        // Half a list does not show what it lacks.
        for walk in &context.evidence.walks {
            let is_ours = walk.service == verdicts.rule.service && walk.operation == of;
            if is_ours && let WalkEnd::Cut(why) = &walk.end {
                verdicts.inconclusive(why);
            }
        }
        for list in &context.history.lists {
            let is_ours =
                list.operation.service == verdicts.rule.service && list.operation.id == of;
            if is_ours && list.filters.is_empty() && list.is_complete && !list.is_attempt {
                evaluate_list(list, verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let listed = |scene: &ExampleBuilder, members: Value| {
            let sent = in_channel(json!({}));
            scene.answered("read-members", sent, page("members", members))
        };
        let rule = Example::for_rule("chat", json!({"of": "chat/read-members"}));
        let one = member("1", "ann");
        let made = rule.answered("create-member", in_channel(json!({})), one.clone());
        let first = json!({"members": [], "meta": {"next_page_url": "/next", "key": "members"}});
        let begun = made
            .late()
            .answered("read-members", in_channel(json!({})), first);
        let person = json!({"service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"), "identity": "ann"});
        let left = begun.hook("leave_channel", person, json!({}));
        vec![
            listed(&made, json!([one])).passes(),
            listed(&made.late(), json!([])).fails("/members"),
            listed(&made, json!([one, one])).fails("/members/1"),
            listed(&made, json!([])).not_judged(),
            listed(&begun, json!([])).walked(2).fails("/members"),
            // The member leaves between the two pages.
            listed(&left, json!([])).walked(2).not_judged(),
            listed(&rule, json!([one])).not_judged(),
        ]
    }
}

fn evaluate_list(list: &List<'_>, verdicts: &mut Verdicts<'_>) {
    let context = verdicts.context;
    let history = &context.history;
    let Some(wanted) = history.due_in(context, list, |id| list.holds(id)) else {
        return;
    };
    let Some(sites) = verdicts.sites_of(list, &wanted) else {
        return;
    };
    let last = sites.last().clone();
    let wrong = wanted.into_iter().find_map(|id| {
        let items: Vec<_> = list
            .items
            .iter()
            .filter(|item| item.resource == Some(id))
            .collect();
        let key = history.resources.get(id).shown();
        match items.as_slice() {
            [] => Some((
                last.clone(),
                Fact::new(
                    "not-listed",
                    format!("{key} in the list"),
                    list.without_it(),
                ),
            )),
            [.., again] if items.len() > 1 && list.pages.len() == 1 => {
                let site = context.representations[again.representation].site("");
                let times = items.len();
                Some((
                    site,
                    Fact::new(
                        "listed-twice",
                        format!("{key} once"),
                        format!("{times} times"),
                    ),
                ))
            }
            _ => None,
        }
    });
    verdicts.conclude_at(sites, wrong);
}
