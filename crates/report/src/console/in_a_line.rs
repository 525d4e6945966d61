//! Findings as single lines: the observation and the place, as far as both fit.

use super::look::{Look, cut};
use crate::view::{self, Broken};
use conformant_record::Finding;
use std::cmp::Reverse;

/// Other places of the same rule, one line per observation.
pub(super) fn elsewhere(broken: &Broken, look: &Look) -> String {
    const FORMS_MAX: usize = 3;
    let others = broken.findings.get(1..).unwrap_or_default();
    let mut forms: Vec<(String, Vec<&Finding>)> = Vec::new();
    for other in others {
        let seen = conformant_record::without_names(&other.message);
        match forms.iter_mut().find(|(known, _)| *known == seen) {
            Some((_, alike)) if !look.is_verbose() => alike.push(other),
            Some(_) | None => forms.push((seen, vec![other])),
        }
    }
    forms.sort_by_key(|(_, alike)| Reverse(alike.len()));
    let shown = look.shown(forms.len(), FORMS_MAX);
    let mut out = String::new();
    for (at, (_, alike)) in forms[..shown].iter().enumerate() {
        let label = if at == 0 { "also" } else { "" };
        let count = match alike.len() {
            1 => String::new(),
            n => format!("{n}× "),
        };
        let first = &broken.findings[0];
        let columns = match look.is_verbose() {
            true => usize::MAX,
            false => look.width.max(60) - 12,
        };
        let line = also_line(&count, (alike[0], first), columns);
        out += &format!("  {label:<9} {line}\n");
    }
    let left: usize = forms[shown..].iter().map(|(_, alike)| alike.len()).sum();
    if left > 0 {
        let more = view::count(left, "more finding");
        out += &format!("            … {more} of this rule in the reports\n");
    }
    out
}

/// An observation and its place, as far as both fit; `the same` for the observation of the first finding.
fn also_line(count: &str, (finding, first): (&Finding, &Finding), columns: usize) -> String {
    let place = place_in_brief(finding);
    if finding.message == first.message && !place.is_empty() {
        let first_of = if count.is_empty() { "" } else { "first in " };
        let line = format!("{count}the same ({first_of}{place})");
        let is_wide = line.chars().count() > columns;
        let is_here = finding.step > 0 && finding.scenario == first.scenario;
        return match place.strip_prefix("scenario ").filter(|_| is_wide) {
            Some(_) if is_here => format!("{count}the same ({first_of}step {})", finding.step),
            Some(place) => cut(&format!("{count}the same ({first_of}{place})"), columns),
            None => cut(&line, columns),
        };
    }
    // The others differ from it in names and values.
    let count = &match count {
        "" => String::new(),
        count => format!("{}, first: ", count.trim_end()),
    };
    let line = format!("{count}{} ({place})", finding.message);
    if line.chars().count() <= columns {
        return line;
    }
    let short = conformant_record::with_short_ids(&finding.message);
    // A file has no steps, and an id of a scenario no suffix.
    let scenario = match finding.scenario.as_str() {
        "" => String::new(),
        file if finding.step == 0 || file.contains('.') => format!(" ({file})"),
        scenario => format!(" (in {scenario})"),
    };
    let lines = [
        format!("{count}{short} ({place})"),
        format!("{count}{short}{scenario}"),
    ];
    let fits = |line: &String| line.chars().count() <= columns;
    if let Some(line) = lines.into_iter().find(fits) {
        return line;
    }
    if let Some(line) = later_step(count, (finding, first), columns) {
        return line;
    }
    // The place is kept where the observation is cut, unless it would take most of the line.
    let without_place = columns.saturating_sub(scenario.chars().count());
    let pointer = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!("{pointer}: "),
    };
    match observation(count, &pointer, finding, columns) {
        line if line.ends_with('…') && without_place * 2 > columns => {
            observation(count, &pointer, finding, without_place) + &scenario
        }
        line => line,
    }
}

/// A later step of the same scenario: its message from the word on that differs from that of the first finding.
fn later_step(
    count: &str,
    (finding, first): (&Finding, &Finding),
    columns: usize,
) -> Option<String> {
    let [seen, known] =
        [finding, first].map(|finding| conformant_record::with_short_ids(&finding.message));
    let pairs = seen.char_indices().zip(known.chars());
    let (equal, _) = pairs
        .map(|((at, a), b)| (at, a == b))
        .find(|(_, same)| !same)?;
    let word = seen[..equal].rfind([' ', '"', '?', '&'])? + 1;
    let is_later = finding.step > 0 && finding.scenario == first.scenario;
    let line = format!("{count}step {}: …{}", finding.step, &seen[word..]);
    is_later.then(|| cut(&line, columns))
}

/// The message of a finding within a number of columns. Two observations may differ only at the end of their
/// identifiers, so these lose their middle first. Then a comparison is reduced to the difference.
pub(super) fn observation(count: &str, pointer: &str, finding: &Finding, columns: usize) -> String {
    let fits = |line: &str| line.chars().count() <= columns;
    let whole = format!("{count}{}", finding.message);
    if fits(&whole) {
        return whole;
    }
    let short = conformant_record::with_short_ids(&finding.message);
    let line = cut(&format!("{count}{short}"), columns);
    // A remark in parentheses is left out rather than cut.
    let line = match line.rfind(" (") {
        Some(open) if line.ends_with('…') && !line[open..].contains(')') => {
            format!("{} …", &line[..open])
        }
        _ => line,
    };
    let values = [&finding.expected, &finding.actual];
    let is_comparison = values
        .iter()
        .all(|value| !value.is_empty() && finding.message.contains(value.as_str()));
    let is_whole = values
        .iter()
        .all(|value| line.contains(&conformant_record::with_short_ids(value)));
    let difference = difference(&finding.expected, &finding.actual);
    let lines = [pointer, ""].map(|pointer| format!("{count}{pointer}{difference}"));
    match lines.into_iter().find(|line| fits(line)) {
        Some(difference) if is_comparison && !is_whole => difference,
        _ => line,
    }
}

/// Expected and actual value from shortly before their first difference on.
fn difference(expected: &str, actual: &str) -> String {
    /// Characters of a value.
    const SHOWN_CHARACTERS: usize = 24;
    /// Equal characters before the difference.
    const BEFORE_CHARACTERS: usize = 8;
    let pairs = expected.chars().zip(actual.chars());
    let equal = pairs.take_while(|(due, seen)| due == seen).count();
    let from = equal.saturating_sub(BEFORE_CHARACTERS);
    let part = |value: &str| {
        let characters = value.chars().count();
        let shown: String = value.chars().skip(from).take(SHOWN_CHARACTERS).collect();
        let begin = if from > 0 { "…" } else { "" };
        let end = if characters > from + SHOWN_CHARACTERS {
            "…"
        } else {
            ""
        };
        format!("{begin}{shown}{end}")
    };
    format!("expected {}, got {}", part(expected), part(actual))
}

/// Scenario and step of a finding, or the line of its file.
pub(super) fn place_in_brief(finding: &Finding) -> String {
    if let Some(line) = view::line_of_file(finding) {
        return line;
    }
    // Rules and scenarios may have the same id.
    let mut parts = Vec::new();
    if !finding.scenario.is_empty() && finding.step > 0 {
        parts.push(format!("scenario {}", finding.scenario));
    } else if !finding.scenario.is_empty() {
        parts.push(finding.scenario.clone());
    }
    if finding.step > 0 {
        parts.push(format!("step {}", finding.step));
    } else if finding.exchange > 0 {
        parts.push(format!("entry {}", finding.exchange));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_observation_loses_the_middle_of_identifiers_and_then_its_place() {
        let finding = |message: &str| Finding {
            message: message.to_owned(),
            scenario: "flow/create-execution/happy".to_owned(),
            step: 2,
            ..Finding::default()
        };
        let long = finding(
            "sent \"IS316599da8ef4b3176873271edb4bf91f\", came back as \"IS316599da8ef4b3176873271edb4bf910\"",
        );
        assert_eq!(
            also_line("2× ", (&long, &Finding::default()), 98),
            "2×, first: sent \"IS31…f91f\", came back as \"IS31…f910\" (in flow/create-execution/happy)"
        );
        assert_eq!(
            also_line("2× ", (&long, &Finding::default()), 60),
            "2×, first: sent \"IS31…f91f\", came back as \"IS31…f910\""
        );
    }

    #[test]
    fn the_same_observation_keeps_its_step_where_columns_are_few() {
        let finding = |scenario: &str, step| Finding {
            scenario: scenario.to_owned(),
            step,
            ..Finding::default()
        };
        let scenario = "flow/create-execution/in-turn";
        let first = finding(scenario, 6);
        let line = |other: &Finding| also_line("13× ", (other, &first), 56);
        assert_eq!(
            line(&finding(scenario, 7)),
            "13× the same (first in step 7)"
        );
        assert_eq!(
            line(&finding("flow/lists/whole", 2)),
            "13× the same (first in flow/lists/whole, step 2)"
        );
    }

    #[test]
    fn a_later_step_shows_what_differs_from_the_first_finding() {
        let finding = |step, query: &str| Finding {
            message: format!(
                "a link leads to \"http://h/flow/v1/Flows/FW1/Executions?Page=1&{query}\", which is not found"
            ),
            scenario: "flow/read-executions/page-urls".to_owned(),
            step,
            ..Finding::default()
        };
        let (first, other) = (finding(2, "From=10:36"), finding(3, "From=10:37"));
        assert_eq!(
            also_line("", (&other, &first), 60),
            "step 3: …From=10:37\", which is not found"
        );
    }

    #[test]
    fn an_observation_that_does_not_fit_is_reduced_to_the_difference() {
        let long = |end: &str| format!("\"{}{end}\"", "word ".repeat(30));
        let (expected, actual) = (long("one"), long("two"));
        let finding = Finding {
            message: format!("expected {expected}, got {actual}"),
            pointer: "/body".to_owned(),
            expected,
            actual,
            ..Finding::default()
        };
        assert_eq!(
            also_line("2× ", (&finding, &Finding::default()), 88),
            "2×, first: /body: expected …rd word one\", got …rd word two\""
        );
    }
}
