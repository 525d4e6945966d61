//! The result of one scenario, before it is part of a record.

use super::RunEvent;
use super::excerpt::Shown;
use super::stop::Stop;
use conformant_judge::Judgment;
use conformant_record::{Asked, RunRecord, ScenarioResult, Spent, Verdict};
use conformant_rulebook::Rulebook;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The result of one scenario with its evidence.
#[derive(Debug, Default)]
pub struct Concluded {
    pub result: ScenarioResult,
    /// The judgment of its evidence.
    pub judgment: Judgment,
    /// Why it ended early. Completes the reason of the rules that its remaining steps name.
    pub stopped: Option<Stop>,
    /// Exchanges it made.
    pub exchanges: usize,
    /// Exchanges by service.
    pub services: BTreeMap<String, Asked>,
    /// A target or a hook failed.
    pub has_infrastructure_error: bool,
    /// The requests without an answer to judge: none, not HTTP, or a redirect.
    pub unanswered: Option<Unanswered>,
    /// A service that answered 401 or 403, or as if it was elsewhere, and had answered no request otherwise yet.
    pub turned_away: Option<String>,
    /// Operations that were called, as `SERVICE/ID`.
    pub operations: BTreeSet<String>,
    /// Types of the representations that were received.
    pub kinds: BTreeSet<String>,
    /// Excerpts for people.
    pub shown: Shown,
    /// What it waited for, in real time.
    pub waited: Spent,
}

/// Requests without an answer to judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswered {
    pub count: usize,
    /// The first one, as `SERVICE/OPERATION: CAUSE`.
    pub first: String,
}

impl Unanswered {
    /// Adds those of a later scenario.
    pub(crate) fn add(known: &mut Option<Self>, more: Option<Self>) {
        match (known, more) {
            (Some(known), Some(more)) => known.count += more.count,
            (known @ None, more) => *known = more,
            (Some(_), None) => {}
        }
    }
}

impl Concluded {
    /// Keeps the excerpts of rules whose first scenario this is; without any, the steps have no details.
    pub(crate) fn keep_shown(&mut self, first_shown: &BTreeMap<String, String>) {
        let Self { result, shown, .. } = self;
        shown.keep(|rule| first_shown.get(rule) == Some(&result.id));
        if shown.rules().is_empty() {
            for step in &mut result.steps {
                step.sent.clear();
                step.received.clear();
            }
        }
    }

    /// The event of a scenario that has ended, perhaps before its turn in the plan.
    pub(crate) fn run_event(&self) -> RunEvent {
        RunEvent::ScenarioPlayed {
            id: self.result.id.clone(),
            verdict: self.result.verdict,
        }
    }

    /// The event of a scenario that is next in the plan.
    /// `void` are the services whose answers are not judged so far.
    pub(crate) fn ended_event(&self, void: &[VoidService]) -> RunEvent {
        let mut result = self.result.clone();
        let mut void = void.iter();
        let findings = match void.find(|void| self.is_turned_away_by(&void.service)) {
            Some(void) => {
                result.verdict = Verdict::Inconclusive;
                result.reason.clone_from(&void.why);
                Vec::new()
            }
            None => self.judgment.findings.clone(),
        };
        RunEvent::ScenarioEnded {
            result,
            findings,
            exchanges: self.exchanges,
        }
    }

    /// Whether an answer or a hook ended it before its last step.
    pub(crate) fn has_stopped_early(&self) -> bool {
        matches!(
            self.stopped,
            Some(
                Stop::Inconclusive(_)
                    | Stop::Unexpected
                    | Stop::HookFailed(_)
                    | Stop::Misconfigured(_)
                    | Stop::Masked(_)
            )
        )
    }

    pub(crate) fn is_turned_away_by(&self, service: &str) -> bool {
        self.turned_away.as_deref() == Some(service)
    }
}

/// A service whose answers are not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidService {
    pub service: String,
    pub why: String,
}

impl VoidService {
    fn new(service: &str, why: String) -> Self {
        let service = service.to_owned();
        Self { service, why }
    }

    /// A service that rejected every request: wrong credentials are not a finding.
    pub fn denied(service: &str) -> Self {
        let why = format!("{service} rejects every request with 401 or 403");
        Self::new(service, why)
    }

    /// A service that rejected every request that writes: credentials that may only read are not a finding.
    pub fn read_only(service: &str) -> Self {
        let why = format!("{service} rejects every request that writes with 401 or 403");
        Self::new(service, why)
    }

    /// A service that served no request: its rate limit or its gateway answered.
    pub fn unserved(service: &str, status: u16) -> Self {
        let why = format!("{service} answers every request with status {status}");
        Self::new(service, why)
    }

    /// States the reason at the rules of the service that were not judged: none of their other reasons was tried.
    pub fn explain(&self, rulebook: &Rulebook, record: &mut RunRecord) {
        for result in &mut record.rules {
            let rule = rulebook.rules.get(&result.id);
            let is_unjudged = matches!(
                result.verdict,
                Verdict::NotJudged | Verdict::Inconclusive | Verdict::NotApplicable
            );
            if is_unjudged && rule.is_some_and(|rule| rule.service == self.service) {
                result.reason.clone_from(&self.why);
                result.needs.clear();
            }
        }
    }

    /// A service whose address leads to another server or path.
    pub fn elsewhere(service: &str, answer: &str) -> Self {
        let why = format!("the address of {service} leads elsewhere: {answer}");
        Self::new(service, why)
    }
}
