//! The console: progress while a run goes on, what is broken and the summary at its end.
//!
//! Findings are shown at the end, by rule: one missing field would else be told once per exchange.
//! Asks nothing of its surroundings: writer, width, colour and progress are handed in. A writer
//! that fails is noticed once and then left alone; it never ends a run.

use super::destination::unless_closed;
use super::texts::{escaped, escaped_scenario};
use super::view::{self, Broken, Outcome};
use super::{Consumer, Settings};
use crate::verdict::{Finding, RunEvent, RunRecord, ScenarioResult};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::io;

/// How many findings of one rule are shown in full.
const FINDINGS_MAX: usize = 3;
/// How many ids stand behind a reason why nothing was judged.
const IDS_MAX: usize = 3;
/// Narrower terminals are written to as if they had this many columns.
const WIDTH_MIN: usize = 20;

/// How the console looks; the caller asks the terminal and the environment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns; text is wrapped there, commands and diffs are not.
    pub width: usize,
    /// Colour; not for `NO_COLOR`, not for a pipe.
    pub color: bool,
    /// A progress bar on standard error; only for a terminal.
    pub progress: bool,
    /// What fails the run.
    pub settings: Settings,
}

impl Default for Look {
    /// As into a pipe.
    fn default() -> Self {
        Self {
            width: 100,
            color: false,
            progress: false,
            settings: Settings::default(),
        }
    }
}

/// Follows a run on a terminal or in a log.
pub struct Console<'a> {
    out: &'a mut dyn io::Write,
    look: Look,
    bar: ProgressBar,
    written: io::Result<()>,
}

impl<'a> Console<'a> {
    /// A console that writes there.
    pub fn new(out: &'a mut dyn io::Write, look: Look) -> Self {
        let look = Look {
            width: look.width.max(WIDTH_MIN),
            ..look
        };
        Self {
            out,
            look,
            bar: ProgressBar::hidden(),
            written: Ok(()),
        }
    }

    /// Whether everything could be written; a reader that went away does not count.
    pub fn finish(self) -> io::Result<()> {
        self.bar.finish_and_clear();
        unless_closed(self.written)
    }

    fn write(&mut self, text: &str) {
        if self.written.is_ok() {
            let out = &mut *self.out;
            self.written = self
                .bar
                .suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        }
    }

    fn start(&mut self, scenarios: usize) {
        if self.look.progress {
            self.bar = ProgressBar::new(scenarios as u64).with_style(
                ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}")
                    .expect("the template is well-formed"),
            );
        }
    }

    fn scenario(&mut self, result: &ScenarioResult, findings: &[Finding]) {
        let result = escaped_scenario(result);
        self.bar.set_message(result.id.clone());
        self.bar.inc(1);
        let findings: Vec<&Finding> = findings.iter().collect();
        let outcome = view::of_scenario(&result, &findings, self.look.settings);
        let line = scenario_line(&result.id, &outcome, findings.len(), self.look);
        self.write(&line);
    }
}

impl Consumer for Console<'_> {
    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started {
                scenarios,
                targets: _,
            } => self.start(*scenarios),
            RunEvent::ScenarioEnded {
                result,
                findings,
                exchanges: _,
            } => self.scenario(result, findings),
            RunEvent::Finished { record } => {
                self.bar.finish_and_clear();
                self.write(&render(record, self.look));
            }
        }
    }
}

/// Nothing for a scenario that passed or was skipped: the summary counts them.
fn scenario_line(id: &str, outcome: &Outcome, findings: usize, look: Look) -> String {
    let (word, paint, why) = match outcome {
        Outcome::Passed | Outcome::Skipped(_) => return String::new(),
        Outcome::Failed => ("FAIL", Paint::Red, view::count(findings, "finding")),
        Outcome::Warned => ("WARN", Paint::Yellow, view::count(findings, "finding")),
        Outcome::Errored(reason) => ("ERROR", Paint::Red, reason.clone()),
    };
    format!("{} {id}: {why}\n", paint.on(word, look))
}

/// The end of a run: what is broken, the summary, and what was not judged.
pub fn render(record: &RunRecord, look: Look) -> String {
    let record = &escaped(record);
    let mut out = String::new();
    for broken in view::broken(record, look.settings) {
        out += &block(&broken, look);
    }
    out += "\n";
    out += &summary(record, look);
    out += &waived(record, look);
    out += &not_judged(record, look);
    out += &flaky(record, look);
    let line = view::headline(record, look.settings);
    let paint = if line.starts_with("conformant") {
        Paint::Green
    } else {
        Paint::Red
    };
    writeln!(out, "\n{}", paint.on(&line, look)).expect(MEMORY);
    out
}

const MEMORY: &str = "writing to a String succeeds";

fn block(broken: &Broken, look: Look) -> String {
    let (word, paint) = if broken.fails {
        ("FAIL", Paint::Red)
    } else {
        ("WARN", Paint::Yellow)
    };
    let mut out = format!(
        "\n{} {} ({})\n",
        paint.on(word, look),
        Paint::Bold.on(broken.id, look),
        broken.origin()
    );
    for finding in broken.findings.iter().take(FINDINGS_MAX) {
        out += &block_of(finding, look);
    }
    let more = broken.findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        writeln!(
            out,
            "  … {} of this rule in the reports",
            view::count(more, "more finding")
        )
        .expect(MEMORY);
    }
    out
}

fn block_of(finding: &Finding, look: Look) -> String {
    let mut out = wrapped(&finding.message, "  ", look.width);
    for (label, value) in [
        ("where", view::place(finding).as_str()),
        ("expected", &finding.expected),
        ("actual", &finding.actual),
    ] {
        let text = view::labelled(label, value);
        out += &wrapped(text.trim_end(), "", look.width);
    }
    out += &painted_diff(&view::labelled("diff", &finding.diff), look);
    out += &view::labelled("repeat", &finding.reproduce);
    out
}

fn painted_diff(diff: &str, look: Look) -> String {
    let mut out = String::new();
    for line in diff.lines() {
        let painted = match line.trim_start().chars().next() {
            Some('-') => Paint::Red.on(line, look),
            Some('+') => Paint::Green.on(line, look),
            _ => line.to_owned(),
        };
        out.push_str(&painted);
        out.push('\n');
    }
    out
}

fn summary(record: &RunRecord, look: Look) -> String {
    let rules = listed(view::rule_counts(record).into_iter());
    let scenarios = record.summary.scenarios.iter();
    let scenarios = listed(scenarios.map(|(verdict, count)| (verdict.as_str(), *count)));
    // Time in a record is that of the run's clock, virtual offline: nothing for people.
    let exchanges = format!("{}, seed {}", record.summary.exchanges, record.seed);
    let mut out = String::new();
    for (label, text) in [
        ("rules", rules),
        ("scenarios", scenarios),
        ("exchanges", exchanges),
    ] {
        out += &wrapped(&format!("{label:<11} {text}"), "", look.width);
    }
    out
}

fn listed<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let counts: Vec<_> = counts
        .map(|(verdict, n)| format!("{verdict} {n}"))
        .collect();
    if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(" · ")
    }
}

fn not_judged(record: &RunRecord, look: Look) -> String {
    let groups = view::not_judged(record);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = "not judged\n".to_owned();
    for (reason, ids) in groups {
        let more = ids.len().saturating_sub(IDS_MAX);
        let some = ids[..ids.len().min(IDS_MAX)].join(", ");
        let more = if more > 0 {
            format!(", {more} more")
        } else {
            String::new()
        };
        let line = format!(
            "{reason} ({}: {some}{more})",
            view::count(ids.len(), "rule")
        );
        out += &wrapped(&line, "  ", look.width);
    }
    out
}

/// What is broken and accepted.
fn waived(record: &RunRecord, look: Look) -> String {
    let groups = view::waived(record);
    let mut out = String::new();
    for (rule, findings) in groups {
        let count = view::count(findings.len(), "finding");
        let line = format!("{rule}: {count}, {}", findings[0].waived);
        out += &wrapped(&line, "  ", look.width);
    }
    if out.is_empty() {
        return out;
    }
    format!("waived\n{out}")
}

/// What passed and failed in the same run before.
fn flaky(record: &RunRecord, look: Look) -> String {
    let mut out = String::new();
    for result in record
        .scenarios
        .iter()
        .filter(|s| !s.failed_before.is_empty())
    {
        let word = Paint::Yellow.on("FLAKY", look);
        writeln!(
            out,
            "\n{word} {}: passes now, and failed when the same run was made before",
            result.id
        )
        .expect(MEMORY);
        for failure in result.failed_before.iter().take(FINDINGS_MAX) {
            out += &wrapped(failure, "  ", look.width);
        }
    }
    out
}

/// Wraps each line at blanks, runs of which stay; a word that is too long stays whole, so that it
/// can be copied.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words = line.trim_start_matches(' ');
        let margin = format!("{indent}{}", &line[..line.len() - words.len()]);
        out.push_str(&margin);
        let mut column = margin.len();
        for (at, word) in words.split(' ').enumerate() {
            let length = word.chars().count();
            if at > 0 && column + 1 + length > width && length > 0 {
                write!(out, "\n{margin}    ").expect(MEMORY);
                column = margin.len() + 4;
            } else if at > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        out.push('\n');
    }
    out
}

/// The few styles a terminal is asked for.
#[derive(Clone, Copy)]
enum Paint {
    Red,
    Green,
    Yellow,
    Bold,
}

impl Paint {
    fn on(self, text: &str, look: Look) -> String {
        if !look.color {
            return text.to_owned();
        }
        let code = match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Bold => 1,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Redactor;
    use crate::report::Stream;
    use crate::report::sample::{HOSTILE, every_text_is, sample};
    use crate::text::is_deceptive;

    const STANDARD_RUN: &str = r#"FAIL flow/create-execution/happy: 2 findings

FAIL flow/execution/status (must, D3 "Execution (FN)", line 37)
  /status is "running", expected one of active, ended
  where     flow/create-execution, scenario flow/create-execution/happy, step 1, exchange 4, at
      /status
  expected  one of active, ended
  actual    "running"
  diff
    --- expected
    +++ actual
    @@ -1,3 +1,3 @@
     {
    -  "status": "active"
    +  "status": "running"
     }
  repeat
    curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \
      -H 'Authorization: [redacted]'
  /status is "running", expected one of active, ended
  where     flow/fetch-execution, scenario flow/create-execution/happy, step 2, exchange 5, at
      /status
  expected  one of active, ended
  actual    "running"
  repeat
    curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \
      -H 'Authorization: [redacted]'

WARN flow/execution/no-other-fields (should, D3 "Execution (FN)", line 28)
  /shape is not a documented field
  where     flow/create-execution, scenario flow/create-execution/happy, step 1, exchange 4, at
      /shape
  expected  no field of that name
  actual    "round"
  repeat
    curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \
      -H 'Authorization: [redacted]'

rules       pass 1 · fail 2 · open 1 · inconclusive 1 · not-applicable 2 · waived 1 · error 1 ·
    not-judged 1
scenarios   fail 1 · inconclusive 1 · not-applicable 1 · pass 1
exchanges   12, seed 7
not judged
  error: predicate panicked (1 rule: flow/execution/steps)
  inconclusive: timeout (1 rule: flow/executions/order)
  not-applicable: hook missing: end_execution (2 rules: flow/executions/ends, flow/executions/steps)
  not-judged: one page only (1 rule: flow/executions/walk)

not conformant: 1 rule broken, 1 warning
"#;

    fn events(record: &RunRecord) -> Vec<RunEvent> {
        let result = record.scenarios[0].clone();
        vec![
            RunEvent::Started {
                scenarios: 1,
                targets: record.targets.clone(),
            },
            RunEvent::ScenarioEnded {
                result,
                findings: record.findings[..1.max(record.findings.len() - 1)].to_vec(),
                exchanges: 2,
            },
            RunEvent::Finished {
                record: Box::new(record.clone()),
            },
        ]
    }

    fn shown(record: &RunRecord, look: Look) -> String {
        let mut out = Vec::new();
        let redactor = Redactor::default();
        let mut console = Console::new(&mut out, look);
        let mut stream = Stream::new(&redactor, vec![&mut console]);
        for event in events(record) {
            stream.send(event);
        }
        console.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_reads_like_this() {
        let text = shown(&sample(), Look::default());
        assert!(
            text == STANDARD_RUN,
            "{}",
            crate::text::unified_diff(STANDARD_RUN, &text)
        );
    }

    #[test]
    fn colour_comes_only_where_it_is_asked_for() {
        let look = Look {
            color: true,
            ..Look::default()
        };
        assert!(shown(&sample(), look).contains("\u{1b}[31mFAIL\u{1b}[0m"));
        assert!(!shown(&sample(), Look::default()).contains('\u{1b}'));
    }

    #[test]
    fn narrow_terminals_and_progress_do_not_matter() {
        let look = Look {
            width: 0,
            progress: true,
            ..Look::default()
        };
        assert!(shown(&sample(), look).ends_with("not conformant: 1 rule broken, 1 warning\n"));
    }

    #[test]
    fn a_rule_broken_everywhere_is_told_three_times() {
        let mut record = sample();
        record.findings = vec![record.findings[0].clone(); 500];
        let text = shown(&record, Look::default());
        assert_eq!(text.matches("expected one of").count(), FINDINGS_MAX);
        assert!(text.contains("… 497 more findings of this rule in the reports"));
    }

    #[test]
    fn hostile_texts_neither_steer_the_terminal_nor_command_a_ci_service() {
        for text in HOSTILE {
            for width in [20, 80] {
                let look = Look {
                    width,
                    ..Look::default()
                };
                let shown = shown(&every_text_is(text), look);
                assert!(!shown.contains(is_deceptive), "{shown}");
                for line in shown.lines() {
                    assert!(!line.trim_start().starts_with("::"), "{line}");
                    assert!(!line.contains("##vso[") && !line.contains("##["), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_closed_pipe_ends_the_output_and_nothing_else() {
        struct Closed(usize, io::ErrorKind);
        impl io::Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(self.1.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, fine) in [
            (io::ErrorKind::BrokenPipe, true),
            (io::ErrorKind::StorageFull, false),
        ] {
            let mut out = Closed(0, kind);
            let mut console = Console::new(&mut out, Look::default());
            for event in events(&sample()) {
                console.event(&event);
            }
            assert_eq!(console.finish().is_ok(), fine);
            assert_eq!(out.0, 1, "written to once, then left alone");
        }
    }
}
