//! `run`: runs the scenarios and writes the reports.

use super::args::{Prove, Races, RunArgs};
use super::claims::Claims;
use super::config::{self, Config};
use super::output::EarlierReports;
use super::repeat::{EvidenceBuffer, Repetition};
use super::signals::Signals;
use super::{
    Done, Exit, Failure, build, earlier, history, invocation, is_implemented, load_with, memory,
    note, output, preview, print, reports_about_evidence, require_evidence, verify,
};
use conformant_base::clock::Timestamp;
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_engine::evidence_file::Head;
use conformant_engine::probe::Probe;
use conformant_engine::sessions::{Live, LiveOptions, Offline};
use conformant_engine::{
    Demands, ENDED_BEFORE, EvidenceWriter, Options, Partition, Planned, RunEnd, Selection,
    Sessions, Target, plan,
};
use conformant_judge::prove::Mode;
use conformant_net::transport::Limits;
use conformant_record::waivers::{WaiverFile, Waivers};
use conformant_record::{PartOf, RunEvent, RunRecord, ScenarioResult, WallClock};
use conformant_report::{
    Consumer, FailedHook, Growing, Keep, Report, ReportLock, Settings as ReportSettings, Stream,
};
use conformant_rulebook::Rulebook;
use conformant_rulebook::service::ServiceIndex;
use conformant_schema::Schemas;
use conformant_selftest::known_defects;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Default reports.
const REPORTS: [&str; 2] = ["json=reports/run.json", "junit=reports/junit.xml"];

pub(super) fn run(args: &RunArgs) -> Done {
    let reports = reports_about_evidence(&args.output.reports, &REPORTS)?;
    if args.keep_evidence.is_none() {
        require_evidence(&reports)?;
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
    let rulebook = load_with(&args.specs, args.scenarios.as_slice())?;
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
    let mut selection = selection(args, &config)?;
    if let Some(revision) = &args.since {
        narrow_since(revision, &rulebook, &mut selection)?;
        if selection.only.is_empty() {
            return Ok(Exit::NothingJudged);
        }
    }
    check_filters(&rulebook, &selection)?;
    if let Some(exit) = without_target(args, &config) {
        return Ok(exit);
    }
    let mut planned = plan::plan(&rulebook, &selection, args.shuffle.then_some(seed));
    if args.races == Races::Off {
        planned.retain(|planned| !planned.is_race());
    }
    if planned.is_empty() && is_empty(&rulebook, &selection) {
        return Ok(nothing_selected(args, &rulebook, &selection.services));
    }
    if args.dry_run {
        print(&preview::of(&planned, &rulebook, &config.settings));
        return Ok(Exit::Conformant);
    }
    let today = conformant_base::clock::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let selected = SelectedRun {
        args,
        config: &config,
        rulebook: &rulebook,
        planned: &planned,
        partition: selection.partition,
        seed,
        waivers: Waivers::on(&waivers, today),
        claims: &claims,
    };
    selected.execute(reports)
}

/// Reads the configuration and applies the flags that change it.
fn configuration(args: &RunArgs) -> Result<Config, Failure> {
    let mut config = config::read(args)?;
    config::check_target(args, &config)?;
    config::check_hooks(args, &config)?;
    let is_live = !config.settings.targets.is_empty();
    config.settings.rounds = match args.rounds {
        Some(rounds) => usize::from(rounds),
        None if is_live => config.settings.rounds,
        None => 1,
    };
    if is_live {
        memory::share_between_threads();
    } else if args.timings {
        let why = "--timings needs a live target, because time is virtual without one; add --target SERVICE=URL";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(config)
}

/// The rulebook, scenarios and settings that the flags of a run select.
struct SelectedRun<'a> {
    args: &'a RunArgs,
    config: &'a Config,
    rulebook: &'a Rulebook,
    planned: &'a [Planned<'a>],
    partition: Option<Partition>,
    seed: u64,
    waivers: Waivers<'a>,
    claims: &'a Claims,
}

impl SelectedRun<'_> {
    fn is_live(&self) -> bool {
        !self.config.settings.targets.is_empty()
    }

    /// Runs the scenarios, and writes the reports and what the flags ask to keep.
    fn execute(&self, reports: &[Report]) -> Done {
        let (args, config) = (self.args, self.config);
        // Before the first file: a signal that ends the process at once would leave it.
        let signals = Signals::listen().map_err(|e| Failure::Trouble(format!("signals: {e}")))?;
        output::check_reports(reports)?;
        let _lock = ReportLock::take(reports).map_err(|e| Failure::Usage(e.to_string()))?;
        let mut options = options(args, config, self.seed);
        let settings = ReportSettings {
            strict: args.output.strict,
        };
        let redactor = Redactor::new(&config.secrets);
        let completion = RecordCompletion {
            run: self,
            previous: earlier::last(),
            history: args
                .history
                .as_deref()
                .map(|folder| {
                    history::prepare(folder)?;
                    history::read(folder, history::RUNS_MAX)
                })
                .transpose()?,
            began: conformant_base::clock::now(),
            began_monotonic: conformant_base::clock::monotonic(),
            signals: &signals,
        };
        let evidence = args.keep_evidence.as_deref();
        let evidence = evidence
            .map(Growing::begin)
            .transpose()
            .map_err(|e| evidence_failure(&e))?;
        let mut kept_record = Keep::default();
        let mut event_lines = output::event_lines(reports, settings)?;
        let (conclusion, run_end, last_lines) = {
            let mut out = output::stream(reports);
            let console = output::console(out.as_mut(), args.output.console, reports, settings);
            let console = console.with_limit(self.config.run_max);
            let mut console = console.without_last_lines();
            let mut consumers = vec![&mut console as &mut dyn Consumer, &mut kept_record];
            consumers.extend(event_lines.iter_mut().map(|one| one as &mut dyn Consumer));
            let mut stream = Stream::new(&redactor, consumers);
            let runs = self.run_plan(&mut options, &completion, evidence.as_ref(), &mut stream)?;
            let Some((mut record, run_end)) = runs.finish() else {
                return Err(Failure::Trouble("the run wrote no record".to_owned()));
            };
            let conclusion = completion.complete(&mut record, &run_end);
            stream.send(RunEvent::Finished {
                record: Box::new(record),
            });
            drop(stream);
            (conclusion, run_end, console.last_lines())
        };
        let Some(mut record) = kept_record.record else {
            return Err(Failure::Trouble("the run wrote no record".to_owned()));
        };
        conclusion.reasons.iter().for_each(|reason| note(reason));
        if let Some(repeats) = &record.repeats {
            let shown = conformant_report::render_repeats(repeats);
            // A report on standard output moves the console to standard error.
            let _ =
                output::stream(reports).write_all(conformant_base::text::escape(&shown).as_bytes());
        }
        let evidence_writer = options.evidence_writer.as_deref();
        let kept = finish_evidence(evidence_writer, evidence, &record, &run_end);
        if let (Some(path), Ok(())) = (&args.keep_evidence, &kept) {
            record.evidence = Some(verify::stamp(path)?);
        }
        let written = output::finish_reports(event_lines, reports, &record, settings);
        if let Some(folder) = &args.history {
            history::keep(folder, &record, completion.began)?;
        }
        let seconds = completion.began_monotonic.elapsed().as_secs_f64();
        note(&format!("took {seconds:.1} s"));
        if let Some(wall) = &record.wall {
            output::say(reports, &conformant_report::render_timings(wall));
        }
        let previous = completion.previous.as_ref();
        print_notes(
            &conclusion.waiver_problems,
            &conclusion.errors,
            previous,
            &record,
        );
        note_reused_names(args, &record);
        note_other_encodings(self.rulebook, config, &record);
        signals.notice().into_iter().for_each(note);
        output::finish(reports, &last_lines);
        written?;
        kept?;
        Ok(conclusion.exit)
    }

    /// Runs the plan once, or as often as `--repeat` asks for, each time with other names.
    fn run_plan(
        &self,
        options: &mut Options,
        completion: &RecordCompletion<'_>,
        evidence: Option<&Growing>,
        stream: &mut Stream<'_>,
    ) -> Result<Repetition, Failure> {
        let signals = completion.signals;
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
            let sessions = match sessions(&config, self.rulebook, options, signals) {
                Err(failure) if run > 1 => {
                    note(&failure.to_string());
                    runs.note_failed_start();
                    break;
                }
                opened => opened?,
            };
            let mut head = Head::of(self.rulebook, self.planned, self.seed);
            head.targets = sessions.targets();
            head.begun = self
                .is_live()
                .then(|| conformant_base::clock::iso_seconds(completion.began));
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
}

/// Completes the record when the last scenario has ended, and determines the exit code.
struct RecordCompletion<'a> {
    run: &'a SelectedRun<'a>,
    /// The record of the previous run in this folder.
    previous: Option<RunRecord>,
    /// The stored runs of `--history`, with their names.
    history: Option<Vec<(String, RunRecord)>>,
    began: Timestamp,
    began_monotonic: Instant,
    signals: &'a Signals,
}

/// The result of a run.
struct RunConclusion {
    exit: Exit,
    /// Reasons for the exit code that the console does not print.
    reasons: Vec<String>,
    /// Waivers that expired or match no failure.
    waiver_problems: Vec<String>,
    /// What failed apart from findings and waivers.
    errors: Vec<String>,
}

impl RecordCompletion<'_> {
    fn complete(&self, record: &mut RunRecord, ended: &RunEnd) -> RunConclusion {
        let SelectedRun { args, rulebook, .. } = *self.run;
        // Signals that arrive from here on do not make the run incomplete.
        let exit_by_signal = self.signals.exit();
        record.complete &= exit_by_signal.is_none();
        record.ended_early = match exit_by_signal {
            Some(_) => None,
            None => ended_early(record, ended),
        };
        record.partition = self.run.partition.map(PartOf::from);
        if let Some(previous) = self.previous.as_ref().filter(|_| args.rerun.is_some()) {
            earlier::mark_flaky(previous, record);
        }
        let waiver_problems = self.run.waivers.apply(record, is_whole(args));
        let specs = args.specs.specs.as_deref();
        conformant_record::add_defects(record, &known_defects(specs), args.output.strict);
        record.invocation = invocation::of_run(args, self.run.config, self.run.seed);
        record.places = places(args.config.as_deref(), rulebook, self.run.planned);
        let history = self.history.as_ref();
        record.history = history.map(|history| conformant_versions::history(history, record));
        record.build = self.run.is_live().then(build::of_environment).flatten();
        // Runs against the reference are reproducible byte by byte, so their records contain no real time.
        record.wall = self.run.is_live().then(|| WallClock {
            started: conformant_base::clock::iso_seconds(self.began),
            seconds: (self.began_monotonic.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            timings: args.timings.then(|| ended.timings.clone()),
        });
        let unjudged = self.run.claims.judge(record);
        let problems = [waiver_problems.as_slice(), &unjudged].concat();
        let (conclusion, mut reasons) = conformant_engine::gate(
            demands(args),
            record,
            &problems,
            ended.has_infrastructure_error,
        );
        reasons.extend(unjudged);
        let exit = exit_by_signal.unwrap_or(conclusion.into());
        record.exit = Some(exit as u8);
        let errors = errors(ended, record, self.run.config);
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
    if let Some((service, _)) = &ended.gone {
        return Some(format!("{service} stopped answering"));
    }
    let limit = shown_duration(ended.time_limit?);
    let is_cut = |s: &&ScenarioResult| s.reason == ENDED_BEFORE;
    let cut = record.scenarios.iter().filter(is_cut).count();
    let cut = text::count(cut, "scenario");
    Some(format!(
        "time limit limits.run ({limit}) reached; {cut} not run to the end; raise limits.run or --global-timeout"
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

/// Creates the writer of the evidence file.
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

/// The failure to write the evidence file.
fn evidence_failure(error: &std::io::Error) -> Failure {
    Failure::Trouble(format!("failed to keep the evidence: {error}"))
}

/// Prints notes on waivers, the target and earlier runs. Reports do not contain them.
fn print_notes(
    waiver_problems: &[String],
    errors: &[String],
    previous: Option<&RunRecord>,
    record: &RunRecord,
) {
    let differing = previous
        .into_iter()
        .flat_map(|previous| earlier::answered_differently(previous, record));
    differing.for_each(|notice| note(&notice));
    for problem in waiver_problems {
        note(&format!("waiver: {problem}"));
    }
    for error in errors {
        note(&format!("error: {error}"));
    }
}

/// Why the run failed apart from findings, a line each.
fn errors(ended: &RunEnd, record: &RunRecord, config: &Config) -> Vec<String> {
    let url_of = |service: &str| {
        let target = config.settings.targets.get(service);
        target.map_or("", |target| target.url.as_str())
    };
    let mut errors: Vec<String> = Vec::new();
    errors.extend(
        ended
            .denied_by
            .iter()
            .map(|service| denied(service, config)),
    );
    if let Some(service) = &ended.rejected_account {
        errors.push(format!(
            "{service} rejects the credentials of the second account; correct accounts.{service} (`conformant doctor` checks them)"
        ));
    }
    for (service, answer) in &ended.wrong_addresses {
        let url = url_of(service);
        errors.push(format!(
            "the address of {service} leads elsewhere: {url}, where {answer}; correct targets.{service}.url{} (`conformant doctor` checks it)",
            config::path_for(&config.settings.index, service, url)
        ));
    }
    for (service, status) in &ended.unserved {
        let todo = match status {
            429 => {
                "raise its rate limit, or set limits.rate (such as 5/s) and repeat the run later"
            }
            _ => "start the service behind this address",
        };
        errors.push(format!(
            "{service} at {} answers every request with status {status}, so that nothing of it is judged; {todo}",
            url_of(service)
        ));
    }
    for (service, why) in &ended.never_reached {
        errors.push(format!(
            "{service} cannot be reached at {}: {why}; `conformant doctor` checks every target",
            url_of(service)
        ));
    }
    // A hook of a target that is gone fails, too.
    let is_there = ended.never_reached.is_empty() && ended.gone.is_none();
    let hooks = conformant_report::failed_hooks(record);
    errors.extend(hooks.iter().filter(|_| is_there).map(hook_failure));
    let cut = record.ended_early.as_ref();
    errors.extend(cut.filter(|_| ended.time_limit.is_some()).cloned());
    if let Some((service, why)) = &ended.gone {
        errors.push(format!(
            "{service} stopped answering, which ended the run: {why}; what was not judged before is inconclusive"
        ));
    }
    errors
}

/// What to say about a hook that failed.
fn hook_failure(hook: &FailedHook<'_>) -> String {
    let (name, why) = (hook.name, hook.why);
    let scenarios = text::count(hook.scenarios, "scenario");
    let cause = match hook.defect {
        Some(number) => format!(", probably because of defect {number}"),
        None if hook.has_defects => {
            format!(", perhaps because of a defect of {}", hook.service)
        }
        None => String::new(),
    };
    format!(
        "hook {name} failed and left {scenarios} inconclusive{cause}: {why}; `conformant explain {name}` describes it"
    )
}

/// Whether the selection without its partition is empty. A single part may be empty: its record is needed for `merge`.
fn is_empty(rulebook: &Rulebook, selection: &Selection) -> bool {
    let whole = Selection {
        partition: None,
        ..selection.clone()
    };
    plan::plan(rulebook, &whole, None).is_empty()
}

/// Rejects a filter that selects nothing while another one selects something: it is misspelled, or its service has no target.
fn check_filters(rulebook: &Rulebook, selection: &Selection) -> Result<(), Failure> {
    if selection.filters.len() < 2 {
        return Ok(());
    }
    let every = Selection {
        services: selection.services.clone(),
        ..Selection::default()
    };
    let planned = plan::plan(rulebook, &every, None);
    let is_idle = |filter: &&String| {
        !planned
            .iter()
            .any(|planned| text::glob(filter, &planned.scenario.id))
    };
    let idle: Vec<&String> = selection.filters.iter().filter(is_idle).collect();
    if idle.is_empty() || idle.len() == selection.filters.len() {
        return Ok(());
    }
    let lines = idle.iter().map(|filter| {
        format!(
            "--filter {filter}: no scenario of {} has such an id (`conformant list scenarios` shows them)",
            match selection.services.as_slice() {
                [] => "the rulebook".to_owned(),
                services => services.join(", "),
            }
        )
    });
    Err(Failure::Usage(lines.collect::<Vec<_>>().join("\nerror: ")))
}

fn demands(args: &RunArgs) -> Demands {
    Demands {
        strict: args.output.strict,
        require_complete: args.require_complete,
        min_judged: args.min_judged,
    }
}

/// Restricts a selection to scenarios that changed since a revision; prints a note if none is left.
fn narrow_since(
    revision: &str,
    rulebook: &Rulebook,
    selection: &mut Selection,
) -> Result<(), Failure> {
    let touched = super::diff::scenarios_since(&super::diff::rulebook_of(revision)?, rulebook);
    selection.only = intersect(&selection.only, touched);
    if selection.only.is_empty() {
        note(&format!(
            "nothing was judged: no selected scenario has changed since {revision}"
        ));
    }
    Ok(())
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
    options: &Options,
    signals: &'a Signals,
) -> Result<Box<dyn Sessions + 'a>, Failure> {
    if config.settings.targets.is_empty() {
        let offline = Offline::over_tcp(
            options.seed,
            BTreeSet::new(),
            BTreeSet::new(),
            Target::all_of_reference(),
        );
        let offline = offline.map_err(|error| Failure::Trouble(format!("failed to {error}")))?;
        return Ok(Box::new(offline.with_rounds(config.settings.rounds)));
    }
    let limits = Limits {
        connect: config.connect,
        timeout: config.timeout,
        body: config.body_bytes_max,
        rate: config.rate,
    };
    let live_options = LiveOptions {
        limits,
        jobs: options.jobs,
        deadline: conformant_base::clock::monotonic() + config.run_max,
        notify: Box::new(note),
        probes: Probe::of_all(rulebook),
    };
    let live = Live::new(config.settings.clone(), live_options, &signals.interrupted);
    Ok(Box::new(
        live.map_err(|error| Failure::Trouble(error.to_string()))?,
    ))
}

/// Whether the run covers every rule that a waiver may name.
fn is_whole(args: &RunArgs) -> bool {
    args.filters.is_empty()
        && args.rerun.is_none()
        && args.since.is_none()
        && args.races == Races::On
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

/// For each operation that rejected valid requests and supports two encodings: prints the key that selects the other one.
fn note_other_encodings(rulebook: &Rulebook, config: &Config, record: &RunRecord) {
    for (service, target) in &config.settings.targets {
        let Some(model) = rulebook.services.get(service) else {
            continue;
        };
        for operation in model.operations.values().filter(|o| o.bodies.len() > 1) {
            let rule = format!("{service}/{}", operation.id);
            if record.findings.iter().any(|finding| finding.rule == rule) {
                let is_json = target.json_operations.get(&operation.id);
                let is_json = *is_json.unwrap_or(&target.json_bodies);
                let (sent, other) = if is_json {
                    ("json", "form")
                } else {
                    ("form", "json")
                };
                let id = &operation.id;
                note(&format!(
                    "{rule} rejected valid requests, whose bodies were sent as {sent}: if it expects {other}, set `targets.{service}.body: {{ {id}: {other} }}`"
                ));
            }
        }
    }
}

/// With `--names`, prints that resources of an earlier run may have caused findings.
fn note_reused_names(args: &RunArgs, record: &RunRecord) {
    if let Some(names) = args
        .names
        .as_deref()
        .filter(|_| !record.findings.is_empty())
    {
        note(&format!(
            "the names {names} may exist at the target since an earlier run, so failed scenarios were repeated with other names; a run without --names needs no repetition"
        ));
    }
}

fn selection(args: &RunArgs, config: &Config) -> Result<Selection, Failure> {
    let index = &config.settings.index;
    for service in &args.services {
        if index.get(service).is_none() {
            let names: Vec<&str> = index.iter().map(|(name, _)| name).collect();
            return Err(Failure::Usage(format!(
                "unknown --service `{service}`: expected {}",
                names.join(", ")
            )));
        }
    }
    let mut services = args.services.clone();
    if config.settings.targets.is_empty() {
        services = offline(index, &args.filters, services)?;
    } else if services.is_empty() {
        services = config.settings.targets.keys().cloned().collect();
        let feeds = config.settings.feeds().into_iter().map(str::to_owned);
        services.extend(feeds);
    }
    let partition = args
        .partition
        .as_deref()
        .map(str::parse::<Partition>)
        .transpose();
    let only = match args.rerun {
        None => Vec::new(),
        Some(super::args::Rerun::LastFailed) => {
            earlier::last_failed(!config.settings.targets.is_empty())?
        }
    };
    Ok(Selection {
        services,
        filters: args.filters.clone(),
        only,
        partition: partition.map_err(|why| {
            let given = args.partition.as_deref().unwrap_or_default();
            let hashed = format!("hash:{given}");
            let near = match hashed.parse::<Partition>() {
                Ok(_) => format!("; did you mean `{hashed}`?"),
                Err(_) => String::new(),
            };
            Failure::Usage(format!("--partition: {why}{near}"))
        })?,
    })
}

/// The services that are judged without a target: those that the reference implements. An empty list means all.
fn offline(
    index: &ServiceIndex,
    filters: &[String],
    wanted: Vec<String>,
) -> Result<Vec<String>, Failure> {
    let filtered = filters
        .iter()
        .filter_map(|filter| Some(filter.split_once('/')?.0));
    let missing = |name: &&str| index.get(name).is_some() && !is_implemented(name);
    let named = wanted.iter().map(String::as_str).chain(filtered);
    let named: Vec<&str> = named.filter(missing).collect();
    let all: Vec<&str> = index.iter().map(|(name, _)| name).collect();
    let (with, without): (Vec<&str>, Vec<&str>) =
        all.into_iter().partition(|name| is_implemented(name));
    let targets = with.iter().filter(|name| index.is_target(name));
    let unjudged = match (named.first(), without.first()) {
        (Some(named), _) => Some(*named),
        (None, Some(first)) if targets.count() == 0 => Some(*first),
        (None, _) => None,
    };
    if let Some(service) = unjudged {
        return Err(Failure::Usage(format!(
            "{service}: nothing to judge offline, because the reference does not implement it; name a target: \
             --target {service}=URL"
        )));
    }
    if wanted.is_empty() && !without.is_empty() {
        note(&format!(
            "not judged without a target: {} (--target SERVICE=URL names one)",
            without.join(", ")
        ));
        return Ok(with.into_iter().map(str::to_owned).collect());
    }
    Ok(wanted)
}

/// The ids that `selected` contains, or all if it is empty.
fn intersect(selected: &[String], ids: Vec<String>) -> Vec<String> {
    ids.into_iter()
        .filter(|id| selected.is_empty() || selected.contains(id))
        .collect()
}

pub(super) fn read_waivers(path: &Path) -> Result<WaiverFile, Failure> {
    let shown = path.display().to_string();
    let bytes = super::read_file(path)?;
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    if first.is_some_and(|line| line.starts_with(b"- ")) {
        return Err(Failure::Usage(format!(
            "{shown}: found a list, expected the key `waivers`; write the line `waivers:` above the list"
        )));
    }
    conformant_rulebook::parse_file(&shown, &bytes).map_err(Failure::Problems)
}

/// Names the services of `--service` that have no target although others have one; ends the run if none is left.
fn without_target(args: &RunArgs, config: &Config) -> Option<Exit> {
    let targets = &config.settings.targets;
    let has_none = |service: &&String| {
        config.settings.index.is_target(service) && !targets.contains_key(*service)
    };
    let (without, with): (Vec<&String>, Vec<&String>) = args.services.iter().partition(has_none);
    if targets.is_empty() || without.is_empty() {
        return None;
    }
    for service in without {
        note(&format!(
            "nothing of {service} is judged: {}",
            no_target(service)
        ));
    }
    with.is_empty().then_some(Exit::NothingJudged)
}

fn no_target(service: &str) -> String {
    format!("{service} has no target; configure targets.{service} or add --target {service}=URL")
}

/// Prints that the selection is empty.
fn nothing_selected(args: &RunArgs, rulebook: &Rulebook, services: &[String]) -> Exit {
    let mut filtered = args.filters.iter();
    let without_target = filtered.find_map(|filter| {
        let (service, _) = filter.split_once('/')?;
        let is_left_out = !services.is_empty() && !services.iter().any(|name| name == service);
        let is_service = rulebook.index.get(service).is_some();
        (args.services.is_empty() && is_service && is_left_out).then_some(service)
    });
    if let Some(service) = without_target {
        note(&format!("nothing was judged: {}", no_target(service)));
        return Exit::NothingJudged;
    }
    let mut options: Vec<String> = args
        .filters
        .iter()
        .map(|f| format!("--filter {f}"))
        .collect();
    options.extend(args.services.iter().map(|s| format!("--service {s}")));
    options.extend(args.partition.iter().map(|p| format!("--partition {p}")));
    let all = plan::all(rulebook);
    let ids: Vec<&str> = all.iter().map(|p| p.scenario.id.as_str()).collect();
    let mut near = args.filters.iter().filter(|filter| !filter.contains('*'));
    let near = near.find_map(|filter| text::did_you_mean(filter, &ids));
    let near = near.map_or_else(String::new, |id| format!("; did you mean {id}?"));
    note(&format!(
        "nothing was judged: no scenario is selected by {}{near} (`conformant list scenarios` shows them)",
        options.join(" ")
    ));
    Exit::NothingJudged
}

/// The note for a run that ended because a service rejected the credentials.
fn denied(service: &str, config: &Config) -> String {
    let target = config.settings.targets.get(service);
    let what = if target.is_some_and(Target::has_credentials) {
        "the credentials that are configured"
    } else {
        "requests without credentials, because none are configured"
    };
    format!(
        "{service} answers nothing but 401 and 403 to {what} (targets.{service}: username and password, or headers): the run stops here"
    )
}
