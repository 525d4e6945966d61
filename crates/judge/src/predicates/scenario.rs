//! `scenario`: only statements of scenario steps that name the rule judge it.

use super::prelude::*;
use crate::evidence::{Event, Statement};
use crate::statement::{considered, differs, located};
use conformant_rulebook::expect::Comparison;
use std::sync::Arc;

/// Only scenario steps that name this rule (`expect`, `accepted`, `rejected`) judge it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {}

impl Predicate for Scenario {
    fn subject(&self) -> Subject {
        Subject::Steps
    }

    fn references(&self, _: &mut References) {}

    fn needs(&self) -> &'static [Need] {
        &[Need::Steps]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let statements = context.evidence.statements.iter().enumerate();
        for (index, statement) in statements.filter(|(_, s)| s.expect.rule == verdicts.rule.id) {
            let expect = &statement.expect;
            if expect.or_absent && json::expand(&statement.result, &expect.at).is_empty() {
                let why = match is_silence(&statement.result) {
                    true => Vacuity::Silence,
                    false => Vacuity::Absent,
                };
                verdicts.record_vacuous(why);
                continue;
            }
            if let Some(seen) = statement.exchange.map(|index| &context.seen[index]) {
                if let Acceptance::Inconclusive(why) = &seen.acceptance {
                    verdicts.inconclusive(why);
                    continue;
                }
                // A field that broke a rule of its own brings no second finding, where the result is
                // the response's document and no view of it.
                let document = seen.exchange.document();
                let is_answer = document.is_some_and(|d| Arc::ptr_eq(d, &statement.result));
                let is_accepted = seen.acceptance == Acceptance::Accepted;
                let is_broken = is_answer && is_accepted && seen.breaks(&expect.at);
                if is_broken && !expect.at.is_empty() {
                    continue;
                }
            }
            let site = |pointer: &str| Site::result(index, pointer);
            let mut wrong = differs(expect, &statement.result);
            if wrong.is_none()
                && let Some(why) = vacuity(context, statement)
            {
                verdicts.record_vacuous(why);
                continue;
            }
            // For callbacks that did not come, the finding names the wait.
            let waited = statement.result.get("waited").and_then(Value::as_str);
            if let Some((fact, waited)) = wrong.as_mut().zip(waited) {
                fact.message = format!("{} (waited {waited})", fact.message);
            }
            let wrong = wrong.map(|fact| {
                let (at, fact) = located(expect, &statement.result, fact);
                (site(&at), fact)
            });
            verdicts.conclude_at(site(&expect.at), wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("flow", json!({}));
        let kept_out = json!({"at": "/flows/*/sid", "excludes": "FW1"});
        let listed = json!({"at": "/flows/*/sid", "includes": "FW1"});
        let mine = json!({"flows": [{"sid": "FW1"}]});
        let empty = json!({"flows": []});
        let quiet = json!({"at": "/count", "at-most": 0});
        let silence = json!({"count": 0, "requests": [], "waited": "1s"});
        let ended = json!({"at": "/status", "equals": "ended", "or-absent": true});
        let shown = |status: Value| rule.stated(ended.clone(), status);
        vec![
            shown(json!({"status": "ended"})).passes(),
            shown(json!({"status": "active"})).fails("/status"),
            shown(json!({})).not_judged(),
            // An empty list demonstrates the absence of an item that it contained before.
            rule.stated(listed, mine)
                .stated(kept_out.clone(), empty.clone())
                .passes(),
            rule.stated(kept_out, empty).not_judged(),
            rule.stated(quiet, silence).not_judged(),
            rule.not_judged(),
        ]
    }
}

/// Whether this is the result of a wait for callbacks in which none came.
fn is_silence(result: &Value) -> bool {
    result.get("waited").is_some() && result["count"] == 0
}

/// Why a statement that holds could not have failed.
fn vacuity(context: &Context<'_>, statement: &Statement) -> Option<Vacuity> {
    let Statement { expect, result, .. } = statement;
    if is_silence(result) {
        let is_delivery = |event: &Event| matches!(event, Event::Delivery(_));
        let came = context.evidence.events.iter().any(is_delivery);
        return (!came).then_some(Vacuity::Silence);
    }
    let considered = considered(expect, result);
    let selected = json::expand(considered.as_ref().unwrap_or(result), &expect.at);
    let is_empty = match selected.first() {
        None => expect.at.contains('*'),
        Some((_, Value::Array(items))) => {
            matches!(expect.is, Comparison::Excludes(_)) && items.is_empty()
        }
        Some(_) => false,
    };
    let twin = |other: &Statement| match (&other.expect.is, &expect.is) {
        (Comparison::Includes(wanted), Comparison::Excludes(unwanted)) => wanted == unwanted,
        _ => false,
    };
    let has_twin = context.evidence.statements.iter().any(twin);
    (is_empty && !has_twin).then_some(Vacuity::Empty)
}
