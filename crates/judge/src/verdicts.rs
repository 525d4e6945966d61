//! What is concluded of a case, and the only way to a judged rule: an instance with the places in
//! the evidence that decide it.

use super::case::{Case, Representation};
use super::sites::{Site, Sites};
use conformant_base::json;
use conformant_record::Finding;
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// How many findings of one rule in one story are kept; what lies beyond is counted.
const FINDINGS_MAX: usize = 100;

/// What was concluded of a case, or of several.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// By rule id, in the order in which they were first concluded of.
    pub tallies: Tallies,
    /// In the order of the exchanges.
    pub findings: Vec<Finding>,
    /// Distinct value-free observations by open point.
    pub observed: BTreeMap<String, BTreeSet<String>>,
    /// How many examples of each rule are kept.
    pub(super) examples_max: usize,
}

/// What was concluded of each rule, by its id. Ids are the rulebook's own, so that their hash need not withstand anybody.
pub type Tallies = IndexMap<String, Tally, FixedState>;

/// How often a rule was judged, and why it could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    judged: usize,
    pub(super) findings: usize,
    /// Why it was inconclusive at times.
    pub inconclusive: BTreeSet<String>,
    /// Rules that were broken where this one would have been judged.
    pub masked_by: BTreeSet<String>,
    /// Examples that could not have failed, by what they lacked.
    pub trivial: BTreeMap<Trivial, usize>,
    /// What decided instances of it: of more than are asked for the first ones and the last.
    examples: Vec<Sites>,
}

/// Why an example tells nothing: whatever the target does, the rule holds on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trivial {
    /// A list without anything in it.
    Empty,
    /// Nothing stood where it was looked.
    Absent,
    /// There was nothing else to compare it with.
    Alone,
    /// No callback came, and none came at all that would show that callbacks do come.
    Silence,
}

impl Trivial {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Empty => "the list was empty",
            Self::Absent => "nothing stood there",
            Self::Alone => "there was nothing to compare it with",
            Self::Silence => "no callback came at all",
        }
    }
}

/// A finding's own part; the case fills in the rest.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// Kind of difference.
    pub kind: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was there.
    pub actual: String,
    /// One sentence that says both; made of the two when empty.
    pub message: String,
}

/// Takes what predicates conclude of one case.
#[derive(Debug)]
pub struct Verdicts<'v> {
    case: &'v Case<'v>,
    judgement: &'v mut Judgement,
}

/// A rule that is about to be judged on one example; concluding it is all that can be done.
#[derive(Debug)]
#[must_use = "an instance counts when it is concluded"]
pub struct Instance<'i> {
    case: &'i Case<'i>,
    judgement: &'i mut Judgement,
    rule: &'i str,
    sites: Sites,
}

impl<'v> Verdicts<'v> {
    pub(super) fn new(case: &'v Case<'v>, judgement: &'v mut Judgement) -> Self {
        Self { case, judgement }
    }

    /// The only way to a judged rule. Sites are places in the evidence that decide; the last one is
    /// where a finding stands.
    pub fn instance<'i, R: AsRef<str> + ?Sized>(
        &'i mut self,
        rule: &'i R,
        sites: impl Into<Sites>,
    ) -> Instance<'i> {
        Instance {
            case: self.case,
            judgement: self.judgement,
            rule: rule.as_ref(),
            sites: sites.into(),
        }
    }

    /// Counts an instance that was looked at elsewhere and found sound.
    pub(super) fn sound(&mut self, rule: &str, site: &Site) {
        match self.judgement.examples_max {
            0 => self.judgement.count(rule, 1),
            _ => self.instance(rule, site.clone()).conclude(None),
        }
    }

    /// Records that a rule could not be judged.
    pub fn inconclusive<R: AsRef<str> + ?Sized>(&mut self, rule: &R, why: &str) {
        self.judgement.inconclusive(rule.as_ref(), why);
    }

    /// Records an example on which the rule holds whatever the target does; never a pass.
    pub fn trivial<R: AsRef<str> + ?Sized>(&mut self, rule: &R, why: Trivial) {
        let tally = self.judgement.tallies.entry(rule.as_ref().to_owned());
        *tally.or_default().trivial.entry(why).or_default() += 1;
    }

    /// What was concluded of a rule so far.
    pub(super) fn tally(&self, rule: &str) -> Option<&Tally> {
        self.judgement.tallies.get(rule)
    }

    /// What was found so far, by earlier rules.
    pub fn findings(&self) -> &[Finding] {
        &self.judgement.findings
    }

    /// Whether a value there, above it or below it is accused already: one defect, one finding.
    pub fn accuses(&self, site: &Site) -> bool {
        let Some(exchange) = site.exchange(self.case.evidence) else {
            return false;
        };
        let overlaps =
            |at: &str| json::within(at, site.pointer()) || json::within(site.pointer(), at);
        let here = self
            .findings()
            .iter()
            .filter(|f| f.exchange == exchange + 1);
        here.map(|f| f.pointer.as_str()).any(overlaps)
    }

    /// The same of a place in a representation.
    pub fn accuses_in(&self, shown: &Representation<'_>, pointer: &str) -> bool {
        // Nearly always nobody is accused of anything.
        !self.findings().is_empty() && self.accuses(&shown.site(pointer))
    }

    /// A further finding of an instance that was concluded already.
    pub(super) fn broken(&mut self, rule: &str, site: &Site, fact: Fact) {
        if !self.judgement.is_told(rule) {
            self.judgement.add(self.case.finding(rule, site, fact));
        }
    }
}

impl Instance<'_> {
    /// Counts the instance, with a finding at its last site where something is wrong.
    pub fn conclude(self, wrong: Option<Fact>) {
        let wrong = wrong.map(|fact| (self.sites.last().clone(), fact));
        self.conclude_at(wrong);
    }

    /// The same with a finding somewhere else.
    pub fn conclude_at(self, wrong: Option<(Site, Fact)>) {
        let finding = wrong.map(|(site, fact)| self.case.finding(self.rule, &site, fact));
        let most = self.judgement.examples_max;
        let tally = self.judgement.tally(self.rule);
        tally.judged += 1;
        tally.keep(self.sites, most);
        if let Some(finding) = finding {
            self.judgement.add(finding);
        }
    }
}

impl Tally {
    /// Times judged: instances that could have failed.
    pub const fn judged(&self) -> usize {
        self.judged
    }

    /// Whether only examples came by that tell nothing.
    pub fn is_trivial(&self) -> bool {
        let told = self.judged + self.findings + self.inconclusive.len() + self.masked_by.len();
        told == 0 && !self.trivial.is_empty()
    }

    /// Findings brought, those that were not kept included.
    pub const fn findings(&self) -> usize {
        self.findings
    }

    /// What decided instances of it, in order, as many as were asked for.
    pub fn examples(&self) -> &[Sites] {
        &self.examples
    }

    fn keep(&mut self, sites: Sites, most: usize) {
        if self.examples.len() < most {
            self.examples.push(sites);
        } else if let Some(last) = self.examples.last_mut() {
            *last = sites;
        }
    }
}

impl Judgement {
    /// One that keeps so many examples of each rule.
    pub(super) fn with_examples(most: usize) -> Self {
        Self {
            examples_max: most,
            ..Self::default()
        }
    }

    /// What decided instances of a rule; nothing where it was not judged, or they were not asked for.
    pub fn examples(&self, rule: &str) -> &[Sites] {
        self.tallies.get(rule).map_or(&[], Tally::examples)
    }

    /// The same without its examples, which take the most room.
    #[must_use]
    pub fn without_examples(mut self) -> Self {
        for tally in self.tallies.values_mut() {
            tally.examples = Vec::new();
        }
        self
    }

    /// Counts an instance outside any case, with a finding where there is one.
    pub fn conclude(&mut self, rule: &str, finding: Option<Finding>) {
        self.count(rule, 1);
        if let Some(finding) = finding {
            self.add(finding);
        }
    }

    /// Counts instances that were looked at elsewhere and found sound.
    pub fn count(&mut self, rule: &str, instances: usize) {
        self.tally(rule).judged += instances;
    }

    /// What is counted of a rule; nothing so far where it is new.
    fn tally(&mut self, rule: &str) -> &mut Tally {
        // Most are known, and need no name of their own.
        let index = match self.tallies.get_index_of(rule) {
            Some(index) => index,
            None => {
                self.tallies
                    .insert_full(rule.to_owned(), Tally::default())
                    .0
            }
        };
        &mut self.tallies[index]
    }

    /// Records that a rule could not be judged.
    pub fn inconclusive(&mut self, rule: &str, why: &str) {
        let tally = self.tallies.entry(rule.to_owned()).or_default();
        tally.inconclusive.insert(why.to_owned());
    }

    /// The same rules, with nothing but that they could not be judged.
    #[must_use]
    pub fn void(&self, why: &str) -> Self {
        let mut void = Self::default();
        for rule in self.tallies.keys() {
            void.inconclusive(rule, why);
        }
        void
    }

    /// Takes back what was concluded of a rule: it could not be judged.
    pub fn withdraw(&mut self, rule: &str, why: &str) {
        self.findings.retain(|finding| finding.rule != rule);
        self.tallies.shift_remove(rule);
        self.inconclusive(rule, why);
    }

    /// Records that a rule could not be judged because another one was broken.
    pub fn masked(&mut self, rule: &str, broken: &str) {
        let tally = self.tallies.entry(rule.to_owned()).or_default();
        tally.masked_by.insert(broken.to_owned());
    }

    /// Takes up what another case concluded.
    pub fn merge(&mut self, other: Self) {
        let findings = self.merge_tallies(other);
        self.findings.extend(findings);
    }

    /// The same, but for its findings, which it gives back: their order is not that of cases.
    #[must_use = "its findings are not taken up"]
    pub fn merge_tallies(&mut self, other: Self) -> Vec<Finding> {
        for (rule, tally) in other.tallies {
            let mine = self.tallies.entry(rule).or_default();
            mine.judged += tally.judged;
            mine.findings += tally.findings;
            mine.inconclusive.extend(tally.inconclusive);
            mine.masked_by.extend(tally.masked_by);
            for (why, times) in tally.trivial {
                *mine.trivial.entry(why).or_default() += times;
            }
        }
        for (point, seen) in other.observed {
            self.observed.entry(point).or_default().extend(seen);
        }
        other.findings
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.is_told(&finding.rule) {
            return;
        }
        let tally = self.tallies.entry(finding.rule.clone()).or_default();
        tally.findings += 1;
        self.findings.push(finding);
    }

    /// True when a rule has brought so many findings that a further one says nothing new; it is
    /// counted all the same.
    fn is_told(&mut self, rule: &str) -> bool {
        let Some(tally) = self.tallies.get_mut(rule) else {
            return false;
        };
        let is_told = tally.findings >= FINDINGS_MAX;
        tally.findings += usize::from(is_told);
        is_told
    }
}
