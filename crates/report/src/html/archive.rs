//! Draws the counts of an archive: documents by kind and version, findings by rule and day.

use super::words::thousands;
use crate::archive::{by_day, by_rule, name};
use crate::view;
use conformant_record::ArchiveCounts;
use minijinja::{Value, context};

/// Rows of a table.
const ROWS_MAX: usize = 40;
/// Days drawn; the last ones.
const DAYS_MAX: usize = 120;
/// Size of a chart in drawing units.
const WIDTH: usize = 1_000;
const HEIGHT: usize = 100;

/// The counts, if the record has them.
pub(super) fn archive(archive: &ArchiveCounts) -> Value {
    let documents: usize = archive.documents.iter().map(|row| row.documents).sum();
    let rejected: usize = archive.documents.iter().map(|row| row.rejected).sum();
    let mut kinds: Vec<_> = archive.documents.iter().collect();
    kinds.sort_by_key(|row| usize::MAX - row.rejected);
    let kinds = kinds.into_iter().take(ROWS_MAX).map(|row| {
        context! {
            name => name(&row.kind, &row.version),
            documents => thousands(row.documents),
            rejected => thousands(row.rejected),
            width => (row.rejected * WIDTH).checked_div(row.documents).unwrap_or(0),
        }
    });
    let by_rule = by_rule(archive);
    let rules = by_rule.iter().take(ROWS_MAX).map(|row| {
        context! {
            rule => row.rule, name => name(row.kind, row.version),
            findings => thousands(row.findings), span => row.span(),
        }
    });
    let mut lead = format!(
        "{} of {} are rejected.",
        thousands(rejected),
        view::count(documents, "document")
    );
    if archive.unreadable > 0 {
        lead += &format!(
            " {} no readable document or event.",
            contain(archive.unreadable)
        );
    }
    context! {
        lead,
        kinds => kinds.collect::<Vec<_>>(),
        kinds_left => left(archive.documents.len(), "more kind"),
        rules => rules.collect::<Vec<_>>(),
        rules_left => left(by_rule.len(), "more rule"),
        days => days(archive),
    }
}

fn contain(lines: usize) -> String {
    match lines {
        1 => "1 line contains".to_owned(),
        n => format!("{} lines contain", thousands(n)),
    }
}

fn left(count: usize, noun: &str) -> Option<String> {
    let left = count.checked_sub(ROWS_MAX).filter(|left| *left > 0)?;
    Some(format!("{} in the JSON record", view::count(left, noun)))
}

/// A bar for each day with findings.
fn days(archive: &ArchiveCounts) -> Option<Value> {
    let all: Vec<(&str, usize)> = by_day(archive).into_iter().collect();
    let shown = &all[all.len().saturating_sub(DAYS_MAX)..];
    let (&(first, _), &(last, _)) = (shown.first()?, shown.last()?);
    let most = shown.iter().map(|(_, count)| *count).max()?.max(1);
    let step = WIDTH / shown.len();
    let bars = shown.iter().enumerate().map(|(at, (day, count))| {
        let height = (count * HEIGHT / most).max(2);
        let findings = view::count(*count, "finding");
        context! {
            x => at * step, width => (step * 4 / 5).clamp(1, 40), y => HEIGHT - height, height,
            says => format!("{day}: {findings}"),
        }
    });
    let label = format!(
        "Findings by day, {first} to {last}, at most {}",
        thousands(most)
    );
    Some(context! { label, first, last, bars => bars.collect::<Vec<_>>() })
}
