//! Findings, verdicts and the run record: the result of a run as data.
//!
//! Types of the stable JSON report (`schema_version` 2; 1 is still read) and of the event stream that all
//! reports consume. Nothing is printed here.

mod archive;
pub mod claims;
mod defects;
mod detection;
pub mod junit;
mod proof;
mod repeats;
mod shown;
mod timings;
mod title;
pub mod waivers;

pub use archive::{ArchiveCounts, ArchiveSums, DocumentCount, FindingCount};
pub use claims::{ClaimsResult, UnjudgedClaim};
pub use defects::{FaultPattern, add_defects, defects};
pub use detection::{Detection, FirstRun, KnownDefects, Raise, STRICT};
pub use proof::{Blind, Changes, Proof, Sample, share};
pub use repeats::{ExchangeDifference, RepeatedRule, RepeatedRun, Repeats};
pub use shown::{
    Build, Defect, EarlierRun, History, PayloadOrigin, RaceTimes, ShownExchange, ShownPayload,
    StepResult, WaiverResult, WallClock,
};
pub use timings::{Part, ScenarioTime, Spent, Timings};
pub use title::{title, with_short_ids, with_types, without_names};

use conformant_base::source::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON report. Version 1 lacks later fields and is still read.
pub const SCHEMA_VERSION: u32 = 2;

/// The oldest supported version.
pub const SCHEMA_VERSION_MIN: u32 = 1;

/// How binding a rule is.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Breaking it fails the run.
    #[default]
    Must,
    /// Breaking it is a warning; with `--strict` it fails the run.
    Should,
    /// A permission; never judged.
    May,
    /// Unspecified behavior; observed, never judged.
    Open,
}

/// What a rule is based on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Stated in the document.
    Stated,
    /// Inferred from the document.
    Inferred,
    /// Not shown in the document, as the document says.
    NotShown,
    /// Stated twice, differently.
    Contradiction,
}

/// Conclusion about a rule or a scenario.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Judged without a finding.
    Pass,
    /// At least one finding.
    Fail,
    /// Observed only.
    Open,
    /// Could not be judged: transport error, 429, failed setup, missing state.
    Inconclusive,
    /// Does not apply: missing hook, untargeted service.
    NotApplicable,
    /// Failed, and accepted by a waiver.
    Waived,
    /// An error of the harness.
    Error,
    /// The run exercised nothing that this rule applies to.
    #[default]
    NotJudged,
}

/// Whether a finding is about the service or the client.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A response of the service, or a message that it sent.
    #[default]
    Service,
    /// A request of a client.
    Request,
}

impl Subject {
    /// True for the service, the default that reports omit.
    pub fn is_service(&self) -> bool {
        *self == Self::Service
    }
}

impl Basis {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Inferred => "inferred",
            Self::NotShown => "not shown",
            Self::Contradiction => "stated twice, differently",
        }
    }
}

impl Level {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
            Self::Open => "open",
        }
    }

    /// The level of a finding: at most a warning unless the rule is a must.
    #[must_use]
    pub const fn of_finding(self) -> Self {
        match self {
            Self::Must => Self::Must,
            Self::Should | Self::May | Self::Open => Self::Should,
        }
    }
}

impl Verdict {
    /// True if a rule could not be decided: the run does not count it as passed or failed.
    pub const fn is_undecided(self) -> bool {
        match self {
            Self::Inconclusive | Self::NotApplicable | Self::NotJudged | Self::Error => true,
            Self::Pass | Self::Fail | Self::Open | Self::Waived => false,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Open => "open",
            Self::Inconclusive => "inconclusive",
            Self::NotApplicable => "not-applicable",
            Self::Waived => "waived",
            Self::Error => "error",
            Self::NotJudged => "not-judged",
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// One broken rule at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// `must` or `should`.
    pub level: Level,
    /// `auth`, `chat`, `media`, `flow` or `events`.
    pub service: String,
    /// Operation id without the service; empty for a payload without a request.
    pub operation: String,
    /// Scenario id; empty outside a run.
    pub scenario: String,
    /// Step in the scenario, counted from 1; 0 outside a run.
    pub step: usize,
    /// Exchange in the run, counted from 1; 0 outside a run. For NDJSON and HAR the line or entry.
    pub exchange: usize,
    /// Exchange in the run that showed the expected value, if the value must not change; 0 otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_exchange: usize,
    /// Hook or callback of the scenario's evidence that it is about, counted from 1 among all events; 0 if there is none.
    /// Not in the record.
    #[serde(skip)]
    pub event: usize,
    /// Line of the file, counted from 1, if each line is a document; then the scenario is the file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: usize,
    /// JSON Pointer (RFC 6901) into the judged document; empty for the whole.
    pub pointer: String,
    /// Kind of difference: `missing-field`, `extra-field`, `type`, `null`, `enum`, `pattern`, …
    pub kind: String,
    /// The expectation in words.
    pub expected: String,
    /// The observation in words; excerpted.
    pub actual: String,
    /// One sentence with both.
    pub message: String,
    /// A command that repeats the exchange, secrets redacted.
    pub reproduce: String,
    /// Whether it is about the service or the client that sent the request.
    #[serde(default, skip_serializing_if = "Subject::is_service")]
    pub subject: Subject,
    /// Reason and expiry of the waiver; empty if not waived.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waived: String,
    /// A unified diff if both are documents; not part of the stable report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

/// Whether a scenario repeats another one with a second account, or is about the separation of accounts.
pub fn is_of_other_account(scenario: &str) -> bool {
    scenario.ends_with("/other-account") || scenario.split('/').nth(1) == Some("accounts")
}

/// Whether a scenario sends requests at the same time, so that it need not show the same again.
fn is_race(scenario: &str) -> bool {
    scenario
        .split('/')
        .skip(1)
        .any(|part| part.starts_with("race"))
}

impl Finding {
    /// Order of the findings of a rule: the first one represents a defect. Those of a race cannot be repeated for sure; those
    /// with a long request or of a second account are harder to read.
    pub fn complexity(&self) -> (bool, bool, bool) {
        const REQUEST_BYTES_MAX: usize = 1_000;
        let is_lengthy = self.reproduce.len() > REQUEST_BYTES_MAX;
        let is_of_other = is_of_other_account(&self.scenario);
        (is_race(&self.scenario), is_lengthy, is_of_other)
    }

    /// Failures before warnings to the service, and those before advice to the client.
    pub fn urgency(&self) -> (Level, bool) {
        let is_advice = self.level != Level::Must && self.subject == Subject::Request;
        (self.level, is_advice)
    }
}

/// Conclusion about one rule over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleResult {
    /// Id of the rule.
    pub id: String,
    /// How binding it is.
    pub level: Level,
    /// Where it is stated.
    pub source: Source,
    /// The conclusion.
    pub verdict: Verdict,
    /// How many times it was judged.
    pub judged: usize,
    /// Number of findings.
    pub findings: usize,
    /// Why it was not judged, not applicable or inconclusive; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it applies to the service or the client.
    #[serde(default, skip_serializing_if = "Subject::is_service")]
    pub subject: Subject,
    /// The broken rule that is the only reason why this one was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked_by: Option<String>,
    /// The requirement in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// What it is based on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// What is missing to judge it: `hook NAME`, `service NAME`, `key NAME`, `callbacks`, `check`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// Conclusion about one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    /// Scenario id.
    pub id: String,
    /// The conclusion.
    pub verdict: Verdict,
    /// Duration on the run's clock.
    pub seconds: f64,
    /// Why it did not pass; empty when it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Findings of the previous run, which failed it with the same settings, although it passes now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_before: Vec<String>,
    /// Its steps, if it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepResult>,
}

/// One part of a run that is split over several machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartOf {
    /// How it is split: `hash` or `slice`.
    pub kind: String,
    /// Which part, counted from 1.
    pub part: u64,
    /// Number of parts.
    pub of: u64,
}

/// One of several merged records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergedPart {
    /// Its command, without the partition.
    pub invocation: String,
    /// Ids of its scenarios.
    pub scenario_ids: Vec<String>,
}

/// Observations of one unspecified behavior.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenPointResult {
    /// Id of the open point.
    pub id: String,
    /// Distinct value-free observations, sorted.
    pub observed: Vec<String>,
    /// The question, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// How it is treated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub treatment: String,
}

impl OpenPointResult {
    const REFUSED_WITH: &str = ": refused with status ";

    /// The observation that an operation refuses invalid requests with the status of a success or of a failed server.
    pub fn odd_refusal(operation: &str, status: u16) -> String {
        format!("{operation}{}{status}", Self::REFUSED_WITH)
    }

    /// Operations and statuses of such observations.
    pub fn odd_refusals(&self) -> impl Iterator<Item = (&str, &str)> {
        let observed = self.observed.iter();
        observed.filter_map(|one| one.split_once(Self::REFUSED_WITH))
    }
}

/// Number of rules per verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleCounts {
    pub pass: usize,
    pub fail: usize,
    pub open: usize,
    pub inconclusive: usize,
    pub not_applicable: usize,
    pub waived: usize,
    pub error: usize,
    pub not_judged: usize,
}

impl RuleCounts {
    pub fn count(rules: &[RuleResult]) -> Self {
        let mut counts = Self::default();
        for rule in rules {
            *match rule.verdict {
                Verdict::Pass => &mut counts.pass,
                Verdict::Fail => &mut counts.fail,
                Verdict::Open => &mut counts.open,
                Verdict::Inconclusive => &mut counts.inconclusive,
                Verdict::NotApplicable => &mut counts.not_applicable,
                Verdict::Waived => &mut counts.waived,
                Verdict::Error => &mut counts.error,
                Verdict::NotJudged => &mut counts.not_judged,
            } += 1;
        }
        counts
    }
}

/// Number of scenarios per verdict, in kebab-case.
pub fn count_scenarios(scenarios: &[ScenarioResult]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for scenario in scenarios {
        let word = scenario.verdict.word().to_owned();
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Main counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Rules by verdict.
    pub rules: RuleCounts,
    /// Scenarios by verdict, in kebab-case.
    pub scenarios: BTreeMap<String, usize>,
    /// Exchanges judged.
    pub exchanges: usize,
    /// Duration: real time, or the reference's clock without a target.
    pub seconds: f64,
    /// How far the targets' clock moved, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_seconds: Option<f64>,
    /// Requests and response times per service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, Asked>,
}

/// Exchanges with one service, in a form that can be summed over parts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Number of exchanges.
    pub exchanges: usize,
    /// Total response time on the run's clock: virtual without a target.
    pub milliseconds: u64,
    /// Longest response time.
    pub longest_milliseconds: u64,
}

impl Asked {
    /// A single exchange.
    pub const fn once(milliseconds: u64) -> Self {
        Self {
            exchanges: 1,
            milliseconds,
            longest_milliseconds: milliseconds,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.exchanges += other.exchanges;
        self.milliseconds = self.milliseconds.saturating_add(other.milliseconds);
        self.longest_milliseconds = self.longest_milliseconds.max(other.longest_milliseconds);
    }

    /// Mean response time; `None` without exchanges.
    pub fn mean_milliseconds(&self) -> Option<u64> {
        self.milliseconds
            .checked_div(u64::try_from(self.exchanges).ok()?)
    }
}

/// The program that wrote a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `conformant`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The rulebook used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulebookStamp {
    /// SHA-256 over all files, in hexadecimal.
    pub digest: String,
}

/// A kept evidence file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceStamp {
    /// The name of the file, without its folder.
    pub name: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// SHA-256 of its first line, which identifies the run.
    pub run: String,
}

/// The sentences at a line that a rule cites, from the user's copy of the document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    /// Counted from 1.
    pub line: u32,
    /// The cited sentences or table row.
    pub text: String,
}

/// A whole run: written by `--report json=`, read by `judge`, `merge` and `compare`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// The rulebook.
    pub rulebook: RulebookStamp,
    /// Base URL by service; `reference` for the built-in reference.
    pub targets: BTreeMap<String, String>,
    /// Seed of the run.
    pub seed: u64,
    /// False when it was interrupted or cut short.
    pub complete: bool,
    /// Why it was cut short, where the reason is known: the time limit, the address, the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// Why it failed apart from findings: unreachable targets, rejected credentials, failed hooks, stale waivers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Which part of the run this is; absent for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartOf>,
    /// Merged parts with seeds and names of their own; empty for other records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergedPart>,
    /// Counts.
    pub summary: Summary,
    /// Every selected rule, by id.
    pub rules: Vec<RuleResult>,
    /// Every finding, by scenario and step.
    pub findings: Vec<Finding>,
    /// Every observed unspecified behavior, by id.
    pub open_points: Vec<OpenPointResult>,
    /// Every selected scenario, by id.
    pub scenarios: Vec<ScenarioResult>,
    /// Broken rules grouped by likely cause, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defects: Vec<Defect>,
    /// Exchanges of the first finding of each rule, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ShownExchange>,
    /// Callbacks, events and hook results of the first finding of each rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<ShownPayload>,
    /// The waivers in the order of their file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<WaiverResult>,
    /// The estimated share of the defects of an unknown implementation that this run reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
    /// Mutation testing of the run's evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The command, without options that only set where output goes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub invocation: String,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// Where a target or a custom scenario is defined, as `FILE:LINE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// What the user's copy of the documents says at the lines that broken rules cite, by rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotes: BTreeMap<String, Vec<Quote>>,
    /// Comparison with earlier runs of the same targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Real time; not for runs against the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<WallClock>,
    /// The evidence file of the run, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceStamp>,
    /// What the implementation claims, if claims were checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<ClaimsResult>,
    /// Counts of `check` over files with one document a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveCounts>,
    /// Verdicts of each run, with `run --repeat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// The build of a CI system that made the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
}

/// The start of the reason of a rule whose pass was withdrawn.
pub const VACUOUS: &str = "vacuous: ";

/// The reason of a rule to which nothing in the run applies.
pub const NOT_EXERCISED: &str = "not exercised by this run";

/// The reason of a scenario that did not end, or did not begin, before the run ended, and of the rules that its remaining
/// steps name.
pub const ENDED_BEFORE: &str = "the run ended before";

/// The reason of a rule that was not exercised because this scenario stopped early.
pub fn not_exercised_because_of(scenario: &str) -> String {
    format!("{STOPPED_BEFORE}{scenario} stopped early")
}

/// The scenario that such a reason names.
pub fn scenario_that_stopped(reason: &str) -> Option<&str> {
    reason
        .strip_prefix(STOPPED_BEFORE)?
        .strip_suffix(" stopped early")
}

const STOPPED_BEFORE: &str = "not exercised: ";

/// Whether a reason only says that something was missing, not why.
pub fn lacks_evidence(reason: &str) -> bool {
    reason == NOT_EXERCISED
        || reason.ends_with("is undefined: no earlier answer contains it")
        || reason == "no evidence to decide: no item of the list was read"
}

/// Stands for the built-in reference instead of a base URL.
pub const REFERENCE: &str = "reference";

impl RunRecord {
    /// The command that ran a scenario.
    pub fn invocation_of(&self, scenario: &str) -> &str {
        let mut parts = self.parts.iter();
        let part = parts.find(|part| part.scenario_ids.iter().any(|id| id == scenario));
        part.map_or(&self.invocation, |part| &part.invocation)
    }

    /// Counts rules and scenarios again after their verdicts changed.
    pub fn count_verdicts(&mut self) {
        self.summary.rules = RuleCounts::count(&self.rules);
        self.summary.scenarios = count_scenarios(&self.scenarios);
    }

    /// True if a live target was judged, whose names differ in each run.
    pub fn is_live(&self) -> bool {
        self.targets.values().any(|target| target != REFERENCE)
    }
}

/// An event of a run; consoles, progress, `JUnit` and the record consume the stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunEvent {
    /// Planning finished.
    Started {
        scenarios: usize,
        /// Base URL by service.
        targets: BTreeMap<String, String>,
    },
    /// A scenario began; in no particular order.
    ScenarioBegan { id: String },
    /// A scenario finished; sent at once, while [`Self::ScenarioEnded`] keeps the plan's order.
    ScenarioPlayed { id: String, verdict: Verdict },
    /// A deliberate wait, such as for a rate limit.
    Waiting {
        /// The service that caused it; empty if scenarios wait for callbacks, events or another state.
        service: String,
        /// The reason in words: `429, waiting 1 s`.
        why: String,
    },
    /// Sent about once a second.
    Alive {
        /// Seconds since it began.
        seconds: u64,
    },
    /// A scenario ended; in the plan's order for any number of jobs.
    ScenarioEnded {
        result: ScenarioResult,
        findings: Vec<Finding>,
        exchanges: usize,
    },
    /// The run ended; the record is final.
    Finished { record: Box<RunRecord> },
}
