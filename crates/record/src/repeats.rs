//! Results of `run --repeat`: how verdicts are distributed over several runs of one plan.

use super::{RuleCounts, RunRecord, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Several runs of one plan with one seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// The number of runs that were requested.
    pub requested: usize,
    /// The runs that began, in order.
    pub runs: Vec<RepeatedRun>,
    /// The rules whose verdict is not the same in all runs, by id.
    pub rules: Vec<RepeatedRule>,
}

/// One of the runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedRun {
    /// The names that it used; empty without a live target.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub names: String,
    /// False if it was interrupted.
    pub complete: bool,
    /// Rules by verdict.
    pub rules: RuleCounts,
}

/// A rule whose verdict differs between the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedRule {
    /// Id of the rule.
    pub rule: String,
    /// Its verdict in each run.
    pub verdicts: Vec<Verdict>,
    /// Whether it failed in some runs and passed in others.
    pub flaky: bool,
    /// The first difference between the exchanges of a run in which it passed and one in which it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<ExchangeDifference>,
}

/// The first difference between the exchanges of one scenario in two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeDifference {
    /// The scenario.
    pub scenario: String,
    /// The step, counted from 1.
    pub step: usize,
    /// The operation, as `SERVICE/ID`.
    pub operation: String,
    /// `status`, `exchange` if one run did not send it, `body`, or a JSON Pointer into the response.
    pub place: String,
    /// The value in the run in which the rule passed; excerpted.
    pub passed: String,
    /// The value in the run in which the rule failed; excerpted.
    pub failed: String,
    /// The run in which the rule passed, counted from 1.
    pub passed_run: usize,
    /// The run in which the rule failed, counted from 1.
    pub failed_run: usize,
}

impl Repeats {
    /// Compares the verdicts of runs, which are given with their names.
    pub fn of(requested: usize, runs: &[(String, RunRecord)]) -> Self {
        let mut verdicts: BTreeMap<&str, Vec<Verdict>> = BTreeMap::new();
        for (at, (_, run)) in runs.iter().enumerate() {
            for rule in &run.rules {
                let of_rule = verdicts.entry(&rule.id).or_default();
                of_rule.resize(at, Verdict::NotJudged);
                of_rule.push(rule.verdict);
            }
        }
        let rules = verdicts.into_iter().filter_map(|(rule, mut verdicts)| {
            verdicts.resize(runs.len(), Verdict::NotJudged);
            let is_same = verdicts.iter().all(|verdict| *verdict == verdicts[0]);
            (!is_same).then(|| RepeatedRule {
                rule: rule.to_owned(),
                flaky: [Verdict::Pass, Verdict::Fail]
                    .iter()
                    .all(|verdict| verdicts.contains(verdict)),
                verdicts,
                difference: None,
            })
        });
        Self {
            requested,
            rules: rules.collect(),
            runs: runs
                .iter()
                .map(|(names, run)| RepeatedRun {
                    names: names.clone(),
                    complete: run.complete,
                    rules: run.summary.rules.clone(),
                })
                .collect(),
        }
    }

    pub fn flaky(&self) -> impl Iterator<Item = &RepeatedRule> {
        self.rules.iter().filter(|rule| rule.flaky)
    }
}

impl RepeatedRule {
    /// The number of runs with each verdict, in the order of their first run.
    pub fn distribution(&self) -> Vec<(Verdict, usize)> {
        let mut counts: Vec<(Verdict, usize)> = Vec::new();
        for verdict in &self.verdicts {
            match counts.iter_mut().find(|(known, _)| known == verdict) {
                Some((_, count)) => *count += 1,
                None => counts.push((*verdict, 1)),
            }
        }
        counts
    }

    /// The number of runs in which it failed.
    pub fn failures(&self) -> usize {
        let failed = self.verdicts.iter().filter(|v| **v == Verdict::Fail);
        failed.count()
    }
}
