//! `verify`: judges the evidence of a statement again, and compares digests and verdicts.
//!
//! Exit 1 if the evidence was altered, a verdict differs, or a required rule did not pass. Exit 2 if an input cannot be
//! read, or belongs to another rulebook or run. Signatures are not checked.

use super::args::VerifyStatementArgs;
use super::claims::read_waivers;
use super::stored::evidence;
use super::{Done, Exit, Failure, hint, load, note, print, today};
use conformant_base::files::{self, STORED_BYTES_MAX};
use conformant_base::text;
use conformant_engine::evidence_file::{self, Head, Reader};
use conformant_record::waivers::Waivers;
use conformant_record::{EvidenceStamp, Level};
use conformant_report::statement::{Outcome, Statement, Tests, target_digest};
use conformant_rulebook::Rulebook;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

/// Differences that are printed.
const SHOWN_MAX: usize = 20;

pub(super) fn verify(args: &VerifyStatementArgs) -> Done {
    let named = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("{}: {why}", args.statement.display()))
    };
    let bytes = files::read(&args.statement, STORED_BYTES_MAX)?;
    let statement = Statement::read(&bytes).map_err(|why| named(&why))?;
    // The digest comes first, because it is read much faster than a rulebook.
    let stated = statement.evidence().map_err(|why| named(&why))?;
    let found = sha256(&args.evidence)?;
    if stated != found {
        check_run(&statement, &args.evidence)?;
        return Ok(failed(&[format!(
            "{}: the evidence was altered: expected sha256 {stated}, got {found}",
            args.evidence.display()
        )]));
    }
    let rulebook = load(&args.specs)?;
    let stated = statement.rulebook().map_err(|why| named(&why))?;
    if stated != rulebook.digest() {
        return Err(named(&format!(
            "a statement about another rulebook: expected the digest {}, got {stated}; name the folder of that rulebook \
             with --specs DIR, or use the version of conformant that wrote the statement",
            rulebook.digest()
        )));
    }
    let required = required(&args.require, &rulebook)?;
    let Some(mut evidence) = evidence(&args.evidence)? else {
        let path = args.evidence.display();
        return Err(Failure::Usage(format!(
            "{path}: expected a file of `run --keep-evidence`"
        )));
    };
    let problems = differences(&statement, &mut evidence, args, (&rulebook, &required))?;
    if !problems.is_empty() {
        return Ok(failed(&problems));
    }
    let tests = statement.tests();
    print(&format!(
        "verified: {} · {} rules passed, {} with warnings, {} failed · target: {}\nevidence sha256 {found}\nrulebook sha256 {}\n",
        statement.outcome().word(),
        tests.passed.len(),
        tests.warned.len(),
        tests.failed.len(),
        text::escape_line(&conformant_report::shown_target(
            &evidence.head.targets,
            true
        )),
        rulebook.digest()
    ));
    if statement.outcome() == Outcome::Failed {
        note(&format!(
            "{}: the statement is true, and it says that the run failed: the result is FAILED, not a pass",
            args.statement.display()
        ));
    }
    Ok(Exit::Conformant)
}

/// Judges unaltered evidence, and compares the result with the statement.
fn differences(
    statement: &Statement,
    evidence: &mut Reader<BufReader<File>>,
    args: &VerifyStatementArgs,
    (rulebook, required): (&Rulebook, &BTreeSet<String>),
) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    let target = target_digest(&evidence.head.targets);
    if statement.target().ok() != Some(target.as_str()) {
        problems.push(format!(
            "another target: expected the digest {}, got {target} ({})",
            statement.target().unwrap_or_default(),
            targets(&evidence.head)
        ));
    }
    let waivers = match &args.waivers {
        Some(path) => read_waivers(path)?,
        None => Vec::new(),
    };
    super::baseline::check_ids(rulebook, &waivers)?;
    let day = day_of(evidence.head.begun.as_deref());
    let evaluated = evidence_file::evaluate(evidence, rulebook);
    if let Some(origin) = evaluated.elsewhere {
        problems.push(format!(
            "another target: the evidence has requests to {origin}, which is not in its header ({})",
            targets(&evidence.head)
        ));
    }
    let mut record = evaluated.record;
    record.evidence = Some(EvidenceStamp {
        run: evidence.run.clone(),
        ..EvidenceStamp::default()
    });
    problems.extend(statement.contradictions(&Statement::of(&record)));
    Waivers::on(&waivers, day).apply(&mut record, false);
    let (stated, found) = (statement.tests(), Tests::of(&record));
    for rule in stated.differing(&found) {
        let (expected, got) = (stated.verdict(&rule), found.verdict(&rule));
        let hint = match (expected, got) {
            ("warned", "failed") if args.waivers.is_none() => {
                "; if the run accepted it, give its --waivers FILE"
            }
            _ => "",
        };
        problems.push(format!(
            "{rule}: expected {expected} (statement), got {got} (evidence){hint}"
        ));
    }
    if statement.exit() == Some(0) && (!found.failed.is_empty() || !record.complete) {
        let why = if record.complete {
            "a broken must-rule"
        } else {
            "a run that ended early"
        };
        problems.push(format!(
            "exit: expected 0 (statement), got {why} (evidence)"
        ));
    }
    let outcome = found.outcome(record.complete).of_exit(statement.exit());
    if statement.outcome() != outcome {
        let (expected, got) = (statement.outcome().word(), outcome.word());
        problems.push(format!(
            "result: expected {expected} (statement), got {got} (evidence)"
        ));
    }
    for rule in required {
        // A pass that the statement does not contain was withdrawn by the run.
        if !stated.passed.contains(rule) {
            let got = stated.verdict(rule);
            problems.push(format!("{rule}: expected passed (--require), got {got}"));
        }
    }
    Ok(problems)
}

fn failed(problems: &[String]) -> Exit {
    for problem in problems.iter().take(SHOWN_MAX) {
        note(problem);
    }
    if problems.len() > SHOWN_MAX {
        note(&format!("and {} more", problems.len() - SHOWN_MAX));
    }
    note("not verified");
    Exit::Failed
}

/// The rules that patterns select: the rule of that id, or all must-rules that match.
fn required(patterns: &[String], rulebook: &Rulebook) -> Result<BTreeSet<String>, Failure> {
    let mut required = BTreeSet::new();
    for pattern in patterns {
        let is_selected = |id: &str, level: Level| {
            id == pattern || (level == Level::Must && text::glob(pattern, id))
        };
        let rules = rulebook.rules.values();
        let selected = rules.filter(|rule| is_selected(&rule.id, rule.level));
        let selected: BTreeSet<String> = selected.map(|rule| rule.id.clone()).collect();
        if selected.is_empty() {
            let known: Vec<&str> = rulebook.rules.keys().map(String::as_str).collect();
            let hint = hint(pattern, &known);
            return Err(Failure::Usage(format!(
                "--require {pattern}: no rule has this id, and no must-rule matches it{hint}"
            )));
        }
        required.extend(selected);
    }
    Ok(required)
}

/// Rejects intact evidence of another run. A damaged file counts as altered.
fn check_run(statement: &Statement, path: &Path) -> Result<(), Failure> {
    let Ok(Some(mut evidence)) = evidence(path) else {
        return Ok(());
    };
    evidence.by_ref().for_each(drop);
    if evidence.cut.is_some() {
        return Ok(());
    }
    match statement.run() {
        Some(stated) if stated != evidence.run => Err(Failure::Usage(format!(
            "{}: the evidence of another run: expected a run with the digest {stated}, got {} ({})",
            path.display(),
            evidence.run,
            targets(&evidence.head)
        ))),
        _ => Ok(()),
    }
}

/// The day of a run, on which its waivers were valid or not. A run against the reference has none: it is today.
fn day_of(begun: Option<&str>) -> jiff::civil::Date {
    let begun = begun.and_then(|time| time.parse::<jiff::Timestamp>().ok());
    begun.map_or_else(today, |begun| {
        begun.to_zoned(jiff::tz::TimeZone::UTC).date()
    })
}

/// What identifies a run for people.
fn targets(head: &Head) -> String {
    let targets = head.targets.iter();
    let targets: Vec<String> = targets
        .map(|(service, url)| format!("{service}={url}"))
        .collect();
    let begun = head.begun.as_deref().map(|time| format!(", begun {time}"));
    let begun = begun.unwrap_or_default();
    format!("seed {}{begun}, {}", head.seed, targets.join(" "))
}

pub(super) fn stamp(path: &Path) -> Result<EvidenceStamp, Failure> {
    let name = path.file_name().unwrap_or_default();
    let evidence = evidence(path)?;
    Ok(EvidenceStamp {
        name: name.to_string_lossy().into_owned(),
        sha256: sha256(path)?,
        run: evidence.map(|evidence| evidence.run).unwrap_or_default(),
    })
}

fn sha256(path: &Path) -> Result<String, Failure> {
    let mut file = files::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut piece).map_err(|why| {
            Failure::Usage(format!("{} could not be read: {why}", path.display()))
        })?;
        if read == 0 {
            return Ok(text::hex(digest.finalize()));
        }
        digest.update(&piece[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waivers_are_judged_on_the_day_of_the_run() {
        let day = jiff::civil::date(2026, 1, 31);
        assert_eq!(day_of(Some("2026-01-31T23:59:59Z")), day);
        assert_ne!(day_of(None), day);
    }
}
