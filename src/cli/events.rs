//! `events new` creates the next version of an event from its last one; `events check` checks the levels of all events.

use super::args::{EventsArgs, EventsCommand, ListFormat, Specs};
use super::{Done, Exit, Failure, diff, load, note, print};
use conformant_base::text;
use conformant_versions::{EventsCheck, NextVersion, Released, next_version};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Digests of released versions, in the rulebook's folder.
const LOCK: &str = "events/released.lock";
/// Schema comment for editors.
const MODELINE: &str =
    "# yaml-language-server: $schema=https://json-schema.org/draft/2020-12/schema\n";

pub(super) fn events(args: &EventsArgs) -> Done {
    match &args.command {
        EventsCommand::New { name, specs } => begin(name, specs),
        EventsCommand::Check {
            declare,
            release,
            format,
            specs,
        } => check(declare.as_deref(), *release, *format, specs),
    }
}

fn check(declare: Option<&Path>, release: bool, format: ListFormat, specs: &Specs) -> Done {
    let rulebook = load(specs)?;
    let lock = conformant_rulebook::companion(specs.specs.as_deref(), LOCK)
        .map_err(|e| Failure::Usage(format!("failed to read {LOCK}: {e}")))?;
    let before = Released::parse(&lock).map_err(|e| Failure::Usage(format!("{LOCK}: {e}")))?;
    let mut released = before.clone();
    let folder = specs.specs.as_deref();
    if release && folder.is_none() {
        return Err(Failure::Usage(
            "--release writes into a rulebook: name its folder with --specs".to_owned(),
        ));
    }
    if folder.is_none() {
        note("the events of the embedded rulebook are checked; --specs DIR names another one");
    }
    if release {
        released = released.with_current(&rulebook);
    }
    let declared = diff::declared(declare)?;
    let documents = |kind: &str| diff::generated(&rulebook, kind);
    let checked = EventsCheck::new(&rulebook, &released, &declared, &documents);
    diff::contradicted(&checked.contradictions)?;
    print(&match format {
        ListFormat::Text => checked.text(),
        ListFormat::Json => checked.json(),
    });
    if let Some(lock) = folder.map(|folder| folder.join(LOCK))
        && release
        && !checked.fails()
    {
        std::fs::write(&lock, released.lock()).map_err(Failure::unwritten(&lock))?;
        let before = before.lock();
        let written = released.lock();
        let new = written
            .lines()
            .filter(|line| !before.lines().any(|l| l == *line));
        let new: Vec<&str> = new.filter_map(|line| line.split(' ').next()).collect();
        let lock = lock.display();
        note(&match new.as_slice() {
            [] => format!("{lock} already lists every version: nothing was released"),
            new => format!("released {}, in {lock}", new.join(", ")),
        });
    }
    Ok(match (checked.events, checked.fails()) {
        (0, _) => Exit::NothingJudged,
        (_, true) => Exit::Failed,
        (_, false) => Exit::Conformant,
    })
}

fn begin(name: &str, specs: &Path) -> Done {
    if !specs.is_dir() {
        let shown = specs.display();
        return Err(Failure::Usage(format!(
            "{shown} is missing: expected a folder with a rulebook; `conformant specs export {shown}` writes the embedded one"
        )));
    }
    let rulebook = conformant_judge::load::from_dir(specs).map_err(Failure::Problems)?;
    let known = conformant_versions::event_named(&rulebook, name);
    let name = known.map_err(|e| Failure::Usage(e.to_string()))?;
    let next = next_version(&rulebook, &name).expect("a known event has a version");
    refuse_unedited(specs, &next)?;
    copy(specs, &next)?;
    let shown = specs.display();
    print(&format!(
        "{shown}/{} is a copy of {}. Edit it, add it to {shown}/events/asyncapi.yaml, and check what breaks:\n  \
         conformant diff --specs {} {} {}\n",
        next.to,
        next.from,
        text::shell_quoted(&shown.to_string()),
        kind(&next.from),
        kind(&next.to),
    ));
    Ok(Exit::Conformant)
}

/// Refuses to copy a version that is itself still a copy of the one before it.
fn refuse_unedited(specs: &Path, next: &NextVersion) -> Result<(), Failure> {
    let Some(before) = &next.before else {
        return Ok(());
    };
    let read = |path: &str| super::read_file(&specs.join(path));
    let (last, before_last) = (read(&next.from)?, read(before)?);
    if without_modeline(&last) != without_modeline(&before_last) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} is still equal to {}: edit {} before the next version",
        kind(&next.from),
        kind(before),
        specs.join(&next.from).display()
    )))
}

fn without_modeline(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MODELINE.as_bytes()).unwrap_or(bytes)
}

/// Writes the new file; an existing one is never overwritten.
fn copy(specs: &Path, next: &NextVersion) -> Result<(), Failure> {
    let bytes = super::read_file(&specs.join(&next.from))?;
    let to = specs.join(&next.to);
    let file = OpenOptions::new().write(true).create_new(true).open(&to);
    file.and_then(|mut file| {
        // Editors validate against the schema that a comment names.
        if !bytes.starts_with(MODELINE.as_bytes()) {
            file.write_all(MODELINE.as_bytes())?;
        }
        file.write_all(&bytes)
    })
    .map_err(Failure::unwritten(&to))
}

/// `events/MessageSent/5.yaml` -> `MessageSent/5`.
fn kind(path: &str) -> &str {
    let path = path.strip_prefix("events/").unwrap_or(path);
    path.strip_suffix(".yaml").unwrap_or(path)
}
