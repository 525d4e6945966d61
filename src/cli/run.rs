//! `run`: runs the scenarios and writes the reports.

mod notes;
mod selection;

pub(super) use selection::{check_services, has_target};

use super::args::{Prove, RunArgs};
use super::claims::Claims;
use super::config::{self, Config, Reading};
use super::output::EarlierReports;
use super::repeat::{EvidenceBuffer, Repetition};
use super::signals::Signals;
use super::{
    Done, Exit, Failure, build, earlier, history, invocation, load_with, note, output, preview,
    print, quoting, reports_about_evidence, require_evidence, today, verify,
};
use conformant_base::clock::{self, Timestamp};
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_engine::evidence_file::Head;
use conformant_engine::probe::Probe;
use conformant_engine::sessions::{EXPIRED, Live, LiveOptions, Offline};
use conformant_engine::{
    ENDED_BEFORE, EvidenceWriter, Options, Partition, Planned, RunEnd, Sessions, Target,
};
use conformant_judge::prove::Mode;
use conformant_record::waivers::Waivers;
use conformant_record::{PartOf, RunEvent, RunRecord, ScenarioResult, WallClock};
use conformant_report::{Consumer, Growing, Report, ReportLock, Settings, Stream};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use conformant_selftest::known_defects;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const REPORTS: [&str; 2] = ["json=reports/run.json", "junit=reports/junit.xml"];

pub(super) fn run(args: &RunArgs) -> Done {
    let reports = reports_about_evidence(&args.output.reports, &REPORTS)?;
    match &args.keep_evidence {
        Some(path) => super::check_own_place("--keep-evidence", path, &reports)?,
        None => require_evidence(&reports)?,
    }
    if args.dry_run {
        return run_with(args, &reports);
    }
    let earlier = EarlierReports::at(&reports);
    let done = run_with(args, &reports);
    // `--rerun` reads the reports of the run whose failures it repeats.
    earlier.settle(args.rerun.is_none());
    done
}

fn run_with(args: &RunArgs, reports: &[Report]) -> Done {
    let mut config = configuration(args)?;
    let claims = Claims::read(args.claims.as_deref())?;
    let waivers = claims.waivers(args.waivers.as_deref())?;
    let rulebook = load_with(&args.on.specs, args.scenarios.as_slice())?;
    check_body_operations(&rulebook, &config)?;
    config::check_values(&rulebook, &config)?;
    claims.check_names(&rulebook)?;
    if args.claims.is_some() && args.partition.is_some() {
        return Err(Failure::Usage(
            "--claims: one part cannot judge all claims; give --claims to `merge`".to_owned(),
        ));
    }
    super::baseline::check_ids(&rulebook, &waivers)?;
    let is_live = !config.settings.targets.is_empty() && !args.dry_run;
    let (seed, names) = seed_and_names((args.seed, args.names.as_deref()), is_live)?;
    config.settings.names = names;
    config.settings.are_names_given = args.names.is_some();
    let Some(selected) = selection::select(args, &config, &rulebook, seed)? else {
        return Ok(Exit::NothingJudged);
    };
    if args.dry_run {
        print(&preview::of(&selected.planned, &rulebook, &config.settings));
        return Ok(Exit::Conformant);
    }
    // Before the first file: a signal that ends the process at once would leave it.
    let signals = Signals::listen()?;
    output::check_reports(reports)?;
    let lock = output::naming_new_folders(reports, || ReportLock::take(reports));
    let _lock = lock.map_err(|e| Failure::Usage(e.to_string()))?;
    let run = Run {
        args,
        config: &config,
        rulebook: &rulebook,
        planned: &selected.planned,
        partition: selected.partition,
        seed,
        waivers: Waivers::on(&waivers, today()),
        claims: &claims,
        signals: &signals,
        previous: earlier::last(),
        history: match &args.history {
            Some(folder) => Some(history::prepare(folder)?),
            None => None,
        },
        began: clock::now(),
        began_monotonic: clock::monotonic(),
    };
    run.execute(reports)
}

/// Reads the configuration and applies the flags that change it.
fn configuration(args: &RunArgs) -> Result<Config, Failure> {
    let reading = Reading {
        is_reference: args.reference,
        is_dry: args.dry_run,
        is_partition: args.partition.is_some(),
        run_max: args.global_timeout.as_deref(),
        is_of_stored_run: false,
        is_run: true,
    };
    let mut config = config::read(&args.on, reading)?;
    if args.require_target || !args.dry_run {
        config::check_target(&args.on, args.reference, args.require_target, &config)?;
    }
    let hooks = args.on.hooks.as_deref().filter(|_| !args.reference);
    config::check_hooks(hooks, args.dry_run, &config)?;
    let is_live = !config.settings.targets.is_empty();
    config.settings.rounds = match args.rounds {
        Some(rounds) => usize::from(rounds),
        None if is_live => config.settings.rounds,
        None => 1,
    };
    if !is_live && args.timings {
        let why = "--timings needs a live target, because time is virtual without one; add --target SERVICE=URL";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(config)
}

/// One run: what the flags select, what it is compared with, and when it began.
struct Run<'a> {
    args: &'a RunArgs,
    config: &'a Config,
    rulebook: &'a Rulebook,
    planned: &'a [Planned<'a>],
    partition: Option<Partition>,
    seed: u64,
    waivers: Waivers<'a>,
    claims: &'a Claims,
    signals: &'a Signals,
    /// The record of the previous run in this folder.
    previous: Option<RunRecord>,
    /// The stored runs of `--history`, with their names.
    history: Option<Vec<(String, RunRecord)>>,
    began: Timestamp,
    began_monotonic: Instant,
}

struct RunConclusion {
    exit: Exit,
    /// Reasons for the exit code that the console does not print.
    reasons: Vec<String>,
    /// Waivers that expired or match no failure.
    waiver_problems: Vec<String>,
    /// What failed apart from findings and waivers.
    errors: Vec<String>,
}

impl Run<'_> {
    fn is_live(&self) -> bool {
        !self.config.settings.targets.is_empty()
    }

    /// Runs the scenarios, and writes the reports and what the flags ask to keep.
    fn execute(&self, reports: &[Report]) -> Done {
        let args = self.args;
        let mut options = options(args, self.config, self.seed);
        let settings = Settings {
            strict: args.output.strict,
        };
        let evidence = args.keep_evidence.as_deref().map(|path| {
            let fails = |e| Failure::Usage(format!("--keep-evidence {}: {e}", path.display()));
            Growing::begin(path).map_err(fails)
        });
        let evidence = evidence.transpose()?;
        let mut event_lines = output::event_lines(reports, settings)?;
        let redactor = Redactor::new(&self.config.secrets);
        let mut out = output::stream(reports);
        let console = output::console(out.as_mut(), args.output.console, reports, settings);
        let mut console = console.with_limit(self.config.run_max).without_last_lines();
        let mut consumers = vec![&mut console as &mut dyn Consumer];
        consumers.extend(event_lines.iter_mut().map(|one| one as &mut dyn Consumer));
        let mut stream = Stream::new(&redactor, consumers);
        let runs = self.run_plan(&mut options, evidence.as_ref(), &mut stream)?;
        let Some((mut record, run_end)) = runs.finish() else {
            return Err(Failure::Trouble("the run wrote no record".to_owned()));
        };
        let conclusion = self.complete(&mut record, &run_end);
        let mut record = stream.finish(record);
        let last_lines = console.last_lines();
        conclusion.reasons.iter().for_each(|reason| note(reason));
        if let Some(repeats) = &record.repeats {
            // A report on standard output moves the console to standard error.
            output::say(reports, &conformant_report::render_repeats(repeats));
        }
        let evidence_writer = options.evidence_writer.as_deref();
        let kept = finish_evidence(evidence_writer, evidence, &record, &run_end);
        if let (Some(path), Ok(())) = (&args.keep_evidence, &kept) {
            record.evidence = Some(verify::stamp(path)?);
        }
        let written = output::finish_reports(event_lines, reports, &record, settings);
        if let Some(folder) = &args.history {
            history::keep(folder, &record, self.began)?;
        }
        let seconds = self.began_monotonic.elapsed().as_secs_f64();
        note(&format!("took {seconds:.1} s"));
        if let Some(wall) = &record.wall {
            output::say(reports, &conformant_report::render_timings(wall));
        }
        notes::print(self, &conclusion, &record);
        output::finish(reports, &last_lines);
        written?;
        kept?;
        Ok(conclusion.exit)
    }

    /// Runs the plan once, or as often as `--repeat` asks for, each time with other names.
    fn run_plan(
        &self,
        options: &mut Options,
        evidence: Option<&Growing>,
        stream: &mut Stream<'_>,
    ) -> Result<Repetition, Failure> {
        let (args, signals) = (self.args, self.signals);
        let requested = self.args.repeat.map_or(1, usize::from);
        let mut runs = Repetition::new(requested);
        for run in 1..=requested {
            // The first run also ends by itself, with an incomplete record.
            if run > 1 && (runs.is_aborted() || signals.interrupted.load(Ordering::Relaxed)) {
                break;
            }
            let mut config = self.config.clone();
            if run > 1 {
                config.settings.names = names_of_repetition(run, requested, self.is_live());
            }
            let sessions =
                match sessions(&config, self.rulebook, (self.seed, options.jobs), signals) {
                    Err(failure) if run > 1 => {
                        note(&failure.to_string());
                        runs.note_failed_start();
                        break;
                    }
                    opened => opened?,
                };
            let mut head = Head::of(self.rulebook, self.planned, self.seed);
            head.targets = sessions.targets();
            head.begun = self.is_live().then(|| clock::iso_seconds(self.began));
            if self.is_live() {
                head.invocation = invocation::of_run(&args.on, &config, self.seed, requested > 1);
            }
            let buffer = EvidenceBuffer::default();
            options.evidence_writer = match evidence {
                Some(evidence) => Some(evidence_writer(evidence, &config, &head)?),
                None => (requested > 1).then(|| buffer.begin(&config, &head)),
            };
            let mut finished_record = None;
            let mut emit = |event| match event {
                RunEvent::Started { .. } if run > 1 => {}
                RunEvent::Started { scenarios, targets } => {
                    stream.send(RunEvent::Started {
                        scenarios: scenarios * requested,
                        targets,
                    });
                    if self.is_live() {
                        note_names(self.seed, &config.settings.names);
                    }
                }
                RunEvent::Finished { record } => finished_record = Some(*record),
                event @ (RunEvent::ScenarioBegan { .. }
                | RunEvent::ScenarioPlayed { .. }
                | RunEvent::Waiting { .. }
                | RunEvent::Alive { .. }
                | RunEvent::ScenarioEnded { .. }) => stream.send(self.with_waivers(event)),
            };
            let run_end = conformant_engine::run(
                self.rulebook,
                &Schemas::default(),
                self.planned,
                sessions.as_ref(),
                options,
                &signals.interrupted,
                &mut emit,
                |_, _| (),
            );
            // With `--keep-evidence`, the evidence is complete only when its file is closed.
            if evidence.is_none()
                && let Some(writer) = options.evidence_writer.take()
            {
                let written = writer.end(true, &RunEnd::default());
                written.map_err(|e| evidence_failure(&e))?;
            }
            if let Some(record) = finished_record {
                runs.add(&config.settings.names, record, run_end, buffer.take());
            }
        }
        Ok(runs)
    }

    /// Marks the findings of a scenario that waivers accept.
    fn with_waivers(&self, mut event: RunEvent) -> RunEvent {
        if let RunEvent::ScenarioEnded {
            result, findings, ..
        } = &mut event
        {
            self.waivers.mark(result, findings);
        }
        event
    }

    /// Completes the record when the last scenario has ended, and determines the exit code.
    fn complete(&self, record: &mut RunRecord, ended: &RunEnd) -> RunConclusion {
        let args = self.args;
        // Signals that arrive from here on do not make the run incomplete.
        let exit_by_signal = self.signals.exit();
        record.complete &= exit_by_signal.is_none();
        record.ended_early = match exit_by_signal {
            Some(_) => None,
            None => ended_early(record, ended),
        };
        record.partition = self.partition.map(PartOf::from);
        if let Some(previous) = self.previous.as_ref().filter(|_| args.rerun.is_some()) {
            earlier::mark_flaky(previous, record);
        }
        let waiver_problems = self.waivers.apply(record, selection::is_whole(args));
        let specs = args.on.specs.specs.as_deref();
        conformant_record::add_defects(record, &known_defects(specs), args.output.strict);
        record.invocation =
            invocation::of_run(&args.on, self.config, self.seed, args.repeat.is_some());
        quoting::add(record, self.rulebook, args.on.config.as_deref(), specs);
        record.places = places(args.on.config.as_deref(), self.rulebook, self.planned);
        let history = self.history.as_ref();
        record.history = history.map(|history| conformant_versions::history(history, record));
        record.build = self.is_live().then(build::of_environment).flatten();
        // Runs against the reference are reproducible byte by byte, so their records contain no real time.
        record.wall = self.is_live().then(|| WallClock {
            started: clock::iso_seconds(self.began),
            seconds: (self.began_monotonic.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            timings: args.timings.then(|| ended.timings.clone()),
        });
        let unjudged = self.claims.judge(record);
        let problems = [waiver_problems.as_slice(), &unjudged].concat();
        let demands = args.demands.with(args.output.strict);
        let is_trouble = ended.has_infrastructure_error;
        let (conclusion, mut reasons) =
            conformant_engine::gate(demands, record, &problems, is_trouble);
        reasons.extend(unjudged);
        let exit = exit_by_signal.unwrap_or(conclusion.into());
        record.exit = Some(exit as u8);
        let errors = notes::errors(ended, record, self.config);
        record.errors.clone_from(&errors);
        record.errors.extend(problems);
        RunConclusion {
            exit,
            reasons,
            waiver_problems,
            errors,
        }
    }
}

/// Why a run did not run every scenario to its end, unless a signal ended it.
fn ended_early(record: &RunRecord, ended: &RunEnd) -> Option<String> {
    if record.complete {
        return None;
    }
    if let Some(void) = ended.void_services().into_iter().next() {
        return Some(void.why);
    }
    if let Some((service, why)) = &ended.gone {
        return Some(match why == EXPIRED {
            true => format!("{service} rejects the configured credentials"),
            false => format!("{service} stopped answering"),
        });
    }
    let limit = shown_duration(ended.time_limit?);
    let is_cut = |s: &&ScenarioResult| s.reason == ENDED_BEFORE;
    let cut = record.scenarios.iter().filter(is_cut).count();
    let (cut, remedy) = match cut {
        0 if record.proof.is_some() => (
            "the mutation testing of the last scenarios was cut short".to_owned(),
            ", or leave it out with --prove off",
        ),
        cut => (
            format!("{} not run to the end", text::count(cut, "scenario")),
            "",
        ),
    };
    Some(format!(
        "time limit limits.run ({limit}) reached; {cut}; raise limits.run or --global-timeout{remedy}; the clean-up that follows is not limited"
    ))
}

/// A duration as the configuration writes it.
fn shown_duration(duration: Duration) -> String {
    match (duration.as_secs(), duration.subsec_millis()) {
        (seconds, 0) if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        (seconds, 0) => format!("{seconds}s"),
        (_, _) => format!("{}ms", duration.as_millis()),
    }
}

fn evidence_writer(
    evidence: &Growing,
    config: &Config,
    head: &Head,
) -> Result<Arc<EvidenceWriter>, Failure> {
    let file = evidence.file().map_err(|e| evidence_failure(&e))?;
    Ok(EvidenceWriter::begin(
        file,
        Redactor::new(&config.secrets),
        head,
    ))
}

/// Moves the evidence of a finished run to its path.
fn finish_evidence(
    evidence_writer: Option<&EvidenceWriter>,
    evidence: Option<Growing>,
    record: &RunRecord,
    ended: &RunEnd,
) -> Result<(), Failure> {
    let (Some(evidence_writer), Some(evidence)) = (evidence_writer, evidence) else {
        return Ok(());
    };
    let done = evidence_writer.end(record.complete, ended);
    done.and_then(|()| evidence.finish())
        .map_err(|e| evidence_failure(&e))
}

fn evidence_failure(error: &std::io::Error) -> Failure {
    Failure::Trouble(format!("failed to keep the evidence: {error}"))
}

fn options(args: &RunArgs, config: &Config, seed: u64) -> Options {
    Options {
        seed,
        jobs: args
            .jobs
            .unwrap_or_else(|| conformant_engine::jobs_default(config.settings.targets.is_empty())),
        shuffle: args.shuffle,
        run_max: config.run_max,
        evidence_writer: None,
        prove: match args.prove {
            Prove::Off => Mode::Off,
            Prove::Rules => Mode::Rules,
            Prove::Sample => Mode::Sample,
        },
    }
}

/// The files of the user: configuration and scenarios. Those of the embedded rulebook are not files.
fn places(
    config: Option<&Path>,
    rulebook: &Rulebook,
    planned: &[Planned<'_>],
) -> BTreeMap<String, String> {
    let mut places = config::places(config, &rulebook.index);
    for planned in planned {
        let id = &planned.scenario.id;
        let written = planned.service.scenarios.get(id).map(|(_, place)| place);
        let is_there = |place: &&String| {
            place
                .rsplit_once(':')
                .is_some_and(|(file, _)| Path::new(file).is_file())
        };
        if let Some(place) = written.filter(is_there) {
            places.insert(id.clone(), place.clone());
        }
    }
    places
}

pub(super) fn sessions<'a>(
    config: &Config,
    rulebook: &Rulebook,
    (seed, jobs): (u64, usize),
    signals: &'a Signals,
) -> Result<Box<dyn Sessions + 'a>, Failure> {
    if config.settings.targets.is_empty() {
        let offline = Offline::over_tcp(
            seed,
            BTreeSet::new(),
            BTreeSet::new(),
            Target::all_of_reference(),
        );
        let offline = offline.map_err(|error| Failure::Trouble(format!("failed to {error}")))?;
        return Ok(Box::new(offline.with_rounds(config.settings.rounds)));
    }
    let live_options = LiveOptions {
        limits: config.limits,
        jobs,
        deadline: clock::monotonic() + config.run_max,
        notify: Box::new(note),
        probes: Probe::of_all(rulebook),
    };
    let live = Live::new(config.settings.clone(), live_options, &signals.interrupted);
    Ok(Box::new(
        live.map_err(|error| Failure::Trouble(error.to_string()))?,
    ))
}

/// The seed, and a suffix for the names of this run. A live target still has the resources of earlier runs, so each run needs
/// new names, even with the same seed. A reference in process starts empty and needs no suffix.
pub(super) fn seed_and_names(
    (seed, names): (Option<u64>, Option<&str>),
    is_live: bool,
) -> Result<(u64, String), Failure> {
    const NAMES_MAX: usize = 32;
    if let Some(names) = names {
        let is_plain = names
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if names.is_empty() || names.len() > NAMES_MAX || !is_plain {
            return Err(Failure::Usage(format!(
                "invalid --names `{names}`: expected 1 to {NAMES_MAX} letters, digits and dashes, as an earlier run printed them"
            )));
        }
    }
    if !is_live {
        return Ok((seed.unwrap_or(0), String::new()));
    }
    let seed = seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    Ok((seed, names.map_or_else(fresh_names, str::to_owned)))
}

/// Prints how to repeat a live run, for a run that ends before its summary.
pub(super) fn note_names(seed: u64, names: &str) {
    note(&format!(
        "to repeat this run: --seed {seed} --names {names}"
    ));
}

/// New names for a further run against live targets; none without.
fn names_of_repetition(run: usize, requested: usize, is_live: bool) -> String {
    if !is_live {
        return String::new();
    }
    let names = fresh_names();
    note(&format!("run {run} of {requested}: names {names}"));
    names
}

fn fresh_names() -> String {
    format!("{:08x}", rand::random::<u32>())
}

/// Rejects `targets.SERVICE.body` for an operation that does not exist or has one encoding only.
fn check_body_operations(rulebook: &Rulebook, config: &Config) -> Result<(), Failure> {
    for (service, target) in &config.settings.targets {
        for id in target.json_operations.keys() {
            let operation = rulebook.operation(service, id);
            if operation.is_none_or(|operation| operation.bodies.len() < 2) {
                let all = rulebook.services.get(service).into_iter();
                let all = all.flat_map(|service| service.operations.values());
                let all = all.filter(|operation| operation.bodies.len() > 1);
                let all: Vec<&str> = all.map(|operation| operation.id.as_str()).collect();
                return Err(Failure::Usage(format!(
                    "targets.{service}.body: `{id}` is not an operation with two encodings; expected one of: {}",
                    all.join(", ")
                )));
            }
        }
    }
    Ok(())
}
