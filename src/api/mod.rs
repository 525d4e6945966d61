//! The Rust library: a few types and functions, equivalent to the commands.
//!
//! Items here change only with a note in CHANGELOG.md; all other modules are internal.

mod check;
mod compare;
mod error;
mod fixtures;
mod rulebook;
mod run;
mod target;
mod trials;

pub use check::{Checked, check};
pub use compare::{Change, diff, diff_kinds};
pub use error::Error;
pub use fixtures::{Break, Fixture, fixtures};
pub use rulebook::{Rule, Rulebook};
pub use run::{Run, RunOptions, run};
pub use target::{Reference, Server, Service, Target};
pub(crate) use target::{fault, variant};
pub use trials::{Failure, Played, Trial};

use conformant_record::Finding;
use std::fmt;

/// Prints a finding in a few lines: rule, source, place, expected and found.
fn write_finding(
    f: &mut fmt::Formatter<'_>,
    rulebook: &conformant_rulebook::Rulebook,
    finding: &Finding,
) -> fmt::Result {
    let line = conformant_base::text::escape_line;
    write!(f, "  {} {}", finding.level.word(), finding.rule)?;
    if let Some(rule) = rulebook.rules.get(&finding.rule) {
        write!(f, " ({}): {}", rule.source, rule.says)?;
    }
    let place = [&finding.operation, &finding.pointer];
    let place: Vec<&str> = place.into_iter().map(String::as_str).collect();
    writeln!(f, "\n    {}", line(place.join(" ").trim()))?;
    if finding.step > 0 {
        writeln!(f, "    step {}", finding.step)?;
    }
    writeln!(f, "    {}", line(&finding.message))?;
    writeln!(f, "    expected {}", line(&finding.expected))?;
    writeln!(f, "    actual   {}", line(&finding.actual))?;
    for difference in finding.diff.lines() {
        writeln!(f, "    {}", line(difference))?;
    }
    if !finding.reproduce.is_empty() {
        writeln!(f, "    repeat   {}", line(&finding.reproduce))?;
    }
    Ok(())
}
