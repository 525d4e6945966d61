//! Prints defects within a line budget: one block each, then one line each, then a count.

use super::in_a_line::{elsewhere, observation};
use super::look::{Look, Paint, cut, wrapped};
use crate::cards::{self, Card};
use crate::invocation;
use crate::view::{self, Broken, Effect};
use conformant_record::{Finding, PayloadOrigin, RunRecord, ShownExchange, ShownPayload};

/// Further rules printed per defect.
const OTHERS_MAX: usize = 12;
/// Lines of a diff or callback.
const DIFF_LINES_MAX: usize = 24;
/// Consecutive lines on one side of a diff.
const SIDE_LINES_MAX: usize = 6;
/// Lines of a value or message.
const VALUE_LINES_MAX: usize = 6;
/// The place of the number of callbacks in the result of a wait for them.
const CALLBACK_COUNT: &str = "/count";
/// Printed before the first advice.
const ADVICE: &str = "\nadvice to clients: these requests are allowed but not recommended\n";

/// Blocks while the budget lasts, then the titles of further defects, then a count of the rest.
pub(super) fn blocks(record: &RunRecord, cards: &[Card], lines_max: usize, look: &Look) -> String {
    let mut out = String::new();
    let mut used = 0;
    let mut at = 0_usize;
    let titles: Vec<String> = cards.iter().map(|card| title(card, look)).collect();
    let lines_of = |texts: &[String]| texts.iter().map(|text| text.lines().count()).sum::<usize>();
    for card in cards {
        let mut block = block(record, card, look);
        let is_first_advice = card.effect == Effect::Advises
            && at
                .checked_sub(1)
                .is_none_or(|before| cards[before].effect != card.effect);
        if is_first_advice {
            block.insert_str(0, ADVICE);
        }
        let lines = block.lines().count();
        // Reserve the titles of the rest.
        if !look.is_verbose() && at > 0 && used + lines + lines_of(&titles[at + 1..]) > lines_max {
            break;
        }
        used += lines;
        at += 1;
        out += &block;
    }
    let rest = &titles[at..];
    if rest.is_empty() {
        return out;
    }
    out += "\n";
    let lines_left = lines_max.saturating_sub(used + 2);
    let mut shown = rest.len();
    while shown > 0 && lines_of(&rest[..shown]) + usize::from(shown < rest.len()) > lines_left {
        shown -= 1;
    }
    out.extend(rest[..shown].iter().map(String::as_str));
    if shown < rest.len() {
        let more = view::count(rest.len() - shown, "more defect");
        out += &format!("… {more} in the reports (see all: `--verbose`)\n");
    }
    out
}

/// Verdict, number, title and extent of a defect.
pub(super) fn title(card: &Card, look: &Look) -> String {
    let text = format!("{}. {} ({})", card.number, card.defect.title, card.extent());
    headed(card.effect, &text, look)
}

/// A text after the word of an effect, wrapped.
pub(super) fn headed(effect: Effect, text: &str, look: &Look) -> String {
    const MARGIN_COLUMNS: usize = 8;
    let (word, paint) = word(effect);
    let text = wrapped(&format!("{word} {text}"), "", MARGIN_COLUMNS, look.width);
    format!("{}{}", paint.on(word, look), &text[word.len()..])
}

/// The first word of a line about it, and its color.
pub(super) fn word(effect: Effect) -> (&'static str, Paint) {
    let paint = match effect {
        Effect::Fails => Paint::Red,
        Effect::Warns => Paint::Yellow,
        Effect::Advises => Paint::Blue,
    };
    (effect.word(), paint)
}

fn block(record: &RunRecord, card: &Card, look: &Look) -> String {
    const MARGIN: &str = "     ";
    let title = &card.defect.title;
    let heading = format!("{}. {title}", card.number);
    let mut out = format!("\n{}", headed(card.effect, &heading, look));
    let mut extent = card.extent();
    if card.blocked_scenarios > 0 {
        let stopped = view::count(card.blocked_scenarios, "more scenario");
        extent += &format!(" · stops {stopped}");
    }
    if card.hook_failures > 0 {
        let failed = view::count(card.hook_failures, "scenario");
        extent += &format!(" · probably makes hooks fail in {failed}");
    }
    if let Some(guess) = card.guess() {
        extent += &format!(" · {guess}");
    }
    let extent = wrapped(&extent, MARGIN, 0, look.width);
    out += &painted(&extent, Paint::Dim, look);
    let Some((first, others)) = card.rules.split_first() else {
        return out;
    };
    out += &rule(record, first, title, look);
    out + &others_broken(card, others, look)
}

/// Further rules, with the warnings of a failing defect apart.
fn others_broken(card: &Card, others: &[Broken], look: &Look) -> String {
    let shown = look.shown(others.len(), OTHERS_MAX);
    let (same, lighter): (Vec<&Broken>, Vec<&Broken>) = others[..shown]
        .iter()
        .partition(|other| other.effect == card.effect);
    let mut out = String::new();
    for (heading, rules) in [
        ("  other rules of this defect\n", same),
        (
            "  other rules, as warnings, which fail the run only with --strict\n",
            lighter,
        ),
    ] {
        if !rules.is_empty() {
            out += heading;
        }
        for rule in rules {
            out += &one_line(rule, look);
        }
    }
    if shown < others.len() {
        let more = view::count(others.len() - shown, "more rule");
        out += &format!("    … {more} in the reports (see all: `--verbose`)\n");
    }
    out
}

/// A broken rule: sentence, observation, place, exchange and command.
fn rule(record: &RunRecord, broken: &Broken, title: &str, look: &Look) -> String {
    let mut out = String::new();
    // The sentence of a rule about one field says nothing about a document of another type.
    let is_of_whole = |finding: &&Finding| finding.pointer.is_empty() && finding.kind == "type";
    let is_of_whole = broken.findings.first().is_some_and(is_of_whole);
    let says = broken.rule.filter(|_| !is_of_whole);
    let says = says.map_or("", |rule| rule.says.as_str());
    // Without a fault that it resembles the title already contains the sentence.
    if !says.is_empty() && !title.starts_with(says.trim_end_matches('.')) {
        out += &wrapped(says, "  ", 2, look.width);
    }
    let origin = broken.origin();
    out += &format!(
        "  {} ({origin})\n",
        Paint::Bold.on(&look.linked(broken.id), look)
    );
    if let Some(first) = broken.findings.first() {
        // The lines `expected` and `actual` say the same.
        let says_both = [("expected", "got"), ("sent", "came back as")]
            .into_iter()
            .any(|(due, seen)| {
                first.message == format!("{due} {}, {seen} {}", first.expected, first.actual)
            });
        if !title.ends_with(first.message.as_str()) && !says_both {
            out += &limited(&wrapped(&first.message, "  ", 2, look.width), look);
        }
        out += &finding_lines(record, first, look);
    }
    out += &elsewhere(broken, look);
    out
}

/// The place of a finding, its values, what shows it, and the commands.
fn finding_lines(record: &RunRecord, finding: &Finding, look: &Look) -> String {
    let mut out = String::new();
    let payload = cards::payload_of(record, finding);
    let mut place = view::place(finding);
    let count = payload.and_then(|payload| callback_count(finding, payload));
    if let Some(count) = &count {
        // The count is made by this program and has no place in a document.
        let without = place.strip_suffix(&format!("at {CALLBACK_COUNT}"));
        place = without.unwrap_or(&place).trim_end_matches(", ").to_owned();
        out += &labelled_wrapped("received", count, look);
    }
    let place = labelled_wrapped("where", &place, look);
    out.insert_str(0, &place);
    for (label, value) in [("expected", &finding.expected), ("actual", &finding.actual)] {
        out += &labelled_wrapped(label, value, look);
    }
    let both = format!("-{}\n+{}", finding.expected, finding.actual);
    if !finding.diff.trim_end().ends_with(&format!("@@\n{both}")) {
        out += &diff(&finding.diff, look);
    }
    let exchange = cards::exchange_of(record, finding);
    if let Some(payload) = payload {
        let (label, label_of_action) = match &payload.what {
            PayloadOrigin::Hook(name) => (format!("result of {name}"), "called as"),
            PayloadOrigin::Callback => ("callback".to_owned(), "hook before"),
            PayloadOrigin::Event(_) => ("event".to_owned(), "hook before"),
        };
        if count.is_none() || finding.actual != "0" {
            out += &view::labelled(&label, &mark_line(&payload.body, payload.marked, look));
        }
        out += &labelled_wrapped(label_of_action, &payload.action, look);
        if let Some(exchange) = exchange {
            let brief = format!("{} (exchange {})", in_brief(exchange), exchange.exchange);
            out += &labelled_wrapped("request before", &brief, look);
        }
    } else if let Some(exchange) = exchange {
        // The line `where` has its number.
        out += &labelled_wrapped("exchange", &in_brief(exchange), look);
        out += &earlier(record, finding, look);
        if finding.diff.is_empty() && !exchange.response_body.is_empty() {
            out += &view::labelled(
                "response",
                &mark_line(&exchange.response_body, exchange.marked, look),
            );
        }
    }
    out += &view::labelled("request", &finding.reproduce);
    if let Some(note) = view::credentials_note(&finding.reproduce) {
        out += &labelled_wrapped("with", &note, look);
    }
    if payload.is_none() && exchange.is_some_and(|e| e.method == "POST" && e.status == 201) {
        let note = "this command creates another resource, or is refused because this one exists";
        out += &labelled_wrapped("note", note, look);
    }
    if let Some(command) = invocation::reproduce_command(record, finding) {
        out += &view::labelled(view::RUN_AGAIN, &command);
    }
    out
}

/// The exchange that showed the expected value, if another one was before.
fn earlier(record: &RunRecord, finding: &Finding, look: &Look) -> String {
    let number = finding.earlier_exchange;
    if number == 0 || number == finding.exchange {
        return String::new();
    }
    let brief = match cards::exchange_at(record, number, "") {
        Some(exchange) => format!("exchange {number}: {}", in_brief(exchange)),
        None => format!("exchange {number}"),
    };
    labelled_wrapped("before", &brief, look)
}

/// The number of received callbacks, if the finding is about it.
fn callback_count(finding: &Finding, payload: &ShownPayload) -> Option<String> {
    let is_count = payload.what == PayloadOrigin::Callback && finding.pointer == CALLBACK_COUNT;
    let count = finding.actual.parse().ok().filter(|_| is_count)?;
    Some(view::count(count, "callback"))
}

/// The request with its path and the response: `POST /v1/Flows -> 201, application/json, 1234 bytes`.
fn in_brief(exchange: &ShownExchange) -> String {
    const PATH_CHARACTERS_MAX: usize = 48;
    let answer = if exchange.fault.is_empty() {
        let kind = exchange.response_headers.iter().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-type").then_some(value)
        });
        let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
        let odd: String = exchange
            .oddities
            .iter()
            .map(|odd| format!(", {odd}"))
            .collect();
        format!(
            "{}{kind}, {} bytes{odd}",
            exchange.status, exchange.response_bytes
        )
    } else {
        exchange.fault.clone()
    };
    let path = exchange.url.split_once("://");
    let path = path.and_then(|(_, rest)| Some(&rest[rest.find('/')?..]));
    let path = path.unwrap_or(&exchange.url);
    // The command has the whole address. A long one would be wrapped between method and path.
    let path = match path.chars().count() {
        ..=PATH_CHARACTERS_MAX => path.to_owned(),
        _ => conformant_record::with_short_ids(path),
    };
    format!("{} {path} -> {answer}", exchange.method)
}

/// A body with the marked line, cut to its surroundings.
fn mark_line(body: &str, line: usize, look: &Look) -> String {
    let lines: Vec<&str> = body.lines().collect();
    let from = line.saturating_sub(DIFF_LINES_MAX / 2 + 1).min(lines.len());
    let to = (from + DIFF_LINES_MAX / 2 + 4).min(lines.len());
    let (from, to) = match look.is_verbose() {
        true => (0, lines.len()),
        false => (from, to),
    };
    let numbered = lines[from..to].iter().enumerate().map(|(at, text)| {
        if from + at + 1 == line {
            Paint::Red.on(&format!("> {text}"), look)
        } else {
            format!("  {text}")
        }
    });
    let left_out = |lines: usize| (lines > 0).then(|| format!("  {}", more_lines(lines)));
    let before = left_out(from).into_iter();
    let shown = before.chain(numbered).chain(left_out(lines.len() - to));
    shown.collect::<Vec<_>>().join("\n")
}

/// A value after its label, wrapped.
fn labelled_wrapped(label: &str, value: &str, look: &Look) -> String {
    const LABEL_COLUMNS: usize = 10;
    let text = wrapped(
        view::labelled(label, value).trim_end(),
        "",
        LABEL_COLUMNS,
        look.width,
    );
    limited(&text, look)
}

/// The first lines of a value or message, which a target can make as long as it likes.
fn limited(text: &str, look: &Look) -> String {
    let lines = text.lines().count();
    if look.is_verbose() || lines <= VALUE_LINES_MAX + 1 {
        return text.to_owned();
    }
    let shown = text.lines().take(VALUE_LINES_MAX);
    let shown: String = shown.map(|line| format!("{line}\n")).collect();
    shown + &left_out(lines - VALUE_LINES_MAX)
}

/// Expected and actual lines; long one-sided runs are cut.
fn diff(diff: &str, look: &Look) -> String {
    if diff.is_empty() {
        return String::new();
    }
    let mut lines: Vec<&str> = diff
        .lines()
        .filter(|line| {
            !["--- ", "+++ ", "@@"]
                .iter()
                .any(|head| line.starts_with(head))
        })
        .collect();
    let mut out = format!("  {:<9} - expected, + actual\n", "diff");
    let cut_after = look.shown(lines.len(), DIFF_LINES_MAX);
    let left = lines.len() - cut_after;
    lines.truncate(cut_after);
    let mut alike = 0;
    let mut skipped = 0;
    let mut sign = None;
    for line in lines {
        let own = line.chars().next();
        alike = if own == sign { alike + 1 } else { 1 };
        sign = own;
        let is_change = matches!(own, Some('-' | '+'));
        if is_change && alike > SIDE_LINES_MAX && !look.is_verbose() {
            skipped += 1;
            continue;
        }
        out += &left_out(std::mem::take(&mut skipped));
        let painted = match own {
            Some('-') => Paint::Red.on(line, look),
            Some('+') => Paint::Green.on(line, look),
            // Unchanged lines only give context.
            _ if look.is_verbose() => line.to_owned(),
            _ => cut(line, look.width.max(60) - 4),
        };
        out += &format!("    {painted}\n");
    }
    out + &left_out(skipped + left)
}

fn left_out(lines: usize) -> String {
    match lines {
        0 => String::new(),
        n => format!("    {}\n", more_lines(n)),
    }
}

fn more_lines(lines: usize) -> String {
    format!("… {}", view::count(lines, "more line"))
}

/// `    33×  flow/list-meta/page-size: PageSize was left out …`.
fn one_line(broken: &Broken, look: &Look) -> String {
    let first = broken.findings.first();
    let (count, first_of) = match broken.findings.len() {
        1 => (String::new(), ""),
        n => (format!("{n}×"), ", first"),
    };
    let columns = match look.is_verbose() {
        true => usize::MAX,
        false => {
            (look.width.max(60) - 4).saturating_sub(9 + broken.id.chars().count() + first_of.len())
        }
    };
    format!(
        "    {count:>6} {}{first_of}: {}\n",
        look.linked(broken.id),
        first.map_or_else(String::new, |first| observation(
            "",
            "",
            first,
            columns.max(20)
        ))
    )
}

fn painted(text: &str, paint: Paint, look: &Look) -> String {
    text.lines()
        .map(|line| format!("{}\n", paint.on(line, look)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::sample::{assert_contains, sample};
    use conformant_record::{Level, Subject};

    fn summarize(record: &RunRecord) -> String {
        let cards = cards::cards(record, Settings::default());
        blocks(record, &cards, 300, &Look::default())
    }

    #[test]
    fn advice_to_clients_has_a_heading_of_its_own() {
        let mut record = sample();
        assert!(!summarize(&record).contains("advice to clients"));
        for finding in record
            .findings
            .iter_mut()
            .filter(|f| f.level == Level::Should)
        {
            finding.subject = Subject::Request;
        }
        let text = summarize(&record);
        assert!(
            text.contains(&format!(
                "{ADVICE}\nNOTE 2. /shape is not a documented field\n"
            )),
            "{text}"
        );
    }

    #[test]
    fn a_value_that_one_side_lacks_is_cut_short() {
        let long: String = (0..9).map(|n| format!("+{n}\n")).collect();
        let text = diff(
            &format!("--- expected\n+++ actual\n@@ -1 +1 @@\n a\n-b\n{long} z\n"),
            &Look::default(),
        );
        assert_eq!(
            text,
            "  diff      - expected, + actual\n     a\n    -b\n    +0\n    +1\n    +2\n    +3\n    \
             +4\n    +5\n    … 3 more lines\n     z\n"
        );
    }

    #[test]
    fn other_places_are_grouped_by_observation() {
        let mut record = sample();
        let first = record.findings[0].clone();
        for n in 0..5 {
            record.findings.push(Finding {
                message: format!("/sid is \"FN{n}23456789abcdef0123456789abcdef\""),
                ..first.clone()
            });
        }
        let text = summarize(&record);
        assert_contains(&text, &["  also      5×, first: /sid is \"FN"]);
    }

    #[test]
    fn a_value_of_many_lines_is_cut_unless_verbose() {
        let long = "a word ".repeat(200);
        let text = labelled_wrapped("actual", &long, &Look::default());
        assert!(text.lines().count() == VALUE_LINES_MAX + 1, "{text}");
        assert!(text.contains(" more lines\n"), "{text}");
        let look = Look {
            verbosity: crate::console::look::Verbosity::Verbose,
            ..Look::default()
        };
        assert!(labelled_wrapped("actual", &long, &look).lines().count() > 10);
    }

    #[test]
    fn a_body_of_many_lines_says_how_many_are_left_out_unless_verbose() {
        let body: Vec<String> = (1..=40).map(|n| format!("line {n}")).collect();
        let text = mark_line(&body.join("\n"), 20, &Look::default());
        assert!(text.starts_with("  … 7 more lines\n  line 8\n"), "{text}");
        assert!(text.contains("\n> line 20\n"), "{text}");
        assert!(text.ends_with("  line 23\n  … 17 more lines"), "{text}");
        let look = Look {
            verbosity: crate::console::look::Verbosity::Verbose,
            ..Look::default()
        };
        let text = mark_line(&body.join("\n"), 20, &look);
        assert_eq!(text.lines().count(), 40);
    }

    #[test]
    fn the_label_of_a_payload_says_what_it_is() {
        let mut record = sample();
        record.findings.truncate(1);
        let finding = &mut record.findings[0];
        (finding.exchange, finding.step) = (0, 3);
        finding.pointer = record.deliveries[0].pointer.clone();
        let text = summarize(&record);
        assert!(
            text.contains("  callback\n") && text.contains("  request before"),
            "{text}"
        );
        record.findings[0].pointer = CALLBACK_COUNT.to_owned();
        record.findings[0].actual = "0".to_owned();
        record.deliveries[0].pointer = CALLBACK_COUNT.to_owned();
        let text = summarize(&record);
        assert!(text.contains("  received  0 callbacks\n"), "{text}");
        assert!(
            !text.contains("at /count") && !text.contains("  callback\n"),
            "{text}"
        );
        record.deliveries[0].what = PayloadOrigin::Hook("show_device".to_owned());
        record.deliveries[0].missing = false;
        let text = summarize(&record);
        assert!(
            text.contains("  result of show_device\n") && text.contains("  request before"),
            "{text}"
        );
    }
}
