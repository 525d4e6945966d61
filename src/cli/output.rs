//! Where the output of a run goes: the console as this terminal takes it, reports as files.

use super::{Failure, config};
use crate::report::console::Look;
use crate::report::{Console, Report, Settings};
use crate::verdict::RunRecord;
use std::io::{IsTerminal, Write};

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

/// Writes every report; all are tried, the first failure is told.
pub(super) fn write_reports(
    reports: &[Report],
    record: &RunRecord,
    settings: Settings,
) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for report in reports {
        if let Err(error) = report.write(record, settings, &mut std::io::stdout()) {
            failed.push(error.to_string());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Trouble(failed.join("\nerror: ")))
    }
}
