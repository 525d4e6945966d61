//! Assembles the run record from the results of scenarios.

use super::concluded::{Concluded, VoidService};
use super::excerpt::Shown;
use super::needs::{Elsewhere, Needs, Stopped, needs_of};
use super::stop::{ENDED_BEFORE, Stop};
use super::summary::conclude_run;
use conformant_judge::Judgment;
use conformant_record::{
    Asked, Finding, Level, NOT_EXERCISED, OpenPointResult, RuleCounts, RuleResult, RulebookStamp,
    RunRecord, SCHEMA_VERSION, Subject, Summary, Tool, Verdict, count_scenarios,
    not_exercised_because_of,
};
use conformant_rulebook::{Origin, Rule, Rulebook};
use std::collections::{BTreeMap, BTreeSet};

/// Reason for a rule about a resource type that no exchange carries.
pub const ONLY_IN_FILES: &str = "no exchange carries one: `conformant check` judges it";

/// Collects conclusions into a record.
#[derive(Debug)]
pub struct Recorder<'a> {
    rulebook: &'a Rulebook,
    targets: BTreeMap<String, String>,
    seed: u64,
    scenarios: Vec<Concluded>,
    /// For each rule with an excerpt, the first scenario by id.
    first_shown: BTreeMap<String, String>,
    /// The merged judgment of all finished scenarios. Findings stay with their scenario to keep their order.
    whole: Judgment,
    /// Why rules could not be judged.
    reasons: BTreeMap<String, BTreeSet<(Why, String)>>,
}

impl<'a> Recorder<'a> {
    /// A recorder for one run.
    pub fn new(rulebook: &'a Rulebook, targets: BTreeMap<String, String>, seed: u64) -> Self {
        Self {
            rulebook,
            targets,
            seed,
            scenarios: Vec::new(),
            first_shown: BTreeMap::new(),
            whole: Judgment::default(),
            reasons: BTreeMap::new(),
        }
    }

    /// Voids the results of a service in the scenarios that it turned away.
    pub fn void_service(&mut self, void: &VoidService) {
        for concluded in &mut self.scenarios {
            if concluded.is_turned_away_by(&void.service) {
                concluded.judgment = concluded.judgment.void(&void.why);
                concluded.result.verdict = Verdict::Inconclusive;
                concluded.result.reason.clone_from(&void.why);
            }
        }
    }

    /// Adds the result of a scenario.
    pub fn add(&mut self, mut concluded: Concluded) {
        self.settle(&mut concluded);
        self.scenarios.push(concluded);
    }

    /// Merges the judgment of a scenario, in any order, and leaves its findings with it. Of each rule, only the
    /// excerpt of the first scenario by id is kept, preferably of the main account, which bounds the memory.
    pub fn settle(&mut self, concluded: &mut Concluded) {
        let id = &concluded.result.id;
        for rule in concluded.shown.rules() {
            let first = self
                .first_shown
                .entry(rule.to_owned())
                .or_insert_with(|| id.clone());
            let rank = |id: &str| (conformant_record::is_of_other_account(id), id.to_owned());
            if rank(id) < rank(first) {
                first.clone_from(id);
            }
        }
        concluded.keep_shown(&self.first_shown);
        // It may be voided later.
        if concluded.turned_away.is_some() {
            return;
        }
        let judgment = std::mem::take(&mut concluded.judgment);
        let kind = Why::of(concluded.stopped.as_ref());
        for (rule, tally) in &judgment.tallies {
            for why in &tally.inconclusive {
                let reasons = self.reasons.entry(rule.clone()).or_default();
                reasons.insert((kind, why.clone()));
            }
        }
        concluded.judgment.findings = self.whole.merge_tallies(judgment);
    }

    /// Adds a judgment that belongs to no scenario, under this name.
    pub fn add_judgment(&mut self, name: &str, judgment: Judgment) {
        let is_judged = judgment.tallies.values().any(|tally| tally.judged() > 0);
        let mut concluded = conclude_run(name, judgment, None, 0, 0.0);
        if concluded.result.verdict == Verdict::Pass && !is_judged {
            concluded.result.verdict = Verdict::NotJudged;
        }
        self.add(concluded);
    }

    /// The record with the rules that were judged at all, filtered by `selects`.
    pub fn finish_judged(self, selects: impl Fn(&Rule) -> bool) -> RunRecord {
        let unsettled = self.scenarios.iter().map(|c| &c.judgment);
        let judged: BTreeSet<String> = unsettled
            .chain([&self.whole])
            .flat_map(|judgment| &judgment.tallies)
            .filter(|(_, tally)| !tally.is_vacuous())
            .map(|(rule, _)| rule.clone())
            .collect();
        self.finish(|rule| selects(rule) && judged.contains(&rule.id), true)
    }

    /// The record with the rules that `selects` or that were broken: a scenario may break a rule of another service.
    /// `complete` states whether everything ran.
    pub fn finish(mut self, selects: impl Fn(&Rule) -> bool, complete: bool) -> RunRecord {
        self.scenarios.sort_by(|a, b| a.result.id.cmp(&b.result.id));
        let mut findings = Vec::new();
        let mut exchanges = 0;
        let mut services: BTreeMap<String, Asked> = BTreeMap::new();
        // The sum over scenarios does not depend on the number of threads.
        let seconds = self.scenarios.iter().map(|c| c.result.seconds).sum();
        let mut scenarios = Vec::new();
        let mut shown = Shown::default();
        let mut stopped = BTreeSet::new();
        for mut concluded in std::mem::take(&mut self.scenarios) {
            if concluded.has_stopped_early() {
                stopped.insert(concluded.result.id.clone());
            }
            // What is still there to void was voided.
            concluded.turned_away = None;
            self.settle(&mut concluded);
            concluded.keep_shown(&self.first_shown);
            concluded.shown.count_from(exchanges);
            for step in &mut concluded.result.steps {
                if step.exchange > 0 {
                    step.exchange += exchanges;
                }
            }
            shown.append(concluded.shown);
            for finding in &mut concluded.judgment.findings {
                if finding.exchange > 0 {
                    finding.exchange += exchanges;
                }
                if finding.earlier_exchange > 0 {
                    finding.earlier_exchange += exchanges;
                }
            }
            exchanges += concluded.exchanges;
            for (service, asked) in concluded.services {
                services.entry(service).or_default().add(asked);
            }
            findings.append(&mut concluded.judgment.findings);
            scenarios.push(concluded.result);
        }
        let broken: BTreeSet<&str> = findings.iter().map(|f| f.rule.as_str()).collect();
        let selects = |rule: &Rule| selects(rule) || broken.contains(rule.id.as_str());
        let needs = needs_of(self.rulebook, &scenarios);
        let (stopped, ended): (Vec<&str>, Vec<&str>) = scenarios
            .iter()
            .filter(|scenario| !matches!(scenario.verdict, Verdict::NotApplicable))
            .map(|scenario| scenario.id.as_str())
            .partition(|id| stopped.contains(*id));
        let elsewhere = Elsewhere::new(self.rulebook, &scenarios);
        let stopped = Stopped::new(self.rulebook, &stopped, &ended);
        let rules = rules_of(
            self.rulebook,
            selects,
            &mut self.whole,
            &self.reasons,
            (&needs, &stopped, &elsewhere),
        );
        let summary = Summary {
            rules: RuleCounts::count(&rules),
            scenarios: count_scenarios(&scenarios),
            exchanges,
            seconds,
            clock_seconds: None,
            services,
        };
        RunRecord {
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "conformant".into(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
            rulebook: RulebookStamp {
                digest: self.rulebook.digest().to_owned(),
            },
            targets: self.targets,
            seed: self.seed,
            complete,
            partition: None,
            summary,
            rules,
            findings,
            open_points: self
                .whole
                .observed
                .into_iter()
                .map(|(id, observed)| {
                    let point = self.rulebook.open_points.get(&id).map(|entry| &entry.point);
                    OpenPointResult {
                        observed: observed.into_iter().collect(),
                        says: point.map(|p| p.says.clone()).unwrap_or_default(),
                        treatment: point.map(|p| p.treatment.clone()).unwrap_or_default(),
                        id,
                    }
                })
                .collect(),
            scenarios,
            exchanges: shown.exchanges.into_values().map(|shown| shown.1).collect(),
            deliveries: shown.payloads.into_values().collect(),
            ..RunRecord::default()
        }
    }
}

/// The results of all selected rules and of the judged client rules, by id.
fn rules_of(
    rulebook: &Rulebook,
    selects: impl Fn(&Rule) -> bool,
    whole: &mut Judgment,
    reasons: &BTreeMap<String, BTreeSet<(Why, String)>>,
    (needs, stopped, elsewhere): (&Needs, &Stopped, &Elsewhere<'_>),
) -> Vec<RuleResult> {
    let carried = carried_kinds(rulebook);
    let mut rules = Vec::new();
    for rule in rulebook.rules.values().filter(|r| selects(r)) {
        let mut result = conclude(rule, whole, reasons.get(&rule.id));
        let kind = rule.kind();
        if result.verdict == Verdict::NotJudged && kind.is_some_and(|k| !carried.contains(k)) {
            result.verdict = Verdict::NotApplicable;
            result.reason = ONLY_IN_FILES.to_owned();
            result.needs = vec!["check".to_owned()];
        } else if result.judged == 0 {
            result.needs = needs.for_rule(rule, &result.reason, stopped);
        }
        if result.reason == NOT_EXERCISED && result.needs.is_empty() {
            if let Some(before) = stopped.before(rule) {
                result.reason = not_exercised_because_of(before);
            } else if let Some(why) = elsewhere.reason(rulebook, rule) {
                // It was tried, and the links were not followed.
                result.verdict = Verdict::Inconclusive;
                why.clone_into(&mut result.reason);
            }
        }
        rules.push(result);
    }
    // Client rules are judged on request. Their findings do not count against a service.
    for rule in rulebook.requests.values() {
        if whole.tallies.contains_key(&rule.id) {
            rules.push(RuleResult {
                subject: Subject::Request,
                ..conclude(rule, whole, None)
            });
        }
    }
    rules.sort_by(|a, b| a.id.cmp(&b.id));
    rules
}

/// Types that an exchange, a callback or an event can carry.
fn carried_kinds(rulebook: &Rulebook) -> BTreeSet<String> {
    let mut kinds: BTreeSet<String> = rulebook.event_types.values().flatten().cloned().collect();
    for service in rulebook.services.values() {
        kinds.insert(format!("{}/list-meta", service.name));
        for operation in service.operations.values() {
            kinds.extend(operation.response.iter().chain(&operation.error).cloned());
        }
        for (scenario, _) in service.scenarios.values() {
            kinds.extend(
                scenario
                    .steps
                    .iter()
                    .filter_map(|step| step.judge().cloned()),
            );
        }
    }
    let items: Vec<String> = kinds
        .iter()
        .filter_map(|kind| rulebook.kinds.get(kind)?.page_of.as_ref())
        .map(|(item, _)| item.clone())
        .collect();
    kinds.extend(items);
    kinds
}

/// Why a rule could not be judged in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    NotApplicable,
    Inconclusive,
    Error,
}

impl Why {
    fn of(stop: Option<&Stop>) -> Self {
        match stop {
            Some(Stop::NotApplicable(_)) => Self::NotApplicable,
            Some(Stop::Error(_)) => Self::Error,
            Some(
                Stop::Inconclusive(_)
                | Stop::Unexpected
                | Stop::Interrupted
                | Stop::Unreachable(_)
                | Stop::HookFailed(_)
                | Stop::Misconfigured(_)
                | Stop::Masked(_),
            )
            | None => Self::Inconclusive,
        }
    }
}

fn conclude(
    rule: &Rule,
    whole: &mut Judgment,
    reasons: Option<&BTreeSet<(Why, String)>>,
) -> RuleResult {
    if let Origin::Either = rule.origin {
        check_either(rule, whole);
    }
    let tally = whole.tallies.get(&rule.id).cloned().unwrap_or_default();
    let was_cut = reasons.is_some_and(|r| r.iter().any(|(_, why)| why == ENDED_BEFORE));
    let worst = reasons.and_then(|r| r.iter().next_back());
    let masked_by = tally.masked_by.first().filter(|_| worst.is_none()).cloned();
    let verdict = if tally.findings() > 0 {
        Verdict::Fail
    } else if matches!(rule.level, Level::Open | Level::May) {
        Verdict::Open
    } else if tally.judged() > 0 && was_cut {
        // Other scenarios judged it, and the step that would have broken it may be missing.
        Verdict::Inconclusive
    } else if tally.judged() > 0 {
        Verdict::Pass
    } else {
        match worst {
            Some((Why::NotApplicable, _)) => Verdict::NotApplicable,
            Some((Why::Inconclusive, _)) => Verdict::Inconclusive,
            Some((Why::Error, _)) => Verdict::Error,
            None if masked_by.is_some() => Verdict::NotApplicable,
            None => Verdict::NotJudged,
        }
    };
    let reason = match verdict {
        Verdict::Inconclusive if was_cut => ENDED_BEFORE.to_owned(),
        Verdict::Inconclusive | Verdict::NotApplicable | Verdict::Error => {
            let masked = masked_by
                .as_ref()
                .map(|broken| format!("masked by {broken}"));
            let worst = worst.map(|(_, why)| why.clone());
            worst.or(masked).unwrap_or_default()
        }
        Verdict::NotJudged => match tally.vacuous.keys().next() {
            Some(why) => format!("no evidence to decide: {}", why.words()),
            None => NOT_EXERCISED.to_owned(),
        },
        Verdict::Pass | Verdict::Fail | Verdict::Open | Verdict::Waived => String::new(),
    };
    RuleResult {
        id: rule.id.clone(),
        level: rule.level,
        source: rule.source.clone(),
        verdict,
        judged: tally.judged(),
        findings: tally.findings(),
        subject: Subject::Service,
        masked_by: masked_by.filter(|_| verdict == Verdict::NotApplicable),
        reason,
        says: rule.says.clone(),
        basis: Some(rule.basis),
        needs: Vec::new(),
    }
}

/// Reports a finding if a run contains two different answers; any single answer is accepted.
fn check_either(rule: &Rule, whole: &mut Judgment) {
    let Some(observed) = whole.observed.get(&rule.id) else {
        return;
    };
    let words: Vec<String> = observed.iter().cloned().collect();
    let finding = (words.len() > 1).then(|| Finding {
        rule: rule.id.clone(),
        level: Level::Must,
        service: rule.service.clone(),
        kind: "check_either".into(),
        expected: "one answer throughout the run".into(),
        actual: words.join(" and "),
        message: format!(
            "answered in {} ways within one run: {}",
            words.len(),
            words.join(", ")
        ),
        ..Finding::default()
    });
    whole.conclude(&rule.id, finding);
}
