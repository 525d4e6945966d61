//! The end of a run: what failed by service, one block for each defect, the conclusion, and last a
//! table of the broken rules, so that the end of a log is enough.
//!
//! However much is broken, it stays within what a person reads; the reports hold all of it.

use super::look::{Look, MEMORY, Paint, Verbosity, cut, wrapped};
use crate::report::cards::{self, Card};
use crate::report::texts::escaped;
use crate::report::view::{self, Broken};
use crate::text;
use crate::verdict::{Finding, RunRecord, ShownExchange};
use std::fmt::Write as _;

/// Lines in all, unless everything is asked for: with those about scenarios fewer than 400.
const LINES_MAX: usize = 375;
/// Rows of the last table.
const ROWS_MAX: usize = 80;
/// Rules of one defect told below its first one.
const OTHERS_MAX: usize = 12;
/// Lines of one diff or callback.
const DIFF_LINES_MAX: usize = 24;
/// Places where a change would not be noticed.
const BLIND_MAX: usize = 8;
/// Reasons why something was not judged.
const REASONS_MAX: usize = 12;
/// How many ids stand behind such a reason.
const IDS_MAX: usize = 3;
/// Scenarios that passed and had failed before.
const FLAKY_MAX: usize = 10;
/// Of each, so many failures.
const FLAKY_FINDINGS_MAX: usize = 3;

/// The end of a run as it is shown.
pub fn render(record: &RunRecord, look: &Look) -> String {
    let record = &escaped(record);
    let cards = cards::cards(record, look.settings);
    if look.verbosity == Verbosity::Quiet {
        let lines: String = cards.iter().map(|card| title(card, look)).collect();
        return lines + &conclusion(record, look);
    }
    let mut head = services(record, look);
    let mut tail = summary(record, look);
    tail += &waived(record, look);
    tail += &not_judged(record, look);
    tail += &blind(record, look);
    tail += &flaky(record, look);
    tail += &table(&cards, look);
    tail += "\n";
    tail += &conclusion(record, look);
    let room = LINES_MAX.saturating_sub(head.lines().count() + tail.lines().count());
    head += &blocks(record, &cards, room, look);
    head += "\n";
    head + &tail
}

fn conclusion(record: &RunRecord, look: &Look) -> String {
    let line = view::headline(record, look.settings);
    let paint = if line.starts_with("conformant") {
        Paint::Green
    } else {
        Paint::Red
    };
    format!("{}\n", paint.on(&line, look))
}

/// What failed, by service.
fn services(record: &RunRecord, look: &Look) -> String {
    let tallies = cards::services(record, look.settings);
    // A word alone says no more than the summary does.
    if tallies.iter().all(|t| t.broken + t.warned == 0) || tallies.len() < 2 {
        return String::new();
    }
    let mut out = format!(
        "\n{:<8} {:>7} {:>7} {:>8} {:>11}  scenarios\n",
        "", "hold", "broken", "warnings", "not judged"
    );
    for tally in tallies {
        let broken = format!("{:>7}", tally.broken);
        let broken = if tally.broken > 0 {
            Paint::Red.on(&broken, look)
        } else {
            broken
        };
        let warned = format!("{:>8}", tally.warned);
        let warned = if tally.warned > 0 {
            Paint::Yellow.on(&warned, look)
        } else {
            warned
        };
        writeln!(
            out,
            "{:<8} {:>7} {broken} {warned} {:>11}  {} of {} pass",
            tally.name,
            tally.hold,
            tally.unjudged(),
            tally.scenarios_passed,
            tally.scenarios
        )
        .expect(MEMORY);
    }
    out
}

/// One block for each defect as far as there is room, then a line each, then how many are left.
fn blocks(record: &RunRecord, cards: &[Card], room: usize, look: &Look) -> String {
    let mut out = String::new();
    let mut used = 0;
    let mut at = 0;
    for card in cards {
        let block = block(record, card, look);
        let lines = block.lines().count();
        // Each of the others keeps its line.
        if !look.is_verbose() && at > 0 && used + lines + (cards.len() - at) > room {
            break;
        }
        used += lines;
        at += 1;
        out += &block;
    }
    let rest = &cards[at..];
    if rest.is_empty() {
        return out;
    }
    out += "\n";
    let room = room.saturating_sub(used + 2);
    let shown = if rest.len() <= room {
        rest.len()
    } else {
        room.saturating_sub(1)
    };
    for card in &rest[..shown] {
        out += &title(card, look);
    }
    if shown < rest.len() {
        let more = view::count(rest.len() - shown, "more defect");
        writeln!(out, "… {more} in the reports; `--verbose` tells all").expect(MEMORY);
    }
    out
}

/// A defect in one line.
fn title(card: &Card, look: &Look) -> String {
    let (word, paint) = word(card.fails);
    let title = cut(&card.defect.title, look.width.max(60) - 6);
    format!("{} {title} ({})\n", paint.on(word, look), card.extent())
}

fn word(fails: bool) -> (&'static str, Paint) {
    if fails {
        ("FAIL", Paint::Red)
    } else {
        ("WARN", Paint::Yellow)
    }
}

fn block(record: &RunRecord, card: &Card, look: &Look) -> String {
    let (word, paint) = word(card.fails);
    let mut out = String::from("\n");
    let heading = wrapped(&card.defect.title, "", look.width.saturating_sub(5));
    let heading = heading.trim_end().replace('\n', "\n     ");
    writeln!(
        out,
        "{} {}",
        paint.on(word, look),
        Paint::Bold.on(&heading, look)
    )
    .expect(MEMORY);
    let mut extent = card.extent();
    if let Some(guess) = card.guess() {
        extent += &format!(" · {guess}");
    }
    out += &painted(&wrapped(&extent, "     ", look.width), Paint::Dim, look);
    let Some((first, others)) = card.rules.split_first() else {
        return out;
    };
    out += &rule(record, first, look);
    let shown = if look.is_verbose() {
        others.len()
    } else {
        others.len().min(OTHERS_MAX)
    };
    if shown > 0 {
        out += "  also broken\n";
    }
    for other in &others[..shown] {
        out += &one_line(other, look);
    }
    if shown < others.len() {
        let more = view::count(others.len() - shown, "more rule");
        writeln!(out, "    … {more}, in the table below").expect(MEMORY);
    }
    out
}

/// A broken rule in full: its sentence, what came, where, the exchange and how to repeat it.
fn rule(record: &RunRecord, broken: &Broken, look: &Look) -> String {
    let mut out = String::new();
    let says = broken.rule.map_or("", |rule| rule.says.as_str());
    if !says.is_empty() {
        out += &wrapped(says, "  ", look.width);
    }
    let origin = broken.origin();
    writeln!(
        out,
        "  {} ({origin})",
        Paint::Bold.on(&look.linked(broken.id), look)
    )
    .expect(MEMORY);
    if let Some(first) = broken.findings.first() {
        out += &finding(record, first, look);
    }
    out += &elsewhere(broken, look);
    out
}

/// Other places of the same rule, each with what was seen there, a line each.
fn elsewhere(broken: &Broken, look: &Look) -> String {
    const PLACES_MAX: usize = 3;
    let mut out = String::new();
    let others = broken.findings.get(1..).unwrap_or_default();
    let shown = if look.is_verbose() {
        others.len()
    } else {
        others.len().min(PLACES_MAX)
    };
    for (at, other) in others[..shown].iter().enumerate() {
        let label = if at == 0 { "also" } else { "" };
        let line = format!("{} ({})", other.message, first_place(other));
        writeln!(out, "  {label:<9} {}", cut(&line, look.width.max(60) - 12)).expect(MEMORY);
    }
    if shown < others.len() {
        let more = view::count(others.len() - shown, "more finding");
        writeln!(out, "            … {more} of this rule in the reports").expect(MEMORY);
    }
    out
}

fn finding(record: &RunRecord, finding: &Finding, look: &Look) -> String {
    let mut out = wrapped(&finding.message, "  ", look.width);
    for (label, value) in [
        ("where", view::place(finding).as_str()),
        ("expected", &finding.expected),
        ("actual", &finding.actual),
    ] {
        let text = view::labelled(label, value);
        out += &wrapped(text.trim_end(), "", look.width);
    }
    out += &diff(&finding.diff, look);
    let exchange = cards::exchange_of(record, finding);
    if let Some(delivery) = cards::delivery_of(record, finding) {
        let label = if delivery.what == "callback" {
            "callback"
        } else {
            "event"
        };
        out += &view::labelled(label, &marked(&delivery.body, delivery.marked, look));
        if let Some(exchange) = exchange {
            out += &wrapped(
                view::labelled("caused by", &in_brief(exchange)).trim_end(),
                "",
                look.width,
            );
        }
    } else if let Some(exchange) = exchange {
        out += &wrapped(
            view::labelled("exchange", &in_brief(exchange)).trim_end(),
            "",
            look.width,
        );
        if finding.diff.is_empty() && !exchange.response_body.is_empty() {
            out += &view::labelled(
                "answer",
                &marked(&exchange.response_body, exchange.marked, look),
            );
        }
    }
    out += &view::labelled("repeat", &finding.reproduce);
    if finding.reproduce.is_empty() && !finding.scenario.is_empty() {
        let command = format!("conformant run --filter '{}'", finding.scenario);
        out += &view::labelled("repeat", &command);
    }
    out
}

/// `POST https://… → 201, application/json, 1,234 bytes (exchange 12)`.
fn in_brief(exchange: &ShownExchange) -> String {
    let answer = if exchange.status > 0 {
        let kind = exchange.response_headers.iter().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-type").then_some(value)
        });
        let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
        format!(
            "{}{kind}, {} bytes",
            exchange.status, exchange.response_bytes
        )
    } else {
        exchange.fault.clone()
    };
    format!(
        "{} {} -> {answer} (exchange {})",
        exchange.method, exchange.url, exchange.exchange
    )
}

/// A body with a sign before the line that is meant, cut to what stands around it.
fn marked(body: &str, line: usize, look: &Look) -> String {
    let lines: Vec<&str> = body.lines().collect();
    let from = line.saturating_sub(DIFF_LINES_MAX / 2 + 1).min(lines.len());
    let to = (from + DIFF_LINES_MAX / 2 + 4).min(lines.len());
    let told = lines[from..to].iter().enumerate().map(|(at, text)| {
        if from + at + 1 == line {
            Paint::Red.on(&format!("> {text}"), look)
        } else {
            format!("  {text}")
        }
    });
    told.collect::<Vec<_>>().join("\n")
}

fn diff(diff: &str, look: &Look) -> String {
    let labelled = view::labelled("diff", diff);
    let lines: Vec<&str> = labelled.lines().collect();
    let mut out = String::new();
    let shown = if look.is_verbose() {
        lines.len()
    } else {
        lines.len().min(DIFF_LINES_MAX)
    };
    for line in &lines[..shown] {
        let painted = match line.trim_start().chars().next() {
            Some('-') => Paint::Red.on(line, look),
            Some('+') => Paint::Green.on(line, look),
            _ => (*line).to_owned(),
        };
        out += &painted;
        out.push('\n');
    }
    if shown < lines.len() {
        writeln!(out, "    … {} more lines", lines.len() - shown).expect(MEMORY);
    }
    out
}

/// `    33×  flow/list-meta/page-size: PageSize was left out …`.
fn one_line(broken: &Broken, look: &Look) -> String {
    let message = broken.findings.first().map_or("", |f| f.message.as_str());
    let count = format!("{}×", broken.findings.len());
    let room = (look.width.max(60) - 4).saturating_sub(9 + broken.id.chars().count());
    format!(
        "    {count:>6} {}: {}\n",
        look.linked(broken.id),
        cut(message, room.max(20))
    )
}

fn painted(text: &str, paint: Paint, look: &Look) -> String {
    text.lines()
        .map(|line| format!("{}\n", paint.on(line, look)))
        .collect()
}

/// Rule, findings, scenarios, first place: last, so that the end of a log is enough.
fn table(cards: &[Card], look: &Look) -> String {
    let rows: Vec<&Broken> = cards.iter().flat_map(|card| &card.rules).collect();
    if rows.is_empty() {
        return String::new();
    }
    let shown = if look.is_verbose() {
        rows.len()
    } else {
        rows.len().min(ROWS_MAX)
    };
    let width = rows[..shown]
        .iter()
        .map(|row| row.id.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = format!(
        "\n{:<5} {:<width$} {:>8} {:>9}  first place\n",
        "", "rule", "findings", "scenarios"
    );
    for row in &rows[..shown] {
        let scenarios: std::collections::BTreeSet<&str> = row
            .findings
            .iter()
            .map(|f| f.scenario.as_str())
            .filter(|s| !s.is_empty())
            .collect();
        let (word, paint) = word(row.fails);
        let pad = " ".repeat(width - row.id.chars().count());
        let place = row
            .findings
            .first()
            .map(|f| first_place(f))
            .unwrap_or_default();
        writeln!(
            out,
            "{}  {}{pad} {:>8} {:>9}  {place}",
            paint.on(word, look),
            look.linked(row.id),
            row.findings.len(),
            scenarios.len(),
        )
        .expect(MEMORY);
    }
    if shown < rows.len() {
        let more = view::count(rows.len() - shown, "more broken rule");
        writeln!(out, "… {more} in the reports; `--verbose` tells all").expect(MEMORY);
    }
    out
}

fn first_place(finding: &Finding) -> String {
    let mut parts = Vec::new();
    if !finding.scenario.is_empty() {
        parts.push(finding.scenario.clone());
    }
    if finding.step > 0 {
        parts.push(format!("step {}", finding.step));
    } else if finding.exchange > 0 {
        parts.push(format!("entry {}", finding.exchange));
    }
    parts.join(", ")
}

fn summary(record: &RunRecord, look: &Look) -> String {
    let rules = listed(view::rule_counts(record).into_iter());
    let scenarios = record.summary.scenarios.iter();
    let scenarios = listed(scenarios.map(|(verdict, count)| (verdict.as_str(), *count)));
    // Time in a record is that of the run's clock, virtual offline: nothing for people.
    let exchanges = format!("{}, seed {}", record.summary.exchanges, record.seed);
    let waived: usize = record.waivers.iter().map(|waiver| waiver.findings).sum();
    let waivers = (!record.waivers.is_empty()).then(|| {
        format!(
            "{} accept {}",
            view::count(record.waivers.len(), "waiver"),
            view::count(waived, "finding")
        )
    });
    let mut out = String::new();
    let proof = record.proof.as_ref();
    let sample = proof.and_then(|proof| proof.sample.as_ref());
    for (label, text) in [
        ("rules", Some(rules)),
        ("scenarios", Some(scenarios)),
        ("exchanges", Some(exchanges)),
        ("waivers", waivers),
        ("proof", proof.map(view::proof)),
        ("sensitivity", sample.map(view::sensitivity)),
    ] {
        let Some(text) = text else { continue };
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

/// What was not judged, the commonest reason first, as what would change it.
fn not_judged(record: &RunRecord, look: &Look) -> String {
    let groups = cards::needs(record);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = "not judged\n".to_owned();
    let shown = if look.is_verbose() {
        groups.len()
    } else {
        groups.len().min(REASONS_MAX)
    };
    for (need, ids) in &groups[..shown] {
        let more = ids.len().saturating_sub(IDS_MAX);
        let some = ids[..ids.len().min(IDS_MAX)].join(", ");
        let more = if more > 0 {
            format!(", {more} more")
        } else {
            String::new()
        };
        let line = format!(
            "{}: {} ({some}{more})",
            view::count(ids.len(), "rule"),
            cards::advice(need),
        );
        out += &wrapped(&line, "  ", look.width);
    }
    if shown < groups.len() {
        let rules: usize = groups[shown..].iter().map(|(_, ids)| ids.len()).sum();
        writeln!(
            out,
            "  … {} for {} more reasons",
            view::count(rules, "rule"),
            groups.len() - shown
        )
        .expect(MEMORY);
    }
    out
}

/// Places where a change would not be noticed, and what would change that.
fn blind(record: &RunRecord, look: &Look) -> String {
    let sample = record
        .proof
        .as_ref()
        .and_then(|proof| proof.sample.as_ref());
    let Some(sample) = sample.filter(|sample| !sample.blind.is_empty()) else {
        return String::new();
    };
    let mut out = "what this run would not notice\n".to_owned();
    let shown = if look.is_verbose() {
        sample.blind.len()
    } else {
        sample.blind.len().min(BLIND_MAX)
    };
    for blind in &sample.blind[..shown] {
        out += &wrapped(&view::blind(blind), "  ", look.width);
    }
    let more = sample.blind.len() - shown + sample.more;
    if more > 0 {
        writeln!(
            out,
            "  … {} in the reports",
            view::count(more, "more place")
        )
        .expect(MEMORY);
    }
    out
}

/// What is broken and accepted.
fn waived(record: &RunRecord, look: &Look) -> String {
    let groups = view::waived(record);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = "waived\n".to_owned();
    let shown = if look.is_verbose() {
        groups.len()
    } else {
        groups.len().min(REASONS_MAX)
    };
    for (rule, findings) in groups.iter().take(shown) {
        let count = view::count(findings.len(), "finding");
        let line = format!("{rule}: {count}, {}", findings[0].waived);
        out += &wrapped(&line, "  ", look.width);
    }
    if shown < groups.len() {
        writeln!(
            out,
            "  … {}",
            view::count(groups.len() - shown, "more rule")
        )
        .expect(MEMORY);
    }
    out
}

/// What passed and failed in the same run before.
fn flaky(record: &RunRecord, look: &Look) -> String {
    let mut out = String::new();
    let flaky: Vec<_> = record
        .scenarios
        .iter()
        .filter(|s| !s.failed_before.is_empty())
        .collect();
    for result in flaky.iter().take(FLAKY_MAX) {
        let word = Paint::Yellow.on("FLAKY", look);
        writeln!(
            out,
            "\n{word} {}: passes now, and failed when the same run was made before",
            result.id
        )
        .expect(MEMORY);
        for failure in result.failed_before.iter().take(FLAKY_FINDINGS_MAX) {
            out += &wrapped(&text::excerpt(failure, 200), "  ", look.width);
        }
    }
    if flaky.len() > FLAKY_MAX {
        writeln!(out, "… {} more such scenarios", flaky.len() - FLAKY_MAX).expect(MEMORY);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::sample;
    use crate::verdict::{Level, RuleResult, Verdict};

    const STANDARD_RUN: &str = r#"
FAIL An execution has a third state
     flow · 1 rule · 2 findings in 1 scenario · fits the known defect flow/execution-status-wrong (a
         guess)
  What flow/execution/status asks for.
  flow/execution/status (must, D3 "Execution (FN)", line 37)
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
  exchange  POST http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions -> 201, application/json, 41
      bytes (exchange 4)
  repeat
    curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \
      -H 'Authorization: [redacted]'
  also      /status is "running", expected one of active, ended (flow/create-execution/happy, step …

WARN /shape is not a documented field
     flow · 1 rule · 1 finding in 1 scenario
  What flow/execution/no-other-fields asks for.
  flow/execution/no-other-fields (should, D3 "Execution (FN)", line 28)
  /shape is not a documented field
  where     flow/create-execution, scenario flow/create-execution/happy, step 1, exchange 4, at
      /shape
  expected  no field of that name
  actual    "round"
  exchange  POST http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions -> 201, application/json, 41
      bytes (exchange 4)
  answer
      {
        "sid": "FN00",
    >   "status": "running"
      }
  repeat
    curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \
      -H 'Authorization: [redacted]'

rules       pass 1 · fail 2 · open 1 · inconclusive 1 · not-applicable 2 · waived 1 · error 1 ·
    not-judged 1
scenarios   fail 1 · inconclusive 1 · not-applicable 1 · pass 1
exchanges   12, seed 7
waivers     1 waiver accept 3 findings
proof       1 of 2 passed rules are broken by some change of these answers (6 of 8 changes noticed)
    · vacuous 1, not judged
sensitivity 0.75: 6 of 8 changes drawn at random would have been found, at most 4 a scenario (flow
    0.75)
not judged
  2 rules: give the hook end_execution (flow/executions/ends, flow/executions/steps)
  1 rule: one page only (flow/executions/walk)
  1 rule: predicate panicked (flow/execution/steps)
  1 rule: timeout (flow/executions/order)
what this run would not notice
  flow/fetch-execution /context: 2 of 3 changes unnoticed, missing, near (give the hook
      end_execution)
  … 2 more places in the reports

      rule                           findings scenarios  first place
FAIL  flow/execution/status                 2         1  flow/create-execution/happy, step 1
WARN  flow/execution/no-other-fields        1         1  flow/create-execution/happy, step 1

not conformant: 1 rule broken, 1 warning
"#;

    #[test]
    fn a_run_reads_like_this() {
        let text = render(&sample(), &Look::default());
        assert!(
            text == STANDARD_RUN,
            "{}",
            crate::text::unified_diff(STANDARD_RUN, &text)
        );
    }

    #[test]
    fn a_quiet_run_says_what_is_wrong_and_no_more() {
        let look = Look {
            verbosity: Verbosity::Quiet,
            ..Look::default()
        };
        assert_eq!(
            render(&sample(), &look),
            "FAIL An execution has a third state (flow · 1 rule · 2 findings in 1 scenario)\n\
             WARN /shape is not a documented field (flow · 1 rule · 1 finding in 1 scenario)\n\
             not conformant: 1 rule broken, 1 warning\n"
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

    /// Every one of so many rules broken in so many ways.
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
    fn however_much_is_broken_a_person_can_read_it() {
        for rules in [46, 200, 1_058] {
            let record = broken_everywhere(rules);
            let text = render(&record, &Look::default());
            let lines = text.lines().count();
            assert!(lines <= LINES_MAX + 1 && lines > 200, "{rules}: {lines}");
            assert!(text.ends_with(&format!("not conformant: {rules} rules broken\n")));
            assert!(
                text.contains("FAIL  flow/thing-0/field"),
                "the table is there"
            );
            let all = Look {
                verbosity: Verbosity::Verbose,
                ..Look::default()
            };
            assert_eq!(render(&record, &all).matches("\n  where ").count(), rules);
        }
    }
}
