//! Writes the title of a defect: operation, field, expected and actual value of its first finding.

use super::Finding;
use conformant_base::text::count;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Title of the findings of a defect: the first one in words, with the number of other operations that show the same.
pub(super) fn title_of<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> Option<String> {
    let first = findings.clone().next()?;
    let seen = replace_names(&observation(first), shortened);
    let operation = first.operation.as_str();
    let subject = if operation.is_empty() {
        topic(first)
    } else {
        operation
    };
    if subject.is_empty() || (!operation.is_empty() && seen.starts_with(operation)) {
        return Some(short(&seen));
    }
    let place = field(&first.pointer);
    let same = findings.filter(|f| f.kind == first.kind && field(&f.pointer) == place);
    let others: BTreeSet<&str> = same.map(|f| f.operation.as_str()).collect();
    let others = others.iter().filter(|o| !o.is_empty() && **o != operation);
    let others = match others.count() {
        0 => String::new(),
        n => format!(" and {}", count(n, "more operation")),
    };
    Some(format!("{subject}{others}: {}", short(&seen)))
}

/// A finding in words.
pub fn title(finding: &Finding) -> String {
    title_of(std::iter::once(finding)).unwrap_or_default()
}

/// What a rule without an operation is about: `flow/execution/status` is about `execution`. The rule itself, where it
/// is named after its scenario.
fn topic(finding: &Finding) -> &str {
    let rule = finding.rule.as_str();
    let mut segments = rule.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some(topic), Some(_)) if finding.scenario.split('/').nth(1) == Some(topic) => rule,
        (Some(topic), Some(_)) => topic,
        _ => "",
    }
}

fn observation(finding: &Finding) -> String {
    let (expected, actual) = (finding.expected.as_str(), finding.actual.as_str());
    let message = finding.message.as_str();
    if let Some(text) = callback_count(finding) {
        return text;
    }
    if let "accepted" | "refused" = finding.kind.as_str() {
        return decision(finding);
    }
    let (place, message) = located(finding, message);
    if let ("encoding", Some(types)) = (finding.kind.as_str(), expected.strip_prefix("a body as "))
    {
        return format!("the body is sent as {actual}, expected {types}");
    }
    if finding.kind == "leads-elsewhere" && message.starts_with("the link ") {
        return message.to_owned();
    }
    if finding.kind == "leads-elsewhere" && fits_title(expected) && fits_title(actual) {
        return format!("a link leads to {actual}, expected {expected}");
    }
    if finding.kind == "not-unique" && !place.is_empty() && fits_title(actual) {
        return format!("{place} is {actual} in two resources, expected a different value in each");
    }
    if let ("gone", Some((item, operation))) = (finding.kind.as_str(), unnamed(expected)) {
        return format!("{item} is gone after {operation}, which did not name it");
    }
    if let ("bound", Some(bound), Some(sent)) = (
        finding.kind.as_str(),
        expected.strip_suffix(": refused or cut"),
        actual.strip_suffix(" applied in full"),
    ) {
        return format!("{place} is {sent}, expected {bound} (values beyond are refused or cut)");
    }
    if let ("not-told", Some(event)) = (finding.kind.as_str(), expected.strip_prefix("an event ")) {
        return format!("no event {event}");
    }
    let is_earlier = before(expected).is_some();
    if !place.is_empty() && !is_earlier && are_long_documents(expected, actual) {
        return differing(&place, expected, actual);
    }
    let (about, tail) = match comparison(message, expected, actual) {
        Some((about, tail)) if fits_title(expected) && fits_title(actual) => (about, tail),
        _ => return described(finding, &place),
    };
    if finding.kind == "repeated-item" && !place.is_empty() {
        return format!("{place} contains {actual}, expected {expected}");
    }
    if let ("listed-twice", Some(item)) = (finding.kind.as_str(), expected.strip_suffix(" once")) {
        return format!("{place} contains {item} {actual}, expected once{tail}");
    }
    if let Some((item, of)) = expected.split_once(" in the list") {
        let place = match place.as_str() {
            "" => "the list",
            place => place,
        };
        let missing = actual.strip_suffix("a list without it").map(str::to_owned);
        let pages = actual.strip_suffix(" without it");
        let missing = missing.or_else(|| pages.map(|pages| format!(" ({pages})")));
        if let Some(pages) = missing {
            return format!("{place} lacks {item}{pages}, expected in the list{of}{tail}");
        }
    }
    if let ("found", Some((what, after))) = (actual, absent_after(expected)) {
        return format!("{what} is still found after {after}{tail}");
    }
    if let (Some(before), "", false) = (before(expected), about, place.is_empty()) {
        return format!("{place} {}{tail}", changed(before, actual));
    }
    // The number of values that a pointer selects.
    let selects = finding.pointer.is_empty() || finding.pointer.ends_with("/*");
    let is_count = selects && expected.starts_with("at ");
    if let Some(list) = place.strip_suffix("[]`").filter(|_| is_count) {
        return format!("{list}` has {actual} items, expected {expected}{tail}");
    }
    match (place.as_str(), about) {
        ("", "") => format!("{actual}, expected {expected}{tail}"),
        ("", about) => format!("{about}: {actual}, expected {expected}{tail}"),
        (place, about) if about.starts_with(' ') => {
            let place = format!("{place}{about}");
            format!("{}{tail}", compared(&place, (actual, expected)))
        }
        (place, "") => format!("{}{tail}", compared(place, (actual, expected))),
        (place, about) => format!("{place} is {actual}, expected {expected}{tail} ({about})"),
    }
}

/// The statement about an `await` step without a callback. It concerns the run, not a document of the target.
fn callback_count(finding: &Finding) -> Option<String> {
    if finding.exchange > 0 || finding.pointer != "/count" || !fits_title(&finding.expected) {
        return None;
    }
    let remark = |begin: &str| {
        let (_, rest) = finding.message.split_once(begin)?;
        rest.split(')').next()
    };
    let waited = remark("(waited ").map(|time| format!(" within {time}"));
    let first =
        remark("(first attempt: got ").map(|count| format!(" ({count} in a first attempt)"));
    let first = first.unwrap_or_default();
    let hook = remark("(or the hook ").map(|cause| format!(" (or the hook {cause})"));
    let hook = hook.unwrap_or_default();
    let came = match finding.actual.as_str() {
        "0" => "no callback".to_owned(),
        "1" => "1 callback".to_owned(),
        n => format!("{n} callbacks"),
    };
    let waited = waited.unwrap_or_default();
    Some(format!(
        "{came} came{waited}{first}, expected {}{hook}",
        finding.expected
    ))
}

/// A request that was accepted or refused, with what the rule varies.
fn decision(finding: &Finding) -> String {
    let expected = finding.expected.split(':').next().unwrap_or_default();
    let message = finding.message.as_str();
    // The title already begins with the operation.
    let is_general = message.starts_with(&format!("{} was ", finding.operation));
    let seen = if is_general { &finding.actual } else { message };
    let request = format!("{}/{}/", finding.service, finding.operation);
    let aspect = finding.rule.strip_prefix(&request);
    let aspect = aspect.map(|name| (name, format!(" ({name})")));
    let varied = aspect.or_else(|| {
        let name = case(&finding.scenario)?;
        Some((name, format!(" (scenario {name})")))
    });
    let varied = varied.filter(|(name, _)| is_general && !seen.contains(name));
    let varied = varied.map(|(_, remark)| remark).unwrap_or_default();
    format!("{seen}, expected {expected}{varied}")
}

/// What a scenario sends: `chat/create-user/identity-over-max` sends `identity-over-max`.
fn case(scenario: &str) -> Option<&str> {
    let name = scenario.split('[').next()?.splitn(3, '/').nth(2)?;
    (name != "happy").then_some(name)
}

/// The place of a finding in words, and its message without a pointer at the beginning.
fn located<'a>(finding: &Finding, message: &'a str) -> (String, &'a str) {
    let own = finding.pointer.as_str();
    let named = message.split([':', ' ']).next().unwrap_or_default();
    let (pointer, rest) = match message.strip_prefix(own) {
        Some(rest) if !own.is_empty() => (own, rest),
        _ if own.is_empty() && named.starts_with('/') => (named, &message[named.len()..]),
        _ => (own, message),
    };
    // The result of a step that calls an address holds the body below this name.
    let body = pointer
        .strip_prefix("/json")
        .filter(|_| finding.operation.is_empty());
    let pointer = body.filter(|body| body.starts_with('/')).unwrap_or(pointer);
    let callback = pointer.strip_prefix("/requests/");
    let callback = callback.and_then(|rest| rest.split_once("/json"));
    match callback {
        Some((_, "")) => ("the callback".to_owned(), rest),
        Some((_, pointer)) => (format!("`{}` of the callback", field(pointer)), rest),
        None if pointer.is_empty() => (String::new(), rest),
        None => (format!("`{}`", field(pointer)), rest),
    }
}

/// The texts around `expected E, got A` in a message without its pointer.
fn comparison<'a>(message: &'a str, expected: &str, actual: &str) -> Option<(&'a str, &'a str)> {
    let both = format!("expected {expected}, got {actual}");
    let (about, tail) = message.split_once(&both)?;
    Some((about.trim_end_matches([' ', ':']), tail))
}

/// A finding whose message is not a mere comparison.
fn described(finding: &Finding, place: &str) -> String {
    let (expected, actual) = (finding.expected.as_str(), finding.actual.as_str());
    let message = finding.message.as_str();
    let (_, rest) = located(finding, message);
    match finding.kind.as_str() {
        _ if place.is_empty() => message.to_owned(),
        // The message names what the place alone does not.
        "registered" | "private-listed" | "account-scope" => message.to_owned(),
        "missing-field" if expected.starts_with("a field ") || !fits_title(expected) => {
            format!("{place} is missing")
        }
        "missing-field" => format!("{place} is missing, expected {expected}"),
        "extra-field" if expected.starts_with("nothing") => {
            format!("{place} is present, expected {expected}")
        }
        "extra-field" => format!("{place} is not a documented field"),
        "default" if fits_title(expected) && fits_title(actual) => {
            format!("{place} is {actual}, expected {expected} (the default)")
        }
        _ => {
            let why = rest.split_once(" although ");
            let why = why
                .map(|(_, why)| format!(" although {why}"))
                .unwrap_or_default();
            if let (Some(before), true) = (before(expected), fits_title(actual)) {
                format!("{place} {}{why}", changed(before, actual))
            } else if let (Some(("", tail)), true, false) = (
                comparison(rest, expected, actual),
                fits_title(expected),
                fits_title(actual),
            ) {
                // A part of the actual value would end the title in the middle of a list.
                format!("{place} has another value, expected {expected}{tail}")
            } else if rest.len() < message.len() {
                format!("{place}{rest}")
            } else if message.contains(&finding.pointer) {
                message.replacen(&finding.pointer, place, 1)
            } else if fits_title(expected) && fits_title(actual) {
                compared(place, (actual, expected))
            } else {
                format!("{place}: {message}")
            }
        }
    }
}

/// The item and the operation of `ITEM, which OPERATION did not name`.
fn unnamed(expected: &str) -> Option<(&str, &str)> {
    let (item, rest) = expected.split_once(", which ")?;
    Some((item, rest.strip_suffix(" did not name")?))
}

/// The actual and the expected value, unless a title would show the same for both.
fn compared(place: &str, (actual, expected): (&str, &str)) -> String {
    let plain = |value: &str| replace_names(value, shortened).replace('"', "");
    let (shown, due) = (plain(actual), plain(expected));
    if let Some(seen) = actual.strip_suffix(" in its place") {
        return format!("{place}: found {seen}, expected {expected}");
    }
    if let Some((item, due)) = expected
        .strip_suffix(" among them")
        .zip(due.strip_suffix(" among them"))
    {
        if let ("nothing", Some(field)) = (actual, place.strip_suffix(" of the callback")) {
            return format!("no callback came with {field} {item}");
        }
        let are_alike = shown.contains('…') && shown.split(", ").all(|one| one == due);
        let others = match shown.split(", ").count() {
            1 if are_alike => "another one".to_owned(),
            n if are_alike => format!("{n} others"),
            _ => actual.to_owned(),
        };
        return format!("{place} lacks {item}, has {others}");
    }
    if due.starts_with("one of ") && shown.contains('…') && due.contains(&shown) {
        format!("{place} is not {expected}")
    } else if shown.contains('…') && due.starts_with(&shown) {
        format!(
            "{place} is not the expected {expected}, but {}",
            another(&shown)
        )
    } else if due.strip_prefix("not ") == Some(&shown) {
        format!("{place} is {actual}, expected any other value")
    } else if let "nothing" | "nothing there" = actual {
        format!("{place} is missing, expected {expected}")
    } else if expected == "nothing there" {
        format!("{place} is {actual}, expected to be absent")
    } else {
        format!("{place} is {actual}, expected {expected}")
    }
}

/// Whether two documents are too long for one title.
fn are_long_documents(expected: &str, actual: &str) -> bool {
    const BOTH_CHARACTERS_MAX: usize = 110;
    let due = expected.strip_prefix("not ").unwrap_or(expected);
    let is_document = |value: &str| value.starts_with(['{', '[']);
    let length = |value: &str| replace_names(value, shortened).chars().count();
    is_document(due) && is_document(actual) && length(due) + length(actual) > BOTH_CHARACTERS_MAX
}

/// Values that are too long for a title: the first member that differs, where both are whole documents.
fn differing(place: &str, expected: &str, actual: &str) -> String {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    let differs = read(expected).zip(read(actual));
    let differs = differs.and_then(|(due, seen)| {
        let mut at = place.trim_matches('`').to_owned();
        let (due, seen) = first_difference(&mut at, due, seen)?;
        (fits_title(&due) && fits_title(&seen)).then(|| compared(&format!("`{at}`"), (&seen, &due)))
    });
    differs.unwrap_or_else(|| match expected.starts_with("not ") {
        true => format!("{place} has a value that it must not have"),
        false => format!("{place} has another value than expected"),
    })
}

/// The first member that two documents do not have in common, with its expected and its actual value.
fn first_difference(at: &mut String, due: Value, seen: Value) -> Option<(String, String)> {
    match (due, seen) {
        (Value::Object(due), Value::Object(mut seen)) => {
            for (name, due) in due {
                let length = at.len();
                let _ = write!(at, ".{name}");
                match seen.remove(&name) {
                    None => return Some((due.to_string(), "nothing there".to_owned())),
                    Some(seen) if seen != due => return first_difference(at, due, seen),
                    Some(_) => at.truncate(length),
                }
            }
            let (name, seen) = seen.into_iter().next()?;
            let _ = write!(at, ".{name}");
            Some(("nothing there".to_owned(), seen.to_string()))
        }
        (due, seen) => (due != seen).then(|| (due.to_string(), seen.to_string())),
    }
}

/// The actual identifier in words, where it looks like the expected one when shortened.
fn another(shown: &str) -> String {
    let is_sid = shown.chars().count() == 3 && shown.starts_with(|c: char| c.is_ascii_uppercase());
    let is_word = !shown.contains(['/', ' ']);
    match shown.split_once("-…") {
        _ if is_sid => format!("another {shown}"),
        Some((word, "")) if is_word => format!("another {word}"),
        _ => "another value".to_owned(),
    }
}

/// The earlier and the present value of a field that must not change.
fn changed(before: &str, now: &str) -> String {
    let (before, now) = same_day(before, now);
    if replace_names(&before, shortened) == replace_names(&now, shortened) {
        format!("changed (was {before}, now another one)")
    } else {
        format!("changed (was {before}, now {now})")
    }
}

/// The resource that must be absent, and what deleted it: `no FW00 after delete-flow`.
fn absent_after(expected: &str) -> Option<(&str, &str)> {
    expected.strip_prefix("no ")?.split_once(" after ")
}

/// Whether a value is short enough for a title.
fn fits_title(value: &str) -> bool {
    /// Longer values are left to the message.
    const VALUE_CHARACTERS_MAX: usize = 80;
    let characters = || replace_names(value, shortened).chars().count();
    !value.is_empty() && !value.contains('\n') && characters() <= VALUE_CHARACTERS_MAX
}

/// The earlier value of a field that must not change.
fn before(expected: &str) -> Option<&str> {
    let endings = [", as before", ", as shown before"];
    endings
        .iter()
        .find_map(|ending| expected.strip_suffix(ending))
}

/// Two times without their common day: `22:33:54` and `22:33:55`.
fn same_day(before: &str, now: &str) -> (String, String) {
    let time = |value: &str| {
        let text = value.strip_prefix('"')?.strip_suffix('"')?;
        let (day, time) = text.split_once('T')?;
        let is_day = day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let plain = time.strip_suffix('Z').unwrap_or(time);
        is_day.then(|| (day.to_owned(), plain.to_owned()))
    };
    match (time(before), time(now)) {
        (Some((day, before)), Some((other, now))) if day == other && before != now => (before, now),
        _ => (before.to_owned(), now.to_owned()),
    }
}

/// A pointer as a person writes it: `/flows/0/name` is `flows[].name`.
fn field(pointer: &str) -> String {
    let mut field = String::new();
    for name in pointer.split('/').skip(1) {
        if name == "*" || (!name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())) {
            field += "[]";
            continue;
        }
        if !field.is_empty() {
            field.push('.');
        }
        field += &conformant_base::json::unescape(name);
    }
    field
}

/// Truncates an observation for a title, between words where possible.
fn short(seen: &str) -> String {
    const CHARACTERS_MAX: usize = 140;
    let line = seen.lines().next().unwrap_or_default();
    if line.len() == seen.len() && seen.chars().count() <= CHARACTERS_MAX {
        return seen.to_owned();
    }
    let begin: String = line.chars().take(CHARACTERS_MAX).collect();
    let end = begin
        .rfind(' ')
        .filter(|_| begin.len() < line.len())
        .unwrap_or(begin.len());
    format!("{}…", begin[..end].trim_end())
}

/// Replaces every long identifier by `…`, so that similar findings compare equal.
pub fn without_names(text: &str) -> String {
    replace_names(text, |_| "…".to_owned())
}

/// Replaces every long identifier by its type, as titles show it: `"RL…"`.
pub fn with_types(text: &str) -> String {
    replace_names(text, shortened)
}

/// Replaces the middle of every long identifier by `…`, so that different ones look different.
pub fn with_short_ids(text: &str) -> String {
    const SIDE_CHARACTERS: usize = 4;
    replace_names(text, |name| {
        let end = &name[name.len() - SIDE_CHARACTERS..];
        format!("{}…{end}", &name[..SIDE_CHARACTERS])
    })
}

/// A long identifier for a title: the type of a SID, the first word of a name.
fn shortened(name: &str) -> String {
    /// Letters and hexadecimal digits of a SID.
    const SID_CHARACTERS: usize = 34;
    let is_type = |begin: &str| begin.bytes().all(|b| b.is_ascii_uppercase());
    let is_word = |word: &str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase());
    match (name.get(..2), name.split_once('-')) {
        (Some(begin), _) if name.len() == SID_CHARACTERS && is_type(begin) => format!("{begin}…"),
        (_, Some((word, _))) if is_word(word) => format!("{word}-…"),
        _ => "…".to_owned(),
    }
}

fn replace_names(text: &str, replaced: impl Fn(&str) -> String) -> String {
    /// Shorter words are not identifiers.
    const ID_CHARACTERS_MIN: usize = 16;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let word_end = rest[start..]
            .find(|c| !is_part(c))
            .map_or(rest.len(), |end| start + end);
        let word = &rest[start..word_end];
        out.push_str(&rest[..start]);
        let is_id = word.len() >= ID_CHARACTERS_MIN && word.contains(|c: char| c.is_ascii_digit());
        if is_id {
            out.push_str(&replaced(word));
        } else {
            out.push_str(word);
        }
        rest = &rest[word_end..];
    }
    out.push_str(rest);
    out
}
