//! Tests of `archive`.

use conformant_record::{ArchiveCounts, ArchiveSums};

/// Rows of each kind that are counted on their own.
const ROWS_MAX: usize = 10_000;

fn part(day: &str) -> ArchiveCounts {
    let mut sums = ArchiveSums::default();
    sums.add_documents("events/MessageSent/4", 10, 1);
    sums.add_documents("flow/execution", 2, 0);
    sums.add_finding("events/MessageSent/4", "events/a", day);
    sums.add_schema_id(7, 12);
    sums.into()
}

#[test]
fn parts_are_summed_by_kind_version_rule_and_day() {
    let parts = [part("2026-01-01"), part("2026-01-01"), part("2026-01-02")];
    let whole = ArchiveCounts::sum(parts.iter()).unwrap();
    let documents: Vec<_> = whole
        .documents
        .iter()
        .map(|row| (&*row.kind, &*row.version, row.documents, row.rejected))
        .collect();
    assert_eq!(
        documents,
        [
            ("events/MessageSent", "4", 30, 3),
            ("flow/execution", "", 6, 0)
        ]
    );
    let days: Vec<_> = whole
        .findings
        .iter()
        .map(|row| (&*row.day, row.findings))
        .collect();
    assert_eq!(days, [("2026-01-01", 2), ("2026-01-02", 1)]);
    assert_eq!(whole.schema_ids, [(7, 36)].into());
    assert_eq!(ArchiveCounts::sum(std::iter::empty()), None);
}

#[test]
fn schema_ids_beyond_the_limit_are_counted_as_zero() {
    let mut sums = ArchiveSums::default();
    let ids = u32::try_from(ROWS_MAX).unwrap() + 5;
    (1..=ids).for_each(|id| sums.add_schema_id(id, 1));
    sums.add_schema_id(1, 1);
    let counts = ArchiveCounts::from(sums);
    assert_eq!(counts.schema_ids.len(), ROWS_MAX + 1);
    assert_eq!((counts.schema_ids[&0], counts.schema_ids[&1]), (5, 2));
}

#[test]
fn days_beyond_the_limit_are_counted_together() {
    let mut sums = ArchiveSums::default();
    for day in 0..ROWS_MAX + 5 {
        sums.add_finding("a/b", "a/b/c", &day.to_string());
    }
    let counts = ArchiveCounts::from(sums);
    assert_eq!(counts.findings.len(), ROWS_MAX + 1);
    assert_eq!(
        (&*counts.findings[0].day, counts.findings[0].findings),
        ("", 5)
    );
}
