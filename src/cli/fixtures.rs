//! `fixtures`: proves sets and exports; `generate` has a file of its own.
//!
//! What a fixture is, and how it is proved, is `crate::fixtures`.

use super::args::{ExportArgs, ExportFormat, FixturesCommand, VerifyArgs};
use super::{Done, Exit, Failure, generate, load, note, say};
use crate::fixtures::export::{self, ExportError, Format};
use crate::fixtures::{self, Entry, PlanError, Prover, SetError};

pub(super) fn fixtures(command: &FixturesCommand) -> Done {
    match command {
        FixturesCommand::Generate(args) => generate::generate(args),
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
    let prover = Prover::new(&rulebook, &args.folder, &manifest);
    let mut failed = 0;
    for entry in &manifest.fixtures {
        if let Err(why) = prover.prove(entry) {
            failed += 1;
            say(&format!(
                "{}: {}\n",
                crate::text::escape(&entry.place()),
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
    let count: u64 = manifest.fixtures.iter().map(|e| e.lines.unwrap_or(1)).sum();
    say(&format!("{count} fixtures, {failed} failed\n"));
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
    let prover = Prover::new(&rulebook, &args.folder, &manifest);
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
            .map_err(|why| Failure::Trouble(format!("failed to judge {}: {why}", entry.name)))?;
        failed += usize::from(!found.is_empty());
        for (rule, pointer) in found {
            let line = format!("{}: {rule} at `{pointer}`", entry.place());
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
        ExportFormat::Postman => Format::Postman,
        ExportFormat::Har => Format::Har,
        ExportFormat::Hurl => Format::Hurl,
        ExportFormat::Pact => Format::Pact,
        ExportFormat::Python => Format::Python,
        ExportFormat::Typescript => Format::TypeScript,
        ExportFormat::Rust => Format::Rust,
        ExportFormat::Go => Format::Go,
    };
    export::check_replaceable(&args.folder)?;
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
