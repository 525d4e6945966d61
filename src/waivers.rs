//! Waivers: failures that an adopter accepts, each with a reason and an expiry.
//!
//! A waiver that no longer waives anything, or whose day has passed, fails the run: an exception
//! must not outlive its reason.

use crate::text::glob;
use crate::verdict::{RuleCounts, RunRecord, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;

/// A file of waivers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaiverFile {
    /// The waivers.
    pub waivers: Vec<Waiver>,
}

/// One accepted failure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// Rule id; `*` stands for any text.
    pub rule: String,
    /// Only findings at this JSON Pointer; left out: at any.
    pub pointer: Option<String>,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it is accepted, `YYYY-MM-DD`.
    #[schemars(with = "String")]
    pub expires: jiff::civil::Date,
}

/// Applies waivers to a finished record; returns what is wrong with the waivers themselves.
pub fn apply(record: &mut RunRecord, waivers: &[Waiver], today: jiff::civil::Date) -> Vec<String> {
    let mut used = vec![false; waivers.len()];
    let mut problems = Vec::new();
    let mut waived = Vec::new();
    record.findings.retain(|finding| {
        let by = waivers.iter().position(|w| {
            w.expires >= today
                && glob(&w.rule, &finding.rule)
                && w.pointer.as_ref().is_none_or(|p| *p == finding.pointer)
        });
        if let Some(index) = by {
            used[index] = true;
            waived.push(finding.rule.clone());
        }
        by.is_none()
    });
    for rule in &mut record.rules {
        let accepted = waived.iter().filter(|id| **id == rule.id).count();
        rule.findings -= accepted;
        if accepted > 0 && rule.findings == 0 {
            rule.verdict = Verdict::Waived;
            shift(&mut record.summary.rules);
        }
    }
    for (waiver, used) in waivers.iter().zip(used) {
        if waiver.expires < today {
            problems.push(format!(
                "the waiver of {} expired on {}: {}",
                waiver.rule, waiver.expires, waiver.reason
            ));
        } else if !used {
            problems.push(format!(
                "the waiver of {} waives nothing any more: remove it",
                waiver.rule
            ));
        }
    }
    problems
}

fn shift(counts: &mut RuleCounts) {
    counts.fail -= 1;
    counts.waived += 1;
}
