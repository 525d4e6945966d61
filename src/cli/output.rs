//! Output of a run: console and report files.

use super::args::{ConsoleArgs, OutputArgs, When};
use super::{Failure, config};
use conformant_base::redact::{Redactor, redact_userinfo};
use conformant_record::RunRecord;
use conformant_report::console::{Look, Progress, Verbosity};
use conformant_report::{
    Console, Destination, EventLines, Format, Report, Settings, Stream, WriteError, write_whole,
};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Columns if the width is unknown.
const WIDTH_DEFAULT: usize = 100;

/// The stream of the console: standard output, unless a report goes there.
pub(super) fn stream(reports: &[Report]) -> Box<dyn Write> {
    let is_taken = reports
        .iter()
        .any(|report| report.destination == Destination::Stdout);
    if is_taken {
        Box::new(std::io::stderr())
    } else {
        Box::new(Out)
    }
}

/// Prints a text where the console writes.
pub(super) fn say(reports: &[Report], text: &str) {
    finish(reports, &conformant_base::text::escape(text));
}

/// Prints the last lines of the console. A write error is reported at the end of the process.
pub(super) fn finish(reports: &[Report], last_lines: &str) {
    let mut out = stream(reports);
    let _ = out
        .write_all(last_lines.as_bytes())
        .and_then(|()| out.flush());
}

/// The console for this terminal; rules are links to the HTML report, if one is written.
pub(super) fn console<'a>(
    out: &'a mut dyn Write,
    how: ConsoleArgs,
    reports: &[Report],
    settings: Settings,
) -> Console<'a> {
    let terminal = std::io::stdout().is_terminal();
    let set = |name: &str| config::environment(name).filter(|value| !value.is_empty());
    let is_dumb = set("TERM").is_some_and(|term| term == "dumb");
    let wished = match how.color {
        When::Always => Some(true),
        When::Never => Some(false),
        When::Auto if set("NO_COLOR").is_some() || is_dumb => Some(false),
        When::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => Some(true),
        When::Auto if set("CLICOLOR").is_some_and(|value| value == "0") => Some(false),
        When::Auto => None,
    };
    let color = wished.unwrap_or(terminal);
    let columns = set("COLUMNS").and_then(|c| c.parse().ok());
    let progress = match (how.quiet, std::io::stderr().is_terminal() && !is_dumb) {
        (true, _) => Progress::None,
        (false, true) => Progress::Bar,
        (false, false) => Progress::Lines,
    };
    let look = Look {
        width: columns
            .or_else(|| terminal_columns(std::io::stdout()).filter(|_| terminal))
            .unwrap_or(WIDTH_DEFAULT),
        color,
        progress,
        verbosity: match (how.quiet, how.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        },
        page: page(reports).filter(|_| takes_links(terminal && !is_dumb)),
        settings,
        reports: paths(reports, |_| true),
        record_path: record_path(reports),
        is_reference_named: std::env::args_os().any(|argument| argument == "--reference"),
    };
    Console::new(out, look)
}

/// The width of the terminal that a stream is.
#[cfg(unix)]
fn terminal_columns(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Not queried elsewhere: `COLUMNS` sets it.
#[cfg(not(unix))]
fn terminal_columns(_stream: impl Sized) -> Option<usize> {
    None
}

/// Text for standard error, without its last line break; wrapped where that is a terminal.
pub(super) fn note_of(text: &str) -> String {
    let text = sayable(text);
    let is_terminal = std::io::stderr().is_terminal();
    match terminal_columns(std::io::stderr()).filter(|_| is_terminal) {
        Some(columns) => conformant_report::wrapped(&text, "", 4, columns)
            .trim_end()
            .to_owned(),
        None => text,
    }
}

/// The path of the record, also within a folder of reports.
fn record_path(reports: &[Report]) -> Option<String> {
    let whole = paths(reports, |format| format == Format::Json).pop();
    let folder = || {
        let index = paths(reports, |format| format == Format::Dir).pop()?;
        Some(format!("{}/run.json", index.strip_suffix("/README.md")?))
    };
    whole.or_else(folder)
}

/// Standard output. The first write error is kept for the end of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out;

/// The first write error.
static FAILED: OnceLock<String> = OnceLock::new();

impl Out {
    /// The first write error, except for a closed pipe.
    pub(super) fn failure() -> Option<&'static str> {
        FAILED.get().map(String::as_str)
    }

    fn remember<T>(done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done
            && !matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted
            )
        {
            FAILED.get_or_init(|| error.to_string());
        }
        done
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::remember(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::remember(io::stdout().flush())
    }
}

/// Secrets to redact from notes and errors.
static SECRETS: OnceLock<Redactor> = OnceLock::new();

/// Redacts these secrets from all later output.
pub(super) fn hide(secrets: &[String]) {
    SECRETS.get_or_init(|| Redactor::new(secrets));
}

/// Text for standard error: without secrets, credentials in URLs and control characters.
pub(super) fn sayable(text: &str) -> String {
    let text = redact_userinfo(text);
    let text = match SECRETS.get() {
        Some(secrets) => secrets.redact(&text),
        None => text,
    };
    conformant_base::text::escape(&text).into_owned()
}

/// The paths of the reports of some formats that are files.
fn paths(reports: &[Report], is_wanted: impl Fn(Format) -> bool) -> Vec<String> {
    let wanted = reports.iter().filter(|report| is_wanted(report.format));
    let files = wanted.filter_map(Report::file);
    files.map(|path| path.display().to_string()).collect()
}

/// The address of the HTML report.
fn page(reports: &[Report]) -> Option<String> {
    reports
        .iter()
        .find_map(|report| match (&report.format, &report.destination) {
            (Format::Html, Destination::File(path)) => {
                let path = std::path::absolute(path).ok()?;
                url::Url::from_file_path(path).ok().map(String::from)
            }
            _ => None,
        })
}

/// Terminals that support hyperlinks; others would print the escape sequence or drop the text.
fn takes_links(terminal: bool) -> bool {
    let set = |name: &str| config::environment(name).filter(|value| !value.is_empty());
    if let Some(forced) = set("FORCE_HYPERLINK") {
        return forced != "0";
    }
    let known = [
        "WT_SESSION",
        "KONSOLE_VERSION",
        "KITTY_WINDOW_ID",
        "WEZTERM_PANE",
    ];
    let vte = set("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    let program = set("TERM_PROGRAM").unwrap_or_default();
    terminal
        && set("CI").is_none()
        && (known.iter().any(|name| set(name).is_some())
            || vte.is_some_and(|version| version >= 5_000)
            || ["iTerm.app", "vscode", "ghostty", "Hyper"].contains(&program.as_str()))
}

/// The file to which the commands of a CI job append their summaries.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Writes a rendered report. In the summary of a CI job, what earlier commands wrote stays.
pub(super) fn put(report: &Report, content: &str) -> Result<(), WriteError> {
    let path = report.file().filter(|path| is_summary(path));
    let Some(path) = path.filter(|_| report.format == Format::Markdown) else {
        return report.put(content, &mut Out);
    };
    append(&path, content).map_err(WriteError::of(report.format, &path))
}

/// Writes a file. In the summary of a CI job, what earlier commands wrote stays.
pub(super) fn write_file(path: &Path, content: &str) -> io::Result<()> {
    match is_summary(path) {
        true => append(path, content),
        false => write_whole(path, content.as_bytes()),
    }
}

fn is_summary(path: &Path) -> bool {
    config::environment(SUMMARY).is_some_and(|summary| Path::new(&summary) == path)
}

fn append(path: &Path, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let gap = match file.metadata()?.len() {
        0 => "",
        _ => "\n",
    };
    file.write_all(format!("{gap}{content}").as_bytes())
}

/// The first missing folder of a report at an absolute path.
fn missing_folder(report: &Report) -> Option<PathBuf> {
    let Destination::File(path) = &report.destination else {
        return None;
    };
    let folders = path.ancestors().skip(1);
    let missing = folders.take_while(|folder| path.is_absolute() && !folder.exists());
    missing.last().map(Path::to_owned)
}

/// Refuses reports that cannot be written, before a run that could not keep its result.
pub(super) fn check_reports(reports: &[Report]) -> Result<(), Failure> {
    let checked = reports.iter().try_for_each(Report::check);
    checked.map_err(|why| Failure::Usage(format!("--report: {why}")))
}

/// Locks or writes reports, and names the folders that this creates at absolute paths, where a typing error would create
/// one unseen.
pub(super) fn naming_new_folders<T>(reports: &[Report], write: impl FnOnce() -> T) -> T {
    let missing: BTreeSet<PathBuf> = reports.iter().filter_map(missing_folder).collect();
    let written = write();
    for folder in missing.iter().filter(|folder| folder.is_dir()) {
        super::note(&format!("created {}", folder.display()));
    }
    written
}

/// Report files that were there before a command that writes them, each with the time of its last change.
pub(super) struct EarlierReports(Vec<(Report, PathBuf, Option<SystemTime>)>);

impl EarlierReports {
    pub(super) fn at(reports: &[Report]) -> Self {
        let files = reports.iter().filter_map(|report| {
            let path = report.file()?;
            let metadata = std::fs::metadata(&path).ok()?;
            // An empty file publishes nothing.
            let has_content = metadata.is_file() && metadata.len() > 0;
            has_content.then(|| (report.clone(), path, metadata.modified().ok()))
        });
        Self(files.collect())
    }

    /// Names the files that the command has not replaced. In CI, which would publish them as the result of this command,
    /// those that are known to be reports are removed.
    pub(super) fn settle(&self, is_removal_allowed: bool) {
        let is_ci = is_removal_allowed && config::is_ci();
        let mut left = Vec::new();
        let mut removed = Vec::new();
        let mut unknown = Vec::new();
        for (report, path, changed) in &self.0 {
            let is_replaced =
                std::fs::metadata(path).is_ok_and(|now| now.modified().ok() != *changed);
            if is_replaced {
                continue;
            }
            let shown = path.display().to_string();
            if !report.is_recognized() {
                unknown.push(shown);
            } else if is_ci && report.format != Format::Dir && std::fs::remove_file(path).is_ok() {
                removed.push(shown);
            } else {
                left.push(shown);
            }
        }
        if !removed.is_empty() {
            super::note(&format!(
                "removed {}, because CI is set: this command wrote no reports, and an earlier run had written these",
                removed.join(", ")
            ));
        }
        if !left.is_empty() {
            super::note(&format!(
                "no reports were written: an earlier run wrote {}",
                left.join(", ")
            ));
        }
        if !unknown.is_empty() {
            super::note(&format!(
                "no reports were written; left unchanged, because not known to be reports: {}",
                unknown.join(", ")
            ));
        }
    }
}

/// Opens the reports that are written during a run.
pub(super) fn event_lines(
    reports: &[Report],
    settings: Settings,
) -> Result<Vec<EventLines>, Failure> {
    let lines = reports
        .iter()
        .filter_map(|report| EventLines::begin(report, settings));
    lines
        .map(|begun| begun.map_err(|error| Failure::Trouble(error.to_string())))
        .collect()
}

/// Completes the reports that were written during a run, then writes the others.
pub(super) fn finish_reports(
    lines: Vec<EventLines>,
    reports: &[Report],
    record: &RunRecord,
    settings: Settings,
) -> Result<(), Failure> {
    let lines = written_all(lines.into_iter().map(EventLines::finish));
    let is_open = |report: &&Report| report.format != Format::Jsonl;
    let others: Vec<Report> = reports.iter().filter(is_open).cloned().collect();
    write_reports(&others, record, settings)?;
    lines
}

/// Prints a finished record on the console and writes its reports, without secrets.
pub(super) fn publish(
    record: RunRecord,
    redactor: &Redactor,
    reports: &[Report],
    how: &OutputArgs,
) -> Result<(), Failure> {
    let settings = Settings { strict: how.strict };
    let record = {
        let mut out = stream(reports);
        let mut console = console(out.as_mut(), how.console, reports, settings);
        Stream::new(redactor, vec![&mut console]).finish(record)
    };
    write_reports(reports, &record, settings)
}

/// Writes every report; returns the errors after trying all.
pub(super) fn write_reports(
    reports: &[Report],
    record: &RunRecord,
    settings: Settings,
) -> Result<(), Failure> {
    let written = reports
        .iter()
        .map(|report| match report.format == Format::Markdown {
            true => put(report, &report.format.render(record, settings)),
            false => report.write(record, settings, &mut Out),
        });
    naming_new_folders(reports, || written_all(written))
}

fn written_all(written: impl Iterator<Item = Result<(), WriteError>>) -> Result<(), Failure> {
    let failed = written.filter_map(|done| Some(done.err()?.to_string()));
    let failed: Vec<String> = failed.collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Trouble(failed.join("\nerror: "))),
    }
}
