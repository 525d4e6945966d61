//! `diff`: compares two rulebooks, representations, OpenAPI documents or document revisions, and reports what breaks consumers or producers.

use super::args::{ContentArg, DiffArgs, Specs};
use super::broken::{Bump, StoredPayloads, is_named, stored_payloads};
use super::{Done, Exit, Failure, import, load, note, output, print, revision};
use conformant_base::json::{self, Limits};
use conformant_engine::plan::{self, Planned};
use conformant_openapi::Surface;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::trace::{self, TraceProblem, Unit};
use conformant_rulebook::{Rulebook, Service};
use conformant_versions::{
    CompareError, Comparison, Content, Declaration, DeclaredFile, Format, VersionMatrix,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Present in a rulebook's folder, absent from a folder of documents.
const RULEBOOK_FILE: &str = "common.yaml";
const DOCUMENTS_LOCK: &str = "documents.lock";
/// Number of generated documents of each version.
const SAMPLES: u64 = 40;

enum Side {
    Rulebook(Box<Rulebook>),
    Documents(Vec<Unit>),
    OpenApi(Surface),
    Kind,
}

impl Side {
    fn word(&self) -> &'static str {
        match self {
            Self::Rulebook(_) => "a rulebook",
            Self::Documents(_) => "a folder of documents",
            Self::OpenApi(_) => "an OpenAPI document",
            Self::Kind => "a representation",
        }
    }
}

pub(super) fn diff(args: &DiffArgs) -> Done {
    let reports = destinations(&args.reports)?;
    let current = load(&args.specs)?;
    if let Some(event) = &args.matrix {
        return matrix(&current, event, content(args), &reports);
    }
    let (Some(old_name), Some(new_name)) = (&args.old, &args.new) else {
        return Err(Failure::Usage(
            "expected OLD and NEW, or --matrix EVENT".to_owned(),
        ));
    };
    let (old, new) = (side(old_name, &current)?, side(new_name, &current)?);
    let mut comparison = match (&old, &new) {
        (Side::Kind, Side::Kind) => {
            let compared = conformant_versions::kinds(&current, old_name, new_name);
            let mut comparison = compared.map_err(|e| Failure::Usage(e.to_string()))?;
            comparison.scenarios = touched(&comparison, &current);
            comparison
        }
        (Side::Rulebook(old), Side::Rulebook(new)) => {
            let mut comparison = conformant_versions::rulebooks((old_name, old), (new_name, new));
            comparison.scenarios = touched(&comparison, new);
            comparison
        }
        (Side::Documents(old), Side::Documents(new)) => {
            let classes = classes(&args.specs)?;
            conformant_versions::documents((old_name, old), (new_name, new), &classes)
        }
        (Side::OpenApi(old), Side::OpenApi(new)) => {
            conformant_versions::openapi((old_name, old), (new_name, new))
        }
        (Side::Kind | Side::Rulebook(_) | Side::Documents(_) | Side::OpenApi(_), _) => {
            let (a, b) = (old.word(), new.word());
            return Err(Failure::Usage(format!(
                "{old_name} is {a} and {new_name} is {b}: give two of the same form"
            )));
        }
    };
    let declarations = declared(args.declare.as_deref())?;
    comparison.declare(&declarations);
    if let Some(folder) = &args.fixtures {
        comparison.fixtures = fixtures(&comparison, folder)?;
    }
    if let Some(folder) = &args.sdk {
        let bump = match (&old, &new) {
            (Side::Kind, Side::Kind) => Bump::new(&comparison, &current, &current),
            (Side::Rulebook(old), Side::Rulebook(new)) => Bump::new(&comparison, old, new),
            (Side::Kind | Side::Rulebook(_) | Side::Documents(_) | Side::OpenApi(_), _) => {
                let why = "--sdk needs rulebooks or representations: documents do not say which payload is of which type";
                return Err(Failure::Usage(why.to_owned()));
            }
        };
        let payloads = bump.payloads(folder)?;
        note(&payloads.summary(folder));
        comparison.broken = payloads.broken;
    }
    if !args.compat.is_empty() {
        if !matches!((&old, &new), (Side::Kind, Side::Kind)) {
            let why = "--compat needs two representations, such as MessageSent/4 MessageSent/5";
            return Err(Failure::Usage(why.to_owned()));
        }
        judge_levels(&mut comparison, &current, args, &declarations)?;
    }
    write(&reports, |format| comparison.render(format))?;
    let undeclared = comparison.undeclared().count();
    if undeclared > 0 && args.compat.is_empty() {
        note(&format!(
            "undeclared breaking changes: {undeclared}; accept them in `--declare FILE`, by id and with a reason"
        ));
    }
    Ok(Exit::failed_if(comparison.fails()))
}

fn content(args: &DiffArgs) -> Option<Content> {
    args.content.map(|content| match content {
        ContentArg::Open => Content::Open,
        ContentArg::Closed => Content::Closed,
    })
}

/// Compares all versions of an event.
fn matrix(rulebook: &Rulebook, event: &str, content: Option<Content>, reports: &[To]) -> Done {
    let documents = |kind: &str| generated(rulebook, kind);
    let matrix = VersionMatrix::new(rulebook, event, content, &documents);
    let matrix = matrix.map_err(|e| Failure::Usage(e.to_string()))?;
    contradicted(&matrix.contradictions)?;
    let page = || {
        let (numbers, reasons) = (matrix.numbers(), matrix.reasons());
        conformant_report::versions_page(&matrix.event, &numbers, &matrix.readers(), &reasons)
    };
    write(reports, |format| {
        (format == Format::Html)
            .then(page)
            .or_else(|| matrix.render(format))
    })?;
    Ok(Exit::Conformant)
}

/// Judges the compatibility levels of two representations.
fn judge_levels(
    comparison: &mut Comparison,
    rulebook: &Rulebook,
    args: &DiffArgs,
    declarations: &[Declaration],
) -> Result<(), Failure> {
    let documents = |kind: &str| generated(rulebook, kind);
    let (old, new) = (comparison.old.clone(), comparison.new.clone());
    let between = conformant_versions::relations_between(
        rulebook,
        (&old, &new),
        &args.compat,
        (content(args), &documents),
    );
    let relations = between.map_err(|e| Failure::Usage(e.to_string()))?;
    for relation in &relations {
        contradicted(&relation.contradictions)?;
    }
    comparison.judge_levels(&args.compat, &relations, declarations);
    Ok(())
}

/// Generated documents of a representation, to check a comparison with.
pub(super) fn generated(rulebook: &Rulebook, kind: &str) -> Vec<Value> {
    conformant_fixtures::samples(rulebook, kind, SAMPLES)
}

/// Fails if generated documents contradict a comparison.
pub(super) fn contradicted(contradictions: &[String]) -> Result<(), Failure> {
    match contradictions.first() {
        Some(first) => Err(Failure::Trouble(format!(
            "the comparison of versions is wrong, please report it: {first}"
        ))),
        None => Ok(()),
    }
}

/// Resolves an argument: a folder, a representation, or a folder in a git revision.
fn side(text: &str, current: &Rulebook) -> Result<Side, Failure> {
    let path = Path::new(text);
    if path.is_dir() {
        return folder(path, current);
    }
    if path.is_file() {
        let surface = import::read_openapi(path, conformant_openapi::surface)?;
        import::warn(&surface.problems);
        return Ok(Side::OpenApi(surface));
    }
    match conformant_versions::kind_named(current, text) {
        Ok(_) => Ok(Side::Kind),
        Err(CompareError::NoSuchKind { help, .. }) => match revision::check_out(text) {
            Ok(dir) => folder(dir.path(), current),
            Err(Failure::Usage(_)) if has_other_version(current, text) => {
                Err(Failure::Usage(format!(
                    "{text}: unknown version of a known representation; name a rulebook that has it with --specs DIR{help}"
                )))
            }
            Err(Failure::Usage(_)) => Err(Failure::Usage(absent(text, &help))),
            Err(other) => Err(other),
        },
    }
}

/// The error for an argument that names nothing.
fn absent(text: &str, help: &str) -> String {
    if let Some((revision, folder)) = text.split_once(':') {
        let why = match revision::is_in_repository() {
            true => format!("the repository has no revision {revision} with a folder {folder}"),
            false => "the current folder is not in a git repository".to_owned(),
        };
        return format!("{text} names no folder in git: {why}");
    }
    let extension = Path::new(text).extension().unwrap_or_default();
    if ["yaml", "yml", "json"]
        .iter()
        .any(|file| extension == *file)
        || text.ends_with('/')
    {
        return format!("{text}: no such file or folder");
    }
    let what = "there is no such file or folder, and it names neither a representation nor a git revision with a rulebook";
    format!("{text}: {what}{help}")
}

/// Whether the rulebook has a representation of that name, `NAME/VERSION`, in another version.
fn has_other_version(rulebook: &Rulebook, text: &str) -> bool {
    let Some((name, version)) = text.rsplit_once('/') else {
        return false;
    };
    let is_version = version.parse::<u32>().is_ok();
    let of_name = format!("events/{}/", name.strip_prefix("events/").unwrap_or(name));
    is_version && rulebook.kinds.keys().any(|kind| kind.starts_with(&of_name))
}

fn folder(path: &Path, current: &Rulebook) -> Result<Side, Failure> {
    if path.join(RULEBOOK_FILE).is_file() {
        let rulebook = conformant_judge::load::from_dir(path).map_err(Failure::Problems)?;
        return Ok(Side::Rulebook(Box::new(rulebook)));
    }
    trace::revision(path, &current.index)
        .map(Side::Documents)
        .map_err(|problems| {
            let problem_lines = lines(&problems);
            Failure::Usage(format!(
                "{}: found neither {RULEBOOK_FILE} nor documents: {problem_lines}",
                path.display()
            ))
        })
}

fn lines(problems: &[TraceProblem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The classification of each unit of the documents.
fn classes(specs: &Specs) -> Result<conformant_versions::Classes, Failure> {
    let lock = conformant_rulebook::companion(specs.specs.as_deref(), DOCUMENTS_LOCK)
        .map_err(|e| Failure::Usage(format!("failed to read {DOCUMENTS_LOCK}: {e}")))?;
    trace::classes(&lock).map_err(|problems| Failure::Usage(lines(&problems)))
}

pub(super) fn rulebook_of(revision: &str) -> Result<Rulebook, Failure> {
    let dir = revision::check_out(revision)?;
    conformant_judge::load::from_dir(dir.path()).map_err(Failure::Problems)
}

/// Scenarios that changed since an older rulebook, or whose rules changed.
pub(super) fn scenarios_since(old: &Rulebook, new: &Rulebook) -> Vec<String> {
    let comparison = conformant_versions::rulebooks(("", old), ("", new));
    let mut ids = touched(&comparison, new);
    let (before, after) = (plan::all(old), plan::all(new));
    ids.extend(conformant_versions::reworded_scenarios(
        (old, parts(&before)),
        (new, parts(&after)),
    ));
    ids.sort();
    ids.dedup();
    ids
}

fn touched(comparison: &Comparison, rulebook: &Rulebook) -> Vec<String> {
    let planned = plan::all(rulebook);
    conformant_versions::affected_scenarios(&comparison.changes, rulebook, parts(&planned))
}

fn parts<'a>(planned: &'a [Planned<'a>]) -> impl Iterator<Item = (&'a Service, &'a Scenario)> {
    planned.iter().map(|p| (p.service, &p.scenario))
}

/// The changes that a file accepts; none without a file.
pub(super) fn declared(path: Option<&Path>) -> Result<Vec<Declaration>, Failure> {
    let file: Option<DeclaredFile> = path.map(super::parse_file).transpose()?;
    Ok(file.map_or_else(Vec::new, |file| file.changes))
}

/// Fixtures in a folder that a change affects. A fixture is stored under the name of its representation:
/// `events/MessageSent/4/….json`, or a line of `….ndjson`.
fn fixtures(comparison: &Comparison, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for file in stored_payloads(folder, "fixtures", &["json", "ndjson", "jsonl"]) {
        let StoredPayloads {
            inside,
            ending,
            bytes,
        } = file?;
        if ending != "json" {
            let lines = bytes.split(|b| *b == b'\n').enumerate();
            let touched = lines.filter(|(_, line)| touches(comparison, &inside, line));
            found.extend(touched.map(|(n, _)| format!("{inside}:{}", n + 1)));
        } else if touches(comparison, &inside, &bytes) {
            found.push(inside);
        }
    }
    Ok(found)
}

fn touches(comparison: &Comparison, path: &str, bytes: &[u8]) -> bool {
    let kinds = comparison
        .kinds()
        .into_iter()
        .filter(|kind| is_named(path, kind));
    let mut kinds = kinds.peekable();
    if kinds.peek().is_none() {
        return false;
    }
    let Ok(parsed) = json::parse(bytes, Limits::default()) else {
        return false;
    };
    let shows = |kind| {
        comparison
            .changes
            .iter()
            .any(|change| conformant_versions::affected_payload(change, kind, &parsed.value))
    };
    kinds.any(shows)
}

/// Format and path of a comparison; no path for standard output.
pub(super) type To = (Format, Option<PathBuf>);

/// Reads `FORMAT=PATH`; the default is text on standard output.
pub(super) fn destinations(given: &[String]) -> Result<Vec<To>, Failure> {
    if given.is_empty() {
        return Ok(vec![(Format::Text, None)]);
    }
    let read = |text: &String| {
        let (name, path) = text.split_once('=').filter(|(_, path)| !path.is_empty())?;
        Some((
            Format::named(name)?,
            (path != "-").then(|| PathBuf::from(path)),
        ))
    };
    given
        .iter()
        .map(|text| {
            let wrong = || Failure::Usage(format!("invalid --report `{text}`: expected text, json, markdown, html, changelog or junit and a path, such as json=diff.json (`-` is standard output)"));
            read(text).ok_or_else(wrong)
        })
        .collect()
}

pub(super) fn write(
    reports: &[To],
    render: impl Fn(Format) -> Option<String>,
) -> Result<(), Failure> {
    for (format, path) in reports {
        let text = render(*format).ok_or_else(|| {
            Failure::Usage(
                "this format of --report is not available here: use text, json or markdown"
                    .to_owned(),
            )
        })?;
        match path {
            None => print(&text),
            Some(path) => {
                output::write_file(path, &text).map_err(Failure::unwritten(path))?;
            }
        }
    }
    Ok(())
}
