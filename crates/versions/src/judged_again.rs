//! Judges a stored run with another rulebook, as far as the record allows.
//!
//! A record contains findings, not exchanges. So levels, removed rules and counts are computed again. New or changed
//! rules are reported as not judged. `waivers` applies waivers afterwards.

use conformant_base::source::Source;
use conformant_record::{Level, RuleCounts, RuleResult, RunRecord, Subject, Verdict};
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
    record
        .findings
        .retain(|finding| rulebook.rule(&finding.rule).is_some());
    let mut per_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &record.findings {
        *per_rule.entry(finding.rule.as_str()).or_default() += 1;
    }
    let mut rules = Vec::new();
    for known in &stored.rules {
        match rulebook.rule(&known.id) {
            None => notes.push(format!("{} is not a rule of this rulebook", known.id)),
            Some(rule) => {
                let findings = per_rule.get(known.id.as_str()).copied().unwrap_or_default();
                rules.push(RuleResult {
                    says: rule.says.clone(),
                    basis: Some(rule.basis),
                    ..conclude(known, rule.level, &rule.source, findings, &mut notes)
                });
            }
        }
    }
    if !is_same {
        let services: BTreeSet<&str> = stored
            .rules
            .iter()
            .filter_map(|known| known.id.split('/').next())
            .collect();
        for rule in rulebook.rules.values() {
            let selected = services.contains(rule.service.as_str());
            if selected && !stored.rules.iter().any(|known| known.id == rule.id) {
                rules.push(unseen(rule));
            }
        }
        notes.push(
            "the run was judged with another rulebook: requirements are those of that rulebook, because the record \
             has no exchanges"
                .to_owned(),
        );
    }
    rules.sort_by(|a, b| a.id.cmp(&b.id));
    let levels: BTreeMap<&str, Level> = rules.iter().map(|r| (r.id.as_str(), r.level)).collect();
    // A rule that is now a recommendation is not broken.
    record.findings.retain_mut(|finding| {
        finding.waived.clear();
        let level = levels.get(finding.rule.as_str()).copied();
        finding.level = level.unwrap_or(Level::Open);
        matches!(finding.level, Level::Must | Level::Should)
    });
    record.summary.rules = RuleCounts::count(&rules);
    record.rules = rules;
    JudgedAgain { record, notes }
}

fn conclude(
    known: &RuleResult,
    level: Level,
    source: &Source,
    findings: usize,
    notes: &mut Vec<String>,
) -> RuleResult {
    if level != known.level {
        notes.push(format!("{} was {:?} and is {level:?}", known.id, known.level).to_lowercase());
    }
    let (verdict, findings) = match level {
        Level::May | Level::Open => (observed(known), 0),
        Level::Must | Level::Should if findings > 0 => (Verdict::Fail, findings),
        Level::Must | Level::Should => (held(known, notes), 0),
    };
    let reason = if verdict == known.verdict {
        known.reason.clone()
    } else {
        String::new()
    };
    let masked_by = known.masked_by.clone().filter(|_| verdict == known.verdict);
    RuleResult {
        masked_by,
        level,
        source: source.clone(),
        verdict,
        findings,
        reason,
        ..known.clone()
    }
}

/// The verdict of a rule without findings.
fn held(known: &RuleResult, notes: &mut Vec<String>) -> Verdict {
    match known.verdict {
        // Waived findings are in the record, unless an older program left them out.
        Verdict::Waived => {
            notes.push(format!(
                "{} stays waived: its findings are not in the record",
                known.id
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
fn observed(known: &RuleResult) -> Verdict {
    match known.verdict {
        Verdict::Pass | Verdict::Fail | Verdict::Waived | Verdict::Open => Verdict::Open,
        other @ (Verdict::Inconclusive
        | Verdict::NotApplicable
        | Verdict::Error
        | Verdict::NotJudged) => other,
    }
}

fn unseen(rule: &Rule) -> RuleResult {
    RuleResult {
        subject: Subject::Service,
        masked_by: None,
        id: rule.id.clone(),
        level: rule.level,
        source: rule.source.clone(),
        verdict: Verdict::NotJudged,
        judged: 0,
        findings: 0,
        reason: "the stored run is older than this rule".to_owned(),
        says: rule.says.clone(),
        basis: Some(rule.basis),
        needs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::run;
    use super::*;

    const RULE: &str = "flow/execution/only-ends";

    fn book(level: Level) -> Rulebook {
        let mut book =
            conformant_judge::load::embedded().unwrap_or_else(|problems| panic!("{problems}"));
        book.rules
            .retain(|rule| rule.id == RULE || rule.id == "flow/execution/sid");
        book.rules.get_mut(RULE).unwrap().level = level;
        book
    }

    fn verdict(again: &JudgedAgain, id: &str) -> (Verdict, Level) {
        let rule = again
            .record
            .rules
            .iter()
            .find(|rule| rule.id == id)
            .unwrap();
        (rule.verdict, rule.level)
    }

    #[test]
    fn levels_are_those_of_the_rulebook() {
        let stored = run("flow/a", &[(RULE, Verdict::Fail)]);
        let again = judge_again(&stored, &book(Level::Should));
        assert_eq!(verdict(&again, RULE), (Verdict::Fail, Level::Should));
        assert_eq!(again.record.findings[0].level, Level::Should);
        let again = judge_again(&stored, &book(Level::Open));
        assert_eq!(verdict(&again, RULE), (Verdict::Open, Level::Open));
        assert_eq!(again.record.findings, []);
        assert_eq!(
            (
                again.record.summary.rules.fail,
                again.record.summary.rules.open
            ),
            (0, 1)
        );
    }

    #[test]
    fn a_rule_that_was_not_judged_does_not_pass() {
        let stored = run("flow/a", &[(RULE, Verdict::Open)]);
        let again = judge_again(&stored, &book(Level::Must));
        assert_eq!(verdict(&again, RULE).0, Verdict::NotJudged);
        assert_eq!(verdict(&again, "flow/execution/sid").0, Verdict::NotJudged);
    }

    #[test]
    fn a_rule_that_is_gone_takes_its_findings_along() {
        let stored = run(
            "flow/a",
            &[("flow/gone", Verdict::Fail), (RULE, Verdict::Pass)],
        );
        let again = judge_again(&stored, &book(Level::Must));
        assert_eq!(again.record.findings, []);
        assert!(
            again
                .notes
                .iter()
                .any(|note| note == "flow/gone is not a rule of this rulebook")
        );
        assert_eq!(again.record.summary.rules.pass, 1);
    }

    #[test]
    fn the_same_rulebook_concludes_the_same() {
        let book = book(Level::Must);
        let mut stored = run(
            "flow/a",
            &[("flow/execution/sid", Verdict::Pass), (RULE, Verdict::Fail)],
        );
        book.digest().clone_into(&mut stored.rulebook.digest);
        let again = judge_again(&stored, &book);
        assert_eq!(again.notes, Vec::<String>::new());
        let verdicts = |run: &RunRecord| run.rules.iter().map(|r| r.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&again.record), [Verdict::Fail, Verdict::Pass]);
        assert_eq!(again.record.summary, stored.summary);
    }
}
