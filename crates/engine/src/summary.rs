//! The result of a scenario: its verdict with the reason, and the other facts that the record contains.

use super::concluded::{Concluded, Unanswered};
use super::stop::{ENDED_BEFORE, Stop};
use super::{excerpt, shown_steps};
use conformant_base::http::Cause;
use conformant_judge::Judgment;
use conformant_judge::evidence::{Evidence, Exchange, Outcome};
use conformant_record::{Asked, Level, ScenarioResult, Verdict};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Scenario;
use std::collections::BTreeMap;

/// The result of a scenario, with the other facts that the record contains.
pub(super) fn summarize(
    rulebook: &Rulebook,
    scenario: Option<&Scenario>,
    evidence: &Evidence,
    (judgment, stop): (Judgment, Option<Stop>),
    seconds: f64,
) -> Concluded {
    let exchanges = evidence.exchanges.len();
    let concluded = conclude_run(&evidence.scenario, judgment, stop, exchanges, seconds);
    let unanswered = unanswered(&evidence.exchanges);
    let operations = evidence
        .exchanges
        .iter()
        .map(|e| format!("{}/{}", e.service, e.operation))
        .collect();
    let mut services: BTreeMap<String, Asked> = BTreeMap::new();
    for exchange in &evidence.exchanges {
        let asked = Asked::once(excerpt::milliseconds(exchange));
        services
            .entry(exchange.service.clone())
            .or_default()
            .add(asked);
    }
    let shown = excerpt::Shown::of(evidence, &concluded.judgment);
    let mut concluded = Concluded {
        has_infrastructure_error: unanswered.is_some()
            || matches!(
                concluded.stopped,
                Some(Stop::HookFailed(_) | Stop::Misconfigured(_) | Stop::Unreachable(_))
            ),
        unanswered,
        services,
        operations,
        kinds: conformant_judge::kinds_of(rulebook, evidence),
        shown,
        ..concluded
    };
    if let Some(scenario) = scenario.filter(|_| shown_steps::has_steps(concluded.result.verdict)) {
        concluded.result.steps = shown_steps::steps(scenario, evidence, &concluded.judgment);
    }
    concluded
}

/// The exchanges without an answer to judge.
fn unanswered(exchanges: &[Exchange]) -> Option<Unanswered> {
    let why = |exchange: &Exchange| match &exchange.outcome {
        // A redirect outside the target does not prove that the target failed, nor does an answer beyond our size limit.
        Outcome::Fault { cause, detail, .. } => {
            let is_of_target = !matches!(cause, Cause::Redirect | Cause::EvidenceOverLimit(_));
            is_of_target.then(|| detail.clone())
        }
        Outcome::Answered { response, .. } => {
            let is_redirect = (300..400).contains(&response.status);
            is_redirect.then(|| format!("status {}", response.status))
        }
    };
    let mut unanswered = exchanges.iter().filter_map(|e| Some((e, why(e)?)));
    let (exchange, why) = unanswered.next()?;
    Some(Unanswered {
        count: 1 + unanswered.count(),
        first: format!("{}/{}: {why}", exchange.service, exchange.operation),
    })
}

pub(super) fn conclude_run(
    id: &str,
    judgment: Judgment,
    stop: Option<Stop>,
    exchanges: usize,
    seconds: f64,
) -> Concluded {
    let failed = judgment.findings.iter().any(|f| f.level == Level::Must);
    let (verdict, reason) = match &stop {
        // What its remaining steps would have shown is unknown.
        Some(Stop::Interrupted) if failed => (Verdict::Fail, ENDED_BEFORE.to_owned()),
        _ if failed => (Verdict::Fail, String::new()),
        None => (Verdict::Pass, String::new()),
        Some(Stop::NotApplicable(why)) => (Verdict::NotApplicable, why.clone()),
        Some(
            Stop::Inconclusive(why)
            | Stop::Unreachable(why)
            | Stop::HookFailed(why)
            | Stop::Misconfigured(why),
        ) => (Verdict::Inconclusive, why.clone()),
        Some(Stop::Interrupted) => (Verdict::Inconclusive, ENDED_BEFORE.to_owned()),
        Some(Stop::Masked(rule)) => (Verdict::Inconclusive, format!("masked by {rule}")),
        Some(Stop::Unexpected) => (
            Verdict::Inconclusive,
            "a step was answered against its expectation".to_owned(),
        ),
        Some(Stop::Error(why)) => (Verdict::Error, why.clone()),
    };
    let result = ScenarioResult {
        id: id.to_owned(),
        verdict,
        seconds,
        reason,
        ..ScenarioResult::default()
    };
    Concluded {
        result,
        judgment,
        stopped: stop,
        exchanges,
        ..Concluded::default()
    }
}
