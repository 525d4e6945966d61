//! Gate: the conclusion of a finished run, with the reasons why it is not conformant.
//!
//! Reads the record only. The caller maps the conclusion to an exit code or a failed test.

use super::record::ONLY_IN_FILES;
use super::stop::SET_UP_FAILED;
use conformant_record::{Level, RuleResult, RunRecord, Subject, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The share of the attempted must-rules that must be judged, in percent.
const MIN_JUDGED: u8 = 90;

/// The conclusion of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Enough was judged, and nothing failed.
    Conformant,
    /// Rules failed without a waiver, or a waiver is stale.
    Failed,
    /// The target was unreachable, the run was interrupted, or this program failed.
    InfrastructureError,
    /// Nothing was judged, or less than required.
    NothingJudged,
}

/// Requirements apart from the absence of findings.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Findings of level `should` fail too.
    pub strict: bool,
    /// Every selected must-rule that a run can judge must be judged.
    pub require_complete: bool,
    /// The share of the attempted must-rules that must be judged, in percent.
    pub min_judged: u8,
    /// A rule of the service must be judged; rules about requests of clients do not suffice.
    pub of_service: bool,
}

impl Default for Demands {
    /// The requirements of commands that evaluate an earlier run.
    fn default() -> Self {
        Self {
            strict: false,
            require_complete: false,
            min_judged: MIN_JUDGED,
            of_service: true,
        }
    }
}

/// The conclusion of a finished run and its reasons, one per line.
pub fn gate(
    demands: Demands,
    record: &RunRecord,
    waiver_problems: &[String],
    has_infrastructure_error: bool,
) -> (Conclusion, Vec<String>) {
    let mut reasons = Vec::new();
    let conclusion = conclusion(
        demands,
        record,
        (waiver_problems, has_infrastructure_error),
        &mut reasons,
    );
    (conclusion, reasons)
}

fn conclusion(
    demands: Demands,
    record: &RunRecord,
    (waiver_problems, has_infrastructure_error): (&[String], bool),
    reasons: &mut Vec<String>,
) -> Conclusion {
    let failing = |level: Level| match level {
        Level::Must => true,
        Level::Should => demands.strict,
        Level::May | Level::Open => false,
    };
    let failed = record
        .rules
        .iter()
        .any(|r| r.verdict == Verdict::Fail && failing(r.level));
    report_failed_setups(record, reasons);
    // An interrupted run is reported first, because its list of failures is incomplete.
    if !record.complete {
        return Conclusion::InfrastructureError;
    }
    if failed || !waiver_problems.is_empty() {
        return Conclusion::Failed;
    }
    let counts = &record.summary.rules;
    let broken = record.scenarios.iter().any(|s| s.verdict == Verdict::Error);
    if counts.error > 0 || broken || has_infrastructure_error {
        return Conclusion::InfrastructureError;
    }
    if counts.pass + counts.fail + counts.waived == 0 {
        reasons.push("nothing was judged".to_owned());
        return Conclusion::NothingJudged;
    }
    let is_of_service = |rule: &RuleResult| rule.subject == Subject::Service && is_judged(rule);
    if demands.of_service && !record.rules.iter().any(is_of_service) {
        reasons.push(
            "nothing was judged of the service, only requests of clients: no rule applies to a response"
                .to_owned(),
        );
        return Conclusion::NothingJudged;
    }
    let is_enough = is_enough(record, demands.min_judged, reasons)
        && are_enough_set_up(record, demands.min_judged, reasons);
    let is_complete = !demands.require_complete || is_complete(record, reasons);
    if is_enough && is_complete {
        Conclusion::Conformant
    } else {
        Conclusion::NothingJudged
    }
}

/// Lists the first inconclusive scenarios that satisfy the condition; returns the number of the others.
fn list_inconclusive(
    record: &RunRecord,
    holds: &dyn Fn(&str) -> bool,
    indent: &str,
    reasons: &mut Vec<String>,
) -> usize {
    const SHOWN_MAX: usize = 10;
    let scenarios = record.scenarios.iter();
    let mut listed = scenarios.filter(|s| s.verdict == Verdict::Inconclusive && holds(&s.reason));
    let shown = listed.by_ref().take(SHOWN_MAX);
    reasons.extend(shown.map(|s| format!("{indent}{}: {}", s.id, s.reason)));
    listed.count()
}

/// Whether a reason is that of a failed set-up with a cause that no finding states.
fn is_failed_setup(record: &RunRecord) -> impl Fn(&str) -> bool {
    let stated: BTreeSet<&str> = record.findings.iter().map(|f| f.message.as_str()).collect();
    move |reason| {
        let cause = reason.split_once(": ").map(|(_, cause)| cause);
        reason.starts_with(SET_UP_FAILED) && !cause.is_some_and(|cause| stated.contains(cause))
    }
}

/// Lists the scenarios whose set-up failed, each with its cause, unless a finding states it.
fn report_failed_setups(record: &RunRecord, reasons: &mut Vec<String>) {
    let more = list_inconclusive(record, &is_failed_setup(record), "", reasons);
    if more > 0 {
        reasons.push(format!(
            "{SET_UP_FAILED} of {more} more scenarios, which the reports name"
        ));
    }
}

fn is_judged(rule: &RuleResult) -> bool {
    matches!(
        rule.verdict,
        Verdict::Pass | Verdict::Fail | Verdict::Waived
    )
}

/// Whether enough of the attempted must-rules were judged. Otherwise lists the scenarios in which they were lost.
fn is_enough(record: &RunRecord, min_judged: u8, reasons: &mut Vec<String>) -> bool {
    let musts = || record.rules.iter().filter(|r| r.level == Level::Must);
    let judged = musts().filter(|r| is_judged(r)).count();
    let lost = musts()
        .filter(|r| r.masked_by.is_none())
        .filter(|r| matches!(r.verdict, Verdict::Inconclusive | Verdict::Error))
        .count();
    if judged * 100 >= (judged + lost) * usize::from(min_judged) {
        return true;
    }
    reasons.push(format!(
        "too little was judged: {lost} of {} `must` rules that were tried are inconclusive, and {min_judged} percent must be judged",
        judged + lost
    ));
    let more = list_inconclusive(record, &|_| true, "  ", reasons);
    if more > 0 {
        reasons.push(format!("  and {more} more scenarios, in the reports"));
    }
    false
}

/// Whether enough scenarios got past their set-up. Rules of the others do not count as tried, although nothing is known of
/// them.
fn are_enough_set_up(record: &RunRecord, min_judged: u8, reasons: &mut Vec<String>) -> bool {
    let is_failed = is_failed_setup(record);
    let of = |holds: &dyn Fn(Verdict, &str) -> bool| {
        let scenarios = record.scenarios.iter();
        scenarios.filter(|s| holds(s.verdict, &s.reason)).count()
    };
    let failed = of(&|verdict, reason| verdict == Verdict::Inconclusive && is_failed(reason));
    let ended =
        of(&|verdict, _| matches!(verdict, Verdict::Pass | Verdict::Fail | Verdict::Waived));
    if ended * 100 >= (ended + failed) * usize::from(min_judged) {
        return true;
    }
    reasons.push(format!(
        "too little was judged: the set-up of {failed} of {} scenarios failed, and {min_judged} percent must get past it",
        ended + failed
    ));
    false
}

/// Whether every must-rule that a run can judge was judged. Otherwise lists the missing rules by reason.
fn is_complete(record: &RunRecord, reasons: &mut Vec<String>) -> bool {
    const IDS_MAX: usize = 8;
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for rule in &record.rules {
        if rule.level == Level::Must
            && !is_judged(rule)
            && rule.masked_by.is_none()
            && rule.reason != ONLY_IN_FILES
        {
            missing.entry(&rule.reason).or_default().push(&rule.id);
        }
    }
    if missing.is_empty() {
        return true;
    }
    reasons.push("not judged although --require-complete asks for it:".to_owned());
    for (reason, rules) in missing {
        let shown = rules[..rules.len().min(IDS_MAX)].join(", ");
        let more = match rules.len().saturating_sub(IDS_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        reasons.push(format!("  {reason}: {shown}{more}"));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_record::{Finding, ScenarioResult};

    #[test]
    fn too_few_scenarios_past_their_set_up_are_too_little() {
        let refusal = "create-flow was refused: status 501";
        let is_enough = |failed: usize, finding: &str| {
            let scenario = |verdict, reason: String| ScenarioResult {
                verdict,
                reason,
                ..ScenarioResult::default()
            };
            let passed = vec![scenario(Verdict::Pass, String::new()); 9];
            let set_up = format!("{SET_UP_FAILED}: {refusal}");
            let failed = vec![scenario(Verdict::Inconclusive, set_up); failed];
            let record = RunRecord {
                scenarios: [passed, failed].concat(),
                findings: vec![Finding {
                    message: finding.to_owned(),
                    ..Finding::default()
                }],
                ..RunRecord::default()
            };
            are_enough_set_up(&record, MIN_JUDGED, &mut Vec::new())
        };
        assert!(is_enough(1, ""));
        assert!(!is_enough(2, ""));
        assert!(is_enough(2, refusal), "the finding has its own verdict");
    }
}
