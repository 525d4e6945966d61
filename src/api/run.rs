//! A run: all scenarios of a target's services, and the verdict.

use super::error::Error;
use super::rulebook::Rulebook;
use super::target::Target;
use super::write_finding;
use conformant_engine::{Conclusion, Demands, Options, plan};
use conformant_judge::prove::Mode;
use conformant_record::{Finding, RunEvent, RunRecord, Verdict};
use conformant_report::{Format, Report, Settings, redact};
use conformant_schema::Schemas;
use conformant_selftest::known_defects;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Findings that are printed in full; reports contain all.
const SHOWN_MAX: usize = 20;

/// Options of a run; the defaults are those of `conformant run`.
#[derive(Clone, Debug)]
pub struct RunOptions {
    seed: Option<u64>,
    jobs: Option<usize>,
    filters: Vec<String>,
    longest: Duration,
    demands: Demands,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            seed: None,
            jobs: None,
            filters: Vec::new(),
            longest: LONGEST,
            demands: Demands::default(),
        }
    }
}

/// Default time limit of a run.
pub(super) const LONGEST: Duration = Duration::from_secs(600);

impl RunOptions {
    /// The defaults: every scenario, eight in parallel (in this process at most one more than processors), at most ten minutes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed of names and order. The default is that of the reference, or a random one for a live target, which
    /// keeps the names of earlier runs.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the number of scenarios in parallel, at least one.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = Some(jobs.max(1));
        self
    }

    /// Adds a glob of scenario ids to run; `*` matches any text.
    #[must_use]
    pub fn filter(mut self, glob: &str) -> Self {
        self.filters.push(glob.to_owned());
        self
    }

    /// Sets the time limit; an interrupted run is not conformant.
    #[must_use]
    pub fn within(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Also fails the run on findings of level *should*.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.demands.strict = true;
        self
    }

    /// Requires that every must-rule that a run can judge is judged.
    #[must_use]
    pub fn require_complete(mut self) -> Self {
        self.demands.require_complete = true;
        self
    }

    /// Sets the percentage of attempted must-rules that must be judged; the default is 90.
    #[must_use]
    pub fn min_judged(mut self, percent: u8) -> Self {
        self.demands.min_judged = percent;
        self
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    rulebook: Rulebook,
    record: RunRecord,
    conclusion: Conclusion,
    reasons: Vec<String>,
    settings: Settings,
}

/// Runs every scenario of the target's services and judges the observations by every applicable rule, like
/// `conformant run`.
///
/// ```
/// use conformant::{Conclusion, Reference, RunOptions, Rulebook, Target, Verdict, run};
/// let rulebook = Rulebook::embedded()?;
/// let target = Target::from(Reference::new());
/// let run = run(&rulebook, &target, &RunOptions::new().filter("flow/read-flows/*"))?;
/// assert_eq!(run.conclusion(), Conclusion::Conformant, "{run}");
/// assert_eq!(run.verdict("flow/read-flows/page-size"), Some(Verdict::Pass));
/// # Ok::<(), conformant::Error>(())
/// ```
///
/// # Errors
/// [`Error::Machine`] if the target cannot be opened. A defect of the target is a finding, and an unreachable
/// target leads to [`Conclusion::InfrastructureError`].
pub fn run(rulebook: &Rulebook, target: &Target, options: &RunOptions) -> Result<Run, Error> {
    let inner = &*rulebook.inner;
    let planned = plan::plan(inner, &target.selection(&options.filters), None);
    let interrupted = Arc::new(AtomicBool::new(false));
    let seed = target.seed(options.seed);
    let jobs = options.jobs.unwrap_or_else(|| target.jobs());
    let sessions = target.sessions(inner, (seed, jobs), options.longest, &interrupted)?;
    let how = Options {
        seed,
        jobs,
        shuffle: false,
        run_max: options.longest,
        prove: Mode::Rules,
        evidence_writer: None,
    };
    let mut whole = RunRecord::default();
    let (mut conclusion, mut reasons) = (Conclusion::InfrastructureError, Vec::new());
    conformant_engine::run(
        inner,
        &Schemas::default(),
        &planned,
        sessions.as_ref(),
        &how,
        &interrupted,
        &mut |event| {
            if let RunEvent::Finished { record } = event {
                whole = *record;
            }
        },
        |record, ended| {
            conformant_record::add_defects(
                record,
                &known_defects(rulebook.folder.as_deref()),
                options.demands.strict,
            );
            (conclusion, reasons) = conformant_engine::gate(
                options.demands,
                record,
                &[],
                ended.has_infrastructure_error,
            );
        },
    );
    redact(&mut whole, &target.redactor());
    Ok(Run {
        rulebook: rulebook.clone(),
        record: whole,
        conclusion,
        reasons,
        settings: Settings {
            strict: options.demands.strict,
        },
    })
}

impl Run {
    /// The conclusion.
    pub fn conclusion(&self) -> Conclusion {
        self.conclusion
    }

    /// Whether enough was judged and nothing failed.
    pub fn is_conformant(&self) -> bool {
        self.conclusion == Conclusion::Conformant
    }

    /// Reasons of the conclusion other than findings, one a line: failed set-up, unjudged rules.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// All findings, by scenario and step.
    pub fn findings(&self) -> &[Finding] {
        &self.record.findings
    }

    /// The verdict of a rule; none if its service was not run.
    pub fn verdict(&self, rule: &str) -> Option<Verdict> {
        let found = self.record.rules.iter().find(|result| result.id == rule);
        found.map(|result| result.verdict)
    }

    /// The record as JSON, described by `conformant schema record`, for `conformant judge`, `merge` and `compare`.
    pub fn json(&self) -> String {
        Format::Json.render(&self.record, self.settings)
    }

    /// Writes a report, such as `html=report.html`, in any format of `conformant run --report`, but not to standard
    /// output.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an invalid `FORMAT=PATH`, [`Error::Machine`] if the file cannot be written.
    pub fn report(&self, format_and_path: &str) -> Result<(), Error> {
        let report: Report = format_and_path.parse().map_err(|why| Error::Unusable {
            what: format_and_path.to_owned(),
            why: format!("{why}"),
        })?;
        let written = report.write(&self.record, self.settings, &mut std::io::sink());
        written.map_err(|why| Error::machine("report", why))
    }
}

/// The conclusion, its reasons, and the first findings in full.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conclusion = match self.conclusion {
            Conclusion::Conformant => "conformant",
            Conclusion::Failed => "not conformant",
            Conclusion::InfrastructureError => "interrupted, or the target is unreachable",
            Conclusion::NothingJudged => "too little was judged",
        };
        writeln!(f, "{conclusion}")?;
        for reason in &self.reasons {
            writeln!(f, "  {}", conformant_base::text::escape_line(reason))?;
        }
        let findings = self.findings();
        for finding in findings.iter().take(SHOWN_MAX) {
            writeln!(
                f,
                "{}",
                conformant_base::text::escape_line(&finding.scenario)
            )?;
            write_finding(f, &self.rulebook.inner, finding)?;
        }
        let more = findings.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            writeln!(f, "and {more} more findings")?;
        }
        Ok(())
    }
}
