//! The estimated detection rate of a run: the share of the defects of an unknown implementation that it would report.
//!
//! - A class of defects is the topic of the rules that report them: `SERVICE/TOPIC`.
//! - The weight of a class is the mean of its shares among the defects of a third-party implementation and the faults of the reference.
//! - The coverage of a class is the share of the rules that catch its faults, by fault, that this run judged.
//! - The rate of a run that judges every rule is the one measured in first runs against implementations whose defects no
//!   rule was written for. Its error follows from how much these implementations differ.
//!
//! The book has the method (`docs/src/detection.md`). No verdict and no exit code depends on it.

use super::{FaultPattern, Level, RuleResult, RunRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The named measures that would raise the estimate.
const RAISES_MAX: usize = 3;
/// The measure that makes warnings count.
pub const STRICT: &str = "--strict";

/// The estimate for one run, in percent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Detection {
    /// The estimate.
    pub percent: u32,
    /// The lower end of its range.
    pub low: u32,
    /// The upper end.
    pub high: u32,
    /// What would raise it most, the greatest effect first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised_by: Vec<Raise>,
}

/// A measure that raises the estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Raise {
    /// `hook NAME`, `key NAME`, `callbacks` or `--strict`.
    pub by: String,
    /// The estimate with it.
    pub percent: u32,
}

/// The faults and third-party defects with which the defects of a run are compared.
#[derive(Clone, Debug, Default)]
pub struct KnownDefects {
    /// The faults of the reference.
    pub faults: Vec<FaultPattern>,
    /// For each defect of a third-party implementation, the classes of the rules that report it; empty if none does.
    pub third_party: Vec<Vec<String>>,
    /// For each implementation whose defects no rule was written for, what the first run reported.
    pub first_runs: Vec<FirstRun>,
}

/// What the first run against an implementation reported of its defects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstRun {
    /// The language of the implementation.
    pub written_in: String,
    /// The number of its defects.
    pub defects: usize,
    /// How many of them were failures.
    pub failed: usize,
    /// How many were warnings only, which fail with `--strict`.
    pub warned: usize,
}

/// The estimate; `None` if nothing is known of defects, or if the run ended early: which steps a rule lacks is unknown.
pub(super) fn detection(
    record: &RunRecord,
    known: &KnownDefects,
    is_strict: bool,
) -> Option<Detection> {
    if !record.complete || known.faults.is_empty() || known.first_runs.is_empty() {
        return None;
    }
    let run = Run::new(&record.rules, known);
    let share = |strict: bool, extra: Option<&str>| {
        let (rate, _) = measured(&known.first_runs, strict);
        rate * run.coverage(strict, extra)
    };
    let estimate = share(is_strict, None);
    let mut raised_by: Vec<Raise> = run
        .needs()
        .into_iter()
        .map(|need| raise(need, share(is_strict, Some(need))))
        .collect();
    if !is_strict {
        raised_by.push(raise(STRICT, share(true, None)));
    }
    raised_by.retain(|one| one.percent > percent(estimate));
    raised_by.sort_by(|a, b| b.percent.cmp(&a.percent).then_with(|| a.by.cmp(&b.by)));
    raised_by.truncate(RAISES_MAX);
    let (_, deviation) = measured(&known.first_runs, is_strict);
    let spread = 2.0 * deviation * run.coverage(is_strict, None);
    Some(Detection {
        percent: percent(estimate),
        low: percent(estimate - spread),
        high: percent(estimate + spread),
        raised_by,
    })
}

/// The share of defects that first runs reported, and the standard deviation of this share for one more implementation:
/// how much the measured ones differ, and how uncertain their mean is.
fn measured(first_runs: &[FirstRun], is_strict: bool) -> (f64, f64) {
    let reported = |run: &FirstRun| run.failed + if is_strict { run.warned } else { 0 };
    let rates: Vec<f64> = first_runs
        .iter()
        .map(|run| real(reported(run)) / real(run.defects.max(1)))
        .collect();
    let count = real(rates.len());
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let variance = squares / (count - 1.0).max(1.0);
    (mean, (variance * (1.0 + 1.0 / count)).sqrt())
}

fn raise(by: &str, share: f64) -> Raise {
    Raise {
        by: by.to_owned(),
        percent: percent(share),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0 to 100"
)]
fn percent(share: f64) -> u32 {
    (share * 100.0).round().clamp(0.0, 100.0) as u32
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn real(count: usize) -> f64 {
    count as f64
}

/// The rules of one run, and the weights of classes.
struct Run<'a> {
    rules: BTreeMap<&'a str, &'a RuleResult>,
    faults: Vec<Fault<'a>>,
    /// Only classes of services that were judged.
    weights: BTreeMap<&'a str, f64>,
}

/// A fault of the reference.
struct Fault<'a> {
    classes: BTreeSet<&'a str>,
    /// The rules that catch it, each with whether a violation fails a run that is not strict.
    rules: Vec<(&'a str, bool)>,
}

impl<'a> Run<'a> {
    fn new(rules: &'a [RuleResult], known: &'a KnownDefects) -> Self {
        let rules: BTreeMap<&str, &RuleResult> =
            rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
        let is_elsewhere = |rule: &RuleResult| {
            !rule.needs.is_empty() && rule.needs.iter().all(|need| need.starts_with("service "))
        };
        let services: BTreeSet<&str> = rules
            .values()
            .filter(|rule| !is_elsewhere(rule))
            .map(|rule| service_of(&rule.id))
            .collect();
        let fails = |id: &str| rules.get(id).is_none_or(|rule| rule.level == Level::Must);
        let fault = |fault: &'a FaultPattern| Fault {
            classes: fault.rules.iter().map(|rule| class_of(rule)).collect(),
            rules: (fault.rules.iter())
                .map(|id| (id.as_str(), fails(id)))
                .collect(),
        };
        let faults: Vec<Fault<'_>> = known.faults.iter().map(fault).collect();
        let third_party: Vec<BTreeSet<&str>> = known
            .third_party
            .iter()
            .map(|of| of.iter().map(String::as_str).collect())
            .collect();
        let named = faults.iter().map(|fault| &fault.classes).collect();
        let mut weights = BTreeMap::new();
        for source in [third_party.iter().collect(), named] {
            let source: Vec<&BTreeSet<&str>> = source;
            let is_judged = |class: &&&'a str| services.contains(service_of(class));
            let all: usize = source
                .iter()
                .filter(|of| of.iter().any(|c| is_judged(&c)))
                .count();
            for of in source {
                for class in of.iter().filter(is_judged) {
                    *weights.entry(*class).or_default() += 0.5 / real(of.len()) / real(all);
                }
            }
        }
        Self {
            rules,
            faults,
            weights,
        }
    }

    /// The share of faults that the judged rules report, weighted by class, of those that all rules report; `extra`
    /// is a need that counts as met.
    fn coverage(&self, is_strict: bool, extra: Option<&str>) -> f64 {
        let judged: BTreeSet<&str> = (self.rules.values())
            .filter(|rule| is_judged(rule, extra))
            .map(|rule| rule.id.as_str())
            .collect();
        let reported = self.reported(is_strict, |rule| judged.contains(rule));
        let by_all = self.reported(is_strict, |_| true);
        if by_all > 0.0 { reported / by_all } else { 0.0 }
    }

    /// The share of faults that the rules for which `is_judged` holds report, weighted by class.
    fn reported(&self, is_strict: bool, is_judged: impl Fn(&str) -> bool) -> f64 {
        let mut shares: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for fault in &self.faults {
            let share = fault.share(is_strict, &is_judged);
            for class in &fault.classes {
                let (covered, all) = shares.entry(class).or_default();
                *covered += share / real(fault.classes.len());
                *all += 1.0 / real(fault.classes.len());
            }
        }
        let mut covered = 0.0;
        for (class, weight) in &self.weights {
            // No fault shows how often a class without one is covered.
            if let Some((of_class, count)) = shares.get(class) {
                covered += weight * of_class / count;
            }
        }
        covered
    }

    /// What rules that were not judged need: hooks, keys, callbacks.
    fn needs(&self) -> BTreeSet<&'a str> {
        let needs = self.rules.values().flat_map(|rule| &rule.needs);
        let needs = needs.filter(|need| {
            need.starts_with("hook ") || need.starts_with("key ") || *need == "callbacks"
        });
        needs.map(String::as_str).collect()
    }
}

impl Fault<'_> {
    /// The share of the rules that catch the fault and were judged. Warnings count in strict runs only.
    fn share(&self, is_strict: bool, is_judged: impl Fn(&str) -> bool) -> f64 {
        let has_must = self.rules.iter().any(|(_, fails)| *fails);
        let counts = |fails: bool| fails || is_strict && !has_must;
        let rules = self.rules.iter().filter(|(_, fails)| counts(*fails));
        let (all, judged) = rules.fold((0, 0), |(all, judged), (rule, _)| {
            (all + 1, judged + usize::from(is_judged(rule)))
        });
        if all == 0 {
            0.0
        } else {
            real(judged) / real(all)
        }
    }
}

/// Whether a rule was judged, or would be if `extra` were met.
fn is_judged(rule: &RuleResult, extra: Option<&str>) -> bool {
    let met = |need: &String| extra == Some(need.as_str());
    let would_be = !rule.needs.is_empty() && rule.needs.iter().all(met);
    // A vacuous rule was evaluated, and is not judged.
    let is_judged = rule.judged > 0 && !rule.verdict.is_undecided();
    is_judged || rule.findings > 0 || would_be
}

/// `SERVICE/TOPIC` of a rule.
fn class_of(rule: &str) -> &str {
    let mut slashes = rule.match_indices('/');
    slashes.nth(1).map_or(rule, |(at, _)| &rule[..at])
}

fn service_of(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}
