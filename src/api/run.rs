//! A whole run: every scenario of a target's services, and what the gate concludes of it.

use super::error::Error;
use super::rulebook::Rulebook;
use super::target::Target;
use super::tell;
use conformant_engine::{Conclusion, Demands, Options, plan};
use conformant_judge::prove::Mode;
use conformant_record::{Finding, RunEvent, RunRecord, Verdict};
use conformant_report::{Format, Report, Settings, redact_record};
use conformant_schema::Schemas;
use conformant_selftest::known_defects;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Findings that are shown in full where a run is printed; reports have all.
const SHOWN_MAX: usize = 20;

/// How a run is carried out and what is asked of it; the defaults are those of `conformant run`.
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

/// The longest that a run may take unless it is said otherwise.
pub(super) const LONGEST: Duration = Duration::from_secs(600);

impl RunOptions {
    /// The defaults: every scenario, eight side by side (in this process no more than processors, and one), at most ten minutes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Seeds names and order. Otherwise that of the reference, or one drawn anew: a living target remembers
    /// the names of earlier runs.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Scenarios side by side; at least one.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = Some(jobs.max(1));
        self
    }

    /// Plays only scenarios whose id fits this glob or another one that was given, `*` for any text.
    #[must_use]
    pub fn filter(mut self, glob: &str) -> Self {
        self.filters.push(glob.to_owned());
        self
    }

    /// The longest that the run may take; it is then cut short and not conformant.
    #[must_use]
    pub fn within(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Rules of level *should* fail the run, too.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.demands.strict = true;
        self
    }

    /// Every must-rule that a run can judge is to be judged.
    #[must_use]
    pub fn require_complete(mut self) -> Self {
        self.demands.require_complete = true;
        self
    }

    /// So many percent of the must-rules that were tried are to be judged; 90 unless said otherwise.
    #[must_use]
    pub fn min_judged(mut self, percent: u8) -> Self {
        self.demands.min_judged = percent;
        self
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Run {
    rulebook: Rulebook,
    record: RunRecord,
    conclusion: Conclusion,
    reasons: Vec<String>,
    settings: Settings,
}

/// Plays every scenario of the target's services, has what was observed judged by every rule that applies,
/// and concludes: what `conformant run` does.
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
/// [`Error::Machine`] where the target cannot be opened. What is wrong with the target is a finding, and
/// one that cannot be reached ends as [`Conclusion::Trouble`].
pub fn run(rulebook: &Rulebook, target: &Target, options: &RunOptions) -> Result<Run, Error> {
    let inner = &*rulebook.inner;
    let planned = plan::plan(inner, &target.selection(&options.filters), None);
    let interrupted = Arc::new(AtomicBool::new(false));
    let seed = target.seed(options.seed);
    let jobs = options.jobs.unwrap_or_else(|| target.jobs());
    let sessions = target.sessions(seed, jobs, options.longest, &interrupted)?;
    let how = Options {
        seed,
        jobs,
        shuffle: false,
        run_max: options.longest,
        prove: Mode::Rules,
        keeper: None,
    };
    let mut whole = RunRecord::default();
    let (mut conclusion, mut reasons) = (Conclusion::Trouble, Vec::new());
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
            conformant_record::recognise(record, &known_defects(rulebook.folder.as_deref()));
            (conclusion, reasons) =
                conformant_engine::gate(options.demands, record, &[], ended.trouble);
        },
    );
    let redactor = target.redactor();
    redact_record(&mut whole, &redactor);
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
    /// What the gate concludes.
    pub fn conclusion(&self) -> Conclusion {
        self.conclusion
    }

    /// Whether enough was judged and nothing failed.
    pub fn is_conformant(&self) -> bool {
        self.conclusion == Conclusion::Conformant
    }

    /// What led to the conclusion beside findings, a line each: what could not be set up, what was not judged.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// All findings, by scenario and step.
    pub fn findings(&self) -> &[Finding] {
        &self.record.findings
    }

    /// What was concluded of a rule; nothing for one that is not of the services that were played.
    pub fn verdict(&self, rule: &str) -> Option<Verdict> {
        let found = self.record.rules.iter().find(|result| result.id == rule);
        found.map(|result| result.verdict)
    }

    /// The record as JSON, which `conformant schema record` describes and `conformant judge`, `merge` and
    /// `compare` read.
    pub fn json(&self) -> String {
        Format::Json.render(&self.record, self.settings)
    }

    /// Writes a report in one piece: `html=report.html`, and whatever else `conformant run --report` takes
    /// but standard output.
    ///
    /// # Errors
    /// [`Error::Unusable`] for what is no `FORMAT=PATH`, [`Error::Machine`] where the file cannot be written.
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
        let told = match self.conclusion {
            Conclusion::Conformant => "conformant",
            Conclusion::Failed => "not conformant",
            Conclusion::Trouble => "cut short, or the target could not be reached",
            Conclusion::NothingJudged => "too little was judged",
        };
        writeln!(f, "{told}")?;
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
            tell(f, &self.rulebook.inner, finding)?;
        }
        let more = findings.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            writeln!(f, "and {more} more findings")?;
        }
        Ok(())
    }
}
