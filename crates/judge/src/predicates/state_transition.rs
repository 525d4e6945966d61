//! `state-transition` with `steps`: the observed states of a resource follow the stated transitions.
//!
//! `state-transition` with `aspect`: a state that changes after a number of seconds does so neither early nor never.
//!
//! Does not judge states that something else changes.
//!
//! `state-transition` with `after`: an action changes the state of a resource, after the consistency window.

use super::prelude::*;
use crate::evidence::Poll;
use crate::history::{SETTLE, STEADY, can_reach};
use conformant_base::clock::Timestamp;
use conformant_rulebook::annotations::Transition;
use jiff::SignedDuration;

/// The observed states of one resource move only along these steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StateTransition {
    /// The representation.
    kind: String,
    /// What identifies the resource: `/sid`.
    key: String,
    /// The state: `/status`.
    at: String,
    /// Allowed steps as `[from, to]`; staying is always allowed.
    steps: Vec<(String, String)>,
}

impl Predicate for StateTransition {
    fn references(&self, references: &mut References) {
        references
            .kind("kind", &self.kind)
            .pointer("key", &self.key)
            .pointer("at", &self.at);
    }

    /// Judges each resource that was observed at least twice. Between two observations several steps may have
    /// been taken, so any state that can be reached will do.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let steps = || self.steps.iter().map(|(from, to)| (&**from, &**to));
        // The newest observations of each resource: several if they overlap.
        let mut last: BTreeMap<String, Vec<(&Representation<'_>, &str)>> = BTreeMap::new();
        for resource in context.of_kind(&self.kind) {
            let (Some(identity), Some(state)) = (
                resource.value(&self.key).map(Value::to_string),
                resource.value(&self.at).and_then(Value::as_str),
            ) else {
                continue;
            };
            let newest = last.entry(identity).or_default();
            if newest
                .iter()
                .any(|(other, _)| overlap(context, other, resource))
            {
                newest.push((resource, state));
                continue;
            }
            let earlier = std::mem::replace(newest, vec![(resource, state)]);
            let unreachable =
                |(_, before): &&(&Representation<'_>, &str)| !can_reach(before, state, steps);
            let broken = earlier.iter().find(unreachable);
            let Some((compared, before)) = broken.or(earlier.first()) else {
                verdicts.record_vacuous(Vacuity::Alone);
                continue;
            };
            let sites = [compared.site(&self.at), resource.site(&self.at)];
            let fact = broken.is_some().then(|| Fact {
                kind: "transition",
                expected: format!("{before} or what follows it"),
                actual: state.to_owned(),
                message: format!("moved from {before} to {state}"),
            });
            verdicts.conclude(sites, fact);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "flow/execution";
        let rule = Example::for_rule(
            "flow",
            json!({
                "kind": kind, "key": "/sid", "at": "/status",
                "steps": [["waiting", "active"], ["active", "ended"]],
            }),
        );
        let execution = |status: &str| json!({"sid": "FN1", "status": status});
        let from = |from: &str, to: &str| {
            let first = rule.payload(kind, execution(from));
            first.payload(kind, execution(to))
        };
        let read = |scene: &ExampleBuilder, status: &str| {
            scene.shown("fetch-execution", execution(status))
        };
        // Reads at the same time may show the states in any order.
        let read_at_once = read(&read(&rule, "ended"), "active").raced(2);
        vec![
            from("active", "active").passes(),
            from("waiting", "ended").passes(),
            from("ended", "active").fails("/status"),
            from("active", "unheard-of").fails("/status"),
            read_at_once.not_judged(),
            read(&read_at_once, "ended").passes(),
            read(&read_at_once, "active").fails("/status"),
            rule.payload(kind, execution("active")).not_judged(),
        ]
    }
}

/// Whether neither of two observations is before the other.
fn overlap(context: &Context<'_>, one: &Representation<'_>, other: &Representation<'_>) -> bool {
    let moment = |one: &Representation<'_>| Some(context.history.moments[one.exchange?]);
    let both = moment(one).zip(moment(other));
    both.is_some_and(|(one, other)| one.overlaps(&other))
}

/// By how much a service that counts whole seconds may be early.
const WHOLE_SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The state in this field changes with time as its `x-steps` state.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StateTimer {
    /// The representation.
    of: String,
    /// The state: `/status`.
    at: String,
    /// What is judged.
    aspect: Aspect,
    /// The number of seconds if the request sets none.
    #[serde(default)]
    unasked: Option<i64>,
}

/// What is asked of a state that moves by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Aspect {
    /// That it does not move too early, where so many seconds were asked for.
    NotBefore,
    /// That it has moved some seconds later, where so many were asked for, and is nowhere else by what people did too
    /// late.
    After,
    /// That it does not move at all, where zero seconds were asked for.
    Never,
    /// That it changes neither too early nor too late, if the request sets no number of seconds.
    Default,
}

impl Predicate for StateTimer {
    fn references(&self, references: &mut References) {
        references.kind("of", &self.of).pointer("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History, Need::Clock]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let Some(about) = context.about(&self.of) else {
            return;
        };
        let steps = about.steps_at(&self.at).unwrap_or_default();
        let resources = &context.history.resources;
        for step in steps.iter().filter(|step| step.by == "time") {
            for (_, resource) in resources.of_kind(about.of().unwrap_or(&self.of)) {
                for observation in resource.seen_as(&self.of) {
                    self.evaluate_observation(step, (resource, observation), verdicts);
                }
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let states = ["expired", "pending"].map(|state| Change::To(json!(state)));
        let at = |site| Mutation::at(site, states.clone());
        sites.iter().flat_map(at).collect()
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const STATUS: &str = "/approval_request/status";
        let request = |members: Value| json!({"success": true, "approval_request": members});
        let made = |aspect: &str, seconds: Option<u64>| {
            let parameters = json!({
                "of": "auth/approval-request-fetch", "at": STATUS, "aspect": aspect, "unasked": 86_400,
            });
            let sent = seconds.map_or(json!({}), |seconds| json!({"seconds_to_expire": seconds}));
            let rule = Example::for_rule("auth", parameters);
            let shown = request(json!({"uuid": "u1"}));
            rule.answered("create-approval-request", sent, shown)
        };
        let fetched = |aspect: &str, seconds: Option<u64>, status: &str| {
            let path = json!({"FORMAT": "json", "PUSH_UUID": "u1"});
            let shown = request(json!({"uuid": "u1", "status": status}));
            made(aspect, seconds).answered("fetch-approval-request", path, shown)
        };
        vec![
            fetched("not-before", Some(86_400), "pending").passes(),
            fetched("not-before", Some(86_400), "expired").fails(STATUS),
            fetched("not-before", Some(0), "expired").not_judged(),
            fetched("never", Some(0), "pending").passes(),
            fetched("never", Some(0), "expired").fails(STATUS),
            fetched("default", Some(60), "expired").not_judged(),
            fetched("default", None, "pending").passes(),
            fetched("default", None, "expired").fails(STATUS),
            fetched("after", Some(86_400), "pending").not_judged(),
            fetched("after", Some(86_400), "approved").not_judged(),
            made("not-before", Some(60)).not_judged(),
        ]
    }
}

impl StateTimer {
    fn evaluate_observation(
        &self,
        step: &Transition,
        (resource, observation): (&Resource<'_>, &Observation<'_>),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let made = resource.made.map(|made| &context.history.writes[made]);
        let (Some(made), Some(shown)) = (made, observation.representation(context)) else {
            return;
        };
        let Some(state) = shown.value(&self.at).and_then(Value::as_str) else {
            return;
        };
        let Some((seconds, was_asked)) = seconds(context, step, made.exchange(), self.unasked)
        else {
            return;
        };
        let (is_before, is_after) = (state == step.from, state == step.to);
        let made = made.moment.span;
        let apart = |from: Timestamp, to: Timestamp| to.duration_since(from);
        let after = SignedDuration::from_secs(seconds);
        let is_early = apart(made.began, observation.moment.span.ended) <= after - WHOLE_SECOND;
        let settle = SignedDuration::try_from(SETTLE).unwrap_or_default();
        let is_over = apart(made.ended, observation.moment.span.began) >= after + settle;
        let is_some = was_asked && seconds > 0;
        let (counts, is_wrong, expected) = match self.aspect {
            Aspect::NotBefore => (is_some && is_early, is_after, &step.from),
            Aspect::After => (is_some && is_over, is_before, &step.to),
            Aspect::Never => (was_asked && seconds == 0, is_after, &step.from),
            Aspect::Default if is_early => (!was_asked, is_after, &step.from),
            Aspect::Default => (!was_asked && is_over, is_before, &step.to),
        };
        let is_late = self.aspect == Aspect::After
            && is_over
            && self.came_too_late(context, (step, state), resource, made.ended, after + settle);
        let site = shown.site(&self.at);
        if !counts || !(is_before || is_after || is_late) || verdicts.has_finding_at(&site) {
            return;
        }
        let fact = Fact::new(
            "untimely",
            match seconds {
                0 => format!("{expected}, for ever"),
                _ => format!("{expected}, for it moves after {seconds} s"),
            },
            state.to_owned(),
        );
        verdicts.conclude(site, (is_wrong || is_late).then_some(fact));
    }

    /// Whether only people lead to its state, and all their actions came after its time.
    fn came_too_late(
        &self,
        context: &Context<'_>,
        (step, state): (&Transition, &str),
        resource: &Resource<'_>,
        made: Timestamp,
        over: SignedDuration,
    ) -> bool {
        let about = context.about(&self.of);
        let steps = about.and_then(|about| about.steps_at(&self.at));
        let mut steps = steps.unwrap_or_default().iter();
        let Some(by) = steps.find(|other| other.from == step.from && other.to == state) else {
            return false;
        };
        let writes = resource.writes.iter();
        let writes = writes.map(|&write| &context.history.writes[write]);
        let reactions = writes.filter_map(|write| match write.origin {
            Origin::Hook(_) => {
                let call = write.hook(context.evidence);
                let is_it = call.is_some_and(|call| call.name == by.by);
                Some((is_it, write.moment.span.began))
            }
            Origin::Exchange(_) => None,
        });
        let mut reactions = reactions.peekable();
        let mut is_done = false;
        reactions.peek().is_some()
            && !context.history.has_unobserved_actions
            && reactions.all(|(is_it, began)| {
                is_done |= is_it;
                began.duration_since(made) >= over
            })
            && is_done
    }
}

/// The number of seconds until the transition, from the request that created the resource or else the
/// documented default; and whether the request set it.
fn seconds(
    context: &Context<'_>,
    step: &Transition,
    made: Option<usize>,
    unasked: Option<i64>,
) -> Option<(i64, bool)> {
    let name = step.after.as_ref()?.rsplit('/').next()?;
    let sent = context.seen[made?].exchange.sent.get(name);
    match sent {
        Some(sent) => Some((crate::compare::as_text(sent).parse().ok()?, true)),
        None => Some((unasked?, false)),
    }
}

/// After this was done to a resource, its state is that one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StateAfterHook {
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
            let call = write.hook(context.evidence);
            let is_it = call.is_some_and(|call| call.name == self.after);
            if let Some(id) = write.resource
                && is_it
                && write.outcome == Outcome::Done
            {
                self.evaluate_write((write, id), verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::at(sites.last(), [Change::To(self.from.clone())])
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
            let since = write.moment.since(&before.moment);
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
        let later = |s: &&Observation<'_>| write.moment.is_before(&s.moment);
        for observation in resource.seen_as(&self.kind).filter(later) {
            let mut between = history.writes_between(id, (&write.moment, &observation.moment));
            let touched = between.any(|other| other.origin != write.origin);
            if touched || matches!(observation.shows, Appearance::NotFound) {
                break;
            }
            let Some(shown) = observation.representation(context) else {
                continue;
            };
            let Some((got, site)) = verdicts.without_finding(shown, &self.at) else {
                continue;
            };
            let follows = json::equal(got, &self.is);
            let would_be_reported = follows && observation.poll == Poll::Last;
            if !would_be_reported && !write.moment.is_settled(&observation.moment) {
                continue;
            }
            let fact = (!follows).then(|| {
                let expected = format!("{} after {}", json::short(&self.is), self.after);
                Fact::new("state", expected, json::short(got))
            });
            verdicts.conclude(site, fact);
        }
    }
}
