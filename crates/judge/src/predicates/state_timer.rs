//! `state-transition` with `aspect`: a state that changes after a number of seconds does so neither early nor never.
//!
//! Does not judge states that something else changes.

use super::prelude::*;
use crate::evidence::Event;
use crate::history::{Observation, Origin, Resource, SETTLE};
use conformant_base::clock::Timestamp;
use conformant_rulebook::annotations::Transition;
use jiff::SignedDuration;

/// By how much a service that counts whole seconds may be early.
const WHOLE_SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The state in this field changes with time as its `x-steps` state.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTimer {
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
                let observations = resource.observations.iter();
                for observation in
                    observations.filter(|s| s.shown_type == self.of && !s.is_attempt())
                {
                    self.evaluate_observation(step, (resource, observation), verdicts);
                }
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let states = ["expired", "pending"].map(|state| Change::To(json!(state)));
        let sites = sites.iter();
        let changed =
            sites.flat_map(|site| states.clone().map(|to| Mutation::new(site.clone(), to)));
        changed.collect()
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
            rule.answered(
                "create-approval-request",
                sent,
                request(json!({"uuid": "u1"})),
            )
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
        let is_it = |event: usize| match context.evidence.events.get(event) {
            Some(Event::Hook(call)) => call.name == by.by,
            Some(Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_)) | None => false,
        };
        let reactions = resource
            .writes
            .iter()
            .map(|&write| &context.history.writes[write]);
        let reactions = reactions.filter_map(|write| match write.origin {
            Origin::Hook(event) => Some((event, write.moment.span.began)),
            Origin::Exchange(_) => None,
        });
        let mut reactions = reactions.peekable();
        let mut is_done = false;
        reactions.peek().is_some()
            && !context.history.has_unobserved_actions
            && reactions.all(|(event, began)| {
                is_done |= is_it(event);
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
