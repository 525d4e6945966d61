//! `--history DIR` and `history`: keeps and compares the records of earlier runs.

use super::args::{HistoryArgs, ListFormat};
use super::{Done, Exit, Failure, note, print};
use conformant_base::files;
use conformant_base::text;
use conformant_record::RunRecord;
use conformant_report::Settings;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The number of earlier runs that a new run is compared with.
const RUNS_MAX: usize = 50;

/// The last records of a folder, oldest first by name; other files are reported and skipped.
fn read(folder: &Path, last: usize) -> Result<Vec<(String, RunRecord)>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let shown = folder.display();
            return Err(Failure::Usage(format!("failed to read {shown}: {error}")));
        }
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort_by_cached_key(|path| stored_order(path));
    let mut runs = Vec::new();
    for path in &files[files.len().saturating_sub(last)..] {
        let bytes = files::read(path, files::STORED_BYTES_MAX)?;
        match conformant_report::read(&bytes) {
            Ok(run) => {
                let name = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                runs.push((name, run));
            }
            Err(error) => note(&format!("{} is skipped: {error}", path.display())),
        }
    }
    Ok(runs)
}

/// The order of stored runs: their start, then the number that [`keep`] adds to a further run of the same second.
fn stored_order(path: &Path) -> (String, usize) {
    const START_LENGTH: usize = "2027-01-31T10-20-30Z".len();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (start, rest) = name.split_at_checked(START_LENGTH).unwrap_or((&name, ""));
    match rest.strip_prefix('-').and_then(|n| n.parse().ok()) {
        Some(n) => (start.to_owned(), n),
        None => (name.into_owned(), 0),
    }
}

/// Reads the stored runs. Creates the folder, so that a run does not end with one that cannot be written.
pub(super) fn prepare(folder: &Path) -> Result<Vec<(String, RunRecord)>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::Usage(format!(
            "--history: {} cannot be written: {error}",
            folder.display()
        ))
    })?;
    read(folder, RUNS_MAX)
}

/// Stores a finished run under its start time, and never replaces another one.
pub(super) fn keep(
    folder: &Path,
    record: &RunRecord,
    began: conformant_base::clock::Timestamp,
) -> Result<(), Failure> {
    let stamp = conformant_base::clock::iso_seconds(began).replace(':', "-");
    let mut path = folder.join(format!("{stamp}.json"));
    let mut n = 1;
    while path.exists() {
        n += 1;
        path = folder.join(format!("{stamp}-{n}.json"));
    }
    let mut kept = record.clone();
    // Computed again from the folder each time.
    kept.history = None;
    let json = conformant_report::Format::Json.render(&kept, Settings::default());
    conformant_report::write_whole(&path, json.as_bytes()).map_err(Failure::unwritten(&path))
}

pub(super) fn history(args: &HistoryArgs) -> Done {
    let last = usize::from(args.last);
    if !args.folder.exists() {
        let shown = args.folder.display();
        return Err(Failure::Usage(format!(
            "{shown} does not exist: name the folder of `conformant run --history`"
        )));
    }
    // Some of them may have other targets.
    let runs = read(&args.folder, last.max(RUNS_MAX))?;
    if runs.is_empty() {
        let shown = args.folder.display();
        return Err(Failure::Usage(format!(
            "{shown} contains no record; `conformant run --history {shown}` writes them"
        )));
    }
    let trend = conformant_versions::trend(&runs, last);
    match args.format {
        ListFormat::Json => {
            let text = text::safe_json(&trend)
                .map_err(|e| Failure::Trouble(format!("failed to write the history: {e}")))?;
            print(&format!("{}\n", text.trim_end()));
        }
        ListFormat::Text => print(&table(&trend)),
    }
    if trend.other_targets > 0 {
        let runs = text::count(trend.other_targets, "run");
        note(&format!(
            "{runs} of other targets than the last run left out"
        ));
    }
    Ok(Exit::Conformant)
}

fn table(trend: &conformant_versions::Trend) -> String {
    const MEMORY: &str = "writing to a String succeeds";
    let width = trend
        .runs
        .iter()
        .map(|run| run.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = format!(
        "{:<width$}  {:>6}  {:>6}  rules  target\n",
        "run", "broken", "judged"
    );
    for run in &trend.runs {
        let cut = if run.complete { "" } else { "  cut short" };
        let name = text::escape_line(&run.name);
        let targets = run.targets.join(", ");
        let targets = text::escape_line(&targets);
        writeln!(
            out,
            "{name:<width$}  {:>6}  {:>6}  {:>5}  {targets}{cut}",
            run.broken, run.judged, run.rules
        )
        .expect(MEMORY);
    }
    if trend.rules.is_empty() {
        return out + "\nno rule was broken in any of these runs\n";
    }
    let width = trend
        .rules
        .iter()
        .map(|rule| rule.id.chars().count())
        .max()
        .unwrap_or(0);
    writeln!(
        out,
        "\n{:<width$}  x broken, ~ flaky in repeated runs, . held, ? not judged",
        "broken in some of these runs"
    )
    .expect(MEMORY);
    for rule in &trend.rules {
        let id = text::escape_line(&rule.id);
        let flaky = if rule.flaky { "  flaky" } else { "" };
        let since = text::escape_line(&rule.first_seen);
        // Runs before the first one of the table are not read.
        let earlier = match rule.verdicts.starts_with(['x', '~']) {
            true => " or earlier",
            false => "",
        };
        writeln!(
            out,
            "{id:<width$}  {}  first in {since}{earlier}{flaky}",
            rule.verdicts
        )
        .expect(MEMORY);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_broken_in_the_first_run_of_the_table_may_be_broken_longer() {
        let rule = |verdicts: &str| conformant_versions::TrendRule {
            id: "flow/x".to_owned(),
            verdicts: verdicts.to_owned(),
            first_seen: "one".to_owned(),
            flaky: false,
            broken: true,
        };
        let rules = ["xx", "~.", ".x"].map(rule).to_vec();
        let text = table(&conformant_versions::Trend {
            other_targets: 0,
            runs: Vec::new(),
            rules,
        });
        let lines: Vec<&str> = text.lines().skip(3).collect();
        let earlier = lines
            .iter()
            .map(|line| line.ends_with("first in one or earlier"));
        assert_eq!(earlier.collect::<Vec<_>>(), [true, true, false], "{text}");
    }
}
