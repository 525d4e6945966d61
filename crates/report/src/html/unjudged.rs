//! Waived rules, and rules not judged with what is missing.

use super::words::thousands;
use crate::cards;
use crate::view;
use conformant_record::{RunRecord, Verdict};
use minijinja::{Value, context};

/// Ids per reason.
const GROUPS_MAX: usize = 40;

pub(super) fn waivers(record: &RunRecord) -> Vec<Value> {
    let waivers = record.waivers.iter().map(|waiver| {
        let rule = record.rules.iter().find(|rule| rule.id == waiver.rule);
        let at = if waiver.pointer.is_empty() {
            String::new()
        } else {
            format!(" at {}", waiver.pointer)
        };
        context! {
            says => rule.map_or("", |rule| rule.says.as_str()),
            rule => format!("{}{at}", waiver.rule),
            reason => waiver.reason.as_str(),
            expires => waiver.expires.as_str(),
            findings => waiver.findings,
        }
    });
    waivers.collect()
}

pub(super) fn unjudged_lead(unjudged: usize) -> String {
    match unjudged {
        0 => "Every selected rule is decided.".to_owned(),
        1 => "1 rule is not decided and does not count as passed.".to_owned(),
        n => format!(
            "{} rules are not decided and do not count as passed.",
            thousands(n)
        ),
    }
}

pub(super) fn needs(record: &RunRecord) -> Vec<Value> {
    let groups = cards::needs(record);
    let shown = groups.iter().take(GROUPS_MAX).map(|(need, ids)| {
        let advice = cards::advice(need);
        let mut letters = advice.chars();
        let first = letters
            .next()
            .map(|c| c.to_uppercase().to_string())
            .unwrap_or_default();
        let scenarios = record.scenarios.iter().filter(|s| {
            s.verdict == Verdict::NotApplicable
                && need
                    .split_once(' ')
                    .is_some_and(|(_, name)| s.reason.contains(name))
        });
        let scenarios = scenarios.count();
        let says =
            (scenarios > 0).then(|| format!("{} would run.", view::count(scenarios, "scenario")));
        context! {
            advice => format!("{first}{}", letters.as_str()), says,
            count => thousands(ids.len()),
            ids => cards::group_by_folder(ids, 4),
        }
    });
    shown.collect()
}
