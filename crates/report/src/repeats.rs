//! Formats the verdicts of a repeated run: one block for the console, one table for markdown and the page, and one line for each
//! flaky rule.

use super::markdown::cell;
use super::view;
use conformant_record::{ExchangeDifference, RepeatedRule, Repeats};

/// Flaky rules listed.
const FLAKY_MAX: usize = 30;

/// The block after the summary of the console.
pub fn render(repeats: &Repeats) -> String {
    let mut out = format!("repeated    {}\n", summary(repeats));
    for rule in repeats.flaky().take(FLAKY_MAX) {
        out += &format!("FLAKY {}: {}\n", rule.rule, verdicts(rule));
        if let Some(difference) = &rule.difference {
            out += &format!("      {}\n", first_difference(difference));
        }
    }
    if let Some(more) = more(repeats) {
        out += &format!("      {more}\n");
    }
    out
}

/// A section with one row for each flaky rule.
pub(super) fn markdown(repeats: &Repeats, out: &mut String) {
    *out += &format!("\n### Repeated\n\n{}\n", summary(repeats));
    if repeats.flaky().next().is_none() {
        return;
    }
    out.push_str("\n| flaky rule | verdicts | first difference |\n|---|---|---|\n");
    for rule in repeats.flaky().take(FLAKY_MAX) {
        let difference = rule.difference.as_ref();
        let difference = difference.map_or_else(|| "–".to_owned(), |d| cell(&first_difference(d)));
        *out += &format!(
            "| {} | {} | {difference} |\n",
            cell(&rule.rule),
            verdicts(rule)
        );
    }
    if let Some(more) = more(repeats) {
        *out += &format!("\n{more}\n");
    }
}

/// The rule if it is flaky, for the failure of a test case; empty otherwise.
pub(super) fn of_rule(repeats: Option<&Repeats>, id: &str) -> String {
    let mut flaky = repeats.into_iter().flat_map(Repeats::flaky);
    let Some(rule) = flaky.find(|rule| rule.rule == id) else {
        return String::new();
    };
    let mut out = format!("flaky: {}\n", verdicts(rule));
    if let Some(difference) = &rule.difference {
        out += &format!("{}\n", first_difference(difference));
    }
    out
}

pub(super) fn summary(repeats: &Repeats) -> String {
    let complete = repeats.runs.iter().filter(|run| run.complete).count();
    let flaky = repeats.flaky().count();
    let other = repeats.rules.len() - flaky;
    let mut out = format!(
        "{complete} of {} complete",
        view::count(repeats.requested, "run")
    );
    let broken: Vec<String> = repeats
        .runs
        .iter()
        .map(|r| r.rules.fail.to_string())
        .collect();
    out += &format!(" · broken rules in each run: {}", broken.join(" "));
    out += &format!(" · {}", view::count(flaky, "flaky rule"));
    if other > 0 {
        out += &format!(" · {other} with other verdicts that differ");
    }
    out
}

/// `failed in 2 of 5 runs (3 pass, 2 fail)`
pub(super) fn verdicts(rule: &RepeatedRule) -> String {
    let counts = rule.distribution().into_iter();
    let counts: Vec<String> = counts
        .map(|(verdict, count)| format!("{count} {}", verdict.word()))
        .collect();
    format!(
        "failed in {} of {} ({})",
        rule.failures(),
        view::count(rule.verdicts.len(), "run"),
        counts.join(", ")
    )
}

pub(super) fn first_difference(difference: &ExchangeDifference) -> String {
    let ExchangeDifference {
        scenario,
        step,
        operation,
        place,
        passed,
        failed,
        passed_run,
        failed_run,
    } = difference;
    format!(
        "first difference: {scenario}, step {step}, {operation}, {place}: {passed} in run {passed_run} (passed), \
         {failed} in run {failed_run} (failed)"
    )
}

fn more(repeats: &Repeats) -> Option<String> {
    let more = repeats.flaky().count().saturating_sub(FLAKY_MAX);
    (more > 0).then(|| {
        format!(
            "{} in the JSON report",
            view::count(more, "more flaky rule")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{assert_contains, repeats, sample};
    use crate::{Format, Settings};

    #[test]
    fn a_flaky_rule_has_its_verdicts_and_the_first_difference() {
        let rule = sample().rules[0].id.clone();
        let mut record = sample();
        record.repeats = Some(repeats(&rule));
        let lines = [
            format!("{rule}: failed in 1 of 2 runs (1 pass, 1 fail)"),
            format!(
                "first difference: {rule}, step 2, {rule}, {rule}: {rule} in run 1 (passed), {rule} in run 2 (failed)"
            ),
            "2 of 3 runs complete · broken rules in each run: 0 0 · 1 flaky rule".to_owned(),
        ];
        let console = render(&repeats(&rule));
        for line in &lines {
            assert!(console.contains(line), "{line}\nis missing in\n{console}");
        }
        let markdown = Format::Markdown.render(&record, Settings::default());
        assert!(
            markdown.contains(&format!(
                "| `{rule}` | failed in 1 of 2 runs (1 pass, 1 fail) | `first difference: "
            )),
            "{markdown}"
        );
        let page = Format::Html.render(&record, Settings::default());
        assert_contains(
            &page,
            &[
                "<th scope=\"col\">Runs 1 to 2</th>",
                "aria-label=\"pass, broken\"><i title=\"run 1: pass\"></i><i class=\"f\" title=\"run 2: broken\"></i>",
                "failed in 1 of 2 runs (1 pass, 1 fail)",
            ],
        );
        let junit = Format::Junit.render(&record, Settings::default());
        assert_contains(&junit, &["flaky: failed in 1 of 2 runs (1 pass, 1 fail)\n"]);
        let ctrf = Format::Ctrf.render(&record, Settings::default());
        assert_eq!(ctrf.matches("\"flaky\": true").count(), 1, "{ctrf}");
    }
}
