//! Defects with their rules, findings and exchanges: the basis of every format for people. Writes no
//! format's syntax.

use super::Settings;
use super::invocation;
use super::view::{self, Broken, Effect};
use conformant_record::{
    Defect, Finding, Level, RunRecord, ScenarioResult, ShownExchange, ShownPayload, Verdict, title,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A defect as every report shows it: with its rules, and what else fails because of it.
pub(super) struct Card<'a> {
    /// Its number in every report and for `reproduce`, from 1.
    pub(super) number: usize,
    pub(super) defect: Defect,
    /// Failing rules first, then those with the most findings.
    pub(super) rules: Vec<Broken<'a>>,
    /// The most severe effect of its rules.
    pub(super) effect: Effect,
    /// Number of scenarios that stopped because of it.
    pub(super) blocked_scenarios: usize,
    /// Number of scenarios in which a hook fails, probably because of it.
    pub(super) hook_failures: usize,
}

impl Card<'_> {
    /// The finding that its title is about.
    pub(super) fn first(&self) -> Option<&Finding> {
        self.rules.first()?.findings.first().copied()
    }

    /// Whether a scenario stopped because of it: its set-up failed with one of its findings, or one of its rules masked it.
    pub(super) fn explains(&self, reason: &str) -> bool {
        let findings = self.rules.iter().flat_map(|rule| &rule.findings);
        let mut findings = findings.filter(|finding| !finding.operation.is_empty());
        let masked = reason.strip_prefix("masked by ");
        findings.any(|finding| is_reason(finding, reason))
            || masked.is_some_and(|rule| self.rules.iter().any(|broken| broken.id == rule))
    }

    /// Whether all of its rules are about requests, so that no service is at fault.
    pub(super) fn is_of_clients(&self) -> bool {
        self.rules.iter().all(Broken::is_of_clients)
    }

    /// `flow · 4 rules · 200 findings in 55 scenarios`.
    pub(super) fn extent(&self) -> String {
        let defect = &self.defect;
        let of_clients = match self.is_of_clients() {
            true => "clients of ",
            false => "",
        };
        let mut text = format!(
            "{of_clients}{} · {} · {}",
            defect.service,
            view::count(self.rules.len(), "rule"),
            view::count(defect.findings, "finding"),
        );
        let mut findings = self.rules.iter().flat_map(|rule| &rule.findings);
        if defect.scenarios > 0 && findings.any(|f| !f.scenario.is_empty()) {
            text += &format!(" in {}", view::count(defect.scenarios, "scenario"));
        }
        text
    }

    /// The faults of the reference that break the same rules, if they are few: always a guess.
    pub(super) fn guess(&self) -> Option<String> {
        /// More names would not help.
        const NAMED_MAX: usize = 3;
        let faults = match self.defect.similar_faults.as_slice() {
            [_] => "the fault",
            [_, ..] if self.defect.similar_faults.len() <= NAMED_MAX => "the faults",
            [] | [..] => return None,
        };
        let names = self.defect.similar_faults.join(", ");
        Some(format!("resembles {faults} {names} (a guess)"))
    }
}

/// A hook that failed in scenarios, which are inconclusive because of it.
#[derive(Debug, PartialEq, Eq)]
pub struct FailedHook<'a> {
    pub name: &'a str,
    /// The reason in the first scenario.
    pub why: &'a str,
    pub scenarios: usize,
    /// The service of the first scenario.
    pub service: &'a str,
    /// Whether a defect of this service fails the run: what the hook names may be gone because of it.
    pub has_defects: bool,
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
        let service = view::service(&scenario.id);
        let fails =
            |card: &Card<'_>| card.effect == Effect::Fails && card.defect.service == service;
        let hook = hooks.entry(name).or_insert_with(|| FailedHook {
            name,
            why,
            scenarios: 0,
            service,
            has_defects: cards.iter().any(fails),
            defect: cause_of_hook(&cards, service).map(|at| cards[at].number),
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

/// The numbers of the defects that are probably why a rule without a stated cause lacked evidence: those that fail scenarios
/// of its service, if every scenario of the service was run.
pub(super) fn probable_causes(
    record: &RunRecord,
    cards: &[Card<'_>],
    rule: &str,
    reason: &str,
) -> Vec<usize> {
    let is_whole = ["--service", "--prove", "--races"];
    let limits = invocation::limits(record);
    let is_partial = limits
        .iter()
        .any(|limit| !is_whole.iter().any(|flag| limit.starts_with(flag)));
    if !conformant_record::lacks_evidence(reason) || is_partial || record.ended_early.is_some() {
        return Vec::new();
    }
    let service = view::service(rule);
    let of_service = cards.iter().filter(|card| {
        card.effect == Effect::Fails && card.defect.service == service && card.defect.scenarios > 1
    });
    of_service.map(|card| card.number).collect()
}

/// Whether an undecided scenario or rule names this finding as the reason.
fn is_reason(finding: &Finding, reason: &str) -> bool {
    let cause = reason.split_once(": ").map(|(_, cause)| cause);
    cause == Some(finding.message.as_str())
}

/// The findings of the first rule of a defect, by the number in every report; otherwise the number of defects.
pub fn findings_of_defect(record: &RunRecord, number: usize) -> Result<Vec<Finding>, usize> {
    let cards = cards(record, Settings::default());
    let card = number.checked_sub(1).and_then(|at| cards.get(at));
    let rule = card.and_then(|card| card.rules.first());
    let findings = rule.map(|rule| rule.findings.iter().copied().cloned().collect());
    findings.ok_or(cards.len())
}

/// The defects of a record; each broken rule belongs to one of them.
pub(super) fn cards(record: &RunRecord, settings: Settings) -> Vec<Card<'_>> {
    let broken = view::broken(record, settings).into_iter();
    let mut broken: BTreeMap<&str, Broken> = broken.map(|rule| (rule.id, rule)).collect();
    let mut cards: Vec<Card> = defects_of(record)
        .into_iter()
        .map(|defect| {
            let rules = defect.rules.iter();
            let rules = rules.filter_map(|id| broken.remove(id.as_str())).collect();
            card(defect, rules)
        })
        .filter(|card| !card.rules.is_empty())
        .collect();
    // Findings of rules that the record does not list, or not as a failure.
    for (id, rule) in broken {
        let scenarios: BTreeSet<&str> = rule.findings.iter().map(|f| f.scenario.as_str()).collect();
        let defect = Defect {
            title: rule.findings.first().map_or_else(String::new, |f| title(f)),
            similar_faults: Vec::new(),
            service: view::service(id).to_owned(),
            level: match rule.effect {
                Effect::Fails => Level::Must,
                Effect::Warns | Effect::Advises => Level::Should,
            },
            rules: vec![id.to_owned()],
            findings: rule.findings.len(),
            scenarios: scenarios.len(),
        };
        cards.push(card(defect, vec![rule]));
    }
    // The urgency of a finding ignores `--strict`, so that the numbers of defects stay the same. Mistakes of clients
    // follow the defects of the service.
    cards.sort_by_key(|card| (card.is_of_clients(), card.first().map(Finding::urgency)));
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
    for rule in &mut rules {
        rule.findings.sort_by_key(|finding| finding.complexity());
    }
    rules.sort_by_key(|rule| {
        let mut findings = rule.findings.iter();
        let urgency = findings.clone().map(|finding| finding.urgency()).min();
        let is_of_other =
            findings.all(|finding| conformant_record::is_of_other_account(&finding.scenario));
        (urgency, is_of_other, Reverse(rule.findings.len()))
    });
    let effects = rules.iter().map(|rule| rule.effect);
    let effect = effects.min();
    Card {
        number: 0,
        defect,
        rules,
        effect: effect.unwrap_or(Effect::Fails),
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

/// The exchange of a finding, or the one before its callback, event or hook result.
pub(super) fn exchange_of<'a>(
    record: &'a RunRecord,
    finding: &Finding,
) -> Option<&'a ShownExchange> {
    match payload_of(record, finding) {
        Some(payload) => exchange_at(record, payload.cause, ""),
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

/// The callback, event or hook result of a finding without an exchange.
pub(super) fn payload_of<'a>(record: &'a RunRecord, finding: &Finding) -> Option<&'a ShownPayload> {
    if finding.exchange > 0 {
        return None;
    }
    record.deliveries.iter().find(|d| {
        d.scenario == finding.scenario && d.step == finding.step && d.pointer == finding.pointer
    })
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

/// What is missing to judge more rules: the need and the ids of its rules; most rules first.
pub(super) fn needs(record: &RunRecord) -> Vec<(String, Vec<&str>)> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for rule in record.rules.iter().filter(|r| r.verdict.is_undecided()) {
        let what = match rule.needs.first() {
            Some(need) => need.clone(),
            None if rule.reason.is_empty() => rule.verdict.word().to_owned(),
            None => rule.reason.clone(),
        };
        groups.entry(what).or_default().push(&rule.id);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ids)| usize::MAX - ids.len());
    groups
}

/// Turns a need into advice: `configure the hook end_execution`.
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
            let cards = cards(&record, Settings::default());
            let rules = |card: &Card<'_>| card.rules.iter().map(|r| r.id.to_owned()).collect();
            let rules = cards.iter().map(|card| (card.effect, rules(card)));
            let rules: Vec<(Effect, String)> = rules.collect();
            let expected = [
                (Effect::Fails, "flow/execution/status".to_owned()),
                (Effect::Warns, "flow/execution/no-other-fields".to_owned()),
            ];
            assert_eq!(rules, expected);
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
            reason,
            ..ScenarioResult::default()
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
    fn defects_of_a_service_are_the_probable_cause_of_missing_evidence() {
        let mut record = sample();
        record.defects[0].scenarios = 2;
        record.invocation = "conformant run --service flow".to_owned();
        let number = |record: &RunRecord, rule: &str, reason: &str| {
            let cards = cards(record, Settings::default());
            probable_causes(record, &cards, rule, reason)
        };
        let undefined = "`${a.b}` is undefined: no earlier answer contains it";
        for (rule, reason, expected) in [
            ("flow/x/y", "not exercised by this run", vec![1]),
            ("flow/x/y", undefined, vec![1]),
            (
                "flow/x/y",
                "no evidence to decide: no item of the list was read",
                vec![1],
            ),
            ("flow/x/y", "configure the hook reset", vec![]),
            ("auth/x/y", "not exercised by this run", vec![]),
        ] {
            assert_eq!(number(&record, rule, reason), expected, "{rule} {reason}");
        }
        record.invocation = "conformant run --filter 'flow/*'".to_owned();
        assert!(number(&record, "flow/x/y", undefined).is_empty());
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
        assert_eq!(payload_of(&record, &late).map(|d| d.cause), Some(4));
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
