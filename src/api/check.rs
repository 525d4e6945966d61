//! Offline judging of documents.

use super::error::Error;
use super::rulebook::Rulebook;
use super::write_finding;
use conformant_base::clock;
use conformant_check::{Checker, Kind, KindError, Surroundings};
use conformant_record::{Finding, Level, Verdict};
use std::fmt;

/// Result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    rulebook: Rulebook,
    documents: usize,
    is_judged: bool,
    findings: Vec<Finding>,
}

/// Judges bytes as documents of a type, like `conformant check --as KIND`.
///
/// `kind` is one of [`Rulebook::kinds`], an event type (`com.svc.comms-api.message.sent`) for its present
/// schema, `events` for captured events with their type, `har`, `token` or `qr`. JSON may be one document or
/// one a line; `auth` also responds in XML. There is no configuration, so that rules about one's own application
/// do not apply.
///
/// ```
/// use conformant::{Rulebook, check, fixtures};
/// let rulebook = Rulebook::embedded()?;
/// for fixture in fixtures(&rulebook, "flow/execution", 7)? {
///     let checked = check(&rulebook, "flow/execution", fixture.text.as_bytes())?;
///     // A finding of level *should* leaves a document conformant.
///     assert_eq!(checked.findings().is_empty(), fixture.breaks.is_none(), "{checked}");
/// }
/// # Ok::<(), conformant::Error>(())
/// ```
///
/// # Errors
/// [`Error::Unknown`] for an unknown type, [`Error::Unusable`] for an event type without a documented payload,
/// for one document of more than 64 MiB, and for one that cannot be read or has another format.
pub fn check(rulebook: &Rulebook, kind: &str, bytes: &[u8]) -> Result<Checked, Error> {
    let known = Kind::parse(&rulebook.inner, kind).map_err(|why| match why {
        KindError::NotShown(_) => Error::Unusable {
            what: kind.to_owned(),
            why: why.to_string(),
        },
        KindError::Unknown { name, help } => Error::Unknown {
            what: "kind",
            name,
            help,
        },
    })?;
    let surroundings = Surroundings {
        now: Some(clock::now()),
        jobs: 1,
        ..Surroundings::default()
    };
    let mut checker = Checker::new(&rulebook.inner, known, surroundings);
    let mut source = bytes;
    let read = checker.file(kind, &mut source);
    read.map_err(|why| Error::Unusable {
        what: kind.to_owned(),
        why: why.to_string(),
    })?;
    let (record, counts) = checker.finish();
    let judged = [Verdict::Pass, Verdict::Fail];
    Ok(Checked {
        rulebook: rulebook.clone(),
        documents: counts.documents,
        is_judged: record.rules.iter().any(|r| judged.contains(&r.verdict)),
        findings: record.findings,
    })
}

impl Checked {
    /// The number of judged documents or exchanges.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// The findings, at most 10,000.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether something was judged and no must-rule is broken.
    pub fn is_conformant(&self) -> bool {
        let is_broken = self.findings.iter().any(|f| f.level == Level::Must);
        self.is_judged && !is_broken
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} documents judged", self.documents)?;
        for finding in &self.findings {
            write_finding(f, &self.rulebook.inner, finding)?;
        }
        Ok(())
    }
}
