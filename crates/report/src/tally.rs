//! Counts rules by verdict and scenarios that pass, of one service or of the whole record.

use super::Settings;
use super::view::{self, Effect};
use conformant_base::source::Document;
use conformant_record::{Asked, RuleResult, RunRecord, Verdict};
use std::collections::BTreeMap;

/// Results of one service, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) name: String,
    pub(super) target: Option<String>,
    pub(super) exchanges: Option<Asked>,
    pub(super) passed: usize,
    pub(super) broken: usize,
    pub(super) warned: usize,
    pub(super) advised: usize,
    pub(super) waived: usize,
    pub(super) open: usize,
    pub(super) inconclusive: usize,
    pub(super) error: usize,
    pub(super) not_judged: usize,
    pub(super) not_applicable: usize,
    pub(super) scenarios: usize,
    pub(super) scenarios_passed: usize,
}

impl Tally {
    fn take(&mut self, rule: &RuleResult, settings: Settings) {
        *match rule.verdict {
            Verdict::Pass => &mut self.passed,
            Verdict::Fail => match Effect::of_rule(rule, settings) {
                Effect::Fails => &mut self.broken,
                Effect::Warns => &mut self.warned,
                Effect::Advises => &mut self.advised,
            },
            Verdict::Open => &mut self.open,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::NotApplicable => &mut self.not_applicable,
            Verdict::Waived => &mut self.waived,
            Verdict::Error => &mut self.error,
            Verdict::NotJudged => &mut self.not_judged,
        } += 1;
    }

    /// Rules with a verdict.
    pub(super) fn judged(&self) -> usize {
        self.passed + self.broken + self.warned + self.advised + self.waived
    }

    /// Rules that are not decided, for any reason.
    pub(super) fn undecided(&self) -> usize {
        self.inconclusive + self.error + self.not_judged + self.not_applicable
    }

    /// All rules.
    pub(super) fn rules(&self) -> usize {
        self.judged() + self.open + self.undecided()
    }

    /// `789 pass · 9 broken · 4 open (`conformant list open-points`) · 18 not decided (15 not judged, 3 inconclusive)`.
    pub(super) fn words(&self) -> String {
        const UNDECIDED: [&str; 4] = ["inconclusive", "error", "not-judged", "not-applicable"];
        let (mut parts, mut undecided) = (Vec::new(), Vec::new());
        for (class, word, count) in self.parts() {
            let text = match class {
                // Their ids are not on the screen.
                "open" => format!("{count} open (`conformant list open-points`)"),
                _ => format!("{count} {word}"),
            };
            if UNDECIDED.contains(&class) {
                undecided.push(text);
            } else {
                parts.push(text);
            }
        }
        if !undecided.is_empty() {
            let split = undecided.join(", ");
            parts.push(format!("{} not decided ({split})", self.undecided()));
        }
        if parts.is_empty() {
            return "none".to_owned();
        }
        parts.join(" · ")
    }

    /// Class, word and count of each verdict that occurs, in display order.
    pub(super) fn parts(&self) -> Vec<(&'static str, &'static str, usize)> {
        [
            ("pass", "pass", self.passed),
            ("fail", "broken", self.broken),
            (
                "warn",
                if self.warned == 1 {
                    "warning"
                } else {
                    "warnings"
                },
                self.warned,
            ),
            ("advice", "to clients", self.advised),
            ("waived", "waived", self.waived),
            ("inconclusive", "inconclusive", self.inconclusive),
            (
                "error",
                if self.error == 1 {
                    "internal error"
                } else {
                    "internal errors"
                },
                self.error,
            ),
            ("not-judged", "not judged", self.not_judged),
            ("not-applicable", "not applicable", self.not_applicable),
            (
                "open",
                if self.open == 1 {
                    "unspecified behavior"
                } else {
                    "unspecified behaviors"
                },
                self.open,
            ),
        ]
        .into_iter()
        .filter(|(_, _, count)| *count > 0)
        .collect()
    }
}

/// Totals over all services.
pub(super) fn whole(record: &RunRecord, settings: Settings) -> Tally {
    let mut whole = Tally::default();
    for rule in &record.rules {
        whole.take(rule, settings);
    }
    let passed = record
        .scenarios
        .iter()
        .filter(|s| s.verdict == Verdict::Pass);
    (whole.scenarios, whole.scenarios_passed) = (record.scenarios.len(), passed.count());
    whole
}

/// The services of a record, by the ids of rules and scenarios: targets first, by their documents.
pub(super) fn services(record: &RunRecord, settings: Settings) -> Vec<Tally> {
    let mut documents: BTreeMap<&str, Document> = BTreeMap::new();
    for rule in &record.rules {
        let document = rule.source.document;
        let first = documents.entry(view::service(&rule.id)).or_insert(document);
        *first = document.min(*first);
    }
    let key = |id| {
        let name: &str = view::service(id);
        let document = documents.get(name).copied();
        let is_targeted = record.targets.contains_key(name);
        (!is_targeted, document.is_none(), document, name)
    };
    let mut tallies: BTreeMap<_, Tally> = BTreeMap::new();
    for rule in &record.rules {
        tallies
            .entry(key(&rule.id))
            .or_default()
            .take(rule, settings);
    }
    // The scenarios of `check` are files.
    let is_service = |id: &str| {
        let name = view::service(id);
        documents.contains_key(name) || record.targets.contains_key(name)
    };
    for scenario in record.scenarios.iter().filter(|one| is_service(&one.id)) {
        let tally = tallies.entry(key(&scenario.id)).or_default();
        tally.scenarios += 1;
        tally.scenarios_passed += usize::from(scenario.verdict == Verdict::Pass);
    }
    let filled = tallies.into_iter().map(|((.., name), tally)| Tally {
        name: name.to_owned(),
        target: record.targets.get(name).cloned(),
        exchanges: record.summary.services.get(name).copied(),
        ..tally
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;

    #[test]
    fn services_and_verdicts_add_up() {
        let record = sample();
        let whole = whole(&record, Settings::default());
        assert_eq!(whole.rules(), record.rules.len());
        assert_eq!((whole.broken, whole.warned, whole.waived), (1, 1, 1));
        assert_eq!(
            services(&record, Settings::default())[0].rules(),
            whole.rules()
        );
        assert_eq!(
            whole.parts().iter().map(|p| p.2).sum::<usize>(),
            whole.rules()
        );
    }
}
