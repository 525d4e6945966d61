//! TAP 14: one test point per rule.
//!
//! Broken should-rules and waived rules are `not ok` with `TODO`, which harnesses do not count as failures.
//! Rules not judged are `ok` with `SKIP`.

use super::Settings;
use super::view::{self, Outcome};
use conformant_base::text;
use conformant_record::{Finding, RunRecord, Verdict};
use serde_json::Value;
use std::fmt::Write as _;

/// Further findings per rule.
const FINDINGS_MAX: usize = 20;
const MEMORY: &str = "writing to a String succeeds";

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let findings = view::by_rule(record);
    let mut out = format!("TAP version 14\n1..{}\n", record.rules.len());
    for (at, rule) in record.rules.iter().enumerate() {
        let (word, directive) = match view::of_rule(rule, settings) {
            Outcome::Passed => ("ok", String::new()),
            Outcome::Failed => ("not ok", String::new()),
            Outcome::Warned => ("not ok", " # TODO warning".to_owned()),
            Outcome::Skipped(reason) if rule.verdict == Verdict::Waived => {
                ("not ok", format!(" # TODO {}", plain(&reason)))
            }
            Outcome::Skipped(reason) => ("ok", format!(" # SKIP {}", plain(&reason))),
            // A comment instead of a directive: it counts as a failure.
            Outcome::Errored(reason) => ("not ok", format!(" - {}", plain(&reason))),
        };
        let line = format!("{word} {} - {}{directive}", at + 1, plain(&rule.id));
        out.push_str(&line);
        out.push('\n');
        if let Some(findings) = findings.get(rule.id.as_str()) {
            diagnose(findings, &rule.source.to_string(), &mut out);
        }
    }
    if !record.complete {
        out.push_str("Bail out! the run was interrupted\n");
    }
    out
}

/// The YAML block of a test point: the first finding in full, the others by place. Values are JSON strings.
fn diagnose(findings: &[&Finding], source: &str, out: &mut String) {
    let Some((first, others)) = findings.split_first() else {
        return;
    };
    let place = view::place(first);
    let fields = [
        ("message", first.message.as_str()),
        ("severity", first.level.word()),
        ("source", source),
        ("where", &place),
        ("expected", &first.expected),
        ("actual", &first.actual),
        ("diff", &first.diff),
        ("reproduce", &first.reproduce),
    ];
    out.push_str("  ---\n");
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "  {name}: {}", Value::from(value)).expect(MEMORY);
    }
    if !others.is_empty() {
        writeln!(out, "  more: {}", others.len()).expect(MEMORY);
        out.push_str("  also:\n");
    }
    for other in others.iter().take(FINDINGS_MAX) {
        let line = format!("{} ({})", other.message, view::place(other));
        writeln!(out, "    - {}", Value::from(line)).expect(MEMORY);
    }
    out.push_str("  ...\n");
}

/// One line without a directive.
fn plain(text: &str) -> String {
    text::escape_line(text)
        .replace('\\', "\\\\")
        .replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, every_text_is, sample};

    #[test]
    fn a_run_reads_like_this() {
        let tap = Format::Tap.render(&sample(), Settings::default());
        let points: Vec<_> = tap.lines().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(
            points,
            [
                "TAP version 14",
                "1..10",
                "not ok 1 - flow/execution/context # TODO waived: known until 2.4",
                "not ok 2 - flow/execution/no-other-fields # TODO warning",
                "ok 3 - flow/execution/sid",
                "not ok 4 - flow/execution/status",
                "not ok 5 - flow/execution/steps - error: predicate panicked",
                "ok 6 - flow/execution/unset # SKIP open",
                "ok 7 - flow/executions/ends # SKIP not-applicable: hook missing: end_execution",
                "ok 8 - flow/executions/order # SKIP inconclusive: timeout",
                "ok 9 - flow/executions/steps # SKIP not-applicable: hook missing: end_execution",
                "ok 10 - flow/executions/walk # SKIP not-judged: one page only",
            ]
        );
        for part in [
            "\n  ---\n  message: \"/status is \\\"running\\\", expected",
            "\n  more: 1\n  also:\n    - \"/status is",
        ] {
            assert!(tap.contains(part), "{part}\nis missing in\n{tap}");
        }
    }

    #[test]
    fn a_run_that_was_cut_short_bails_out() {
        let mut record = sample();
        record.complete = false;
        let tap = Format::Tap.render(&record, Settings::default());
        assert!(tap.ends_with("Bail out! the run was interrupted\n"));
    }

    #[test]
    fn hostile_texts_make_no_test_point_and_no_directive() {
        for text in HOSTILE {
            let tap = Format::Tap.render(&every_text_is(text), Settings::default());
            let points = tap.lines().filter(|line| !line.starts_with("  "));
            for (at, line) in points.skip(2).enumerate() {
                assert!(
                    line.starts_with(&format!("ok {} - ", at + 1))
                        || line.starts_with(&format!("not ok {} - ", at + 1)),
                    "{line}"
                );
                assert!(line.matches(" # ").count() <= 1, "{line}");
            }
            let yaml: Vec<_> = tap.lines().filter_map(|l| l.strip_prefix("  ")).collect();
            for line in yaml.iter().filter(|line| !["---", "..."].contains(*line)) {
                let (_, value) = line.split_once(": ").expect("a mapping");
                serde_json::from_str::<String>(value).unwrap();
            }
        }
    }
}
