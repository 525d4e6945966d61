//! `compare`, `judge`, `merge`: read the records of earlier runs.

use super::args::{CompareArgs, DemandArgs, JudgeArgs, MergeArgs, OutputArgs};
use super::claims::Claims;
use super::diff::{destinations, write};
use super::{
    Done, Exit, Failure, load, note, output, reports_about_evidence, reports_of, require_evidence,
    today, verify,
};
use conformant_base::{files, text};
use conformant_engine::evidence_file::{self, Reader};
use conformant_engine::{Demands, gate};
use conformant_record::waivers::{self, Waivers};
use conformant_record::{Level, RunEvent, RunRecord};
use conformant_report::{Consumer, Settings, limits};
use conformant_selftest::known_defects;
use conformant_versions::RunDifference;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Why `judge` may pass a rule that the run did not.
const NO_MUTATIONS: &str =
    "judge makes no mutations: a rule that the run withdrew as vacuous passes here";

pub(super) fn compare(args: &CompareArgs) -> Done {
    let reports = destinations(&args.reports)?;
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let names = (args.a.display().to_string(), args.b.display().to_string());
    let difference = conformant_versions::runs((&names.0, &a), (&names.1, &b));
    write(&reports, |format| difference.render(format))?;
    let is_new = args.fail_on_new && difference.new.iter().any(|f| f.level == Level::Must);
    let regressed = is_new || difference.regressions().next().is_some();
    Ok(if regressed {
        Exit::Failed
    } else if args.fail_on_new
        && let Some(why) = judged_too_little(&difference, &b)
    {
        note(&format!("error: {}: {why}", args.b.display()));
        Exit::NothingJudged
    } else {
        Exit::Conformant
    })
}

/// Why a second run cannot show that nothing is new, and what to do. What was not judged cannot be new.
fn judged_too_little(difference: &RunDifference, second: &RunRecord) -> Option<String> {
    let troubles = [Exit::Usage, Exit::Trouble, Exit::NothingJudged].map(|exit| exit as u8);
    if !second.complete || second.exit.is_some_and(|exit| troubles.contains(&exit)) {
        return Some("the run ended early or judged too little: repeat it".to_owned());
    }
    let lost: Vec<&str> = difference.not_judged_again().collect();
    let first = lost.first()?;
    let rules = text::count(lost.len(), "must-rule");
    Some(format!(
        "the run judged too little: no result for {rules} that {} judged, such as {first}; run both with the same selection \
         (--filter, --service), hooks and version",
        difference.a
    ))
}

pub(super) fn judge(args: &JudgeArgs) -> Done {
    let reports = reports_about_evidence(&args.output.reports, &[])?;
    output::check_reports(&reports)?;
    let claims = Claims::read(args.claims.as_deref())?;
    let waivers = claims.waivers(args.waivers.as_deref())?;
    let rulebook = load(&args.specs)?;
    claims.check_names(&rulebook)?;
    super::baseline::check_ids(&rulebook, &waivers)?;
    let (mut record, has_infrastructure_error, notes) = match evidence(&args.run)? {
        Some(mut evidence) => {
            let mut evaluated = evidence_file::evaluate(&mut evidence, &rulebook);
            evaluated.record.evidence = Some(verify::stamp(&args.run)?);
            let has_infrastructure_error = evaluated.has_infrastructure_error;
            evaluated.notes.push(NO_MUTATIONS.to_owned());
            (evaluated.record, has_infrastructure_error, evaluated.notes)
        }
        None => {
            require_evidence(&reports)?;
            let stored = read(&args.run)?;
            let evaluated = conformant_versions::judge_again(&stored, &rulebook);
            (evaluated.record, was_trouble(&stored), evaluated.notes)
        }
    };
    let is_whole = !record.invocation.is_empty()
        && !limits(&record).iter().any(|limit| {
            let parts = ["--filter", "--rerun", "--since", "--races"];
            parts.iter().any(|flag| limit.starts_with(flag))
        });
    let mut problems = Waivers::on(&waivers, today()).apply(&mut record, is_whole);
    problems.extend(claims.judge(&mut record));
    let known = known_defects(args.specs.specs.as_deref());
    conformant_record::add_defects(&mut record, &known, args.output.strict);
    let demands = demands(args.demands, args.output.strict, &record);
    let (exit, reasons) = conclude(&mut record, demands, &problems, has_infrastructure_error);
    write_reports(&record, &reports, (&args.output, args.output.strict))?;
    for line in notes.iter().chain(&problems).chain(&reasons) {
        note(line);
    }
    Ok(exit)
}

/// The demands on a stored run. One that judged requests of clients only says nothing of the service.
fn demands(args: DemandArgs, strict: bool, record: &RunRecord) -> Demands {
    let words = text::shell_words(&record.invocation);
    let mut words = words
        .iter()
        .map(String::as_str)
        .skip_while(|word| !word.starts_with("--judge"));
    let is_of_clients = match words.next() {
        Some("--judge") => words.next() == Some("requests"),
        Some(flag) => flag == "--judge=requests",
        None => false,
    };
    Demands {
        of_service: !is_of_clients,
        ..args.with(strict)
    }
}

/// Sets the exit code of a record, and returns it with its reasons.
pub(super) fn conclude(
    record: &mut RunRecord,
    demands: Demands,
    problems: &[String],
    has_infrastructure_error: bool,
) -> (Exit, Vec<String>) {
    let (conclusion, reasons) = gate(demands, record, problems, has_infrastructure_error);
    let exit = Exit::from(conclusion);
    record.exit = Some(exit as u8);
    (exit, reasons)
}

/// Opens a file of evidence; none if it is a record.
pub(super) fn evidence(path: &Path) -> Result<Option<Reader<BufReader<File>>>, Failure> {
    let mut file = BufReader::new(files::open(path)?);
    let failure =
        |why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", path.display()));
    if !evidence_file::is_packed(&mut file).map_err(|e| failure(&e))? {
        return Ok(None);
    }
    Reader::open(file).map(Some).map_err(|e| failure(&e))
}

pub(super) fn merge(args: &MergeArgs) -> Done {
    let reports = reports_of(&args.output.reports, &[])?;
    let claims = Claims::read(args.claims.as_deref())?;
    if args.claims.is_some() {
        claims.check_names(&load(&args.specs)?)?;
    }
    let parts = args.runs.iter().map(|path| read(path));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let merged = conformant_versions::merge(&parts);
    let mut whole = merged.map_err(|error| {
        let path = error.record().and_then(|n| args.runs.get(n - 1));
        let path = path.map(|path| format!("{}: ", path.display()));
        let path = path.unwrap_or_default();
        Failure::Usage(format!("{path}{error}"))
    })?;
    let (wanted, is_strict) = demanded_by_parts(args, &parts);
    // Records of files have no defects: their findings are grouped when they are shown.
    if parts.iter().any(|part| !part.defects.is_empty()) {
        conformant_record::add_defects(&mut whole, &known_defects(None), is_strict);
    }
    let mut problems: Vec<String> = waivers::problems_of(&whole).map(str::to_owned).collect();
    problems.extend(claims.judge(&mut whole));
    let demands = demands(wanted, is_strict, &whole);
    let (exit, reasons) = conclude(
        &mut whole,
        demands,
        &problems,
        parts.iter().any(was_trouble),
    );
    write_reports(&whole, &reports, (&args.output, is_strict))?;
    for line in problems.iter().chain(&reasons) {
        note(line);
    }
    Ok(exit)
}

/// Whether something other than a rule made a run fail: a hook, or a target that did not answer.
fn was_trouble(record: &RunRecord) -> bool {
    record.exit == Some(Exit::Trouble as u8)
}

/// The demands on merged parts: those of `merge` and those with which the parts ran. Both have to be met, so that a part does
/// not fail where the whole passes.
fn demanded_by_parts(args: &MergeArgs, parts: &[RunRecord]) -> (DemandArgs, bool) {
    let mut wanted = args.demands;
    let mut is_strict = args.output.strict;
    for part in parts {
        let mut words = text::shell_words(&part.invocation).into_iter();
        while let Some(word) = words.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            match flag {
                "--strict" => is_strict = true,
                "--require-complete" => wanted.require_complete = true,
                "--min-judged" => {
                    let percent = value.or_else(|| words.next()).and_then(|v| v.parse().ok());
                    wanted.min_judged = wanted.min_judged.max(percent.unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    (wanted, is_strict)
}

fn write_reports(
    record: &RunRecord,
    reports: &[conformant_report::Report],
    (how, strict): (&OutputArgs, bool),
) -> Result<(), Failure> {
    let settings = Settings { strict };
    let mut out = output::stream(reports);
    output::console(out.as_mut(), how.console, reports, settings).event(&RunEvent::Finished {
        record: Box::new(record.clone()),
    });
    output::write_reports(reports, record, settings)
}

/// The record in a file, or in a folder that `--report dir=` wrote.
pub(super) fn read(path: &Path) -> Result<RunRecord, Failure> {
    let of_folder = path.join("run.json");
    let path = match of_folder.is_file() {
        true => of_folder.as_path(),
        false => path,
    };
    let bytes = files::read(path, files::STORED_BYTES_MAX)?;
    if bytes.trim_ascii().is_empty() {
        let name = path.display();
        return Err(Failure::Usage(format!(
            "{name}: the file is empty: expected the record of a run"
        )));
    }
    conformant_report::read(&bytes).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}
