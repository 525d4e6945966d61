//! Defects with their rules, findings and exchanges: the basis of every format for people. Writes no
//! format's syntax.

use super::Settings;
use super::view::{self, Broken, Weight};
use conformant_base::source::Document;
use conformant_base::text;
use conformant_record::{
    Asked, Defect, Delivery, Finding, Level, RuleResult, RunRecord, ScenarioResult, ShownExchange,
    Verdict,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Card<'a> {
    /// Its number in every report and for `reproduce`, from 1.
    pub(super) number: usize,
    pub(super) defect: Defect,
    /// Failing rules first, then those with the most findings.
    pub(super) rules: Vec<Broken<'a>>,
    /// The most severe weight of its rules.
    pub(super) weight: Weight,
    /// Number of scenarios whose set-up fails because of it.
    pub(super) blocked_scenarios: usize,
    /// Number of scenarios in which a hook fails, probably because of it.
    pub(super) hook_failures: usize,
}

impl Card<'_> {
    /// The finding that its title is about.
    pub(super) fn first(&self) -> Option<&Finding> {
        self.rules.first()?.findings.first().copied()
    }

    /// Whether one of its findings is the reason of a failed set-up.
    pub(super) fn explains(&self, reason: &str) -> bool {
        let findings = self.rules.iter().flat_map(|rule| &rule.findings);
        let mut findings = findings.filter(|finding| !finding.operation.is_empty());
        let masked = reason.strip_prefix("masked by ");
        findings.any(|finding| is_reason(finding, reason))
            || masked.is_some_and(|rule| self.rules.iter().any(|broken| broken.id == rule))
    }

    /// `flow · 4 rules · 200 findings in 55 scenarios`.
    pub(super) fn extent(&self) -> String {
        let defect = &self.defect;
        let mut text = format!(
            "{} · {} · {}",
            defect.service,
            view::count(self.rules.len(), "rule"),
            view::count(defect.findings, "finding"),
        );
        if defect.scenarios > 0
            && self
                .rules
                .iter()
                .any(|rule| rule.findings.iter().any(|f| !f.scenario.is_empty()))
        {
            text += &format!(" in {}", view::count(defect.scenarios, "scenario"));
        }
        text
    }

    /// The built-in example faults that break the same rules, if they are few: always a guess.
    pub(super) fn guess(&self) -> Option<String> {
        /// More names would not help.
        const NAMED_MAX: usize = 3;
        let faults = match self.defect.known.as_slice() {
            [_] => "the reference's fault",
            [_, ..] if self.defect.known.len() <= NAMED_MAX => "the reference's faults",
            [] | [..] => return None,
        };
        let names = self.defect.known.join(", ");
        Some(format!("similar to {faults} {names} (a guess)"))
    }
}

/// A hook that failed in scenarios, which are inconclusive because of it.
#[derive(Debug, PartialEq, Eq)]
pub struct FailedHook<'a> {
    pub name: &'a str,
    /// The reason in the first scenario.
    pub why: &'a str,
    pub scenarios: usize,
    /// The number of the defect that is the probable cause.
    pub defect: Option<usize>,
}

/// The hooks that failed, by name.
pub fn failed_hooks(record: &RunRecord) -> Vec<FailedHook<'_>> {
    let cards = cards(record, Settings::default());
    let mut hooks: BTreeMap<&str, FailedHook<'_>> = BTreeMap::new();
    for scenario in &record.scenarios {
        let Some((name, why)) = failed_hook(&scenario.reason) else {
            continue;
        };
        let hook = hooks.entry(name).or_insert_with(|| FailedHook {
            name,
            why,
            scenarios: 0,
            defect: cause_of_hook(&cards, view::service(&scenario.id)).map(|at| cards[at].number),
        });
        hook.scenarios += 1;
    }
    hooks.into_values().collect()
}

/// The hook that failed, and why.
fn failed_hook(reason: &str) -> Option<(&str, &str)> {
    reason.strip_prefix("hook ")?.split_once(" failed: ")
}

/// The defect that probably makes hooks of a service fail: the one that stops the set-up of most of its scenarios. The
/// service has lost what the hook names.
fn cause_of_hook(cards: &[Card<'_>], service: &str) -> Option<usize> {
    let of_service = cards.iter().enumerate();
    let of_service =
        of_service.filter(|(_, card)| card.blocked_scenarios > 0 && card.defect.service == service);
    let most = of_service.max_by_key(|(at, card)| (card.blocked_scenarios, Reverse(*at)));
    most.map(|(at, _)| at)
}

/// The defect that probably explains why a rule was not decided for this reason.
pub(super) fn cause_of<'c, 'r>(
    record: &RunRecord,
    cards: &'c [Card<'r>],
    rule: &str,
    reason: &str,
) -> Option<&'c Card<'r>> {
    if let Some(id) = conformant_record::scenario_that_stopped(reason) {
        let scenario = record.scenarios.iter().find(|one| one.id == id)?;
        if scenario.verdict != Verdict::Fail {
            return cause_of(record, cards, &scenario.id, &scenario.reason);
        }
        return cards.iter().find(|card| {
            let mut findings = card.rules.iter().flat_map(|rule| &rule.findings);
            findings.any(|finding| finding.scenario == id)
        });
    }
    let explained = cards.iter().find(|card| card.explains(reason));
    explained.or_else(|| {
        failed_hook(reason)?;
        cause_of_hook(cards, view::service(rule)).map(|at| &cards[at])
    })
}

/// Whether a scenario or rule that is not decided names this finding as the reason.
fn is_reason(finding: &Finding, reason: &str) -> bool {
    let cause = reason.split_once(": ").map(|(_, cause)| cause);
    cause == Some(finding.message.as_str())
}

/// The finding that a defect is about, by the number in every report; otherwise the number of defects.
pub fn finding_of_defect(record: &RunRecord, number: usize) -> Result<Finding, usize> {
    let cards = cards(record, Settings::default());
    let card = number.checked_sub(1).and_then(|at| cards.get(at));
    let first = card.and_then(Card::first);
    first.cloned().ok_or(cards.len())
}

/// The defects of a record; each broken rule belongs to one of them.
pub(super) fn cards(record: &RunRecord, settings: Settings) -> Vec<Card<'_>> {
    let broken = view::broken(record, settings).into_iter();
    let mut broken: BTreeMap<&str, Broken> = broken.map(|rule| (rule.id, rule)).collect();
    let mut cards: Vec<Card> = defects_of(record)
        .into_iter()
        .map(|defect| {
            let rules = defect
                .rules
                .iter()
                .filter_map(|id| broken.remove(id.as_str()));
            let rules = rules.collect();
            card(defect, rules)
        })
        .filter(|card| !card.rules.is_empty())
        .collect();
    // Findings of rules that the record does not list, or not as a failure.
    for (id, rule) in broken {
        let scenarios: BTreeSet<&str> = rule.findings.iter().map(|f| f.scenario.as_str()).collect();
        let defect = Defect {
            title: rule
                .findings
                .first()
                .map(|f| f.message.clone())
                .unwrap_or_default(),
            known: Vec::new(),
            service: view::service(id).to_owned(),
            level: match rule.weight {
                Weight::Fails => Level::Must,
                Weight::Warns | Weight::Advises => Level::Should,
            },
            rules: vec![id.to_owned()],
            findings: rule.findings.len(),
            scenarios: scenarios.len(),
        };
        cards.push(card(defect, vec![rule]));
    }
    // `--strict` must not change the numbers of defects.
    cards.sort_by_key(|card| card.first().map(Finding::urgency));
    for (at, card) in cards.iter_mut().enumerate() {
        card.number = at + 1;
    }
    for scenario in &record.scenarios {
        let cause = cards.iter_mut().find(|card| {
            scenario.verdict == Verdict::Inconclusive && card.explains(&scenario.reason)
        });
        if let Some(card) = cause {
            card.blocked_scenarios += 1;
        }
    }
    for scenario in &record.scenarios {
        if failed_hook(&scenario.reason).is_some()
            && let Some(at) = cause_of_hook(&cards, view::service(&scenario.id))
        {
            cards[at].hook_failures += 1;
        }
    }
    cards
}

fn card(defect: Defect, mut rules: Vec<Broken<'_>>) -> Card<'_> {
    rules.sort_by_key(|rule| {
        let urgency = rule.findings.iter().map(|finding| finding.urgency()).min();
        (urgency, Reverse(rule.findings.len()))
    });
    let weight = rules.iter().map(|rule| rule.weight).min();
    Card {
        number: 0,
        defect,
        rules,
        weight: weight.unwrap_or(Weight::Fails),
        blocked_scenarios: 0,
        hook_failures: 0,
    }
}

/// Older records and those of files have no defects: their rules are grouped by observation.
fn defects_of(record: &RunRecord) -> Vec<Defect> {
    if record.defects.is_empty() {
        return conformant_record::defects(&record.rules, &record.findings, &[]);
    }
    record.defects.clone()
}

/// The exchange of a finding, or the most likely cause of its delivery.
pub(super) fn exchange_of<'a>(
    record: &'a RunRecord,
    finding: &Finding,
) -> Option<&'a ShownExchange> {
    match delivery_of(record, finding) {
        Some(delivery) => exchange_at(record, delivery.cause, ""),
        None => exchange_at(record, finding.exchange, &finding.pointer),
    }
}

/// The excerpt of an exchange around a place, or else any excerpt of it.
pub(super) fn exchange_at<'a>(
    record: &'a RunRecord,
    number: usize,
    pointer: &str,
) -> Option<&'a ShownExchange> {
    let mut all = record
        .exchanges
        .iter()
        .filter(|e| e.exchange == number && number > 0);
    let first = all.next()?;
    if first.pointer == pointer {
        return Some(first);
    }
    Some(all.find(|e| e.pointer == pointer).unwrap_or(first))
}

/// The callback or event of a finding without an exchange.
pub(super) fn delivery_of<'a>(record: &'a RunRecord, finding: &Finding) -> Option<&'a Delivery> {
    if finding.exchange > 0 {
        return None;
    }
    record.deliveries.iter().find(|d| {
        d.scenario == finding.scenario && d.step == finding.step && d.pointer == finding.pointer
    })
}

/// The command that reproduces a finding: a run of its scenario against the same target, or the check of its file.
///
/// A live target may keep the names of the run, so that another run needs new ones.
pub(super) fn reproduce_command(record: &RunRecord, finding: &Finding) -> Option<String> {
    /// Flags with a value that select scenarios, or that only a whole run needs.
    const LEFT_OUT: [&str; 10] = [
        "--filter",
        "--service",
        "--partition",
        "--since",
        "--rerun",
        "--repeat",
        "--names",
        "--min-judged",
        "--keep-evidence",
        "--global-timeout",
    ];
    const SWITCHES: [&str; 4] = [
        "--shuffle",
        "--require-complete",
        "--require-target",
        "--reference",
    ];
    let words = text::shell_words(&record.invocation);
    if words.get(1).is_some_and(|command| command != "run") {
        return Some(record.invocation.clone());
    }
    if finding.step == 0 || finding.scenario.is_empty() {
        return None;
    }
    let mut command = "conformant run".to_owned();
    if !record.is_live() {
        command += " --reference";
    }
    let mut is_seeded = false;
    for (flag, words) in flags(&words) {
        is_seeded |= flag == "--seed";
        if !LEFT_OUT.contains(&flag) && !SWITCHES.contains(&flag) {
            for word in words {
                command = format!("{command} {}", text::shell_quoted(word));
            }
        }
    }
    if !is_seeded && record.seed != 0 {
        command += &format!(" --seed {}", record.seed);
    }
    Some(format!(
        "{command} --filter {}",
        text::shell_quoted(&finding.scenario)
    ))
}

/// The flags of a command line, each with the words that state it.
fn flags(words: &[String]) -> Vec<(&str, &[String])> {
    let is_flag = |word: &String| word.starts_with("--");
    let begins: Vec<usize> = (0..words.len()).filter(|at| is_flag(&words[*at])).collect();
    let ends = begins.iter().skip(1).copied().chain([words.len()]);
    let flags = begins.iter().zip(ends).map(|(begin, end)| {
        let words = &words[*begin..end];
        let name = words[0].split('=').next().unwrap_or_default();
        (name, words)
    });
    flags.collect()
}

/// What the command line left out of a run: `--service chat`, `--prove off`.
pub(super) fn limits(record: &RunRecord) -> Vec<String> {
    /// Flags that make a run smaller.
    const LIMITS: [&str; 8] = [
        "--service",
        "--filter",
        "--partition",
        "--rerun",
        "--since",
        "--races",
        "--prove",
        "--global-timeout",
    ];
    let words = text::shell_words(&record.invocation);
    let limits = flags(&words).into_iter().map(|(flag, words)| {
        let mut words = words.to_vec();
        words[0] = words[0].replacen('=', " ", 1);
        (flag, words.join(" "))
    });
    limits
        .filter(|(flag, text)| {
            let is_whole =
                ["--prove rules", "--prove sample", "--races on"].contains(&text.as_str());
            LIMITS.contains(flag) && !is_whole
        })
        .map(|(_, text)| text)
        .collect()
}

/// The seed of a run, and the names that distinguish it where the record has them.
pub(super) fn seed(record: &RunRecord) -> String {
    let words = text::shell_words(&record.invocation);
    let names = flags(&words)
        .into_iter()
        .find(|(flag, _)| *flag == "--names");
    match names.map(|(_, words)| words.join("=")) {
        Some(names) => {
            let names = names.trim_start_matches("--names=");
            format!("{}, names {names}", record.seed)
        }
        None => record.seed.to_string(),
    }
}

/// What was judged: the address of the target, those of several targets, or the built-in reference.
pub(super) fn target(targets: &BTreeMap<String, String>, is_named: bool) -> String {
    let is_reference = |url: &&String| url.as_str() == conformant_record::REFERENCE;
    if targets.values().any(|url| is_reference(&url)) {
        let why = if is_named {
            ""
        } else {
            " (no target configured)"
        };
        return format!("built-in reference{why}");
    }
    let base = |(service, url): (&String, &String)| {
        Some(
            url.trim_end_matches('/')
                .strip_suffix(&format!("/{service}"))?
                .to_owned(),
        )
    };
    let bases: BTreeSet<Option<String>> = targets.iter().map(base).collect();
    if let (2.., [Some(base)]) = (
        targets.len(),
        bases.into_iter().collect::<Vec<_>>().as_slice(),
    ) {
        return base.clone();
    }
    if let [one] = targets.values().collect::<Vec<_>>().as_slice() {
        return (*one).clone();
    }
    let each = targets
        .iter()
        .map(|(service, url)| format!("{service} {url}"));
    each.collect::<Vec<_>>().join(", ")
}

/// The target of a record; empty for files.
pub(super) fn target_of(record: &RunRecord) -> String {
    let words = text::shell_words(&record.invocation);
    target(
        &record.targets,
        words.iter().any(|word| word == "--reference"),
    )
}

/// The scenario of a finding, if its steps are recorded.
pub(super) fn scenario_of<'a>(
    record: &'a RunRecord,
    finding: &Finding,
) -> Option<&'a ScenarioResult> {
    let at = record
        .scenarios
        .binary_search_by(|s| s.id.cmp(&finding.scenario))
        .ok()?;
    let result = &record.scenarios[at];
    (!result.steps.is_empty()).then_some(result)
}

/// Results of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceTally {
    pub(super) name: String,
    pub(super) target: Option<String>,
    pub(super) asked: Option<Asked>,
    pub(super) hold: usize,
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

impl ServiceTally {
    fn take(&mut self, rule: &RuleResult, settings: Settings) {
        *match rule.verdict {
            Verdict::Pass => &mut self.hold,
            Verdict::Fail => match Weight::of_rule(rule, settings) {
                Weight::Fails => &mut self.broken,
                Weight::Warns => &mut self.warned,
                Weight::Advises => &mut self.advised,
            },
            Verdict::Open => &mut self.open,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::NotApplicable => &mut self.not_applicable,
            Verdict::Waived => &mut self.waived,
            Verdict::Error => &mut self.error,
            Verdict::NotJudged => &mut self.not_judged,
        } += 1;
    }

    /// Rules that are decided.
    pub(super) fn judged(&self) -> usize {
        self.hold + self.broken + self.warned + self.advised + self.waived
    }

    /// Rules that are not decided, for any reason.
    pub(super) fn unjudged(&self) -> usize {
        self.inconclusive + self.error + self.not_judged + self.not_applicable
    }

    /// All rules.
    pub(super) fn rules(&self) -> usize {
        self.judged() + self.open + self.unjudged()
    }

    /// `789 pass · 9 broken · 4 unspecified behaviors · 18 not decided (15 not judged, 3 inconclusive)`.
    pub(super) fn words(&self) -> String {
        const SILENT: [&str; 4] = ["inconclusive", "error", "not-judged", "not-applicable"];
        let (silent, mut parts): (Vec<_>, Vec<_>) = self
            .parts()
            .into_iter()
            .map(|(class, word, count)| (SILENT.contains(&class), format!("{count} {word}")))
            .partition(|(is_silent, _)| *is_silent);
        if !silent.is_empty() {
            let split: Vec<String> = silent.into_iter().map(|(_, part)| part).collect();
            let whole = format!("{} not decided ({})", self.unjudged(), split.join(", "));
            parts.push((true, whole));
        }
        if parts.is_empty() {
            return "none".to_owned();
        }
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        parts.join(" · ")
    }

    /// Class, word and count of each verdict that occurs, in display order.
    pub(super) fn parts(&self) -> Vec<(&'static str, &'static str, usize)> {
        [
            ("pass", "pass", self.hold),
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
pub(super) fn whole(record: &RunRecord, settings: Settings) -> ServiceTally {
    let mut whole = ServiceTally::default();
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
pub(super) fn services(record: &RunRecord, settings: Settings) -> Vec<ServiceTally> {
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
    let mut tallies: BTreeMap<_, ServiceTally> = BTreeMap::new();
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
    let filled = tallies.into_iter().map(|((.., name), tally)| ServiceTally {
        name: name.to_owned(),
        target: record.targets.get(name).cloned(),
        asked: record.summary.services.get(name).copied(),
        ..tally
    });
    filled.collect()
}

/// What is missing to judge more rules: the need and the ids of its rules; most rules first.
pub(super) fn needs(record: &RunRecord) -> Vec<(String, Vec<&str>)> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for rule in &record.rules {
        let is_silent = matches!(
            rule.verdict,
            Verdict::Inconclusive | Verdict::NotApplicable | Verdict::NotJudged | Verdict::Error
        );
        if !is_silent {
            continue;
        }
        let what = match rule.needs.first() {
            Some(need) => need.clone(),
            None if rule.reason.is_empty() => view::name(rule.verdict).to_owned(),
            None => rule.reason.clone(),
        };
        groups.entry(what).or_default().push(&rule.id);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ids)| usize::MAX - ids.len());
    groups
}

/// Turns a need into advice: `Configure the hook end_execution`.
pub(super) fn advice(need: &str) -> String {
    match need.split_once(' ').filter(|(_, name)| !name.contains(' ')) {
        Some(("hook", name)) => format!("configure the hook {name}"),
        Some(("service", name)) => format!("configure a target for {name}"),
        Some(("key", name)) => format!("configure {name}"),
        _ if need == "callbacks" => "receive callbacks: set callbacks.listen".to_owned(),
        _ if need == "check" => "for files only: use conformant check".to_owned(),
        _ => need.to_owned(),
    }
}

/// Groups ids by folder: `flow/{a, b, …}`.
pub(super) fn group_by_folder(ids: &[&str], names_max: usize) -> Vec<String> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for id in ids {
        let (folder, name) = id.rsplit_once('/').unwrap_or(("", id));
        folders.entry(folder).or_default().push(name);
    }
    let titles = folders
        .into_iter()
        .map(|(folder, names)| match names.as_slice() {
            [one] if folder.is_empty() => (*one).to_owned(),
            [one] => format!("{folder}/{one}"),
            several => {
                let more = if several.len() > names_max {
                    ", …"
                } else {
                    ""
                };
                let shown = several[..several.len().min(names_max)].join(", ");
                format!("{folder}/{{{shown}{more}}}")
            }
        });
    titles.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;

    #[test]
    fn every_broken_rule_is_in_one_card_with_and_without_defects() {
        let mut record = sample();
        for _ in 0..2 {
            let titles: Vec<_> = cards(&record, Settings::default())
                .iter()
                .map(|card| {
                    (
                        card.weight,
                        card.rules
                            .iter()
                            .map(|r| r.id.to_owned())
                            .collect::<Vec<_>>(),
                    )
                })
                .collect();
            assert_eq!(
                titles,
                [
                    (Weight::Fails, vec!["flow/execution/status".to_owned()]),
                    (
                        Weight::Warns,
                        vec!["flow/execution/no-other-fields".to_owned()]
                    ),
                ]
            );
            record.defects.clear();
        }
    }

    #[test]
    fn a_defect_that_stops_set_ups_is_the_probable_cause_of_failed_hooks() {
        let mut record = sample();
        let finding = record.findings[0].clone();
        assert!(!finding.operation.is_empty(), "{finding:?}");
        let scenario = |id: &str, verdict, reason: String| ScenarioResult {
            id: id.to_owned(),
            verdict,
            seconds: 0.0,
            reason,
            failed_before: Vec::new(),
            steps: Vec::new(),
        };
        let set_up = format!("set-up failed: {}", finding.message);
        let hook = "hook end_execution failed: status 422".to_owned();
        record.scenarios = vec![
            scenario("flow/a/stopped", Verdict::Inconclusive, set_up.clone()),
            scenario("flow/b/hook", Verdict::Inconclusive, hook.clone()),
            scenario("auth/c/hook", Verdict::Inconclusive, hook.clone()),
            scenario(&finding.scenario, Verdict::Fail, String::new()),
        ];
        let cards = cards(&record, Settings::default());
        let counts = |card: &Card<'_>| (card.blocked_scenarios, card.hook_failures);
        assert_eq!(counts(&cards[0]), (1, 1));
        let failed = failed_hooks(&record);
        assert_eq!(failed.len(), 1);
        assert_eq!(
            (failed[0].name, failed[0].why),
            ("end_execution", "status 422")
        );
        let stopped = conformant_record::not_exercised_because_of;
        for (rule, reason, is_caused) in [
            ("flow/x/y", set_up, true),
            ("flow/x/y", hook.clone(), true),
            ("auth/x/y", hook, false),
            ("flow/x/y", stopped("flow/a/stopped"), true),
            ("flow/x/y", stopped("flow/b/hook"), true),
            ("flow/x/y", stopped("auth/c/hook"), false),
            ("flow/x/y", stopped(&finding.scenario), true),
            ("flow/x/y", "not exercised by this run".to_owned(), false),
        ] {
            let cause = cause_of(&record, &cards, rule, &reason);
            assert_eq!(cause.is_some(), is_caused, "{rule} {reason}");
        }
    }

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

    #[test]
    fn a_finding_is_reproduced_with_the_target_and_settings_of_its_run() {
        let mut record = sample();
        let first = record.findings[0].clone();
        let mut repeated = |invocation: &str, target: &str| {
            record.invocation = invocation.to_owned();
            record.targets = [("flow".to_owned(), target.to_owned())].into();
            reproduce_command(&record, &first).expect("a command")
        };
        let live = "http://127.0.0.1:4010/flow";
        for (invocation, target, expected) in [
            (
                "conformant run",
                "reference",
                "conformant run --reference --seed 7",
            ),
            (
                "conformant run --config 'my file.yaml' --filter 'flow/*' --target=flow=http://127.0.0.1:4010/flow \
                 --hooks http://h --service flow --strict --partition hash:1/2 --shuffle --seed 9 --names 1a",
                live,
                "conformant run --config 'my file.yaml' --target=flow=http://127.0.0.1:4010/flow --hooks http://h \
                 --strict --seed 9",
            ),
        ] {
            assert_eq!(
                repeated(invocation, target),
                format!("{expected} --filter flow/create-execution/happy")
            );
        }
        let of_file = "conformant check a.json --as flow/execution";
        assert_eq!(repeated(of_file, live), of_file);
    }

    #[test]
    fn the_target_of_a_run_is_one_address_where_all_services_share_it() {
        let named = |targets: &[(&str, &str)]| {
            let targets = targets
                .iter()
                .map(|(name, url)| ((*name).to_owned(), (*url).to_owned()));
            target(&targets.collect(), false)
        };
        for (targets, expected) in [
            (
                &[("chat", "reference"), ("flow", "reference")][..],
                "built-in reference (no target configured)",
            ),
            (
                &[("chat", "https://h/chat"), ("flow", "https://h/flow/")],
                "https://h",
            ),
            (
                &[("chat", "https://h/chat"), ("flow", "https://i")],
                "chat https://h/chat, flow https://i",
            ),
            (&[("flow", "https://h/flow")], "https://h/flow"),
            (&[], ""),
        ] {
            assert_eq!(named(targets), expected);
        }
    }

    #[test]
    fn limits_of_a_run_are_its_flags() {
        let mut record = sample();
        record.invocation =
            "conformant run --service chat --prove=off --races on --filter 'a[b=c d]' --names 1a"
                .to_owned();
        assert_eq!(
            limits(&record),
            ["--service chat", "--prove off", "--filter a[b=c d]"]
        );
        assert_eq!(seed(&record), "7, names 1a");
    }

    #[test]
    fn a_finding_has_its_exchange_scenario_and_callback() {
        let record = sample();
        let first = &record.findings[0];
        assert_eq!(exchange_of(&record, first).map(|e| e.exchange), Some(4));
        assert_eq!(scenario_of(&record, first).map(|s| s.steps.len()), Some(3));
        let late = Finding {
            exchange: 0,
            step: 3,
            pointer: "/requests/0".into(),
            ..first.clone()
        };
        assert_eq!(delivery_of(&record, &late).map(|d| d.cause), Some(4));
        assert_eq!(exchange_of(&record, &late).map(|e| e.exchange), Some(4));
    }

    #[test]
    fn ids_of_one_folder_are_drawn_together() {
        assert_eq!(
            group_by_folder(&["a/b/c", "a/b/d", "x"], 9),
            ["x", "a/b/{c, d}"]
        );
        assert_eq!(group_by_folder(&["a/b", "a/c", "a/d"], 2), ["a/{b, c, …}"]);
    }
}
