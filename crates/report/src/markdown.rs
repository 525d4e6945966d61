//! Markdown for a job summary or a comment: a table, then folded defects.
//!
//! Untrusted text appears only in code spans, fenced blocks with longer fences than its runs of backticks,
//! and `<code>`, so that it is neither markup nor a mention nor a link.

use super::Settings;
use super::archive;
use super::cards::{self, Card};
use super::invocation;
use super::points;
use super::repeats;
use super::since;
use super::tally::{self, State};
use super::view::{self, Broken, Effect};
use conformant_base::text;
use conformant_record::RunRecord;

/// Findings per rule.
const FINDINGS_MAX: usize = 2;
/// Rules with details per defect.
const RULES_MAX: usize = 3;
/// Rows per table.
const ROWS_MAX: usize = 60;
/// GitHub refuses comments over 65,536 characters and job summaries over 1 MiB.
const BYTES_MAX: usize = 60_000;
/// Limit of the tables after the defects.
const TAIL_BYTES_MAX: usize = 15_000;

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut out = format!("## {}", view::headline(record, settings));
    match invocation::target_of(record).as_str() {
        "" => {}
        target => out += &format!(" · target: {}", code(target)),
    }
    out += "\n\n";
    if let Some(changes) = since::since_last(record) {
        out += &format!("Since {}\n\n", code(&changes));
    }
    errors(record, settings, &mut out);
    services(record, settings, &mut out);
    let cards = cards::cards(record, settings);
    defects(&cards, &mut out);
    let mut tail = String::new();
    if let Some(repeats) = &record.repeats {
        repeats::markdown(repeats, &mut tail);
    }
    archive_counts(record, &mut tail);
    undecided(record, &mut tail);
    waivers(record, &mut tail);
    open_points(record, &mut tail);
    about(record, settings, &mut tail);
    let room = BYTES_MAX.saturating_sub(tail.len());
    for (at, card) in cards.iter().enumerate() {
        let block = block(record, card);
        if out.len() + block.len() > room {
            out += &more(cards.len(), at, "more defect");
            break;
        }
        out += &block;
    }
    out + &tail
}

/// What failed the run apart from findings.
pub(super) fn errors(record: &RunRecord, settings: Settings, out: &mut String) {
    // The headline is there already.
    let errors = view::errors(record, settings);
    let errors = errors.iter().filter(|_| !record.errors.is_empty());
    let before = out.len();
    for error in errors {
        *out += &format!("- **error**: {}\n", code(error));
    }
    if out.len() > before {
        out.push('\n');
    }
}

pub(super) fn services(record: &RunRecord, settings: Settings, out: &mut String) {
    out.push_str(
        "| | pass | broken | warnings | not decided | scenarios |\n|---|---|---|---|---|---|\n",
    );
    for tally in tally::services(record, settings) {
        let target = tally.target.as_ref().map(|url| format!(" {}", cell(url)));
        let target = target.unwrap_or_default();
        *out += &format!(
            "| {}{target} | {} | {} | {} | {} | {} of {} pass |\n",
            cell(&tally.name),
            tally[State::Passed],
            tally[State::Broken],
            tally[State::Warned],
            tally.undecided(),
            tally.scenarios_passed,
            tally.scenarios,
        );
    }
}

fn defects(cards: &[Card], out: &mut String) {
    if cards.is_empty() {
        return;
    }
    out.push_str(
        "\n### Fix first\n\n| | what | rules | findings | scenarios |\n|---|---|---|---|---|\n",
    );
    for card in cards.iter().take(ROWS_MAX) {
        let word = match card.effect {
            Effect::Fails => "**FAIL**",
            Effect::Warns | Effect::Advises => card.effect.word(),
        };
        let defect = &card.defect;
        let title = cell(&text::excerpt(&without_marks(&defect.title), 200));
        *out += &format!(
            "| {}. {word} | {title} | {} | {} | {} |\n",
            card.number,
            card.rules.len(),
            defect.findings,
            defect.scenarios
        );
    }
    out.push_str(&more(cards.len(), ROWS_MAX, "more defect"));
}

/// A line about what is beyond a limit.
fn more(all: usize, max: usize, noun: &str) -> String {
    match all.saturating_sub(max) {
        0 => String::new(),
        left => format!("\n{} in the other reports\n", view::count(left, noun)),
    }
}

/// One folded defect with rules and findings.
fn block(record: &RunRecord, card: &Card) -> String {
    let word = card.effect.word();
    let title = html(&text::excerpt(&without_marks(&card.defect.title), 300));
    let mut out = format!(
        "\n<details><summary>{}. {word} <code>{title}</code></summary>\n",
        card.number
    );
    if let Some(guess) = card.guess() {
        out += &format!("\n{}\n", code(&guess));
    }
    for broken in card.rules.iter().take(RULES_MAX) {
        out += &rule(record, broken);
    }
    let more = card.rules.iter().skip(RULES_MAX).take(ROWS_MAX);
    let more: Vec<String> = more.map(|rule| code(rule.id)).collect();
    if !more.is_empty() {
        out += &format!("\nalso {}\n", more.join(", "));
    }
    out + "\n</details>\n"
}

fn rule(record: &RunRecord, broken: &Broken) -> String {
    let mut out = format!("\n{} ({})\n", code(broken.id), code(&broken.origin()));
    if let Some(says) = broken.says() {
        out += &format!("\n{}\n", code(&without_marks(says)));
    }
    for finding in broken.findings.iter().take(FINDINGS_MAX) {
        out += &format!("\n- {}\n\n", code(&finding.message));
        let mut without_diff = (*finding).clone();
        let diff = std::mem::take(&mut without_diff.diff);
        out += &fenced("text", &view::describe(record, &without_diff));
        out += &fenced("diff", &diff);
    }
    let more = broken.findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let more = view::count(more, "more finding");
        out += &format!("\n{more} of this rule in the other reports\n");
    }
    out
}

/// Documents by kind and version, and findings by rule and day.
fn archive_counts(record: &RunRecord, out: &mut String) {
    const ARCHIVE_ROWS_MAX: usize = 20;
    let Some(counts) = &record.archive else {
        return;
    };
    out.push_str("\n### Archive\n\n| kind and version | documents | rejected |\n|---|---|---|\n");
    for row in counts.documents.iter().take(ARCHIVE_ROWS_MAX) {
        let kind = cell(&archive::name(&row.kind, &row.version));
        *out += &format!("| {kind} | {} | {} |\n", row.documents, row.rejected);
    }
    let rules = archive::by_rule(counts);
    if !rules.is_empty() {
        out.push_str("\n| findings | rule | kind and version | days |\n|---|---|---|---|\n");
    }
    for row in rules.iter().take(ARCHIVE_ROWS_MAX) {
        let kind = cell(&archive::name(row.kind, row.version));
        let (rule, days) = (cell(row.rule), cell(&row.span()));
        *out += &format!("| {} | {rule} | {kind} | {days} |\n", row.findings);
    }
    let rows = counts.documents.len().max(rules.len());
    if rows > ARCHIVE_ROWS_MAX {
        out.push_str("\nfurther rows in the other reports\n");
    }
}

fn undecided(record: &RunRecord, out: &mut String) {
    let groups = cards::needs(record);
    if groups.is_empty() {
        return;
    }
    out.push_str(
        "\n### Not decided\n\n| why, or what they need | rules | such as |\n|---|---|---|\n",
    );
    for (need, ids) in groups.iter().take(ROWS_MAX) {
        let first = ids.first().copied().unwrap_or_default();
        let advice = cards::advice(need);
        *out += &format!(
            "| {} | {} | {} |\n",
            cell(&text::excerpt(&advice, 200)),
            ids.len(),
            cell(first)
        );
    }
    out.push_str(&more(groups.len(), ROWS_MAX, "more reason"));
}

fn waivers(record: &RunRecord, out: &mut String) {
    if record.waivers.is_empty() {
        return;
    }
    out.push_str("\n### Waived\n\n| rule | reason | findings | until |\n|---|---|---|---|\n");
    for waiver in record.waivers.iter().take(ROWS_MAX) {
        *out += &format!(
            "| {} | {} | {} | {} |\n",
            cell(&waiver.rule),
            cell(&waiver.reason),
            waiver.findings,
            cell(&waiver.expires)
        );
    }
}

fn open_points(record: &RunRecord, out: &mut String) {
    if record.open_points.is_empty() {
        return;
    }
    let count = view::count(record.open_points.len(), "unspecified point");
    *out += &format!("\n<details><summary>{count} observed</summary>\n\n");
    out.push_str("| unspecified | observed |\n|---|---|\n");
    for (at, point) in record.open_points.iter().enumerate() {
        let (mut observed, shapes) = points::observed(&point.observed);
        observed.extend(shapes);
        let observed: Vec<_> = observed.iter().map(|one| cell(one)).collect();
        if out.len() > TAIL_BYTES_MAX {
            out.push_str(&more(
                record.open_points.len(),
                at,
                "more unspecified point",
            ));
            break;
        }
        let says = match point.says.as_str() {
            "" => &point.id,
            says => says,
        };
        *out += &format!(
            "| {} | {} |\n",
            cell(&text::excerpt(says, 200)),
            observed.join(", ")
        );
    }
    out.push_str("\n</details>\n");
}

/// Settings of the run.
fn about(record: &RunRecord, settings: Settings, out: &mut String) {
    let command = match record.invocation.as_str() {
        "" => "–".to_owned(),
        command => cell(command),
    };
    let facts = [
        ("rules", tally::whole(record, settings).words()),
        ("exchanges", record.summary.exchanges.to_string()),
        ("seed", record.seed.to_string()),
        ("rulebook", cell(&record.rulebook.digest)),
        ("command", command),
    ];
    out.push_str("\n| | |\n|---|---|\n");
    for (label, value) in facts {
        *out += &format!("| {label} | {value} |\n");
    }
}

/// A line for use between tags.
fn html(line: &str) -> String {
    let line = text::escape_line(line);
    line.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A code span; one line.
pub(super) fn code(text: &str) -> String {
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

/// A text for a code span, in which marks of code would be shown.
pub(super) fn without_marks(text: &str) -> String {
    text.replace('`', "")
}

/// A code span in a table. A bar would end the cell even there, and a backslash does not always prevent
/// that, so it is replaced.
pub(super) fn cell(text: &str) -> String {
    code(&text.replace('|', "\\x7c"))
}

/// A fenced block in a list item; empty for an empty text.
fn fenced(language: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    text::indent(&block_of(language, text), "  ")
}

/// A fenced block, without a line feed at its end.
pub(super) fn block_of(language: &str, text: &str) -> String {
    let ticks = "`".repeat(longest_run(text).max(2) + 1);
    format!("{ticks}{language}\n{}\n{ticks}", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, assert_contains, every_text_is, sample};

    fn rendered(record: &RunRecord) -> String {
        Format::Markdown.render(record, Settings::default())
    }

    #[test]
    fn a_run_reads_like_this() {
        let markdown = rendered(&sample());
        assert_contains(
            &markdown,
            &[
                "## not conformant: 1 of 2 defects (1 rule) fails the run, 1 warning, 5 not decided · target: `http://127.0.0.1:4010/flow`\n\n| | pass | broken | warnings | not decided | scenarios |\n",
                "| `flow` `http://127.0.0.1:4010/flow` | 1 | 1 | 1 | 5 | 1 of 4 pass |\n",
                "| rules | 1 pass · 1 broken · 1 warning only",
                "\n| `configure the hook end_execution` | 2 | `flow/executions/ends` |\n",
                "\n| `What does a member look like that was never set?` | `null`, `{}` |\n",
            ],
        );
    }

    #[test]
    fn counts_of_an_archive_are_tables() {
        let mut record = sample();
        record.archive = Some(crate::sample::archive());
        let markdown = rendered(&record);
        assert_contains(
            &markdown,
            &[
                "| `events/MessageSent 2` | 1200 | 5 |\n",
                "| 5 | `events/message-sent/body` | `events/MessageSent 2` | `2026-01-30 to 2026-02-01` |\n",
            ],
        );
    }

    /// The rest of a line without its `CommonMark` code spans.
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
                } else if let Some(inner) = line.strip_prefix("<details><summary>") {
                    let (word, rest) = inner.split_once("<code>").unwrap_or((inner, ""));
                    let (text, end) = rest.split_once("</code>").unwrap_or_default();
                    assert!(!text.contains(['<', '>']), "{line}");
                    lines.push((format!("{word}{end}"), None));
                } else {
                    // Bars are separators only in tables.
                    let bars = line.starts_with('|').then(|| line.matches('|').count());
                    // Long target names are left out.
                    let words: Vec<_> = outside_code(line)
                        .split_whitespace()
                        .map(str::to_owned)
                        .collect();
                    lines.push((words.join(" "), bars));
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
        assert!(markdown.len() < 65_536, "{}", markdown.len());
        assert!(markdown.contains("more defects in the other reports"));
    }
}
