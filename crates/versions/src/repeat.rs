//! Combines the records of `run --repeat`: a rule or scenario that failed in any run failed.
//!
//! - Findings of later runs at a place that an earlier run has are left out; the numbers of exchanges continue.
//! - Of an interrupted run, only what was judged counts.
//! - Mutation testing is that of the first run.

use super::merge::{self, Shown};
use conformant_record::{
    Finding, Repeats, RuleCounts, RunRecord, ShownPayload, Summary, Verdict, count_scenarios,
};
use std::collections::BTreeSet;

/// The record of several runs, which are given with their names; `None` without a run.
pub fn repeated(requested: usize, mut runs: Vec<(String, RunRecord)>) -> Option<RunRecord> {
    let repeats = Repeats::of(requested, &runs);
    for (_, run) in runs.iter_mut().skip(1).filter(|(_, run)| !run.complete) {
        let is_judged = |verdict| matches!(verdict, Verdict::Pass | Verdict::Fail);
        run.rules.retain(|rule| is_judged(rule.verdict));
        run.scenarios.retain(|scenario| is_judged(scenario.verdict));
    }
    let runs: Vec<RunRecord> = runs.into_iter().map(|(_, run)| run).collect();
    let mut whole = runs.first()?.clone();
    let mut seen = BTreeSet::new();
    let mut shown = Shown::default();
    let mut before = 0;
    whole.findings.clear();
    for (at, run) in runs.iter().enumerate() {
        let place = |finding: &Finding| {
            (
                finding.rule.clone(),
                finding.scenario.clone(),
                finding.pointer.clone(),
            )
        };
        let new = run.findings.iter().filter(|f| !seen.contains(&place(f)));
        let new: Vec<_> = new.cloned().collect();
        seen.extend(new.iter().map(place));
        whole.findings.extend(new.into_iter().map(|mut finding| {
            if finding.exchange > 0 {
                finding.exchange += before;
            }
            finding
        }));
        if at > 0 {
            add(&mut whole, run, before);
        }
        shown.add(run, before);
        before += run.summary.exchanges;
    }
    whole
        .findings
        .sort_by(|a, b| (&a.scenario, a.step).cmp(&(&b.scenario, b.step)));
    for rule in &mut whole.rules {
        let listed = whole.findings.iter().filter(|f| f.rule == rule.id).count();
        rule.findings = listed;
    }
    let mut places = BTreeSet::new();
    let is_new = |d: &ShownPayload| places.insert((d.scenario.clone(), d.step, d.pointer.clone()));
    whole.deliveries = shown.deliveries;
    whole.deliveries.retain(is_new);
    let named = exchanges_of(&whole);
    let exchanges = shown.exchanges.into_values();
    whole.exchanges = exchanges.filter(|e| named.contains(&e.exchange)).collect();
    whole.open_points = merge::answers(&runs);
    whole.summary = Summary {
        rules: RuleCounts::count(&whole.rules),
        scenarios: count_scenarios(&whole.scenarios),
        exchanges: before,
        seconds: runs.iter().map(|run| run.summary.seconds).sum(),
        clock_seconds: whole.summary.clock_seconds,
        services: merge::collect_asked(&runs),
    };
    whole.complete = runs.iter().all(|run| run.complete) && runs.len() == requested;
    whole.repeats = Some(repeats);
    Some(whole)
}

/// Adds the verdicts of a later run.
fn add(whole: &mut RunRecord, run: &RunRecord, before: usize) {
    for rule in &run.rules {
        match whole.rules.iter_mut().find(|known| known.id == rule.id) {
            Some(known) => merge::join(known, rule),
            None => whole.rules.push(rule.clone()),
        }
    }
    whole.rules.sort_by(|a, b| a.id.cmp(&b.id));
    for scenario in &run.scenarios {
        let mut scenario = scenario.clone();
        for step in scenario.steps.iter_mut().filter(|step| step.exchange > 0) {
            step.exchange += before;
        }
        match whole.scenarios.iter_mut().find(|s| s.id == scenario.id) {
            Some(known) if rank(scenario.verdict) >= rank(known.verdict) => {
                known.seconds += scenario.seconds;
            }
            Some(known) => {
                scenario.seconds += known.seconds;
                *known = scenario;
            }
            None => whole.scenarios.push(scenario),
        }
    }
}

/// The numbers of the exchanges that findings, steps and callbacks name.
fn exchanges_of(run: &RunRecord) -> BTreeSet<usize> {
    let findings = run.findings.iter().map(|finding| finding.exchange);
    let steps = run.scenarios.iter().flat_map(|scenario| &scenario.steps);
    let causes = run.deliveries.iter().map(|delivery| delivery.cause);
    findings
        .chain(steps.map(|step| step.exchange))
        .chain(causes)
        .collect()
}

/// The first one wins: a scenario that failed in any run failed.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fail => 0,
        Verdict::Error => 1,
        Verdict::Inconclusive => 2,
        Verdict::Waived => 3,
        Verdict::Pass => 4,
        Verdict::Open => 5,
        Verdict::NotApplicable => 6,
        Verdict::NotJudged => 7,
    }
}
