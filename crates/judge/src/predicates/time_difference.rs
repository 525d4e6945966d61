//! `time-difference` with `seconds`: a time is at most so long after another one. Either may be the current time.
//!
//! `time-difference` with `kinds`: two resources are dated as far apart as they were created.
//!
//! The clock of a service may show any time, but it is one clock, and all dates are in one time zone. With `zone` that zone is GMT:
//! a date that is a whole time zone away from the time of its request is flagged, and a clock that is merely wrong is not.

use super::prelude::*;
use crate::evidence::Evidence;
use crate::predicate::of_payload;
use conformant_base::clock;
use conformant_base::clock::Timestamp;
use std::time::Duration;

/// Seconds by which clocks may differ where a time is compared with now (D1: clocks are to be kept
/// in sync, which no clock is to the second).
const SKEW_SECONDS: f64 = 5.0;

/// The time at `at`, in seconds since 1970 or as ISO 8601, lies at most so long after another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeDifference {
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
                let whole = apart.round();
                let (expected, actual) = match (&self.at, self.after.as_deref()) {
                    (Some(_), Some(after)) => (
                        format!("at most {} s after {after}", self.seconds),
                        format!("{whole} s after {after}"),
                    ),
                    (Some(_), None) => (
                        format!("at most {} s from now", self.seconds),
                        format!("{whole} s from now"),
                    ),
                    (None, _) => (
                        format!("at most {} s ago", self.seconds),
                        format!("{whole} s ago"),
                    ),
                };
                Fact::new("too-late", expected, actual)
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

/// How far clocks of several machines of one service may be apart.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// The dates that creations response with lie as far apart as the creations do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreationTimes {
    /// The representations of what is made.
    kinds: Vec<String>,
    /// Where each shows when it was made.
    at: String,
    /// Parameters of a restored backup, which may set the date.
    #[serde(default)]
    unless: Vec<String>,
    /// Compare each date with the time of its request in place of the first date.
    #[serde(default)]
    zone: bool,
}

impl Predicate for CreationTimes {
    fn references(&self, references: &mut References) {
        for kind in &self.kinds {
            references.kind("kinds", kind).pointer("at", &self.at);
        }
    }

    /// Holds each creation against the first one.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let mut first: Option<(Moment, Timestamp, Site)> = None;
        for (when, date, site) in self.creations(context) {
            if self.zone {
                let apart = date.duration_since(when.span.ended);
                // A clock that shows another time says nothing about its zone.
                if !is_zone_apart(apart) && apart.unsigned_abs() > CLOCKS_APART {
                    continue;
                }
                let fact = is_zone_apart(apart).then(|| {
                    let expected = format!("about {}", when.span.ended);
                    Fact::new("dated-in-another-zone", expected, date.to_string())
                });
                if !verdicts.has_finding_at(&site) {
                    verdicts.conclude(site, fact);
                }
                continue;
            }
            let Some((first_when, first_date, first_site)) = &first else {
                first = Some((when, date, site));
                continue;
            };
            let least = when.span.began.duration_since(first_when.span.ended);
            let most = when.span.ended.duration_since(first_when.span.began);
            let apart = date.duration_since(*first_date);
            let is_far = |between: jiff::SignedDuration| between.unsigned_abs() > CLOCKS_APART;
            let is_wrong =
                (apart < least && is_far(least - apart)) || (apart > most && is_far(apart - most));
            let sites = [first_site.clone(), site];
            if verdicts.has_finding_at(&sites[0]) || verdicts.has_finding_at(&sites[1]) {
                continue;
            }
            let fact = is_wrong.then(|| {
                let expected = format!("about {} after {first_date}", whole(least));
                Fact::new("dated-apart", expected, date.to_string())
            });
            verdicts.conclude(sites, fact);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let noon = "2026-01-31T10:20:30Z";
        let in_service = |mut more: Value| {
            more["ServiceSid"] = json!(sid("IS", "1"));
            more
        };
        let of = |parameters: Value| {
            let service = json!({"sid": sid("IS", "1"), "date_created": noon});
            Example::for_rule("chat", parameters).answered(
                "create-service",
                json!({"FriendlyName": "a"}),
                service,
            )
        };
        let role = |scene: &ExampleBuilder, date: &str| {
            let sent = in_service(
                json!({"FriendlyName": "r", "Type": "channel", "Permission": ["sendMessage"]}),
            );
            let role =
                json!({"sid": sid("RL", "1"), "service_sid": sid("IS", "1"), "date_created": date});
            scene.answered("create-role", sent, role)
        };
        let first = of(json!({"kinds": ["chat/service", "chat/role"], "at": "/date_created"}));
        let zoned = of(json!({"kinds": ["chat/role"], "at": "/date_created", "zone": true}));
        let restores = of(json!({
            "kinds": ["chat/service", "chat/channel"], "at": "/date_created", "unless": ["DateUpdated"],
        }));
        let backup = json!({"UniqueName": "c", "DateUpdated": "2026-01-30T00:00:00Z"});
        let restored = json!({
            "sid": sid("CH", "1"), "service_sid": sid("IS", "1"), "date_created": "2026-01-30T00:00:00Z",
        });
        vec![
            role(&first, "2026-01-31T10:20:31Z").passes(),
            // Another machine's clock.
            role(&first, "2026-01-31T10:20:00Z").passes(),
            role(&first, "2026-01-31T05:20:31Z").fails("/date_created"),
            role(&first, "2026-01-31T10:01:31Z").fails("/date_created"),
            restores
                .answered("create-channel", in_service(backup), restored)
                .not_judged(),
            first.not_judged(),
            role(&zoned, "1970-01-01T00:00:00Z").passes(),
            role(&zoned, "1970-01-01T00:04:00Z").not_judged(),
            role(&zoned, "1970-01-01T05:00:00Z").fails("/date_created"),
            role(&zoned, noon).not_judged(),
        ]
    }
}

impl CreationTimes {
    /// The creation time of each resource, its date, and the site of the date.
    fn creations<'c>(
        &'c self,
        context: &'c Context<'_>,
    ) -> impl Iterator<Item = (Moment, Timestamp, Site)> + 'c {
        let history = &context.history;
        history.writes.iter().filter_map(move |write| {
            let index = write.exchange()?;
            let is_made = write.does == Action::Makes
                && write.outcome == Outcome::Done
                && !history.returns_existing(context, index);
            // A restored resource keeps its date.
            let is_sent = write.named.iter().any(|named| named.echo.at == self.at);
            let sent = &context.seen[index].exchange.sent;
            let is_restored = self.unless.iter().any(|name| sent.contains_key(name));
            if !is_made || is_sent || is_restored {
                return None;
            }
            let mut observations = history.resources.get(write.resource?).observations.iter();
            let answer = observations.find(|s| s.exchange == Some(index))?;
            let is_whole = matches!(answer.shows, Appearance::Whole(_));
            if !is_whole || !self.kinds.iter().any(|kind| kind == answer.shown_type) {
                return None;
            }
            let shown = answer.representation(context)?;
            let date = instant(shown.value(&self.at)?)?;
            Some((write.moment, date, shown.site(&self.at)))
        })
    }
}

/// Whether two times differ as two time zones do: by half hours, from one hour to fourteen. A clock that was moved by another
/// client differs by any time.
fn is_zone_apart(apart: jiff::SignedDuration) -> bool {
    const STEP: i64 = 30 * 60;
    const SLACK: i64 = 30;
    let apart = apart.abs().as_secs();
    let beyond = (apart + SLACK) % STEP;
    (2 * STEP - SLACK..=28 * STEP + SLACK).contains(&apart) && beyond <= 2 * SLACK
}

/// Whole seconds.
fn whole(duration: jiff::SignedDuration) -> String {
    format!("{} s", duration.as_secs())
}
