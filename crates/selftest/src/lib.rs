//! Self-test: tests the rulebook with the reference.
//!
//! - The clean reference and every allowed variation have no finding.
//! - Every fault, named or generated, is caught by exactly the rules in the kill matrix.
//! - A rule that no fault breaks is dead; one that no mutation of the clean responses breaks is vacuous.
//! - The comparison of event versions agrees with generated documents.

mod enough;
mod explored;
mod known;
mod known_gaps;
mod matrix;
mod mutate;
mod pairs;
mod report;
mod scenes;
mod together;
mod versions;
mod written;

pub use explored::{Explored, ExploredBy};
pub use known::{CAUGHT_BY_FILE, THIRD_PARTY_FILE, caught_by, known_defects};
pub use known_gaps::KnownGaps;
pub use matrix::{CaughtBy, Matrix, Recorded, Row, State};
pub use pairs::Pairs;

use conformant_base::text::glob;
use conformant_engine::plan::{self, Planned};
use conformant_engine::sessions::{Mutate, Offline};
use conformant_engine::{Concluded, Target};
use conformant_judge::payload::validate_payload;
use conformant_judge::{Change, closed_object_pointer, schema_violations};
use conformant_record::Level;
use conformant_reference::{Fault, Switch, Variant};
use conformant_rulebook::{Origin, Rulebook};
use conformant_schema::Schemas;
use mutate::Rewrite;
use scenes::{Clean, TrialOutcome};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of scenarios for a generated fault: the smallest ones that contain the changed place.
const SCENARIOS_PER_REWRITE: usize = 3;

/// Input of a self-test.
#[derive(Debug)]
pub struct Selftest<'a> {
    pub rulebook: &'a Rulebook,
    pub schemas: &'a Schemas,
    /// Targets of the reference by service.
    pub targets: BTreeMap<String, Target>,
    /// Number of runs in parallel.
    pub jobs: usize,
    /// Globs of faults and variations; empty for all.
    pub filters: Vec<String>,
    /// Rules by fault: once they have caught it, the fault is not tried in longer scenarios. `None` tries every fault and
    /// every variation by itself in every scenario.
    pub enough: Option<&'a CaughtBy>,
    /// Draws the variations that are tried together.
    pub seed: u64,
}

/// One generated fault.
#[derive(Debug)]
enum Trial {
    Rewrite(Rewrite),
    Payload {
        kind: String,
        mutation: Change,
        pointer: String,
    },
    /// A written rule about a representation that no exchange contains.
    Written {
        rule: String,
    },
}

impl Selftest<'_> {
    /// Runs all trials; `progress` receives the finished and the total number.
    pub fn run(&self, progress: &(dyn Fn(usize, usize) + Sync)) -> Matrix {
        self.tried(&plan::all(self.rulebook), progress).0
    }

    /// The selected trials, and pairs as [`Self::pairs`] of that number and seed draws them of all, after one run of all
    /// scenarios on the clean reference.
    pub fn run_with_pairs(
        &self,
        (count, seed): (usize, u64),
        recorded: &Recorded,
    ) -> (Matrix, Pairs) {
        let planned = plan::all(self.rulebook);
        let (matrix, clean) = self.tried(&planned, &|_, _| {});
        let of_all = Selftest {
            targets: self.targets.clone(),
            filters: Vec::new(),
            seed,
            ..*self
        };
        let pairs = of_all.pairs_after(count, recorded, (&planned, &clean), &|_| ());
        (matrix, pairs)
    }

    /// The matrix, and the scenarios on the clean reference.
    fn tried(
        &self,
        planned: &[Planned<'_>],
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> (Matrix, Vec<Clean>) {
        let switches: BTreeSet<Switch> = Switch::all()
            .filter(|switch| self.is_wanted(&name(*switch)))
            .collect();
        let is_whole = self.filters.is_empty();
        // Faults and variations are tried together, scenario by scenario.
        let tell = |done: usize| progress(switches.len() * done / planned.len(), switches.len());
        let scenes = self.scenes(planned, &switches, is_whole, &tell);
        let clean = scenes.clean;
        let mut matrix = Matrix {
            unclean: scenes.unclean,
            proof: scenes.proof,
            ..Matrix::default()
        };
        if is_whole {
            let shown: BTreeSet<&String> = clean.iter().flat_map(|c| &c.kinds).collect();
            matrix.find_idle(self.rulebook, &scenes.judged, &shown);
            let contradictions = versions::contradictions(self.rulebook).into_iter();
            let contradictions = contradictions.map(|one| format!("comparison of versions: {one}"));
            matrix.unclean.extend(contradictions);
        }
        let named = scenes.rows.into_iter();
        matrix.rows = named.map(|(switch, row)| (name(switch), row)).collect();
        let trials = self.trials(&clean);
        let all = switches.len() + trials.len();
        let try_out = |trial: usize| self.try_out(&trials[trial], planned, &clean);
        let rows = self.parallel_map(trials.len(), try_out, &|tried| {
            progress(switches.len() + tried, all);
        });
        let generated = trials.iter().map(Trial::id);
        matrix.rows.extend(generated.zip(rows));
        if is_whole {
            matrix.find_dead(self.rulebook);
        }
        (matrix, clean)
    }

    /// Runs all scenarios on the clean reference.
    fn clean(&self, planned: &[Planned<'_>]) -> Vec<Clean> {
        self.scenes(planned, &BTreeSet::new(), false, &|_| {}).clean
    }

    /// Faults generated from the rulebook.
    fn trials(&self, clean: &[Clean]) -> Vec<Trial> {
        let shown: BTreeSet<&String> = clean.iter().flat_map(|c| &c.kinds).collect();
        let mut trials = self.candidates(&shown);
        trials.retain(|trial| self.is_wanted(&trial.id()) && Self::can_show(trial, clean));
        trials
    }

    /// Whether the filters select no fault, variation or rule. Needs no scenario.
    pub fn selects_nothing(&self) -> bool {
        let all = self.rulebook.kinds.keys().collect();
        let switches = Switch::all().map(name);
        let trials = [self.candidates(&BTreeSet::new()), self.candidates(&all)];
        let trials = trials.iter().flatten().map(Trial::id);
        !switches.chain(trials).any(|id| self.is_wanted(&id))
    }

    /// Faults generated from the rulebook, for these types of responses.
    fn candidates(&self, shown: &BTreeSet<&String>) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        for rule in self.rulebook.rules.values() {
            match &rule.origin {
                Origin::Property { kind, pointer } => {
                    for mutation in schema_violations(self.rulebook, kind, pointer) {
                        trials.push(self.of_kind(shown, kind, pointer, mutation));
                    }
                }
                Origin::NoOtherFields { kind } => {
                    let pointer = closed_object_pointer(self.rulebook, kind, &rule.id);
                    trials.push(self.of_kind(shown, kind, &pointer, Change::ExtraField));
                }
                Origin::Operation { .. }
                | Origin::Parameter { .. }
                | Origin::Credentials { .. }
                | Origin::ListKey { .. } => {
                    trials.extend(
                        Rewrite::of_rule(self.rulebook, rule)
                            .into_iter()
                            .map(Trial::Rewrite),
                    );
                }
                Origin::Written(written) => {
                    let kind = written.kind();
                    if kind.is_some_and(|kind| !shown.contains(&kind.to_owned())) {
                        trials.push(Trial::Written {
                            rule: rule.id.clone(),
                        });
                    }
                }
                Origin::ListWalk { .. } | Origin::Either => {}
            }
        }
        trials
    }

    /// Whether a filter selects `fault ID`, with or without the first word.
    fn is_wanted(&self, id: &str) -> bool {
        let name = id.split_once(' ').map_or(id, |(_, name)| name);
        let selects = |filter: &String| glob(filter, id) || glob(filter, name);
        self.filters.is_empty() || self.filters.iter().any(selects)
    }

    /// Whether a scenario contains the place of a generated fault. Rules without one are dead unless another fault
    /// breaks them.
    fn can_show(trial: &Trial, clean: &[Clean]) -> bool {
        match trial {
            Trial::Rewrite(rewrite) => clean
                .iter()
                .any(|c| rewrite.touches(&c.operations, &c.kinds, &c.scenario)),
            Trial::Payload { .. } | Trial::Written { .. } => true,
        }
    }

    /// A mutated representation: of responses if the reference has any, otherwise of the schema's example.
    fn of_kind(
        &self,
        shown: &BTreeSet<&String>,
        kind: &str,
        pointer: &str,
        mutation: Change,
    ) -> Trial {
        let is_operation = self.rulebook.operation_by_id(kind).is_some();
        if is_operation || shown.contains(&kind.to_owned()) {
            return Trial::Rewrite(Rewrite::of_kind(kind, pointer, mutation));
        }
        Trial::Payload {
            kind: kind.to_owned(),
            mutation,
            pointer: pointer.to_owned(),
        }
    }

    fn try_out(&self, trial: &Trial, planned: &[Planned<'_>], clean: &[Clean]) -> Row {
        match trial {
            Trial::Rewrite(rewrite) => self.rewritten(rewrite, planned, clean),
            Trial::Payload {
                kind,
                mutation,
                pointer,
            } => self.payload(kind, mutation, pointer),
            Trial::Written { rule } => written::try_out(self.rulebook, self.schemas, rule),
        }
    }

    fn over<'c>(
        &self,
        touched: impl Iterator<Item = &'c Clean>,
        planned: &[Planned<'_>],
        sessions: &Offline<'_>,
    ) -> Row {
        let mut row = Row::default();
        for clean in touched {
            let concluded = self.run_scenario(clean, planned, sessions);
            row.add_scenario(&TrialOutcome::of(&concluded));
        }
        row
    }

    /// Runs a generated fault with the smallest scenarios that contain its place, and with more until it is caught.
    fn rewritten(&self, rewrite: &Rewrite, planned: &[Planned<'_>], clean: &[Clean]) -> Row {
        let mut touched: Vec<&Clean> = clean
            .iter()
            .filter(|c| rewrite.touches(&c.operations, &c.kinds, &c.scenario))
            .collect();
        let best = rewrite.best();
        touched.sort_by_key(|c| (best.as_ref() != Some(&c.scenario), c.exchanges, c.index));
        let mutator = mutate::Mutator::new(self.rulebook, rewrite, &self.targets);
        let sessions = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .mutated(&mutator as &dyn Mutate);
        let at_first = if best.is_some() {
            1
        } else {
            SCENARIOS_PER_REWRITE
        };
        let mut row = Row::default();
        for clean in touched {
            if row.scenarios >= at_first && !row.killed_by.is_empty() {
                break;
            }
            row.add(self.over(std::iter::once(clean), planned, &sessions));
        }
        row
    }

    /// Judges a mutated example as a payload.
    fn payload(&self, kind: &str, mutation: &Change, pointer: &str) -> Row {
        let mut row = Row::default();
        let Some(mut changed) = written::example(self.rulebook, kind) else {
            row.errors.push(format!(
                "{kind}: no response contains one, and no fixture can be generated"
            ));
            return row;
        };
        if !mutation.everywhere(&mut changed, pointer) {
            row.errors
                .push(format!("{kind}: its example has no value at {pointer}"));
            return row;
        }
        row.scenarios = 1;
        for violation in validate_payload(self.rulebook, self.schemas, kind, &changed).violations {
            if violation.level == Level::Must {
                row.failed_by.insert(violation.rule.clone());
            }
            row.killed_by.insert(violation.rule);
        }
        row
    }

    fn sessions<'b>(&self, faults: BTreeSet<Fault>, variants: BTreeSet<Variant>) -> Offline<'b> {
        Offline::in_process(0, faults, variants, self.targets.clone())
    }
}

impl Trial {
    /// Name of the row: `generated RULE ~ CHANGE`.
    fn id(&self) -> String {
        match self {
            Self::Rewrite(rewrite) => format!("generated {}", rewrite.id()),
            Self::Payload {
                kind,
                mutation,
                pointer,
            } => {
                format!("generated {kind}{pointer} {}", mutation.word())
            }
            Self::Written { rule } => format!("generated {rule} broken"),
        }
    }
}

/// Name of the row of a fault or a variation.
fn name(switch: Switch) -> String {
    match switch {
        Switch::Fault(fault) => format!("fault {}", fault.id()),
        Switch::Variant(variant) => format!("variant {}", variant.id()),
    }
}

fn complaint(what: &str, concluded: &Concluded) -> String {
    let first = concluded.judgment.findings.first();
    let why = first.map_or_else(
        || concluded.result.reason.clone(),
        |f| format!("{} at {:?}: {}", f.rule, f.pointer, f.message),
    );
    format!(
        "{what}: {}: {}: {why}",
        concluded.result.id,
        concluded.result.verdict.word()
    )
}
