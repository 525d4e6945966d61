//! `resource-count`: a count equals the number of resources created and deleted; `x-counts` says of which type.
//!
//! Judges resources that the scenario created. Counts may lag.

use super::prelude::*;
use crate::history::{Outcome, Sight, Thing, ThingId, When, Write};
use conformant_rulebook::Does;
use conformant_rulebook::annotations::Counts as Counted;
use std::collections::BTreeSet;

/// This count of a resource agrees with what it counts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceCount {
    /// The representations that show it.
    kinds: Kinds,
    /// Where.
    at: String,
}

impl Predicate for ResourceCount {
    fn subject(&self) -> Subject {
        self.kinds.subject()
    }

    fn applies_to(&self) -> AppliesTo {
        self.kinds.applies_to()
    }

    fn references(&self, references: &mut References) {
        for kind in self.kinds.iter() {
            references.kind("kinds", kind).pointer("at", &self.at);
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let history = &case.history;
        for (id, thing) in history.things.iter() {
            for sight in thing.sights.iter().filter(|sight| !sight.is_attempt()) {
                let about = case.rulebook.kinds.get(sight.face).map(|kind| &kind.about);
                let counted = about.and_then(|about| about.counts.get(&self.at));
                let is_shown = self.kinds.contain(sight.face);
                if let Some(counted) = counted.filter(|_| is_shown && history.is_own(id)) {
                    self.judge_sight(case, rule, (id, thing, sight, counted), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sid = |kind: &str, digit: &str| format!("{kind}{}", digit.repeat(32));
        let channel = |members: u64| {
            json!({
                "sid": sid("CH", "1"), "account_sid": "AC1", "service_sid": sid("IS", "1"),
                "friendly_name": null, "unique_name": null, "attributes": "{}", "type": "public",
                "date_created": "", "date_updated": "", "created_by": "system", "members_count": members,
                "messages_count": 0, "url": "", "links": {}, "messaging_service_sid": null,
            })
        };
        let member = |digit: &str| {
            json!({
                "sid": sid("MB", digit), "account_sid": "AC1", "channel_sid": sid("CH", "1"),
                "service_sid": sid("IS", "1"), "identity": digit, "role_sid": "RL1",
                "last_consumed_message_index": null, "last_consumption_timestamp": null,
                "date_created": "", "date_updated": "", "attributes": "{}", "url": "",
            })
        };
        let parameters =
            json!({"kinds": ["chat/channel", "chat/channel-v3"], "at": "/members_count"});
        let path =
            json!({"ServiceSid": sid("IS", "1"), "ChannelSid": sid("CH", "1"), "Identity": "1"});
        let made = Example::of("chat", parameters)
            .answered(
                "create-channel",
                json!({"ServiceSid": sid("IS", "1")}),
                channel(0),
            )
            .answered("create-member", path, member("1"));
        let late =
            |scene: Scene| (0..11).fold(scene, |scene, _| scene.refused("create-role", json!({})));
        let shown = |scene: Scene, members: u64| {
            let path =
                json!({"ServiceSid": sid("IS", "1"), "Sid": sid("CH", "1"), "Type": "private"});
            scene.answered("update-channel-type-v3", path, channel(members))
        };
        vec![
            shown(late(made.clone()), 1).passes(),
            shown(late(made.clone()), 0).fails("/members_count"),
            shown(made.clone(), 0).not_judged(),
            made.not_judged(),
        ]
    }
}

impl ResourceCount {
    fn judge_sight(
        &self,
        case: &Case<'_>,
        rule: &Rule,
        (id, thing, sight, counted): (ThingId, &Thing<'_>, &Sight<'_>, &Counted),
        verdicts: &mut Verdicts<'_>,
    ) {
        let history = &case.history;
        let Some(shown) = sight.representation(case) else {
            return;
        };
        let site = shown.site(&self.at);
        let got = shown.value(&self.at).and_then(Value::as_u64);
        let Some(got) = got.filter(|_| !verdicts.accuses(&site)) else {
            return;
        };
        // What is counted is below the resource itself, or below one that it names.
        let scope = match &counted.within {
            None => Some(id),
            Some(at) => {
                let key = shown.value(at).and_then(Value::as_str);
                let mut things = history.things.iter();
                let named = things.find(|(_, other)| key == Some(other.key.as_str()));
                named.map(|(id, _)| id)
            }
        };
        let Some(scope) = scope.filter(|&scope| history.is_own(scope)) else {
            return;
        };
        let Some(made) = history
            .things
            .get(scope)
            .made
            .map(|write| &history.writes[write])
        else {
            return;
        };
        let Some((present, last)) = present(case, scope, counted, (made, sight)) else {
            return;
        };
        let expected = match &counted.above {
            // What was there from the beginning is counted as it was then.
            None => {
                let mut sights = thing.sights.iter();
                let first = sights.find(|s| s.exchange.is_some() && s.exchange == made.exchange());
                let base = first
                    .and_then(|s| s.value(case, &self.at))
                    .and_then(Value::as_u64);
                if sight.exchange == made.exchange() {
                    return;
                }
                base.map(|base| base + present.len() as u64)
            }
            Some(above) => {
                let horizon = shown.value(&above.than).and_then(Value::as_i64);
                let index = |id: &ThingId| {
                    let mut sights = history.things.get(*id).sights.iter();
                    sights.find_map(|s| s.value(case, &above.at)?.as_i64())
                };
                let indexes: Option<Vec<i64>> = present.iter().map(index).collect();
                horizon.zip(indexes).map(|(horizon, indexes)| {
                    indexes.into_iter().filter(|&index| index > horizon).count() as u64
                })
            }
        };
        let Some(expected) = expected else { return };
        let is_settled = last.is_none_or(|last| last.is_settled(&sight.when));
        let is_known = !history.deeds_unseen || !moved_by_people(case, &counted.of);
        if got != expected && !(is_settled && is_known) {
            return;
        }
        let fact = (got != expected).then(|| Fact {
            kind: "count",
            expected: expected.to_string(),
            actual: got.to_string(),
            ..Fact::default()
        });
        verdicts.instance(rule, site).conclude(fact);
    }
}

/// Whether people create or delete resources of a type, observed or not.
fn moved_by_people(case: &Case<'_>, kind: &str) -> bool {
    [Does::Makes, Does::FindsOrMakes, Does::Ends]
        .into_iter()
        .any(|does| case.rulebook.index.does(does, kind))
}

/// What is counted and was there when a resource was seen, with what changed it last; nothing where that is not
/// known for certain.
fn present(
    case: &Case<'_>,
    scope: ThingId,
    counted: &Counted,
    (made, sight): (&Write<'_>, &Sight<'_>),
) -> Option<(BTreeSet<ThingId>, Option<When>)> {
    let history = &case.history;
    let mut present = BTreeSet::new();
    let mut last = None;
    let of = history.writes.iter().filter(|write| {
        let counts = write.kind == counted.of || write.kind.is_empty();
        let is_since = !write.when.is_before(&made.when);
        counts
            && is_since
            && write.outcome != Outcome::Refused
            && write.when.event <= sight.when.event
    });
    for write in of {
        let thing = write.thing.filter(|_| write.outcome == Outcome::Done)?;
        if !sight.when.is_before(&write.when) && !write.when.is_before(&sight.when) {
            return None;
        }
        let is_here = history.things.is_below(thing, scope);
        match write.does {
            Does::Makes | Does::FindsOrMakes if is_here => {
                // What was found where it was may have been there from the beginning.
                if write.does == Does::FindsOrMakes && !present.contains(&thing) {
                    return None;
                }
                present.insert(thing);
                last = Some(write.when);
            }
            Does::Ends if is_here => {
                present.remove(&thing);
                last = Some(write.when);
            }
            Does::Makes
            | Does::FindsOrMakes
            | Does::Changes
            | Does::Ends
            | Does::Shows
            | Does::Lists => {}
        }
    }
    // Authors may have read what they wrote themselves.
    let own = |id: &ThingId| {
        let by = history
            .things
            .get(*id)
            .made
            .and_then(|write| history.writes[write].exchange());
        by.is_some_and(|by| case.seen[by].exchange.sent.contains_key("From"))
    };
    (counted.above.is_none() || !present.iter().any(own)).then_some((present, last))
}
