//! Findings, verdicts and the run record: what a run concluded, as data.
//!
//! These are the types of the frozen JSON report (`schema_version` 2; 1 is still read) and of the one
//! stream of run events that every report consumes. Deliberately not errors, and never printed from
//! here.

mod defects;
mod proof;
mod shown;
mod timings;
pub mod waivers;

pub use defects::{KnownDefect, defects, recognise, without_names};
pub use proof::{Blind, Changes, Proof, Sample, share};
pub use shown::{
    Defect, Delivery, EarlierRun, History, Sharpness, ShownExchange, StepResult, WaiverResult,
    WallClock,
};
pub use timings::{Part, Spent, StoryTime, Timings};

use conformant_base::source::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON report's shape. Version 1 lacks what later fields hold, and is still read.
pub const SCHEMA_VERSION: u32 = 2;

/// The oldest version that is still read.
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
    /// Left open by the documents; observed, never judged.
    Open,
}

/// What a rule rests on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The document says it.
    Stated,
    /// It follows from what the document says.
    Inferred,
    /// The document says that it does not show it.
    NotShown,
    /// The document says it twice, differently.
    Contradiction,
}

/// What was concluded of a rule or a scenario.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Judged, and nothing found.
    Pass,
    /// At least one finding.
    Fail,
    /// Observed only.
    Open,
    /// Could not be judged: transport, 429, setup failed, missing state.
    Inconclusive,
    /// Does not apply here: hook missing, service not targeted.
    NotApplicable,
    /// Failed, and accepted by a waiver.
    Waived,
    /// Our own fault.
    Error,
    /// No evidence came by that this rule judges.
    NotJudged,
}

/// Whom a finding is about.
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
    /// What a service answered, or sent by itself.
    #[default]
    Service,
    /// What a client sent.
    Request,
}

impl Subject {
    /// Whether it is about a service, which reports need not say.
    pub fn is_service(&self) -> bool {
        *self == Self::Service
    }
}

impl Basis {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Inferred => "inferred",
            Self::NotShown => "not shown",
            Self::Contradiction => "said twice, differently",
        }
    }
}

impl Level {
    /// The word in the rulebook and in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
            Self::Open => "open",
        }
    }

    /// That of a finding: what is no duty warns at most.
    #[must_use]
    pub const fn of_finding(self) -> Self {
        match self {
            Self::Must => Self::Must,
            Self::Should | Self::May | Self::Open => Self::Should,
        }
    }
}

impl Verdict {
    /// The word in reports.
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

/// One violated rule at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// `must` or `should`.
    pub level: Level,
    /// `auth`, `chat`, `media`, `flow` or `events`.
    pub service: String,
    /// Operation id without the service; empty for a payload judged alone.
    pub operation: String,
    /// Scenario id; empty outside a run.
    pub scenario: String,
    /// Step in the scenario, counted from 1; 0 outside a run.
    pub step: usize,
    /// Exchange in the run, counted from 1; 0 outside a run. For NDJSON and HAR the line or entry.
    pub exchange: usize,
    /// JSON Pointer (RFC 6901) into the judged document; empty for the whole.
    pub pointer: String,
    /// What kind of difference: `missing-field`, `extra-field`, `type`, `null`, `enum`, `pattern`, …
    pub kind: String,
    /// What was expected, for a person.
    pub expected: String,
    /// What was there, for a person; excerpted.
    pub actual: String,
    /// One sentence that says both.
    pub message: String,
    /// A command that repeats the exchange, secrets redacted.
    pub reproduce: String,
    /// Whom it is about: the service, or the client that sent the request.
    #[serde(default, skip_serializing_if = "Subject::is_service")]
    pub subject: Subject,
    /// Why it is accepted and until when; empty where no waiver accepts it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waived: String,
    /// A unified diff where expected and actual are both documents; not part of the frozen report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

/// What was concluded of one rule over the whole run.
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
    /// How many findings it brought.
    pub findings: usize,
    /// Why it was not judged, not applicable or inconclusive; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whom it judges.
    #[serde(default, skip_serializing_if = "Subject::is_service")]
    pub subject: Subject,
    /// The broken rule that kept this one from being judged, where nothing else did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked_by: Option<String>,
    /// What it asks for, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// What would let it be judged, where it was not: `hook NAME`, `service NAME`, `key NAME`,
    /// `callbacks`, `check`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// What was concluded of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    /// Scenario id.
    pub id: String,
    /// The conclusion.
    pub verdict: Verdict,
    /// How long it took on the run's clock.
    pub seconds: f64,
    /// Why it did not pass; empty when it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was found when the same run failed before, where it passes now: no plain pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_before: Vec<String>,
    /// What happened in it, where it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepResult>,
}

/// One part of a run that is shared out over several machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartOf {
    /// How it is shared out: `hash` or `slice`.
    pub kind: String,
    /// Which part, counted from 1.
    pub part: u64,
    /// Of how many.
    pub of: u64,
}

/// What was observed of one open point.
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

/// How many rules came to each verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the verdicts")]
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
    /// Counts them.
    pub fn of(rules: &[RuleResult]) -> Self {
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

/// The counts that a person reads first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Rules by verdict.
    pub rules: RuleCounts,
    /// Scenarios by verdict, in kebab-case.
    pub scenarios: BTreeMap<String, usize>,
    /// Exchanges judged.
    pub exchanges: usize,
    /// How long the run took: real time, without a target that of the reference's clock.
    pub seconds: f64,
    /// How far the targets' clock went meanwhile, where it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_seconds: Option<f64>,
    /// What was asked of each service, and how long its answers took.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, Asked>,
}

/// Exchanges with one service, as far as they can be added up from parts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// How many.
    pub exchanges: usize,
    /// How long all of them took, on the run's clock: virtual without a target.
    pub milliseconds: u64,
    /// How long the longest took.
    pub longest_milliseconds: u64,
}

impl Asked {
    /// One exchange that took so long.
    pub const fn once(milliseconds: u64) -> Self {
        Self {
            exchanges: 1,
            milliseconds,
            longest_milliseconds: milliseconds,
        }
    }

    /// Takes further ones.
    pub fn add(&mut self, other: Self) {
        self.exchanges += other.exchanges;
        self.milliseconds = self.milliseconds.saturating_add(other.milliseconds);
        self.longest_milliseconds = self.longest_milliseconds.max(other.longest_milliseconds);
    }

    /// How long one took, all taken alike; nothing where there was none.
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

/// The rulebook that was judged by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulebookStamp {
    /// SHA-256 over all files, in hexadecimal.
    pub digest: String,
}

/// A whole run: what `--report json=` writes and `judge`, `merge` and `compare` read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// The rulebook.
    pub rulebook: RulebookStamp,
    /// Base URL by service; `reference` for our own implementation.
    pub targets: BTreeMap<String, String>,
    /// Seed of the run.
    pub seed: u64,
    /// False when it was interrupted or cut short.
    pub complete: bool,
    /// Which part of the run this is; nothing for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartOf>,
    /// Counts.
    pub summary: Summary,
    /// Every selected rule, by id.
    pub rules: Vec<RuleResult>,
    /// Every finding, by scenario and step.
    pub findings: Vec<Finding>,
    /// Every open point that was observed, by id.
    pub open_points: Vec<OpenPointResult>,
    /// Every selected scenario, by id.
    pub scenarios: Vec<ScenarioResult>,
    /// The broken rules by what looks like one mistake, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defects: Vec<Defect>,
    /// Exchanges that the first finding of each rule is about, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ShownExchange>,
    /// Callbacks and events that the first finding of a rule is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
    /// The waivers that were given, in their file's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<WaiverResult>,
    /// How many known defects this run would have noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharpness: Option<Sharpness>,
    /// What changes of the run's own answers would have been noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The command that was given, without what says only where its output goes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub invocation: String,
    /// The exit code that the run ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// Where the adopter wrote a service's target or a scenario of their own, as `FILE:LINE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// What earlier runs of the same targets say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Real time; not for runs against the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<WallClock>,
}

/// What stands for our own implementation in place of a target's base URL.
pub const REFERENCE: &str = "reference";

impl RunRecord {
    /// Whether a target that lives on was judged, which sees other names in each run.
    pub fn is_live(&self) -> bool {
        self.targets.values().any(|target| target != REFERENCE)
    }
}

/// One thing that happened in a run; consoles, progress, `JUnit` and the record consume the stream.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// The plan is made: that many scenarios will run.
    Started {
        /// How many.
        scenarios: usize,
        /// Base URL by service.
        targets: BTreeMap<String, String>,
    },
    /// A scenario begins; such events come in no particular order.
    ScenarioBegan {
        /// Its id.
        id: String,
    },
    /// A scenario was played and judged; comes at once, while [`Self::ScenarioEnded`] keeps the plan's
    /// order.
    ScenarioPlayed {
        /// Its id.
        id: String,
        /// What was concluded of it.
        verdict: Verdict,
    },
    /// Something waits on purpose: a rate limit, a target that asked for patience.
    Waiting {
        /// The service that asked for it.
        service: String,
        /// Why, for a person: `429, waiting 1 s`.
        why: String,
    },
    /// The run goes on; comes about once a second.
    Alive {
        /// Seconds since it began.
        seconds: u64,
    },
    /// A scenario ended; such events come in the plan's order, whatever the number of jobs.
    ScenarioEnded {
        /// What was concluded.
        result: ScenarioResult,
        /// What was found in it.
        findings: Vec<Finding>,
        /// Exchanges it made.
        exchanges: usize,
    },
    /// The run ended; the record is final.
    Finished {
        /// The whole run.
        record: Box<RunRecord>,
    },
}
