//! Runs each scenario on the clean reference, and then with each fault and variation that it depends on.
//!
//! Runs with an identical outcome are skipped: see `engine/sessions/replay.rs`.

use super::enough::Due;
use super::matrix::Row;
use super::{Selftest, complaint};
use conformant_base::parallel::{lock, parallel_map};
use conformant_engine::sessions::{Offline, ReplayLog};
use conformant_engine::{Concluded, Planned, RecordedRun, Sessions};
use conformant_judge::prove::{Mode, Prover};
use conformant_record::{Level, Proof, Verdict};
use conformant_reference::Switch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Number of scenarios after which faults that have been caught are no longer tried. It does not depend on the number of
/// jobs, so that the result does not either.
const SCENARIOS_PER_WAVE: usize = 16;

/// Result of one scenario on the clean reference.
#[derive(Debug)]
pub(super) struct Clean {
    /// Index into the plan.
    pub(super) index: usize,
    pub(super) scenario: String,
    pub(super) exchanges: usize,
    pub(super) operations: BTreeSet<String>,
    pub(super) kinds: BTreeSet<String>,
    /// Switches that the reference read.
    pub(super) consulted: BTreeSet<Switch>,
    /// Recording for later runs.
    recorded: Mutex<RecordedRun>,
}

/// Results of all scenarios on the clean reference.
#[derive(Debug, Default)]
pub(super) struct Scenes {
    /// In the order of the plan.
    pub(super) clean: Vec<Clean>,
    /// Results of the switches.
    pub(super) rows: BTreeMap<Switch, Row>,
    /// Findings and errors of the clean reference.
    pub(super) unclean: Vec<String>,
    /// Judged rules.
    pub(super) judged: BTreeSet<String>,
    /// Result of mutation testing, if requested.
    pub(super) proof: Option<Proof>,
}

/// Result of one scenario in one trial.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TrialOutcome {
    /// The scenario, if it has findings.
    found_in: Option<String>,
    findings: Vec<(String, Level)>,
    error: Option<String>,
}

/// One scenario.
struct Scene {
    clean: Clean,
    concluded: Concluded,
    came: TrialOutcome,
    /// By switch; none if the result is that of the clean run.
    beside: Vec<(Switch, Option<TrialOutcome>)>,
    /// Combinations of variations that the scenario does not pass although it passes with fewer of them.
    refused: Vec<String>,
}

impl TrialOutcome {
    pub(super) fn of(concluded: &Concluded) -> Self {
        let findings = concluded.judgment.findings.iter();
        let is_ours = concluded.result.verdict == Verdict::Error;
        let mut findings: Vec<_> = findings.map(|f| (f.rule.clone(), f.level)).collect();
        findings.sort_unstable();
        Self {
            found_in: (!findings.is_empty()).then(|| concluded.result.id.clone()),
            findings,
            error: is_ours.then(|| format!("{}: {}", concluded.result.id, concluded.result.reason)),
        }
    }
}

impl Row {
    /// Adds the result of a scenario.
    pub(super) fn add_scenario(&mut self, came: &TrialOutcome) {
        self.scenarios += 1;
        self.add_found_in(came.found_in.clone());
        for (rule, level) in &came.findings {
            if !self.killed_by.contains(rule) {
                self.killed_by.insert(rule.clone());
            }
            if *level == Level::Must && !self.failed_by.contains(rule) {
                self.failed_by.insert(rule.clone());
            }
        }
        self.errors.extend(came.error.clone());
    }
}

impl Scenes {
    /// Adds a scenario; returns its index and its conclusion on the clean reference.
    fn add(&mut self, scene: Scene) -> (usize, Concluded) {
        let Scene {
            clean,
            concluded,
            came,
            beside,
            refused,
        } = scene;
        self.unclean.extend(refused);
        if concluded.result.verdict != Verdict::Pass || !came.findings.is_empty() {
            let complaint = complaint("clean reference", &concluded);
            self.unclean.push(complaint);
        }
        let tallies = concluded.judgment.tallies.iter();
        let judged = tallies.filter(|(_, tally)| tally.judged() > 0);
        self.judged.extend(judged.map(|(rule, _)| rule.clone()));
        for (switch, other) in beside {
            let row = self.rows.entry(switch).or_default();
            row.add_scenario(other.as_ref().unwrap_or(&came));
            row.differing += usize::from(other.is_some());
        }
        let index = clean.index;
        self.clean.push(clean);
        (index, concluded)
    }
}

impl Selftest<'_> {
    /// Runs all scenarios on the clean reference and with these switches; `tell` receives the number finished.
    pub(super) fn scenes(
        &self,
        planned: &[Planned<'_>],
        switches: &BTreeSet<Switch>,
        is_proven: bool,
        tell: &(dyn Fn(usize) + Sync),
    ) -> Scenes {
        let tracks = Mutex::new(BTreeMap::new());
        let sessions = self
            .sessions(BTreeSet::new(), BTreeSet::new())
            .with_replay_logs(&tracks);
        let count = planned.len();
        let prover = Prover::new(self.rulebook, self.schemas, Mode::Rules, 0, count);
        let prover = is_proven.then_some(prover);
        let mut scenes = Scenes::default();
        for &switch in switches {
            let is_variant = matches!(switch, Switch::Variant(_));
            let row = Row {
                is_variant,
                ..Row::default()
            };
            scenes.rows.insert(switch, row);
        }
        let mut all = Vec::new();
        let run = |index: usize, due: &Due<'_>| {
            let track = || {
                let mut tracks = lock(&tracks);
                tracks.remove(&planned[index].scenario.id)
            };
            self.scene(planned, index, &sessions, due, prover.as_ref(), track)
        };
        // The shortest first, which mutation testing needs.
        let mut turns: Vec<usize> = (0..count).collect();
        turns.sort_by_key(|&index| planned[index].length());
        let per_wave = self.enough.map_or(count.max(1), |_| SCENARIOS_PER_WAVE);
        for (wave, turns) in turns.chunks(per_wave).enumerate() {
            let due = self.due(&scenes.rows);
            let before = wave * per_wave;
            let finished = |done: usize| tell(before + done);
            let run = |turn: usize| run(turns[turn], &due);
            for scene in self.parallel_map(turns.len(), run, &finished) {
                all.push(scenes.add(scene));
            }
        }
        self.try_left_over(&mut scenes, planned);
        scenes.clean.sort_by_key(|clean| clean.index);
        all.sort_by_key(|(index, _)| *index);
        let all = all.into_iter().map(|(_, concluded)| concluded).collect();
        if let Some(prover) = prover {
            let mut record = conformant_engine::record_of(self.rulebook, &sessions, planned, all);
            prover.finish(&mut record);
            scenes.proof = record.proof;
        }
        scenes
    }

    fn scene(
        &self,
        planned: &[Planned<'_>],
        index: usize,
        sessions: &Offline<'_>,
        due: &Due<'_>,
        prover: Option<&Prover<'_>>,
        track: impl FnOnce() -> Option<ReplayLog>,
    ) -> Scene {
        let one = &planned[index];
        let (rulebook, schemas, seed) = (self.rulebook, self.schemas, 0);
        let (concluded, recorded) = conformant_engine::conclude_with_evidence(
            rulebook, schemas, one, sessions, seed, prover,
        );
        let came = TrialOutcome::of(&concluded);
        let track = Arc::new(track().unwrap_or_default());
        let mut beside = Vec::new();
        let consulted: Vec<Switch> = track.consulted().collect();
        let together = due.together(&consulted);
        let (unflagged, refused) = self.unflagged_together(index, one, &recorded, &together);
        beside.extend(unflagged.iter().map(|&switch| (switch, None)));
        track.compare(
            |switch| due.wants(switch, &concluded) && !unflagged.contains(&switch),
            |switch, differing| {
                let other = differing.map(|rerun| {
                    let session = sessions.replayed(&one.scenario.id, switch, rerun);
                    let session = session.as_ref();
                    let again = conformant_engine::conclude_again(
                        rulebook, schemas, one, session, seed, &recorded,
                    );
                    TrialOutcome::of(&again)
                });
                beside.push((switch, other));
            },
        );
        let clean = Clean {
            index,
            scenario: one.scenario.id.clone(),
            exchanges: concluded.exchanges,
            operations: concluded.operations.clone(),
            kinds: concluded.kinds.clone(),
            consulted: consulted.into_iter().collect(),
            recorded: Mutex::new(recorded),
        };
        Scene {
            clean,
            concluded,
            came,
            beside,
            refused,
        }
    }

    /// Runs a scenario again with a mutation.
    pub(super) fn run_scenario(
        &self,
        clean: &Clean,
        planned: &[Planned<'_>],
        sessions: &Offline<'_>,
    ) -> Concluded {
        let recorded = lock(&clean.recorded);
        self.run_again(&recorded, &planned[clean.index], sessions)
    }

    /// See [`Self::refused_combinations`].
    pub(super) fn refused_in(
        &self,
        clean: &Clean,
        planned: &[Planned<'_>],
        on: &[Switch],
    ) -> Vec<String> {
        let recorded = lock(&clean.recorded);
        self.refused_combinations(&planned[clean.index], &recorded, on)
    }

    pub(super) fn run_again(
        &self,
        recorded: &RecordedRun,
        one: &Planned<'_>,
        sessions: &Offline<'_>,
    ) -> Concluded {
        let session = sessions.open(one).expect("an instance in process opens");
        let (rulebook, schemas, session) = (self.rulebook, self.schemas, session.as_ref());
        conformant_engine::conclude_again(rulebook, schemas, one, session, 0, recorded)
    }

    /// Does a number of tasks on all jobs; results are in their order.
    pub(super) fn parallel_map<T: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
        tell: &(dyn Fn(usize) + Sync),
    ) -> Vec<T> {
        let turns: Vec<usize> = (0..count).collect();
        let done = AtomicUsize::new(0);
        parallel_map(&turns, self.jobs, |turn| {
            let one = work(*turn);
            tell(done.fetch_add(1, Ordering::Relaxed) + 1);
            one
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutate::{Mutator, Rewrite};
    use super::super::{Trial, matrix};
    use super::*;
    use conformant_engine::sessions::Mutate;
    use conformant_engine::{Target, plan};

    use conformant_schema::Schemas;
    use std::sync::atomic::AtomicBool;

    /// Scenarios and generated faults of the sample.
    const EVERY_STORY: usize = if cfg!(debug_assertions) { 180 } else { 18 };
    const EVERY_PLACE: usize = if cfg!(debug_assertions) { 30 } else { 3 };
    const EVERY_REWRITE: usize = if cfg!(debug_assertions) { 40 } else { 4 };

    struct Tried<'a>(Selftest<'a>, Vec<Planned<'a>>);

    impl Tried<'_> {
        /// Runs and judges a scenario from its beginning, without a recording.
        fn whole(&self, index: usize, sessions: &Offline<'_>) -> TrialOutcome {
            let Self(selftest, planned) = self;
            let (rulebook, schemas) = (selftest.rulebook, selftest.schemas);
            let calm = AtomicBool::new(false);
            let one = &planned[index];
            TrialOutcome::of(&conformant_engine::conclude(
                rulebook, schemas, one, sessions, 0, &calm,
            ))
        }

        fn scene(&self, index: usize, switches: &BTreeSet<Switch>) -> Scene {
            let tracks = Mutex::new(BTreeMap::new());
            let sessions = self.0.sessions(BTreeSet::new(), BTreeSet::new());
            let sessions = sessions.with_replay_logs(&tracks);
            let track = || tracks.lock().expect("no thread panicked").pop_first();
            let track = || track().map(|(_, track)| track);
            self.0.scene(
                &self.1,
                index,
                &sessions,
                &Due::all(switches.iter().copied()),
                None,
                track,
            )
        }
    }

    fn with_all(check: impl FnOnce(&Tried<'_>)) {
        let rulebook = conformant_judge::load::shared();
        let schemas = Schemas::default();
        let selftest = Selftest {
            rulebook,
            schemas: &schemas,
            targets: Target::all_of_reference(),
            jobs: 1,
            filters: Vec::new(),
            enough: None,
            seed: 0,
        };
        check(&Tried(selftest, plan::all(rulebook)));
    }

    #[test]
    fn faults_and_variations_match_a_complete_run() {
        with_all(|tried| {
            let switches: BTreeSet<Switch> = Switch::all().collect();
            let (mut same, mut other) = (0, 0);
            for index in (0..tried.1.len()).step_by(EVERY_STORY) {
                let scene = tried.scene(index, &switches);
                let asked: BTreeSet<Switch> = scene.beside.iter().map(|(s, _)| *s).collect();
                assert_eq!(asked, scene.clean.consulted);
                for (switch, short) in &scene.beside {
                    let (faults, variants) = switch.alone();
                    let whole = tried.whole(index, &tried.0.sessions(faults, variants));
                    let id = &scene.clean.scenario;
                    let came = short.as_ref().unwrap_or(&scene.came);
                    assert_eq!(*came, whole, "{switch:?} in {id}");
                    *(if short.is_some() {
                        &mut other
                    } else {
                        &mut same
                    }) += 1;
                }
            }
            assert!(same > 50 && other > 50, "{same} {other}");
        });
    }

    #[test]
    fn switches_that_are_on_together_are_flagged_as_alone() {
        use conformant_reference::{Fault, Variant};
        with_all(|tried| {
            let Tried(selftest, planned) = tried;
            let mut happy = planned.iter();
            let index = happy.position(|one| one.scenario.id == "flow/read-flows/happy");
            let clean = tried.scene(index.unwrap(), &BTreeSet::new()).clean;
            let recorded = clean.recorded.lock().unwrap();
            let unflagged = |switches: &[Switch]| {
                selftest.unflagged_together(0, &planned[clean.index], &recorded, switches)
            };
            let allowed = [Variant::PrettyJson, Variant::ReversedKeys].map(Switch::Variant);
            let fault = Switch::Fault(Fault::FlowNameNull);
            assert_eq!(unflagged(&allowed), (BTreeSet::from(allowed), vec![]));
            // A single one that is flagged makes no combination.
            assert_eq!(unflagged(&[allowed[0], fault]), (BTreeSet::new(), vec![]));
        });
    }

    /// Each of these was flagged or not decided although a conforming target may be so.
    #[test]
    fn what_was_flagged_together_passes() {
        use conformant_reference::Variant as V;
        with_all(|tried| {
            for (scenario, on) in [
                (
                    "flow/create-execution/in-turn",
                    [V::FlowOnePerPerson, V::FlowListsLagMost],
                ),
                (
                    "flow/create-execution/in-turn",
                    [V::FlowSecondExecutionRefused, V::FlowListsLag],
                ),
                (
                    "flow/read-executions/in-turn",
                    [V::FlowOnePerPerson, V::FlowListsLag],
                ),
                (
                    "flow/date-filters/on-later-pages",
                    [V::FlowOnePerPerson, V::FlowListsLag],
                ),
                (
                    "media/upload-media/in-turn",
                    [V::BasicDates, V::MediaDateOnly],
                ),
            ] {
                let mut planned = tried.1.iter();
                let index = planned.position(|one| one.scenario.id == scenario);
                let clean = tried.scene(index.unwrap(), &BTreeSet::new()).clean;
                let refused = tried
                    .0
                    .refused_in(&clean, &tried.1, &on.map(Switch::Variant));
                assert_eq!(refused, Vec::<String>::new());
            }
        });
    }

    #[test]
    fn another_seed_tries_other_variations_together() {
        with_all(|tried| {
            let switches: Vec<Switch> = Switch::all().take(50).collect();
            let drawn = |seed| {
                Selftest {
                    seed,
                    filters: Vec::new(),
                    targets: BTreeMap::new(),
                    ..tried.0
                }
                .groups(3, &switches)
            };
            assert_eq!(drawn(1), drawn(1));
            assert_ne!(drawn(1), drawn(2));
            let all: BTreeSet<Switch> = drawn(1).into_iter().flatten().collect();
            assert_eq!(all.len(), switches.len());
        });
    }

    #[test]
    fn generated_faults_match_a_complete_run() {
        with_all(|tried| {
            let clean: Vec<Clean> = (0..tried.1.len())
                .step_by(EVERY_PLACE)
                .map(|index| tried.scene(index, &BTreeSet::new()).clean)
                .collect();
            let rewrites = tried.0.trials(&clean).into_iter().filter_map(|t| match t {
                Trial::Rewrite(rewrite) => Some(rewrite),
                Trial::Payload { .. } | Trial::Written { .. } => None,
            });
            let rewrites: Vec<Rewrite> = rewrites.collect();
            let mut found = 0;
            for rewrite in rewrites.iter().step_by(EVERY_REWRITE) {
                let shows = |c: &&Clean| rewrite.touches(&c.operations, &c.kinds, &c.scenario);
                for place in clean.iter().filter(shows).take(3) {
                    let came = |is_short: bool| {
                        let mutator = Mutator::new(tried.0.rulebook, rewrite, &tried.0.targets);
                        let sessions = tried.0.sessions(BTreeSet::new(), BTreeSet::new());
                        let sessions = sessions.mutated(&mutator as &dyn Mutate);
                        if is_short {
                            TrialOutcome::of(&tried.0.run_scenario(place, &tried.1, &sessions))
                        } else {
                            tried.whole(place.index, &sessions)
                        }
                    };
                    let (short, whole) = (came(true), came(false));
                    assert_eq!(short, whole, "{} in {}", rewrite.id(), place.scenario);
                    let mut row = matrix::Row::default();
                    row.add_scenario(&short);
                    found += usize::from(!row.killed_by.is_empty());
                }
            }
            assert!(found > 10, "{found}");
        });
    }
}
