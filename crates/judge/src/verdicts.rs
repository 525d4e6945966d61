//! The verdicts on a scenario. A rule counts as judged only through an instance with the places that decide it.

use super::context::{Context, Representation, Seen};
use super::history::{Change, List, ResourceId};
use super::sites::{Site, Sites};
use conformant_base::json;
use conformant_record::Finding;
use conformant_rulebook::Rule;
use indexmap::IndexMap;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Findings kept per rule and scenario; further ones are counted.
const FINDINGS_MAX: usize = 100;

/// The verdicts on one or more scenarios.
#[derive(Clone, Debug, Default)]
pub struct Judgment {
    /// By rule id, in the order of the first verdict.
    pub tallies: Tallies,
    /// In the order of the exchanges.
    pub findings: Vec<Finding>,
    /// Distinct observations of each open point, without values.
    pub observed: BTreeMap<String, BTreeSet<String>>,
    /// Maximum number of examples per rule.
    pub(super) examples_max: usize,
}

/// Tallies by rule id. Ids come from the rulebook, so a fast hash without protection against attacks is sufficient.
pub type Tallies = IndexMap<String, Tally>;

/// How often a rule was judged, and why it was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    judged: usize,
    pub(super) findings: usize,
    /// Reasons for inconclusive instances.
    pub inconclusive: BTreeSet<String>,
    /// Violated rules that prevented a verdict.
    pub masked_by: BTreeSet<String>,
    /// Vacuous instances, by reason.
    pub vacuous: BTreeMap<Vacuity, usize>,
    /// Sites of instances: the first ones and the last.
    examples: Vec<Sites>,
}

/// Why an instance is vacuous: the rule cannot fail on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vacuity {
    /// The list is empty.
    Empty,
    /// Nothing had to be in the list.
    NothingDue,
    /// There is no value.
    Absent,
    /// There is nothing to compare it with.
    Alone,
    /// There was no callback at all.
    Silence,
}

impl Vacuity {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Empty => "no item of the list was read",
            Self::NothingDue => "nothing had to be in the list",
            Self::Absent => "the field was absent",
            Self::Alone => "there were no two values to compare",
            Self::Silence => "no callback came at all",
        }
    }
}

/// The predicate's part of a finding; the context fills in the rest.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    pub kind: &'static str,
    pub expected: String,
    pub actual: String,
    /// One sentence with both; generated if empty.
    pub message: String,
}

impl Fact {
    /// A violation whose sentence is generated.
    pub fn new(kind: &'static str, expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self {
            kind,
            expected: expected.into(),
            actual: actual.into(),
            message: String::new(),
        }
    }
}

/// Receives verdicts on any rule.
#[derive(Debug)]
pub(super) struct Recorder<'v> {
    context: &'v Context<'v>,
    judgment: &'v mut Judgment,
}

/// Receives the verdicts of a predicate on one rule.
#[derive(Debug)]
pub struct Verdicts<'v> {
    pub context: &'v Context<'v>,
    pub rule: &'v Rule,
    judgment: &'v mut Judgment,
}

/// An instance of a rule that is about to be judged; it can only be concluded.
#[derive(Debug)]
#[must_use = "an instance counts when it is concluded"]
pub struct Instance<'i> {
    context: &'i Context<'i>,
    judgment: &'i mut Judgment,
    rule: &'i str,
    sites: Sites,
    earlier: Option<usize>,
}

impl<'v> Recorder<'v> {
    pub(super) fn new(context: &'v Context<'v>, judgment: &'v mut Judgment) -> Self {
        Self { context, judgment }
    }

    /// For the verdicts of a predicate.
    pub(super) fn on<'r>(&'r mut self, rule: &'r Rule) -> Verdicts<'r> {
        Verdicts {
            context: self.context,
            rule,
            judgment: self.judgment,
        }
    }

    /// Begins an instance. Sites are places in the evidence that decide; the last one is the place of a finding.
    pub(super) fn instance<'i>(
        &'i mut self,
        rule: &'i str,
        sites: impl Into<Sites>,
    ) -> Instance<'i> {
        Instance {
            context: self.context,
            judgment: self.judgment,
            rule,
            sites: sites.into(),
            earlier: None,
        }
    }

    /// Counts an instance, with a finding at its last site if there is a violation.
    pub(super) fn conclude(&mut self, rule: &str, sites: impl Into<Sites>, wrong: Option<Fact>) {
        self.instance(rule, sites).conclude(wrong);
    }

    /// Counts an instance that was judged elsewhere and passed.
    pub(super) fn sound(&mut self, rule: &str, site: &Site) {
        match self.judgment.examples_max {
            0 => self.judgment.count(rule, 1),
            _ => self.conclude(rule, site.clone(), None),
        }
    }

    /// Records that a rule could not be judged.
    pub(super) fn inconclusive(&mut self, rule: &str, why: &str) {
        self.judgment.inconclusive(rule, why);
    }

    /// Records a vacuous instance; it never counts as a pass.
    pub(super) fn record_vacuous(&mut self, rule: &str, why: Vacuity) {
        self.judgment.vacuous(rule, why);
    }

    /// The current tally of a rule.
    pub(super) fn tally(&self, rule: &str) -> Option<&Tally> {
        self.judgment.tallies.get(rule)
    }

    /// Adds a finding to an instance that was concluded.
    pub(super) fn broken(&mut self, rule: &str, site: &Site, fact: Fact) {
        if !self.judgment.has_enough_findings(rule) {
            self.judgment.add(self.context.finding(rule, site, fact));
        }
    }
}

impl<'v> Verdicts<'v> {
    /// Begins an instance. Sites are places in the evidence that decide; the last one is the place of a finding.
    pub fn instance(&mut self, sites: impl Into<Sites>) -> Instance<'_> {
        Instance {
            context: self.context,
            judgment: self.judgment,
            rule: &self.rule.id,
            sites: sites.into(),
            earlier: None,
        }
    }

    /// Counts an instance, with a finding at its last site if there is a violation.
    pub fn conclude(&mut self, sites: impl Into<Sites>, wrong: Option<Fact>) {
        self.instance(sites).conclude(wrong);
    }

    /// As `conclude`, with the finding at another site.
    pub fn conclude_at(&mut self, sites: impl Into<Sites>, wrong: Option<(Site, Fact)>) {
        self.instance(sites).conclude_at(wrong);
    }

    /// Judges all values at a place of a response together, with the finding at the first one that is wrong.
    pub fn conclude_each(
        &mut self,
        index: usize,
        at: &str,
        wrong: impl Fn(&Value) -> Option<Fact>,
    ) {
        let values = self.context.seen[index].select(at);
        let site = |at: &String| Site::answer(index, at);
        let Some(sites) = Sites::collect(values.iter().map(|(at, _)| site(at))) else {
            self.record_vacuous(Vacuity::Empty);
            return;
        };
        let mut values = values.iter();
        let wrong = values.find_map(|(at, value)| Some((site(at), wrong(value)?)));
        self.conclude_at(sites, wrong);
    }

    /// Judges the fields of two observations together, with the finding at the first one that changed. `fact` receives its
    /// pointer and both values. Returns false if no field is compared.
    pub fn conclude_changes(
        &mut self,
        shown: &Representation<'_>,
        compared: &[Change<'_>],
        earlier: Option<usize>,
        fact: impl Fn(&str, &str, &str) -> Fact,
    ) -> bool {
        let Some(sites) = Sites::from_slice(compared, |c| shown.site(&c.pointer)) else {
            return false;
        };
        let changed = compared.iter().find(|c| c.is_changed());
        let wrong = changed.map(|c| {
            let (was, is) = (json::short(c.before), json::short(c.after));
            (shown.site(&c.pointer), fact(&c.pointer, &was, &is))
        });
        self.instance(sites).after(earlier).conclude_at(wrong);
        true
    }

    /// The sites of a list that must contain these resources. `None` if there are none, or if the list has a finding.
    pub fn sites_of(&mut self, list: &List<'_>, wanted: &[ResourceId]) -> Option<Sites> {
        let sites = list.sites().filter(|_| !wanted.is_empty());
        if sites.is_none() {
            self.record_vacuous(Vacuity::Empty);
        }
        sites.filter(|sites| !sites.iter().any(|site| self.has_finding_at(site)))
    }

    /// Records that the rule could not be judged.
    pub fn inconclusive(&mut self, why: &str) {
        self.judgment.inconclusive(&self.rule.id, why);
    }

    /// Records a vacuous instance; it never counts as a pass.
    pub fn record_vacuous(&mut self, why: Vacuity) {
        self.judgment.vacuous(&self.rule.id, why);
    }

    /// Exchanges of an operation of the service, with their index.
    pub fn exchanges_of<'o>(
        &self,
        operation: &'o str,
    ) -> impl Iterator<Item = (usize, &'v Seen<'v>)> + use<'v, 'o> {
        self.context.of_operation(&self.rule.service, operation)
    }

    /// The current findings, from earlier rules.
    pub fn findings(&self) -> &[Finding] {
        &self.judgment.findings
    }

    /// Whether the value at the site, above it or below it has a finding: one defect causes one finding.
    pub fn has_finding_at(&self, site: &Site) -> bool {
        let Some(exchange) = site.exchange(self.context.evidence) else {
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

    /// As `has_finding_at`, for a place in a representation.
    pub fn has_finding_in(&self, shown: &Representation<'_>, pointer: &str) -> bool {
        // Fast path: usually there are no violations.
        !self.findings().is_empty() && self.has_finding_at(&shown.site(pointer))
    }

    /// The value at a place of a representation, with the place. `None` if there is none, or if it has a finding.
    pub fn without_finding<'r>(
        &self,
        shown: &Representation<'r>,
        pointer: &str,
    ) -> Option<(&'r Value, Site)> {
        let value = shown.value(pointer)?;
        let site = shown.site(pointer);
        (!self.has_finding_at(&site)).then_some((value, site))
    }
}

impl Instance<'_> {
    /// Names the exchange that showed the expected value, for a value that must not change.
    pub const fn after(mut self, earlier: Option<usize>) -> Self {
        self.earlier = earlier;
        self
    }

    /// Counts the instance, with a finding at its last site if there is a violation.
    pub fn conclude(self, wrong: Option<Fact>) {
        let wrong = wrong.map(|fact| (self.sites.last().clone(), fact));
        self.conclude_at(wrong);
    }

    /// As `conclude`, with the finding at another site.
    pub fn conclude_at(self, wrong: Option<(Site, Fact)>) {
        let finding = wrong.map(|(site, fact)| Finding {
            earlier_exchange: self.earlier.map_or(0, |index| index + 1),
            ..self.context.finding(self.rule, &site, fact)
        });
        let most = self.judgment.examples_max;
        let tally = self.judgment.tally(self.rule);
        tally.judged += 1;
        tally.keep(self.sites, most);
        if let Some(finding) = finding {
            self.judgment.add(finding);
        }
    }
}

impl Tally {
    /// Number of instances, without vacuous ones.
    pub const fn judged(&self) -> usize {
        self.judged
    }

    /// Whether all instances were vacuous.
    pub fn is_vacuous(&self) -> bool {
        let decided = self.judged + self.findings + self.inconclusive.len() + self.masked_by.len();
        decided == 0 && !self.vacuous.is_empty()
    }

    /// Number of findings, including those that were not kept.
    pub const fn findings(&self) -> usize {
        self.findings
    }

    /// Sites of instances, up to the requested number.
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

impl Judgment {
    /// A judgment with a maximum number of examples per rule.
    pub(super) fn with_examples(most: usize) -> Self {
        Self {
            examples_max: most,
            ..Self::default()
        }
    }

    /// Sites of instances of a rule; empty if none were requested or judged.
    pub fn examples(&self, rule: &str) -> &[Sites] {
        self.tallies.get(rule).map_or(&[], Tally::examples)
    }

    /// Drops the examples, which need most memory.
    #[must_use]
    pub fn without_examples(mut self) -> Self {
        for tally in self.tallies.values_mut() {
            tally.examples = Vec::new();
        }
        self
    }

    /// Counts an instance without a context.
    pub fn conclude(&mut self, rule: &str, finding: Option<Finding>) {
        self.count(rule, 1);
        if let Some(finding) = finding {
            self.add(finding);
        }
    }

    /// Counts instances that were judged elsewhere and passed.
    pub fn count(&mut self, rule: &str, instances: usize) {
        self.tally(rule).judged += instances;
    }

    /// The tally of a rule; a new one if there is none.
    fn tally(&mut self, rule: &str) -> &mut Tally {
        // Avoids allocating the id of a known rule.
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

    /// Records a vacuous instance.
    fn vacuous(&mut self, rule: &str, why: Vacuity) {
        *self.tally(rule).vacuous.entry(why).or_default() += 1;
    }

    /// Records that a rule could not be judged.
    pub fn inconclusive(&mut self, rule: &str, why: &str) {
        let tally = self.tallies.entry(rule.to_owned()).or_default();
        tally.inconclusive.insert(why.to_owned());
    }

    /// The same rules, all inconclusive.
    #[must_use]
    pub fn void(&self, why: &str) -> Self {
        let mut void = Self::default();
        for rule in self.tallies.keys() {
            void.inconclusive(rule, why);
        }
        void
    }

    /// Replaces the verdicts on a rule by an inconclusive one.
    pub fn withdraw(&mut self, rule: &str, why: &str) {
        self.findings.retain(|finding| finding.rule != rule);
        self.tallies.shift_remove(rule);
        self.inconclusive(rule, why);
    }

    /// Records that a rule could not be judged because another one was violated.
    pub fn masked(&mut self, rule: &str, broken: &str) {
        let tally = self.tallies.entry(rule.to_owned()).or_default();
        tally.masked_by.insert(broken.to_owned());
    }

    /// Adds another judgment.
    pub fn merge(&mut self, other: Self) {
        let findings = self.merge_tallies(other);
        self.findings.extend(findings);
    }

    /// As `merge`, but returns the findings: their order may differ from that of the scenarios.
    #[must_use = "the findings are not merged"]
    pub fn merge_tallies(&mut self, other: Self) -> Vec<Finding> {
        for (rule, tally) in other.tallies {
            let mine = self.tallies.entry(rule).or_default();
            mine.judged += tally.judged;
            mine.findings += tally.findings;
            mine.inconclusive.extend(tally.inconclusive);
            mine.masked_by.extend(tally.masked_by);
            for (why, times) in tally.vacuous {
                *mine.vacuous.entry(why).or_default() += times;
            }
        }
        for (point, seen) in other.observed {
            self.observed.entry(point).or_default().extend(seen);
        }
        other.findings
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.has_enough_findings(&finding.rule) {
            return;
        }
        let tally = self.tallies.entry(finding.rule.clone()).or_default();
        tally.findings += 1;
        self.findings.push(finding);
    }

    /// Whether a rule has so many findings that further ones are only counted.
    fn has_enough_findings(&mut self, rule: &str) -> bool {
        let Some(tally) = self.tallies.get_mut(rule) else {
            return false;
        };
        let has_enough_findings = tally.findings >= FINDINGS_MAX;
        tally.findings += usize::from(has_enough_findings);
        has_enough_findings
    }
}
