//! A rule and a finding for tests.

use crate::{Finding, Level, RuleResult, Subject, Verdict};
use conformant_base::source::Source;

/// A must-rule of the service that was judged once.
pub(super) fn rule(id: &str, verdict: Verdict) -> RuleResult {
    RuleResult {
        id: id.to_owned(),
        level: Level::Must,
        source: Source {
            document: "D3".parse().unwrap(),
            section: String::new(),
            lines: vec![1],
        },
        verdict,
        judged: 1,
        findings: usize::from(verdict == Verdict::Fail),
        reason: String::new(),
        subject: Subject::Service,
        masked_by: None,
        says: format!("{id} holds."),
        basis: None,
        needs: Vec::new(),
    }
}

pub(super) fn finding(rule: &str) -> Finding {
    Finding {
        rule: rule.to_owned(),
        ..Finding::default()
    }
}

pub(super) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
