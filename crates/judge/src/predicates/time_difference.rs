//! `time-difference` with `seconds`: a time is at most so long after another one. Either may be the current time.

use super::prelude::*;
use crate::compare::instant;
use crate::evidence::Evidence;
use crate::predicate::of_payload;
use conformant_base::clock;
use conformant_rulebook::Action;
use std::collections::BTreeSet;

/// Seconds by which clocks may differ where a time is compared with now (D1: clocks are to be kept
/// in sync, which no clock is to the second).
const SKEW_SECONDS: f64 = 5.0;

/// The time at `at`, in seconds since 1970 or as ISO 8601, lies at most so long after another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeDifference {
    /// The representation, or several.
    kind: OneOrMore,
    /// The later time; the current time if omitted.
    at: Option<String>,
    /// The earlier time; the current time if omitted. At least one of the two is given.
    after: Option<String>,
    /// How long.
    seconds: u64,
    /// Parameters of a restored backup, which may set a time. Resources of a type that is created with one of them are judged
    /// only if their creation was seen.
    #[serde(default)]
    unless: Vec<String>,
}

/// One resource type, or a list of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(kind) => std::slice::from_ref(kind),
            Self::More(kinds) => kinds,
        }
    }
}

impl Predicate for TimeDifference {
    fn references(&self, references: &mut References) {
        for kind in self.kind.as_slice() {
            let mut kind = references.kind("kind", kind);
            for (key, pointer) in [("at", &self.at), ("after", &self.after)] {
                if let Some(pointer) = pointer {
                    kind.pointer(key, pointer);
                }
            }
        }
        for parameter in &self.unless {
            references.any_parameter("unless", parameter);
        }
    }

    fn needs(&self) -> &'static [Need] {
        if self.unless.is_empty() {
            &[Need::Document, Need::Clock]
        } else {
            &[Need::History]
        }
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let with_now = self.at.is_none() || self.after.is_none();
        let skew = if with_now { SKEW_SECONDS } else { 0.0 };
        for resource in self.representations(context) {
            let (Some(later), Some(earlier)) = (
                seconds_at(context, resource, self.at.as_deref()),
                seconds_at(context, resource, self.after.as_deref()),
            ) else {
                continue;
            };
            let given = [&self.after, &self.at].into_iter().flatten();
            let Some(sites) = Sites::collect(given.map(|at| resource.site(at))) else {
                continue;
            };
            let apart = later - earlier;
            #[expect(
                clippy::cast_precision_loss,
                reason = "bounds are minutes, not centuries"
            )]
            let is_later = apart > self.seconds as f64 + skew;
            let fact = is_later.then(|| {
                let from = self.after.as_deref().unwrap_or("now");
                let expected = format!("at most {} s after {from}", self.seconds);
                let expected = match &self.at {
                    Some(_) => expected,
                    None => format!("now {expected}"),
                };
                Fact::new("too-late", expected, format!("{apart} s after it"))
            });
            verdicts.conclude(sites, fact);
        }
    }

    fn example_evidence(&self, _: &Rule, kind: &str, value: Value) -> Evidence {
        let given = self.at.as_deref().or(self.after.as_deref());
        let seconds = given.and_then(|at| value.pointer(at)?.as_i64());
        Evidence {
            now: seconds.map(|seconds| clock::from_unix_ms(seconds.saturating_mul(1000))),
            ..of_payload(kind, value)
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let kind = "auth/registration-token";
        let token = |issued: i64, expires: i64| json!({"claims": {"iat": issued, "exp": expires}});
        let lifetime = Example::for_rule(
            "auth",
            json!({"kind": kind, "at": "/claims/exp", "after": "/claims/iat", "seconds": 900}),
        );
        let fresh = json!({"kind": kind, "after": "/claims/exp", "seconds": 0});
        let fresh = Example::for_rule("auth", fresh).payload(kind, token(0, 900));
        let at = |seconds: i64| clock::from_unix_ms(seconds * 1000);
        let dates = |kinds: &[&str], unless: &[&str]| {
            let parameters = json!({
                "kind": kinds, "at": "/date_created", "after": "/date_updated", "seconds": 1, "unless": unless,
            });
            Example::for_rule("chat", parameters)
        };
        let of_a_role = |updated: &str| {
            let role = json!({"date_created": "2026-01-31T10:20:29.7Z", "date_updated": updated});
            dates(&["chat/user", "chat/role"], &[]).payload("chat/role", role)
        };
        let of_a_channel = |mut sent: Value| {
            sent["ServiceSid"] = json!(sid("IS", "1"));
            let channel = json!({
                "sid": sid("CH", "1"), "service_sid": sid("IS", "1"), "date_created": "2026-01-31T10:20:30Z",
                "date_updated": "2020-01-03T03:04:05Z",
            });
            dates(&["chat/channel"], &["DateUpdated"]).answered("create-channel", sent, channel)
        };
        let of_an_unseen = |kind: &str, operation: &str, key: &str| {
            let shown = json!({
                "sid": sid(key, "1"), "service_sid": sid("IS", "1"), "date_created": "2026-01-31T10:20:30Z",
                "date_updated": "2026-01-31T10:20:28Z",
            });
            let sent = json!({"ServiceSid": sid("IS", "1"), "Sid": sid(key, "1")});
            dates(&[kind], &["DateUpdated"]).answered(operation, sent, shown)
        };
        vec![
            lifetime.payload(kind, token(100, 1000)).passes(),
            lifetime
                .payload(kind, token(100, 1001))
                .fails("/claims/exp"),
            lifetime
                .payload(kind, json!({"claims": {"exp": 1000}}))
                .not_judged(),
            of_a_role("2026-01-31T10:20:30Z").passes(),
            of_a_role("2026-01-31T10:20:28Z").fails("/date_created"),
            of_a_channel(json!({"DateUpdated": "2020-01-03T03:04:05Z"})).not_judged(),
            of_a_channel(json!({})).fails("/date_created"),
            of_an_unseen("chat/binding", "fetch-binding", "BS").fails("/date_created"),
            of_an_unseen("chat/member", "fetch-member", "MB").not_judged(),
            fresh.now(at(905)).passes(),
            fresh.now(at(906)).fails("/claims/exp"),
            fresh.not_judged(),
        ]
    }
}

impl TimeDifference {
    /// What is judged.
    fn representations<'c>(&'c self, context: &'c Context<'_>) -> Vec<&'c Representation<'c>> {
        let kinds = self.kind.as_slice();
        if self.unless.is_empty() {
            let shown = kinds.iter().flat_map(|kind| context.of_kind(kind));
            return shown.collect();
        }
        let history = &context.history;
        let restoring = context.rulebook.operations().filter(|operation| {
            let mut parameters = operation.parameters.iter();
            let is_unless = |name: &String| self.unless.contains(name);
            operation.does == Action::Makes && parameters.any(|p| is_unless(&p.name))
        });
        let restored: BTreeSet<&str> = restoring.filter_map(|o| o.response.as_deref()).collect();
        let resources = history.resources.iter().filter(|(_, resource)| {
            let made = resource.made;
            match made.and_then(|made| history.writes[made].exchange()) {
                Some(index) => {
                    let sent = &context.seen[index].exchange.sent;
                    !self.unless.iter().any(|name| sent.contains_key(name))
                }
                None => !restored.contains(resource.kind),
            }
        });
        let observations = resources.flat_map(|(_, resource)| &resource.observations);
        let shown = observations.filter(|shown| kinds.iter().any(|kind| kind == shown.shown_type));
        shown
            .filter_map(|observation| observation.representation(context))
            .collect()
    }
}

fn seconds_at(
    context: &Context<'_>,
    resource: &Representation<'_>,
    pointer: Option<&str>,
) -> Option<f64> {
    match pointer {
        Some(pointer) => {
            let value = resource.value(pointer)?;
            let instant = || Some(instant(value)?.as_duration().as_secs_f64());
            value.as_f64().or_else(instant)
        }
        None => context
            .evidence
            .now
            .map(|now| now.as_duration().as_secs_f64()),
    }
}
