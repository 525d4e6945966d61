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
    fn a_scenario_fails_only_if_it_breaks_a_must_rule() {
        let stored = run("flow/a", &[(RULE, Verdict::Fail)]);
        for (level, expected) in [
            (Level::Must, Verdict::Fail),
            (Level::Should, Verdict::Pass),
            (Level::May, Verdict::Pass),
        ] {
            let record = judge_again(&stored, &book(level)).record;
            assert_eq!(record.scenarios[0].verdict, expected, "{level:?}");
            let counts = [(expected.word().to_owned(), 1)].into();
            assert_eq!(record.summary.scenarios, counts, "{level:?}");
        }
        // A warning that became a requirement fails its scenario.
        let mut warned = stored;
        warned.findings[0].level = Level::Should;
        warned.scenarios[0].verdict = Verdict::Pass;
        let record = judge_again(&warned, &book(Level::Must)).record;
        assert_eq!(record.scenarios[0].verdict, Verdict::Fail);
    }

    #[test]
    fn a_rule_with_another_sentence_is_not_judged() {
        for before in [Verdict::Pass, Verdict::Fail] {
            let mut stored = run("flow/a", &[(RULE, before)]);
            stored.rules[0].says = "A sentence of an earlier rulebook.".to_owned();
            let again = judge_again(&stored, &book(Level::Must));
            assert_eq!(verdict(&again, RULE), (Verdict::NotJudged, Level::Must));
            assert_eq!(again.record.findings, []);
            assert_eq!(again.record.scenarios[0].verdict, Verdict::Pass);
            let note = format!("so it is not judged; its verdict was {}", before.word());
            assert!(again.notes.iter().any(|n| n.ends_with(&note)), "{again:?}");
        }
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
