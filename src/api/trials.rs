//! One trial for each scenario, for a test runner.

use super::error::Error;
use super::rulebook::Rulebook;
use super::run::LONGEST;
use super::target::Target;
use super::write_finding;
use conformant_base::redact::Redactor;
use conformant_engine::{OnDemandRunner, plan};
use conformant_record::{Finding, Level, Verdict};
use conformant_report::redact;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One scenario, for one execution.
///
/// Trials of one call share the target: exclusive resources, such as its clock, are used by one trial at a time,
/// on any number of threads.
#[derive(Clone, Debug)]
pub struct Trial {
    suite: Arc<Suite>,
    index: usize,
    id: String,
}

#[derive(Debug)]
struct Suite {
    rulebook: Rulebook,
    scenarios: OnDemandRunner,
    redactor: Redactor,
}

/// A trial without failures.
#[derive(Clone, Debug)]
pub struct Played {
    why_not: Option<String>,
    warnings: Vec<Finding>,
}

/// A failed trial: must-rules are broken, or nothing could be judged. Its text contains rule, source, place,
/// expected and found.
#[derive(Clone, Debug)]
pub struct Failure {
    rulebook: Rulebook,
    id: String,
    verdict: Verdict,
    reason: String,
    findings: Vec<Finding>,
}

impl Rulebook {
    /// One trial for each scenario of the target's services, by id, for a test runner such as `libtest-mimic`, in any
    /// order and on any threads.
    ///
    /// ```
    /// use conformant::{Reference, Rulebook, Target};
    /// let trials = Rulebook::embedded()?.trials(&Target::from(Reference::new()))?;
    /// let trial = trials.iter().find(|trial| trial.id() == "flow/read-flows/happy");
    /// let passed = trial.ok_or("no such trial")?.run()?;
    /// assert!(passed.not_applicable().is_none() && passed.warnings().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Machine`] if the target cannot be opened.
    pub fn trials(&self, target: &Target) -> Result<Vec<Trial>, Error> {
        let planned = plan::plan(&self.inner, &target.selection(&[]), None);
        let interrupted = Arc::new(AtomicBool::new(false));
        let seed = target.seed(None);
        let sessions =
            target.sessions(&self.inner, (seed, target.jobs()), LONGEST, &interrupted)?;
        let scenarios = OnDemandRunner::new(&self.inner, planned, sessions, seed, interrupted);
        let suite = Arc::new(Suite {
            rulebook: self.clone(),
            scenarios,
            redactor: target.redactor(),
        });
        let trial = |(index, id): (usize, &str)| Trial {
            suite: Arc::clone(&suite),
            index,
            id: id.to_owned(),
        };
        Ok(suite.scenarios.ids().enumerate().map(trial).collect())
    }
}

impl Trial {
    /// The scenario's id, such as `flow/read-flows/happy`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Runs the scenario and judges the observations by every applicable rule.
    ///
    /// # Errors
    /// [`Failure`] if must-rules are broken, or nothing could be concluded. A second call fails.
    pub fn run(&self) -> Result<Played, Failure> {
        let suite = &*self.suite;
        let Some(concluded) = suite.scenarios.run(self.index) else {
            return Err(self.failure(Verdict::Error, "it was run before", Vec::new()));
        };
        if let Some(void) = suite.scenarios.void_service() {
            return Err(self.failure(Verdict::Inconclusive, &void.why, Vec::new()));
        }
        let mut findings = concluded.judgment.findings;
        redact(&mut findings, &suite.redactor);
        let reason = suite.redactor.redact(&concluded.result.reason);
        let is_broken = findings.iter().any(|f| f.level == Level::Must);
        let verdict = concluded.result.verdict;
        let has_ended_well = matches!(verdict, Verdict::Pass | Verdict::NotApplicable);
        if is_broken || !has_ended_well {
            return Err(self.failure(verdict, &reason, findings));
        }
        Ok(Played {
            why_not: (verdict == Verdict::NotApplicable).then(|| reason.into_owned()),
            warnings: findings,
        })
    }

    fn failure(&self, verdict: Verdict, reason: &str, findings: Vec<Finding>) -> Failure {
        Failure {
            rulebook: self.suite.rulebook.clone(),
            id: self.id.clone(),
            verdict,
            reason: reason.to_owned(),
            findings,
        }
    }
}

impl Played {
    /// Why the scenario does not apply to the target: a hook is missing, or a service is not targeted. Nothing was judged.
    pub fn not_applicable(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// Findings that do not fail the trial: of rules of level *should*.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

impl Failure {
    /// [`Verdict::Fail`] if must-rules are broken, otherwise [`Verdict::Inconclusive`] or [`Verdict::Error`].
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The findings, by step.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = conformant_base::text::escape_line(&self.reason);
        writeln!(f, "{}: {} {reason}", self.id, self.verdict.word())?;
        for finding in &self.findings {
            write_finding(f, &self.rulebook.inner, finding)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
