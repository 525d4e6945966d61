//! `run`: the main job.

use super::args::RunArgs;
use super::config::{self, Config};
use super::signals::Signals;
use super::{Done, Exit, Failure, earlier, memory, note, output, reports_of, say};
use crate::engine::sessions::{Live, Offline};
use crate::engine::{self, Options, Partition, Selection, Sessions, Target, plan};
use crate::redact::Redactor;
use crate::report::{Claim, Consumer, Keep, Settings as ReportSettings, Stream};
use crate::rulebook::{self, Rulebook};
use crate::schema::Schemas;
use crate::transport::Limits;
use crate::verdict::{Level, PartOf, RunRecord, SERVICES, Verdict};
use crate::waivers::{self, WaiverFile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where reports go unless told otherwise.
const REPORTS: [&str; 2] = ["json=reports/run.json", "junit=reports/junit.xml"];
const JOBS_DEFAULT: usize = 8;

pub(super) fn run(args: &RunArgs) -> Done {
    let reports = reports_of(&args.reports, &REPORTS)?;
    let config = config::read(args)?;
    if !config.settings.targets.is_empty() {
        memory::share_between_threads();
    }
    let waivers = match &args.waivers {
        Some(path) => read_waivers(path)?.waivers,
        None => Vec::new(),
    };
    let scenarios: Vec<PathBuf> = args.scenarios.iter().cloned().collect();
    let rulebook =
        Rulebook::load(args.specs.specs.as_deref(), &scenarios).map_err(Failure::Problems)?;
    let seed = seed_of(args, &config);
    let mut selection = selection(args, &config)?;
    if let Some(revision) = &args.since {
        let touched = super::diff::scenarios_since(&super::diff::rulebook_of(revision)?, &rulebook);
        selection.only = narrowed(&selection.only, touched);
        if selection.only.is_empty() {
            note(&format!(
                "nothing was judged: no selected scenario is touched since {revision}"
            ));
            return Ok(Exit::NothingJudged);
        }
    }
    let planned = plan::plan(&rulebook, &selection, args.shuffle.then_some(seed));
    // A part may be empty where the whole is not; its record is needed to put the parts together.
    let whole = Selection {
        partition: None,
        ..selection.clone()
    };
    if planned.is_empty() && plan::plan(&rulebook, &whole, None).is_empty() {
        return Ok(nothing(args));
    }
    if args.dry_run {
        say(&planned
            .iter()
            .map(|p| format!("{}\n", p.scenario.id))
            .collect::<String>());
        return Ok(Exit::Conformant);
    }
    let _claim = Claim::take(&reports).map_err(|e| Failure::Usage(e.to_string()))?;
    let signals = Signals::listen().map_err(|e| Failure::Trouble(format!("signals: {e}")))?;
    let options = Options {
        seed,
        jobs: args.jobs.unwrap_or(JOBS_DEFAULT),
        shuffle: args.shuffle,
        run_max: config.run_max,
    };
    let settings = ReportSettings {
        strict: args.strict,
    };
    let redactor = Redactor::new(&config.secrets);
    let last = earlier::last();
    let started = crate::clock::monotonic();
    let mut keep = Keep::default();
    let mut waiver_problems = Vec::new();
    let trouble = {
        let mut out = std::io::stdout();
        let mut console = output::console(&mut out, settings);
        let mut stream = Stream::new(
            &redactor,
            vec![&mut console as &mut dyn Consumer, &mut keep],
        );
        let sessions = sessions(&config, seed, &signals)?;
        let finish = |record: &mut RunRecord| {
            record.partition = selection.partition.map(PartOf::from);
            if let Some(last) = last.as_ref().filter(|_| args.rerun.is_some()) {
                earlier::mark_flaky(last, record);
            }
            let today = crate::clock::now().to_zoned(jiff::tz::TimeZone::UTC).date();
            waiver_problems = waivers::apply(record, &waivers, today);
        };
        let schemas = Schemas::default();
        let mut emit = |event| stream.send(event);
        engine::run(
            &rulebook,
            &schemas,
            &planned,
            sessions.as_ref(),
            &options,
            &signals.interrupted,
            &mut emit,
            finish,
        )
    };
    let record = keep
        .record
        .ok_or_else(|| Failure::Trouble("the run left no record".to_owned()))?;
    output::write_reports(&reports, &record, settings)?;
    note(&format!("took {:.1} s", started.elapsed().as_secs_f64()));
    for notice in last
        .iter()
        .flat_map(|last| earlier::answered_differently(last, &record))
    {
        note(&notice);
    }
    for problem in &waiver_problems {
        note(&format!("waiver: {problem}"));
    }
    let exit = conclude(
        args.strict,
        args.require_complete,
        &record,
        &waiver_problems,
        trouble,
    );
    Ok(signals.exit().unwrap_or(exit))
}

fn sessions<'a>(
    config: &Config,
    seed: u64,
    signals: &'a Signals,
) -> Result<Box<dyn Sessions + 'a>, Failure> {
    if config.settings.targets.is_empty() {
        let offline = Offline::over_tcp(
            seed,
            BTreeSet::new(),
            BTreeSet::new(),
            Target::all_of_reference(),
        );
        return Ok(Box::new(offline.map_err(Failure::Trouble)?));
    }
    let limits = Limits {
        timeout: config.timeout,
        body: config.body_bytes_max,
        rate: config.rate,
        ..Limits::default()
    };
    let live = Live::new(config.settings.clone(), limits, &signals.interrupted);
    Ok(Box::new(live.map_err(Failure::Trouble)?))
}

/// A living target remembers the names of earlier runs, so that each run has names of its own; a world
/// in process is new each time.
fn seed_of(args: &RunArgs, config: &Config) -> u64 {
    let is_live = !config.settings.targets.is_empty();
    args.seed.unwrap_or_else(|| {
        if !is_live || args.dry_run {
            return 0;
        }
        let seed = u64::from(rand::random::<u32>());
        note(&format!(
            "seed {seed}: with --seed {seed} a run uses the same names again"
        ));
        seed
    })
}

fn selection(args: &RunArgs, config: &Config) -> Result<Selection, Failure> {
    for service in &args.services {
        if !SERVICES.contains(&service.as_str()) && service != "events" {
            let known = SERVICES.join(", ");
            return Err(Failure::Usage(format!(
                "--service {service}: known are {known}, events"
            )));
        }
    }
    let mut services = args.services.clone();
    if services.is_empty() && !config.settings.targets.is_empty() {
        services = config.settings.targets.keys().cloned().collect();
        // Events are collected beside any service.
        services.push("events".to_owned());
    }
    let partition = args.partition.as_deref().map(Partition::parse).transpose();
    let only = match args.rerun {
        None => Vec::new(),
        Some(super::args::Rerun::LastFailed) => earlier::last_failed()?,
    };
    Ok(Selection {
        services,
        filters: args.filters.clone(),
        only,
        partition: partition.map_err(|why| Failure::Usage(format!("--partition {why}")))?,
    })
}

/// What is wanted on both counts; an empty list so far means all.
fn narrowed(so_far: &[String], wanted: Vec<String>) -> Vec<String> {
    wanted
        .into_iter()
        .filter(|id| so_far.is_empty() || so_far.contains(id))
        .collect()
}

pub(super) fn read_waivers(path: &Path) -> Result<WaiverFile, Failure> {
    let shown = path.display().to_string();
    let bytes = super::read_file(path)?;
    rulebook::parse_file(&shown, &bytes).map_err(Failure::Problems)
}

fn nothing(args: &RunArgs) -> Exit {
    let mut wanted: Vec<String> = args
        .filters
        .iter()
        .map(|f| format!("--filter {f}"))
        .collect();
    wanted.extend(args.services.iter().map(|s| format!("--service {s}")));
    wanted.extend(args.partition.iter().map(|p| format!("--partition {p}")));
    note(&format!(
        "nothing was judged: no scenario is selected by {} (`conformant list scenarios` shows them)",
        wanted.join(" ")
    ));
    Exit::NothingJudged
}

/// The exit code of a finished run.
pub(super) fn conclude(
    strict: bool,
    require_complete: bool,
    record: &RunRecord,
    waiver_problems: &[String],
    trouble: bool,
) -> Exit {
    let failing = |level: Level| match level {
        Level::Must => true,
        Level::Should => strict,
        Level::May | Level::Open => false,
    };
    let failed = record
        .rules
        .iter()
        .any(|r| r.verdict == Verdict::Fail && failing(r.level));
    // What was cut short says so first: nobody takes half a list of failures for the whole.
    if !record.complete {
        return Exit::Trouble;
    }
    if failed || !waiver_problems.is_empty() {
        return Exit::Failed;
    }
    let counts = &record.summary.rules;
    let judged = counts.pass + counts.fail + counts.waived;
    let broken = record.scenarios.iter().any(|s| s.verdict == Verdict::Error);
    if counts.error > 0 || broken || trouble {
        return Exit::Trouble;
    }
    if judged == 0 {
        note("nothing was judged");
        return Exit::NothingJudged;
    }
    if require_complete {
        let missing: Vec<&str> = record
            .rules
            .iter()
            .filter(|r| {
                r.level == Level::Must
                    && r.masked_by.is_none()
                    && !matches!(r.verdict, Verdict::Pass | Verdict::Fail | Verdict::Waived)
            })
            .map(|r| r.id.as_str())
            .collect();
        if !missing.is_empty() {
            note(&format!(
                "not judged although --require-complete asks for it: {}",
                missing.join(", ")
            ));
            return Exit::NothingJudged;
        }
    }
    Exit::Conformant
}
