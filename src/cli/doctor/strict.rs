//! Whether the targets can be judged with `--strict`: whether their last run had warnings.
//!
//! Reads the record that a run writes; sends nothing.

use super::{Check, Diagnosis};
use crate::cli::config::Config;
use crate::cli::earlier;
use conformant_base::text;
use conformant_record::{Level, RunRecord, Verdict};

/// Rules that are named.
const NAMED_MAX: usize = 3;

pub(super) fn check(config: &Config, diagnosis: &mut Diagnosis) {
    let last = earlier::last().filter(|last| is_of(last, config));
    diagnosis.push(last.map_or_else(
        || {
            let says = "unknown: the last run of all rules of these targets shows it, and reports/run.json has none; run `conformant run` first";
            Check::untried("strict".to_owned(), says.to_owned(), None)
        },
        |last| of_run(&last),
    ));
}

/// Whether it is a whole run of these targets.
fn is_of(last: &RunRecord, config: &Config) -> bool {
    let mut targets = config.settings.targets.iter();
    let is_part = ["--filter", "--service", "--rerun", "--since"]
        .iter()
        .any(|flag| last.invocation.contains(flag));
    let is_whole = last.complete && last.partition.is_none() && !is_part;
    is_whole && targets.all(|(service, target)| last.targets.get(service) == Some(&target.url))
}

fn of_run(last: &RunRecord) -> Check {
    let is_warning = |level: Level| level == Level::Should;
    let warned: Vec<&str> = last
        .rules
        .iter()
        .filter(|rule| rule.verdict == Verdict::Fail && is_warning(rule.level))
        .map(|rule| rule.id.as_str())
        .collect();
    let what = "strict".to_owned();
    if warned.is_empty() {
        let says =
            "affordable: the last run had no warning, so `--strict` adds detection and no failure";
        let todo = (!last.invocation.contains("--strict"))
            .then(|| "run with --strict: the last run had no warning".to_owned());
        return Check {
            todo,
            ..Check::ok(what, says.to_owned())
        };
    }
    let more = if warned.len() > NAMED_MAX {
        ", …"
    } else {
        ""
    };
    let first: Vec<&str> = warned.iter().take(NAMED_MAX).copied().collect();
    let says = format!(
        "not yet: `--strict` would fail on {} that the last run warned of ({}{more})",
        text::count(warned.len(), "rule"),
        first.join(", ")
    );
    Check::untried(what, says, None)
}
