//! `follows`: what was done to a thing shows in its state from then on. A sight counts once the thing has had
//! time to follow, or where it would have been looked at again.

use super::prelude::*;
use crate::compare::as_text;
use crate::evidence::{Event, Poll};
use crate::history::Origin;
use crate::history::{Outcome, STEADY, Shows, Sight, ThingId, Write};

/// After this was done to a thing, its state is that one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Follows {
    /// The representation that shows it.
    kind: String,
    /// Where.
    at: String,
    /// The hook that does it.
    after: String,
    /// The state that the thing was last seen in before it.
    from: Value,
    /// The state that it is in afterwards.
    is: Value,
    /// Parameters that let it move by itself, where the thing was made with another value of them than 0.
    #[serde(default)]
    unless: Vec<String>,
}

impl Check for Follows {
    fn predicate(&self) -> &'static str {
        Self::NAME
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Kind(&self.kind)
    }

    fn names(&self, names: &mut Names<'_>) {
        names.kind("kind", &self.kind).pointer("at", &self.at);
        if !names.has_hook(&self.after) {
            names.problem("after", "there is no such hook");
        }
    }
}

impl Predicate for Follows {
    const NAME: &'static str = "follows";

    fn needs() -> &'static [Need] {
        &[Need::History]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for write in &case.history.writes {
            let Origin::Hook(event) = write.origin else {
                continue;
            };
            let called = match case.evidence.events.get(event) {
                Some(Event::Hook(call)) => call.name == self.after,
                _ => false,
            };
            if let Some(id) = write
                .thing
                .filter(|_| called && write.outcome == Outcome::Done)
            {
                self.judge_write(case, rule, (write, id), verdicts);
            }
        }
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        let before = Change::To(self.from.clone());
        vec![Mutation::new(sites.last().clone(), before)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sid = format!("FW{}", "1".repeat(32));
        let flow = |status: &str| {
            json!({
                "sid": sid, "account_sid": "AC1", "friendly_name": "a", "status": status, "version": 0,
                "date_created": "", "date_updated": null, "url": "", "links": {},
            })
        };
        let parameters = json!({
            "kind": "flow/flow", "at": "/status", "after": "publish_flow", "from": "draft", "is": "published",
        });
        let draft = Example::of("flow", parameters)
            .hook("create_flow", json!({}), json!({"flow_sid": sid}))
            .answered("fetch-flow", json!({"Sid": sid}), flow("draft"));
        let published = draft
            .clone()
            .hook("publish_flow", json!({"flow_sid": sid}), json!({}));
        let twice = published
            .clone()
            .hook("publish_flow", json!({"flow_sid": sid}), json!({}));
        let seen = |scene: Scene, status: &str| {
            scene.answered("fetch-flow", json!({"Sid": sid}), flow(status))
        };
        let late =
            |scene: Scene| (0..11).fold(scene, |scene, _| scene.refused("fetch-step", json!({})));
        vec![
            seen(late(published.clone()), "published").passes(),
            seen(late(published.clone()), "draft").fails("/status"),
            seen(published.clone(), "published").not_judged(),
            seen(published, "draft").not_judged(),
            seen(late(twice), "draft").not_judged(),
            seen(draft, "draft").not_judged(),
        ]
    }
}

impl Follows {
    fn judge_write(
        &self,
        case: &Case<'_>,
        rule: &Rule,
        (write, id): (&Write<'_>, ThingId),
        verdicts: &mut Verdicts<'_>,
    ) {
        let history = &case.history;
        let thing = history.things.get(id);
        let made = thing.made.and_then(|made| history.writes[made].exchange());
        let moves_itself = made.is_some_and(|made| {
            let sent = &case.seen[made].exchange.sent;
            let says = |name: &String| sent.get(name).is_some_and(|said| as_text(said) != "0");
            self.unless.iter().any(says)
        });
        let mut earlier = thing.sights.iter().rev();
        let before =
            earlier.find(|s| s.when.is_before(&write.when) && s.value(case, &self.at).is_some());
        let was = before.and_then(|sight| sight.value(case, &self.at));
        // What was done after that sight may have moved it already.
        let may_have_moved = before.is_some_and(|before| {
            let since = write.when.span.began.duration_since(before.when.span.ended);
            let is_old = since.unsigned_abs() >= STEADY;
            is_old
                || history.writes.iter().any(|other| {
                    let between =
                        before.when.is_before(&other.when) && !write.when.is_before(&other.when);
                    between && other.origin != write.origin && other.may_touch(id, thing.kind)
                })
        });
        if moves_itself
            || may_have_moved
            || !history.is_own(id)
            || was.is_none_or(|was| !json::equal(was, &self.from))
        {
            return;
        }
        let later = |s: &&Sight<'_>| {
            write.when.is_before(&s.when) && !s.is_attempt() && s.face == self.kind
        };
        for sight in thing.sights.iter().filter(later) {
            let touched = history.writes.iter().any(|other| {
                let between =
                    !other.when.is_before(&write.when) && !sight.when.is_before(&other.when);
                between && other.origin != write.origin && other.may_touch(id, thing.kind)
            });
            if touched || matches!(sight.shows, Shows::NotFound) {
                break;
            }
            let Some(shown) = sight.representation(case) else {
                continue;
            };
            let site = shown.site(&self.at);
            let Some(got) = shown.value(&self.at).filter(|_| !verdicts.accuses(&site)) else {
                continue;
            };
            let follows = json::equal(got, &self.is);
            let would_be_told = follows && sight.poll == Poll::Last;
            if !would_be_told && !write.when.is_settled(&sight.when) {
                continue;
            }
            let fact = (!follows).then(|| Fact {
                kind: "state",
                expected: format!("{} after {}", json::short(&self.is), self.after),
                actual: json::short(got),
                ..Fact::default()
            });
            verdicts.instance(rule, site).conclude(fact);
        }
    }
}
