//! Runs of several implementations side by side, by service and feature.
//!
//! - Input: records, and the scenarios that need each optional feature.
//! - Rows: services, their optional features, and the groups of their rules, by the second part of the id.
//! - Output: markdown, and a self-contained page without a script.

mod cells;
mod markdown;
mod page;

#[cfg(test)]
mod tests;

pub use page::versions_page;

use super::texts::escaped;
use conformant_record::{Repeats, RunRecord};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of the table of differing rules.
const DIFFERING_MAX: usize = 200;

/// Scenarios by service and optional feature.
pub type FeatureScenarios = BTreeMap<String, BTreeMap<String, Vec<String>>>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Matrix {
    columns: Vec<Column>,
    services: Vec<ServiceRows>,
    /// Rules whose verdict is not the same in all columns.
    differing: Vec<Row>,
    differing_left: usize,
    /// All columns are runs of one target.
    is_one_target: bool,
    /// Why the columns cannot be compared without reserve.
    notes: Vec<String>,
}

/// One implementation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Column {
    name: String,
    /// The result of the run in words.
    verdict: String,
    state: State,
    facts: Vec<String>,
}

/// The rows of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ServiceRows {
    name: String,
    cells: Vec<Cell>,
    features: Vec<Row>,
    groups: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    cells: Vec<Cell>,
}

/// The result of one implementation in one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Cell {
    state: State,
    text: String,
}

/// The kind of result in a cell; the class in the style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Pass,
    Fail,
    /// Passed in part.
    Warn,
    NotJudged,
}

impl Matrix {
    /// Compares redacted records, each with the name to use where it has no claims.
    pub fn of(runs: &[(String, RunRecord)], features: &FeatureScenarios) -> Self {
        let runs: Vec<(String, RunRecord)> = runs
            .iter()
            .map(|(name, record)| (name.clone(), escaped(record)))
            .collect();
        let records: Vec<&RunRecord> = runs.iter().map(|(_, record)| record).collect();
        let rules = records.iter().flat_map(|record| &record.rules);
        let services: BTreeSet<&str> = rules.map(|rule| part(&rule.id, 0)).collect();
        let mut differing = differing(&runs);
        let differing_left = differing.len().saturating_sub(DIFFERING_MAX);
        differing.truncate(DIFFERING_MAX);
        let targets: BTreeSet<_> = records.iter().map(|record| &record.targets).collect();
        Self {
            differing,
            differing_left,
            is_one_target: runs.len() > 1 && targets.len() == 1,
            columns: runs
                .iter()
                .map(|(name, record)| cells::column(name, record))
                .collect(),
            services: services
                .into_iter()
                .map(|service| service_rows(service, &records, features))
                .collect(),
            notes: notes(&records),
        }
    }

    fn title(&self) -> &'static str {
        match self.is_one_target {
            true => "Runs of one target by service and feature",
            false => "Implementations by service and feature",
        }
    }

    /// What was left out of the table of differing rules.
    fn differing_note(&self) -> Option<String> {
        let left = crate::view::count(self.differing_left, "more rule");
        (self.differing_left > 0).then(|| format!("{left} with verdicts that differ"))
    }

    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    pub fn page(&self) -> String {
        page::render(self)
    }
}

fn service_rows(service: &str, records: &[&RunRecord], features: &FeatureScenarios) -> ServiceRows {
    let each = |cell: &dyn Fn(&RunRecord) -> Cell| -> Vec<Cell> {
        records.iter().map(|record| cell(record)).collect()
    };
    let rules = records.iter().flat_map(|record| &record.rules);
    let of_service = rules.filter(|rule| part(&rule.id, 0) == service);
    let groups: BTreeSet<&str> = of_service.map(|rule| part(&rule.id, 1)).collect();
    let features = features.get(service).into_iter().flatten();
    ServiceRows {
        name: service.to_owned(),
        cells: each(&|record| cells::service(record, service)),
        features: features
            .map(|(feature, scenarios)| Row {
                name: feature.clone(),
                cells: each(&|record| cells::feature(record, (service, feature), scenarios)),
            })
            .collect(),
        groups: groups
            .into_iter()
            .map(|group| Row {
                name: group.to_owned(),
                cells: each(&|record| cells::group(record, service, group)),
            })
            .collect(),
    }
}

/// The rules whose verdict differs between the runs.
fn differing(runs: &[(String, RunRecord)]) -> Vec<Row> {
    let rules = Repeats::of(runs.len(), runs).rules;
    let rows = rules.into_iter().map(|rule| Row {
        cells: rule.verdicts.into_iter().map(cells::verdict).collect(),
        name: rule.rule,
    });
    rows.collect()
}

fn part(id: &str, index: usize) -> &str {
    id.split('/').nth(index).unwrap_or_default()
}

fn notes(records: &[&RunRecord]) -> Vec<String> {
    let rulebooks: BTreeSet<&str> = records.iter().map(|r| r.rulebook.digest.as_str()).collect();
    let mut notes = Vec::new();
    if rulebooks.len() > 1 {
        let note = "The runs used different rulebooks: judge their evidence again by one of them (`conformant judge`).";
        notes.push(note.to_owned());
    }
    notes
}
