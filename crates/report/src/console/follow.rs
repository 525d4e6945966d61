//! Progress output of a run: failing scenarios, a progress bar on a terminal, status lines elsewhere.
//!
//! A write error stops the output, never the run.

use super::look::{Look, Paint, Progress, Verbosity, WIDTH_MIN};
use super::summary::summarize;
use crate::Consumer;
use crate::destination::unless_closed;
use crate::invocation;
use crate::texts::escaped;
use crate::view::{self, Outcome};
use conformant_base::text;
use conformant_record::{Finding, RunEvent, ScenarioResult, Verdict};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

/// Failing scenarios printed during the run; the reports list all.
const LINES_MAX: usize = 20;
/// First interval of status lines in a pipe. It grows, so that they do not fill the screens of a long run.
pub const ALIVE_SECONDS: u64 = 10;
/// The longest interval.
const ALIVE_SECONDS_MAX: u64 = 120;

pub struct Console<'a> {
    out: &'a mut dyn io::Write,
    look: Look,
    bar: ProgressBar,
    written: io::Result<()>,
    state: State,
    /// The last lines, once the run has ended, if the caller prints them.
    held: Option<String>,
}

/// Current progress.
#[derive(Debug, Default)]
struct State {
    scenarios: usize,
    done: usize,
    /// Failing scenarios so far; a waiver may still accept recent ones.
    failing: BTreeSet<String>,
    /// Broken rules so far, of the scenarios that ended in the order of the plan.
    broken: BTreeSet<String>,
    /// Failing scenarios among these.
    settled: usize,
    inconclusive: usize,
    printed: usize,
    seconds: u64,
    /// Time of the last status line.
    said: u64,
    /// Time limit of the run, in seconds.
    limit: Option<u64>,
    /// Running scenarios with the second of their start.
    running: BTreeMap<String, u64>,
    /// Reason and start of the current wait.
    waiting: Option<(String, u64)>,
}

/// Seconds after which a run that cannot estimate its time left names its limit.
const UNESTIMATED_FROM: u64 = 20;

impl State {
    /// `3 failing · at least 2 rules broken · about 40 s left · chat: 429, waiting 1 s · longest running: chat/x (33 s)`.
    fn words(&self) -> String {
        let mut parts = Vec::new();
        // The first scenarios wait for clocks and callbacks.
        if self.done == 0 && !self.running.is_empty() {
            parts.push(format!("{} running, none ended yet", self.running.len()));
        }
        if !self.failing.is_empty() {
            let example = match self.failing.first() {
                // Lines about scenarios wait for the order of the plan.
                Some(id) if self.printed == 0 => format!(", such as {id}"),
                Some(_) | None => String::new(),
            };
            parts.push(format!("{} failing{example}", self.failing.len()));
        }
        // The count misleads while most failing scenarios wait for the order of the plan.
        if !self.broken.is_empty() && self.settled * 2 >= self.failing.len() {
            let rules = view::count(self.broken.len(), "rule");
            parts.push(format!("at least {rules} broken"));
        }
        if self.inconclusive > 0 {
            parts.push(format!("{} inconclusive", self.inconclusive));
        }
        if let Some(seconds) = self.seconds_left() {
            parts.push(format!("about {} left", duration(seconds)));
            if let Some(limit) = self.limit.filter(|limit| self.seconds + seconds > *limit) {
                parts.push(format!("limits.run ends it at {}", duration(limit)));
            }
        } else if let Some(limit) = self.limit.filter(|_| self.seconds >= UNESTIMATED_FROM) {
            // Without an estimate the limit is what is known.
            let left = duration(limit.saturating_sub(self.seconds));
            parts.push(format!("at most {left} left (limits.run)"));
        }
        // Before the scenario, because a narrow terminal truncates the line.
        if let Some((why, _)) = &self.waiting {
            parts.push(why.clone());
            // Such as one that uses the only callback address of an application.
            if self.running.len() == 1 && self.done > 0 && self.done + 1 < self.scenarios {
                parts.push("the others wait for the running one".to_owned());
            }
        }
        // The scenario that runs longest.
        let longest = self.running.iter().min_by_key(|(_, began)| **began);
        if let Some((id, began)) = longest {
            let seconds = self.seconds.saturating_sub(*began);
            let time = (seconds > 1).then(|| format!(" ({seconds} s)"));
            parts.push(format!("longest running: {id}{}", time.unwrap_or_default()));
        }
        parts.join(" · ")
    }

    /// The time left at the mean speed so far. Early estimates are left out, because the first scenarios wait for
    /// clocks and callbacks.
    fn seconds_left(&self) -> Option<u64> {
        const SECONDS_MIN: u64 = 5;
        const PERCENT_MIN: usize = 10;
        let left = self.scenarios.checked_sub(self.done)?;
        let is_early = self.seconds < SECONDS_MIN || self.done * 100 < self.scenarios * PERCENT_MIN;
        if left == 0 || is_early {
            return None;
        }
        let seconds = (self.seconds * left as u64).checked_div(self.done as u64)?;
        (seconds > 0).then_some(seconds)
    }
}

/// `40 s`, `3 min`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..=99 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

impl<'a> Console<'a> {
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
            state: State::default(),
            held: None,
        }
    }

    /// Announces the time limit of the run, once the run will probably reach it.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.state.limit = Some(limit.as_secs());
        self
    }

    /// Leaves the last lines to the caller, which has to print notes before them: see [`Console::last_lines`].
    #[must_use]
    pub fn without_last_lines(self) -> Self {
        Self {
            held: Some(String::new()),
            ..self
        }
    }

    /// The verdict, the reports and the next command, for the caller to print.
    pub fn last_lines(&mut self) -> String {
        self.held.take().unwrap_or_default()
    }

    /// Reports write errors; a closed pipe is not an error.
    pub fn finish(self) -> io::Result<()> {
        self.bar.finish_and_clear();
        unless_closed(self.written)
    }

    fn write(&mut self, text: &str) {
        if self.written.is_ok() && !text.is_empty() {
            let out = &mut *self.out;
            self.written = self
                .bar
                .suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        }
    }

    fn start(&mut self, scenarios: usize, targets: &BTreeMap<String, String>) {
        self.state.scenarios = scenarios;
        let target = invocation::shown_target(targets, self.look.is_reference_named);
        if !target.is_empty() && self.look.verbosity != Verbosity::Quiet {
            self.write(&format!("target: {}\n", text::escape_line(&target)));
        }
        if self.look.progress == Progress::Bar {
            self.bar = ProgressBar::new(scenarios as u64).with_style(
                ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}")
                    .expect("the template is well-formed"),
            );
        }
    }

    fn alive(&mut self, seconds: u64) {
        /// What waited so long ago waits no more.
        const WAIT_SHOWN_SECONDS: u64 = 5;
        self.state.seconds = seconds;
        let waiting = self.state.waiting.take();
        self.state.waiting = waiting.filter(|(_, since)| since + WAIT_SHOWN_SECONDS >= seconds);
        self.bar.set_message(self.state.words());
        let interval = (self.state.said / 5).clamp(ALIVE_SECONDS, ALIVE_SECONDS_MAX);
        if self.look.progress == Progress::Lines && seconds >= self.state.said + interval {
            self.state.said = seconds;
            let (done, all) = (self.state.done, self.state.scenarios);
            let line = format!(
                "… {seconds} s: {done} of {all} scenarios · {}",
                self.state.words()
            );
            self.write(&format!("{}\n", whole_parts(&line)));
        }
    }

    /// Counts a finished scenario at once; its line waits for the plan's order.
    fn finished(&mut self, id: &str, verdict: Verdict) {
        let id = text::escape_line(id).into_owned();
        self.state.running.remove(&id);
        self.state.done += 1;
        if matches!(verdict, Verdict::Fail | Verdict::Error) {
            self.state.failing.insert(id);
        }
        self.state.inconclusive += usize::from(verdict == Verdict::Inconclusive);
        self.bar.set_message(self.state.words());
        self.bar.inc(1);
    }

    fn scenario(&mut self, result: &ScenarioResult, findings: &[Finding]) {
        let result = escaped(result);
        let findings: Vec<&Finding> = findings.iter().collect();
        let outcome = view::of_scenario(&result, &findings, self.look.settings);
        if !matches!(outcome, Outcome::Failed | Outcome::Errored(_)) {
            self.state.failing.remove(&result.id);
        }
        if matches!(outcome, Outcome::Failed) {
            self.state.settled += 1;
            let fails = findings
                .iter()
                .filter(|f| f.waived.is_empty() && view::fails(f.level, self.look.settings));
            let rules = fails.map(|finding| finding.rule.clone());
            self.state.broken.extend(rules);
        }
        let line = scenario_line(&result.id, &outcome, findings.len(), &self.look);
        if line.is_empty() || self.look.verbosity == Verbosity::Quiet {
            return;
        }
        self.state.printed += 1;
        if self.look.is_verbose() || self.state.printed <= LINES_MAX {
            self.write(&line);
        }
    }
}

impl Consumer for Console<'_> {
    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { scenarios, targets } => self.start(*scenarios, targets),
            RunEvent::ScenarioBegan { id } => {
                let began = self.state.seconds;
                self.state
                    .running
                    .insert(text::escape_line(id).into_owned(), began);
            }
            RunEvent::ScenarioPlayed { id, verdict } => self.finished(id, *verdict),
            RunEvent::Waiting { service, why } => {
                let line = match service.as_str() {
                    "" => why.clone(),
                    service => format!("{service}: {why}"),
                };
                let since = self.state.seconds;
                self.state.waiting = Some((text::escape_line(&line).into_owned(), since));
                self.bar.set_message(self.state.words());
            }
            RunEvent::Alive { seconds } => self.alive(*seconds),
            RunEvent::ScenarioEnded {
                result,
                findings,
                exchanges: _,
            } => self.scenario(result, findings),
            RunEvent::Finished { record } => {
                self.bar.finish_and_clear();
                let left_out = self.state.printed.saturating_sub(LINES_MAX);
                if left_out > 0 && !self.look.is_verbose() {
                    let more = view::count(left_out, "more scenario");
                    self.write(&format!(
                        "… {more} with findings or errors in the reports (see all: `--verbose`)\n"
                    ));
                }
                let summary = summarize(record, &self.look);
                self.write(&summary.body);
                match &mut self.held {
                    Some(held) => *held = summary.last_lines,
                    None => self.write(&summary.last_lines),
                }
            }
        }
    }
}

/// The first parts of a status line, as far as they fit.
fn whole_parts(line: &str) -> String {
    const LINE_MAX: usize = 140;
    let mut parts: Vec<&str> = line.split(" · ").collect();
    while parts.len() > 1 && parts.join(" · ").chars().count() > LINE_MAX {
        parts.pop();
    }
    parts.join(" · ")
}

/// Empty for passed and skipped scenarios.
fn scenario_line(id: &str, outcome: &Outcome, findings: usize, look: &Look) -> String {
    let (word, paint, why) = match outcome {
        Outcome::Passed | Outcome::Skipped(_) => return String::new(),
        Outcome::Failed => ("FAIL", Paint::Red, view::count(findings, "finding")),
        Outcome::Warned => ("WARN", Paint::Yellow, view::count(findings, "finding")),
        Outcome::Errored(reason) => ("ERROR", Paint::Red, reason.clone()),
    };
    format!("{} {id}: {why}\n", paint.on(word, look))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use crate::sample::{HOSTILE, every_text_is, sample};
    use conformant_base::redact::Redactor;
    use conformant_base::text::is_deceptive;
    use conformant_record::RunRecord;

    fn events(record: &RunRecord) -> Vec<RunEvent> {
        let result = record.scenarios[0].clone();
        vec![
            RunEvent::Started {
                scenarios: 1,
                targets: record.targets.clone(),
            },
            RunEvent::ScenarioBegan {
                id: result.id.clone(),
            },
            RunEvent::Alive { seconds: 9 },
            RunEvent::Waiting {
                service: "flow".into(),
                why: "429, waiting 1 s".into(),
            },
            RunEvent::Alive { seconds: 12 },
            RunEvent::ScenarioPlayed {
                id: result.id.clone(),
                verdict: result.verdict,
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
    fn a_pipe_gets_status_lines_with_the_reason_of_a_wait() {
        let look = Look {
            progress: Progress::Lines,
            ..Look::default()
        };
        let text = shown(&sample(), look);
        assert!(
            text.starts_with(
                "target: http://127.0.0.1:4010/flow\n… 12 s: 0 of 1 scenarios · 1 running, none ended yet · flow: 429, waiting 1 s · longest running: flow/create-execution/happy (12 s)\n\
                 FAIL flow/create-execution/happy: 2 findings\n"
            ),
            "{text}"
        );
        assert!(!shown(&sample(), Look::default()).contains("… 12 s"));
    }

    #[test]
    fn a_long_status_line_loses_its_last_parts() {
        let running = format!("longest running: flow/{} (12 s)", "x".repeat(90));
        let line = format!("… 12 s: 1 of 9 scenarios · 3 failing · {running}");
        assert_eq!(whole_parts(&line), "… 12 s: 1 of 9 scenarios · 3 failing");
        assert_eq!(whole_parts("… 12 s · b"), "… 12 s · b");
    }

    #[test]
    fn a_run_that_will_reach_its_time_limit_announces_it() {
        let after = |done, limit| {
            let state = State {
                scenarios: 1354,
                done,
                seconds: 124,
                limit,
                ..State::default()
            };
            state.words()
        };
        let words = |limit| after(143, limit);
        assert_eq!(after(39, Some(600)), "at most 8 min left (limits.run)");
        assert_eq!(after(39, None), "");
        assert_eq!(
            words(Some(600)),
            "about 18 min left · limits.run ends it at 10 min"
        );
        assert_eq!(words(Some(1_800)), "about 18 min left");
        assert_eq!(words(None), "about 18 min left");
    }

    #[test]
    fn finished_scenarios_count_at_once_and_waived_ones_do_not_fail() {
        let record = sample();
        let mut out = Vec::new();
        let look = Look {
            progress: Progress::Lines,
            ..Look::default()
        };
        let mut console = Console::new(&mut out, look);
        console.event(&RunEvent::Started {
            scenarios: 4,
            targets: record.targets.clone(),
        });
        for id in ["flow/x/b", "flow/x/c"] {
            console.event(&RunEvent::ScenarioPlayed {
                id: id.into(),
                verdict: Verdict::Fail,
            });
        }
        console.event(&RunEvent::Alive { seconds: 10 });
        let mut result = record.scenarios[0].clone();
        (result.id, result.verdict) = ("flow/x/b".into(), Verdict::Waived);
        console.event(&RunEvent::ScenarioEnded {
            result: result.clone(),
            findings: Vec::new(),
            exchanges: 1,
        });
        (result.id, result.verdict) = ("flow/x/c".into(), Verdict::Fail);
        console.event(&RunEvent::ScenarioEnded {
            result,
            findings: vec![record.findings[0].clone()],
            exchanges: 1,
        });
        console.event(&RunEvent::Alive { seconds: 20 });
        console.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "target: http://127.0.0.1:4010/flow\n\
             … 10 s: 2 of 4 scenarios · 2 failing, such as flow/x/b · about 10 s left\n\
             FAIL flow/x/c: 1 finding\n\
             … 20 s: 2 of 4 scenarios · 1 failing · at least 1 rule broken · about 20 s left\n"
        );
    }

    #[test]
    fn failing_scenarios_are_printed_up_to_a_limit() {
        let record = sample();
        let mut out = Vec::new();
        let mut console = Console::new(&mut out, Look::default());
        for n in 0..100 {
            let mut result = record.scenarios[0].clone();
            result.id = format!("flow/x/{n}");
            let findings = vec![record.findings[0].clone()];
            console.event(&RunEvent::ScenarioEnded {
                result,
                findings,
                exchanges: 1,
            });
        }
        console.event(&RunEvent::Finished {
            record: Box::new(record),
        });
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[..LINES_MAX]
                .iter()
                .all(|l| l.starts_with("FAIL flow/x/"))
        );
        assert!(
            lines[LINES_MAX].starts_with("… 80 more scenarios with findings or errors"),
            "{text}"
        );
    }

    #[test]
    fn narrow_terminals_and_progress_do_not_matter() {
        let look = Look {
            width: 0,
            progress: Progress::Bar,
            ..Look::default()
        };
        assert!(
            shown(&sample(), look).ends_with("next: conformant explain flow/execution/status\n")
        );
    }

    #[test]
    fn hostile_texts_neither_steer_the_terminal_nor_command_a_ci_service() {
        for text in HOSTILE {
            for width in [20, 80] {
                let look = Look {
                    width,
                    progress: Progress::Lines,
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
