//! Claims: which services and optional features an implementation has.
//!
//! - A claimed service is judged if each of its must-rules is decided, apart from rules that need an optional feature.
//! - A claimed feature is judged if no must-rule and no scenario lacks it.
//! - What is not claimed is never a failure.

use crate::{Level, RuleResult, RunRecord, Subject, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Claims every optional feature of a service.
pub const ALL: &str = "all";
/// How a line about a claim that was not judged begins.
pub const UNJUDGED_CLAIM: &str = "claimed, but not judged: ";
/// The need of rules that only `conformant check` judges.
const CHECK: &str = "check";
/// Rules that a message names.
const SHOWN_MAX: usize = 3;

/// A file of claims.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimsFile {
    /// The name of the implementation, with its version.
    pub implementation: String,
    /// Optional features by claimed service: `hook NAME`, `key targets.SERVICE.KEY`, `callbacks`, or `all`.
    pub services: BTreeMap<String, Vec<String>>,
    /// A file of waivers, relative to this file.
    pub waivers: Option<PathBuf>,
}

/// What an implementation claims, and which claims a run did not judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimsResult {
    /// The name of the implementation.
    pub implementation: String,
    /// Optional features by claimed service.
    pub services: BTreeMap<String, Vec<String>>,
    /// Claims that were not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<UnjudgedClaim>,
}

/// A claim that a run did not judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnjudgedClaim {
    /// The claimed service.
    pub service: String,
    /// The optional feature; empty for the service itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feature: String,
    /// Why it was not judged.
    pub reason: String,
    /// Rules and scenarios that are not decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
}

impl UnjudgedClaim {
    /// One line for people.
    pub fn says(&self) -> String {
        let claim = match self.feature.as_str() {
            "" => self.service.clone(),
            feature => format!("{}: {feature}", self.service),
        };
        let shown: Vec<&str> = self
            .ids
            .iter()
            .take(SHOWN_MAX)
            .map(String::as_str)
            .collect();
        let more = match self.ids.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let ids = match shown.is_empty() {
            true => String::new(),
            false => format!(" ({}{more})", shown.join(", ")),
        };
        format!(
            "{UNJUDGED_CLAIM}{claim}: {reason}{ids}",
            reason = self.reason
        )
    }
}

impl ClaimsFile {
    /// Compares the claims with a record. `need_of` returns the optional feature that a scenario's reason names.
    pub fn judge(
        &self,
        record: &RunRecord,
        need_of: impl Fn(&str) -> Option<String>,
    ) -> ClaimsResult {
        let mut unjudged = Vec::new();
        for service in self.services.keys() {
            let of_service = |id: &str| id.split('/').next() == Some(service);
            let rules: Vec<_> = record
                .rules
                .iter()
                .filter(|rule| of_service(&rule.id) && rule.subject == Subject::Service)
                .collect();
            if rules.is_empty() {
                unjudged.push(UnjudgedClaim {
                    service: service.clone(),
                    reason: "the run did not include this service".to_owned(),
                    ..UnjudgedClaim::default()
                });
            }
            let mut gaps = Gaps::default();
            for rule in rules.into_iter().filter(|rule| is_gap(rule)) {
                gaps.add(self, service, &rule.id, &rule.reason, &rule.needs);
            }
            let scenarios = record.scenarios.iter();
            let skipped = scenarios
                .filter(|one| of_service(&one.id) && one.verdict == Verdict::NotApplicable);
            for scenario in skipped {
                if let Some(need) = need_of(&scenario.reason) {
                    gaps.add(self, service, &scenario.id, &scenario.reason, &[need]);
                }
            }
            unjudged.extend(gaps.claims(service));
        }
        ClaimsResult {
            implementation: self.implementation.clone(),
            services: self.services.clone(),
            unjudged,
        }
    }

    /// Whether the implementation claims what a rule of `service` needs.
    fn claims(&self, service: &str, need: &str) -> bool {
        if let Some(other) = need.strip_prefix("service ") {
            return self.services.contains_key(other);
        }
        let features = self.services.get(service).into_iter().flatten();
        let mut features = features.map(String::as_str);
        features.any(|feature| feature == need || feature == ALL)
    }
}

/// Whether a must-rule that a run can judge is not decided.
fn is_gap(rule: &RuleResult) -> bool {
    let is_judged = matches!(
        rule.verdict,
        Verdict::Pass | Verdict::Fail | Verdict::Waived
    );
    let is_for_files = rule.needs.iter().any(|need| need == CHECK);
    rule.level == Level::Must && !is_judged && !is_for_files && rule.masked_by.is_none()
}

/// Ids that are not decided, by feature and reason.
#[derive(Default)]
struct Gaps(BTreeMap<(String, String), BTreeSet<String>>);

impl Gaps {
    fn add(
        &mut self,
        claims: &ClaimsFile,
        service: &str,
        id: &str,
        reason: &str,
        needs: &[String],
    ) {
        if needs.iter().all(|need| claims.claims(service, need)) {
            let feature = needs.first().cloned().unwrap_or_default();
            let ids = self.0.entry((feature, reason.to_owned())).or_default();
            ids.insert(id.to_owned());
        }
    }

    fn claims(self, service: &str) -> impl Iterator<Item = UnjudgedClaim> {
        let gaps = self.0.into_iter();
        gaps.map(move |((feature, reason), ids)| UnjudgedClaim {
            service: service.to_owned(),
            feature,
            reason,
            ids: ids.into_iter().collect(),
        })
    }
}
