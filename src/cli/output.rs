//! Where the output of a run goes: the console as this terminal takes it, reports as files.

use super::args::{ConsoleArgs, When};
use super::{Failure, config};
use conformant_base::redact::Redactor;
use conformant_record::RunRecord;
use conformant_report::console::{Look, Verbosity};
use conformant_report::{Console, Destination, Format, Report, Settings};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Columns when nobody says how many there are.
const WIDTH_DEFAULT: usize = 100;

/// Where the console goes: standard output, unless a report is to stand there alone.
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

/// The console as the terminal takes it; rules lead to the page that is written, where there is one.
pub(super) fn console<'a>(
    out: &'a mut dyn Write,
    how: ConsoleArgs,
    reports: &[Report],
    settings: Settings,
) -> Console<'a> {
    let terminal = std::io::stdout().is_terminal();
    let said = |name: &str| config::environment(name).filter(|value| !value.is_empty());
    let is_dumb = said("TERM").is_some_and(|term| term == "dumb");
    let wished = match how.color {
        When::Always => Some(true),
        When::Never => Some(false),
        When::Auto if said("NO_COLOR").is_some() || is_dumb => Some(false),
        When::Auto if said("CLICOLOR_FORCE").is_some_and(|value| value != "0") => Some(true),
        When::Auto if said("CLICOLOR").is_some_and(|value| value == "0") => Some(false),
        When::Auto => None,
    };
    let color = wished.unwrap_or(terminal);
    let columns = said("COLUMNS").and_then(|c| c.parse().ok());
    let size = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let progress = std::io::stderr().is_terminal() && !is_dumb && !how.quiet;
    let look = Look {
        width: columns
            .or_else(|| size().filter(|_| terminal))
            .unwrap_or(WIDTH_DEFAULT),
        color,
        progress,
        alive: !progress && !how.quiet,
        verbosity: match (how.quiet, how.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        },
        page: page(reports).filter(|_| takes_links(terminal && !is_dumb)),
        settings,
    };
    Console::new(out, look)
}

/// Standard output. That it could not be written is remembered: the process says so at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out;

/// The first failure of standard output.
static FAILED: OnceLock<String> = OnceLock::new();

impl Out {
    /// Why standard output could not be written. A reader that went away is no failure.
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

/// What must appear in nothing that is said about a run either: notes and errors.
static SECRETS: OnceLock<Redactor> = OnceLock::new();

/// Keeps these secrets out of all that is said from here on.
pub(super) fn hide(secrets: &[String]) {
    SECRETS.get_or_init(|| Redactor::new(secrets));
}

/// A text as it may stand on standard error: without secrets, and without what others could steer a
/// terminal with.
pub(super) fn sayable(text: &str) -> String {
    let text = match SECRETS.get() {
        Some(secrets) => secrets.redact(text),
        None => text.into(),
    };
    conformant_base::text::escape(&text).into_owned()
}

/// Where the report page will stand, as an address.
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

/// Terminals that are known to show links; others would print the sequence or swallow the text.
fn takes_links(terminal: bool) -> bool {
    let said = |name: &str| config::environment(name).filter(|value| !value.is_empty());
    if let Some(forced) = said("FORCE_HYPERLINK") {
        return forced != "0";
    }
    let known = [
        "WT_SESSION",
        "KONSOLE_VERSION",
        "KITTY_WINDOW_ID",
        "WEZTERM_PANE",
    ];
    let vte = said("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    let program = said("TERM_PROGRAM").unwrap_or_default();
    terminal
        && said("CI").is_none()
        && (known.iter().any(|name| said(name).is_some())
            || vte.is_some_and(|version| version >= 5_000)
            || ["iTerm.app", "vscode", "ghostty", "Hyper"].contains(&program.as_str()))
}

/// Writes every report; all are tried, the first failure is told.
pub(super) fn write_reports(
    reports: &[Report],
    record: &RunRecord,
    settings: Settings,
) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for report in reports {
        if let Err(error) = report.write(record, settings, &mut Out) {
            failed.push(error.to_string());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Trouble(failed.join("\nerror: ")))
    }
}
