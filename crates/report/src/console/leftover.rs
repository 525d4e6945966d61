//! Prints gaps of a run: rules not judged, undetected mutations, waivers, flaky scenarios.

use super::look::{Look, Paint, wrapped};
use super::summary::has_filter;
use crate::cards::{self, Card};
use crate::view;
use conformant_base::text;
use conformant_record::{NOT_EXERCISED, RunRecord, Verdict};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Places with undetected mutations.
const BLIND_MAX: usize = 8;
/// Reasons for rules not judged.
const REASONS_MAX: usize = 12;
/// Ids per reason.
const IDS_MAX: usize = 3;
/// Flaky scenarios.
const FLAKY_MAX: usize = 10;
/// Failures per flaky scenario.
const FLAKY_FINDINGS_MAX: usize = 3;

/// Rules that are not decided, by what is missing, most rules first.
pub(super) fn undecided(record: &RunRecord, cards: &[Card], look: &Look) -> String {
    let groups = by_defect(record, cards::needs(record), cards);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = "rules not decided\n".to_owned();
    let verdicts = record
        .rules
        .iter()
        .map(|rule| (rule.id.as_str(), rule.verdict));
    let verdicts: BTreeMap<&str, Verdict> = verdicts.collect();
    let shown = look.shown(groups.len(), REASONS_MAX);
    for (need, ids) in &groups[..shown] {
        let advice = match need.as_str() {
            NOT_EXERCISED if has_filter(record) => {
                "not exercised by the selected scenarios: run without --filter".to_owned()
            }
            NOT_EXERCISED => "not exercised by any scenario of this run".to_owned(),
            need => cards::advice(need),
        };
        let line = format!(
            "{}, {}: {} ({})",
            view::count(ids.len(), "rule"),
            verdicts_of(ids, &verdicts),
            advice,
            some_of(ids),
        );
        out += &wrapped(&line, "  ", 4, look.width);
    }
    if shown < groups.len() {
        let rules: usize = groups[shown..].iter().map(|(_, ids)| ids.len()).sum();
        out += &format!(
            "  … {} for {} more reasons\n",
            view::count(rules, "rule"),
            groups.len() - shown
        );
    }
    out
}

/// Scenarios that were skipped for want of something that no undecided rule names.
pub(super) fn skipped(record: &RunRecord, look: &Look) -> String {
    let needs = cards::needs(record);
    let is_named = |reason: &str| {
        needs.iter().any(|(need, _)| {
            let (_, name) = need.split_once(' ').unwrap_or(("", need));
            let is_callback = need == "callbacks" && reason.contains("callback");
            is_callback || reason.contains(name)
        })
    };
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for scenario in &record.scenarios {
        if scenario.verdict == Verdict::NotApplicable && !is_named(&scenario.reason) {
            let ids = groups.entry(&scenario.reason).or_default();
            ids.push(&scenario.id);
        }
    }
    let mut out = String::new();
    for (reason, ids) in groups {
        let advice = match reason.split_once(": ") {
            Some(("not configured", key)) => format!("configure {key}"),
            Some(("hook missing", hook)) => format!("configure the hook {hook}"),
            Some(_) | None => reason.to_owned(),
        };
        let count = view::count(ids.len(), "scenario");
        let line = format!("{count} not applicable: {advice} ({})", some_of(&ids));
        out += &wrapped(&line, "", 4, look.width);
    }
    out
}

/// The first ids, and the number of the others.
fn some_of(ids: &[&str]) -> String {
    let some = ids[..ids.len().min(IDS_MAX)].join(", ");
    match ids.len().saturating_sub(IDS_MAX) {
        0 => some,
        more => format!("{some}, {more} more"),
    }
}

/// `not applicable`, or `3 not judged, 1 inconclusive` where the verdicts differ.
fn verdicts_of(ids: &[&str], verdicts: &BTreeMap<&str, Verdict>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for verdict in ids.iter().filter_map(|id| verdicts.get(id)) {
        let word = match verdict.word() {
            "error" => "internal error".to_owned(),
            word => word.replace('-', " "),
        };
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let texts = counts.iter().map(|(word, count)| match counts.len() {
        1 => word.clone(),
        _ => format!("{count} {word}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The same groups, with one for each defect that is the reason of others.
fn by_defect<'a>(
    record: &RunRecord,
    groups: Vec<(String, Vec<&'a str>)>,
    cards: &[Card],
) -> Vec<(String, Vec<&'a str>)> {
    let mut folded: Vec<(String, Vec<&str>)> = Vec::new();
    for (need, ids) in groups {
        let cause = ids
            .first()
            .and_then(|rule| cards::cause_of(record, cards, rule, &need));
        let need = cause.map_or(need, |card| format!("fix defect {} first", card.number));
        for id in ids {
            let probable = cards::probable_causes(record, cards, id, &need);
            let need = stopped_by(&probable).unwrap_or_else(|| need.clone());
            match folded.iter_mut().find(|(known, _)| *known == need) {
                Some((_, known)) => known.push(id),
                None => folded.push((need, vec![id])),
            }
        }
    }
    folded.sort_by_key(|(_, ids)| Reverse(ids.len()));
    folded
}

/// Why a rule lacked evidence, by the numbers of defects.
fn stopped_by(defects: &[usize]) -> Option<String> {
    const NAMED_MAX: usize = 4;
    let named = defects.iter().take(NAMED_MAX).map(usize::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    let of = match defects.len() {
        0 => return None,
        1 => format!("defect {named}"),
        2..=NAMED_MAX => format!("defects {named}"),
        _ => format!("defects {named}, …"),
    };
    let them = if defects.len() == 1 { "it" } else { "these" };
    Some(format!(
        "probably because scenarios of {of} stopped or lacked data: fix {them} first"
    ))
}

/// Places with undetected mutations, and what would detect them.
pub(super) fn blind(record: &RunRecord, look: &Look) -> String {
    let sample = record
        .proof
        .as_ref()
        .and_then(|proof| proof.sample.as_ref());
    let Some(sample) = sample.filter(|sample| !sample.blind.is_empty()) else {
        return String::new();
    };
    let mut out = "undetected mutations\n".to_owned();
    let shown = look.shown(sample.blind.len(), BLIND_MAX);
    for blind in &sample.blind[..shown] {
        out += &wrapped(&view::blind(blind), "  ", 4, look.width);
    }
    let more = sample.blind.len() - shown + sample.more;
    if more > 0 {
        out += &format!("  … {} in the reports\n", view::count(more, "more place"));
    }
    out
}

pub(super) fn waived(record: &RunRecord, look: &Look) -> String {
    let groups = view::waived(record);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = "waived\n".to_owned();
    let shown = look.shown(groups.len(), REASONS_MAX);
    for (rule, findings) in groups.iter().take(shown) {
        let count = view::count(findings.len(), "finding");
        let line = format!("{rule}: {count}, {}", findings[0].waived);
        out += &wrapped(&line, "  ", 4, look.width);
    }
    if shown < groups.len() {
        out += &format!("  … {}\n", view::count(groups.len() - shown, "more rule"));
    }
    out
}

/// Scenarios that passed after failing in the same run.
pub(super) fn flaky(record: &RunRecord, look: &Look) -> String {
    let mut out = String::new();
    let flaky: Vec<_> = record
        .scenarios
        .iter()
        .filter(|s| !s.failed_before.is_empty())
        .collect();
    for result in flaky.iter().take(FLAKY_MAX) {
        let word = Paint::Yellow.on("FLAKY", look);
        out += &format!(
            "\n{word} {}: passes now but failed in an earlier identical run\n",
            result.id
        );
        for failure in result.failed_before.iter().take(FLAKY_FINDINGS_MAX) {
            out += &wrapped(&text::excerpt(failure, 200), "  ", 4, look.width);
        }
    }
    if flaky.len() > FLAKY_MAX {
        out += &format!("… {} more such scenarios\n", flaky.len() - FLAKY_MAX);
    }
    out
}
