//! `fixtures`: verifies sets and writes exports; see `generate` for generation.
//!
//! Fixtures and their verification are implemented in `conformant_fixtures`.

use super::args::{ExportArgs, ExportFormat, FixturesCommand, VerifyArgs};
use super::{Done, Exit, Failure, generate, load, note, of_reference, print};
use conformant_fixtures::export::{self, ExportError, Format};
use conformant_fixtures::{Entry, PlanError, SetError, Verifier};

pub(super) fn fixtures(command: &FixturesCommand) -> Done {
    match command {
        FixturesCommand::Generate(args) => generate::generate(args),
        FixturesCommand::Verify(args) if args.against.is_empty() => verify(args),
        FixturesCommand::Verify(args) => verify_against(args),
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
    let manifest = conformant_fixtures::read(&args.folder)?;
    if manifest.fixtures.is_empty() {
        note(&format!(
            "{}: nothing was verified, because the manifest lists no fixture",
            args.folder.display()
        ));
        return Ok(Exit::NothingJudged);
    }
    let verifier = Verifier::new(&rulebook, &args.folder, &manifest);
    let mut failed = 0;
    for entry in &manifest.fixtures {
        if let Err(why) = verifier.verify(entry) {
            failed += 1;
            print(&format!(
                "{}: {}\n",
                conformant_base::text::escape(&entry.place()),
                conformant_base::text::escape(&why.to_string())
            ));
        }
    }
    for file in verifier.unlisted(&manifest) {
        failed += 1;
        print(&format!(
            "{}: not listed in the manifest\n",
            conformant_base::text::escape(&file)
        ));
    }
    if manifest.rulebook != rulebook.digest() {
        note(
            "the set was generated from another version of the rulebook; it was verified against this one",
        );
    }
    let count: u64 = manifest.fixtures.iter().map(|e| e.lines.unwrap_or(1)).sum();
    print(&format!("{count} fixtures, {failed} failed\n"));
    Ok(Exit::failed_if(failed > 0))
}

/// Judges valid fixtures of other versions of an event against each of the versions in use.
fn verify_against(args: &VerifyArgs) -> Done {
    let rulebook = load(&args.specs)?;
    // Either all requested versions can be judged, or none is.
    let mut kinds = Vec::new();
    for version in &args.against {
        let kind = conformant_versions::kind_named(&rulebook, version)
            .map_err(|e| Failure::Usage(format!("--against {version}: {e}")))?;
        let event = kind.strip_prefix("events/").and_then(|k| k.split_once('/'));
        let Some((event, _)) = event else {
            return Err(Failure::Usage(format!(
                "--against {version}: only events have versions; name one as MessageSent/4"
            )));
        };
        let family = format!("events/{event}/");
        kinds.push((kind, family));
    }
    let manifest = conformant_fixtures::read(&args.folder)?;
    let verifier = Verifier::new(&rulebook, &args.folder, &manifest);
    let (mut judged, mut failed) = (0, 0);
    for (kind, family) in &kinds {
        let is_other = |e: &&Entry| e.valid && e.kind.starts_with(family) && e.kind != *kind;
        let others: Vec<&Entry> = manifest.fixtures.iter().filter(is_other).collect();
        if others.is_empty() {
            note(&format!(
                "{}: nothing was judged against {kind}, because there are no fixtures of other versions",
                args.folder.display()
            ));
        }
        let mut failed_here = 0;
        for entry in &others {
            let found = verifier.found_as(entry, kind).map_err(|why| {
                Failure::Trouble(format!("failed to judge {}: {why}", entry.name))
            })?;
            failed_here += usize::from(!found.is_empty());
            for (rule, pointer) in found {
                let line = format!("{}: {rule} at `{pointer}`", entry.place());
                print(&format!("{}\n", conformant_base::text::escape(&line)));
            }
        }
        if !others.is_empty() {
            print(&format!(
                "{} fixtures of other versions, {failed_here} fail against {kind}\n",
                others.len()
            ));
        }
        judged += others.len();
        failed += failed_here;
    }
    Ok(match (judged, failed) {
        (0, _) => Exit::NothingJudged,
        (_, 0) => Exit::Conformant,
        (_, _) => Exit::Failed,
    })
}

/// The error for an export format of an earlier version.
fn removed(format: &str) -> Failure {
    Failure::Usage(format!(
        "the export format `{format}` was removed; use `openapi` or `arazzo`"
    ))
}

fn export(args: &ExportArgs) -> Done {
    let rulebook = load(&args.specs)?;
    for service in &args.services {
        if !rulebook.services.contains_key(service) {
            let known: Vec<&str> = rulebook.services.keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(Failure::Usage(format!(
                "unknown --service `{service}`: expected {known}"
            )));
        }
    }
    let is_recorded = matches!(
        args.format,
        ExportFormat::Har | ExportFormat::Hurl | ExportFormat::Arazzo
    );
    let services = if is_recorded && args.specs.specs.is_some() {
        of_reference(&rulebook, &args.services, "a recording")?
    } else {
        args.services.clone()
    };
    let scope = export::Scope {
        rulebook: &rulebook,
        specs: args.specs.specs.as_deref(),
        services: &services,
        seed: args.seed,
    };
    let format = match args.format {
        ExportFormat::Openapi => Format::OpenApi,
        ExportFormat::Asyncapi => Format::AsyncApi,
        ExportFormat::Jsonschema => Format::JsonSchema,
        ExportFormat::Har => Format::Har,
        ExportFormat::Hurl => Format::Hurl,
        ExportFormat::Arazzo => Format::Arazzo,
        ExportFormat::Python => Format::Python,
        ExportFormat::Typescript => Format::TypeScript,
        ExportFormat::Rust => Format::Rust,
        ExportFormat::Go => Format::Go,
        ExportFormat::Pact => return Err(removed("pact")),
        ExportFormat::Postman => return Err(removed("postman")),
    };
    export::check_replaceable(&args.folder)?;
    let made = export::export(scope, format)?;
    if made.files.is_empty() {
        let name = format.name();
        return Err(Failure::Usage(format!(
            "{name} cannot express anything of these services; omit --service"
        )));
    }
    made.write(&args.folder)?;
    note(&format!(
        "{}: {} files",
        args.folder.display(),
        made.files.len()
    ));
    for (why, scenarios) in &made.left_out {
        let count = conformant_base::text::count(scenarios.len(), "scenario");
        note(&format!("left out: {count} ({why})"));
    }
    Ok(Exit::Conformant)
}
