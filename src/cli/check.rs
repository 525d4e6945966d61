//! `check`: judges files offline.

use super::archives::{OpenedArchive, Quarantine};
use super::args::CheckArgs;
use super::{Done, Exit, Failure, archives, config, invocation, load, note, output, reports_of};
use conformant_base::clock::Timestamp;
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_check::{
    Checker, Counts, Kind, KindError, Mapping, STANDARD_INPUT, SetAside, Surroundings,
};
use conformant_engine::{Demands, gate};
use conformant_record::{Level, RunEvent, RunRecord};
use conformant_report::{Consumer, Keep, Settings, Stream};
use conformant_rulebook::Rulebook;
use conformant_rulebook::service::ServiceIndex;
use std::collections::BTreeMap;

/// Schema ids in a note.
const SCHEMA_IDS_MAX: usize = 10;

pub(super) fn check(args: &CheckArgs) -> Done {
    let reports = reports_of(&args.output.reports, &[])?;
    let rulebook = rulebook_for(args)?;
    let kind = mapped(
        args,
        Kind::parse(&rulebook, &args.kind).map_err(|why| no_kind(&why))?,
    )?;
    if args.judge.is_some() && kind != Kind::Har {
        return Err(Failure::Usage("--judge goes with `--as har`".to_owned()));
    }
    if args.set_aside.is_some() && !kind.has_lines() {
        return Err(Failure::Usage(
            "--set-aside goes with payloads and events".to_owned(),
        ));
    }
    let known = config::known(args.config.as_deref(), args.specs.specs.as_deref())?;
    if known.is_reference && matches!(kind, Kind::Token | Kind::Qr) {
        note("no application is configured: its name, id, scheme and key are not compared");
    }
    let api_key = known.of_application("api_key");
    let surroundings = Surroundings {
        api_key: api_key.filter(|_| !known.is_reference),
        configured: known.of_traffic(),
        targets: known.targets,
        hooks: known.hooks,
        second_accounts: known.second_accounts,
        now: Some(moment(args.at.as_deref())?),
        alone: args.alone,
        sides: args.judge.unwrap_or_default().into(),
        jobs: args.jobs.unwrap_or_else(super::processors),
    };
    let mut checker = Checker::new(&rulebook, kind.clone(), surroundings);
    let mut quarantine = None;
    if let Some(folder) = &args.set_aside {
        let strict = args.output.strict;
        let level = if strict { Level::Should } else { Level::Must };
        let (begun, lines) = Quarantine::begin(folder, level)?;
        quarantine = Some(begun);
        checker.set_aside(lines);
    }
    let mut unread = 0;
    let piped = judge_files(args, &mut checker, &mut unread)?;
    for why in checker.notes() {
        note(why);
    }
    for line in events(&rulebook, checker.types()) {
        note(&line);
    }
    if let Some((quarantine, lines)) = quarantine.zip(checker.take_set_aside()) {
        finish_quarantine(quarantine, lines)?;
    }
    let (mut record, counts) = checker.finish();
    if counts.filled == 0 {
        return Err(nothing_read(unread));
    }
    note_cut(&mut record, counts.cut);
    note_unread(&mut record, unread);
    if let Some(line) = schema_ids(&record) {
        note(&line);
    }
    if let Some(name) = piped {
        rename(&mut record, STANDARD_INPUT, &name);
    }
    record.invocation = invocation::invocation();
    let strict = args.output.strict;
    let (exit, reasons) = conclusion(&record, &kind, counts, unread, strict);
    record.exit = Some(exit as u8);
    let settings = Settings { strict };
    let redactor = Redactor::new(&known.secrets);
    let mut keep = Keep::default();
    {
        let mut out = output::stream(&reports);
        let mut console = output::console(out.as_mut(), args.output.console, &reports, settings);
        let mut stream = Stream::new(
            &redactor,
            vec![&mut console as &mut dyn Consumer, &mut keep],
        );
        stream.send(RunEvent::Finished {
            record: Box::new(record),
        });
    }
    let record = keep
        .record
        .ok_or_else(|| Failure::Trouble("the check wrote no record".to_owned()))?;
    output::write_reports(&reports, &record, settings)?;
    if counts.unlisted > 0 {
        note(&format!(
            "{} further findings are counted with their rules and not listed",
            counts.unlisted
        ));
    }
    passed_over(&kind, counts.foreign, counts.unreadable);
    for why in reasons {
        note(&why);
    }
    Ok(exit)
}

/// The exit code and its reasons. Files that cannot be read or are cut are reported before.
fn conclusion(
    record: &RunRecord,
    kind: &Kind,
    counts: Counts,
    unread: usize,
    strict: bool,
) -> (Exit, Vec<String>) {
    let demands = Demands {
        strict,
        ..Demands::default()
    };
    match (unread, counts.cut, counts.unreadable, counts.documents) {
        (1.., _, _, _) => (Exit::Usage, Vec::new()),
        (0, 1.., _, _) => (Exit::Trouble, Vec::new()),
        (0, 0, 1.., _) if strict => (Exit::Usage, Vec::new()),
        (0, 0, _, 0) => {
            let why = match kind {
                Kind::Events(_) => {
                    "no file holds an event; --type-at and --payload-at name where type and payload are, and `--as` names \
                     another type of documents"
                }
                Kind::Har => {
                    "no file holds an exchange; record one first, or name another type with `--as`"
                }
                Kind::Representation(_) | Kind::Token | Kind::Qr => "no file holds a document",
            };
            (
                Exit::NothingJudged,
                vec![format!("nothing was judged: {why}")],
            )
        }
        (0, 0, _, _) => {
            let (conclusion, reasons) = gate(demands, record, &[], false);
            (Exit::from(conclusion), reasons)
        }
    }
}

/// Judges all files, and counts those of several that cannot be opened. Returns the name of standard input in the
/// record, if it was read.
fn judge_files(
    args: &CheckArgs,
    checker: &mut Checker<'_>,
    unread: &mut usize,
) -> Result<Option<String>, Failure> {
    let mut piped = None;
    let files = archives::expand(&args.files)?;
    for path in &files {
        let name = path.display().to_string();
        let opened = match archives::open(path) {
            Err(failure) if files.len() > 1 => {
                note(&format!("error: {failure}"));
                *unread += 1;
                continue;
            }
            opened => opened?,
        };
        let checked = match opened {
            OpenedArchive::Plain(file) => checker.opened(&name, &file),
            OpenedArchive::Unpacked(mut source) => checker.file(&name, source.as_mut()),
            OpenedArchive::StandardInput => {
                let (mut source, digest) = archives::Digested::new(std::io::stdin());
                piped = Some(digest);
                checker.file(&name, &mut source)
            }
        };
        checked.map_err(|error| {
            let text = error.to_string();
            let of_input = text.strip_prefix("- ").filter(|_| name == STANDARD_INPUT);
            let text = of_input.map_or(text.clone(), |rest| format!("standard input {rest}"));
            if error.is_usage() {
                Failure::Usage(text)
            } else {
                Failure::Trouble(text)
            }
        })?;
    }
    Ok(piped.map(|digest| archives::name_of(&digest)))
}

/// Closes the file of rejected lines, and names it.
fn finish_quarantine(quarantine: Quarantine, lines: SetAside) -> Result<(), Failure> {
    if let Some((lines, path)) = quarantine.finish(lines)? {
        let path = path.display();
        let are = if lines == 1 { "is" } else { "are" };
        let lines = text::count(lines, "rejected line");
        note(&format!("{lines} {are} set aside in {path}"));
    }
    Ok(())
}

fn nothing_read(unread: usize) -> Failure {
    let why = match unread {
        0 => "the input is empty",
        _ => "no file can be read",
    };
    Failure::Usage(format!("there is nothing to judge: {why}"))
}

/// Marks a record without the files that cannot be read as incomplete.
fn note_unread(record: &mut RunRecord, unread: usize) {
    if unread > 0 {
        record.complete = false;
        record.exit = Some(Exit::Usage as u8);
        record.ended_early = Some(match unread {
            1 => "a file cannot be read".to_owned(),
            n => format!("{n} files cannot be read"),
        });
    }
}

/// Marks a record of files that are cut as incomplete.
fn note_cut(record: &mut RunRecord, cut: usize) {
    record.complete = cut == 0;
    if cut > 0 {
        record.exit = Some(Exit::Trouble as u8);
        record.ended_early = Some(match cut {
            1 => "a file is cut".to_owned(),
            n => format!("{n} files are cut"),
        });
    }
}

/// The schema ids of Confluent wire headers, with the number of documents.
fn schema_ids(record: &RunRecord) -> Option<String> {
    let ids = &record.archive.as_ref()?.schema_ids;
    let shown = ids.iter().take(SCHEMA_IDS_MAX);
    let mut shown: Vec<String> = shown
        .map(|(id, n)| format!("{id} ({})", text::count(*n, "document")))
        .collect();
    if ids.len() > SCHEMA_IDS_MAX {
        shown.push(format!("and {} more", ids.len() - SCHEMA_IDS_MAX));
    }
    (!ids.is_empty()).then(|| format!("Confluent wire header with schema id {}", shown.join(", ")))
}

/// Reports an unusable `--as`.
fn no_kind(error: &KindError) -> Failure {
    Failure::Usage(match error {
        KindError::NotShown(_) => error.to_string(),
        KindError::Unknown { .. } => format!("--as: {error}"),
    })
}

/// Reports what was skipped: undocumented types and unreadable entries.
fn passed_over(kind: &Kind, foreign: usize, unreadable: usize) {
    // The checker names the requests of a recording.
    if foreign > 0 && !matches!(kind, Kind::Har) {
        note(&format!(
            "{} {}",
            foreign,
            match kind {
                Kind::Events(_) => "events are of no documented type",
                Kind::Representation(_) | Kind::Token | Kind::Qr | Kind::Har =>
                    "entries belong to no documented operation",
            }
        ));
    }
    if unreadable > 0 {
        note(&format!(
            "{} skipped, because {}",
            match unreadable {
                1 => "1 entry was".to_owned(),
                n => format!("{n} entries were"),
            },
            match kind {
                Kind::Events(_) => "no event is there",
                Kind::Representation(_) | Kind::Token | Kind::Qr | Kind::Har =>
                    "no exchange is there",
            }
        ));
    }
}

/// The type, with the places that the flags name.
fn mapped(args: &CheckArgs, kind: Kind) -> Result<Kind, Failure> {
    let flags = [
        ("--type-at", &args.type_at),
        ("--schema-at", &args.schema_at),
        ("--payload-at", &args.payload_at),
    ];
    for (flag, pointer) in flags {
        if let Some(pointer) = pointer {
            if !matches!(kind, Kind::Events(_)) {
                return Err(Failure::Usage(format!("{flag} goes with `--as events`")));
            }
            if !pointer.starts_with('/') {
                return Err(Failure::Usage(format!(
                    "invalid {flag} `{pointer}`: expected a JSON Pointer, such as /member"
                )));
            }
        }
    }
    let Kind::Events(known) = kind else {
        return Ok(kind);
    };
    Ok(Kind::Events(Mapping {
        type_at: args.type_at.clone().unwrap_or(known.type_at),
        schema_at: args.schema_at.clone().unwrap_or(known.schema_at),
        payload_at: args.payload_at.clone().unwrap_or(known.payload_at),
    }))
}

/// Counts of the event types in a stream, and the documented types that are missing.
fn events(rulebook: &Rulebook, seen: &BTreeMap<String, usize>) -> Vec<String> {
    if seen.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = seen
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let missing: Vec<&str> = rulebook
        .event_types
        .keys()
        .filter(|name| !seen.contains_key(*name))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        lines.push(format!("not seen, so not judged: {}", missing.join(", ")));
    }
    lines
}

/// Renames a file in the record.
fn rename(record: &mut RunRecord, from: &str, to: &str) {
    let scenarios = record.scenarios.iter_mut().map(|scenario| &mut scenario.id);
    let findings = record
        .findings
        .iter_mut()
        .map(|finding| &mut finding.scenario);
    for name in scenarios.chain(findings).filter(|name| *name == from) {
        to.clone_into(name);
    }
}

/// The time at which tokens are judged.
fn moment(at: Option<&str>) -> Result<Timestamp, Failure> {
    let Some(text) = at else {
        return Ok(conformant_base::clock::now());
    };
    text.parse().map_err(|_| {
        Failure::Usage(format!(
            "invalid --at `{text}`: expected a time, such as 2026-01-01T00:00:00Z"
        ))
    })
}

/// The part of the rulebook that the type needs, which loads faster than the whole.
fn rulebook_for(args: &CheckArgs) -> Result<Rulebook, Failure> {
    let index = ServiceIndex::embedded();
    let services: Vec<&str> = match args.kind.split('/').next().unwrap_or_default() {
        "har" => return load(&args.specs),
        "token" | "qr" => index.token_reader().into_iter().collect(),
        service if index.is_target(service) => vec![service],
        // Events, by name or type; some contain signed tokens.
        _ => index
            .feeds()
            .into_iter()
            .chain(index.token_reader())
            .collect(),
    };
    if args.specs.specs.is_none() {
        let part = conformant_judge::load::embedded_shapes(&services).map_err(Failure::Problems)?;
        if Kind::parse(&part, &args.kind).is_ok() {
            return Ok(part);
        }
    }
    // The error for an unknown type lists all known ones.
    load(&args.specs)
}
