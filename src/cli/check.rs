//! `check`: judges files offline.

use super::archives::{Expanded, OpenedArchive, Quarantine};
use super::args::{CheckArgs, Side};
use super::{Done, Exit, Failure, archives, config, invocation, load, note, output, reports_of};
use conformant_base::clock::Timestamp;
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_check::{
    Checker, Counts, Kind, KindError, Mapping, STANDARD_INPUT, SetAside, Surroundings, UnknownType,
};
use conformant_engine::{Demands, gate};
use conformant_record::{Level, RunRecord};
use conformant_rulebook::Rulebook;
use conformant_rulebook::service::ServiceIndex;
use std::collections::BTreeMap;

/// Unknown event types in notes, and the length of a name.
const UNKNOWN_TYPES_MAX: usize = 10;
const NAME_BYTES_MAX: usize = 100;
/// Files in notes that look like another type.
const HINTS_MAX: usize = 3;
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
    let (piped, file_count) = judge_files(args, &mut checker, &mut unread)?;
    for why in checker.notes() {
        note(why);
    }
    for line in events(&rulebook, checker.types()) {
        note(&line);
    }
    let doubtful = note_unknown_types(checker.unknown_types());
    if let Some((quarantine, lines)) = quarantine.zip(checker.take_set_aside()) {
        finish_quarantine(quarantine, lines)?;
    }
    let hints = checker.hints().to_vec();
    let (mut record, counts) = checker.finish();
    if counts.filled == 0 {
        return Err(nothing_read(unread));
    }
    let strict = args.output.strict;
    let sides = args.judge.unwrap_or_default();
    let (exit, reasons) = conclusion(&record, &kind, counts, (unread, doubtful), (strict, sides));
    note_incomplete(&mut record, counts, unread);
    if let Some(line) = schema_ids(&record) {
        note(&line);
    }
    if let Some(name) = piped {
        rename(&mut record, STANDARD_INPUT, &name);
    }
    record.invocation = invocation::invocation();
    record.exit = Some(exit as u8);
    note(&read_in_all(&kind, counts, file_count - unread));
    let redactor = Redactor::new(&known.secrets);
    output::publish(record, &redactor, &reports, &args.output)?;
    if counts.unlisted > 0 {
        note(&format!(
            "{} further findings are counted with their rules and not listed",
            counts.unlisted
        ));
    }
    passed_over(&kind, counts.skipped);
    note_unrecorded(counts);
    for line in hints.iter().take(HINTS_MAX).chain(&reasons) {
        note(line);
    }
    Ok(exit)
}

/// The exit code and its reasons. Files that cannot be read or are cut are reported before. Events of a type that may be a
/// mistake fail with `--strict`.
fn conclusion(
    record: &RunRecord,
    kind: &Kind,
    counts: Counts,
    (unread, doubtful): (usize, usize),
    (strict, sides): (bool, Side),
) -> (Exit, Vec<String>) {
    if unread > 0 {
        return (Exit::Usage, Vec::new());
    }
    if counts.cut > 0 {
        return (Exit::Trouble, Vec::new());
    }
    let demands = Demands {
        strict,
        of_service: sides != Side::Requests,
        ..Demands::default()
    };
    let (judged, mut reasons) = match counts.documents {
        0 => (Exit::NothingJudged, vec![nothing_judged(kind, counts)]),
        _ => {
            let (conclusion, reasons) = gate(demands, record, &[], false);
            (Exit::from(conclusion), reasons)
        }
    };
    if counts.malformed > 0 && judged != Exit::Failed {
        if counts.documents == 0 {
            reasons = vec![
                "no line is a document: expected one document a line, as `jq -c . FILE` writes them".to_owned(),
            ];
        }
        return (Exit::Usage, reasons);
    }
    if strict && counts.skipped + counts.unrecorded > 0 {
        return (Exit::Usage, reasons);
    }
    if judged == Exit::Conformant
        && let Some(why) = too_many_skipped(kind, counts)
    {
        return (Exit::NothingJudged, vec![why]);
    }
    if strict && doubtful > 0 && judged == Exit::Conformant {
        let events = text::count(doubtful, "event");
        let why = format!("--strict: {events} of an unknown type could not be judged");
        return (Exit::NothingJudged, vec![why]);
    }
    (judged, reasons)
}

/// Why a stream of events shows too little: more than a tenth of its entries contain no event.
fn too_many_skipped(kind: &Kind, counts: Counts) -> Option<String> {
    let entries = counts.documents + counts.foreign + counts.skipped;
    let is_stream = matches!(kind, Kind::Events(_));
    (is_stream && counts.skipped * 10 > entries).then(|| {
        format!(
            "{} of {entries} entries contain no event, and at most a tenth may: --type-at and --payload-at name where type and payload are",
            counts.skipped
        )
    })
}

/// Why no document was judged.
fn nothing_judged(kind: &Kind, counts: Counts) -> String {
    let why = match kind {
        Kind::Events(_) if counts.foreign > 0 => {
            "no event is of a type that the documents describe"
        }
        Kind::Events(_) => {
            "no file holds an event; --type-at and --payload-at name where type and payload are, and `--as` names \
             another type of documents"
        }
        Kind::Har if counts.foreign > 0 => {
            "no exchange belongs to a documented operation; `targets` in the configuration names the address of each service"
        }
        Kind::Har => {
            "no file holds an exchange; record one first, or name another type with `--as`"
        }
        Kind::Representation(_) | Kind::Token | Kind::Qr => "no file holds a document",
    };
    format!("nothing was judged: {why}")
}

/// Reports events of undocumented types. Returns the number of those whose type may be a mistake: it is similar to a
/// documented one or has the form of these.
fn note_unknown_types(types: &[UnknownType]) -> usize {
    let is_doubtful = |unknown: &&UnknownType| unknown.is_of_form || unknown.similar.is_some();
    let doubtful = || types.iter().filter(is_doubtful);
    for unknown in doubtful().take(UNKNOWN_TYPES_MAX) {
        let UnknownType { first, name, .. } = unknown;
        let name = text::excerpt(name, NAME_BYTES_MAX);
        let events = text::count(unknown.events, "event");
        let help = match &unknown.similar {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => "the documents do not describe it".to_owned(),
        };
        note(&format!(
            "WARN {first}: unknown event type `{name}` ({events}, not judged); {help}"
        ));
    }
    if doubtful().count() > UNKNOWN_TYPES_MAX {
        let more = doubtful().count() - UNKNOWN_TYPES_MAX;
        note(&format!(
            "WARN {} more",
            text::count(more, "unknown event type")
        ));
    }
    let others = || types.iter().filter(|unknown| !is_doubtful(unknown));
    if let Some(first) = others().next() {
        let events = others().map(|unknown| unknown.events).sum();
        note(&format!(
            "{} of other types, not judged, such as `{}` ({})",
            text::count(events, "event"),
            text::excerpt(&first.name, NAME_BYTES_MAX),
            first.first
        ));
    }
    doubtful().map(|unknown| unknown.events).sum()
}

/// What was read: `3 documents in 1 file`.
fn read_in_all(kind: &Kind, counts: Counts, files: usize) -> String {
    let unit = match kind {
        Kind::Har => "exchange",
        Kind::Events(_) => "event",
        Kind::Token => "token",
        Kind::Representation(_) | Kind::Qr => "document",
    };
    let read = text::count(counts.documents, unit);
    let mut line = format!("read {read} in {}", text::count(files, "file"));
    if counts.malformed > 0 {
        let lines = text::count(counts.malformed, "line");
        line += &format!("; {lines} cannot be read");
    }
    line
}

/// Judges all files, and counts those of several that cannot be opened. Returns the name of standard input in the
/// record, if it was read, and the number of files.
fn judge_files(
    args: &CheckArgs,
    checker: &mut Checker<'_>,
    unread: &mut usize,
) -> Result<(Option<String>, usize), Failure> {
    let mut piped = None;
    let Expanded {
        files,
        left_out,
        unread: folders,
    } = archives::expand(&args.files)?;
    if let Some(line) = archives::left_out(&left_out) {
        note(&line);
    }
    for why in &folders {
        note(&format!("error: {why}"));
        *unread += 1;
    }
    let count = files.len() + folders.len();
    for path in &files {
        let name = path.display().to_string();
        let opened = match archives::open(path) {
            Err(failure) if count > 1 => {
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
    Ok((piped.map(|digest| archives::name_of(&digest)), count))
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

/// Marks a record without the files and lines that cannot be read as incomplete.
fn note_incomplete(record: &mut RunRecord, counts: Counts, unread: usize) {
    let parts = [
        (unread, "a file cannot be read", "files cannot be read"),
        (counts.cut, "a file is cut", "files are cut"),
        (
            counts.malformed,
            "a line cannot be read",
            "lines cannot be read",
        ),
        (
            counts.unrecorded,
            "a response was not recorded with its body",
            "responses were not recorded with their bodies",
        ),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, one, several)| match count {
            1 => one.to_owned(),
            n => format!("{n} {several}"),
        })
        .collect();
    record.complete = parts.is_empty();
    record.ended_early = (!parts.is_empty()).then(|| parts.join(", "));
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

/// Reports entries without an event or exchange.
fn passed_over(kind: &Kind, skipped: usize) {
    if skipped > 0 {
        let what = match kind {
            Kind::Events(_) => "event",
            Kind::Representation(_) | Kind::Token | Kind::Qr | Kind::Har => "exchange",
        };
        let (entries, they) = match skipped {
            1 => ("1 entry was".to_owned(), "it contains"),
            n => (format!("{n} entries were"), "they contain"),
        };
        note(&format!(
            "{entries} skipped, because {they} no {what}; --strict fails then"
        ));
    }
}

/// Reports exchanges whose response a recording lacks.
fn note_unrecorded(counts: Counts) {
    if counts.unrecorded > 0 {
        let exchanges = text::count(counts.documents, "exchange");
        note(&format!(
            "the recording lacks the response or its body in {} of {exchanges}, which are not judged: record with bodies; \
             --strict fails then",
            counts.unrecorded
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
    let lines = seen.iter().map(|(name, count)| format!("{count} {name}"));
    let mut lines: Vec<String> = lines.collect();
    let types = rulebook.event_types.keys().map(String::as_str);
    let missing: Vec<&str> = types.filter(|name| !seen.contains_key(*name)).collect();
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

fn moment(at: Option<&str>) -> Result<Timestamp, Failure> {
    let Some(text) = at else {
        return Ok(conformant_base::clock::now());
    };
    let wrong = |_| format!("invalid --at `{text}`: expected a time, such as 2026-01-01T00:00:00Z");
    text.parse().map_err(wrong).map_err(Failure::Usage)
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
