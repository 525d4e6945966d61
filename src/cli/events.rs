//! `events new`: creates the next version of an event from its last one.

use super::args::{EventsArgs, EventsCommand};
use super::{Done, Exit, Failure, print};
use conformant_base::text::did_you_mean;
use conformant_rulebook::Rulebook;
use conformant_versions::{NextVersion, next_version};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Schema comment for editors.
const MODELINE: &str =
    "# yaml-language-server: $schema=https://json-schema.org/draft/2020-12/schema\n";

pub(super) fn events(args: &EventsArgs) -> Done {
    match &args.command {
        EventsCommand::New { name, specs } => begin(name, specs),
    }
}

fn begin(name: &str, specs: &Path) -> Done {
    let rulebook = conformant_judge::load::from_dir(specs).map_err(Failure::Problems)?;
    let next = next_version(&rulebook, name).ok_or_else(|| unknown(&rulebook, name))?;
    copy(specs, &next)?;
    print(&format!(
        "{} is a copy of {}. Edit it, add it to events/asyncapi.yaml, and check what breaks:\n  \
         conformant diff --specs {} {} {}\n",
        next.to,
        next.from,
        specs.display(),
        kind(&next.from),
        kind(&next.to),
    ));
    Ok(Exit::Conformant)
}

/// Writes the new file; an existing one is never overwritten.
fn copy(specs: &Path, next: &NextVersion) -> Result<(), Failure> {
    let trouble = |path: &str, e: &std::io::Error| {
        Failure::Trouble(format!(
            "failed to write {}: {e}",
            specs.join(path).display()
        ))
    };
    let bytes = super::read_file(&specs.join(&next.from))?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(specs.join(&next.to));
    file.and_then(|mut file| {
        // Editors validate against the schema that a comment names.
        if !bytes.starts_with(MODELINE.as_bytes()) {
            file.write_all(MODELINE.as_bytes())?;
        }
        file.write_all(&bytes)
    })
    .map_err(|e| trouble(&next.to, &e))
}

fn unknown(rulebook: &Rulebook, name: &str) -> Failure {
    let known: Vec<&str> = rulebook
        .kinds
        .keys()
        .filter_map(|kind| {
            kind.strip_prefix("events/")?
                .split_once('/')
                .map(|(name, _)| name)
        })
        .collect();
    let help = did_you_mean(name, &known).map_or_else(
        || format!("expected {}", known.join(", ")),
        |near| format!("did you mean {near}?"),
    );
    Failure::Usage(format!("unknown event `{name}`; {help}"))
}

/// `events/MessageSent/5.yaml` -> `MessageSent/5`.
fn kind(path: &str) -> &str {
    let path = path.strip_prefix("events/").unwrap_or(path);
    path.strip_suffix(".yaml").unwrap_or(path)
}
