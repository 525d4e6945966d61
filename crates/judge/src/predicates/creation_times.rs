//! `time-difference` with `kinds`: two resources are dated as far apart as they were created.
//!
//! The clock of a service may show any time, but it is one clock, and all dates are in one time zone. With `zone` that zone is GMT:
//! a date that is a whole time zone away from the time of its request is flagged, and a clock that is merely wrong is not.

use super::prelude::*;
use crate::compare::instant;
use crate::history::{Appearance, Moment, Outcome};
use conformant_base::clock::Timestamp;
use conformant_rulebook::Action;
use std::time::Duration;

/// How far clocks of several machines of one service may be apart.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// The dates that creations response with lie as far apart as the creations do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreationTimes {
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
                    Fact::new(
                        "dated-in-another-zone",
                        format!("about {}", when.span.ended),
                        date.to_string(),
                    )
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
                Fact::new(
                    "dated-apart",
                    format!("about {} after {first_date}", whole(least)),
                    date.to_string(),
                )
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
