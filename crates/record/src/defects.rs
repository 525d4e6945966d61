//! Groups broken rules by their likely cause.
//!
//! A fault is recognized by the rules that catch it, as recorded by the self-test. It is a guess: neither a verdict nor an exit
//! code depends on it.

use super::detection::{KnownDefects, detection};
use super::title::title_of;
use super::{Defect, Finding, Level, RuleResult, RunRecord, Verdict, is_of_other_account};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Broken rules of a fault with which it may be the cause, although another rule of it holds.
const MANY_RULES: usize = 4;

/// A fault of the reference with the rules that catch it in the self-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPattern {
    pub id: String,
    /// Its behavior in one sentence.
    pub says: String,
    pub rules: BTreeSet<String>,
}

/// Adds defects and the estimated detection rate to a finished record; warnings count in strict runs.
pub fn add_defects(record: &mut RunRecord, known: &KnownDefects, is_strict: bool) {
    record.defects = defects(&record.rules, &record.findings, &known.faults);
    record.detection = detection(record, known, is_strict);
}

/// Assigns every broken rule to one defect: failures before warnings, then by number of scenarios and of rules.
pub fn defects(rules: &[RuleResult], findings: &[Finding], faults: &[FaultPattern]) -> Vec<Defect> {
    let seen = Seen::new(rules, findings);
    let mut left = seen.broken.keys().copied().collect();
    let mut defects = like_faults(&seen, faults, &mut left);
    defects.extend(unlike_faults(&seen, &left));
    defects.sort_by(|a, b| {
        let rank = |d: &Defect| {
            (
                d.level,
                usize::MAX - d.scenarios,
                usize::MAX - d.rules.len(),
            )
        };
        (rank(a), &a.title, &a.rules).cmp(&(rank(b), &b.title, &b.rules))
    });
    defects
}

struct Seen<'a> {
    broken: BTreeMap<&'a str, &'a RuleResult>,
    judged: BTreeSet<&'a str>,
    findings: BTreeMap<&'a str, Vec<&'a Finding>>,
    /// Rules with waived findings.
    accepted: BTreeSet<&'a str>,
}

impl<'a> Seen<'a> {
    fn new(rules: &'a [RuleResult], findings: &'a [Finding]) -> Self {
        let mut by_rule: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
        for finding in findings.iter().filter(|finding| finding.waived.is_empty()) {
            by_rule.entry(&finding.rule).or_default().push(finding);
        }
        for of_rule in by_rule.values_mut() {
            of_rule.sort_by_key(|finding| finding.complexity());
        }
        let broken = rules.iter().filter(|rule| rule.verdict == Verdict::Fail);
        let judged = rules.iter().filter(|rule| {
            // A vacuous rule was evaluated, and is not judged.
            rule.judged > 0 && rule.verdict != Verdict::NotJudged || rule.findings > 0
        });
        Self {
            broken: broken.map(|rule| (rule.id.as_str(), rule)).collect(),
            judged: judged.map(|rule| rule.id.as_str()).collect(),
            findings: by_rule,
            accepted: findings
                .iter()
                .filter(|finding| !finding.waived.is_empty())
                .map(|finding| finding.rule.as_str())
                .collect(),
        }
    }

    /// The findings of a rule without the waived ones; its full count if none is waived.
    fn findings_of(&self, rule: &str) -> usize {
        let listed = self.of_rule(rule).len();
        match self.accepted.contains(rule) {
            true => listed,
            false => self.broken[rule].findings.max(listed),
        }
    }

    fn of_rule(&self, rule: &str) -> &[&'a Finding] {
        self.findings.get(rule).map_or(&[], Vec::as_slice)
    }

    /// A defect of these rules, which must not be empty. Its title is about the first finding of its first rule.
    fn defect(&self, rules: &[&str], similar_faults: Vec<String>) -> Defect {
        let mut rules = rules.to_vec();
        rules.sort_by_key(|rule| {
            let found = self.of_rule(rule);
            let urgency = found.iter().map(|finding| finding.urgency()).min();
            // Where pages lack items, the addresses of pages lead elsewhere, too.
            let is_effect = found.iter().all(|finding| finding.kind == "page-url");
            let is_of_other = found
                .iter()
                .all(|finding| is_of_other_account(&finding.scenario));
            let rank = (is_effect, is_of_other, Reverse(found.len()));
            (urgency.is_none(), urgency, rank)
        });
        let of_rules = rules.iter().flat_map(|rule| self.of_rule(rule)).copied();
        let scenarios: BTreeSet<&str> = of_rules.clone().map(|f| f.scenario.as_str()).collect();
        let level = rules.iter().map(|rule| self.broken[rule].level).min();
        let first = rules.first().copied().unwrap_or_default();
        let says = || self.broken[first].says.trim_end_matches('.').to_owned();
        Defect {
            title: title_of(of_rules).unwrap_or_else(says),
            similar_faults,
            service: first.split('/').next().unwrap_or_default().to_owned(),
            level: level.unwrap_or(Level::Must),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            findings: rules.iter().map(|rule| self.findings_of(rule)).sum(),
            scenarios: scenarios.len(),
        }
    }
}

/// Kinds of differences that follow from other fields: a statement of a scenario, a state at the wrong time.
const CONSEQUENCES: [&str; 2] = ["story", "untimely"];

/// What the findings of a broken rule are about.
#[derive(Default)]
struct Subject<'a> {
    scenarios: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
    /// Pointers without the indexes of items.
    places: BTreeSet<String>,
    /// Whether a finding is about a whole answer, or one of the [`CONSEQUENCES`]: any cause may lead to it.
    is_general: bool,
}

impl<'a> Subject<'a> {
    fn of(findings: &[&'a Finding]) -> Self {
        let mut subject = Self::default();
        for finding in findings {
            let mut place = String::new();
            let names = finding.pointer.split('/').skip(1);
            for name in names.filter(|name| name.parse::<usize>().is_err()) {
                place.push('/');
                place.push_str(name);
            }
            subject.is_general |= place.is_empty() || CONSEQUENCES.contains(&finding.kind.as_str());
            subject.scenarios.insert(&finding.scenario);
            subject.kinds.insert(&finding.kind);
            subject.places.insert(place);
        }
        subject.is_general |= findings.is_empty();
        subject
    }

    /// Whether one cause may lead to both: in the same scenario, with the same kind of difference, or at the same field.
    fn may_share_cause(&self, other: &Self) -> bool {
        let is_within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_same_field = |one: &str, two: &str| {
            is_within(one, two)
                || is_within(two, one)
                || one.rsplit('/').next() == two.rsplit('/').next()
        };
        let has_same_field = || {
            let mut places = self.places.iter();
            places.any(|one| other.places.iter().any(|two| is_same_field(one, two)))
        };
        self.is_general
            || other.is_general
            || !self.scenarios.is_disjoint(&other.scenarios)
            || !self.kinds.is_disjoint(&other.kinds)
            || has_same_field()
    }
}

/// Whether all these rules may have one cause, some of them by way of others.
fn may_have_one_cause(rules: &[&str], subjects: &BTreeMap<&str, Subject<'_>>) -> bool {
    let mut left: Vec<&Subject<'_>> = rules.iter().filter_map(|rule| subjects.get(rule)).collect();
    let mut reached: Vec<&Subject<'_>> = left.pop().into_iter().collect();
    while let Some(subject) = reached.pop() {
        let (related, others) = left
            .into_iter()
            .partition(|other| subject.may_share_cause(other));
        left = others;
        let related: Vec<&Subject<'_>> = related;
        reached.extend(related);
    }
    left.is_empty()
}

/// A fault with the judged rules that catch it.
struct Candidate<'a> {
    fault: &'a FaultPattern,
    rules: BTreeSet<&'a str>,
}

impl<'a> Candidate<'a> {
    /// Number of its rules not yet explained.
    fn covers(&self, left: &BTreeSet<&str>) -> usize {
        self.rules.intersection(left).count()
    }

    /// Candidates that explain something: most rules first, then the narrowest.
    fn ranked(all: &'a [Self], left: &BTreeSet<&str>) -> Vec<&'a Self> {
        let mut some: Vec<(usize, &Self)> = all
            .iter()
            .map(|candidate| (candidate.covers(left), candidate))
            .filter(|(covered, _)| *covered > 0)
            .collect();
        some.sort_by_key(|(covered, candidate)| {
            let id = candidate.fault.id.as_str();
            (usize::MAX - covered, candidate.rules.len(), id)
        });
        some.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// The next candidate. The one that explains most may be wrong: if two defects overlap, the pattern of a
    /// third can contain rules of both. Each rival is tried first, and the fewest resulting defects win.
    fn next(all: &'a [Self], left: &BTreeSet<&str>) -> Option<&'a Self> {
        /// Rivals tried.
        const RIVALS_MAX: usize = 24;
        let ranked = Self::ranked(all, left);
        let first = ranked.first()?;
        let rivals = ranked.iter().filter(|rival| {
            let mut shared = rival.rules.intersection(&first.rules);
            shared.any(|rule| left.contains(rule))
        });
        let rivals: Vec<&Self> = rivals.take(RIVALS_MAX).copied().collect();
        let near: BTreeSet<&str> = rivals
            .iter()
            .flat_map(|rival| rival.rules.intersection(left).copied())
            .collect();
        let steps = |begin: &Self| {
            let mut left: BTreeSet<&str> = near.difference(&begin.rules).copied().collect();
            let mut steps = 1;
            while let Some(next) = Self::ranked(all, &left).first() {
                left.retain(|rule| !next.rules.contains(rule));
                steps += 1;
            }
            steps
        };
        rivals.into_iter().min_by_key(|rival| steps(rival))
    }
}

/// A minimal set of faults all of whose judged rules are broken, or all but one of many, if one cause may have broken them.
fn like_faults<'a>(
    seen: &Seen<'a>,
    faults: &[FaultPattern],
    left: &mut BTreeSet<&'a str>,
) -> Vec<Defect> {
    let subjects: BTreeMap<&str, Subject<'_>> = left
        .iter()
        .map(|rule| (*rule, Subject::of(seen.of_rule(rule))))
        .collect();
    let candidates: Vec<Candidate<'_>> = faults
        .iter()
        .map(|fault| {
            let rules = fault.rules.iter().map(String::as_str);
            let rules = rules.filter(|rule| seen.judged.contains(rule)).collect();
            Candidate { fault, rules }
        })
        .filter(|Candidate { rules, .. }| {
            let is_broken = |rule: &&str| seen.broken.contains_key(*rule);
            let broken: Vec<&str> = rules.iter().copied().filter(is_broken).collect();
            let count = broken.len();
            // One of many rules may hold by chance, or because the defect is a little different.
            let has_pattern =
                count == rules.len() || count >= MANY_RULES && count + 1 == rules.len();
            count > 0 && has_pattern && may_have_one_cause(&broken, &subjects)
        })
        .collect();
    let mut defects = Vec::new();
    while let Some(next) = Candidate::next(&candidates, left) {
        // A few of its rules do not identify a fault: others break them, too.
        let alike = candidates.iter().filter(|candidate| {
            candidate.rules == next.rules
                && candidate.rules.len() * 2 >= candidate.fault.rules.len()
        });
        let ids = alike.map(|candidate| candidate.fault.id.clone()).collect();
        let rules: Vec<&str> = left
            .iter()
            .copied()
            .filter(|rule| next.rules.contains(rule))
            .collect();
        left.retain(|rule| !next.rules.contains(rule));
        defects.push(seen.defect(&rules, ids));
    }
    defects
}

/// Groups the other rules by service, member name and kind of difference.
fn unlike_faults(seen: &Seen<'_>, left: &BTreeSet<&str>) -> Vec<Defect> {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for rule in left {
        let service = rule.split('/').next().unwrap_or_default();
        let key = match seen.of_rule(rule).first() {
            Some(first) if !first.pointer.is_empty() => {
                let name = first.pointer.rsplit('/').next().unwrap_or_default();
                (service, name, first.kind.as_str())
            }
            Some(_) | None => (service, *rule, ""),
        };
        groups.entry(key).or_default().push(rule);
    }
    let groups = groups.into_iter();
    groups
        .map(|(_, rules)| seen.defect(&rules, Vec::new()))
        .collect()
}
