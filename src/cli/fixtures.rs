//! `fixtures`: writes sets and streams of fixtures, proves sets, exports.
//!
//! What a fixture is, and how it is proved, is `crate::fixtures`; here are folders, pipes, progress.

use super::args::{
    ExportArgs, ExportFormat, FixtureFormat, FixturesCommand, GenerateArgs, VerifyArgs,
};
use super::{Done, Exit, Failure, load, note, say};
use crate::engine::plan::glob;
use crate::fixtures::export::{self, ExportError, Format};
use crate::fixtures::stream::{self, Layout};
use crate::fixtures::{
    self, Entry, Line, MANIFEST_VERSION, Manifest, Plan, PlanError, Prover, SetError, Staged,
    Subject, VALID_DEFAULT, Wanted,
};
use crate::rulebook::Rulebook;
use crate::schema::Schemas;
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// How many of each kind a stream holds unless told otherwise.
const STREAM_DEFAULT: u64 = 10;
/// How many files of one kind a set may hold.
const FILES_MAX: u64 = 100_000;

pub(super) fn fixtures(command: &FixturesCommand) -> Done {
    match command {
        FixturesCommand::Generate(args) => generate(args),
        FixturesCommand::Verify(args) => match &args.against {
            None => verify(args),
            Some(version) => verify_against(args, version),
        },
        FixturesCommand::Export(args) => export(args),
    }
}

impl From<SetError> for Failure {
    fn from(error: SetError) -> Self {
        let text = format!("failed to {error}");
        if error.is_usage() {
            Self::Usage(text)
        } else {
            Self::Trouble(text)
        }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Self::Trouble(format!("failed to {error}"))
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::Trouble(format!("failed to {error}"))
    }
}

fn generate(args: &GenerateArgs) -> Done {
    let rulebook = load(&args.specs)?;
    let all = fixtures::subjects(&rulebook);
    let wanted = select(&rulebook, &all, &args.kinds)?;
    let to_stdout = args.out == Path::new("-");
    let default = if to_stdout {
        FixtureFormat::Ndjson
    } else {
        FixtureFormat::Json
    };
    match (args.format.unwrap_or(default), to_stdout) {
        (FixtureFormat::Json, false) => folder_of_files(args, &rulebook, &wanted),
        (FixtureFormat::Ndjson, false) => folder_of_streams(args, &rulebook, &wanted),
        (FixtureFormat::Ndjson, true) => standard_output(args, &rulebook, &wanted, Layout::Ndjson),
        (FixtureFormat::Json, true) if wanted.len() == 1 => {
            standard_output(args, &rulebook, &wanted, Layout::Array)
        }
        (FixtureFormat::Json, true) => Err(Failure::Usage(format!(
            "--format json on standard output is one array of one kind, and these are {} kinds; \
             name one with --kind, or use --format ndjson or --out DIR",
            wanted.len()
        ))),
    }
}

/// The subjects that are asked for, each once.
fn select<'a>(
    rulebook: &Rulebook,
    all: &'a [Subject],
    kinds: &[String],
) -> Result<Vec<&'a Subject>, Failure> {
    if kinds.is_empty() {
        return Ok(all.iter().collect());
    }
    for kind in kinds {
        if let Some(None) = rulebook.event_types.get(kind) {
            return Err(Failure::Usage(format!(
                "--kind {kind}: no document shows its payload"
            )));
        }
        if !all.iter().any(|s| names(rulebook, kind, s)) {
            let known: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
            let help = crate::text::did_you_mean(kind, &known).map_or_else(
                || {
                    "`conformant list kinds` and `conformant list operations` show what there is"
                        .to_owned()
                },
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Failure::Usage(format!(
                "--kind {kind}: no such kind; {help}"
            )));
        }
    }
    Ok(all
        .iter()
        .filter(|s| kinds.iter().any(|kind| names(rulebook, kind, s)))
        .collect())
}

fn names(rulebook: &Rulebook, kind: &str, subject: &Subject) -> bool {
    let current = rulebook.event_types.get(kind).and_then(Option::as_deref);
    current == Some(subject.name.as_str()) || glob(kind, &subject.name)
}

fn threads(args: &GenerateArgs) -> usize {
    args.jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1)
}

/// A file for each document.
fn folder_of_files(args: &GenerateArgs, rulebook: &Rulebook, wanted: &[&Subject]) -> Done {
    let valid = args.count.unwrap_or(VALID_DEFAULT);
    if valid > FILES_MAX {
        return Err(Failure::Usage(format!(
            "--count {valid} would be that many files of each kind; use --format ndjson beyond {FILES_MAX}"
        )));
    }
    fixtures::check_replaceable(&args.out)?;
    let set = fixtures::make(
        rulebook,
        &Schemas::default(),
        wanted,
        Wanted {
            seed: args.seed,
            valid,
            invalid: args.invalid,
        },
    )?;
    set.write(&args.out)?;
    let broken = set.manifest.fixtures.iter().filter(|e| !e.valid).count();
    note(&format!(
        "{}: {} valid and {broken} invalid fixtures",
        args.out.display(),
        set.manifest.fixtures.len() - broken
    ));
    Ok(Exit::Conformant)
}

/// A file for each kind, and one for what breaks its rules.
fn folder_of_streams(args: &GenerateArgs, rulebook: &Rulebook, wanted: &[&Subject]) -> Done {
    let staged = Staged::new(&args.out)?;
    let schemas = Schemas::default();
    let count = args.count.unwrap_or(STREAM_DEFAULT);
    let bar = progress(count.saturating_mul(wanted.len() as u64));
    let mut entries = Vec::new();
    for subject in wanted {
        let file = format!("{}.ndjson", fixtures::folder_of(subject));
        let plan = Plan::new(subject)?;
        let sha256 = into_file(&staged, &file, |out| {
            let before = bar.position();
            let mut told = |n| bar.set_position(before + n);
            stream::write(
                &plan,
                args.seed,
                count,
                threads(args),
                Layout::Ndjson,
                out,
                &mut told,
            )
        })?;
        entries.push(stream_entry(file, subject, true, sha256));
        if args.invalid {
            let file = format!("{}.invalid.ndjson", fixtures::folder_of(subject));
            // Every way of breaking a rule, once; --count is about the flawless ones here.
            let lines = broken_lines(args.seed, None, rulebook, &schemas, subject)?;
            let sha256 = into_file(&staged, &file, |out| {
                write_lines(&lines, Layout::Ndjson, out)
            })?;
            entries.push(stream_entry(file, subject, false, sha256));
        }
    }
    entries.sort_by(|a, b| a.file.cmp(&b.file));
    staged.put(&Manifest {
        schema_version: MANIFEST_VERSION,
        seed: args.seed,
        rulebook: rulebook.digest.clone(),
        fixtures: entries,
    })?;
    bar.finish_and_clear();
    note(&format!(
        "{}: {count} documents of {} kinds",
        args.out.display(),
        wanted.len()
    ));
    Ok(Exit::Conformant)
}

fn stream_entry(file: String, subject: &Subject, valid: bool, sha256: String) -> Entry {
    Entry {
        file,
        kind: subject.name.clone(),
        valid,
        rule: None,
        pointer: None,
        broken: None,
        twin: None,
        sha256,
    }
}

fn standard_output(
    args: &GenerateArgs,
    rulebook: &Rulebook,
    wanted: &[&Subject],
    layout: Layout,
) -> Done {
    let schemas = Schemas::default();
    let count = args.count.unwrap_or(STREAM_DEFAULT);
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    for subject in wanted {
        let written = if args.invalid {
            let lines = broken_lines(args.seed, args.count, rulebook, &schemas, subject)?;
            write_lines(&lines, layout, &mut out)
        } else {
            let plan = Plan::new(subject)?;
            stream::write(
                &plan,
                args.seed,
                count,
                threads(args),
                layout,
                &mut out,
                &mut |_| {},
            )
        };
        match written {
            // A closed pipe is the reader's choice, not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Conformant),
            Err(error) => {
                return Err(Failure::Trouble(format!(
                    "failed to write to standard output: {error}"
                )));
            }
            Ok(()) => {}
        }
    }
    Ok(Exit::Conformant)
}

/// Broken documents: every way there is, and again with other seeds until there are enough.
fn broken_lines(
    seed: u64,
    count: Option<u64>,
    rulebook: &Rulebook,
    schemas: &Schemas,
    subject: &Subject,
) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for round in 0.. {
        let found = fixtures::breaks(rulebook, schemas, subject, seed.wrapping_add(round))?;
        let is_done = found.is_empty() || count.is_none();
        lines.extend(found.into_iter().map(|b| Line {
            kind: subject.name.clone(),
            rule: b.rule,
            pointer: b.pointer,
            broken: b.broken.to_owned(),
            document: b.document,
        }));
        let enough = count.is_some_and(|count| lines.len() as u64 >= count);
        if is_done || enough {
            break;
        }
    }
    if let Some(count) = count {
        lines.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    Ok(lines)
}

fn write_lines(lines: &[Line], layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    if layout == Layout::Array {
        serde_json::to_writer(&mut *out, lines)?;
        out.write_all(b"\n")?;
        return out.flush();
    }
    for line in lines {
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes a file of a staged set; its SHA-256.
fn into_file(
    staged: &Staged,
    file: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<String, Failure> {
    let path = staged.path(file)?;
    let failed =
        |error: io::Error| Failure::Trouble(format!("failed to write {}: {error}", path.display()));
    let mut out = Hashed {
        out: File::create(&path).map_err(failed)?,
        hasher: Sha256::new(),
    };
    write(&mut out).map_err(failed)?;
    Ok(crate::text::hex(out.hasher.finalize()))
}

/// A file whose bytes are hashed on their way.
struct Hashed {
    out: File,
    hasher: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A bar on a terminal, nothing elsewhere.
fn progress(documents: u64) -> ProgressBar {
    let bar = ProgressBar::new(documents);
    let template = "{bar:40} {human_pos}/{human_len} documents, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn verify(args: &VerifyArgs) -> Done {
    let rulebook = load(&args.specs)?;
    let manifest = fixtures::read(&args.folder)?;
    if manifest.fixtures.is_empty() {
        note(&format!(
            "{}: the manifest names no fixture, so nothing was proved",
            args.folder.display()
        ));
        return Ok(Exit::NothingJudged);
    }
    let prover = Prover::new(&rulebook, &args.folder);
    let mut failed = 0;
    for entry in &manifest.fixtures {
        if let Err(why) = prover.prove(entry) {
            failed += 1;
            say(&format!(
                "{}: {}\n",
                crate::text::escape(&entry.file),
                crate::text::escape(&why)
            ));
        }
    }
    for file in prover.unlisted(&manifest) {
        failed += 1;
        say(&format!(
            "{}: the manifest does not name it\n",
            crate::text::escape(&file)
        ));
    }
    if manifest.rulebook != rulebook.digest {
        note(
            "the set was made by another version of the rulebook; what was proved was proved by this one",
        );
    }
    say(&format!(
        "{} fixtures, {failed} failed\n",
        manifest.fixtures.len()
    ));
    Ok(if failed == 0 {
        Exit::Conformant
    } else {
        Exit::Failed
    })
}

/// Which flawless fixtures of other versions of an event fail against one version.
fn verify_against(args: &VerifyArgs, version: &str) -> Done {
    let rulebook = load(&args.specs)?;
    let kind = crate::compare::kind_named(&rulebook, version)
        .map_err(|e| Failure::Usage(format!("--against {version}: {e}")))?;
    let event = kind.strip_prefix("events/").and_then(|k| k.split_once('/'));
    let Some((event, _)) = event else {
        return Err(Failure::Usage(format!(
            "--against {version}: only events have versions; name one as MessageSent/4"
        )));
    };
    let manifest = fixtures::read(&args.folder)?;
    let prover = Prover::new(&rulebook, &args.folder);
    let family = format!("events/{event}/");
    let others: Vec<&Entry> = manifest
        .fixtures
        .iter()
        .filter(|e| e.valid && e.kind.starts_with(&family) && e.kind != kind)
        .collect();
    if others.is_empty() {
        note(&format!(
            "{}: no fixture of another version of {event}, so nothing was judged",
            args.folder.display()
        ));
        return Ok(Exit::NothingJudged);
    }
    let mut failed = 0;
    for entry in &others {
        let found = prover
            .found_as(entry, &kind)
            .map_err(|why| Failure::Trouble(format!("failed to judge {}: {why}", entry.file)))?;
        failed += usize::from(!found.is_empty());
        for (rule, pointer) in found {
            let line = format!("{}: {rule} at `{pointer}`", entry.file);
            say(&format!("{}\n", crate::text::escape(&line)));
        }
    }
    say(&format!(
        "{} fixtures of other versions, {failed} fail against {kind}\n",
        others.len()
    ));
    Ok(if failed == 0 {
        Exit::Conformant
    } else {
        Exit::Failed
    })
}

fn export(args: &ExportArgs) -> Done {
    let rulebook = load(&args.specs)?;
    for service in &args.services {
        if !rulebook.services.contains_key(service) {
            let known: Vec<&str> = rulebook.services.keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(Failure::Usage(format!(
                "--service {service}: known are {known}"
            )));
        }
    }
    let scope = export::Scope {
        rulebook: &rulebook,
        specs: args.specs.specs.as_deref(),
        services: &args.services,
        seed: args.seed,
    };
    let format = match args.format {
        ExportFormat::Openapi => Format::OpenApi,
        ExportFormat::Asyncapi => Format::AsyncApi,
        ExportFormat::Jsonschema => Format::JsonSchema,
        ExportFormat::Wiremock => Format::WireMock,
        ExportFormat::Postman => Format::Postman,
        ExportFormat::Har => Format::Har,
    };
    let made = export::export(scope, format)?;
    if made.files.is_empty() {
        let name = format.name();
        return Err(Failure::Usage(format!(
            "nothing of these services can be said in {name}; leave --service out"
        )));
    }
    made.write(&args.folder)?;
    note(&format!(
        "{}: {} files",
        args.folder.display(),
        made.files.len()
    ));
    Ok(Exit::Conformant)
}
