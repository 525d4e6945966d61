//! Markdown, for a job summary: the conclusion, what is broken, what was not judged.
//!
//! Text of others stands only in code spans and fenced blocks whose fence is longer than any run of
//! backticks inside, so that it is neither markup nor a mention nor a link.

use super::Settings;
use super::view::{self, Broken};
use crate::text;
use crate::verdict::RunRecord;
use std::fmt::Write as _;

/// How many findings of one rule are shown.
const FINDINGS_MAX: usize = 3;
/// A job summary is refused beyond 1 MiB.
const BYTES_MAX: usize = 900 * 1024;
const MEMORY: &str = "writing to a String succeeds";

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut out = format!("## {}\n\n", view::headline(record, settings));
    summary(record, &mut out);
    let broken = view::broken(record, settings);
    if !broken.is_empty() {
        out += "\n### Broken rules\n";
    }
    for (at, rule) in broken.iter().enumerate() {
        let block = block(rule);
        if out.len() + block.len() > BYTES_MAX {
            let more = view::count(broken.len() - at, "more broken rule");
            writeln!(out, "\n{more} in the other reports").expect(MEMORY);
            break;
        }
        out += &block;
    }
    not_judged(record, &mut out);
    open_points(record, &mut out);
    out
}

fn summary(record: &RunRecord, out: &mut String) {
    let rules: Vec<_> = view::rule_counts(record)
        .into_iter()
        .map(|(verdict, n)| format!("{verdict} {n}"))
        .collect();
    let scenarios = record.summary.scenarios.iter();
    let scenarios: Vec<_> = scenarios
        .map(|(verdict, n)| cell(&format!("{verdict} {n}")))
        .collect();
    out.push_str("| | |\n|---|---|\n");
    for (service, url) in &record.targets {
        writeln!(out, "| {} | {} |", cell(service), cell(url)).expect(MEMORY);
    }
    for (label, text) in [
        ("rules", rules.join(" · ")),
        ("scenarios", scenarios.join(" · ")),
        (
            "exchanges",
            format!(
                "{} in {:.2} s",
                record.summary.exchanges, record.summary.seconds
            ),
        ),
        ("seed", record.seed.to_string()),
        ("rulebook", cell(&record.rulebook.digest)),
    ] {
        writeln!(out, "| {label} | {text} |").expect(MEMORY);
    }
}

fn block(broken: &Broken) -> String {
    let word = if broken.fails { "FAIL" } else { "WARN" };
    let mut out = format!(
        "\n**{word}** {} ({})\n",
        code(broken.id),
        code(&broken.origin())
    );
    for finding in broken.findings.iter().take(FINDINGS_MAX) {
        write!(out, "\n- {}\n\n", code(&finding.message)).expect(MEMORY);
        let mut without_diff = (*finding).clone();
        let diff = std::mem::take(&mut without_diff.diff);
        out += &fenced("text", &view::describe(&without_diff));
        out += &fenced("diff", &diff);
    }
    let more = broken.findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let more = view::count(more, "more finding");
        writeln!(out, "\n{more} of this rule in the other reports").expect(MEMORY);
    }
    out
}

fn not_judged(record: &RunRecord, out: &mut String) {
    let groups = view::not_judged(record);
    if groups.is_empty() {
        return;
    }
    out.push_str("\n### Not judged\n\n| why | rules | such as |\n|---|---|---|\n");
    for (reason, ids) in groups {
        let first = ids.first().copied().unwrap_or_default();
        writeln!(
            out,
            "| {} | {} | {} |",
            cell(&reason),
            ids.len(),
            cell(first)
        )
        .expect(MEMORY);
    }
}

fn open_points(record: &RunRecord, out: &mut String) {
    if record.open_points.is_empty() {
        return;
    }
    out.push_str("\n### Open points\n\n| left open | observed |\n|---|---|\n");
    for point in &record.open_points {
        let observed: Vec<_> = point.observed.iter().map(|text| cell(text)).collect();
        writeln!(out, "| {} | {} |", cell(&point.id), observed.join(", ")).expect(MEMORY);
    }
}

/// A code span; one line.
fn code(text: &str) -> String {
    let text = text::escape_line(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// A code span in a table: a bar would end the cell even there, and a backslash before it does not
/// always prevent that, so it is spelled like other characters that must not work.
fn cell(text: &str) -> String {
    code(&text.replace('|', "\\x7c"))
}

/// A fenced block inside a list item; nothing for nothing.
fn fenced(language: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(text).max(2) + 1);
    text::indent(
        &format!("{ticks}{language}\n{}\n{ticks}", text.trim_end()),
        "  ",
    )
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Format;
    use crate::report::sample::{HOSTILE, every_text_is, sample};

    fn rendered(record: &RunRecord) -> String {
        Format::Markdown.render(record, Settings::default())
    }

    #[test]
    fn a_run_reads_like_this() {
        let markdown = rendered(&sample());
        for part in [
            "## not conformant: 1 rule broken, 1 warning\n\n| | |\n|---|---|\n",
            "| `flow` | `http://127.0.0.1:4010/flow` |\n| rules | pass 1 · fail 2 · open 1",
            "\n**FAIL** `flow/execution/status` (`must, D3 \"Execution (FN)\", line 37`)\n",
            "\n  ```diff\n  --- expected\n  +++ actual\n",
            "\n| `not-applicable: hook missing: end_execution` | 2 | `flow/executions/ends` |\n",
            "\n| `flow/unset-attributes` | `null`, `{}` |\n",
        ] {
            assert!(markdown.contains(part), "{part}\nis missing in\n{markdown}");
        }
    }

    /// What is left of a line when its code spans are taken out as `CommonMark` reads them.
    fn outside_code(line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('`') {
            out.push_str(&rest[..at]);
            let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
            let inner = &rest[at + ticks..];
            let closing = inner
                .match_indices(&"`".repeat(ticks))
                .map(|(at, _)| at)
                .find(|&at| !inner[..at].ends_with('`') && !inner[at + ticks..].starts_with('`'));
            rest = &inner[closing.expect("every span is closed in its line") + ticks..];
        }
        out + rest
    }

    #[test]
    fn hostile_texts_stay_in_their_spans_blocks_and_cells() {
        let skeleton = |text: &str| {
            let markdown = rendered(&every_text_is(text));
            let mut fence = String::new();
            let mut lines = Vec::new();
            for line in markdown.lines() {
                let ticks: String = line
                    .trim_start()
                    .chars()
                    .take_while(|c| *c == '`')
                    .collect();
                if !fence.is_empty() {
                    if line.trim() == fence {
                        fence.clear();
                    }
                } else if ticks.len() >= 3 && line.starts_with("  `") {
                    fence = ticks;
                } else {
                    // A bar separates only in a table.
                    let bars = line.starts_with('|').then(|| line.matches('|').count());
                    lines.push((outside_code(line), bars));
                }
            }
            assert!(fence.is_empty(), "an open block in {markdown}");
            lines
        };
        let harmless = skeleton("x");
        for text in HOSTILE {
            assert_eq!(skeleton(text), harmless, "{text:?}");
        }
    }

    #[test]
    fn summaries_stay_under_what_a_service_takes() {
        let mut record = sample();
        record.findings = (0..2_000)
            .map(|n| {
                let mut finding = record.findings[0].clone();
                finding.rule = format!("flow/x/{n}");
                finding.actual = "y".repeat(2_000);
                finding
            })
            .collect();
        let markdown = rendered(&record);
        assert!(markdown.len() < 1024 * 1024, "{}", markdown.len());
        assert!(markdown.contains("more broken rules in the other reports"));
    }
}
