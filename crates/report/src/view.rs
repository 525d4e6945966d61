//! Outcomes, groups and descriptions shared by all formats.
//!
//! Decides what fails: a test fails only if it fails the run. Writes no format's syntax.

use super::{Settings, cards, invocation};
use conformant_base::redact::REDACTED;
use conformant_base::text;
pub(super) use conformant_base::text::count;
use conformant_record::waivers;
use conformant_record::{
    Blind, Detection, Finding, Level, Proof, RuleResult, RunRecord, STRICT, ScenarioResult,
    Subject, Verdict, WaiverResult,
};
use std::collections::{BTreeMap, BTreeSet};

/// Outcome of one rule or scenario for a dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// Fails the run.
    Failed,
    /// Broken, but fails the run only with `--strict`.
    Warned,
    /// Neither passed nor broken: the verdict with its reason.
    Skipped(String),
    /// An error of the harness.
    Errored(String),
}

pub(super) fn of_rule(rule: &RuleResult, settings: Settings) -> Outcome {
    outcome(rule.verdict, &rule.reason, fails(rule.level, settings))
}

/// The outcome of a scenario with these findings.
pub(super) fn of_scenario(
    result: &ScenarioResult,
    findings: &[&Finding],
    settings: Settings,
) -> Outcome {
    let counts = |f: &&Finding| f.waived.is_empty() && fails(f.level, settings);
    // A record may lack the findings of a failed scenario.
    let fails = findings.is_empty() || findings.iter().any(counts);
    outcome(result.verdict, &result.reason, fails)
}

/// Why a test case of a scenario failed: the rules that broke in it.
pub(super) fn breaks(findings: &[&Finding], reason: &str) -> String {
    let rules: BTreeSet<&str> = findings.iter().map(|f| f.rule.as_str()).collect();
    match Vec::from_iter(rules).as_slice() {
        [] => reason.to_owned(),
        rules => format!("breaks {}", rules.join(", ")),
    }
}

/// Whether a violation of a rule of this level fails the run.
pub(super) fn fails(level: Level, settings: Settings) -> bool {
    match level {
        Level::Must => true,
        Level::Should => settings.strict,
        Level::May | Level::Open => false,
    }
}

fn outcome(verdict: Verdict, reason: &str, fails: bool) -> Outcome {
    match verdict {
        Verdict::Pass => Outcome::Passed,
        Verdict::Fail if fails => Outcome::Failed,
        Verdict::Fail => Outcome::Warned,
        Verdict::Error => Outcome::Errored(because(verdict, reason)),
        Verdict::Open
        | Verdict::Inconclusive
        | Verdict::NotApplicable
        | Verdict::Waived
        | Verdict::NotJudged => Outcome::Skipped(because(verdict, reason)),
    }
}

fn because(verdict: Verdict, reason: &str) -> String {
    match reason {
        "" => verdict.word().to_owned(),
        reason => format!("{}: {reason}", verdict.word()),
    }
}

pub(super) fn service(id: &str) -> &str {
    id.split_once('/').map_or(id, |(service, _)| service)
}

/// Findings by rule, in the record's order.
pub(super) fn by_rule(record: &RunRecord) -> BTreeMap<&str, Vec<&Finding>> {
    grouped(record, |finding| &finding.rule, |_| true)
}

/// Findings by scenario.
pub(super) fn by_scenario(record: &RunRecord) -> BTreeMap<&str, Vec<&Finding>> {
    grouped(record, |finding| &finding.scenario, |_| true)
}

/// The findings of a rule or scenario.
pub(super) fn of<'g, 'a>(
    groups: &'g BTreeMap<&str, Vec<&'a Finding>>,
    id: &str,
) -> &'g [&'a Finding] {
    groups.get(id).map_or(&[], Vec::as_slice)
}

fn grouped(
    record: &RunRecord,
    key: impl Fn(&Finding) -> &str,
    is_wanted: impl Fn(&&Finding) -> bool,
) -> BTreeMap<&str, Vec<&Finding>> {
    let mut groups: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in record.findings.iter().filter(is_wanted) {
        groups.entry(key(finding)).or_default().push(finding);
    }
    groups
}

/// Effect of a broken rule on the run, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// It fails the run.
    Fails,
    /// A recommendation to the service.
    Warns,
    /// A recommendation to the client, whose request is allowed.
    Advises,
}

impl Effect {
    /// The first word of a line about it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Fails => "FAIL",
            Self::Warns => "WARN",
            Self::Advises => "NOTE",
        }
    }

    pub(super) fn of_finding(finding: &Finding, settings: Settings) -> Self {
        Self::new((finding.level, finding.subject), settings)
    }

    pub(super) fn of_rule(rule: &RuleResult, settings: Settings) -> Self {
        Self::new((rule.level, rule.subject), settings)
    }

    fn new((level, subject): (Level, Subject), settings: Settings) -> Self {
        match subject {
            _ if fails(level, settings) => Self::Fails,
            Subject::Service => Self::Warns,
            Subject::Request => Self::Advises,
        }
    }
}

pub(super) struct Broken<'a> {
    pub(super) id: &'a str,
    /// `None` if the record does not list the rule.
    pub(super) rule: Option<&'a RuleResult>,
    pub(super) findings: Vec<&'a Finding>,
    /// The most severe effect of its findings.
    pub(super) effect: Effect,
}

impl<'a> Broken<'a> {
    /// The sentence of the rule.
    pub(super) fn says(&self) -> Option<&'a str> {
        let says = self.rule.map(|rule| rule.says.as_str());
        says.filter(|says| !says.is_empty())
    }

    /// Whether the rule is about what clients send.
    pub(super) fn is_of_clients(&self) -> bool {
        let is_request = |finding: &&Finding| finding.subject == Subject::Request;
        self.findings.iter().all(is_request)
    }

    /// `must, D3 "Execution (FN)", line 37`, or only the level.
    pub(super) fn origin(&self) -> String {
        match self.rule {
            Some(rule) => format!("{}, {}", rule.level.word(), rule.source),
            None => {
                let first = self.findings.first();
                first.map_or_else(String::new, |first| first.level.word().to_owned())
            }
        }
    }
}

/// Every rule with unwaived findings: failures, then warnings, then advice, each by id.
pub(super) fn broken(record: &RunRecord, settings: Settings) -> Vec<Broken<'_>> {
    let rules: BTreeMap<&str, &RuleResult> = record
        .rules
        .iter()
        .map(|rule| (rule.id.as_str(), rule))
        .collect();
    let unwaived = grouped(record, |f| &f.rule, |f| f.waived.is_empty()).into_iter();
    let mut all: Vec<Broken> = unwaived
        .map(|(id, findings)| Broken {
            id,
            rule: rules.get(id).copied(),
            effect: findings
                .iter()
                .map(|f| Effect::of_finding(f, settings))
                .min()
                .unwrap_or(Effect::Warns),
            findings,
        })
        .filter(|broken| {
            let rule = broken.rule;
            rule.is_none_or(|rule| rule.verdict != Verdict::Waived)
        })
        .collect();
    all.sort_by_key(|broken| broken.effect);
    all
}

/// Waived findings by rule.
pub(super) fn waived(record: &RunRecord) -> BTreeMap<&str, Vec<&Finding>> {
    grouped(record, |f| &f.rule, |f| !f.waived.is_empty())
}

/// Which operations refused invalid requests with a status that looks like a success or a failure of the server.
pub(super) fn odd_refusals(record: &RunRecord) -> Option<String> {
    let of_points = record.open_points.iter().filter_map(|point| {
        let (operations, statuses): (BTreeSet<&str>, BTreeSet<&str>) = point.odd_refusals().unzip();
        let first = operations.first()?;
        let more = match operations.len() - 1 {
            0 => String::new(),
            more => format!(" and {}", count(more, "other operation")),
        };
        let statuses: Vec<&str> = statuses.into_iter().collect();
        Some(format!(
            "{first}{more} refused with status {}, which counts as a refusal (`{}`)",
            statuses.join(", "),
            invocation::explain_command(record, &point.id)
        ))
    });
    let all: Vec<String> = of_points.collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Ids of rules that are not decided, by verdict and reason.
pub(super) fn undecided(record: &RunRecord) -> BTreeMap<String, Vec<&str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for rule in record.rules.iter().filter(|r| r.verdict.is_undecided()) {
        let reason = because(rule.verdict, &rule.reason);
        groups.entry(reason).or_default().push(&rule.id);
    }
    groups
}

/// What failed a run whose rules hold.
fn failed_demands(record: &RunRecord) -> String {
    let waivers = waivers::problems_of(record).count();
    let claims = record.claims.as_ref();
    let claims = claims.map_or(0, |claims| claims.unjudged.len());
    let waivers = match waivers {
        0 => None,
        1 => Some("1 waiver does not apply".to_owned()),
        n => Some(format!("{n} waivers do not apply")),
    };
    let claims = match claims {
        0 => None,
        1 => Some("1 claim was not judged".to_owned()),
        n => Some(format!("{n} claims were not judged")),
    };
    let both: Vec<String> = waivers.into_iter().chain(claims).collect();
    match both.is_empty() {
        true => "a waiver does not apply or a claim was not judged".to_owned(),
        false => both.join(", "),
    }
}

/// The conclusion in one line.
pub(super) fn headline(record: &RunRecord, settings: Settings) -> String {
    let all = broken(record, settings);
    let rules_with = |effect| all.iter().filter(|broken| broken.effect == effect).count();
    let [failing, warnings, advice] =
        [Effect::Fails, Effect::Warns, Effect::Advises].map(rules_with);
    let is_failing = |broken: &&Broken| broken.effect == Effect::Fails;
    let by_clients = all
        .iter()
        .filter(is_failing)
        .filter(|b| b.is_of_clients())
        .count();
    let counts = &record.summary.rules;
    let judged = counts.pass + counts.fail + counts.waived;
    let undecided = counts.inconclusive + counts.not_applicable + counts.not_judged + counts.error;
    let mut line = if failing > 0 && failing == by_clients {
        of_clients(record, failing)
    } else if failing > 0 {
        not_conformant(record, settings, (failing, by_clients))
    } else if counts.error > 0 {
        format!(
            "not fully judged: {}",
            count(counts.error, "internal error")
        )
    } else if judged == 0 {
        "nothing judged".to_owned()
    } else if let Some(code @ (3 | 4)) = record.exit
        && !record.rules.iter().any(is_judged_of_service)
    {
        let passed = count(counts.pass, "rule");
        format!("nothing judged of the service (exit {code}): requests of clients keep {passed}")
    } else {
        match record.exit {
            None | Some(0) => {
                let kept = counts.pass + counts.fail;
                let passed = record.rules.iter().filter(|r| r.verdict == Verdict::Pass);
                let clients = passed.filter(|r| r.subject == Subject::Request).count();
                let clients = match clients {
                    0 => String::new(),
                    all if all == kept => ", all about requests of clients".to_owned(),
                    some => format!(", {some} about requests of clients"),
                };
                match undecided {
                    0 => format!("passed: {} judged{clients}", count(kept, "rule")),
                    _ => format!(
                        "passed: {kept} of {} rules judged{clients}",
                        judged + undecided
                    ),
                }
            }
            Some(1) => {
                let passed = count(counts.pass, "rule");
                format!(
                    "failed (exit 1): {}, {passed} passed",
                    failed_demands(record)
                )
            }
            // A target error, or too few rules judged.
            Some(code) => {
                let passed = count(counts.pass, "rule");
                format!("not concluded (exit {code}): {passed} passed")
            }
        }
    };
    // Waived rules do not count as passed.
    if failing == 0 && counts.waived > 0 {
        line = format!("{line}, {} waived", counts.waived);
    }
    if warnings > 0 {
        // Defects are counted, as in the heading of their list.
        let cards = cards::cards(record, settings);
        let warns = || cards.iter().filter(|card| card.effect == Effect::Warns);
        // Further rules that only warn belong to defects that fail.
        let rules: usize = warns().map(|card| card.rules.len()).sum();
        let warned = match warns().count() {
            0 => count(warnings, "warning"),
            n if n == rules => count(n, "warning"),
            n => format!("{} ({})", count(n, "warning"), count(rules, "rule")),
        };
        line = format!("{line}, {warned}");
    }
    if advice > 0 {
        line = format!("{line}, {} to clients", count(advice, "note"));
    }
    // Where they passed, all rules are counted already.
    if undecided > 0 && judged > 0 && !line.starts_with("passed: ") {
        line = format!("{line}, {undecided} not decided");
    }
    let mut remarks: Vec<String> = Vec::new();
    if !record.complete {
        let is_run = record.invocation.starts_with("conformant run");
        remarks.push(match (&record.ended_early, record.exit) {
            (Some(why), _) if !is_run => why.clone(),
            (_, Some(3)) => "the run ended early".to_owned(),
            (_, _) => "the run was interrupted".to_owned(),
        });
    }
    // Passed and failed runs have the codes 0 and 1.
    if let Some(code) = record.exit.filter(|code| *code > 1)
        && !line.contains("(exit ")
    {
        remarks.push(format!("exit {code}"));
    }
    if !remarks.is_empty() {
        line += &format!(" ({})", remarks.join(", "));
    }
    line
}

/// Whether a rule about the service was judged.
fn is_judged_of_service(rule: &RuleResult) -> bool {
    let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Waived];
    rule.subject == Subject::Service && verdicts.contains(&rule.verdict)
}

/// The conclusion where rules fail the run: how many, and how many of these clients break.
fn not_conformant(
    record: &RunRecord,
    settings: Settings,
    (failing, by_clients): (usize, usize),
) -> String {
    let cards = cards::cards(record, settings);
    let defects = cards.iter().filter(|card| card.effect == Effect::Fails);
    let defects = defects.filter(|card| !card.is_of_clients()).count();
    let verb = if defects == 1 { "fails" } else { "fail" };
    let clients = match by_clients {
        0 => String::new(),
        broken => format!(", and clients break {}", count(broken, "rule")),
    };
    // Warnings have numbers in the same list.
    let listed = cards.iter().filter(|card| card.effect != Effect::Advises);
    let listed = listed.filter(|card| !card.is_of_clients()).count();
    let of_all = match listed {
        all if all == defects => count(defects, "defect"),
        all => format!("{defects} of {}", count(all, "defect")),
    };
    format!(
        "not conformant: {of_all} ({}) {verb} the run{clients}",
        count(failing - by_clients, "rule"),
    )
}

/// The conclusion where only clients break rules. It says nothing against the service.
fn of_clients(record: &RunRecord, broken: usize) -> String {
    let passes = |rule: &&RuleResult| {
        rule.subject == Subject::Service && matches!(rule.verdict, Verdict::Pass | Verdict::Waived)
    };
    let kept = match record.rules.iter().filter(passes).count() {
        0 => "nothing is judged of the service".to_owned(),
        kept => format!("the service keeps every rule judged ({kept})"),
    };
    let broken = count(broken, "rule");
    match record.exit {
        None | Some(0 | 1) => format!("mistakes of clients: {broken} broken; {kept}"),
        Some(code) => format!("not concluded (exit {code}): {kept}; clients break {broken}"),
    }
}

/// Why the run failed apart from findings: at least one line where no rule explains the exit code.
pub(super) fn errors(record: &RunRecord, settings: Settings) -> Vec<String> {
    match record.exit {
        None | Some(0) => Vec::new(),
        Some(1) => record.errors.clone(),
        Some(_) if record.errors.is_empty() => vec![conclusion(record, settings)],
        Some(_) => record.errors.clone(),
    }
}

/// The conclusion with the target.
pub(super) fn conclusion(record: &RunRecord, settings: Settings) -> String {
    let line = headline(record, settings);
    match invocation::target_of(record).as_str() {
        "" => line,
        target => format!("{line} · target: {target}"),
    }
}

/// How many passed rules detect a mutation of the evidence.
pub(super) fn proof(proof: &Proof) -> String {
    let passed = count(proof.proven + proof.unproven, "passing rule");
    let verb = |rules| if rules == 1 { "detects" } else { "detect" };
    let proven = proof.proven;
    let mut line = format!("{proven} of {passed} {} a changed response", verb(proven));
    if proof.unproven > 0 {
        line += &format!(" · {} without a change of their own", proof.unproven);
    }
    if proof.vacuous > 0 {
        let rules = count(proof.vacuous, "further rule");
        line += &format!(" · {rules} {} none: not judged", verb(proof.vacuous));
    }
    // Only of random mutations: those for a rule end with the first one that it detects, so their share says nothing.
    if let Some(sample) = proof.sample.as_ref().filter(|of| of.made > of.noticed) {
        line += &format!(
            " · no rule detects {} of {}",
            sample.made - sample.noticed,
            count(sample.made, "random mutation")
        );
    }
    line
}

/// The estimated detection rate with its range.
pub(super) fn detection(record: &RunRecord, detection: &Detection) -> String {
    format!(
        "about {} % ({} to {} %) of the defects of {} would be reported",
        detection.percent,
        detection.low,
        detection.high,
        unknown_implementation(record)
    )
}

/// Why a run that ended early has no estimate.
pub(super) const NO_ESTIMATE: &str =
    "the run ended early, and rules pass only for the scenarios that ran";

/// Whether a run has no estimate because it ended early.
pub(super) fn has_no_estimate(record: &RunRecord) -> bool {
    let is_run = record.invocation.starts_with("conformant run");
    is_run && !record.complete && record.detection.is_none()
}

/// What the estimated detection rate is about. Services are named if the run judged few of them.
pub(super) fn unknown_implementation(record: &RunRecord) -> String {
    let is_elsewhere = |rule: &RuleResult| {
        !rule.needs.is_empty() && rule.needs.iter().all(|need| need.starts_with("service "))
    };
    let judged = record.rules.iter().filter(|rule| !is_elsewhere(rule));
    let services: BTreeSet<&str> = judged.map(|rule| service(&rule.id)).collect();
    let services = Vec::from_iter(services);
    match services.as_slice() {
        [one] => format!("an unknown implementation of {one}"),
        [one, two] => format!("an unknown implementation of {one} and {two}"),
        [] | [..] => "an unknown implementation".to_owned(),
    }
}

/// What would raise the estimated detection rate most; `None` if nothing would.
pub(super) fn raised_by(detection: &Detection) -> Option<String> {
    let raises = detection.raised_by.iter().map(|raise| {
        let how = match raise.by.as_str() {
            STRICT => format!("run with {STRICT}"),
            need => cards::advice(need),
        };
        format!("{how} ({} %)", raise.percent)
    });
    let raises: Vec<String> = raises.collect();
    (!raises.is_empty()).then(|| raises.join(", "))
}

/// A place with undetected mutations, in one line.
pub(super) fn blind(blind: &Blind) -> String {
    let would = match blind.would.as_slice() {
        [] => "no rule applies".to_owned(),
        would => {
            let advice: Vec<String> = would.iter().map(|need| cards::advice(need)).collect();
            advice.join(", ")
        }
    };
    format!(
        "{} {}: {} of {} undetected, {} ({would})",
        blind.of,
        if blind.pointer.is_empty() {
            "(whole)"
        } else {
            &blind.pointer
        },
        blind.made - blind.noticed,
        count(blind.made, "mutation"),
        blind.changes.join(", "),
    )
}

/// Where a finding occurred: `flow/create-execution, scenario flow/x, step 1, exchange 4, at /status`.
pub(super) fn place(finding: &Finding) -> String {
    if let Some(line) = line_of_file(finding) {
        let at = (!finding.pointer.is_empty()).then(|| format!(", at {}", finding.pointer));
        return line + &at.unwrap_or_default();
    }
    let mut parts = Vec::new();
    if !finding.operation.is_empty() {
        parts.push(format!("{}/{}", finding.service, finding.operation));
    }
    if !finding.scenario.is_empty() {
        parts.push(format!("scenario {}", finding.scenario));
    }
    if finding.step > 0 {
        parts.push(format!("step {}", finding.step));
    }
    if finding.exchange > 0 {
        // Without a step it is an entry of recorded traffic.
        let noun = if finding.step > 0 {
            "exchange"
        } else {
            "entry"
        };
        parts.push(format!("{noun} {}", finding.exchange));
    }
    if !finding.pointer.is_empty() {
        parts.push(format!("at {}", finding.pointer));
    }
    parts.join(", ")
}

/// `FILE:LINE` of a finding in a file with one document per line.
pub(super) fn line_of_file(finding: &Finding) -> Option<String> {
    (finding.line > 0).then(|| format!("{}:{}", finding.scenario, finding.line))
}

/// File and line of the finding's scenario, or else of its target.
pub(super) fn written_at<'a>(record: &'a RunRecord, finding: &Finding) -> Option<(&'a str, usize)> {
    let place = record.places.get(&finding.scenario);
    let place = place.or_else(|| record.places.get(&finding.service))?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

/// The waiver of a rule's findings.
pub(super) fn waiver_of<'a>(record: &'a RunRecord, rule: &str) -> Option<&'a WaiverResult> {
    let mut waivers = record.waivers.iter();
    waivers.find(|waiver| {
        let names =
            waiver.rule == rule || (waiver.rule.contains('*') && text::glob(&waiver.rule, rule));
        waiver.findings > 0 && names
    })
}

/// The label of the command that runs the scenario of a finding again. `conformant reproduce` is another command.
pub(super) const RUN_AGAIN: &str = "run again";

/// A finding in full, over several indented lines.
pub(super) fn describe(record: &RunRecord, finding: &Finding) -> String {
    let fields = [
        ("where", place(finding)),
        ("expected", finding.expected.clone()),
        ("actual", finding.actual.clone()),
        ("diff", finding.diff.clone()),
        ("request", finding.reproduce.clone()),
        (
            RUN_AGAIN,
            invocation::reproduce_command(record, finding).unwrap_or_default(),
        ),
        ("waived", finding.waived.clone()),
    ];
    let mut out = String::new();
    for (label, value) in fields {
        out += &labelled(label, &value);
    }
    out
}

/// How to fill in the credentials of a command that leaves them out.
pub(super) fn credentials_note(command: &str) -> Option<String> {
    let variables = command.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches('{');
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    });
    let mut names: Vec<&str> = Vec::new();
    for name in variables.filter(|name| !name.is_empty()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut notes = Vec::new();
    if !names.is_empty() {
        // Other names are those of the configuration, which is never that of the reference.
        let may_be_reference = names.iter().all(|name| name.starts_with("CONFORMANT_"));
        let public = match may_be_reference {
            true => " (those of the reference are public: docs/src/serve.md)",
            false => "",
        };
        notes.push(format!(
            "{} set to the credentials of this request{public}",
            names.join(" and ")
        ));
    }
    if command.contains(REDACTED) {
        notes.push(format!("the credential in place of {REDACTED}"));
    }
    (!notes.is_empty()).then(|| notes.join(", and "))
}

/// `  label     value`; a value of several lines is below its label. Empty for an empty value.
pub(super) fn labelled(label: &str, value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else if value.contains('\n') {
        format!("  {label}\n{}", text::indent(value, "    "))
    } else {
        format!("  {label:<9} {value}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;

    const STRICT: Settings = Settings { strict: true };
    const LENIENT: Settings = Settings { strict: false };

    #[test]
    fn a_should_rule_is_red_only_when_strict() {
        let record = sample();
        let rule = &record.rules[1];
        assert_eq!(of_rule(rule, LENIENT), Outcome::Warned);
        assert_eq!(of_rule(rule, STRICT), Outcome::Failed);
        let order: Vec<_> = broken(&record, LENIENT)
            .iter()
            .map(|b| (b.id, b.effect))
            .collect();
        assert_eq!(
            order,
            [
                ("flow/execution/status", Effect::Fails),
                ("flow/execution/no-other-fields", Effect::Warns)
            ]
        );
    }

    #[test]
    fn what_a_client_should_do_otherwise_is_advice_unless_all_of_it_fails() {
        let mut record = sample();
        let advised = record
            .findings
            .iter_mut()
            .find(|f| f.level == Level::Should);
        advised.expect("a warning").subject = Subject::Request;
        let effect = |settings| broken(&record, settings)[1].effect;
        assert_eq!(
            (effect(LENIENT), effect(STRICT)),
            (Effect::Advises, Effect::Fails)
        );
        assert_eq!(
            headline(&record, LENIENT),
            "not conformant: 1 defect (1 rule) fails the run, 1 note to clients, 5 not decided"
        );
    }

    #[test]
    fn a_mistake_of_a_client_says_nothing_against_the_service() {
        let mut record = sample();
        record.findings.retain(|f| f.level == Level::Must);
        for finding in &mut record.findings {
            finding.subject = Subject::Request;
        }
        record.exit = Some(1);
        assert_eq!(
            headline(&record, LENIENT),
            "mistakes of clients: 1 rule broken; the service keeps every rule judged (2), 5 not decided"
        );
        record.exit = Some(3);
        record.rules.clear();
        assert_eq!(
            headline(&record, LENIENT),
            "not concluded (exit 3): nothing is judged of the service; clients break 1 rule, 5 not decided"
        );
        let mut record = sample();
        let findings = record.findings.iter_mut();
        for finding in findings.filter(|f| f.level == Level::Should) {
            finding.subject = Subject::Request;
        }
        assert_eq!(
            headline(&record, STRICT),
            "not conformant: 1 defect (1 rule) fails the run, and clients break 1 rule, 5 not decided"
        );
    }

    #[test]
    fn undecided_rules_are_grouped_by_reason() {
        let record = sample();
        let groups = undecided(&record);
        assert_eq!(
            groups["not-applicable: hook missing: end_execution"],
            ["flow/executions/ends", "flow/executions/steps"]
        );
        assert_eq!(groups.len(), 4);
    }

    #[test]
    fn headlines_never_claim_more_than_was_judged() {
        let mut record = sample();
        assert_eq!(
            headline(&record, LENIENT),
            "not conformant: 1 of 2 defects (1 rule) fails the run, 1 warning, 5 not decided"
        );
        assert_eq!(
            headline(&record, STRICT),
            "not conformant: 2 defects (2 rules) fail the run, 5 not decided"
        );
        record.findings.clear();
        assert_eq!(
            headline(&record, LENIENT),
            "not fully judged: 1 internal error, 1 waived, 5 not decided"
        );
        record.summary.rules.error = 0;
        record.exit = Some(0);
        assert_eq!(
            headline(&record, LENIENT),
            "passed: 3 of 8 rules judged, 1 waived"
        );
        record.exit = Some(3);
        assert_eq!(
            headline(&record, LENIENT),
            "not concluded (exit 3): 1 rule passed, 1 waived, 4 not decided"
        );
        record.summary.rules = conformant_record::RuleCounts::default();
        record.complete = false;
        assert_eq!(
            headline(&record, LENIENT),
            "nothing judged (the run ended early, exit 3)"
        );
    }

    #[test]
    fn a_finding_in_a_line_names_the_file_and_the_line() {
        let mut finding = sample().findings[0].clone();
        finding.scenario = "stdin-d839a1b2c3d4".to_owned();
        finding.line = 3;
        assert_eq!(place(&finding), "stdin-d839a1b2c3d4:3, at /status");
    }

    #[test]
    fn findings_are_described_with_their_place_and_a_command() {
        assert_eq!(
            describe(&sample(), &sample().findings[0]),
            "  where     flow/create-execution, scenario flow/create-execution/happy, step 1, \
             exchange 4, at /status\n\
             \x20 expected  one of active, ended\n\
             \x20 actual    \"running\"\n\
             \x20 diff\n\
             \x20   --- expected\n\
             \x20   +++ actual\n\
             \x20   @@ -1,3 +1,3 @@\n\
             \x20    {\n\
             \x20   -  \"status\": \"active\"\n\
             \x20   +  \"status\": \"running\"\n\
             \x20    }\n\
             \x20 request\n\
             \x20   curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \\\n\
             \x20     -H 'Authorization: [redacted]'\n\
             \x20 run again conformant run --seed 7 --filter flow/create-execution/happy\n"
        );
    }
}
