//! `deleted-is-absent`: a deleted resource is absent from every endpoint and list. Lists may lag.

use super::prelude::*;

/// The resource that this operation deleted is absent from every endpoint and list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeletedIsAbsent {
    /// The operation with its service.
    of: OperationName,
}

impl Predicate for DeletedIsAbsent {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| o.does == Action::Ends))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        for (index, _) in verdicts.exchanges_of(self.of.id()) {
            let mut writes = history.writes.iter();
            let write = writes.find(|write| write.exchange() == Some(index));
            let Some(write) = write.filter(|write| write.outcome == Outcome::Done) else {
                continue;
            };
            // Nothing is deleted under another or an unknown parent. The identity of the caller does not matter: no caller
            // restores the resource.
            let elsewhere = |id: &ResourceId| {
                history.is_under(*id, &write.parents) == Some(false)
                    || write.parents.contains(&None)
            };
            if let Some(id) = write.resource.filter(|id| !elsewhere(id)) {
                evaluate_deletion((write, index, id), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let flow = json!({"sid": sid("FW", "1"), "friendly_name": ""});
        let at = json!({"Sid": sid("FW", "1")});
        let first = Example::for_rule("flow", json!({"of": "flow/delete-flow"})).answered(
            "fetch-flow",
            at.clone(),
            flow.clone(),
        );
        let deleted = first.deleted("delete-flow", at.clone());
        let listed =
            |scene: &ExampleBuilder| scene.shown("read-flows", page("flows", json!([flow])));
        vec![
            deleted.refused("fetch-flow", at.clone()).passes(),
            deleted
                .answered("fetch-flow", at.clone(), flow.clone())
                .fails(""),
            listed(&deleted).not_judged(),
            listed(&deleted.late()).fails("/flows/0"),
            first.refused("fetch-flow", at).not_judged(),
        ]
    }
}

fn evaluate_deletion(
    (write, index, id): (&Write<'_>, usize, ResourceId),
    verdicts: &mut Verdicts<'_>,
) {
    let context = verdicts.context;
    let history = &context.history;
    let resource = history.resources.get(id);
    // A hook whose result names what it created brings back nothing else.
    let names_another = |other: &Write<'_>| {
        let mut writes = history.writes.iter();
        other.resource.is_none()
            && writes.any(|write| {
                let is_same = write.moment.event == other.moment.event && write.kind == other.kind;
                is_same && write.resource.is_some_and(|named| named != id)
            })
    };
    let back = |until: &Moment| {
        let mut writes = history.writes.iter();
        writes.any(|other| {
            let between = other.moment.may_follow(&write.moment) && !until.is_before(&other.moment);
            let brings = !matches!(other.does, Action::Ends) && other.outcome != Outcome::Refused;
            between && brings && other.may_touch(id, resource.kind) && !names_another(other)
        })
    };
    let fact = |actual: &str| {
        Fact::new(
            "not-gone",
            format!(
                "no {} after {}",
                resource.shown(),
                context.seen[index].exchange.operation
            ),
            actual.to_owned(),
        )
    };
    let observations = resource.observations.iter();
    let is_after = |s: &&Observation<'_>| write.moment.is_before(&s.moment) && !back(&s.moment);
    for observation in observations.filter(is_after) {
        let (Some(at), false) = (
            observation.exchange,
            matches!(observation.shows, Appearance::Item(_)),
        ) else {
            continue;
        };
        let wrong = (observation.shows != Appearance::NotFound).then(|| fact("found"));
        let sites = [index, at].map(Site::Exchange);
        verdicts.conclude(sites, wrong);
    }
    let lists = history.lists.iter();
    for list in lists.filter(|list| write.moment.is_before(&list.first)) {
        let is_known =
            list.holds(id) || (list.is_complete && history.belongs(id, list) == Some(true));
        if !is_known || list.is_attempt || back(&list.last) {
            continue;
        }
        let held = list.items.iter().find(|item| item.resource == Some(id));
        if held.is_some() && !write.moment.is_settled(&list.first) {
            continue;
        }
        let site = match held {
            Some(item) => context.representations[item.representation].site(""),
            None => Site::answer(list.pages[0], list.place()),
        };
        let sites = [Site::Exchange(index), site];
        verdicts.conclude(sites, held.map(|_| fact("listed")));
    }
}
