//! `other-fields-unchanged`: a write changes only the fields that it names; a rejected write changes nothing.
//!
//! Does not judge derived fields (`x-derived`, `x-counts`, `x-steps`), nor resources that other clients may reach.

use super::prelude::*;
use conformant_rulebook::ParameterLocation;

/// What a write of this operation does not name stays as it was.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OtherFieldsUnchanged {
    /// The operation with its service.
    of: OperationName,
    /// Judge only rejected writes, or only accepted ones.
    #[serde(default)]
    refused: Option<bool>,
}

impl Predicate for OtherFieldsUnchanged {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| o.does == Action::Changes))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (index, seen) in verdicts.exchanges_of(self.of.id()) {
            let mut writes = context.history.writes.iter();
            let Some(write) = writes.find(|write| write.exchange() == Some(index)) else {
                continue;
            };
            let is_change = write.does == Action::Changes && write.outcome != Outcome::Unknown;
            let is_refused = write.outcome == Outcome::Refused;
            let is_judged = self.refused.is_none_or(|refused| refused == is_refused);
            if is_change && is_judged && !(is_silent(seen) && write.outcome == Outcome::Done) {
                self.evaluate_write(write, verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = json!({"Sid": sid("IS", "1")});
        let shown = |name: &str, role: &str| {
            json!({
                "sid": sid("IS", "1"), "friendly_name": name, "default_service_role_sid": role,
            })
        };
        let renames = json!({"Sid": sid("IS", "1"), "FriendlyName": "b"});
        let made = |refused: Option<bool>| {
            let parameters = json!({"of": "chat/update-service", "refused": refused});
            let rule = Example::for_rule("chat", parameters);
            rule.shown("create-service", shown("a", "RL1"))
        };
        let refused = |only_refused: Option<bool>| {
            let refused = made(only_refused).refused("update-service", renames.clone());
            refused.answered("fetch-service", at.clone(), shown("b", "RL1"))
        };
        let updated =
            |role: &str| made(None).answered("update-service", renames.clone(), shown("b", role));
        vec![
            updated("RL1").passes(),
            updated("RL9").fails("/default_service_role_sid"),
            refused(None).fails("/friendly_name"),
            refused(Some(false)).not_judged(),
            refused(Some(true)).fails("/friendly_name"),
            made(None).not_judged(),
        ]
    }
}

impl OtherFieldsUnchanged {
    fn evaluate_write(&self, write: &Write<'_>, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(id) = write.resource.filter(|&id| history.is_exclusive(id)) else {
            return;
        };
        let mut observations = history.resources.get(id).observations.iter();
        let is_whole =
            |observation: &Observation<'_>| matches!(observation.shows, Appearance::Whole(_));
        let is_answer = |observation: &Observation<'_>| observation.exchange == write.exchange();
        let earlier = observations.clone().rev();
        let mut earlier = earlier.filter(|s| is_whole(s) && s.moment.is_before(&write.moment));
        let after = observations.find(|s| {
            is_whole(s) && (is_answer(s) || write.moment.is_before(&s.moment)) && !s.is_attempt()
        });
        let (Some(before), Some(after)) = (earlier.next(), after) else {
            verdicts.record_vacuous(Vacuity::Alone);
            return;
        };
        // Only this write lies between the two, apart from the request that returned the first one.
        let own = [write.exchange(), before.exchange, after.exchange];
        let mut between = history.writes_between(id, (&before.moment, &after.moment));
        let is_alone = between.all(|other| own.iter().any(|own| other.is_by(*own)));
        let Some(shown) = after.representation(context).filter(|_| is_alone) else {
            return;
        };
        let mut compared = history.compared(context, id, before, after);
        compared.retain(|c| !is_address(&c.pointer));
        let mut writes = history.writes.iter();
        let shown_by = writes.find(|other| other.is_by(after.exchange));
        if let Some(other) = shown_by.filter(|other| other.exchange() != write.exchange()) {
            if other
                .exchange()
                .is_some_and(|at| is_silent(&context.seen[at]))
            {
                verdicts.record_vacuous(Vacuity::Alone);
                return;
            }
            compared.retain(|c| !names(other, &c.pointer));
        }
        compared
            .retain(|c| !names(write, &c.pointer) && !verdicts.has_finding_in(shown, &c.pointer));
        let how = match write.outcome {
            Outcome::Refused => "was refused",
            Outcome::Done | Outcome::Unknown => "did not name it",
        };
        let operation = self.of.id();
        let fact = |pointer: &str, was: &str, is: &str| Fact {
            kind: "changed",
            expected: format!("{was}, as before"),
            actual: is.to_owned(),
            message: format!("{pointer} went from {was} to {is} although {operation} {how}"),
        };
        if !verdicts.conclude_changes(shown, &compared, before.exchange, fact) {
            verdicts.record_vacuous(Vacuity::Alone);
        }
    }
}

/// Whether a request sends what never comes back: what that changes is not known.
fn is_silent(seen: &Seen<'_>) -> bool {
    seen.operation.is_some_and(|operation| {
        operation.parameters.iter().any(|p| {
            let is_sent = seen.exchange.sent.contains_key(&p.name);
            is_sent
                && p.echo.is_none()
                && matches!(p.place, ParameterLocation::Body | ParameterLocation::Query)
        })
    })
}

/// Whether a write that was done names the value at that place, or something above or below it.
fn names(write: &Write<'_>, pointer: &str) -> bool {
    let mut named = write.named.iter().map(|named| named.echo.at.as_str());
    let overlaps = |at: &str| json::within(at, pointer) || json::within(pointer, at);
    write.outcome == Outcome::Done && named.any(overlaps)
}
