//! Counts rules by verdict and scenarios that pass, of one service or of the whole record.

use super::Settings;
use super::view::{self, Effect};
use conformant_base::source::Document;
use conformant_record::{Asked, RuleResult, RunRecord, Verdict};
use std::collections::BTreeMap;
use std::ops::Index;

/// The verdict of a rule, with the effect of a broken one; in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Passed,
    Broken,
    Warned,
    Advised,
    Waived,
    Inconclusive,
    Error,
    NotJudged,
    NotApplicable,
    Open,
}

/// How reports write a state.
pub(super) struct Shown {
    /// The class of a part of a bar.
    pub(super) class: &'static str,
    /// The first character of a line in a list.
    pub(super) sign: char,
    /// The class of a cell.
    pub(super) cell: &'static str,
    pub(super) word: &'static str,
}

impl State {
    const ALL: [Self; 10] = [
        Self::Passed,
        Self::Broken,
        Self::Warned,
        Self::Advised,
        Self::Waived,
        Self::Inconclusive,
        Self::Error,
        Self::NotJudged,
        Self::NotApplicable,
        Self::Open,
    ];

    pub(super) fn of(rule: &RuleResult, settings: Settings) -> Self {
        match (rule.verdict, Effect::of_rule(rule, settings)) {
            (Verdict::Fail, Effect::Warns) => Self::Warned,
            (Verdict::Fail, Effect::Advises) => Self::Advised,
            (verdict, _) => verdict.into(),
        }
    }

    pub(super) fn shown(self) -> Shown {
        let (class, sign, cell, word) = match self {
            Self::Passed => ("pass", '+', "", "pass"),
            Self::Broken => ("fail", 'x', "f", "broken"),
            Self::Warned => ("warn", '!', "w", "warning"),
            Self::Advised => ("advice", '*', "d", "to clients"),
            Self::Waived => ("waived", 'w', "v", "waived"),
            Self::Inconclusive => ("inconclusive", 'i', "c", "inconclusive"),
            Self::Error => ("error", 'e', "e", "internal error"),
            Self::NotJudged => ("not-judged", '?', "j", "not judged"),
            Self::NotApplicable => ("not-applicable", 'n', "a", "not applicable"),
            Self::Open => ("open", 'o', "o", "open"),
        };
        Shown {
            class,
            sign,
            cell,
            word,
        }
    }

    /// The word after a number of rules.
    pub(super) fn noun(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Warned, _) => "warning only",
            (Self::Error, 2..) => "internal errors",
            (Self::Open, 1) => "unspecified behavior",
            (Self::Open, _) => "unspecified behaviors",
            _ => self.shown().word,
        }
    }

    fn is_undecided(self) -> bool {
        matches!(
            self,
            Self::Inconclusive | Self::Error | Self::NotJudged | Self::NotApplicable
        )
    }
}

impl From<Verdict> for State {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Passed,
            Verdict::Fail => Self::Broken,
            Verdict::Open => Self::Open,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::NotApplicable => Self::NotApplicable,
            Verdict::Waived => Self::Waived,
            Verdict::Error => Self::Error,
            Verdict::NotJudged => Self::NotJudged,
        }
    }
}

/// Results of one service, of a part of the rules, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) name: String,
    pub(super) target: Option<String>,
    pub(super) exchanges: Option<Asked>,
    pub(super) scenarios: usize,
    pub(super) scenarios_passed: usize,
    rules: [usize; State::ALL.len()],
}

impl Index<State> for Tally {
    type Output = usize;

    fn index(&self, state: State) -> &usize {
        &self.rules[state as usize]
    }
}

impl Tally {
    pub(super) fn of<'r>(
        rules: impl IntoIterator<Item = &'r RuleResult>,
        settings: Settings,
    ) -> Self {
        let mut tally = Self::default();
        for rule in rules {
            tally.rules[State::of(rule, settings) as usize] += 1;
        }
        tally
    }

    /// Rules with a verdict.
    pub(super) fn judged(&self) -> usize {
        let judged = [
            State::Passed,
            State::Broken,
            State::Warned,
            State::Advised,
            State::Waived,
        ];
        judged.map(|state| self[state]).iter().sum()
    }

    /// Rules that are not decided, for any reason.
    pub(super) fn undecided(&self) -> usize {
        let undecided = self.parts().filter(|(state, _)| state.is_undecided());
        undecided.map(|(_, count)| count).sum()
    }

    /// All rules.
    pub(super) fn rules(&self) -> usize {
        self.rules.iter().sum()
    }

    /// `789 pass · 9 broken · 4 open (`conformant list open-points`) · 18 not decided (15 not judged, 3 inconclusive)`.
    pub(super) fn words(&self) -> String {
        let (mut parts, mut undecided) = (Vec::new(), Vec::new());
        for (state, count) in self.parts() {
            // The ids of open points are not on the screen.
            let text = if state == State::Open {
                format!("{count} open (`conformant list open-points`)")
            } else {
                format!("{count} {}", state.noun(count))
            };
            if state.is_undecided() {
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

    /// The states that occur, with the number of their rules.
    pub(super) fn parts(&self) -> impl Iterator<Item = (State, usize)> {
        let all = State::ALL.into_iter().zip(self.rules);
        all.filter(|(_, count)| *count > 0)
    }
}

/// Totals over all services.
pub(super) fn whole(record: &RunRecord, settings: Settings) -> Tally {
    Tally::of(&record.rules, settings)
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
        let tally = tallies.entry(key(&rule.id)).or_default();
        tally.rules[State::of(rule, settings) as usize] += 1;
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
        for state in [State::Broken, State::Warned, State::Waived] {
            assert_eq!(whole[state], 1, "{state:?}");
        }
        let services = services(&record, Settings::default());
        assert_eq!(services[0].rules(), whole.rules());
    }
}
