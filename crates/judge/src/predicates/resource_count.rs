//! `resource-count`: a count equals the number of resources created and deleted; `x-counts` says of which type.
//!
//! Judges resources that the scenario created. Counts may lag.

use super::prelude::*;
use conformant_rulebook::annotations::Counts as Counted;

/// This count of a resource agrees with what it counts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResourceCount {
    /// The representations that show it.
    kinds: Vec<String>,
    /// Where.
    at: String,
}

impl Predicate for ResourceCount {
    fn references(&self, references: &mut References) {
        for kind in &self.kinds {
            references.kind("kinds", kind).pointer("at", &self.at);
        }
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        for (id, resource) in history.resources.iter() {
            for observation in resource.seen() {
                let about = context.about(observation.shown_type);
                let counted = about.and_then(|about| about.counts.get(&self.at));
                let is_shown = self.kinds.iter().any(|kind| kind == observation.shown_type);
                if let Some(counted) = counted.filter(|_| is_shown && history.is_exclusive(id)) {
                    self.evaluate_observation((id, resource, observation, counted), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters =
            json!({"kinds": ["chat/channel", "chat/channel-v3"], "at": "/members_count"});
        let channel = |members: u64| {
            json!({
                "sid": sid("CH", "1"), "service_sid": sid("IS", "1"), "members_count": members,
            })
        };
        let empty = Example::for_rule("chat", parameters).answered(
            "create-channel",
            json!({"ServiceSid": sid("IS", "1")}),
            channel(0),
        );
        let joins = |scene: &ExampleBuilder| {
            let sent = in_channel(json!({"Identity": "1"}));
            scene.answered("create-member", sent, member("1", "1"))
        };
        let shown = |scene: &ExampleBuilder, members: u64| {
            let path =
                json!({"ServiceSid": sid("IS", "1"), "Sid": sid("CH", "1"), "Type": "private"});
            scene.answered("update-channel-type-v3", path, channel(members))
        };
        let joined = joins(&empty);
        vec![
            shown(&joined.late(), 1).passes(),
            shown(&joined.late(), 0).fails("/members_count"),
            shown(&joined, 0).not_judged(),
            joined.not_judged(),
            // A count during the creation may include it.
            joins(&shown(&empty, 1)).raced(2).not_judged(),
        ]
    }
}

impl ResourceCount {
    fn evaluate_observation(
        &self,
        (id, resource, observation, counted): (
            ResourceId,
            &Resource<'_>,
            &Observation<'_>,
            &Counted,
        ),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(shown) = observation.representation(context) else {
            return;
        };
        let fresh = verdicts.without_finding(shown, &self.at);
        let Some((got, site)) = fresh.and_then(|(got, site)| Some((got.as_u64()?, site))) else {
            return;
        };
        // What is counted is below the resource itself, or below one that it names.
        let scope = match &counted.within {
            None => Some(id),
            Some(at) => {
                let key = shown.value(at).and_then(Value::as_str);
                let mut resources = history.resources.iter();
                let named = resources.find(|(_, other)| key == Some(other.key.as_str()));
                named.map(|(id, _)| id)
            }
        };
        let Some(scope) = scope.filter(|&scope| history.is_exclusive(scope)) else {
            return;
        };
        let Some(made) = history.creation_of(scope) else {
            return;
        };
        let Some((present, last)) = present(context, scope, counted, (made, observation)) else {
            return;
        };
        let expected = match &counted.above {
            // What was there from the beginning is counted as it was then.
            None => {
                let mut observations = resource.observations.iter();
                let first =
                    observations.find(|s| s.exchange.is_some() && s.exchange == made.exchange());
                let base = first
                    .and_then(|s| s.value(context, &self.at))
                    .and_then(Value::as_u64);
                if observation.exchange == made.exchange() {
                    return;
                }
                base.map(|base| base + present.len() as u64)
            }
            Some(above) => {
                let horizon = shown.value(&above.than).and_then(Value::as_i64);
                let index = |id: &ResourceId| {
                    let mut observations = history.resources.get(*id).observations.iter();
                    observations.find_map(|s| s.value(context, &above.at)?.as_i64())
                };
                let indexes: Option<Vec<i64>> = present.iter().map(index).collect();
                horizon.zip(indexes).map(|(horizon, indexes)| {
                    indexes.into_iter().filter(|&index| index > horizon).count() as u64
                })
            }
        };
        let Some(expected) = expected else { return };
        let is_settled = last.is_none_or(|last| last.is_settled(&observation.moment));
        let is_known = !history.has_unobserved_actions || !moved_by_people(context, &counted.of);
        if got != expected && !(is_settled && is_known) {
            return;
        }
        let fact =
            (got != expected).then(|| Fact::new("count", expected.to_string(), got.to_string()));
        verdicts.conclude(site, fact);
    }
}

/// Whether people create or delete resources of a type, observed or not.
fn moved_by_people(context: &Context<'_>, kind: &str) -> bool {
    [Action::Makes, Action::FindsOrMakes, Action::Ends]
        .into_iter()
        .any(|does| context.rulebook.index.does(does, kind))
}

/// The counted resources at an observation, with the last change of each; `None` if that is uncertain.
fn present(
    context: &Context<'_>,
    scope: ResourceId,
    counted: &Counted,
    (made, observation): (&Write<'_>, &Observation<'_>),
) -> Option<(BTreeSet<ResourceId>, Option<Moment>)> {
    let history = &context.history;
    let mut present = BTreeSet::new();
    let mut last = None;
    let of = history.writes.iter().filter(|write| {
        let counts = write.kind.is_none_or(|kind| kind == counted.of);
        let is_since = !write.moment.is_before(&made.moment);
        counts
            && is_since
            && write.outcome != Outcome::Refused
            && (write.moment.event <= observation.moment.event
                || write.moment.overlaps(&observation.moment))
    });
    for write in of {
        let resource = write.resource.filter(|_| write.outcome == Outcome::Done)?;
        if !observation.moment.is_before(&write.moment)
            && !write.moment.is_before(&observation.moment)
        {
            return None;
        }
        let is_here = history.resources.is_below(resource, scope);
        if is_here && write.does.may_make() {
            // What was found where it was may have been there from the beginning.
            if write.does == Action::FindsOrMakes && !present.contains(&resource) {
                return None;
            }
            present.insert(resource);
            last = Some(write.moment);
        } else if is_here && write.does == Action::Ends {
            present.remove(&resource);
            last = Some(write.moment);
        }
    }
    // Authors may have read what they wrote themselves.
    let own = |id: &ResourceId| {
        let by = history.creation_of(*id).and_then(Write::exchange);
        by.is_some_and(|by| context.seen[by].exchange.sent.contains_key("From"))
    };
    (counted.above.is_none() || !present.iter().any(own)).then_some((present, last))
}
