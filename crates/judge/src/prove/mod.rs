//! Mutation testing: mutates the recorded evidence of a scenario, one place at a time, and evaluates the rules again.
//!
//! - Runs directly after a scenario, while its evidence is in memory, so that memory does not grow with the run.
//! - Sends no requests.
//! - The result depends on the seed and the scenarios, not on the order in which they end.

mod sample;
mod survivors;

use crate::evidence::Evidence;

use crate::{
    DocumentCache, Judgment, Mutation, Sites, Tally, judge_rule, mutations_of, validate_site,
};
use conformant_base::parallel::{lock, recovered};
use conformant_record::{Changes, Level, Proof, RuleCounts, RunRecord, VACUOUS, Verdict};
use conformant_rulebook::{Origin, Rule, Rulebook};
use conformant_schema::Schemas;
use sample::Sampler;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Mutations of one scenario for a rule that has detected one of them.
const MUTATIONS_MAX: usize = 8;
/// Mutations of one scenario for a rule that has detected none.
const UNDETECTED_MAX: usize = 64;
/// Attempts to mutate one scenario for a rule, including those that change nothing.
const TRIED_MAX: usize = 192;
/// Examples of one rule in one scenario: the first ones and the last one.
pub const EXAMPLES_MAX: usize = 3;
/// Scenarios in which a rule is tested until it detects a mutation, in order of priority and then of id.
const SCENARIOS_MAX: usize = 16;
/// Largest document in values. Scenarios with larger ones are not mutated, because each mutation copies one.
const VALUES_MAX: usize = 20_000;
/// Largest document in bytes of text.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Most exchanges of a scenario that is mutated: each mutation evaluates all of them again. A rule that only longer
/// scenarios exercise, such as one of an endless list, stays untested.
const EXCHANGES_MAX: usize = 256;

/// The extent of mutation testing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// None.
    Off,
    /// Tests each rule that passed.
    #[default]
    Rules,
    /// Tests each rule that passed, and samples mutations for a mutation score.
    Sample,
}

impl Mode {
    /// The value of the option and of the record.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Rules => "rules",
            Self::Sample => "sample",
        }
    }
}

/// Runs mutation testing on the scenarios of one run.
#[derive(Debug)]
pub struct Prover<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    mode: Mode,
    /// By rule, then by scenario.
    tried: Mutex<BTreeMap<&'a str, ScenarioResults>>,
    sampler: Sampler,
}

/// The priority of a scenario: the class of its resource claim, its longest real time, its shortest target time. It is
/// close to the order in which scenarios end, so that few mutations are wasted.
pub type Priority = (u8, Reverse<Duration>, Duration);

/// The results of a rule in its first scenarios by priority and id, up to the first that detects a mutation.
#[derive(Debug, Default)]
struct ScenarioResults(BTreeMap<(Priority, String), Changes>);

impl ScenarioResults {
    /// Whether the scenario still counts: no earlier one led to a detected mutation, and the limit is not reached.
    fn counts(&self, scenario: &(Priority, String)) -> bool {
        let earlier = || self.0.range(..scenario);
        earlier().all(|(_, changes)| changes.broke == 0) && earlier().count() < SCENARIOS_MAX
    }

    fn add(&mut self, scenario: &(Priority, String), changes: Changes) {
        if changes.made == 0 || !self.counts(scenario) {
            return;
        }
        self.0.insert(scenario.clone(), changes);
        // Scenarios after the first detected mutation do not count, so that the order of completion has no effect.
        let first = self.0.iter().position(|(_, changes)| changes.broke > 0);
        let kept = first
            .map_or(SCENARIOS_MAX, |first| first + 1)
            .min(SCENARIOS_MAX);
        while self.0.len() > kept {
            self.0.pop_last();
        }
    }

    fn whole(&self) -> Changes {
        let mut whole = Changes::default();
        self.0.values().for_each(|changes| whole.add(*changes));
        whole
    }
}

impl<'a> Prover<'a> {
    /// A prover for one run with this number of scenarios.
    pub fn new(
        rulebook: &'a Rulebook,
        schemas: &'a Schemas,
        mode: Mode,
        seed: u64,
        scenarios: usize,
    ) -> Self {
        Self {
            rulebook,
            schemas,
            mode,
            tried: Mutex::default(),
            sampler: Sampler::new(seed, scenarios),
        }
    }

    /// Mutates the evidence of a scenario and restores it. `judgment` has its verdicts with examples; the cache has its
    /// documents. Ends soon after an interruption; the rule that it then tests counts as untested.
    pub fn test_scenario(
        &self,
        priority: Priority,
        evidence: &mut Evidence,
        judgment: &Judgment,
        cache: &DocumentCache,
        interrupted: &AtomicBool,
    ) {
        if self.mode == Mode::Off || !is_small(evidence) {
            return;
        }
        // Mutated documents must not be cached.
        cache.close();
        let scenario = (priority, evidence.scenario.clone());
        for (rule, examples) in self.rules_to_test(&scenario, judgment) {
            let may_go_on = || !interrupted.load(Ordering::Relaxed);
            let changes = self.test_rule(rule, examples, evidence, (judgment, cache), &may_go_on);
            let Some(changes) = changes else {
                return;
            };
            let mut tried = lock(&self.tried);
            tried.entry(&rule.id).or_default().add(&scenario, changes);
        }
        if self.mode == Mode::Sample {
            self.sampler
                .sample_scenario(self.rulebook, self.schemas, evidence, judgment, cache);
        }
    }

    /// Rules that passed in a scenario that still counts for them, with their examples.
    fn rules_to_test<'j>(
        &self,
        scenario: &(Priority, String),
        judgment: &'j Judgment,
    ) -> Vec<(&'a Rule, &'j [Sites])> {
        let tried = lock(&self.tried);
        let passed = |tally: &Tally| tally.judged() > 0 && tally.findings() == 0;
        let still_counts = |rule: &str| {
            tried
                .get(rule)
                .is_none_or(|scenarios| scenarios.counts(scenario))
        };
        let binds = |rule: &&Rule| matches!(rule.level, Level::Must | Level::Should);
        let passed_rules = judgment.tallies.iter().filter(|(_, tally)| passed(tally));
        let passed_rules = passed_rules.filter(|(rule, _)| still_counts(rule));
        let known = |(rule, tally): (&String, &'j Tally)| {
            let rule = self.rulebook.rules.get(rule).filter(binds)?;
            Some((rule, tally.examples()))
        };
        let mut rules_to_test: Vec<_> = passed_rules.filter_map(known).collect();
        rules_to_test.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
        rules_to_test
    }

    /// Evaluates mutations that may violate one rule; `None` if it may not go on to the end.
    fn test_rule(
        &self,
        rule: &Rule,
        examples: &[Sites],
        evidence: &mut Evidence,
        (judgment, cache): (&Judgment, &DocumentCache),
        may_go_on: &dyn Fn() -> bool,
    ) -> Option<Changes> {
        let mut by_example: Vec<_> = examples
            .iter()
            .map(|sites| {
                mutations_of(self.rulebook, self.schemas, evidence, rule, sites).into_iter()
            })
            .collect();
        let mut changes = Changes::default();
        let mut tried = 0;
        // One mutation of each example in turn: examples differ in what can violate them.
        let is_enough = |changes: &Changes| {
            changes.made
                >= if changes.broke > 0 {
                    MUTATIONS_MAX
                } else {
                    UNDETECTED_MAX
                }
        };
        while !by_example.is_empty() && tried < TRIED_MAX && !is_enough(&changes) {
            by_example.retain_mut(|mutations| {
                let Some(mutation) = mutations.next() else {
                    return false;
                };
                tried += 1;
                if !is_enough(&changes) && may_go_on() {
                    changes.add(self.evaluate_mutation(rule, &mutation, evidence, judgment, cache));
                }
                true
            });
        }
        may_go_on().then_some(changes)
    }

    fn evaluate_mutation(
        &self,
        rule: &Rule,
        mutation: &Mutation,
        evidence: &mut Evidence,
        judgment: &Judgment,
        cache: &DocumentCache,
    ) -> Changes {
        let Some(undo) = mutation.make(evidence) else {
            return Changes::default();
        };
        let is_of_schema = matches!(
            rule.origin,
            Origin::Property { .. } | Origin::NoOtherFields { .. }
        );
        let (broke, noticed) = if is_of_schema {
            let violations = validate_site(self.rulebook, self.schemas, evidence, &mutation.site);
            let broke = violations.iter().any(|v| v.rule == rule.id);
            // Violations of the unchanged document do not count.
            let known = |id: &str| judgment.tallies.get(id).is_some_and(|t| t.findings() > 0);
            (broke, violations.iter().any(|v| !known(&v.rule)))
        } else {
            let changed = judge_rule(rule, self.rulebook, self.schemas, evidence, cache);
            let tally = changed.tallies.get(&rule.id);
            let broke = tally.is_some_and(|t| t.findings() > 0);
            (broke, broke || has_more_findings(&changed, judgment))
        };
        undo.restore(evidence);
        Changes {
            made: 1,
            noticed: usize::from(noticed),
            broke: usize::from(broke),
        }
    }

    /// Writes the result to the record. A rule that detects none of its mutations becomes not judged.
    pub fn finish(self, record: &mut RunRecord) {
        if self.mode == Mode::Off {
            return;
        }
        let tried = recovered(self.tried.into_inner());
        let mut proof = Proof {
            mode: self.mode.word().to_owned(),
            ..Proof::default()
        };
        for rule in &mut record.rules {
            let binds = matches!(rule.level, Level::Must | Level::Should);
            let known = self.rulebook.rules.get(&rule.id);
            let spans_scenarios = known.is_some_and(|r| matches!(r.origin, Origin::Either));
            if rule.verdict != Verdict::Pass || !binds || spans_scenarios {
                continue;
            }
            let changes = tried
                .get(rule.id.as_str())
                .map(ScenarioResults::whole)
                .unwrap_or_default();
            // Without a mutation, or with mutations that only other rules detect, the rule was not tested and stays passed.
            if changes.made == 0 || (changes.broke == 0 && changes.noticed > 0) {
                proof.unproven += 1;
                continue;
            }
            if changes.broke > 0 {
                proof.proven += 1;
            } else {
                proof.vacuous += 1;
                rule.verdict = Verdict::NotJudged;
                rule.reason = format!("{VACUOUS}no mutation of the responses makes this rule fail");
            }
            let service = known.map_or_else(String::new, |r| r.service.clone());
            proof.services.entry(service).or_default().add(changes);
            proof.rules.insert(rule.id.clone(), changes);
        }
        record.summary.rules = RuleCounts::count(&record.rules);
        if self.mode == Mode::Sample {
            proof.sample = Some(self.sampler.finish(self.rulebook, record));
        }
        record.proof = Some(proof);
    }
}

/// Whether any rule has more violations than before.
fn has_more_findings(changed: &Judgment, before: &Judgment) -> bool {
    changed.tallies.iter().any(|(rule, tally)| {
        let known = before.tallies.get(rule).map_or(0, Tally::findings);
        tally.findings() > known
    })
}

/// Whether the evidence is small enough to be copied and evaluated for each mutation.
fn is_small(evidence: &Evidence) -> bool {
    if evidence.exchanges.len() > EXCHANGES_MAX {
        return false;
    }
    let answers = evidence.exchanges.iter().filter_map(|e| e.document());
    let payloads = evidence.payloads.iter().map(|p| &p.value);
    let results = evidence.statements.iter().map(|s| &s.result);
    let mut documents = answers.chain(payloads).chain(results);
    documents.all(|document| {
        conformant_base::json::has_at_most(document, VALUES_MAX)
            && text_bytes(document) <= TEXT_BYTES_MAX
    })
}

/// Bytes of all texts of a document.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members.values().map(text_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(broke: usize) -> Changes {
        Changes {
            made: 4,
            noticed: broke,
            broke,
        }
    }

    fn priority(scenario: &str) -> (Priority, String) {
        let length = Duration::from_millis(20);
        ((1, Reverse::default(), length), scenario.to_owned())
    }

    #[test]
    fn scenarios_are_ordered_by_priority_before_id() {
        let mut scenarios = ScenarioResults::default();
        let long = (1, Reverse::default(), Duration::from_secs(9));
        scenarios.add(&(long, "a".to_owned()), changes(2));
        assert!(scenarios.counts(&priority("b")));
        scenarios.add(&priority("b"), changes(1));
        assert_eq!((scenarios.0.len(), scenarios.whole().broke), (1, 1));
    }

    /// All orders of completion have the same result.
    #[test]
    fn the_result_is_independent_of_the_order_of_completion() {
        let ended = [("a", 0), ("b", 0), ("c", 2), ("d", 1), ("e", 0)];
        let mut orders = vec![ended.to_vec()];
        for priority in 1..ended.len() {
            let mut order = ended.to_vec();
            order.rotate_left(priority);
            orders.push(order.clone());
            order.reverse();
            orders.push(order);
        }
        for order in orders {
            let mut scenarios = ScenarioResults::default();
            for (scenario, broke) in &order {
                scenarios.add(&priority(scenario), changes(*broke));
            }
            let kept: Vec<&str> = scenarios.0.keys().map(|(_, id)| id.as_str()).collect();
            assert_eq!(kept, ["a", "b", "c"], "{order:?}");
            assert_eq!(scenarios.whole().made, 12);
        }
    }

    #[test]
    fn a_rule_that_no_mutation_violates_is_not_judged() {
        let rulebook = crate::load::embedded().expect("it loads");
        let schemas = Schemas::default();
        let prover = Prover::new(&rulebook, &schemas, Mode::Rules, 0, 1);
        let ids = [
            "flow/execution/sid",
            "flow/execution/status",
            "flow/flow/sid",
        ];
        let rules: Vec<&Rule> = ids.iter().map(|id| &rulebook.rules[*id]).collect();
        for (rule, broke) in rules.iter().zip([0, 2]) {
            let mut tried = prover.tried.lock().expect("no thread panicked");
            tried
                .entry(&rule.id)
                .or_default()
                .add(&priority("s"), changes(broke));
        }
        let mut record = RunRecord::default();
        record
            .rules
            .extend(rules.iter().map(|rule| conformant_record::RuleResult {
                id: rule.id.clone(),
                level: rule.level,
                source: rule.source.clone(),
                verdict: Verdict::Pass,
                judged: 1,
                findings: 0,
                reason: String::new(),
                subject: conformant_record::Subject::Service,
                masked_by: None,
                says: String::new(),
                basis: None,
                needs: Vec::new(),
            }));
        prover.finish(&mut record);
        let verdicts: Vec<Verdict> = record.rules.iter().map(|rule| rule.verdict).collect();
        assert_eq!(verdicts, [Verdict::NotJudged, Verdict::Pass, Verdict::Pass]);
        assert!(record.rules[0].reason.starts_with("vacuous: "));
        let counts = &record.summary.rules;
        assert_eq!((counts.pass, counts.not_judged), (2, 1));
        let proof = record.proof.expect("it was asked for");
        assert_eq!((proof.proven, proof.vacuous, proof.unproven), (1, 1, 1));
        assert_eq!(proof.services.values().map(|of| of.made).sum::<usize>(), 8);
    }

    #[test]
    fn a_rule_whose_test_is_interrupted_counts_as_untested() {
        let rulebook = crate::load::shared();
        let prover = Prover::new(rulebook, crate::load::shared_schemas(), Mode::Rules, 0, 1);
        let rule = &rulebook.rules["flow/execution/sid"];
        let (mut evidence, judgment) = (Evidence::default(), Judgment::default());
        let cache = DocumentCache::default();
        for may_go_on in [true, false] {
            let judged = (&judgment, &cache);
            let changes = prover.test_rule(rule, &[], &mut evidence, judged, &|| may_go_on);
            assert_eq!(changes, may_go_on.then(Changes::default));
        }
    }

    #[test]
    fn a_rule_is_tested_in_a_limited_number_of_scenarios() {
        let mut scenarios = ScenarioResults::default();
        for scenario in 0..SCENARIOS_MAX {
            let priority = priority(&format!("s{scenario}"));
            assert!(scenarios.counts(&priority));
            scenarios.add(&priority, changes(0));
        }
        assert!(!scenarios.counts(&priority("t")) && scenarios.counts(&priority("a")));
        scenarios.add(&priority("a"), changes(0));
        assert_eq!(scenarios.0.len(), SCENARIOS_MAX);
    }
}
