//! `deleted-is-absent`: a deleted resource is absent from every endpoint and list. Lists may lag.

use super::prelude::*;
use crate::history::{Outcome, Shows, ThingId, When, Write};
use conformant_rulebook::Does;

/// What this operation ended is found nowhere any more.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeletedIsAbsent {
    /// The operation with its service.
    of: OperationName,
}

impl Predicate for DeletedIsAbsent {
    fn subject(&self) -> Subject {
        self.of.subject()
    }

    fn references(&self, references: &mut References) {
        references.operation("of", self.of.id());
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| o.does == Does::Ends))
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let history = &case.history;
        for (index, _) in case.of_operation(&rule.service, self.of.id()) {
            let mut writes = history.writes.iter();
            let write = writes.find(|write| write.exchange() == Some(index));
            let Some(write) = write.filter(|write| write.outcome == Outcome::Done) else {
                continue;
            };
            // Under another's parent, or one that nobody knows, nothing is deleted. Whose it was does not matter: nobody
            // brings it back.
            let elsewhere = |id: &ThingId| {
                history.is_under(*id, &write.parents) == Some(false)
                    || write.parents.contains(&None)
            };
            if let Some(id) = write.thing.filter(|id| !elsewhere(id)) {
                judge_end(case, rule, (write, index, id), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sid = format!("FW{}", "1".repeat(32));
        let flow = json!({
            "sid": sid, "account_sid": "AC1", "friendly_name": "", "status": "draft", "version": 1,
            "date_created": "", "date_updated": null, "url": "", "links": {},
        });
        let named = json!({"Sid": sid});
        let first = Example::of("flow", json!({"of": "flow/delete-flow"})).answered(
            "fetch-flow",
            named.clone(),
            flow.clone(),
        );
        let deleted = first.clone().deleted("delete-flow", named.clone());
        let page =
            json!({"flows": [flow.clone()], "meta": {"next_page_url": null, "key": "flows"}});
        let later = (0..11).fold(deleted.clone(), |scene, _| {
            scene.refused("fetch-step", json!({}))
        });
        vec![
            deleted
                .clone()
                .refused("fetch-flow", named.clone())
                .passes(),
            deleted
                .clone()
                .answered("fetch-flow", named.clone(), flow.clone())
                .fails(""),
            deleted
                .clone()
                .shown("read-flows", page.clone())
                .not_judged(),
            later.shown("read-flows", page).fails("/flows/0"),
            first.refused("fetch-flow", named).not_judged(),
        ]
    }
}

fn judge_end(
    case: &Case<'_>,
    rule: &Rule,
    (write, index, id): (&Write<'_>, usize, ThingId),
    verdicts: &mut Verdicts<'_>,
) {
    let history = &case.history;
    let thing = history.things.get(id);
    let back = |until: &When| {
        let mut writes = history.writes.iter();
        writes.any(|other| {
            let between = other.when.may_follow(&write.when) && !until.is_before(&other.when);
            let brings = !matches!(other.does, Does::Ends) && other.outcome != Outcome::Refused;
            between && brings && other.may_touch(id, thing.kind)
        })
    };
    let fact = |actual: &str| Fact {
        kind: "not-gone",
        expected: format!(
            "no {} after {}",
            thing.key, case.seen[index].exchange.operation
        ),
        actual: actual.to_owned(),
        ..Fact::default()
    };
    let sights = thing
        .sights
        .iter()
        .filter(|s| write.when.is_before(&s.when) && !back(&s.when));
    for sight in sights {
        let (Some(at), false) = (sight.exchange, matches!(sight.shows, Shows::Item(_))) else {
            continue;
        };
        let wrong = (sight.shows != Shows::NotFound).then(|| fact("found"));
        let sites = [index, at].map(Site::Exchange);
        verdicts.instance(rule, sites).conclude(wrong);
    }
    for list in history
        .lists
        .iter()
        .filter(|list| write.when.is_before(&list.first))
    {
        let is_known =
            list.holds(id) || (list.is_complete && history.belongs(id, list) == Some(true));
        if !is_known || list.is_attempt || back(&list.last) {
            continue;
        }
        let held = list.items.iter().find(|item| item.thing == Some(id));
        if held.is_some() && !write.when.is_settled(&list.first) {
            continue;
        }
        let site = match held {
            Some(item) => case.representations[item.representation].site(""),
            None => Site::answer(list.pages[0], list.place()),
        };
        let sites = [Site::Exchange(index), site];
        verdicts
            .instance(rule, sites)
            .conclude(held.map(|_| fact("listed")));
    }
}
