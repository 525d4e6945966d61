//! Would it have been noticed: what a story showed is changed one place at a time and judged again, without a request.
//!
//! It is done where the evidence is still at hand, when a story was judged, so that memory does not grow with the run. What is concluded
//! depends on the seed and on the stories alone, not on the order in which they end.

mod blind;
mod sample;

use crate::evidence::Evidence;

use crate::{Judgement, Memo, Mutation, Sites, Tally, judge_by, judge_site, mutations_of};
use conformant_record::{Changes, Level, Proof, RuleCounts, RunRecord, Verdict};
use conformant_rulebook::{Origin, Rule, Rulebook};
use conformant_schema::Schemas;
use foldhash::fast::FixedState;
use sample::Sampler;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Changes for one rule in one story, and until one breaks it.
const MUTATIONS_MAX: usize = 8;
const STUBBORN_MAX: usize = 64;
/// Changes that are looked at, those that turn out to change nothing included.
const TRIED_MAX: usize = 192;
/// Examples of one rule in one story, the first and the last.
pub const EXAMPLES_MAX: usize = 3;
/// Stories that a rule is tried in until one of its changes breaks it: the first by their turns, and of those by id.
const STORIES_MAX: usize = 16;
/// Values of a story's largest document beyond which nothing is changed: each change copies one.
const VALUES_MAX: usize = 20_000;
/// Bytes of texts in one document.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Exchanges of a story beyond which nothing is changed: after each change all of them are judged again. What only so long a story shows, a
/// list without an end for one, stays unproven.
const EXCHANGES_MAX: usize = 256;

/// How much is proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Off,
    /// Each rule that passed.
    #[default]
    Rules,
    /// That, and how much of all would be noticed.
    Sample,
}

impl Mode {
    /// The word on the command line and in the record.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Rules => "rules",
            Self::Sample => "sample",
        }
    }
}

/// Proves the stories of one run.
#[derive(Debug)]
pub struct Prover<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    mode: Mode,
    /// By rule, then by story.
    tried: Mutex<HashMap<&'a str, Stories, FixedState>>,
    sampler: Sampler,
}

/// When a story is told: the nearer this comes to the order in which stories end, the less is tried in vain. Those with the least company come first; how long
/// it takes counts from the longest, how much there is to tell from the least.
pub type Turn = (u8, Reverse<Duration>, Duration);

/// What came of a rule in the first stories by turn and id, up to one that proves it.
#[derive(Debug, Default)]
struct Stories(BTreeMap<(Turn, String), Changes>);

impl Stories {
    /// Whether this story may still count: no earlier one proves the rule, and there are not enough of them.
    fn wants(&self, story: &(Turn, String)) -> bool {
        let earlier = || self.0.range(..story);
        earlier().all(|(_, changes)| changes.broke == 0) && earlier().count() < STORIES_MAX
    }

    fn add(&mut self, story: &(Turn, String), changes: Changes) {
        if changes.made == 0 || !self.wants(story) {
            return;
        }
        self.0.insert(story.clone(), changes);
        // What lies behind the first proof counts no longer, in whatever order stories end.
        let last = self.0.iter().position(|(_, changes)| changes.broke > 0);
        let kept = last.map_or(STORIES_MAX, |last| last + 1).min(STORIES_MAX);
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
    /// A prover for one run of so many stories.
    pub fn new(
        rulebook: &'a Rulebook,
        schemas: &'a Schemas,
        mode: Mode,
        seed: u64,
        stories: usize,
    ) -> Self {
        Self {
            rulebook,
            schemas,
            mode,
            tried: Mutex::default(),
            sampler: Sampler::new(seed, stories),
        }
    }

    /// Changes what a story showed, and leaves it as it was. `judgement` is what was concluded of it, with its instances; the memory holds its
    /// documents.
    pub fn story(&self, turn: Turn, evidence: &mut Evidence, judgement: &Judgement, memo: &Memo) {
        if self.mode == Mode::Off || !is_small(evidence) {
            return;
        }
        memo.close();
        let story = (turn, evidence.scenario.clone());
        for (rule, examples) in self.wanted(&story, judgement) {
            let changes = self.try_out(rule, examples, evidence, judgement, memo);
            let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
            tried.entry(&rule.id).or_default().add(&story, changes);
        }
        if self.mode == Mode::Sample {
            self.sampler
                .story(self.rulebook, self.schemas, evidence, judgement, memo);
        }
    }

    /// Rules that held in a story which still counts for them, by their ids, each with its examples.
    fn wanted<'j>(
        &self,
        story: &(Turn, String),
        judgement: &'j Judgement,
    ) -> Vec<(&'a Rule, &'j [Sites])> {
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |tally: &Tally| tally.judged() > 0 && tally.findings() == 0;
        let still_counts = |rule: &str| tried.get(rule).is_none_or(|stories| stories.wants(story));
        let binds = |rule: &&Rule| matches!(rule.level, Level::Must | Level::Should);
        let held = judgement.tallies.iter().filter(|(_, tally)| holds(tally));
        let held = held.filter(|(rule, _)| still_counts(rule));
        let known = |(rule, tally): (&String, &'j Tally)| {
            let rule = self.rulebook.rules.get(rule).filter(binds)?;
            Some((rule, tally.examples()))
        };
        let mut wanted: Vec<_> = held.filter_map(known).collect();
        wanted.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
        wanted
    }

    /// What comes of changes by which one rule may fail.
    fn try_out(
        &self,
        rule: &Rule,
        examples: &[Sites],
        evidence: &mut Evidence,
        judgement: &Judgement,
        memo: &Memo,
    ) -> Changes {
        let mut by_example: Vec<_> = examples
            .iter()
            .map(|sites| {
                mutations_of(self.rulebook, self.schemas, evidence, rule, sites).into_iter()
            })
            .collect();
        let mut changes = Changes::default();
        let mut tried = 0;
        // One of each example in turn: they differ in what may break them.
        let is_enough = |changes: &Changes| {
            changes.made
                >= if changes.broke > 0 {
                    MUTATIONS_MAX
                } else {
                    STUBBORN_MAX
                }
        };
        while !by_example.is_empty() && tried < TRIED_MAX && !is_enough(&changes) {
            by_example.retain_mut(|mutations| {
                let Some(mutation) = mutations.next() else {
                    return false;
                };
                tried += 1;
                if !is_enough(&changes) {
                    changes.add(self.try_one(rule, &mutation, evidence, judgement, memo));
                }
                true
            });
        }
        changes
    }

    fn try_one(
        &self,
        rule: &Rule,
        mutation: &Mutation,
        evidence: &mut Evidence,
        judgement: &Judgement,
        memo: &Memo,
    ) -> Changes {
        let Some(undo) = mutation.make(evidence) else {
            return Changes::default();
        };
        let (broke, noticed) = match &rule.origin {
            Origin::Property { .. } | Origin::NoOtherFields { .. } => {
                let violations = judge_site(self.rulebook, self.schemas, evidence, &mutation.site);
                let broke = violations.iter().any(|v| v.rule == rule.id);
                // What its document broke before is no news.
                let known = |id: &str| judgement.tallies.get(id).is_some_and(|t| t.findings() > 0);
                (broke, violations.iter().any(|v| !known(&v.rule)))
            }
            Origin::Operation { .. }
            | Origin::Parameter { .. }
            | Origin::Credentials { .. }
            | Origin::ListKey { .. }
            | Origin::ListWalk { .. }
            | Origin::Written(_)
            | Origin::Either => {
                let changed = judge_by(rule, self.rulebook, self.schemas, evidence, memo);
                let broke = changed
                    .tallies
                    .get(&rule.id)
                    .is_some_and(|t| t.findings() > 0);
                (broke, broke || finds_more(&changed, judgement))
            }
        };
        undo.restore(evidence);
        Changes {
            made: 1,
            noticed: usize::from(noticed),
            broke: usize::from(broke),
        }
    }

    /// Writes into the record what was proven. A rule that no change breaks was not judged.
    pub fn finish(self, record: &mut RunRecord) {
        if self.mode == Mode::Off {
            return;
        }
        let tried = self
            .tried
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut proof = Proof {
            mode: self.mode.word().to_owned(),
            ..Proof::default()
        };
        for rule in &mut record.rules {
            let binds = matches!(rule.level, Level::Must | Level::Should);
            let known = self.rulebook.rules.get(&rule.id);
            let is_over_stories = known.is_some_and(|r| matches!(r.origin, Origin::Either));
            if rule.verdict != Verdict::Pass || !binds || is_over_stories {
                continue;
            }
            let changes = tried
                .get(rule.id.as_str())
                .map(Stories::whole)
                .unwrap_or_default();
            // What others notice first cannot show whether this one would.
            if changes.made == 0 || (changes.broke == 0 && changes.noticed > 0) {
                proof.unproven += 1;
                continue;
            }
            if changes.broke > 0 {
                proof.proven += 1;
            } else {
                proof.vacuous += 1;
                rule.verdict = Verdict::NotJudged;
                "vacuous: no change of these answers breaks it".clone_into(&mut rule.reason);
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

/// Whether any rule is broken more often than before.
fn finds_more(changed: &Judgement, before: &Judgement) -> bool {
    changed.tallies.iter().any(|(rule, tally)| {
        let known = before.tallies.get(rule).map_or(0, Tally::findings);
        tally.findings() > known
    })
}

/// Whether each document is small enough to be copied for each change, and all of them few enough to be judged again for each.
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

    fn turn(story: &str) -> (Turn, String) {
        let length = Duration::from_millis(20);
        ((1, Reverse::default(), length), story.to_owned())
    }

    #[test]
    fn a_shorter_story_counts_before_one_of_an_earlier_name() {
        let mut stories = Stories::default();
        let long = (1, Reverse::default(), Duration::from_secs(9));
        stories.add(&(long, "a".to_owned()), changes(2));
        assert!(stories.wants(&turn("b")));
        stories.add(&turn("b"), changes(1));
        assert_eq!((stories.0.len(), stories.whole().broke), (1, 1));
    }

    /// Every order in which stories end comes to the same.
    #[test]
    fn what_counts_depends_on_no_order() {
        let ended = [("a", 0), ("b", 0), ("c", 2), ("d", 1), ("e", 0)];
        let mut orders = vec![ended.to_vec()];
        for turn in 1..ended.len() {
            let mut order = ended.to_vec();
            order.rotate_left(turn);
            orders.push(order.clone());
            order.reverse();
            orders.push(order);
        }
        for order in orders {
            let mut stories = Stories::default();
            for (story, broke) in &order {
                stories.add(&turn(story), changes(*broke));
            }
            let kept: Vec<&str> = stories.0.keys().map(|(_, id)| id.as_str()).collect();
            assert_eq!(kept, ["a", "b", "c"], "{order:?}");
            assert_eq!(stories.whole().made, 12);
        }
    }

    #[test]
    fn a_rule_that_no_change_breaks_was_not_judged() {
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
            let mut tried = prover.tried.lock().expect("nobody panicked");
            tried
                .entry(&rule.id)
                .or_default()
                .add(&turn("s"), changes(broke));
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
        assert_eq!(proof.whole().made, 8);
    }

    #[test]
    fn a_rule_is_tried_in_so_many_stories_and_no_more() {
        let mut stories = Stories::default();
        for story in 0..STORIES_MAX {
            let turn = turn(&format!("s{story}"));
            assert!(stories.wants(&turn));
            stories.add(&turn, changes(0));
        }
        assert!(!stories.wants(&turn("t")) && stories.wants(&turn("a")));
        stories.add(&turn("a"), changes(0));
        assert_eq!(stories.0.len(), STORIES_MAX);
    }
}
