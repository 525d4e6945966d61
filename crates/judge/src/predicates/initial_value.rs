//! `initial-value`: a field that was not set has its documented initial value, from creation until the next action.
//!
//! Does not judge later states, nor resources whose creation was not observed.

use super::prelude::*;
use crate::history::STEADY;

/// A new resource shows this value, unless the request that made it set another.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InitialValue {
    /// The representations that show it.
    kinds: Vec<String>,
    /// Where.
    at: String,
    /// Further places with the same value.
    #[serde(default)]
    also: Vec<String>,
    /// The accepted values.
    #[serde(default)]
    is: Vec<Value>,
    /// Whether the field contains them as JSON in a text.
    #[serde(default)]
    json: bool,
    /// The field of what it belongs to that has the value.
    #[serde(default)]
    from: Option<From>,
    /// Parameters that set it.
    #[serde(default)]
    unless: Vec<String>,
    /// Parameters that must have been sent with these values.
    #[serde(default)]
    given: BTreeMap<String, Value>,
    /// Parameters that must have been sent, and not empty.
    #[serde(default)]
    beside: Vec<String>,
    /// Judge only the response of the request that made it, because it may change by itself.
    #[serde(default)]
    at_creation: bool,
    /// Not judged if this parameter has the value of this field of a parent.
    #[serde(default)]
    apart: Option<Apart>,
}

/// A parameter that may have the value of a field of a parent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Apart {
    /// The parameter.
    parameter: String,
    /// The field.
    is: From,
}

/// A field of what a resource belongs to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct From {
    /// The representation that shows it.
    kind: String,
    /// Where.
    at: String,
}

impl Predicate for InitialValue {
    fn references(&self, references: &mut References) {
        for kind in &self.kinds {
            references
                .kind("kinds", kind)
                .pointer("at", &self.at)
                .pointers("also", &self.also);
        }
        let named = self.unless.iter().chain(self.given.keys());
        for parameter in named.chain(&self.beside) {
            references.any_parameter("unless", parameter);
        }
        let apart = self.apart.as_ref().map(|apart| &apart.is);
        for from in self.from.iter().chain(apart) {
            references.kind("kind", &from.kind).pointer("at", &from.at);
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        for (id, resource) in history.resources.iter() {
            let Some(made) = history.creation_of(id) else {
                continue;
            };
            let is_shown =
                |s: &&Observation<'_>| self.kinds.iter().any(|kind| kind == s.shown_type);
            let mut shown = resource.seen().filter(is_shown).peekable();
            if shown.peek().is_none()
                || self.sets(context, made)
                || self.is_apart(context, id, made)
            {
                continue;
            }
            for observation in shown {
                let is_later = self.at_creation && observation.exchange != made.exchange();
                if !is_later && is_first(context, id, made, observation) {
                    self.evaluate_observation((id, made, observation), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const ENABLED: &str = "/read_status_enabled";
        let service = |enabled: bool| {
            json!({
                "sid": sid("IS", "1"), "default_service_role_sid": "RL1",
                "read_status_enabled": enabled,
            })
        };
        let rule = |mut parameters: Value| {
            parameters["kinds"] = json!(["chat/service"]);
            parameters["at"] = json!(ENABLED);
            parameters["is"] = json!([true]);
            Example::for_rule("chat", parameters)
        };
        let named = json!({"FriendlyName": "a"});
        let plain = rule(json!({}));
        let made =
            |enabled: bool| plain.answered("create-service", named.clone(), service(enabled));
        let beside = |name: &str| {
            let scene = rule(json!({"beside": ["FriendlyName"]}));
            let sent = json!({"FriendlyName": name});
            scene.answered("create-service", sent, service(false))
        };
        let role = json!({
            "kinds": ["chat/user"], "at": "/role_sid", "unless": ["RoleSid"],
            "from": {"kind": "chat/service", "at": "/default_service_role_sid"},
        });
        let joined = |role_sid: &str, mut sent: Value| {
            sent["ServiceSid"] = json!(sid("IS", "1"));
            sent["Identity"] = json!("ann");
            let user =
                json!({"sid": sid("US", "1"), "service_sid": sid("IS", "1"), "role_sid": role_sid});
            Example::for_rule("chat", role.clone())
                .answered("create-service", named.clone(), service(true))
                .answered("create-user", sent, user)
        };
        let at = json!({"Sid": sid("IS", "1")});
        vec![
            beside("a").fails(ENABLED),
            beside("").not_judged(),
            made(true).passes(),
            made(false).fails(ENABLED),
            made(true)
                .answered("fetch-service", at.clone(), service(false))
                .fails(ENABLED),
            joined("RL1", json!({})).passes(),
            joined("RL2", json!({})).fails("/role_sid"),
            joined("RL9", json!({"RoleSid": "RL9"})).not_judged(),
            plain
                .answered("update-service", at, service(false))
                .not_judged(),
        ]
    }
}

/// Whether no action happened between a creation and an observation.
fn is_first(
    context: &Context<'_>,
    id: ResourceId,
    made: &Write<'_>,
    observation: &Observation<'_>,
) -> bool {
    let history = &context.history;
    let is_own_answer = observation.exchange.is_some() && observation.exchange == made.exchange();
    // People may have set it unobserved.
    let is_later = made.moment.is_before(&observation.moment)
        && history.is_exclusive(id)
        && !history.has_unobserved_actions;
    // What time alone may bring is not the first state any more.
    let is_later_time = context.evidence.hooks().any(|(event, call)| {
        let between = event > made.moment.event && event < observation.moment.event;
        between && call.name == "advance_clock"
    });
    let since = observation.moment.since(&made.moment);
    let is_disturbed = is_later_time
        || since.unsigned_abs() >= STEADY
        || history.writes.iter().any(|other| {
            other.origin != made.origin
                && other.outcome != Outcome::Refused
                && !other.moment.is_before(&made.moment)
                && !observation.moment.is_before(&other.moment)
        });
    // What a list shows is compared with what the resource itself shows.
    matches!(observation.shows, Appearance::Whole(_))
        && (is_own_answer || is_later)
        && !is_disturbed
}

impl InitialValue {
    /// Whether the creation sets the value.
    fn sets(&self, context: &Context<'_>, made: &Write<'_>) -> bool {
        self.unless.iter().any(|name| match made.origin {
            // An empty text sets nothing.
            Origin::Exchange(index) => {
                let sent = context.seen[index].exchange.sent.get(name);
                sent.is_some_and(|sent| *sent != "")
            }
            Origin::Hook(event) => {
                let call = context.evidence.hook(event);
                call.is_none_or(|call| call.arguments.get(name).is_some())
            }
        })
    }

    /// Whether it was created with other values than the required ones, or for the exception.
    fn is_apart(&self, context: &Context<'_>, id: ResourceId, made: &Write<'_>) -> bool {
        let sent = made
            .exchange()
            .map(|index| &context.seen[index].exchange.sent);
        let said = |name: &str| sent.and_then(|sent| sent.get(name));
        let mut given = self.given.iter();
        let differs = given.any(|(name, value)| said(name) != Some(value));
        let is_them = self.apart.as_ref().is_some_and(|apart| {
            let field = apart.is.value(context, id, made);
            said(&apart.parameter).is_some_and(|said| field.is_none_or(|(value, _)| value == said))
        });
        let is_said = |name: &String| said(name).is_some_and(|sent| !sent.is_null() && *sent != "");
        differs || is_them || !self.beside.iter().all(is_said)
    }

    fn evaluate_observation(
        &self,
        (id, made, observation): (ResourceId, &Write<'_>, &Observation<'_>),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let Some(shown) = observation.representation(context) else {
            return;
        };
        for at in std::iter::once(&self.at).chain(&self.also) {
            self.evaluate_value((id, made), (shown, at), verdicts);
        }
    }

    fn evaluate_value(
        &self,
        (id, made): (ResourceId, &Write<'_>),
        (shown, at): (&Representation<'_>, &str),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let found = shown.value(at);
        let Some(got) = found.filter(|_| !verdicts.has_finding_in(shown, at)) else {
            return;
        };
        let (expected, sites) = match &self.from {
            None => (self.is.as_slice(), Sites::from(shown.site(at))),
            Some(from) => match from.value(context, id, made) {
                Some((value, source)) => (
                    std::slice::from_ref(value),
                    Sites::from([source, shown.site(at)]),
                ),
                None => return,
            },
        };
        let parsed = got
            .as_str()
            .filter(|_| self.json)
            .and_then(json::parse_text);
        let got = parsed.as_ref().unwrap_or(got);
        let wrong = !expected.iter().any(|value| json::equal(value, got));
        let fact = || {
            let kind = context.history.resources.get(id).kind;
            let words: Vec<String> = expected.iter().map(json::short).collect();
            Fact {
                kind: "initial",
                expected: words.join(" or "),
                actual: json::short(got),
                message: format!(
                    "{at} of a new {}: expected {}, got {}",
                    kind.rsplit('/').next().unwrap_or_default(),
                    words.join(" or "),
                    json::short(got)
                ),
            }
        };
        verdicts.conclude(sites, wrong.then(fact));
    }
}

impl From {
    /// The value in the last observation of the parent before the creation, if it cannot have changed since.
    fn value<'a>(
        &self,
        context: &Context<'a>,
        id: ResourceId,
        made: &Write<'_>,
    ) -> Option<(&'a Value, Site)> {
        let history = &context.history;
        let kind = context.about(&self.kind)?;
        let mut parents = history.resources.get(id).parents.iter().rev();
        let parent = *parents.find(|&&p| Some(history.resources.get(p).kind) == kind.of())?;
        let mut observations = history.resources.get(parent).observations.iter().rev();
        let observation =
            observations.find(|s| s.shown_type == self.kind && s.moment.is_before(&made.moment))?;
        let mut writes = history.writes_between(parent, (&observation.moment, &made.moment));
        let touched =
            writes.any(|other| !other.is_by(observation.exchange) && other.origin != made.origin);
        let shown = observation
            .representation(context)
            .filter(|_| !touched && history.is_exclusive(parent))?;
        Some((shown.value(&self.at)?, shown.site(&self.at)))
    }
}
