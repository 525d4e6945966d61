//! One trial a scenario, for the test runner of whoever asks.

use super::error::Error;
use super::rulebook::Rulebook;
use super::run::LONGEST;
use super::target::Target;
use super::tell;
use conformant_base::redact::Redactor;
use conformant_engine::{Singly, plan};
use conformant_record::{Finding, Level, RunRecord, Verdict};
use conformant_report::redact_record;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One scenario, to be played and judged once.
///
/// Trials of one call share the target: what it has only one of, as its time, is one trial's at a time,
/// whatever threads they run on.
#[derive(Clone, Debug)]
pub struct Trial {
    suite: Arc<Suite>,
    index: usize,
    id: String,
}

#[derive(Debug)]
struct Suite {
    rulebook: Rulebook,
    stories: Singly,
    redactor: Redactor,
}

/// A trial that found nothing wrong.
#[derive(Clone, Debug)]
pub struct Played {
    why_not: Option<String>,
    warnings: Vec<Finding>,
}

/// A trial that failed: must-rules are broken, or it could not be judged. Its text says which, with the line
/// of the documents, the place, what was expected and what came.
#[derive(Clone, Debug)]
pub struct Failure {
    rulebook: Rulebook,
    id: String,
    verdict: Verdict,
    reason: String,
    findings: Vec<Finding>,
}

impl Rulebook {
    /// One trial for each scenario of the target's services, by id: what a test runner such as `libtest-mimic`
    /// plays in its own order, on its own threads.
    ///
    /// ```
    /// use conformant::{Reference, Rulebook, Target};
    /// let trials = Rulebook::embedded()?.trials(&Target::from(Reference::new()))?;
    /// let trial = trials.iter().find(|trial| trial.id() == "flow/read-flows/happy");
    /// let played = trial.ok_or("no such trial")?.run()?;
    /// assert!(played.not_applicable().is_none() && played.warnings().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Machine`] where the target cannot be opened.
    pub fn trials(&self, target: &Target) -> Result<Vec<Trial>, Error> {
        let planned = plan::plan(&self.inner, &target.selection(&[]), None);
        let interrupted = Arc::new(AtomicBool::new(false));
        let seed = target.seed(None);
        let sessions = target.sessions(seed, target.jobs(), LONGEST, &interrupted)?;
        let stories = Singly::new(&self.inner, planned, sessions, seed, interrupted);
        let suite = Arc::new(Suite {
            rulebook: self.clone(),
            stories,
            redactor: target.redactor(),
        });
        let trial = |(index, id): (usize, &str)| Trial {
            suite: Arc::clone(&suite),
            index,
            id: id.to_owned(),
        };
        Ok(suite.stories.ids().enumerate().map(trial).collect())
    }
}

impl Trial {
    /// The scenario's id, such as `flow/read-flows/happy`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Plays the scenario and has what was observed judged by every rule that applies.
    ///
    /// # Errors
    /// [`Failure`] where must-rules are broken, and where nothing could be concluded. A trial is played once:
    /// the second time it fails.
    pub fn run(&self) -> Result<Played, Failure> {
        let suite = &*self.suite;
        let Some(concluded) = suite.stories.play(self.index) else {
            return Err(self.failure(Verdict::Error, "it was played before", Vec::new()));
        };
        if let Some(service) = suite.stories.denied_by() {
            let why = format!("{service} answers nothing but 401 and 403");
            return Err(self.failure(Verdict::Inconclusive, &why, Vec::new()));
        }
        let mut told = RunRecord {
            findings: concluded.judgement.findings,
            ..RunRecord::default()
        };
        redact_record(&mut told, &suite.redactor);
        let reason = suite.redactor.redact(&concluded.result.reason);
        let is_broken = told.findings.iter().any(|f| f.level == Level::Must);
        let verdict = concluded.result.verdict;
        let has_ended_well = matches!(verdict, Verdict::Pass | Verdict::NotApplicable);
        if is_broken || !has_ended_well {
            return Err(self.failure(verdict, &reason, told.findings));
        }
        Ok(Played {
            why_not: (verdict == Verdict::NotApplicable).then(|| reason.into_owned()),
            warnings: told.findings,
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
    /// Why the scenario does not apply to the target, where it does not: a hook is missing, a service is not
    /// targeted. Nothing was judged then, and nothing passed.
    pub fn not_applicable(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// Findings that fail nothing: of rules of level *should*.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

impl Failure {
    /// [`Verdict::Fail`] where must-rules are broken, otherwise why nothing was concluded:
    /// [`Verdict::Inconclusive`] or [`Verdict::Error`].
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// What was found, by step.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = conformant_base::text::escape_line(&self.reason);
        writeln!(f, "{}: {} {reason}", self.id, self.verdict.word())?;
        for finding in &self.findings {
            tell(f, &self.rulebook.inner, finding)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
