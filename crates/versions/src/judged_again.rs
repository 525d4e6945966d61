//! Judges a stored run with another rulebook, as far as the record allows.
//!
//! - A record contains findings, not exchanges. So levels, removed rules, scenarios and counts are computed again.
//! - New rules, and rules whose sentence changed, are reported as not judged.
//! - A check that changed under the same sentence is not noticed: the record does not contain checks.
//! - `waivers` applies waivers afterwards.

use conformant_base::source::Source;
use conformant_record::{Finding, Level, RuleResult, RunRecord, ScenarioResult, Subject, Verdict};
use conformant_rulebook::{Rule, Rulebook};
use std::collections::{BTreeMap, BTreeSet};

/// Result of judging a stored run.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedAgain {
    /// The updated record.
    pub record: RunRecord,
    /// Differences and limits, one sentence each.
    pub notes: Vec<String>,
}

/// Judges a stored run with this rulebook.
pub fn judge_again(stored: &RunRecord, rulebook: &Rulebook) -> JudgedAgain {
    let mut notes = Vec::new();
    let mut record = stored.clone();
    let is_same = stored.rulebook.digest == rulebook.digest();
    rulebook.digest().clone_into(&mut record.rulebook.digest);
    let changed: BTreeSet<&str> = stored
        .rules
        .iter()
        .filter(|earlier| {
            let rule = rulebook.rule(&earlier.id);
            !is_same && rule.is_some_and(|rule| is_changed(earlier, rule))
        })
        .map(|earlier| earlier.id.as_str())
        .collect();
    record.findings.retain(|finding| {
        rulebook.rule(&finding.rule).is_some() && !changed.contains(finding.rule.as_str())
    });
    let mut per_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &record.findings {
        *per_rule.entry(finding.rule.as_str()).or_default() += 1;
    }
    let mut rules = Vec::new();
    for earlier in &stored.rules {
        let id = earlier.id.as_str();
        match rulebook.rule(id) {
            None => notes.push(format!("{id} is not a rule of this rulebook")),
            Some(rule) if changed.contains(id) => {
                notes.push(format!(
                    "{id} states something else since the run, so it is not judged; its verdict was {}",
                    earlier.verdict.word()
                ));
                rules.push(unseen(
                    rule,
                    "the stored run judged an earlier form of this rule",
                ));
            }
            Some(rule) => {
                let findings = per_rule.get(id).copied().unwrap_or_default();
                rules.push(RuleResult {
                    says: rule.says.clone(),
                    basis: Some(rule.basis),
                    ..conclude(earlier, rule.level, &rule.source, findings, &mut notes)
                });
            }
        }
    }
    if !is_same {
        let services: BTreeSet<&str> = stored
            .rules
            .iter()
            .filter_map(|earlier| earlier.id.split('/').next())
            .collect();
        for rule in rulebook.rules.values() {
            let selected = services.contains(rule.service.as_str());
            if selected && !stored.rules.iter().any(|earlier| earlier.id == rule.id) {
                rules.push(unseen(rule, "the stored run is older than this rule"));
            }
        }
        notes.push(
            "the run was judged with another rulebook: sentences and levels are now those of the current one, but \
             verdicts are those of the run, because a record has no exchanges"
                .to_owned(),
        );
    }
    rules.sort_by(|a, b| a.id.cmp(&b.id));
    let levels: BTreeMap<&str, Level> = rules.iter().map(|r| (r.id.as_str(), r.level)).collect();
    // Permissions and unspecified behaviors cannot be broken.
    record.findings.retain_mut(|finding| {
        finding.waived.clear();
        let level = levels.get(finding.rule.as_str()).copied();
        finding.level = level.unwrap_or(Level::Open);
        matches!(finding.level, Level::Must | Level::Should)
    });
    for scenario in &mut record.scenarios {
        settle_scenario(scenario, &stored.findings, &record.findings);
    }
    record.rules = rules;
    record.count_verdicts();
    JudgedAgain { record, notes }
}

/// Whether a rule states something else than in the run. Versions before 2 have no sentences to compare.
fn is_changed(earlier: &RuleResult, rule: &Rule) -> bool {
    !earlier.says.is_empty() && earlier.says != rule.says
}

/// Fails a scenario if it has a finding of a must-rule. One that failed only because of other findings passes.
fn settle_scenario(scenario: &mut ScenarioResult, stored: &[Finding], remaining: &[Finding]) {
    let is_here = |finding: &&Finding| finding.scenario == scenario.id;
    let has_failed = remaining
        .iter()
        .filter(is_here)
        .any(|finding| finding.level == Level::Must);
    let had_failed = matches!(scenario.verdict, Verdict::Fail | Verdict::Waived);
    let verdict = if has_failed {
        Verdict::Fail
    } else if had_failed && stored.iter().any(|finding| is_here(&finding)) {
        Verdict::Pass
    } else {
        // Without a finding, the reason of a failure is unknown.
        scenario.verdict
    };
    if verdict != scenario.verdict {
        scenario.verdict = verdict;
        scenario.reason.clear();
    }
}

fn conclude(
    earlier: &RuleResult,
    level: Level,
    source: &Source,
    findings: usize,
    notes: &mut Vec<String>,
) -> RuleResult {
    if level != earlier.level {
        notes.push(
            format!("{} was {:?} and is {level:?}", earlier.id, earlier.level).to_lowercase(),
        );
    }
    let (verdict, findings) = match level {
        Level::May | Level::Open => (observed(earlier), 0),
        Level::Must | Level::Should if findings > 0 => (Verdict::Fail, findings),
        Level::Must | Level::Should => (held(earlier, notes), 0),
    };
    let reason = if verdict == earlier.verdict {
        earlier.reason.clone()
    } else {
        String::new()
    };
    let masked_by = earlier
        .masked_by
        .clone()
        .filter(|_| verdict == earlier.verdict);
    RuleResult {
        masked_by,
        level,
        source: source.clone(),
        verdict,
        findings,
        reason,
        ..earlier.clone()
    }
}

/// The verdict of a rule without findings.
fn held(earlier: &RuleResult, notes: &mut Vec<String>) -> Verdict {
    match earlier.verdict {
        // Waived findings are in the record, unless an older program left them out.
        Verdict::Waived => {
            notes.push(format!(
                "{} stays waived: its findings are not in the record",
                earlier.id
            ));
            Verdict::Waived
        }
        // An observation was not judged by the rule.
        Verdict::Open => Verdict::NotJudged,
        other @ (Verdict::Pass
        | Verdict::Fail
        | Verdict::Inconclusive
        | Verdict::NotApplicable
        | Verdict::Error
        | Verdict::NotJudged) => other,
    }
}

/// The verdict of a rule that is only observed.
fn observed(earlier: &RuleResult) -> Verdict {
    match earlier.verdict {
        Verdict::Pass | Verdict::Fail | Verdict::Waived | Verdict::Open => Verdict::Open,
        other @ (Verdict::Inconclusive
        | Verdict::NotApplicable
        | Verdict::Error
        | Verdict::NotJudged) => other,
    }
}

/// A rule that the stored run did not judge.
fn unseen(rule: &Rule, reason: &str) -> RuleResult {
    RuleResult {
        subject: Subject::Service,
        masked_by: None,
        id: rule.id.clone(),
        level: rule.level,
        source: rule.source.clone(),
        verdict: Verdict::NotJudged,
        judged: 0,
        findings: 0,
        reason: reason.to_owned(),
        says: rule.says.clone(),
        basis: Some(rule.basis),
        needs: Vec::new(),
    }
}
