//! Where the output of a run goes: the console as this terminal takes it, reports as files.

use super::{Failure, config};
use crate::redact::Redactor;
use crate::report::console::Look;
use crate::report::{Console, Report, Settings};
use crate::verdict::RunRecord;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Columns when nobody says how many there are.
const WIDTH_DEFAULT: usize = 100;

/// The console as the terminal takes it.
pub(super) fn console(out: &mut dyn Write, settings: Settings) -> Console<'_> {
    let terminal = std::io::stdout().is_terminal();
    let columns = config::environment("COLUMNS").and_then(|c| c.parse().ok());
    let look = Look {
        width: columns.unwrap_or(WIDTH_DEFAULT),
        color: terminal && config::environment("NO_COLOR").is_none(),
        progress: std::io::stderr().is_terminal(),
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
    crate::text::escape(&text).into_owned()
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
