//! The steps of a scenario for the record: its exchanges, hooks, callbacks and statements in order.

use super::excerpt::{TEXT_BYTES_MAX, body_text, name_of};
use conformant_base::clock::Timestamp;
use conformant_base::json;
use conformant_base::text;
use conformant_judge::Judgment;
use conformant_judge::evidence::{Event, Evidence, Exchange, Outcome, Race};
use conformant_record::{Finding, RaceTimes, StepResult, Verdict};
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::{Step, Verb};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Steps of one scenario.
const STEPS_MAX: usize = 60;
/// Lines and bytes of one side of a hook or callback.
const SIDE_LINES_MAX: usize = 16;
const SIDE_BYTES_MAX: usize = 800;

/// Whether the record contains the steps of a scenario with this verdict.
pub(super) fn has_steps(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Fail | Verdict::Inconclusive | Verdict::Error
    )
}

/// The steps of a scenario in order; groups are expanded.
pub(super) fn steps(
    scenario: &Scenario,
    evidence: &Evidence,
    judgment: &Judgment,
) -> Vec<StepResult> {
    let events = evidence
        .events
        .iter()
        .filter_map(|event| step_of(evidence, event));
    let reached = events
        .chain(evidence.statements.iter().map(|s| s.step))
        .chain(evidence.payloads.iter().map(|p| p.step))
        .max()
        .unwrap_or(0);
    let mut steps = Vec::new();
    for (index, step) in scenario.steps.iter().enumerate().take(reached) {
        let number = index + 1;
        let before = steps.len();
        let own = evidence
            .events
            .iter()
            .filter(|e| step_of(evidence, e) == Some(number));
        steps.extend(own.filter_map(|event| step_result(evidence, event, number, judgment)));
        // Both the callbacks and the step that waited for them are listed.
        if steps.len() == before || matches!(step.verb, Verb::Await(_)) {
            steps.push(other(step, number, evidence, judgment));
        }
        if steps.len() >= STEPS_MAX {
            break;
        }
    }
    steps.truncate(STEPS_MAX);
    steps
}

fn step_of(evidence: &Evidence, event: &Event) -> Option<usize> {
    match event {
        Event::Exchange(index) => Some(evidence.exchanges.get(*index)?.step),
        Event::Hook(hook) => Some(hook.step),
        Event::Delivery(delivery) => Some(delivery.step),
        Event::Passed(_) => None,
    }
}

/// An event as a step of the scenario.
fn step_result(
    evidence: &Evidence,
    event: &Event,
    number: usize,
    judgment: &Judgment,
) -> Option<StepResult> {
    match event {
        Event::Exchange(index) => {
            let exchange = evidence.exchanges.get(*index)?;
            Some(call(evidence, exchange, *index, judgment))
        }
        Event::Hook(hook) => Some(StepResult {
            step: number,
            verb: "hook".to_owned(),
            what: hook.name.clone(),
            at: since_begin(evidence, hook.span.began),
            outcome: match &hook.result {
                Ok(_) => "done".to_owned(),
                Err(why) => format!("failed: {}", text::excerpt(why, TEXT_BYTES_MAX)),
            },
            sent: side(&json::window(&hook.arguments, "").0),
            received: hook.result.as_ref().map_or_else(
                |_| String::new(),
                |result| side(&json::window(result, "").0),
            ),
            race: hook
                .race
                .map(|race| race_times(race, hook.result.as_deref().ok())),
            ..StepResult::default()
        }),
        Event::Delivery(delivery) => Some(StepResult {
            step: number,
            verb: "callback".to_owned(),
            what: format!("{} {}", delivery.request.method, delivery.listener),
            at: since_begin(evidence, delivery.span.ended),
            outcome: format!("answered {}", delivery.answered),
            sent: side(&body_text(&delivery.request.body)),
            ..StepResult::default()
        }),
        Event::Passed(_) => None,
    }
}

/// One side of a hook or callback, cut.
fn side(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(SIDE_LINES_MAX).collect();
    text::excerpt(&lines.join("\n"), SIDE_BYTES_MAX).into_owned()
}

/// Seconds from the scenario's first request.
fn since_begin(evidence: &Evidence, at: Timestamp) -> Option<f64> {
    let first = evidence.exchanges.first()?;
    Some(at.duration_since(first.span.began).as_secs_f64().max(0.0))
}

fn call(evidence: &Evidence, exchange: &Exchange, at: usize, judgment: &Judgment) -> StepResult {
    let outcome = match &exchange.outcome {
        Outcome::Answered { response, .. } => response.status.to_string(),
        Outcome::Fault { cause, .. } => cause.to_string(),
    };
    StepResult {
        step: exchange.step,
        verb: if exchange.operation.is_empty() {
            "get"
        } else {
            "call"
        }
        .to_owned(),
        what: name_of(exchange),
        at: since_begin(evidence, exchange.span.began),
        outcome,
        exchange: at + 1,
        setup: exchange.setup,
        broken: broken(judgment, |f| f.exchange == at + 1),
        race: exchange
            .race
            .map(|race| race_times(race, exchange.document().map(|value| &**value))),
        ..StepResult::default()
    }
}

/// A request or hook that was sent at the same time as others, with its response.
fn race_times(race: Race, answer: Option<&Value>) -> RaceTimes {
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    RaceTimes {
        number: race.number,
        sent: milliseconds(race.sent),
        received: milliseconds(race.received),
        answer: answer.map(json::short).unwrap_or_default(),
    }
}

/// A step without a request.
fn other(step: &Step, number: usize, evidence: &Evidence, judgment: &Judgment) -> StepResult {
    let result = evidence
        .statements
        .iter()
        .find(|s| s.step == number)
        .map(|s| &s.result);
    let count = result
        .and_then(|result| result.get("count"))
        .and_then(Value::as_u64);
    let outcome = match (&step.verb, count) {
        (Verb::Await(_), Some(0)) => "no call came".to_owned(),
        (Verb::Await(_), Some(1)) => "1 call came".to_owned(),
        (Verb::Await(_), Some(n)) => format!("{n} calls came"),
        _ => String::new(),
    };
    StepResult {
        step: number,
        verb: step.verb.word().to_owned(),
        what: step.about().to_owned(),
        outcome,
        setup: step.setup,
        broken: broken(judgment, |f| f.step == number && f.exchange == 0),
        ..StepResult::default()
    }
}

fn broken(judgment: &Judgment, is_here: impl Fn(&Finding) -> bool) -> Vec<String> {
    let rules: BTreeSet<&String> = judgment
        .findings
        .iter()
        .filter(|finding| is_here(finding))
        .map(|finding| &finding.rule)
        .collect();
    rules.into_iter().cloned().collect()
}
