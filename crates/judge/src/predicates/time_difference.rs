//! `time-difference` with `seconds`: a time is at most so long after another one. Either may be the current time.

use super::prelude::*;
use crate::compare::instant;
use crate::evidence::Evidence;
use crate::predicate::of_payload;
use conformant_base::clock;

/// Seconds by which clocks may differ where a time is compared with now (D1: clocks are to be kept
/// in sync, which no clock is to the second).
const SKEW_SECONDS: f64 = 5.0;

/// The time at `at`, in seconds since 1970 or as ISO 8601, lies at most so long after another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeDifference {
    /// The representation.
    kind: String,
    /// The later time; the current time if omitted.
    at: Option<String>,
    /// The earlier time; the current time if omitted. At least one of the two is given.
    after: Option<String>,
    /// How long.
    seconds: u64,
}

impl Predicate for TimeDifference {
    fn references(&self, references: &mut References) {
        let mut kind = references.kind("kind", &self.kind);
        for (key, pointer) in [("at", &self.at), ("after", &self.after)] {
            if let Some(pointer) = pointer {
                kind.pointer(key, pointer);
            }
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Document, Need::Clock]
    }

    fn evaluate(&self, context: &Context<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let with_now = self.at.is_none() || self.after.is_none();
        let skew = if with_now { SKEW_SECONDS } else { 0.0 };
        for resource in context.of_kind(&self.kind) {
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
            verdicts.instance(rule, sites).conclude(is_later.then(|| {
                let from = self.after.as_deref().unwrap_or("now");
                let to = self.at.as_deref().unwrap_or("now");
                Fact {
                    kind: "too-late",
                    expected: format!("{to} at most {} s after {from}", self.seconds),
                    actual: format!("{apart} s after it"),
                    ..Fact::default()
                }
            }));
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
        let lifetime =
            json!({"kind": kind, "at": "/claims/exp", "after": "/claims/iat", "seconds": 900});
        let lifetime = Example::for_rule("auth", lifetime);
        let fresh = json!({"kind": kind, "after": "/claims/exp", "seconds": 0});
        let fresh = Example::for_rule("auth", fresh).payload(kind, token(0, 900));
        let at = |seconds: i64| clock::from_unix_ms(seconds * 1000);
        vec![
            lifetime.clone().payload(kind, token(100, 1000)).passes(),
            lifetime
                .clone()
                .payload(kind, token(100, 1001))
                .fails("/claims/exp"),
            lifetime
                .payload(kind, json!({"claims": {"exp": 1000}}))
                .not_judged(),
            fresh.clone().now(at(905)).passes(),
            fresh.clone().now(at(906)).fails("/claims/exp"),
            fresh.not_judged(),
        ]
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
