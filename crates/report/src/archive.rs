//! Counts of an archive for people: documents by kind and version, findings by rule and by day.

use conformant_record::ArchiveCounts;
use std::collections::BTreeMap;

/// Findings of one rule in the documents of one kind and version.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RuleOfKind<'a> {
    pub(super) kind: &'a str,
    pub(super) version: &'a str,
    pub(super) rule: &'a str,
    pub(super) findings: usize,
    /// By day; an empty day stands for findings without one.
    pub(super) days: BTreeMap<&'a str, usize>,
}

impl RuleOfKind<'_> {
    /// `2026-01-30 to 2026-02-02`, one day, or nothing.
    pub(super) fn span(&self) -> String {
        let mut days = self.days.keys().filter(|day| !day.is_empty());
        match (days.next(), days.next_back()) {
            (None, _) => String::new(),
            (Some(day), None) => (*day).to_owned(),
            (Some(first), Some(last)) => format!("{first} to {last}"),
        }
    }
}

/// Findings by kind, version and rule; the most findings first.
pub(super) fn by_rule(archive: &ArchiveCounts) -> Vec<RuleOfKind<'_>> {
    let mut rules: BTreeMap<(&str, &str, &str), RuleOfKind> = BTreeMap::new();
    for row in &archive.findings {
        let (kind, version, rule) = (row.kind.as_str(), row.version.as_str(), row.rule.as_str());
        let known = rules
            .entry((kind, version, rule))
            .or_insert_with(|| RuleOfKind {
                kind,
                version,
                rule,
                ..RuleOfKind::default()
            });
        known.findings += row.findings;
        *known.days.entry(&row.day).or_default() += row.findings;
    }
    let mut rules: Vec<RuleOfKind> = rules.into_values().collect();
    rules.sort_by_key(|rule| usize::MAX - rule.findings);
    rules
}

/// Findings by day, in order; findings without a day are left out.
pub(super) fn by_day(archive: &ArchiveCounts) -> BTreeMap<&str, usize> {
    let mut days: BTreeMap<&str, usize> = BTreeMap::new();
    for row in archive.findings.iter().filter(|row| !row.day.is_empty()) {
        *days.entry(&row.day).or_default() += row.findings;
    }
    days
}

/// `events/MessageSent 2`, or the kind alone.
pub(super) fn name(kind: &str, version: &str) -> String {
    if version.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind} {version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::archive;

    #[test]
    fn findings_are_summed_by_rule_and_by_day() {
        let archive = archive();
        let rules = by_rule(&archive);
        let first = &rules[0];
        assert_eq!(
            (first.rule, first.findings),
            ("events/message-sent/body", 5)
        );
        assert_eq!(first.span(), "2026-01-30 to 2026-02-01");
        assert_eq!(rules[1].span(), "");
        let days: Vec<_> = by_day(&archive).into_iter().collect();
        assert_eq!(days, [("2026-01-30", 3), ("2026-02-01", 2)]);
    }
}
