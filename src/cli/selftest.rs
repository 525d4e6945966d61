//! `selftest`: proves the rulebook, and prints the kill matrix.

use super::args::SelftestArgs;
use super::known::{self, RECORD_FILE};
use super::{Done, Exit, Failure, config, load, note, say};
use crate::engine::Target;
use crate::schema::Schemas;
use crate::selftest::Selftest;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

pub(super) fn selftest(args: &SelftestArgs) -> Done {
    let rulebook = load(&args.specs)?;
    let schemas = Schemas::default();
    let recorded = known::recorded(&args.specs)?;
    let started = crate::clock::monotonic();
    let bar = bar();
    let selftest = Selftest {
        rulebook: &rulebook,
        schemas: &schemas,
        targets: Target::all_of_reference(),
        jobs: args.jobs.unwrap_or_else(cores),
        filters: args.filters.clone(),
    };
    let matrix = selftest.run(&|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    say(&matrix.render(&recorded));
    note(&format!(
        "{} trials in {:.1} s",
        matrix.rows.len(),
        started.elapsed().as_secs_f64()
    ));
    if config::environment("BLESS").is_some() && args.filters.is_empty() {
        let text = matrix.record_text();
        std::fs::write(RECORD_FILE, text)
            .map_err(|e| Failure::Trouble(format!("{RECORD_FILE} could not be written: {e}")))?;
        note(&format!("{RECORD_FILE} is written anew: read its diff"));
        return Ok(Exit::Conformant);
    }
    Ok(if matrix.holds(&recorded) {
        Exit::Conformant
    } else {
        Exit::Failed
    })
}

/// As many as the machine has.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} trials, {eta} left")
        .expect("the template is well-formed");
    ProgressBar::new(0).with_style(style)
}
