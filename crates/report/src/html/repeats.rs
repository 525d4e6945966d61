//! Draws the verdicts of a repeated run: a row for each rule that differs, a cell for each run.

use crate::repeats::{first_difference, summary, verdicts};
use crate::tally::{Shown, State};
use crate::view;
use conformant_record::{RepeatedRule, Repeats};
use minijinja::{Value, context};

/// Rows of the table.
const ROWS_MAX: usize = 60;

pub(super) fn repeats(repeats: &Repeats) -> Value {
    // Flaky rules first.
    let mut rules: Vec<&RepeatedRule> = repeats.rules.iter().collect();
    rules.sort_by_key(|rule| !rule.flaky);
    let left = rules.len().saturating_sub(ROWS_MAX);
    let rows: Vec<Value> = rules.into_iter().take(ROWS_MAX).map(row).collect();
    context! {
        lead => format!("{}.", summary(repeats)),
        runs => repeats.runs.len(),
        rows,
        left => (left > 0).then(|| format!("{} in the JSON report", view::count(left, "more rule"))),
    }
}

fn row(rule: &RepeatedRule) -> Value {
    let cells = rule.verdicts.iter().enumerate().map(|(at, verdict)| {
        let Shown { cell, word, .. } = State::from(*verdict).shown();
        context! { class => cell, said => format!("run {}: {word}", at + 1) }
    });
    let cells: Vec<Value> = cells.collect();
    let words = rule
        .verdicts
        .iter()
        .map(|verdict| State::from(*verdict).shown().word);
    let words: Vec<&str> = words.collect();
    context! {
        rule => rule.rule.as_str(),
        cells,
        label => words.join(", "),
        verdicts => verdicts(rule),
        difference => rule.difference.as_ref().map(first_difference),
    }
}
