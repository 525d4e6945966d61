//! The self-test: proves the rulebook against the reference.
//!
//! The clean reference and every variant bring no finding; every fault, named or generated, is
//! caught by exactly the rules that the kill matrix records. A rule that no fault kills is dead; one
//! that holds whatever is changed in the clean reference's answers is vacuous.

mod explored;
mod known;
mod mangle;
mod matrix;
mod not_yet;
mod pairs;
mod report;
mod written;

pub use explored::{Explored, ExploredBy};
pub use known::{CAUGHT_BY, CAUGHT_BY_FILE, known_defects};
pub use matrix::{CaughtBy, Matrix, Recorded, Row, State};
pub use not_yet::NotYet;
pub use pairs::Pairs;

use crate::engine::plan::{self, Planned};
use crate::engine::sessions::{Consulted, Mangle, Offline};
use crate::engine::{self, Concluded, Options, Target};
use crate::judge::payload::judge_payload;
use crate::judge::{Change, closed_at, of_property};
use crate::prove::Mode;
use crate::reference::{Fault, Variant};
use crate::rulebook::{Origin, Rulebook};
use crate::schema::Schemas;
use crate::text::glob;
use crate::verdict::{Level, Proof, RunEvent, Verdict};
use mangle::Rewrite;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Scenarios that a generated fault is tried on: the smallest that bring what it changes.
const SCENARIOS_PER_REWRITE: usize = 3;
/// Nothing that is proven in process comes near it.
const PROOF_MAX: Duration = Duration::from_secs(3600);

/// What a self-test is made with.
#[derive(Debug)]
pub struct Selftest<'a> {
    /// The rulebook under test.
    pub rulebook: &'a Rulebook,
    /// Its schemas.
    pub schemas: &'a Schemas,
    /// The reference's targets by service.
    pub targets: BTreeMap<String, Target>,
    /// Runs side by side.
    pub jobs: usize,
    /// Only faults and variants whose id matches one of these globs; empty for all.
    pub filters: Vec<String>,
}

/// One thing that is tried on the reference.
#[derive(Debug)]
enum Trial {
    Variant(Variant),
    Fault(Fault),
    Rewrite(Rewrite),
    Payload {
        kind: String,
        mutation: Change,
        pointer: String,
    },
    /// A written rule about a representation that no exchange carries.
    Written {
        rule: String,
    },
}

/// What the clean reference showed of one scenario.
#[derive(Debug)]
struct Clean {
    /// Index into the plan.
    index: usize,
    /// Scenario id.
    scenario: String,
    exchanges: usize,
    operations: BTreeSet<String>,
    kinds: BTreeSet<String>,
    consulted: Consulted,
}

impl Selftest<'_> {
    /// Runs everything; `progress` is told how many of how many trials are done.
    pub fn run(&self, progress: &(dyn Fn(usize, usize) + Sync)) -> Matrix {
        let planned = plan::all(self.rulebook);
        let (clean, mut matrix) = self.clean(&planned);
        let trials = self.trials(&clean);
        let done = AtomicUsize::new(0);
        let next = AtomicUsize::new(0);
        let rows = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let row = self.try_out(trial, &planned, &clean);
                        let mut rows = rows
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner);
                        rows.insert(trial.id(), row);
                        progress(done.fetch_add(1, Ordering::Relaxed) + 1, trials.len());
                    }
                });
            }
        });
        matrix.rows = rows
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.filters.is_empty() {
            matrix.find_dead(self.rulebook);
            matrix.proof = self.proof(&planned);
        }
        matrix
    }

    /// What the green of the clean reference is worth, rule by rule.
    fn proof(&self, planned: &[Planned<'_>]) -> Option<Proof> {
        let options = Options {
            seed: 0,
            jobs: self.jobs,
            shuffle: false,
            run_max: PROOF_MAX,
            prove: Mode::Rules,
            keeper: None,
        };
        let mut proof = None;
        let mut keep = |event| {
            if let RunEvent::Finished { record } = event {
                proof = record.proof;
            }
        };
        engine::run(
            self.rulebook,
            self.schemas,
            planned,
            &self.sessions(BTreeSet::new(), BTreeSet::new()),
            &options,
            &AtomicBool::new(false),
            &mut keep,
            |_, _| (),
        );
        proof
    }

    /// The clean reference under all scenarios.
    fn clean(&self, planned: &[Planned<'_>]) -> (Vec<Clean>, Matrix) {
        let consulted = Mutex::new(BTreeMap::new());
        let sessions = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .consulting(&consulted);
        let mut matrix = Matrix::default();
        let mut clean: Vec<Clean> = Vec::new();
        let mut judged = BTreeSet::new();
        for (index, one) in planned.iter().enumerate() {
            let concluded = self.play(one, &sessions);
            if concluded.result.verdict != Verdict::Pass || !concluded.judgement.findings.is_empty()
            {
                matrix
                    .unclean
                    .push(complaint("clean reference", &concluded));
            }
            let tallies = concluded.judgement.tallies.iter();
            let of_instances = tallies.filter(|(_, tally)| tally.judged() > 0);
            judged.extend(of_instances.map(|(rule, _)| rule.clone()));
            let consulted = consulted
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .remove(&one.scenario.id)
                .unwrap_or_default();
            clean.push(Clean {
                index,
                scenario: one.scenario.id.clone(),
                exchanges: concluded.exchanges,
                operations: concluded.operations,
                kinds: concluded.kinds,
                consulted,
            });
        }
        if self.filters.is_empty() {
            let shown: BTreeSet<&String> = clean.iter().flat_map(|c| &c.kinds).collect();
            matrix.find_idle(self.rulebook, &judged, &shown);
        }
        (clean, matrix)
    }

    fn trials(&self, clean: &[Clean]) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        trials.extend(Variant::ALL.iter().map(|v| Trial::Variant(*v)));
        trials.extend(Fault::ALL.iter().map(|f| Trial::Fault(*f)));
        let shown: BTreeSet<&String> = clean.iter().flat_map(|c| &c.kinds).collect();
        for rule in self.rulebook.rules.values() {
            match &rule.origin {
                Origin::Property { kind, pointer } => {
                    for mutation in of_property(self.rulebook, kind, pointer) {
                        trials.push(self.of_kind(&shown, kind, pointer, mutation));
                    }
                }
                Origin::NoOtherFields { kind } => {
                    let pointer = closed_at(self.rulebook, kind, &rule.id);
                    trials.push(self.of_kind(&shown, kind, &pointer, Change::ExtraField));
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
        trials.retain(|trial| self.is_wanted(&trial.id()) && Self::can_show(trial, clean));
        trials
    }

    fn is_wanted(&self, id: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|f| glob(f, id))
    }

    /// Whether any scenario gives a generated fault something to change; the rules behind those that
    /// cannot show are dead unless something else kills them.
    fn can_show(trial: &Trial, clean: &[Clean]) -> bool {
        match trial {
            Trial::Rewrite(rewrite) => clean
                .iter()
                .any(|c| rewrite.touches(&c.operations, &c.kinds, &c.scenario)),
            Trial::Variant(_) | Trial::Fault(_) | Trial::Payload { .. } | Trial::Written { .. } => {
                true
            }
        }
    }

    /// A change of a representation: of answers where the reference shows any, else of the
    /// schema's own example.
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
            Trial::Variant(variant) => {
                let touched = clean
                    .iter()
                    .filter(|c| c.consulted.variants.contains(variant));
                let sessions = self.sessions(BTreeSet::new(), BTreeSet::from([*variant]));
                let mut row = self.over(touched, planned, &sessions);
                row.is_variant = true;
                row
            }
            Trial::Fault(fault) => {
                let touched = clean.iter().filter(|c| c.consulted.faults.contains(fault));
                let sessions = self.sessions(BTreeSet::from([*fault]), BTreeSet::new());
                self.over(touched, planned, &sessions)
            }
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
            let concluded = self.play(&planned[clean.index], sessions);
            row.scenarios += 1;
            for finding in &concluded.judgement.findings {
                row.killed_by.insert(finding.rule.clone());
                if finding.level == Level::Must {
                    row.failed_by.insert(finding.rule.clone());
                }
            }
            if concluded.result.verdict == Verdict::Error {
                row.errors.push(format!(
                    "{}: {}",
                    concluded.result.id, concluded.result.reason
                ));
            }
        }
        row
    }

    /// A generated fault on the smallest scenarios that bring what it changes; on more of them until
    /// something is found.
    fn rewritten(&self, rewrite: &Rewrite, planned: &[Planned<'_>], clean: &[Clean]) -> Row {
        let mut touched: Vec<&Clean> = clean
            .iter()
            .filter(|c| rewrite.touches(&c.operations, &c.kinds, &c.scenario))
            .collect();
        let best = rewrite.best();
        touched.sort_by_key(|c| (best.as_ref() != Some(&c.scenario), c.exchanges, c.index));
        let mangle = mangle::Mangler::new(self.rulebook, rewrite, &self.targets);
        let sessions = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .mangled(&mangle as &dyn Mangle);
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

    /// An example with one thing changed, judged as a payload.
    fn payload(&self, kind: &str, mutation: &Change, pointer: &str) -> Row {
        let mut row = Row::default();
        let Some(mut changed) = written::example(self.rulebook, kind) else {
            row.errors.push(format!(
                "{kind}: nothing shows one, and no fixture can be made"
            ));
            return row;
        };
        if !mutation.everywhere(&mut changed, pointer) {
            row.errors
                .push(format!("{kind}: its example has nothing at {pointer}"));
            return row;
        }
        row.scenarios = 1;
        for violation in judge_payload(self.rulebook, self.schemas, kind, &changed).violations {
            if violation.level == Level::Must {
                row.failed_by.insert(violation.rule.clone());
            }
            row.killed_by.insert(violation.rule);
        }
        row
    }

    fn play(&self, planned: &Planned<'_>, sessions: &Offline<'_>) -> Concluded {
        let calm = AtomicBool::new(false);
        engine::conclude(self.rulebook, self.schemas, planned, sessions, 0, &calm)
    }

    fn sessions<'b>(&self, faults: BTreeSet<Fault>, variants: BTreeSet<Variant>) -> Offline<'b> {
        Offline::in_process(0, faults, variants, self.targets.clone())
    }
}

impl Trial {
    /// Names the row: `fault flow/…`, `variant …`, `generated RULE ~ CHANGE`.
    fn id(&self) -> String {
        match self {
            Self::Variant(variant) => format!("variant {}", variant.id()),
            Self::Fault(fault) => format!("fault {}", fault.id()),
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

fn complaint(what: &str, concluded: &Concluded) -> String {
    let first = concluded.judgement.findings.first();
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
