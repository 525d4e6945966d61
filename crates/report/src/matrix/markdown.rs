//! The table as markdown.

use super::{Cell, Matrix, State};
use crate::markdown::cell as code;
use std::fmt::Write as _;

const MEMORY: &str = "writing to a String succeeds";

pub(super) fn render(matrix: &Matrix) -> String {
    let mut out = format!("# {}\n\n", matrix.title());
    head(matrix, "", &mut out);
    row("**result**", &verdicts(matrix), &mut out);
    for service in &matrix.services {
        row(&code(&service.name), &cells(&service.cells), &mut out);
        for feature in &service.features {
            let name = format!("{}: {}", service.name, feature.name);
            row(&code(&name), &cells(&feature.cells), &mut out);
        }
    }
    out.push('\n');
    for column in &matrix.columns {
        let facts: Vec<String> = column.facts.iter().map(|fact| code(fact)).collect();
        writeln!(out, "- {}: {}", code(&column.name), facts.join(", ")).expect(MEMORY);
    }
    for note in &matrix.notes {
        writeln!(out, "- Note: {note}").expect(MEMORY);
    }
    if !matrix.differing.is_empty() {
        out.push_str("\n## Rules with verdicts that differ\n\n");
        head(matrix, "rule", &mut out);
        for rule in &matrix.differing {
            row(&code(&rule.name), &cells(&rule.cells), &mut out);
        }
        if let Some(note) = matrix.differing_note() {
            writeln!(out, "\n{note}").expect(MEMORY);
        }
    }
    for service in &matrix.services {
        writeln!(out, "\n## Rules of {}\n", code(&service.name)).expect(MEMORY);
        head(matrix, "rules", &mut out);
        for group in &service.groups {
            row(&code(&group.name), &cells(&group.cells), &mut out);
        }
    }
    out
}

fn head(matrix: &Matrix, first: &str, out: &mut String) {
    let names: Vec<String> = matrix.columns.iter().map(|one| code(&one.name)).collect();
    row(first, &names, out);
    writeln!(out, "|---|{}", "---|".repeat(names.len())).expect(MEMORY);
}

fn row(name: &str, cells: &[String], out: &mut String) {
    writeln!(out, "| {name} | {} |", cells.join(" | ")).expect(MEMORY);
}

fn verdicts(matrix: &Matrix) -> Vec<String> {
    let columns = matrix.columns.iter();
    columns
        .map(|column| format!("{} {}", mark(column.state), column.verdict))
        .collect()
}

fn cells(cells: &[Cell]) -> Vec<String> {
    let cells = cells.iter();
    cells
        .map(|cell| format!("{} {}", mark(cell.state), cell.text))
        .collect()
}

const fn mark(state: State) -> &'static str {
    match state {
        State::Pass => "✓",
        State::Fail => "✗",
        State::Warn => "◐",
        State::NotJudged => "–",
    }
}
