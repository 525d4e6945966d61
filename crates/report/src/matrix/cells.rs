//! Cells: counts of rules and scenarios as a state and a few words.

use super::{Cell, Column, State, part};
use crate::statement::{Outcome, Tests};
use crate::{invocation, view};
use conformant_record::{Level, RuleResult, RunRecord, Subject, Verdict};
use std::collections::BTreeSet;

/// Characters of a digest that are shown.
const DIGEST_SHOWN: usize = 12;

/// The head of a column.
pub(super) fn column(name: &str, record: &RunRecord) -> Column {
    let claimed = record.claims.as_ref();
    let name = claimed.map_or(name, |claims| claims.implementation.as_str());
    let tests = Tests::of(record);
    let (state, verdict) = match (tests.outcome(record.complete), tests.failed.len()) {
        _ if !record.complete => (State::Fail, "run not complete".to_owned()),
        (_, failed) if failed > 0 => (
            State::Fail,
            format!("{} broken", view::count(failed, "must-rule")),
        ),
        (Outcome::Failed, _) => (State::NotJudged, "not judged".to_owned()),
        (Outcome::Warned, _) => (
            State::Warn,
            format!("passed, {}", view::count(tests.warned.len(), "warning")),
        ),
        (Outcome::Passed, _) => (State::Pass, "passed".to_owned()),
    };
    let mut facts = Vec::new();
    let target = invocation::target_of(record);
    facts.extend((!target.is_empty()).then(|| format!("target {target}")));
    let limits = invocation::limits(record);
    facts.extend((!limits.is_empty()).then(|| limits.join(" ")));
    facts.extend(record.wall.as_ref().map(|wall| wall.started.clone()));
    facts.push(format!("{} {}", record.tool.name, record.tool.version));
    let digest: String = record.rulebook.digest.chars().take(DIGEST_SHOWN).collect();
    facts.push(format!("rulebook {digest}"));
    if !record.waivers.is_empty() {
        facts.push(view::count(record.waivers.len(), "waiver"));
    }
    let unjudged = claimed.map_or(0, |claims| claims.unjudged.len());
    if unjudged > 0 {
        facts.push(format!("{} not judged", view::count(unjudged, "claim")));
    }
    Column {
        name: name.to_owned(),
        verdict,
        state,
        facts,
    }
}

#[derive(Clone, Copy, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    waived: usize,
    all: usize,
}

impl Counts {
    fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            counts.all += 1;
            match verdict {
                Verdict::Pass => counts.passed += 1,
                Verdict::Fail => counts.failed += 1,
                Verdict::Waived => counts.waived += 1,
                Verdict::Open
                | Verdict::Inconclusive
                | Verdict::NotApplicable
                | Verdict::Error
                | Verdict::NotJudged => {}
            }
        }
        counts
    }

    fn cell(self, what: &str, is_claimed: Option<bool>) -> Cell {
        let Self {
            passed,
            failed,
            waived,
            all,
        } = self;
        let held = passed + waived;
        let (state, mut text) = if failed > 0 {
            let judged = view::count(failed + held, what);
            (State::Fail, format!("fails {failed} of {judged} judged"))
        } else if held == 0 {
            match is_claimed {
                Some(true) => (State::Fail, "claimed, not judged".to_owned()),
                Some(false) => (State::NotJudged, "not claimed".to_owned()),
                None => (State::NotJudged, "not judged".to_owned()),
            }
        } else if held < all {
            let all = view::count(all, what);
            (State::Warn, format!("passes {held} of {all}"))
        } else {
            (State::Pass, format!("passes {}", view::count(all, what)))
        };
        if waived > 0 {
            text += &format!(", {waived} waived");
        }
        Cell { state, text }
    }
}

/// The must-rules of a service that a run can judge.
fn rules<'a>(record: &'a RunRecord, service: &'a str) -> impl Iterator<Item = &'a RuleResult> {
    record.rules.iter().filter(move |rule| {
        let is_for_files = rule.needs.iter().any(|need| need == "check");
        part(&rule.id, 0) == service
            && rule.level == Level::Must
            && rule.subject == Subject::Service
            && !is_for_files
    })
}

pub(super) fn verdict(verdict: Verdict) -> Cell {
    let state = match verdict {
        Verdict::Pass => State::Pass,
        Verdict::Fail | Verdict::Error => State::Fail,
        Verdict::Waived | Verdict::Open => State::Warn,
        Verdict::Inconclusive | Verdict::NotApplicable | Verdict::NotJudged => State::NotJudged,
    };
    Cell {
        state,
        text: verdict.word().to_owned(),
    }
}

/// Whether a service is claimed; none without claims.
fn is_claimed(record: &RunRecord, service: &str) -> Option<bool> {
    let claims = record.claims.as_ref()?;
    Some(claims.services.contains_key(service))
}

pub(super) fn service(record: &RunRecord, service: &str) -> Cell {
    let verdicts = rules(record, service).map(|rule| rule.verdict);
    Counts::of(verdicts).cell("rule", is_claimed(record, service))
}

/// The rules `SERVICE/GROUP` and below.
pub(super) fn group(record: &RunRecord, service: &str, group: &str) -> Cell {
    let verdicts = rules(record, service)
        .filter(|rule| part(&rule.id, 1) == group)
        .map(|rule| rule.verdict);
    Counts::of(verdicts).cell("rule", None)
}

/// The scenarios that need an optional feature.
pub(super) fn feature(
    record: &RunRecord,
    (service, feature): (&str, &str),
    scenarios: &[String],
) -> Cell {
    let needing: BTreeSet<&str> = scenarios.iter().map(String::as_str).collect();
    let results = record.scenarios.iter();
    let results = results.filter(|one| needing.contains(one.id.as_str()));
    let is_claimed = record.claims.as_ref().map(|claims| {
        let mut claimed = claims.services.get(service).into_iter().flatten();
        claimed.any(|one| one == feature || one == conformant_record::claims::ALL)
    });
    Counts::of(results.map(|one| one.verdict)).cell("scenario", is_claimed)
}
