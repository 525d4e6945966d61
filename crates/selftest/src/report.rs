//! Reports of a self-test, for `selftest --report`. See `matrix` for its output.

use super::matrix::{Matrix, Recorded, Row, State};
use conformant_record::Proof;
use serde::Serialize;
use std::fmt::Write as _;

/// A self-test as JSON.
#[derive(Serialize)]
struct SelftestReport<'a> {
    /// Whether everything is as expected, or a known gap.
    holds: bool,
    trials: Vec<Trial<'a>>,
    /// Findings on the clean reference.
    unclean: &'a [String],
    /// Rules that no fault breaks and that are not known gaps.
    dead: Vec<&'a String>,
    /// Rules that the clean reference does not exercise.
    idle: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'a Proof>,
}

#[derive(Serialize)]
struct Trial<'a> {
    id: &'a str,
    state: &'static str,
    #[serde(flatten)]
    row: &'a Row,
}

impl Matrix {
    fn trials<'a>(&'a self, recorded: &Recorded) -> Vec<Trial<'a>> {
        let trial = |(id, row): (&'a String, &'a Row)| Trial {
            id,
            state: self.state(id, recorded).word(),
            row,
        };
        self.rows.iter().map(trial).collect()
    }

    /// Every trial with its state and the rules that caught it, as JSON.
    #[expect(clippy::missing_panics_doc, reason = "texts and numbers serialise")]
    pub fn json(&self, recorded: &Recorded) -> String {
        let report = SelftestReport {
            holds: self.holds(recorded),
            trials: self.trials(recorded),
            unclean: &self.unclean,
            dead: self.dead(recorded).collect(),
            idle: &self.idle,
            proof: self.proof.as_ref(),
        };
        let text = serde_json::to_string_pretty(&report).expect("texts and numbers serialise");
        format!("{text}\n")
    }

    /// The output, and a table of all trials, unexpected ones first.
    pub fn markdown(&self, recorded: &Recorded) -> String {
        let mut text = format!("# Self-test\n\n```text\n{}```\n\n", self.render(recorded));
        text.push_str("| Trial | State | Scenarios | Caught by |\n|---|---|--:|---|\n");
        let mut trials = self.trials(recorded);
        trials.sort_by_key(|trial| (self.state(trial.id, recorded) == State::Killed, trial.id));
        for Trial { id, state, row } in trials {
            let rules: Vec<String> = row
                .killed_by
                .iter()
                .map(|rule| format!("`{rule}`"))
                .collect();
            let _ = writeln!(
                text,
                "| `{id}` | {state} | {} | {} |",
                row.scenarios,
                rules.join("<br>")
            );
        }
        text
    }
}
