//! A rule and a finding for tests.

use conformant_base::source::Source;
use conformant_record::{Finding, Level, RuleResult, Subject, Verdict};

/// A must-rule of the service that was judged once.
pub(crate) fn rule(id: &str, verdict: Verdict) -> RuleResult {
    RuleResult {
        id: id.to_owned(),
        level: Level::Must,
        source: Source {
            document: "D3".parse().expect("it is a document"),
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

pub(crate) fn finding(rule: &str) -> Finding {
    Finding {
        rule: rule.to_owned(),
        ..Finding::default()
    }
}

pub(crate) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
