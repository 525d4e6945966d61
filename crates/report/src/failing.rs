//! What fails a run in test dashboards: one case for each defect. Cases of rules and scenarios that fail because of a
//! defect are not failures of their own; they name it.

use super::Settings;
use super::cards::{self, Card};
use super::view::{self, Effect, Outcome};
use conformant_record::{Finding, RunRecord};
use std::collections::BTreeSet;

/// Named scenarios per defect.
const SCENARIOS_MAX: usize = 20;

/// The defects that fail the run, by number.
pub(super) struct Failing<'a>(Vec<Card<'a>>);

impl<'a> Failing<'a> {
    pub(super) fn new(record: &'a RunRecord, settings: Settings) -> Self {
        let mut cards = cards::cards(record, settings);
        cards.retain(|card| card.effect == Effect::Fails);
        Self(cards)
    }

    pub(super) fn cards(&self) -> &[Card<'a>] {
        &self.0
    }

    /// Why a rule or scenario with these findings failed, if defects explain it.
    pub(super) fn cause(&self, outcome: &Outcome, findings: &[&Finding]) -> Option<String> {
        let is_cause = |card: &&Card<'_>| {
            let mut rules = card.rules.iter().filter(|r| r.effect == Effect::Fails);
            rules.any(|rule| findings.iter().any(|finding| finding.rule == rule.id))
        };
        let causes = self.0.iter().filter(is_cause).map(name);
        let causes: Vec<String> = causes.filter(|_| *outcome == Outcome::Failed).collect();
        match causes.as_slice() {
            [] => None,
            [one] => Some(format!("fails because of defect {one}")),
            all => Some(format!("fails because of defects {}", all.join("; "))),
        }
    }
}

/// The number and the title, as on the console.
pub(super) fn name(card: &Card<'_>) -> String {
    format!("{}. {}", card.number, card.defect.title)
}

/// The part of the report that it belongs to: mistakes of clients are not defects of a service.
pub(super) fn part(card: &Card<'_>) -> &'static str {
    match card.is_of_clients() {
        true => "clients",
        false => "defects",
    }
}

/// What a defect breaks and where, with its first finding.
pub(super) fn details(record: &RunRecord, card: &Card<'_>) -> String {
    let findings = || card.rules.iter().flat_map(|rule| &rule.findings);
    let rules: BTreeSet<&str> = card.rules.iter().map(|rule| rule.id).collect();
    let scenarios = findings().map(|finding| finding.scenario.as_str());
    let scenarios: BTreeSet<&str> = scenarios.filter(|id| !id.is_empty()).collect();
    let mut lines: Vec<String> = card.guess().into_iter().collect();
    lines.push(format!("breaks {}", Vec::from_iter(rules).join(", ")));
    let shown: Vec<&str> = scenarios.iter().copied().take(SCENARIOS_MAX).collect();
    let more = match scenarios.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {}", view::count(more, "more scenario")),
    };
    if !shown.is_empty() {
        lines.push(format!("in {}{more}", shown.join(", ")));
    }
    if let Some(first) = card.first() {
        lines.push(first.message.clone());
        lines.push(view::describe(record, first));
    }
    lines.join("\n")
}
