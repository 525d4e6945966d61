//! The previous run, from its record in `reports/`: its failures, and its answers where behavior is unspecified.
//!
//! Reads one earlier run only; see `history` for more.

use super::{Failure, note};
use conformant_base::files::{self, FileError};
use conformant_base::text;
use conformant_engine::Settings;
use conformant_record::{RunRecord, Verdict};
use conformant_report::target_of;
use std::collections::BTreeSet;
use std::path::Path;

/// The record that `--rerun last-failed` reads.
const LAST_RUN: &str = "reports/run.json";

fn read() -> Result<Vec<u8>, FileError> {
    files::read(Path::new(LAST_RUN), files::STORED_BYTES_MAX)
}

/// The record of the last run; none where it is missing or unreadable.
pub(super) fn last() -> Option<RunRecord> {
    let bytes = read().ok()?;
    conformant_report::read(&bytes).ok()
}

/// Scenarios that did not pass in the last run. An error if it had targets, and this run has none for them.
pub(super) fn last_failed(settings: &Settings) -> Result<Vec<String>, Failure> {
    let failed = |e: &dyn std::fmt::Display| {
        Failure::Usage(format!(
            "--rerun last-failed reads {LAST_RUN}, which a run writes: {e}"
        ))
    };
    let bytes = read().map_err(|e| failed(&e))?;
    let record = conformant_report::read(&bytes).map_err(|e| failed(&e))?;
    let about = about(&record);
    let stood = |verdict: Verdict| {
        matches!(
            verdict,
            Verdict::Pass | Verdict::NotApplicable | Verdict::Waived
        )
    };
    let failed = record.scenarios.iter().filter(|s| !stood(s.verdict));
    let ids: Vec<String> = failed.map(|s| s.id.clone()).collect();
    let services: BTreeSet<&str> = ids.iter().filter_map(|id| id.split('/').next()).collect();
    let mut services: Vec<&str> = services.into_iter().collect();
    services.retain(|service| record.targets.contains_key(*service));
    let has_target = services
        .iter()
        .any(|service| settings.targets.contains_key(*service));
    if record.is_live() && !services.is_empty() && !has_target {
        return Err(Failure::Usage(format!(
            "--rerun last-failed: {LAST_RUN} is of a run against a target: configure it again: {}",
            targets_of(&record, &services)
        )));
    }
    if ids.is_empty() {
        return Err(Failure::Usage(format!(
            "--rerun last-failed: everything in {about} passed; a run whose --report does not name {LAST_RUN} leaves it \
             unchanged"
        )));
    }
    note(&format!(
        "--rerun last-failed: {} of {about}",
        text::count(ids.len(), "scenario")
    ));
    Ok(ids)
}

/// The options of the last run that name its target; if it read them elsewhere, those that name its services.
fn targets_of(record: &RunRecord, services: &[&str]) -> String {
    let words = text::shell_words(&record.invocation);
    let flags = conformant_report::flags(&words);
    let given = flags
        .iter()
        .filter(|(flag, _)| ["--target", "--hooks", "--config"].contains(flag))
        .flat_map(|(_, words)| words.iter().cloned());
    let mut given: Vec<String> = given.collect();
    if given.is_empty() {
        let of_service = |service: &&str| format!("{service}={}", record.targets[*service]);
        let targets = services.iter().map(of_service);
        given = targets
            .flat_map(|target| ["--target".to_owned(), target])
            .collect();
    }
    let words: Vec<_> = given.iter().map(|word| text::shell_quoted(word)).collect();
    words.join(" ")
}

/// The last run in words: `reports/run.json (of 2027-01-31T10:20:30Z, target http://h)`.
fn about(record: &RunRecord) -> String {
    let began = record.wall.as_ref().map(|wall| wall.started.as_str());
    let began = began.map_or_else(String::new, |began| format!("of {began}, "));
    format!("{LAST_RUN} ({began}target: {})", target_of(record))
}

/// Marks what passes now and failed before, with the same targets and rulebook, and the same seed where names
/// depend on it. It is not a plain pass: the target may be flaky or fixed.
pub(super) fn mark_flaky(last: &RunRecord, now: &mut RunRecord) {
    let same = last.targets == now.targets && (now.is_live() || last.seed == now.seed);
    if !same || last.rulebook != now.rulebook {
        return;
    }
    for scenario in &mut now.scenarios {
        let failed = |s: &conformant_record::ScenarioResult| {
            s.id == scenario.id && s.verdict == Verdict::Fail
        };
        if scenario.verdict != Verdict::Pass || !last.scenarios.iter().any(failed) {
            continue;
        }
        let earlier = last.findings.iter().filter(|f| f.scenario == scenario.id);
        scenario.failed_before = earlier
            .map(|f| format!("{}: {}", f.rule, f.message))
            .collect();
    }
}

/// Unspecified behaviors whose answer has changed since the last run of the same targets.
pub(super) fn answered_differently(last: &RunRecord, now: &RunRecord) -> Vec<String> {
    let selection_of = |record: &RunRecord| {
        record
            .scenarios
            .iter()
            .map(|s| s.id.clone())
            .collect::<Vec<_>>()
    };
    if last.targets != now.targets
        || !last.complete
        || !now.complete
        || selection_of(last) != selection_of(now)
    {
        return Vec::new();
    }
    let earlier = |id: &str| last.open_points.iter().find(|point| point.id == id);
    now.open_points
        .iter()
        .filter_map(|point| Some((point, earlier(&point.id)?)))
        .filter(|(point, earlier)| point.observed != earlier.observed)
        .map(|(point, earlier)| {
            let words = |observed: &[String]| {
                conformant_base::text::excerpt(&observed.join("; "), 200).into_owned()
            };
            format!(
                "notice: {} is answered differently than in {LAST_RUN}: {} before, {} now",
                point.id,
                words(&earlier.observed),
                words(&point.observed)
            )
        })
        .collect()
}
