//! The card of a defect: its rules with expectation, observation, exchange, scenario and command.

use super::page::TEXT_CHARACTERS_MAX;
use super::words::as_it_was;
use crate::cards::{self, Card};
use crate::invocation;
use crate::view::{self, Broken, Effect};
use conformant_base::text;
use conformant_record::{
    Finding, PayloadOrigin, RaceTimes, RunRecord, ScenarioResult, ShownExchange, ShownPayload,
    StepResult,
};
use minijinja::{Value, context};
use std::collections::{BTreeMap, BTreeSet};

/// Lines of one side of a diff.
const DIFF_LINES_MAX: usize = 14;
/// Unchanged lines kept around a change.
const AROUND: usize = 3;
/// Rows of observations per rule.
const ROWS_MAX: usize = 5;
/// Scenarios per row.
const NAMES_MAX: usize = 4;
/// Steps of a scenario.
const STEPS_MAX: usize = 24;
/// Bytes of an expectation or observation in a collapsed row.
const MISMATCH_BYTES_MAX: usize = 140;
/// Defects whose timelines have requests and responses.
const TIMELINES_MAX: usize = 20;
/// Lines of a body.
const LINES_MAX: usize = 40;
/// Width of the time of a race, in drawing units.
const BAR_WIDTH: f64 = 1000.0;

/// How much of the scenario of a finding is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timeline {
    /// Each exchange, hook and callback with both sides.
    Full,
    /// Steps without their sides.
    Lines,
    /// Steps without their sides, only for a finding without an exchange and for a race.
    Deliveries,
}

/// Details of rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Everything.
    Full,
    /// Titles only.
    Titles,
}

/// The card at an index; the first `anatomies` rules have full details.
pub(super) fn card(
    record: &RunRecord,
    card: &Card,
    at: usize,
    open: bool,
    anatomies: usize,
    depth: Depth,
) -> Value {
    let defect = &card.defect;
    let rules = card.rules.iter().enumerate().map(|(n, broken)| {
        let is_open = at == 0 && n == 0;
        let timeline = match (n, at < TIMELINES_MAX) {
            (0, true) => Timeline::Full,
            (0, false) => Timeline::Lines,
            _ => Timeline::Deliveries,
        };
        rule(
            record,
            broken,
            is_open,
            (n < anatomies).then_some(timeline),
            depth,
        )
    });
    context! {
        rank => at + 1, open,
        state => state(card.effect),
        title => cut(&defect.title),
        extent => card.extent(),
        known => match defect.similar_faults.as_slice() { [one] => one.as_str(), _ => "" },
        known_count => defect.similar_faults.len(),
        mismatch_of => titled(card).and_then(mismatch),
        rules => rules.collect::<Vec<_>>(),
    }
}

fn state(effect: Effect) -> &'static str {
    match effect {
        Effect::Fails => "fail",
        Effect::Warns => "warn",
        Effect::Advises => "advice",
    }
}

/// The rule whose first finding the title describes, or else the first rule.
fn titled<'a>(card: &'a Card) -> Option<&'a Broken<'a>> {
    let is_named = |broken: &&Broken| {
        let first = broken.findings.first();
        let field = first.and_then(|first| first.pointer.rsplit('/').next());
        field.is_some_and(|field| !field.is_empty() && card.defect.title.contains(field))
    };
    card.rules.iter().find(is_named).or(card.rules.first())
}

/// The first mismatch of a rule, for a collapsed row.
fn mismatch(broken: &Broken) -> Option<Value> {
    let first = broken.findings.first()?;
    let line = |text: &str| {
        let words = as_it_was(text);
        let words: Vec<&str> = words.split_whitespace().collect();
        text::excerpt(&words.join(" "), MISMATCH_BYTES_MAX).into_owned()
    };
    Some(context! { expected => line(&first.expected), actual => line(&first.actual) })
}

/// The rule with its first finding; without a timeline only what was expected and observed.
fn rule(
    record: &RunRecord,
    broken: &Broken,
    open: bool,
    timeline: Option<Timeline>,
    depth: Depth,
) -> Value {
    let known = broken.rule;
    let says = known.map_or("", |rule| rule.says.as_str());
    let first = broken.findings.first().copied();
    let history = record.history.as_ref();
    let is_new = history.is_some_and(|history| history.new.iter().any(|id| id == broken.id));
    let mut counts = view::count(broken.findings.len(), "finding");
    if let Some(rule) = known.filter(|rule| rule.judged > 0) {
        counts += &format!(", judged {}×", rule.judged);
    }
    let head = context! {
        id => broken.id, open, counts, new => is_new,
        state => state(broken.effect),
        says => if says.is_empty() { broken.id } else { says },
        level => broken.findings.first().map_or("", |f| f.level.word()),
        body => depth == Depth::Full && first.is_some(),
        mismatch => mismatch(broken),
    };
    match first {
        Some(first) if depth == Depth::Full => {
            context! { ..body(record, broken, first, timeline), ..head }
        }
        Some(_) | None => head,
    }
}

fn body(record: &RunRecord, broken: &Broken, first: &Finding, timeline: Option<Timeline>) -> Value {
    let in_full = timeline.is_some();
    let known = broken.rule;
    let source = known
        .map(|rule| rule.source.to_string())
        .unwrap_or_default();
    let history = record.history.as_ref();
    let mut place = String::new();
    if !first.scenario.is_empty() {
        place = format!("first found in {}", view::place(first));
    }
    if let Some(seen) = history.and_then(|history| history.first_seen.get(broken.id)) {
        place += &format!(", broken since {seen}");
    }
    let sides = in_full.then(|| columns(&first.diff));
    let (left, right) = sides.unwrap_or_default();
    let exchange = cards::exchange_of(record, first).filter(|_| in_full);
    let payload = cards::payload_of(record, first).filter(|_| in_full);
    let story = cards::scenario_of(record, first).filter(|result| match timeline {
        Some(Timeline::Full | Timeline::Lines) => true,
        // The steps before a callback or event are more useful than one exchange.
        Some(Timeline::Deliveries) => first.exchange == 0 || has_race(result),
        None => false,
    });
    let story = story.map(|result| scenario(record, result, first, timeline));
    // The timeline contains the exchange.
    let exchange = exchange.filter(|_| timeline != Some(Timeline::Full) || story.is_none());
    let shown = in_full.then(|| rows(&broken.findings));
    let (rows, rows_head) = shown.unwrap_or_default();
    let quotes = record.quotes.get(broken.id).into_iter().flatten();
    let quotes = quotes.map(|quote| context! { line => quote.line, text => cut(&quote.text) });
    context! {
        origin => source, place, quotes => quotes.collect::<Vec<_>>(),
        basis => known.and_then(|rule| rule.basis).map(|basis| basis.word()),
        message => as_it_was(&cut(&first.message)),
        expected => as_it_was(&cut(&first.expected)), actual => as_it_was(&cut(&first.actual)),
        left, right,
        exchange => exchange.map(|exchange| self::exchange(exchange, payload)),
        payload => payload.map(self::payload),
        story,
        commands => commands(record, first),
        rows, rows_head,
    }
}

fn commands(record: &RunRecord, finding: &Finding) -> Vec<String> {
    let mut commands = Vec::new();
    if !finding.reproduce.is_empty() {
        commands.push(cut(&finding.reproduce));
    }
    commands.extend(invocation::reproduce_command(record, finding).map(|command| cut(&command)));
    commands
}

fn cut(text: &str) -> String {
    text::excerpt(text, TEXT_CHARACTERS_MAX).into_owned()
}

type Lines = Vec<(&'static str, String)>;

/// A unified diff in two columns of equal height; missing lines are blank.
fn columns(diff: &str) -> (Lines, Lines) {
    let (mut left, mut right): (Lines, Lines) = (Vec::new(), Vec::new());
    let level = |left: &mut Lines, right: &mut Lines| {
        let height = left.len().max(right.len());
        left.resize(height, ("", " ".to_owned()));
        right.resize(height, ("", " ".to_owned()));
    };
    let lines = diff
        .lines()
        .filter(|l| !l.starts_with("--- ") && !l.starts_with("+++ ") && !l.starts_with("@@"));
    for line in lines {
        let mut letters = line.chars();
        let first = letters.next();
        let rest = text::excerpt(letters.as_str(), 300).into_owned();
        match first {
            Some('-') => left.push(("d", rest)),
            Some('+') => right.push(("a", rest)),
            _ => {
                level(&mut left, &mut right);
                left.push(("", rest.clone()));
                right.push(("", rest));
            }
        }
    }
    level(&mut left, &mut right);
    if left.len() > DIFF_LINES_MAX {
        let change = left
            .iter()
            .zip(&right)
            .position(|(l, r)| !l.0.is_empty() || !r.0.is_empty());
        let from = change.unwrap_or(0).saturating_sub(AROUND);
        for side in [&mut left, &mut right] {
            side.drain(..from);
            side.truncate(DIFF_LINES_MAX);
        }
    }
    (left, right)
}

fn body_lines(body: &str, marked: usize) -> Lines {
    let lines = body.lines().take(LINES_MAX).enumerate().map(|(at, line)| {
        let class = if at + 1 == marked {
            "a"
        } else if line.trim_start().starts_with('…') {
            "cut"
        } else {
            ""
        };
        (class, text::excerpt(line, 400).into_owned())
    });
    lines.collect()
}

fn exchange(exchange: &ShownExchange, payload: Option<&ShownPayload>) -> Value {
    let kind = exchange.response_headers.join(" · ");
    let status = if exchange.status > 0 {
        exchange.status.to_string()
    } else {
        "no response".to_owned()
    };
    let mut sent: Lines = exchange
        .request_headers
        .iter()
        .map(|line| ("", line.clone()))
        .collect();
    if !exchange.request_body.is_empty() {
        sent.push(("", " ".to_owned()));
        sent.extend(body_lines(&exchange.request_body, 0));
    }
    let cause = if payload.is_some() {
        "Caused by exchange"
    } else {
        "Exchange"
    };
    context! {
        head => format!("{cause} {}", exchange.exchange),
        brief => format!("{} {} → {status}{}", exchange.method, exchange.operation, took(exchange)),
        method => exchange.method.as_str(),
        url => exchange.url.as_str(),
        status,
        kind => if exchange.fault.is_empty() {
            let odd: String = exchange.oddities.iter().map(|odd| format!(" · {odd}")).collect();
            format!("{kind} · {} bytes{odd}", exchange.response_bytes)
        } else {
            exchange.fault.clone()
        },
        sent,
        came => body_lines(&exchange.response_body, exchange.marked),
    }
}

fn took(exchange: &ShownExchange) -> String {
    match exchange.milliseconds {
        0 => String::new(),
        n => format!(", {n} ms"),
    }
}

fn payload(payload: &ShownPayload) -> Value {
    let head = match &payload.what {
        PayloadOrigin::Hook(name) => format!("Result of the hook {name}"),
        PayloadOrigin::Callback => "Received callbacks".to_owned(),
        // Without a body it is about the events that did not come.
        PayloadOrigin::Event(_) if payload.body.is_empty() => "Events".to_owned(),
        PayloadOrigin::Event(kind) => format!("Received: {kind}"),
    };
    let head = match (&payload.what, payload.action.as_str()) {
        (_, "") => head,
        (PayloadOrigin::Hook(_), action) => format!("{head}, called as {action}"),
        (_, action) => format!("{head}, after {action}"),
    };
    context! { head, lines => body_lines(&payload.body, payload.marked) }
}

/// Steps of a scenario with the broken one last, and later ones if they fit.
fn scenario(
    record: &RunRecord,
    result: &ScenarioResult,
    finding: &Finding,
    timeline: Option<Timeline>,
) -> Value {
    let own = |step: &StepResult| step.step == finding.step;
    let broken = result
        .steps
        .iter()
        .position(|step| own(step) && !step.broken.is_empty());
    let broken = broken
        .or_else(|| result.steps.iter().rposition(own))
        .unwrap_or(result.steps.len());
    let to = (broken + 3).min(result.steps.len());
    let from = to.saturating_sub(STEPS_MAX);
    let steps = result.steps[from..to].iter().map(|step| {
        let is_bad = step.broken.contains(&finding.rule);
        let class = match (is_bad, step.setup, step.exchange > 0) {
            // An expected but missing message.
            (true, _, false) if step.outcome.starts_with("no ") => "ghost",
            (true, _, _) => "bad",
            (false, true, _) => "pass setup",
            (false, false, true) => "pass",
            (false, false, false) => "",
        };
        let is_open = is_bad && step.exchange == finding.exchange;
        let more = (timeline == Some(Timeline::Full)).then(|| sides(record, step, finding));
        let mut notes = Vec::new();
        if step.setup {
            notes.push("preparation".to_owned());
        }
        if step.exchange > 0 {
            notes.push(format!("exchange {}", step.exchange));
        }
        if is_bad {
            notes.push(format!(
                "expected {}",
                as_it_was(&text::excerpt(&finding.expected, 200))
            ));
        }
        context! {
            class, verb => step.verb.as_str(), what => step.what.as_str(),
            outcome => step.outcome.as_str(),
            time => step.at.map(|at| format!("+{at:.3}")),
            note => notes.join(" · "),
            more => more.flatten(), open => is_open,
            bar => step.race.as_ref().map(|race| bar(race, &result.steps)),
        }
    });
    context! { id => result.id.as_str(), steps => steps.collect::<Vec<_>>() }
}

/// The two sides of a step: request and response, or what a hook or callback carried.
fn sides(record: &RunRecord, step: &StepResult, finding: &Finding) -> Option<Value> {
    if step.exchange > 0 {
        let pointer = finding.pointer.as_str();
        let pointer = Some(pointer).filter(|_| step.exchange == finding.exchange);
        let exchange = cards::exchange_at(record, step.exchange, pointer.unwrap_or_default())?;
        return Some(self::exchange(exchange, None));
    }
    if step.sent.is_empty() && step.received.is_empty() {
        return None;
    }
    let (sent, came) = match step.verb.as_str() {
        "callback" => ("received", step.outcome.as_str()),
        _ => ("arguments", "result"),
    };
    Some(context! {
        method => sent, url => "", sent => body_lines(&step.sent, 0),
        status => came, kind => "", came => body_lines(&step.received, 0),
    })
}

fn has_race(result: &ScenarioResult) -> bool {
    result.steps.iter().any(|step| step.race.is_some())
}

/// A request of a race as a bar on the time of the race: bars of requests at the same time overlap.
fn bar(race: &RaceTimes, steps: &[StepResult]) -> Value {
    let races = steps.iter().filter_map(|step| step.race.as_ref());
    let others = races.filter(|other| other.number == race.number);
    let end = others.map(|other| other.received).fold(0.001, f64::max);
    let place = |at: f64| format!("{:.1}", at / end * BAR_WIDTH);
    context! {
        x => place(race.sent),
        width => place((race.received - race.sent).max(end / BAR_WIDTH)),
        says => format!("sent at {:.2} ms, answered at {:.2} ms", race.sent, race.received),
        answer => cut(&race.answer),
    }
}

/// All findings of a rule by observation, without long identifiers.
fn rows(findings: &[&Finding]) -> (Vec<Value>, String) {
    if findings.len() < 2 {
        return (Vec::new(), String::new());
    }
    let mut groups: BTreeMap<String, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for finding in findings {
        let operation = if finding.operation.is_empty() {
            String::new()
        } else {
            format!("{}: ", finding.operation)
        };
        let seen = format!(
            "{operation}{}",
            conformant_record::without_names(&finding.message)
        );
        let group = groups.entry(cut(&seen)).or_default();
        group.0 += 1;
        group.1.insert(finding.scenario.as_str());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, _))| usize::MAX - count);
    let mut rows: Vec<Value> = groups
        .iter()
        .take(ROWS_MAX)
        .map(|(message, (count, scenarios))| {
            let ids: Vec<&str> = scenarios
                .iter()
                .copied()
                .filter(|id| !id.is_empty())
                .collect();
            let mut places = cards::group_by_folder(&ids, NAMES_MAX);
            if places.len() > NAMES_MAX {
                places.truncate(NAMES_MAX);
                places.push("…".to_owned());
            }
            context! { count, message, where => places.join(" · ") }
        })
        .collect();
    let rest = groups.get(ROWS_MAX..).unwrap_or_default();
    if !rest.is_empty() {
        let count: usize = rest.iter().map(|(_, (count, _))| count).sum();
        let forms = view::count(rest.len(), "other observation");
        rows.push(
            context! { count, message => format!("in {forms}: see the JSON record"), where => "" },
        );
    }
    (
        rows,
        format!("All {} findings by observation", findings.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_two_columns_of_one_height() {
        let (left, right) = columns(
            "--- expected\n+++ actual\n@@ -1 +1 @@\n {\n-  \"a\": 1\n+  \"a\": 2\n+  \"b\": 3\n }\n",
        );
        assert_eq!(left.len(), right.len());
        assert_eq!(left[1], ("d", "  \"a\": 1".to_owned()));
        assert_eq!((left[2].0, right[2].0), ("", "a"));
        assert_eq!(left[3].1, right[3].1);
    }

    #[test]
    fn a_long_diff_is_cut_around_its_first_change() {
        let same: String = (0..50).map(|n| format!(" line {n}\n")).collect();
        let (left, right) = columns(&format!("{same}-old\n+new\n{same}"));
        assert_eq!((left.len(), right.len()), (DIFF_LINES_MAX, DIFF_LINES_MAX));
        assert_eq!((left[AROUND].0, right[AROUND].0), ("d", "a"));
    }
}
