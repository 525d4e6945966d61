//! `state-transition` with `after`: an action changes the state of a resource, after the consistency window.

use super::prelude::*;
use crate::compare::as_text;
use crate::evidence::{Event, Poll};
use crate::history::Origin;
use crate::history::{Appearance, Observation, Outcome, ResourceId, STEADY, Write};

/// After this was done to a resource, its state is that one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateAfterHook {
    /// The representation that shows it.
    kind: String,
    /// Where.
    at: String,
    /// The hook.
    after: String,
    /// The last observed state of the resource before it.
    from: Value,
    /// The state afterwards.
    is: Value,
    /// Parameters that start a timer, unless the resource was created with the value 0.
    #[serde(default)]
    unless: Vec<String>,
}

impl Predicate for StateAfterHook {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
        references.hook("after", &self.after);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for write in &context.history.writes {
            let Origin::Hook(event) = write.origin else {
                continue;
            };
            let called = match context.evidence.events.get(event) {
                Some(Event::Hook(call)) => call.name == self.after,
                _ => false,
            };
            if let Some(id) = write
                .resource
                .filter(|_| called && write.outcome == Outcome::Done)
            {
                self.evaluate_write((write, id), verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let before = Change::To(self.from.clone());
        vec![Mutation::new(sites.last().clone(), before)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let seen = |scene: &ExampleBuilder, status: &str| {
            let flow = json!({"sid": sid("FW", "1"), "status": status});
            scene.answered("fetch-flow", json!({"Sid": sid("FW", "1")}), flow)
        };
        let parameters = json!({
            "kind": "flow/flow", "at": "/status", "after": "publish_flow", "from": "draft", "is": "published",
        });
        let flow = json!({"flow_sid": sid("FW", "1")});
        let rule = Example::for_rule("flow", parameters);
        let draft = seen(&rule.hook("create_flow", json!({}), flow.clone()), "draft");
        let published = draft.hook("publish_flow", flow.clone(), json!({}));
        let twice = published.hook("publish_flow", flow, json!({}));
        vec![
            seen(&published.late(), "published").passes(),
            seen(&published.late(), "draft").fails("/status"),
            seen(&published, "published").not_judged(),
            seen(&published, "draft").not_judged(),
            seen(&twice.late(), "draft").not_judged(),
            seen(&draft, "draft").not_judged(),
        ]
    }
}

impl StateAfterHook {
    fn evaluate_write(&self, (write, id): (&Write<'_>, ResourceId), verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let resource = history.resources.get(id);
        let made = resource
            .made
            .and_then(|made| history.writes[made].exchange());
        let moves_itself = made.is_some_and(|made| {
            let sent = &context.seen[made].exchange.sent;
            let says = |name: &String| sent.get(name).is_some_and(|said| as_text(said) != "0");
            self.unless.iter().any(says)
        });
        let mut earlier = resource.observations.iter().rev();
        let before = earlier
            .find(|s| s.moment.is_before(&write.moment) && s.value(context, &self.at).is_some());
        let was = before.and_then(|observation| observation.value(context, &self.at));
        // What was done after that observation may have moved it already.
        let may_have_moved = before.is_some_and(|before| {
            let since = write
                .moment
                .span
                .began
                .duration_since(before.moment.span.ended);
            let is_old = since.unsigned_abs() >= STEADY;
            is_old
                || history.writes.iter().any(|other| {
                    let between = before.moment.is_before(&other.moment)
                        && !write.moment.is_before(&other.moment);
                    between && other.origin != write.origin && other.may_touch(id, resource.kind)
                })
        });
        if moves_itself
            || may_have_moved
            || !history.is_exclusive(id)
            || was.is_none_or(|was| !json::equal(was, &self.from))
        {
            return;
        }
        let later = |s: &&Observation<'_>| {
            write.moment.is_before(&s.moment) && !s.is_attempt() && s.shown_type == self.kind
        };
        for observation in resource.observations.iter().filter(later) {
            let touched = history.writes.iter().any(|other| {
                let between = !other.moment.is_before(&write.moment)
                    && !observation.moment.is_before(&other.moment);
                between && other.origin != write.origin && other.may_touch(id, resource.kind)
            });
            if touched || matches!(observation.shows, Appearance::NotFound) {
                break;
            }
            let Some(shown) = observation.representation(context) else {
                continue;
            };
            let site = shown.site(&self.at);
            let Some(got) = shown
                .value(&self.at)
                .filter(|_| !verdicts.has_finding_at(&site))
            else {
                continue;
            };
            let follows = json::equal(got, &self.is);
            let would_be_reported = follows && observation.poll == Poll::Last;
            if !would_be_reported && !write.moment.is_settled(&observation.moment) {
                continue;
            }
            let fact = (!follows).then(|| {
                Fact::new(
                    "state",
                    format!("{} after {}", json::short(&self.is), self.after),
                    json::short(got),
                )
            });
            verdicts.conclude(site, fact);
        }
    }
}
