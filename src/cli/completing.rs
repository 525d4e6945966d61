//! Shell completion of ids of the embedded rulebook: rules, scenarios, faults, variations, types and others.

use super::glossary;
use clap_complete::engine::CompletionCandidate;
use conformant_engine::plan;
use conformant_reference::{Fault, Variant};
use conformant_rulebook::Rulebook;
use std::ffi::OsStr;

/// Set by the completion scripts, which run this program for candidates.
pub(super) const VARIABLE: &str = "CONFORMANT_COMPLETE";
/// Shells display no more.
const CANDIDATES_MAX: usize = 400;

fn beginning(current: &OsStr, all: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = all.filter(|id| id.starts_with(&*current));
    fitting
        .take(CANDIDATES_MAX)
        .map(CompletionCandidate::new)
        .collect()
}

/// The embedded rulebook; without it there are no candidates.
fn rulebook() -> Option<Rulebook> {
    conformant_judge::load::embedded_unchecked(true).ok()
}

/// Everything that `explain` accepts.
pub(super) fn explainable(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(rulebook) = rulebook() else {
        return Vec::new();
    };
    let scenarios = plan::all(&rulebook)
        .into_iter()
        .map(|planned| planned.scenario.id);
    let ids = rulebook
        .rules
        .keys()
        .chain(rulebook.open_points.keys())
        .cloned();
    let switches = Fault::ALL
        .iter()
        .map(|f| f.id())
        .chain(Variant::ALL.iter().map(|v| v.id()));
    let names = glossary::names(&rulebook).into_iter();
    let all = ids
        .chain(scenarios)
        .chain(switches.map(str::to_owned))
        .chain(names);
    beginning(current, all)
}

/// Scenarios, for `run --filter`.
pub(super) fn scenarios(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(rulebook) = rulebook() else {
        return Vec::new();
    };
    beginning(
        current,
        plan::all(&rulebook)
            .into_iter()
            .map(|planned| planned.scenario.id),
    )
}

/// Types and event types, for `check --as` and `fixtures generate --kind`.
pub(super) fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(rulebook) = rulebook() else {
        return Vec::new();
    };
    let plain = ["events", "har", "qr", "token"]
        .map(str::to_owned)
        .into_iter();
    beginning(
        current,
        plain
            .chain(rulebook.kinds.into_keys())
            .chain(rulebook.event_types.into_keys()),
    )
}

pub(super) fn faults(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(
        current,
        Fault::ALL.iter().map(|fault| fault.id().to_owned()),
    )
}

pub(super) fn variants(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(
        current,
        Variant::ALL.iter().map(|variant| variant.id().to_owned()),
    )
}
