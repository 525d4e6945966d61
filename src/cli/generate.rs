//! `fixtures generate`: writes sets and streams of fixtures to folders and pipes.
//!
//! Fixtures are implemented in `conformant_fixtures`; this module handles folders, pipes, signals and progress.

use super::archives::{self, Digested};
use super::args::{FixtureFormat, GenerateArgs};
use super::signals::Signals;
use super::{Done, Exit, Failure, load, note, worlds};
use conformant_base::text;
use conformant_fixtures::stream::{self, Layout, Source};
use conformant_fixtures::{
    Breaker, Entry, Filing, Line, MANIFEST_VERSION, Manifest, Plan, SetError, Signing, Staged,
    Subject, Text, Texts, VALID_DEFAULT, Wanted,
};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Default number of documents of each type in a stream.
const STREAM_DEFAULT: u64 = 10;
/// Most files of one type in a set.
const FILES_MAX: u64 = 100_000;
/// Most lines of one type that a manifest lists; further valid ones are counted.
const LINES_NAMED_MAX: u64 = 1_000;
/// Bytes that are buffered before a write.
const BUFFER_BYTES: usize = 1 << 16;

pub(super) fn generate(args: &GenerateArgs) -> Done {
    if args.world {
        return worlds::generate(args);
    }
    let rulebook = load(&args.specs)?;
    let all = conformant_fixtures::subjects(&rulebook);
    let chosen = select(&rulebook, &all, &args.kinds)?;
    let signals = Signals::listen()?;
    let generation = Generation {
        args,
        rulebook: &rulebook,
        all: &all,
        schemas: Schemas::default(),
        chosen,
        signals: &signals,
    };
    let to_stdout = args.out == Path::new("-");
    let default = if to_stdout {
        FixtureFormat::Ndjson
    } else {
        FixtureFormat::Json
    };
    let done = match (args.format.unwrap_or(default), to_stdout) {
        (FixtureFormat::Json, false) => generation.set(Filing::Tree),
        (FixtureFormat::Ndjson, false) if args.count.unwrap_or_default() <= LINES_NAMED_MAX => {
            generation.set(Filing::Lines)
        }
        (FixtureFormat::Ndjson, false) => generation.folder_of_streams(),
        (FixtureFormat::Ndjson, true) => generation.standard_output(Layout::Ndjson),
        (FixtureFormat::Json, true) if generation.chosen.len() == 1 => {
            generation.standard_output(Layout::Array)
        }
        (FixtureFormat::Har | FixtureFormat::SeedData, _) => Err(Failure::Usage(
            "--format har and seed-data need --world".to_owned(),
        )),
        (FixtureFormat::Json, true) => Err(Failure::Usage(format!(
            "--format json on standard output is one array of one type, and {} types are selected; \
             name one with --kind, or use --format ndjson or --out DIR",
            generation.chosen.len()
        ))),
    };
    signals.conclude(done)
}

#[derive(Clone, Copy)]
enum ResourceRequest<'a> {
    Document(&'a Subject),
    Text(Text),
}

impl<'a> ResourceRequest<'a> {
    fn document(&self) -> Option<&'a Subject> {
        match self {
            Self::Document(subject) => Some(subject),
            Self::Text(_) => None,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Document(subject) => &subject.name,
            Self::Text(text) => text.name(),
        }
    }

    /// Path of the stream of valid documents in a folder.
    fn stream_file(&self) -> String {
        match self {
            Self::Document(subject) => {
                format!("{}.ndjson", conformant_fixtures::folder_of(subject))
            }
            Self::Text(text) => format!("{}.txt", text.name()),
        }
    }

    fn source(&self, layout: Layout) -> Result<Box<dyn Source>, Failure> {
        Ok(match self {
            Self::Document(subject) => Box::new(Plan::new(subject)?),
            Self::Text(text) => Box::new(Texts::new(*text, layout == Layout::Array)),
        })
    }
}

/// The selected types, each once.
fn select<'a>(
    rulebook: &Rulebook,
    all: &'a [Subject],
    kinds: &[String],
) -> Result<Vec<ResourceRequest<'a>>, Failure> {
    let documents = all.iter().map(ResourceRequest::Document);
    let wishes: Vec<ResourceRequest<'_>> = documents
        .chain(Text::ALL.map(ResourceRequest::Text))
        .collect();
    if kinds.is_empty() {
        return Ok(wishes);
    }
    for kind in kinds {
        if let Some(None) = rulebook.event_types.get(kind) {
            return Err(Failure::Usage(format!(
                "--kind {kind}: the documents do not describe its payload"
            )));
        }
        if !wishes.iter().any(|w| names(rulebook, kind, w)) {
            return Err(unknown(kind, &wishes));
        }
    }
    let is_asked_for =
        |wish: &ResourceRequest<'_>| kinds.iter().any(|kind| names(rulebook, kind, wish));
    Ok(wishes.into_iter().filter(is_asked_for).collect())
}

fn names(rulebook: &Rulebook, kind: &str, wish: &ResourceRequest<'_>) -> bool {
    let current = rulebook.event_types.get(kind).and_then(Option::as_deref);
    current == Some(wish.name()) || text::glob(kind, wish.name())
}

fn unknown(kind: &str, wishes: &[ResourceRequest<'_>]) -> Failure {
    let known: Vec<&str> = wishes.iter().map(ResourceRequest::name).collect();
    let help = text::did_you_mean(kind, &known).map_or_else(
        || "see `conformant list kinds` and `conformant list operations`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Failure::Usage(format!("unknown --kind `{kind}`; {help}"))
}

struct Generation<'a> {
    args: &'a GenerateArgs,
    rulebook: &'a Rulebook,
    all: &'a [Subject],
    schemas: Schemas,
    chosen: Vec<ResourceRequest<'a>>,
    signals: &'a Signals,
}

impl<'a> Generation<'a> {
    fn threads(&self) -> usize {
        self.args.jobs.unwrap_or_else(super::processors).max(1)
    }

    fn texts(&self) -> Vec<Text> {
        let text = |wish: &ResourceRequest<'_>| match wish {
            ResourceRequest::Text(text) => Some(*text),
            ResourceRequest::Document(_) => None,
        };
        self.chosen.iter().filter_map(text).collect()
    }

    /// Returns an error after a signal, which ends all writing.
    fn go_on(&self) -> io::Result<()> {
        if self.signals.interrupted.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        Ok(())
    }

    /// Writes a set whose manifest lists each fixture.
    fn set(&self, filing: Filing) -> Done {
        let args = self.args;
        let valid = args.count.unwrap_or(VALID_DEFAULT);
        if valid > FILES_MAX {
            return Err(Failure::Usage(format!(
                "--count {valid} is too large for one file a document: use --format ndjson beyond {FILES_MAX}"
            )));
        }
        conformant_fixtures::check_replaceable(&args.out)?;
        let set = self.generate_set(filing, valid)?;
        set.write(&args.out, &self.signals.interrupted)?;
        let broken = set.manifest.fixtures.iter().filter(|e| !e.valid).count();
        note(&format!(
            "{}: {} valid and {broken} invalid fixtures",
            args.out.display(),
            set.manifest.fixtures.len() - broken
        ));
        Ok(Exit::Conformant)
    }

    fn generate_set(
        &self,
        filing: Filing,
        valid: u64,
    ) -> Result<conformant_fixtures::Set, Failure> {
        let wanted = Wanted {
            subjects: self
                .chosen
                .iter()
                .filter_map(|wish| wish.document())
                .collect(),
            texts: self.texts(),
            seed: self.args.seed,
            valid_count: valid,
            invalid: self.args.invalid,
            filing,
            jobs: self.threads(),
        };
        let stop = &self.signals.interrupted;
        Ok(conformant_fixtures::make(
            self.rulebook,
            &self.schemas,
            &wanted,
            stop,
        )?)
    }

    /// Writes one long file for each type, alongside the set of invalid documents.
    fn folder_of_streams(&self) -> Done {
        let args = self.args;
        let staged = Staged::of_set(&args.out)?;
        let count = args.count.unwrap_or(STREAM_DEFAULT);
        let bar = progress(count.saturating_mul(self.chosen.len() as u64));
        let mut entries = Vec::new();
        for wish in &self.chosen {
            let file = wish.stream_file();
            let sha256 = into_file(&staged, &file, |out| {
                self.flawless(wish, count, Layout::Ndjson, out, &bar)
            })?;
            entries.push(stream_entry(file, wish, count, sha256));
        }
        if args.invalid {
            let set = self.generate_set(Filing::Lines, 0)?;
            let is_streamed = |file: &str| entries.iter().any(|e| e.file == file);
            let beside = set.files.iter().filter(|(file, _)| !is_streamed(file));
            for (file, bytes) in beside {
                into_file(&staged, file, |out| Ok(out.write_all(bytes)?))?;
            }
            let named = set.manifest.fixtures.into_iter();
            let named: Vec<Entry> = named.filter(|e| !is_streamed(&e.file)).collect();
            entries.extend(named);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        staged.finish(&Manifest {
            schema_version: MANIFEST_VERSION,
            seed: args.seed,
            rulebook: self.rulebook.digest().to_owned(),
            tokens: (!self.texts().is_empty()).then(Signing::default),
            fixtures: entries,
        })?;
        bar.finish_and_clear();
        note(&format!(
            "{}: {count} documents of each of {} types",
            args.out.display(),
            self.chosen.len()
        ));
        Ok(Exit::Conformant)
    }

    fn standard_output(&self, layout: Layout) -> Done {
        let count = self.args.count.unwrap_or(STREAM_DEFAULT);
        let bar = if io::stdout().is_terminal() {
            ProgressBar::hidden()
        } else {
            progress(count.saturating_mul(self.chosen.len() as u64))
        };
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        for wish in &self.chosen {
            let written = if self.args.invalid {
                self.broken(wish, self.args.count, layout, &mut out)
            } else {
                self.flawless(wish, count, layout, &mut out, &bar)
            };
            match written {
                // A closed pipe is not an error.
                Err(Unwritten::Out(error)) if error.kind() == ErrorKind::BrokenPipe => {
                    return Ok(Exit::Conformant);
                }
                Err(Unwritten::Out(error)) => {
                    return Err(Failure::Trouble(format!(
                        "failed to write to standard output: {error}"
                    )));
                }
                Err(Unwritten::Reported(failure)) => return Err(failure),
                Ok(()) => {}
            }
        }
        bar.finish_and_clear();
        Ok(Exit::Conformant)
    }

    fn flawless(
        &self,
        wish: &ResourceRequest<'_>,
        count: u64,
        layout: Layout,
        out: &mut dyn Write,
        bar: &ProgressBar,
    ) -> Result<(), Unwritten> {
        let source = wish.source(layout)?;
        let before = bar.position();
        let mut on_document = |n| {
            bar.set_position(before + n);
            self.go_on()
        };
        let threads = self.threads();
        stream::write(
            source.as_ref(),
            self.args.seed,
            count,
            threads,
            layout,
            out,
            &mut on_document,
        )?;
        Ok(())
    }

    /// Invalid documents with the rules that they break: each mutation once, then again with other values until the
    /// count is reached.
    fn broken(
        &self,
        wish: &ResourceRequest<'_>,
        count: Option<u64>,
        layout: Layout,
        out: &mut dyn Write,
    ) -> Result<(), Unwritten> {
        let breaker = self.breaker(wish)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let (before, between, after, end) = match layout {
            Layout::Ndjson => ("", "", "\n", ""),
            Layout::Array => ("[", ",\n", "", "]\n"),
        };
        out.write_all(before.as_bytes())?;
        let mut is_first = true;
        let mut left = count.unwrap_or(u64::MAX);
        for round in 0.. {
            self.go_on()?;
            let found = breaker.round(round);
            let is_last = found.is_empty() || count.is_none();
            for broken in found {
                if left == 0 {
                    break;
                }
                left -= 1;
                if !std::mem::take(&mut is_first) {
                    out.write_all(between.as_bytes())?;
                }
                let breaks_schema = wish.document().map(|subject| {
                    conformant_fixtures::breaks_schema(&self.schemas, subject, &broken.document)
                });
                let line = Line {
                    kind: wish.name().to_owned(),
                    breaks_schema,
                    breaks_rule: broken.rule,
                    pointer: broken.pointer,
                    change: broken.mutation.to_owned(),
                    document: broken.document,
                };
                serde_json::to_writer(&mut out, &line).map_err(io::Error::from)?;
                out.write_all(after.as_bytes())?;
            }
            if is_last || left == 0 {
                break;
            }
        }
        out.write_all(end.as_bytes())?;
        Ok(out.flush()?)
    }

    fn breaker(&self, wish: &ResourceRequest<'a>) -> Result<Breaker<'_>, Failure> {
        let seed = self.args.seed;
        match wish {
            ResourceRequest::Document(subject) => Ok(Breaker::of_subject(
                self.rulebook,
                &self.schemas,
                subject,
                seed,
            )?),
            ResourceRequest::Text(text) => {
                let subject = self.all.iter().find(|s| s.name == text.resource_type());
                let subject = subject.ok_or_else(|| {
                    Failure::Usage(format!(
                        "the rulebook does not describe `{}`",
                        text.resource_type()
                    ))
                })?;
                Ok(text.breaker(self.rulebook, &self.schemas, subject, seed))
            }
        }
    }
}

/// Why a stream was not written completely.
enum Unwritten {
    /// Writing failed.
    Out(io::Error),
    /// Generation failed.
    Reported(Failure),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Out(error)
    }
}

impl<T: Into<Failure>> From<T> for Unwritten {
    fn from(failure: T) -> Self {
        Self::Reported(failure.into())
    }
}

/// All valid documents of a type, named as files of their own would be.
fn stream_entry(file: String, wish: &ResourceRequest<'_>, lines: u64, sha256: String) -> Entry {
    let (folder, ending) = match wish {
        ResourceRequest::Document(subject) => (conformant_fixtures::folder_of(subject), "json"),
        ResourceRequest::Text(text) => (text.name().to_owned(), "txt"),
    };
    Entry {
        name: format!("{folder}/valid-*.{ending}"),
        file,
        lines: Some(lines),
        kind: wish.name().to_owned(),
        valid: true,
        sha256,
        ..Entry::default()
    }
}

/// Writes a file of a staged set and returns its SHA-256.
fn into_file(
    staged: &Staged,
    file: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Unwritten>,
) -> Result<String, Failure> {
    let path = staged.path(file)?;
    let failed = |source: io::Error| {
        Failure::from(SetError::Io {
            path: staged.final_path(file),
            source,
        })
    };
    let (mut out, digest) = Digested::new(File::create(&path).map_err(failed)?);
    write(&mut out).map_err(|unwritten| match unwritten {
        Unwritten::Out(error) => failed(error),
        Unwritten::Reported(failure) => failure,
    })?;
    Ok(text::hex(archives::finished(&digest)))
}

/// A progress bar on standard error, if that is a terminal.
fn progress(documents: u64) -> ProgressBar {
    let bar = ProgressBar::new(documents);
    let template = "{bar:40} {human_pos}/{human_len} documents, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
