//! The gate: what a finished run concludes, and why it is not conformant where nothing was found.
//!
//! Reads the record alone; who asked makes an exit code or a failed test of it.

use super::record::ONLY_IN_FILES;
use super::stop::SET_UP_FAILED;
use conformant_record::{Level, RuleResult, RunRecord, Verdict};
use std::collections::BTreeMap;

/// How much of what a run can judge must be judged, in percent.
const MIN_JUDGED: u8 = 90;

/// What a run concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Enough was judged, and nothing failed.
    Conformant,
    /// Rules failed that no waiver accepts, or a waiver is stale.
    Failed,
    /// The target could not be reached, the run was cut short, or we ourselves are at fault.
    Trouble,
    /// Nothing was judged, or less than was asked for.
    NothingJudged,
}

/// What is asked of a run beside that nothing is found.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Findings of level `should` fail too.
    pub strict: bool,
    /// Every selected must-rule is to be judged that a run can judge.
    pub require_complete: bool,
    /// So many percent of the must-rules that were tried are to be judged.
    pub min_judged: u8,
}

impl Default for Demands {
    /// Those of a command that tells what was run before.
    fn default() -> Self {
        Self {
            strict: false,
            require_complete: false,
            min_judged: MIN_JUDGED,
        }
    }
}

/// What a finished run concludes, and what led to it, line by line.
pub fn gate(
    demands: Demands,
    record: &RunRecord,
    waiver_problems: &[String],
    trouble: bool,
) -> (Conclusion, Vec<String>) {
    let mut told = Vec::new();
    let conclusion = conclusion(demands, record, (waiver_problems, trouble), &mut told);
    (conclusion, told)
}

fn conclusion(
    demands: Demands,
    record: &RunRecord,
    (waiver_problems, trouble): (&[String], bool),
    told: &mut Vec<String>,
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
    tell_setups(record, told);
    // What was cut short says so first: nobody takes half a list of failures for the whole.
    if !record.complete {
        return Conclusion::Trouble;
    }
    if failed || !waiver_problems.is_empty() {
        return Conclusion::Failed;
    }
    let counts = &record.summary.rules;
    let broken = record.scenarios.iter().any(|s| s.verdict == Verdict::Error);
    if counts.error > 0 || broken || trouble {
        return Conclusion::Trouble;
    }
    if counts.pass + counts.fail + counts.waived == 0 {
        told.push("nothing was judged".to_owned());
        return Conclusion::NothingJudged;
    }
    let is_enough = is_enough(record, demands.min_judged, told);
    let is_complete = !demands.require_complete || is_complete(record, told);
    if is_enough && is_complete {
        Conclusion::Conformant
    } else {
        Conclusion::NothingJudged
    }
}

/// Names the scenarios whose ground could not be laid, each with its cause.
fn tell_setups(record: &RunRecord, told: &mut Vec<String>) {
    const SHOWN_MAX: usize = 10;
    let failed = || {
        let scenarios = record.scenarios.iter();
        scenarios
            .filter(|s| s.verdict == Verdict::Inconclusive && s.reason.starts_with(SET_UP_FAILED))
    };
    for scenario in failed().take(SHOWN_MAX) {
        told.push(format!("{}: {}", scenario.id, scenario.reason));
    }
    let more = failed().count().saturating_sub(SHOWN_MAX);
    if more > 0 {
        told.push(format!(
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

/// Whether enough of the must-rules that were tried were judged; what is missing is told with the
/// scenarios that it was lost in.
fn is_enough(record: &RunRecord, min_judged: u8, told: &mut Vec<String>) -> bool {
    const SHOWN_MAX: usize = 10;
    let musts = || record.rules.iter().filter(|r| r.level == Level::Must);
    let judged = musts().filter(|r| is_judged(r)).count();
    let lost = musts()
        .filter(|r| r.masked_by.is_none())
        .filter(|r| matches!(r.verdict, Verdict::Inconclusive | Verdict::Error))
        .count();
    if judged * 100 >= (judged + lost) * usize::from(min_judged) {
        return true;
    }
    told.push(format!(
        "{lost} of {} must-rules that were tried stayed inconclusive, and --min-judged {min_judged} asks for more",
        judged + lost
    ));
    let stuck = || {
        let scenarios = record.scenarios.iter();
        scenarios.filter(|s| s.verdict == Verdict::Inconclusive)
    };
    for scenario in stuck().take(SHOWN_MAX) {
        told.push(format!("  {}: {}", scenario.id, scenario.reason));
    }
    let more = stuck().count().saturating_sub(SHOWN_MAX);
    if more > 0 {
        told.push(format!("  and {more} more scenarios, in the reports"));
    }
    false
}

/// Whether every must-rule was judged that a run can judge; what remains is told by what would change
/// it.
fn is_complete(record: &RunRecord, told: &mut Vec<String>) -> bool {
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
    told.push("not judged although --require-complete asks for it:".to_owned());
    for (reason, rules) in missing {
        told.push(format!("  {reason}: {}", rules.join(", ")));
    }
    false
}
