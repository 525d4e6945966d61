//! `selftest`: tests the rulebook and prints the kill matrix.

use super::args::{Reports, SelftestArgs};
use super::{Done, Exit, Failure, config, load, note, of_reference, output, print};
use conformant_base::text;
use conformant_engine::Target;
use conformant_report::{Format, Report};
use conformant_schema::Schemas;
use conformant_selftest::{CAUGHT_BY_FILE, ExploredBy, Recorded, Selftest};
use indicatif::{ProgressBar, ProgressStyle};
use serde::de::DeserializeOwned;
use std::io::IsTerminal;
use std::path::Path;

/// Recorded findings of exploration.
const EXPLORED_FILE: &str = "specs/explored.yaml";
/// Recorded known gaps.
const NOT_YET_FILE: &str = "specs/not-yet-caught.yaml";

pub(super) fn selftest(args: &SelftestArgs) -> Done {
    let reports = reports(args)?;
    let rulebook = load(&args.specs)?;
    of_reference(&rulebook, &[], "selftest")?;
    let schemas = Schemas::default();
    let recorded = recorded(args)?;
    let started = conformant_base::clock::monotonic();
    let bar = bar();
    let is_quick = args.filters.is_empty() && !args.every_scenario && !is_blessed();
    let selftest = Selftest {
        rulebook: &rulebook,
        schemas: &schemas,
        targets: Target::all_of_reference(),
        jobs: args.jobs.unwrap_or_else(super::processors),
        filters: args.filters.clone(),
        enough: is_quick.then_some(&recorded.caught_by),
        seed: args.seed,
    };
    if let Some(sequences) = args.explore {
        let drawn = (sequences, args.seed);
        let explored = selftest.explored(drawn, &recorded.known_gaps, &|done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let before: ExploredBy = match args.seed {
            0 => read(args, EXPLORED_FILE)?,
            _ => ExploredBy::default(),
        };
        print(&explored.render(&before));
        note(&format!("in {:.1} s", started.elapsed().as_secs_f64()));
        let holds = explored.holds(&before);
        if is_blessed() && args.filters.is_empty() && args.seed == 0 && holds {
            write(EXPLORED_FILE, &explored.by.text())?;
        }
        return Ok(Exit::failed_if(!holds));
    }
    if let Some(count) = args.pairs {
        bar.set_length(2 * count as u64);
        let pairs = selftest.pairs(count, &recorded, &|done| {
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        print(&pairs.render());
        note(&format!("in {:.1} s", started.elapsed().as_secs_f64()));
        return Ok(Exit::failed_if(!pairs.holds()));
    }
    let nothing_selected = || {
        Failure::Usage(format!(
            "no fault, variation or rule is selected by --filter {}; specs/kill-matrix.yaml lists them, such as `fault chat/*`",
            args.filters.join(" ")
        ))
    };
    if selftest.selects_nothing() {
        return Err(nothing_selected());
    }
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let mut matrix = selftest.run(&progress);
    if is_quick && matrix.dead(&recorded).next().is_some() {
        note("a rule is not in the recorded matrix: each fault is tried in every scenario");
        let enough = None;
        matrix = Selftest { enough, ..selftest }.run(&progress);
    }
    bar.finish_and_clear();
    if matrix.rows.is_empty() && !args.filters.is_empty() {
        return Err(nothing_selected());
    }
    print(&matrix.render(&recorded));
    note(&format!(
        "{} in {:.1} s",
        text::count(matrix.rows.len(), "trial"),
        started.elapsed().as_secs_f64()
    ));
    for report in &reports {
        let content = if report.format == Format::Json {
            matrix.json(&recorded)
        } else {
            matrix.markdown(&recorded)
        };
        let written = output::put(report, &content);
        written.map_err(|e| Failure::Trouble(e.to_string()))?;
    }
    if is_blessed() && args.filters.is_empty() {
        write(CAUGHT_BY_FILE, &matrix.record_text())?;
        write(NOT_YET_FILE, &matrix.remaining_gaps(&recorded).text())?;
        return Ok(Exit::Conformant);
    }
    Ok(Exit::failed_if(!matrix.holds(&recorded)))
}

/// Whether records are updated; never in CI.
fn is_blessed() -> bool {
    config::environment("BLESS").is_some() && config::environment("CI").is_none()
}

/// Destinations of the results.
fn reports(args: &SelftestArgs) -> Result<Vec<Report>, Failure> {
    let wanted = Reports {
        reports: args.reports.clone(),
    };
    let reports = super::reports_of(&wanted, &[])?;
    let other = reports
        .iter()
        .find(|report| !matches!(report.format, Format::Json | Format::Markdown));
    match other {
        Some(report) => Err(Failure::Usage(format!(
            "--report {}: expected json or markdown",
            report.format.name()
        ))),
        None => Ok(reports),
    }
}

fn write(file: &str, text: &str) -> Result<(), Failure> {
    super::write_file(Path::new(file), text)?;
    note(&format!("{file} was updated: review its diff"));
    Ok(())
}

fn recorded(args: &SelftestArgs) -> Result<Recorded, Failure> {
    Ok(Recorded {
        caught_by: read(args, CAUGHT_BY_FILE)?,
        known_gaps: read(args, NOT_YET_FILE)?,
    })
}

/// Reads a file of the rulebook's folder, or the embedded text.
fn read<T: DeserializeOwned>(args: &SelftestArgs, file: &str) -> Result<T, Failure> {
    let name = file.trim_start_matches("specs/");
    let Some(folder) = &args.specs.specs else {
        let text = conformant_specs::text(name);
        return conformant_rulebook::parse_file(file, text.as_bytes()).map_err(Failure::Problems);
    };
    super::parse_file(&folder.join(name))
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} trials, {eta} left")
        .expect("the template is well-formed");
    ProgressBar::new(0).with_style(style)
}
