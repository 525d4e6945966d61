//! `consistent-reads`: two reads without a write in between agree, in every representation. Lists may lag. Fields that
//! never change are judged by `immutable`.

use super::prelude::*;

/// Two observations of a resource of this type agree, as long as no action in between may change it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsistentReads {
    /// The representation that shows it.
    of: String,
}

impl Predicate for ConsistentReads {
    fn references(&self, references: &mut References) {
        references.kind("of", &self.of);
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        let reads = model
            .operations()
            .filter(|o| matches!(o.does, Action::Shows | Action::Lists));
        let mut kinds: Vec<String> = reads.filter_map(|o| o.resource.clone()).collect();
        let of = |kind: &String| model.kinds.get(kind)?.annotations.identity.as_ref();
        kinds.retain(|kind| of(kind).is_some_and(|identity| !identity.shared));
        Some(kinds)
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let about = context.about(&self.of);
        let of = about.and_then(Annotations::of).unwrap_or(&self.of);
        let resources = history.resources.of_kind(of);
        for (id, resource) in resources.filter(|(id, _)| history.is_exclusive(*id)) {
            let shown = resource.seen().filter(|s| s.shows != Appearance::NotFound);
            let shown: Vec<&Observation<'_>> = shown.collect();
            for pair in shown.windows(2) {
                if pair[1].shown_type == self.of {
                    evaluate_pair(id, (pair[0], pair[1]), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = json!({"Sid": sid("IS", "1")});
        let made = Example::for_rule("chat", json!({"of": "chat/service"}))
            .shown("create-service", service("1", "a"));
        let changes = json!({"Sid": sid("IS", "1"), "FriendlyName": "b"});
        let changed = made.answered("update-service", changes, service("1", "b"));
        let fetched = |scene: &ExampleBuilder, name: &str| {
            scene.answered("fetch-service", at.clone(), service("1", name))
        };
        let listed = page("services", json!([service("1", "a")]));
        vec![
            fetched(&made, "a").passes(),
            fetched(&made, "b").fails("/friendly_name"),
            fetched(&changed, "a").fails("/friendly_name"),
            changed.shown("read-services", listed).not_judged(),
            changed.not_judged(),
        ]
    }
}

fn evaluate_pair(
    id: ResourceId,
    (before, later): (&Observation<'_>, &Observation<'_>),
    verdicts: &mut Verdicts<'_>,
) {
    let context = verdicts.context;
    let history = &context.history;
    let kind = history.resources.get(id).kind;
    let touches = |write: &&Write<'_>| write.may_touch(id, kind);
    // What answered with the first observation lies before it.
    let mut between = history.writes_between(id, (&before.moment, &later.moment));
    let touched = between.any(|write| write.moment.event != before.moment.event);
    if touched || !before.moment.is_before(&later.moment) {
        return;
    }
    let Some(shown) = later.representation(context) else {
        return;
    };
    let about = context.about(later.shown_type);
    let for_good =
        |at: &str| about.is_some_and(|about| about.immutable.iter().any(|i| json::within(i, at)));
    let mut compared = history.compared(context, id, before, later);
    compared.retain(|c| {
        let applies = before.shown_type == later.shown_type || !is_address(&c.pointer);
        applies && !for_good(&c.pointer) && !verdicts.has_finding_in(shown, &c.pointer)
    });
    let is_item = |s: &&Observation<'_>| matches!(s.shows, Appearance::Item(_));
    let mut items = [before, later].into_iter().filter(is_item);
    let lags = |item: &Observation<'_>| {
        let mut writes = history.writes.iter().filter(touches);
        writes.any(|write| !write.moment.is_settled(&item.moment))
    };
    if compared.iter().any(|c| c.is_changed()) && items.any(lags) {
        return;
    }
    let fact =
        |_: &str, was: &str, is: &str| Fact::new("differs", format!("{was}, as shown before"), is);
    if !verdicts.conclude_changes(shown, &compared, None, fact) {
        verdicts.record_vacuous(Vacuity::Alone);
    }
}
