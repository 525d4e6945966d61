//! Edit operations, and escaped unified diffs of bounded size.

use crate::text::{CUT, escape, excerpt};
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, group_diff_ops};
use std::fmt::Write as _;

/// Lines in a diff.
pub const DIFF_LINES_MAX: usize = 200;
/// Bytes in a diff.
pub const DIFF_BYTES_MAX: usize = 64 * 1024;
/// Lines of each side that are compared, from the first difference.
const COMPARED_LINES_MAX: usize = 2_000;
/// Bytes of one diff line.
const DIFF_LINE_BYTES_MAX: usize = 2_000;

/// Edit operations between two lists. One algorithm on one list type keeps the compiled code small.
pub fn diff_ops(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff(&mut hook, old, 0..old.len(), new, 0..new.len());
    hook.into_inner().into_inner().into_ops()
}

/// An escaped unified diff of at most [`DIFF_LINES_MAX`] lines and [`DIFF_BYTES_MAX`] bytes, then
/// "N more lines"; empty if the texts are equal.
///
/// Bounded by compared lines, not by time: the same texts give the same bytes on any machine.
pub fn unified_diff(expected: &str, actual: &str) -> String {
    if expected == actual {
        return String::new();
    }
    let (old, new) = (escape(expected), escape(actual));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(3);
    let left_out = old
        .len()
        .max(new.len())
        .saturating_sub(from + COMPARED_LINES_MAX);
    let lines = diff_lines(window(&old, from), window(&new, from), from);
    capped(&lines, left_out)
}

fn window<'a, 'b>(lines: &'a [&'b str], from: usize) -> &'a [&'b str] {
    let from = from.min(lines.len());
    &lines[from..lines.len().min(from + COMPARED_LINES_MAX)]
}

fn diff_lines(old: &[&str], new: &[&str], skipped: usize) -> Vec<String> {
    let mut lines = vec!["--- expected".to_owned(), "+++ actual".to_owned()];
    for group in group_diff_ops(diff_ops(old, new), 3) {
        lines.push(shifted_header(&group, skipped));
        for change in group.iter().flat_map(|op| op.iter_changes(old, new)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(format!(
                "{sign}{}",
                excerpt(change.value(), DIFF_LINE_BYTES_MAX)
            ));
        }
    }
    lines
}

/// The `@@` line, counted in the whole texts.
fn shifted_header(group: &[DiffOp], skipped: usize) -> String {
    let shifted: Vec<_> = group
        .iter()
        .map(|op| {
            let (old, new) = (op.old_range(), op.new_range());
            DiffOp::Replace {
                old_index: old.start + skipped,
                old_len: old.len(),
                new_index: new.start + skipped,
                new_len: new.len(),
            }
        })
        .collect();
    UnifiedHunkHeader::new(&shifted).to_string()
}

fn capped(lines: &[String], left_out: usize) -> String {
    let mut out = String::new();
    let mut shown = 0;
    for line in lines.iter().take(DIFF_LINES_MAX) {
        if out.len() + line.len() >= DIFF_BYTES_MAX {
            break;
        }
        out.push_str(line);
        out.push('\n');
        shown += 1;
    }
    let more = lines.len() - shown + left_out;
    if more > 0 {
        writeln!(out, "{CUT} {more} more lines").expect("writing to a String succeeds");
    }
    out
}
