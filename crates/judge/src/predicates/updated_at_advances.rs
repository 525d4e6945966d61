//! `updated-at-advances`: an accepted change advances the time of the last update. Judges changes two or more seconds
//! after the previous observation, because clocks may have whole seconds.

use super::prelude::*;
use conformant_base::instant::is_in_minutes;
use std::time::Duration;

/// How long after a observation a change moves every clock.
const APART: Duration = Duration::from_secs(2);

/// How long after an observation a change moves a clock with whole minutes.
const MINUTE: Duration = Duration::from_secs(60);

/// An accepted request of this operation that changes a value moves this time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdatedAtAdvances {
    /// Operation id without the service.
    operation: String,
    /// Pointer to the time.
    at: String,
}

impl Predicate for UpdatedAtAdvances {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .answers("at", &self.at);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (_, write) in context.writes_of(&verdicts.rule.service, &self.operation) {
            if write.does == Action::Changes && write.outcome == Outcome::Done {
                self.evaluate_write(write, verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let shown = |name: &str, seconds: &str| {
            let updated = format!("1970-01-01T00:00{seconds}Z");
            json!({"sid": sid("IS", "1"), "friendly_name": name, "date_updated": updated})
        };
        let made = |seconds: &str| {
            let parameters = json!({"operation": "update-service", "at": "/date_updated"});
            let rule = Example::for_rule("chat", parameters);
            rule.shown("create-service", shown("a", seconds)).late()
        };
        let updated = |scene: &ExampleBuilder, name: &str, seconds: &str| {
            let sent = json!({"Sid": sid("IS", "1"), "FriendlyName": name});
            scene.answered("update-service", sent, shown(name, seconds))
        };
        vec![
            updated(&made(":00"), "b", ":03").passes(),
            updated(&made(":00"), "b", ":00").fails("/date_updated"),
            updated(&made(":09"), "b", ":03").fails("/date_updated"),
            updated(&made(""), "b", "").not_judged(),
            updated(&made(":00"), "a", ":00").not_judged(),
            made(":00").not_judged(),
        ]
    }
}

impl UpdatedAtAdvances {
    fn evaluate_write(&self, write: &Write<'_>, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(id) = write.resource.filter(|&id| history.is_exclusive(id)) else {
            return;
        };
        let is_whole = |s: &&Observation<'_>| matches!(s.shows, Appearance::Whole(_));
        let observations = history.resources.get(id).seen().filter(is_whole);
        let mut earlier = observations.clone().rev();
        let before = earlier.find(|s| s.moment.is_before(&write.moment));
        let is_after = |s: &&Observation<'_>| {
            s.exchange == write.exchange() || write.moment.is_before(&s.moment)
        };
        let after = observations.filter(is_after);
        let Some(before) = before else { return };
        let since = write.moment.since(&before.moment);
        if since.is_negative() || since.unsigned_abs() < APART {
            return;
        }
        // A value that is sent unchanged changes nothing.
        let changes = write.named.iter().any(|named| {
            let was = before.value(context, &named.echo.at);
            was.is_some_and(|was| as_text(was) != as_text(named.value))
        });
        let Some(shown) = before.representation(context).filter(|_| changes) else {
            return;
        };
        let time_site = shown.site(&self.at);
        let Some(was) = shown.value(&self.at) else {
            return;
        };
        for observation in after {
            let Some(shown) = observation.representation(context) else {
                continue;
            };
            let Some((got, site)) = verdicts.without_finding(shown, &self.at) else {
                continue;
            };
            let (Some(from), Some(to)) = (instant(was), instant(got)) else {
                continue;
            };
            // A time in whole minutes stays the same within its minute.
            let is_cut = got.as_str().is_some_and(is_in_minutes);
            if to == from && is_cut && since.unsigned_abs() < MINUTE {
                continue;
            }
            let fact = Fact::new(
                "not-moved",
                format!("later than {}", json::short(was)),
                json::short(got),
            );
            verdicts.conclude([time_site.clone(), site], (to <= from).then_some(fact));
        }
    }
}
