//! Waivers: accepted failures, each with a reason and an expiry date.
//!
//! An unused or expired waiver fails the run, so that no exception outlives its reason.

use crate::{Finding, Level, RuleResult, RunRecord, ScenarioResult, Verdict, WaiverResult};
use conformant_base::text::glob;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// How a line about a waiver that does not apply begins.
pub const WAIVER: &str = "the waiver of ";

/// A file of waivers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaiverFile {
    /// The waivers.
    pub waivers: Vec<Waiver>,
}

/// One accepted failure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// Id of one rule, without the rules below it; `*` matches any text.
    pub rule: String,
    /// Only findings at this JSON Pointer, in which `*` matches one segment; by default at any.
    pub pointer: Option<String>,
    /// Only findings at this operation, `SERVICE/OPERATION`; by default at any.
    pub operation: Option<String>,
    /// Only differences of this kind, such as `type` or `missing-field`; by default of any.
    pub kind: Option<String>,
    /// Who is responsible.
    pub owner: Option<String>,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it is accepted, `YYYY-MM-DD`.
    #[serde(deserialize_with = "date")]
    #[schemars(with = "String")]
    pub expires: jiff::civil::Date,
}

/// A date, with an error that shows the form.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<jiff::civil::Date, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_form = |(at, b): (usize, u8)| match at {
        4 | 7 => b == b'-',
        _ => b.is_ascii_digit(),
    };
    let is_no_day = text.len() == 10 && text.bytes().enumerate().all(is_form);
    let wrong = |_| match is_no_day {
        true => format!("invalid date `{text}`: the calendar has no such day"),
        false => format!("invalid date `{text}`: write YYYY-MM-DD, such as 2027-01-31"),
    };
    text.parse().map_err(wrong).map_err(D::Error::custom)
}

/// Waivers on one day.
#[derive(Debug)]
pub struct Waivers<'a> {
    waivers: &'a [Waiver],
    today: jiff::civil::Date,
}

impl<'a> Waivers<'a> {
    /// Waivers as they apply on this day.
    pub fn on(waivers: &'a [Waiver], today: jiff::civil::Date) -> Self {
        Self { waivers, today }
    }

    /// Marks accepted findings of a scenario, which then is not a failure.
    pub fn mark(&self, result: &mut ScenarioResult, findings: &mut [Finding]) {
        for finding in findings.iter_mut() {
            self.mark_finding(finding);
        }
        Self::settle(result, findings.iter());
    }

    /// Applies the waivers to a finished record and returns problems of the waivers. Unused waivers are
    /// reported for whole runs only: another part may need them.
    pub fn apply(&self, record: &mut RunRecord, is_whole: bool) -> Vec<String> {
        for finding in &mut record.findings {
            self.mark_finding(finding);
        }
        for rule in &mut record.rules {
            self.settle_rule(rule, &record.findings);
        }
        for scenario in &mut record.scenarios {
            let id = scenario.id.clone();
            let findings = record.findings.iter();
            Self::settle(scenario, findings.filter(|f| f.scenario == id));
        }
        record.count_verdicts();
        record.waivers = self.results(&record.findings);
        self.problems(
            record,
            is_whole && record.complete && record.partition.is_none(),
        )
    }

    /// Findings accepted by each waiver.
    fn results(&self, findings: &[Finding]) -> Vec<WaiverResult> {
        let results = self.waivers.iter().map(|waiver| {
            let is_valid = waiver.expires >= self.today;
            let accepted = findings
                .iter()
                .filter(|finding| is_valid && waiver.accepts(finding));
            WaiverResult {
                rule: waiver.rule.clone(),
                pointer: waiver.pointer.clone().unwrap_or_default(),
                reason: waiver.reason.clone(),
                expires: waiver.expires.to_string(),
                findings: accepted.count(),
            }
        });
        results.collect()
    }

    fn problems(&self, record: &RunRecord, is_whole: bool) -> Vec<String> {
        let mut problems = Vec::new();
        for waiver in self.waivers {
            let mut judged = record.rules.iter().filter(|rule| rule.judged > 0);
            let renamed = waiver.without_version();
            let renamed = renamed.filter(|id| record.rules.iter().any(|rule| rule.id == *id));
            if let Some(now) = renamed {
                problems.push(format!(
                    "{WAIVER}{} names a version, but rule ids have none: write {now}",
                    waiver.rule
                ));
            } else if waiver.expires < self.today {
                problems.push(format!(
                    "{WAIVER}{} expired on {}: {}",
                    waiver.rule, waiver.expires, waiver.reason
                ));
            } else if judged.any(|rule| waiver.names(&rule.id))
                && !record
                    .findings
                    .iter()
                    .any(|finding| waiver.accepts(finding))
            {
                let mut others = record.findings.iter();
                let other = others.find(|f| waiver.is_at(f) && f.waived.is_empty());
                match waiver.kind.as_ref().zip(other) {
                    // What the waiver was meant for fails the run already, in a part of a run too.
                    Some((kind, other)) if is_whole || other.level == Level::Must => {
                        problems.push(format!(
                            "{WAIVER}{} accepts no finding: its kind is `{kind}`, that of the finding is `{}`",
                            waiver.rule, other.kind
                        ));
                    }
                    _ if is_whole => problems.push(unused_waiver(&waiver.rule)),
                    _ => {}
                }
            }
        }
        problems
    }

    fn valid(&self) -> impl Iterator<Item = &Waiver> {
        self.waivers.iter().filter(|w| w.expires >= self.today)
    }

    fn mark_finding(&self, finding: &mut Finding) {
        if let Some(waiver) = self.valid().find(|waiver| waiver.accepts(finding)) {
            finding.waived = format!("{} (until {})", waiver.reason, waiver.expires);
        }
    }

    /// A rule is waived if all of its findings are.
    fn settle_rule(&self, rule: &mut RuleResult, findings: &[Finding]) {
        let found: Vec<&Finding> = findings.iter().filter(|f| f.rule == rule.id).collect();
        let covers_all = found.len() >= rule.findings
            || self
                .valid()
                .any(|waiver| waiver.is_unbound() && waiver.names(&rule.id));
        if rule.verdict == Verdict::Fail
            && covers_all
            && let Some(first) = found.first()
            && found.iter().all(|finding| !finding.waived.is_empty())
        {
            rule.verdict = Verdict::Waived;
            rule.reason.clone_from(&first.waived);
        }
    }

    fn settle<'f>(result: &mut ScenarioResult, findings: impl Iterator<Item = &'f Finding>) {
        let musts: Vec<&Finding> = findings.filter(|f| f.level == Level::Must).collect();
        if result.verdict == Verdict::Fail
            && let Some(first) = musts.first()
            && musts.iter().all(|finding| !finding.waived.is_empty())
        {
            result.verdict = Verdict::Waived;
            result.reason.clone_from(&first.waived);
        }
    }
}

/// The errors of a run about waivers that do not apply.
pub fn problems_of(record: &RunRecord) -> impl Iterator<Item = &str> {
    let errors = record.errors.iter().map(String::as_str);
    errors.filter(|error| error.starts_with(WAIVER))
}

/// Problems of waivers that no part of a whole run needed, although their rules were judged.
pub fn unused_in_all_parts(record: &RunRecord) -> Vec<String> {
    let unused = record.waivers.iter().filter(|waiver| {
        let of_waiver = format!("{WAIVER}{} ", waiver.rule);
        let mut judged = record.rules.iter().filter(|rule| rule.judged > 0);
        waiver.findings == 0
            && judged.any(|rule| is_named(&waiver.rule, &rule.id))
            && !problems_of(record).any(|problem| problem.starts_with(&of_waiver))
    });
    unused.map(|waiver| unused_waiver(&waiver.rule)).collect()
}

fn unused_waiver(rule: &str) -> String {
    format!("{WAIVER}{rule} accepts no finding: remove it")
}

/// True if the pattern matches the rule; an id without `*` matches that rule only.
fn is_named(pattern: &str, rule: &str) -> bool {
    pattern == rule || (pattern.contains('*') && glob(pattern, rule))
}

impl Waiver {
    /// True if the waiver is about this rule.
    pub fn names(&self, rule: &str) -> bool {
        is_named(&self.rule, rule)
    }

    /// The present id of an event rule whose old id had a version: `events/message-sent/4/from`.
    pub fn without_version(&self) -> Option<String> {
        let mut words: Vec<&str> = self.rule.split('/').collect();
        let is_number = |word: &&str| word.bytes().all(|b| b.is_ascii_digit());
        if words.first() != Some(&"events") || !words.get(2).is_some_and(is_number) {
            return None;
        }
        words.remove(2);
        Some(words.join("/"))
    }

    /// True if it accepts every finding of its rule.
    fn is_unbound(&self) -> bool {
        self.pointer.is_none() && self.operation.is_none() && self.kind.is_none()
    }

    pub fn accepts(&self, finding: &Finding) -> bool {
        self.is_at(finding) && self.kind.as_ref().is_none_or(|kind| *kind == finding.kind)
    }

    /// True if it accepts findings of this rule at this place, whatever their kind.
    fn is_at(&self, finding: &Finding) -> bool {
        let of_operation = |operation: &String| {
            operation.split_once('/') == Some((&*finding.service, &*finding.operation))
        };
        self.names(&finding.rule)
            && self
                .pointer
                .as_ref()
                .is_none_or(|p| leads_to(p, &finding.pointer))
            && self.operation.as_ref().is_none_or(of_operation)
    }
}

/// Replaces list positions, which vary between runs: `/flows/3/sid` becomes `/flows/*/sid`.
pub fn place_of(pointer: &str) -> String {
    let is_position =
        |segment: &str| !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
    let segments = pointer.split('/');
    let segments = segments.map(|segment| if is_position(segment) { "*" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn leads_to(pattern: &str, pointer: &str) -> bool {
    let (patterns, segments) = (pattern.split('/'), pointer.split('/'));
    patterns.clone().count() == segments.clone().count()
        && patterns
            .zip(segments)
            .all(|(pattern, segment)| pattern == "*" || pattern == segment)
}
