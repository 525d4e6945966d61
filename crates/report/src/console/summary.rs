//! Summary of a run: results by service, a block per defect, and the last screen: the
//! first defects, the verdict, the reports, the next command. The tail of a log is enough.
//!
//! Of bounded length, unless verbose or quiet; the reports contain everything.

use super::defect::{blocks, title};
use super::in_a_line::place_in_brief;
use super::leftover::{blind, flaky, skipped, undecided, waived};
use super::look::{Look, Paint, Verbosity, wrapped};
use crate::cards::{self, Card};
use crate::invocation;
use crate::since;
use crate::tally::{self, State};
use crate::texts::escaped;
use crate::view;
use conformant_base::text;
use conformant_record::{PayloadOrigin, RunRecord, waivers};

/// Lines in total unless verbose; with lines about scenarios and progress fewer than 400.
const LINES_MAX: usize = 350;
/// Defects of the last screen.
const FIRST_MAX: usize = 5;
/// Lines of a screen. The first defects are listed again where their blocks are further up.
const SCREEN_LINES: usize = 24;

pub(super) struct Summary {
    pub(super) body: String,
    /// The verdict, the reports and the next command. Apart, because the caller prints notes before them.
    pub(super) last_lines: String,
}

pub(super) fn summarize(record: &RunRecord, look: &Look) -> Summary {
    let record = &escaped(record);
    let cards = cards::cards(record, look.settings);
    let mut last_lines = conclusion(record, look);
    if look.verbosity == Verbosity::Quiet {
        let body = cards.iter().map(|card| title(card, look)).collect();
        return Summary { body, last_lines };
    }
    last_lines += &next_step(record, &cards, look);
    let mut body = services(record, look);
    let mut counts_and_gaps = counts(record, look);
    counts_and_gaps += &waived(record, look);
    counts_and_gaps += &undecided(record, &cards, look);
    counts_and_gaps += &skipped(record, look);
    counts_and_gaps += &blind(record, look);
    counts_and_gaps += &flaky(record, look);
    let list = first_defects(record, &cards, look);
    let advice = repetition(record, &cards, look);
    let used =
        [&body, &counts_and_gaps, &list, &advice, &last_lines].map(|text| text.lines().count());
    let room = LINES_MAX.saturating_sub(used.iter().sum::<usize>() + 3);
    let blocks = blocks(record, &cards, room, look);
    let below = [&blocks, &counts_and_gaps, &advice, &last_lines];
    let is_long = below.map(|text| text.lines().count()).iter().sum::<usize>() > SCREEN_LINES;
    body += &blocks;
    body += "\n";
    body += &counts_and_gaps;
    for part in [if is_long { list } else { String::new() }, advice] {
        if !part.is_empty() {
            body += "\n";
            body += &part;
        }
    }
    body += "\n";
    Summary { body, last_lines }
}

fn conclusion(record: &RunRecord, look: &Look) -> String {
    let line = view::conclusion(record, look.settings);
    let paint = if line.starts_with("passed") {
        Paint::Green
    } else {
        Paint::Red
    };
    // A long address is on a line of its own.
    let is_wide = line.chars().count() > look.width;
    let line = match line.split_once(" · target: ").filter(|_| is_wide) {
        Some((verdict, target)) => {
            format!("{}target: {target}", wrapped(verdict, "", 4, look.width))
        }
        None => line,
    };
    format!("{}\n", paint.on(&line, look))
}

fn services(record: &RunRecord, look: &Look) -> String {
    let tallies = tally::services(record, look.settings);
    // The table would add nothing to the summary.
    if tallies
        .iter()
        .all(|t| t[State::Broken] + t[State::Warned] == 0)
        || tallies.len() < 2
    {
        return String::new();
    }
    let mut out = format!(
        "\n{:<8} {:>7}  {:>6}  {:>8}  {:>11}  scenarios\n",
        "rules", "pass", "broken", "warnings", "not decided"
    );
    for tally in tallies {
        let cell = |state: State, width: usize, paint: Paint| {
            let text = format!("{:>width$}", tally[state]);
            match tally[state] {
                0 => text,
                _ => paint.on(&text, look),
            }
        };
        let broken = cell(State::Broken, 6, Paint::Red);
        let warned = cell(State::Warned, 8, Paint::Yellow);
        out += &format!(
            "{:<8} {:>7}  {broken}  {warned}  {:>11}  {} of {} pass\n",
            tally.name,
            tally[State::Passed],
            tally.undecided(),
            tally.scenarios_passed,
            tally.scenarios
        );
    }
    out
}

/// The first defects, each with its extent and first place.
fn first_defects(record: &RunRecord, cards: &[Card], look: &Look) -> String {
    let heading = match cards.len() {
        0 => return String::new(),
        1 => "1 defect".to_owned(),
        count => {
            format!("{count} defects, by urgency: must before should, then most failing scenarios")
        }
    };
    let mut out = wrapped(&heading, "", 4, look.width);
    for card in &cards[..cards.len().min(FIRST_MAX)] {
        let title = format!("{}. {}", card.number, card.defect.title);
        out += &wrapped(&title, "  ", 3, look.width);
        out += &wrapped(&extent_and_place(record, card), "     ", 0, look.width);
    }
    if cards.len() > FIRST_MAX {
        let more = view::count(cards.len() - FIRST_MAX, "more defect");
        out += &format!("  … {more} in the reports\n");
    }
    out
}

/// How to repeat the requests of a defect.
fn repetition(record: &RunRecord, cards: &[Card], look: &Look) -> String {
    let mut out = String::new();
    if cards.is_empty() {
        return out;
    }
    if let Some(path) = look.record_path.as_ref().filter(|_| is_run(record)) {
        let path = text::shell_quoted(path);
        let line = match cards.len() {
            1 => format!("the requests of defect 1 as a script: conformant reproduce {path} 1"),
            _ => format!("the requests of defect N as a script: conformant reproduce {path} N"),
        };
        out += &wrapped(&line, "", 4, look.width);
        if record.is_live() {
            let again = match record.parts.is_empty() {
                true => invocation::repeat_flags(record),
                false => {
                    "the --seed and --names of each part (here the parts had their own)".to_owned()
                }
            };
            let line = format!(
                "if the command of a defect's line `run again` passes, the defect depends on earlier requests: repeat the whole run on a fresh target with {again}",
            );
            out += &wrapped(&line, "", 4, look.width);
        }
    }
    out
}

/// Extent of a defect, and the first exchange, callback or hook result that shows it: `1 rule in 5 scenarios, first POST create-channel -> 400 in scenario chat/x, step 2`.
fn extent_and_place(record: &RunRecord, card: &Card) -> String {
    let mut text = view::count(card.rules.len(), "rule");
    let Some(first) = card.first() else {
        return text;
    };
    if !first.scenario.is_empty() {
        text += &format!(" in {}", view::count(card.defect.scenarios, "scenario"));
    }
    text += ", first ";
    if let Some(payload) = cards::payload_of(record, first) {
        text += &match &payload.what {
            PayloadOrigin::Hook(name) => format!("the result of {name} "),
            _ if payload.missing => "a missing callback ".to_owned(),
            PayloadOrigin::Callback => "a callback ".to_owned(),
            PayloadOrigin::Event(_) => "an event ".to_owned(),
        };
    } else if let Some(exchange) = cards::exchange_of(record, first) {
        let operation = match exchange.operation.rsplit('/').next() {
            // Without an operation, the name is that of the method: the request follows a link.
            Some("get") if !exchange.operation.contains('/') => "of a link",
            operation => operation.unwrap_or_default(),
        };
        let answer = match exchange.fault.as_str() {
            "" => exchange.status.to_string(),
            fault => fault.to_owned(),
        };
        text += &format!("{} {operation} -> {answer} ", exchange.method);
    }
    text + "in " + &place_in_brief(first)
}

fn is_run(record: &RunRecord) -> bool {
    record.invocation.starts_with("conformant run")
}

/// Where the reports are, and the next command.
fn next_step(record: &RunRecord, cards: &[Card], look: &Look) -> String {
    let mut out = String::new();
    if !look.reports.is_empty() {
        let line = format!("reports: {}", look.reports.join(", "));
        out += &wrapped(&line, "", 4, look.width);
    }
    let next = match cards.first().and_then(|card| card.rules.first()) {
        Some(rule) => invocation::explain_command(record, rule.id),
        None if waivers::problems_of(record).next().is_some() => {
            let first = waivers::problems_of(record).next().unwrap_or_default();
            format!("correct the waivers: {first}")
        }
        None if is_too_small(record) => {
            "run without --filter, which leaves out what --require-complete demands".to_owned()
        }
        None if is_run(record) && !record.is_live() => {
            "conformant init --target SERVICE=URL".to_owned()
        }
        None if is_run(record) && needs_doctor(record) => doctor(record),
        None => return out,
    };
    out += &format!("next: {next}\n");
    out
}

/// Whether a filter left out what the run had to judge.
fn is_too_small(record: &RunRecord) -> bool {
    let is_demanded = record.invocation.contains(" --require-complete");
    record.exit == Some(4) && is_demanded && has_filter(record)
}

/// Whether `doctor` can name what is missing. It cannot raise the time limit.
fn needs_doctor(record: &RunRecord) -> bool {
    match &record.ended_early {
        Some(why) => !why.starts_with("time limit"),
        // What a filter leaves out is not missing.
        None if record.exit == Some(0) && has_filter(record) => false,
        None => !cards::needs(record).is_empty(),
    }
}

pub(super) fn has_filter(record: &RunRecord) -> bool {
    let mut words = record.invocation.split(' ');
    words.any(|word| word == "--filter" || word.starts_with("--filter="))
}

/// The `doctor` command for the targets of a run.
fn doctor(record: &RunRecord) -> String {
    const KEPT: [&str; 4] = ["config", "target", "hooks", "specs"];
    let mut flags = record.invocation.split(" --").skip(1);
    let mut command = "conformant doctor".to_owned();
    for flag in flags.by_ref() {
        let name = flag.split([' ', '=']).next().unwrap_or_default();
        // Found without a flag.
        let is_default = flag == "config conformant.yaml";
        if KEPT.contains(&name) && !is_default {
            command += " --";
            command += flag;
        }
    }
    command
}

/// Rules and scenarios by verdict, and further figures of the run, one line each.
fn counts(record: &RunRecord, look: &Look) -> String {
    let whole = tally::whole(record, look.settings);
    let scenarios = record.summary.scenarios.iter();
    let scenarios = list_counts(scenarios.map(|(verdict, count)| (verdict.as_str(), *count)));
    // Times are left out: the clock of an offline run is virtual.
    let command = record.invocation.split(' ').nth(1).unwrap_or_default();
    let is_check = command == "check";
    let exchanges = match (command, record.summary.exchanges) {
        // Files without traffic.
        ("check", 0) => None,
        ("check" | "proxy" | "serve", count) => Some(count.to_string()),
        (_, count) => Some(format!("{count}, seed {}", invocation::seed(record))),
    };
    let scenarios_label = if is_check { "files" } else { "scenarios" };
    let waived: usize = record.waivers.iter().map(|waiver| waiver.findings).sum();
    let waivers = (!record.waivers.is_empty()).then(|| {
        let accept = if record.waivers.len() == 1 {
            "accepts"
        } else {
            "accept"
        };
        format!(
            "{} {accept} {}",
            view::count(record.waivers.len(), "waiver"),
            view::count(waived, "finding")
        )
    });
    let limits = invocation::limits(record);
    let limits = (!limits.is_empty()).then(|| limits.join(" · "));
    let mut out = String::new();
    // Figures about nothing would only take space.
    let is_judged = whole.judged() > 0;
    let proof = record.proof.as_ref();
    let proof = proof.filter(|proof| proof.proven + proof.vacuous > 0);
    let detection = record.detection.as_ref().filter(|_| is_judged);
    let estimate = match detection {
        Some(detection) => Some(view::detection(record, detection)),
        None => (is_judged && view::has_no_estimate(record))
            .then(|| format!("not estimated: {}", view::NO_ESTIMATE)),
    };
    let whole_run = (detection.is_some() && has_filter(record))
        .then(|| "run without --filter (not estimated)".to_owned());
    let raised_by = whole_run
        .into_iter()
        .chain(detection.and_then(view::raised_by));
    let raised_by: Vec<String> = raised_by.collect();
    let raised_by = (!raised_by.is_empty()).then(|| raised_by.join(", "));
    for (label, text) in [
        ("rules", Some(whole.words())),
        ("ended early", record.ended_early.clone()),
        ("since", since::since_last(record)),
        (scenarios_label, Some(scenarios)),
        ("exchanges", exchanges),
        ("selection", limits),
        ("waivers", waivers),
        ("refusals", view::odd_refusals(record)),
        ("mutations", proof.map(view::proof)),
        ("detection", estimate),
        ("to raise it", raised_by),
    ] {
        let Some(text) = text else { continue };
        out += &wrapped(&format!("{label:<11} {text}"), "", 12, look.width);
    }
    out
}

fn list_counts<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let counts: Vec<_> = counts
        .map(|(verdict, n)| format!("{n} {}", verdict.replace('-', " ")))
        .collect();
    if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{assert_contains, sample};
    use conformant_record::{Finding, Level, RuleResult, Verdict};

    fn render(record: &RunRecord, look: &Look) -> String {
        let summary = summarize(record, look);
        summary.body + &summary.last_lines
    }

    #[test]
    fn a_path_with_a_space_is_quoted_in_the_command() {
        let look = Look {
            record_path: Some("a b/run.json".to_owned()),
            ..Look::default()
        };
        let text = render(&sample(), &look);
        assert_contains(&text, &["conformant reproduce 'a b/run.json' N"]);
    }

    #[test]
    fn both_forms_of_a_filter_are_recognized() {
        for (invocation, expected) in [
            ("conformant run --filter flow/x", true),
            ("conformant run --filter=flow/x", true),
            ("conformant run --target flow=http://x/--filter", false),
        ] {
            let mut record = sample();
            record.invocation = invocation.to_owned();
            assert_eq!(has_filter(&record), expected, "{invocation}");
        }
    }

    #[test]
    fn a_run_reads_like_this() {
        let expected = include_str!("sample.txt");
        let text = render(&sample(), &Look::default());
        let diff = conformant_base::diff::unified_diff(expected, &text);
        assert!(text == expected, "{diff}");
    }

    #[test]
    fn a_filtered_run_names_what_only_a_whole_run_can_judge() {
        let mut record = sample();
        let rule = record
            .rules
            .iter_mut()
            .find(|r| r.verdict == Verdict::NotJudged);
        let rule = rule.expect("the sample has one");
        rule.reason = conformant_record::NOT_EXERCISED.to_owned();
        rule.needs.clear();
        record.proof.as_mut().expect("the sample has one").sample = None;
        let whole = render(&record, &Look::default());
        assert_contains(
            &whole,
            &["not exercised by any scenario of this run (flow/"],
        );
        assert!(!whole.contains("no rule"), "{whole}");
        record.invocation += " --filter flow/x";
        let part = render(&record, &Look::default());
        for line in [
            "not exercised by the selected scenarios: run without --filter",
            "to raise it run without --filter (not estimated), configure the hook end_execution (87 %)",
        ] {
            assert!(part.contains(line), "{line}: {part}");
        }
    }

    #[test]
    fn a_run_that_ended_early_has_no_estimate_and_the_console_says_why() {
        let mut record = sample();
        record.complete = false;
        record.detection = None;
        let shown = render(&record, &Look::default());
        assert_contains(&shown, &["detection   not estimated: the run ended early"]);
    }

    #[test]
    fn a_quiet_run_says_what_is_wrong_and_no_more() {
        let look = Look {
            verbosity: Verbosity::Quiet,
            ..Look::default()
        };
        assert_eq!(
            render(&sample(), &look),
            "FAIL 1. An execution has a third state (flow · 1 rule · 2 findings in 1 scenario)\n\
             WARN 2. /shape is not a documented field (flow · 1 rule · 1 finding in 1 scenario)\n\
             not conformant: 1 of 2 defects (1 rule) fails the run, 1 warning, 5 not decided\n\
             target: http://127.0.0.1:4010/flow\n"
        );
    }

    #[test]
    fn colour_comes_only_where_it_is_asked_for() {
        let look = Look {
            color: true,
            ..Look::default()
        };
        assert!(render(&sample(), &look).contains("\u{1b}[31mFAIL\u{1b}[0m"));
        assert!(!render(&sample(), &Look::default()).contains('\u{1b}'));
    }

    /// This many rules, all broken in many ways.
    fn broken_everywhere(rules: usize) -> RunRecord {
        let mut record = sample();
        record.defects.clear();
        let finding = record.findings[0].clone();
        record.rules = (0..rules)
            .map(|n| RuleResult {
                id: format!("flow/thing-{n}/field"),
                level: Level::Must,
                verdict: Verdict::Fail,
                findings: 7,
                ..record.rules[0].clone()
            })
            .collect();
        record.findings = record
            .rules
            .iter()
            .flat_map(|rule| {
                let at = Finding {
                    rule: rule.id.clone(),
                    pointer: format!("/{}", rule.id.replace('/', "-")),
                    ..finding.clone()
                };
                vec![at; 7]
            })
            .collect();
        record
    }

    #[test]
    fn the_last_screen_of_one_defect_has_its_title() {
        let text = render(&broken_everywhere(1), &Look::default());
        let screen: Vec<&str> = text.lines().rev().take(SCREEN_LINES).collect();
        assert!(screen.contains(&"1 defect"), "{text}");
    }

    #[test]
    fn however_much_is_broken_a_person_can_read_it() {
        for rules in [46, 200, 1_058] {
            let record = broken_everywhere(rules);
            let text = render(&record, &Look::default());
            let lines = text.lines().count();
            assert!(lines <= LINES_MAX + 1 && lines > 200, "{rules}: {lines}");
            assert!(text.contains(&format!(
                "\nnot conformant: {rules} defects ({rules} rules) fail the run, 5 not decided"
            )));
            // The first defects are repeated at the end.
            let screen: Vec<&str> = text.lines().rev().take(24).collect();
            let first = format!("{rules} defects, by urgency: ");
            let is_there = screen.iter().any(|line| line.starts_with(&first));
            assert!(is_there, "{screen:?}");
            assert!(screen.contains(&"next: conformant explain flow/thing-0/field"));
            let all = Look {
                verbosity: Verbosity::Verbose,
                ..Look::default()
            };
            assert_eq!(render(&record, &all).matches("\n  where ").count(), rules);
        }
    }
}
