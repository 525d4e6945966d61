//! Arguments of the commands that write files for other tools: fixtures, tokens, events, comparisons.

use super::super::completing;
use super::Specs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use conformant_rulebook::Compatibility;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum FixturesCommand {
    /// Write seeded documents: valid ones, and with --invalid ones that each break one rule.
    Generate(GenerateArgs),
    /// Check each fixture of a set: valid ones have no finding, invalid ones exactly the listed findings.
    Verify(VerifyArgs),
    /// Write rulebook, fixtures and scenarios in the formats of other tools.
    Export(ExportArgs),
}

/// Layout of fixtures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FixtureFormat {
    /// One file for each document; one array on standard output.
    Json,
    /// One file for each type and verdict, one document a line.
    Ndjson,
    /// With --world: a recording of all requests.
    Har,
    /// With --world: requests for `serve --seed-data`.
    SeedData,
}

#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// Generate SERVICE/RESOURCE (`[]` for a list page), SERVICE/OPERATION for a request body, events/NAME/VERSION
    /// or an event type; `*` matches any text [default: everything].
    #[arg(long = "kind", value_name = "KIND", add = ArgValueCompleter::new(completing::kinds))]
    pub kinds: Vec<String>,
    /// Generate accounts with related resources, at least --count in all [default: 1000].
    #[arg(long, conflicts_with_all = ["kinds", "invalid"])]
    pub world: bool,
    /// Generate N documents of each type; with --invalid and json, at least N baseline fixtures.
    #[arg(long, value_name = "N", value_parser = super::at_least_one::<u64>)]
    pub count: Option<u64>,
    /// Set the seed; the same seed gives the same bytes.
    #[arg(long, value_name = "N", default_value_t = 0, env = "CONFORMANT_SEED")]
    pub seed: u64,
    /// Also generate documents that each break exactly one rule, and list these rules.
    #[arg(long)]
    pub invalid: bool,
    /// Write to this folder: new, empty, or a set to replace; `-` is standard output.
    #[arg(long, value_name = "DIR", default_value = "-")]
    pub out: PathBuf,
    /// Set the layout [default: ndjson on standard output, json in a folder].
    #[arg(long, value_enum)]
    pub format: Option<FixtureFormat>,
    /// Write with N threads [default: one for each processor].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS", value_parser = super::at_least_one::<usize>)]
    pub jobs: Option<usize>,
    #[command(flatten)]
    pub specs: Specs,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Folder of the set.
    #[arg(value_name = "DIR", default_value = "fixtures")]
    pub folder: PathBuf,
    /// Check valid fixtures of other versions against this one, such as MessageSent/5; once for each version in use.
    #[arg(long, value_name = "EVENT/VERSION")]
    pub against: Vec<String>,
    #[command(flatten)]
    pub specs: Specs,
}

/// Export formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// OpenAPI 3.1: a bundled document of each service, with examples.
    Openapi,
    /// AsyncAPI 3: a bundled document of the events, with examples.
    Asyncapi,
    /// JSON Schema 2020-12: a self-contained file for each representation and request body.
    Jsonschema,
    /// HAR 1.2: every exchange of an offline run, without secrets.
    Har,
    /// Hurl: every scenario of an offline run, for use with `serve`.
    Hurl,
    /// Arazzo 1.0: scenarios of an offline run as workflows, with the OpenAPI documents that they use.
    Arazzo,
    /// Python package: valid and invalid documents with loaders, factories and pydantic models.
    Python,
    /// npm package: valid and invalid documents with loaders, factories and types.
    Typescript,
    /// Crate: valid and invalid documents with loaders, factories and models.
    Rust,
    /// Go module: valid and invalid documents with loaders, factories and models.
    Go,
    /// Removed: use `openapi` or `arazzo`.
    #[value(hide = true)]
    Pact,
    /// Removed: use `arazzo`.
    #[value(hide = true)]
    Postman,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Set the format.
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Write to this folder: new, empty, or an export to replace.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Export only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// Set the seed; the same seed gives the same bytes.
    #[arg(long, value_name = "N", default_value_t = 0, env = "CONFORMANT_SEED")]
    pub seed: u64,
    #[command(flatten)]
    pub specs: Specs,
}

#[derive(Debug, Subcommand)]
pub enum SpecsCommand {
    /// Write all files of the embedded rulebook, for `--specs DIR`.
    Export {
        /// Write to this folder, which must be new or empty.
        #[arg(value_name = "DIR", default_value = "specs")]
        folder: PathBuf,
    },
}

#[derive(Args, Debug)]
pub struct TokenArgs {
    /// Print the text of the QR code instead of the token, and draw the code on a terminal.
    #[arg(long)]
    pub qr: bool,
    /// Draw the QR code into this PNG file.
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Draw the QR code into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Set the identifier of the user [default: a new UUID].
    #[arg(long, value_name = "ID")]
    pub custom_user_id: Option<String>,
    /// Set how long the token is valid; a service refuses more than 15m.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub expires: String,
    /// Read this configuration [default: the nearest conformant.yaml, up to the root of the repository].
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
}

/// Levels by name.
fn levels() -> impl TypedValueParser<Value = Compatibility> {
    let names = PossibleValuesParser::new(Compatibility::ALL.map(Compatibility::word));
    names.map(|name| {
        let level = Compatibility::named(&name.to_ascii_uppercase());
        level.unwrap_or(Compatibility::None)
    })
}

/// Content model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContentArg {
    /// They accept unlisted fields.
    Open,
    /// They reject unlisted fields.
    Closed,
}

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Older version: a representation such as MessageSent/4, a rulebook folder, a git revision such as main or main:specs,
    /// or an OpenAPI document.
    #[arg(required_unless_present = "matrix")]
    pub old: Option<String>,
    /// Newer version, given in the same form.
    #[arg(required_unless_present = "matrix")]
    pub new: Option<String>,
    /// Compare every version of this event with every other, such as `MessageSent`.
    #[arg(long, value_name = "EVENT", conflicts_with_all = ["old", "new", "declare", "fixtures", "sdk", "compat"])]
    pub matrix: Option<String>,
    /// Fail only if the newer version breaks this level of schema registries; repeat it or separate levels by commas.
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', ignore_case = true, value_parser = levels())]
    pub compat: Vec<Compatibility>,
    /// Set whether objects that do not say so accept unlisted fields, for --compat and --matrix [default: as JSON Schema
    /// says, open].
    #[arg(long, value_enum)]
    pub content: Option<ContentArg>,
    #[command(flatten)]
    pub specs: Specs,
    /// Accept the breaking changes that this file lists, each with a reason.
    #[arg(long, value_name = "FILE")]
    pub declare: Option<PathBuf>,
    /// List the fixtures in this folder that a change affects.
    #[arg(long, value_name = "DIR")]
    pub fixtures: Option<PathBuf>,
    /// List the payloads in this folder (JSON, NDJSON, HAR) that were valid and now break.
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Write the comparison: text, json, markdown, changelog, junit or, with --matrix, html, and a path (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    #[command(subcommand)]
    pub command: EventsCommand,
}

/// Subcommands of `events`.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Create the next version of an event from its last one.
    New {
        /// Name of its schema: the folder below events/.
        name: String,
        /// Read and write the rulebook in this folder.
        #[arg(
            long,
            value_name = "DIR",
            default_value = "specs",
            env = "CONFORMANT_SPECS"
        )]
        specs: PathBuf,
    },
    /// Check every version of every event: the level that events/asyncapi.yaml declares, and the lock of released versions.
    Check {
        /// Accept the breaking changes that this file lists, each with a reason.
        #[arg(long, value_name = "FILE")]
        declare: Option<PathBuf>,
        /// Add the versions in use to events/released.lock of the folder that --specs names, if the check passes.
        #[arg(long)]
        release: bool,
        /// Set the output format.
        #[arg(long, value_enum, default_value_t)]
        format: super::ListFormat,
        /// The rulebook.
        #[command(flatten)]
        specs: Specs,
    },
}
