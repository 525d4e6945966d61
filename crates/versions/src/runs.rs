//! Compares two stored runs: of two targets, or of one target at two times.
//!
//! Compares verdicts and judges nothing again.

use conformant_record::{Defect, Finding, Level, RuleResult, RunRecord, Verdict};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunDifference {
    /// [`super::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the first run.
    pub a: String,
    /// Name of the second run.
    pub b: String,
    /// Limits of the comparison.
    pub cautions: Vec<String>,
    /// Rules with different verdicts, by id.
    pub rules: Vec<VerdictDifference>,
    /// Scenarios with different verdicts, by id.
    pub scenarios: Vec<VerdictDifference>,
    /// Unspecified behaviors with different answers, by id.
    pub open_points: Vec<AnswerDifference>,
    /// Defects with findings of the second run only; their counts are of those findings.
    pub new_defects: Vec<Defect>,
    /// The same of the first run only.
    pub gone_defects: Vec<Defect>,
    /// Findings of the second run only.
    pub new: Vec<Finding>,
    /// Findings of the first run only, without those of scenarios that the second run left out.
    pub gone: Vec<Finding>,
}

/// Two verdicts of a rule or scenario; none in a run that did not select it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictDifference {
    pub id: String,
    /// Level; none for scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    pub a: Option<Verdict>,
    pub b: Option<Verdict>,
}

/// Two answers to one unspecified behavior.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerDifference {
    pub id: String,
    pub a: Vec<String>,
    pub b: Vec<String>,
}

/// Compares two runs.
pub fn runs(a: (&str, &RunRecord), b: (&str, &RunRecord)) -> RunDifference {
    let both = a.1.rules.iter().chain(&b.1.rules);
    let levels: BTreeMap<&str, Level> = both.map(|rule| (rule.id.as_str(), rule.level)).collect();
    let [rules_a, rules_b] = [a.1, b.1].map(|run| run.rules.iter().map(|r| (&*r.id, r.verdict)));
    let scenarios = [a.1, b.1].map(|run| run.scenarios.iter().map(|s| (&*s.id, s.verdict)));
    let [scenarios_a, scenarios_b] = scenarios;
    let verdicts = |level: Option<Level>, (id, a, b): Differing<Verdict>| VerdictDifference {
        id: id.to_owned(),
        level,
        a,
        b,
    };
    let rules = differing(rules_a, rules_b);
    let scenarios = differing(scenarios_a, scenarios_b);
    let new = only_in(&b.1.findings, &a.1.findings);
    let mut gone = only_in(&a.1.findings, &b.1.findings);
    gone.retain(|finding| !is_left_out(&finding.scenario, a.1, b.1));
    let mut difference = RunDifference {
        schema_version: super::SCHEMA_VERSION,
        a: a.0.to_owned(),
        b: b.0.to_owned(),
        cautions: Vec::new(),
        rules: rules
            .map(|one| verdicts(levels.get(one.0).copied(), one))
            .collect(),
        scenarios: scenarios.map(|one| verdicts(None, one)).collect(),
        open_points: answers(a.1, b.1),
        new_defects: defects_of(b.1, &new),
        gone_defects: defects_of(a.1, &gone),
        new,
        gone,
    };
    difference.cautions = cautions(a.1, b.1, difference.not_judged_again().count());
    difference
}

/// Whether only the first run concluded this scenario, so that the second one shows nothing of its findings.
fn is_left_out(id: &str, first: &RunRecord, second: &RunRecord) -> bool {
    let is_concluded = |run: &RunRecord| {
        let scenario = run.scenarios.iter().find(|scenario| scenario.id == id);
        is_judged(scenario.map(|scenario| scenario.verdict))
    };
    is_concluded(first) && !is_concluded(second)
}

/// The defects of a run that have some of these findings.
fn defects_of(run: &RunRecord, findings: &[Finding]) -> Vec<Defect> {
    let defects = match run.defects.as_slice() {
        [] => conformant_record::defects(&run.rules, &run.findings, &[]),
        defects => defects.to_vec(),
    };
    let of_findings = defects.into_iter().filter_map(|mut defect| {
        let mut scenarios: BTreeSet<&str> = BTreeSet::new();
        let mut rules: BTreeSet<&str> = BTreeSet::new();
        defect.findings = 0;
        for finding in findings.iter().filter(|f| defect.rules.contains(&f.rule)) {
            defect.findings += 1;
            scenarios.insert(&finding.scenario);
            rules.insert(&finding.rule);
        }
        defect.scenarios = scenarios.len();
        defect.rules.retain(|rule| rules.contains(rule.as_str()));
        (defect.findings > 0).then_some(defect)
    });
    of_findings.collect()
}

impl RunDifference {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.scenarios.is_empty()
            && self.open_points.is_empty()
            && self.new.is_empty()
            && self.gone.is_empty()
    }

    /// Must-rules that only the second run breaks.
    pub fn regressions(&self) -> impl Iterator<Item = &VerdictDifference> {
        self.rules.iter().filter(|d| {
            d.level == Some(Level::Must) && d.b == Some(Verdict::Fail) && d.a != Some(Verdict::Fail)
        })
    }

    /// Must-rules that only the first run judged, by id. What breaks them now is not a difference.
    pub fn not_judged_again(&self) -> impl Iterator<Item = &str> {
        let is_lost = |d: &&VerdictDifference| {
            d.level == Some(Level::Must) && is_judged(d.a) && !is_judged(d.b)
        };
        self.rules.iter().filter(is_lost).map(|d| d.id.as_str())
    }
}

fn is_judged(verdict: Option<Verdict>) -> bool {
    matches!(
        verdict,
        Some(Verdict::Pass | Verdict::Fail | Verdict::Waived)
    )
}

fn cautions(a: &RunRecord, b: &RunRecord, unjudged: usize) -> Vec<String> {
    let mut cautions = Vec::new();
    if unjudged > 0 {
        let judges =
            |rule: &&RuleResult| rule.level == Level::Must && is_judged(Some(rule.verdict));
        let judged = a.rules.iter().filter(judges).count();
        cautions.push(format!(
            "the second run has no result for {unjudged} of the {judged} must-rules that the first one judged"
        ));
    }
    if a.rulebook.digest != b.rulebook.digest {
        cautions.push("the runs were judged by different rulebooks".to_owned());
    }
    if a.tool.version != b.tool.version {
        let (a, b) = (&a.tool.version, &b.tool.version);
        cautions.push(format!(
            "the runs were judged by different versions: {a} and {b}"
        ));
    }
    for (name, run) in [("first", a), ("second", b)] {
        if !run.complete {
            cautions.push(format!("the {name} run was interrupted"));
        }
    }
    cautions
}

/// An id with what two runs have for it.
type Differing<'a, T> = (&'a str, Option<T>, Option<T>);

/// What differs between two runs, by id.
fn differing<'a, T: PartialEq>(
    a: impl Iterator<Item = (&'a str, T)>,
    b: impl Iterator<Item = (&'a str, T)>,
) -> impl Iterator<Item = Differing<'a, T>> {
    let mut all: BTreeMap<&str, (Option<T>, Option<T>)> = BTreeMap::new();
    for (id, value) in a {
        all.entry(id).or_default().0 = Some(value);
    }
    for (id, value) in b {
        all.entry(id).or_default().1 = Some(value);
    }
    let all = all.into_iter().map(|(id, (a, b))| (id, a, b));
    all.filter(|(_, a, b)| a != b)
}

fn answers(a: &RunRecord, b: &RunRecord) -> Vec<AnswerDifference> {
    let [a, b] = [a, b].map(|run| run.open_points.iter().map(|p| (&*p.id, &p.observed)));
    differing(a, b)
        .map(|(id, a, b)| AnswerDifference {
            id: id.to_owned(),
            a: a.cloned().unwrap_or_default(),
            b: b.cloned().unwrap_or_default(),
        })
        .filter(|difference| difference.a != difference.b)
        .collect()
}

/// Findings without a counterpart in the other run. Counterparts have the same rule, place and type of difference;
/// values, names and times differ between any two runs.
fn only_in(findings: &[Finding], other: &[Finding]) -> Vec<Finding> {
    fn key(f: &Finding) -> [&str; 6] {
        [
            &f.rule,
            &f.service,
            &f.operation,
            &f.scenario,
            &f.pointer,
            &f.kind,
        ]
    }
    let there: BTreeSet<[&str; 6]> = other.iter().map(key).collect();
    findings
        .iter()
        .filter(|f| !there.contains(&key(f)))
        .cloned()
        .collect()
}
