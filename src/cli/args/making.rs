//! The arguments of commands that write what others use: fixtures, tokens, events, comparisons of rulebooks.

use super::super::completing;
use super::Specs;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// `conformant fixtures`.
#[derive(Debug, Subcommand)]
pub enum FixturesCommand {
    /// Write seeded instances: flawless ones, and with --invalid ones that each break one rule.
    Generate(GenerateArgs),
    /// Prove every fixture of a set: valid ones bring no finding, invalid ones exactly theirs.
    Verify(VerifyArgs),
    /// Write rulebook, fixtures and stories in the formats of other tools.
    Export(ExportArgs),
}

/// How fixtures are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FixtureFormat {
    /// A file for each document; one array on standard output.
    Json,
    /// A file for each kind and verdict, one document a line.
    Ndjson,
    /// With --world: a recording of everything that made and read it.
    Har,
    /// With --world: what makes it again, for `serve --seed-data`.
    SeedData,
}

/// `conformant fixtures generate`.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// What to make: SERVICE/RESOURCE (`[]` for a list page), SERVICE/OPERATION for a request body,
    /// events/NAME/VERSION or an event type; `*` stands for any text [default: everything].
    #[arg(long = "kind", value_name = "KIND", add = ArgValueCompleter::new(completing::kinds))]
    pub kinds: Vec<String>,
    /// In place of documents by themselves: accounts whose resources belong together, --count resources in all at
    /// least [default: 1000], valid under every law.
    #[arg(long, conflicts_with_all = ["kinds", "invalid"])]
    pub world: bool,
    /// How many of each kind; with --invalid and json, how many flawless twins at least.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// The same seed gives the same bytes.
    #[arg(long, value_name = "N", default_value_t = 0, env = "CONFORMANT_SEED")]
    pub seed: u64,
    /// Also documents that each break exactly one rule, and say which.
    #[arg(long)]
    pub invalid: bool,
    /// Folder to write to: new, empty, or a set that is replaced; `-` is standard output.
    #[arg(long, value_name = "DIR", default_value = "-")]
    pub out: PathBuf,
    /// How they are laid out [default: ndjson on standard output, json in a folder].
    #[arg(long, value_enum)]
    pub format: Option<FixtureFormat>,
    /// Threads that write [default: one for each processor].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant fixtures verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The set.
    #[arg(value_name = "DIR", default_value = "fixtures")]
    pub folder: PathBuf,
    /// In place of that: which flawless fixtures of an event's other versions fail against this one,
    /// such as MessageSent/5; given once for each version in use.
    #[arg(long, value_name = "EVENT/VERSION")]
    pub against: Vec<String>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// What an export is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// OpenAPI 3.1, a bundled document of each service, with examples.
    Openapi,
    /// AsyncAPI 3, a bundled document of the events, with examples.
    Asyncapi,
    /// JSON Schema 2020-12, a self-contained file of each representation and request body.
    Jsonschema,
    /// HAR 1.2: every exchange of an offline run, without secrets.
    Har,
    /// Hurl: every story of an offline run, which runs against `serve`.
    Hurl,
    /// A Python package: documents, invalid ones too, with loaders, factories and pydantic models.
    Python,
    /// An npm package: documents, invalid ones too, with loaders, factories and types.
    Typescript,
    /// A crate: documents, invalid ones too, with loaders, factories and models.
    Rust,
    /// A Go module: documents, invalid ones too, with loaders, factories and models.
    Go,
    /// Removed: use `openapi`.
    #[value(hide = true)]
    Pact,
    /// Removed: use `openapi`.
    #[value(hide = true)]
    Postman,
}

/// `conformant fixtures export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// What to write.
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Folder to write to: new, empty, or an export that is replaced.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// The same seed gives the same bytes.
    #[arg(long, value_name = "N", default_value_t = 0, env = "CONFORMANT_SEED")]
    pub seed: u64,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant token`.
#[derive(Args, Debug)]
pub struct TokenArgs {
    /// Print the text of the QR code in place of the token, and draw the code on a terminal.
    #[arg(long)]
    pub qr: bool,
    /// Draw the QR code into this file.
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Draw the QR code into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Identifier of the user; a fresh UUID when left out.
    #[arg(long, value_name = "ID")]
    pub custom_user_id: Option<String>,
    /// How long the token is valid; more than 15m is refused by a service.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub expires: String,
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
}

/// `conformant diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The older one: a folder, a representation such as MessageSent/4, or a git revision such as
    /// main or main:specs.
    pub old: String,
    /// The newer one, of the same sort.
    pub new: String,
    /// The rulebook that representations are taken from, and what rests on the documents.
    #[command(flatten)]
    pub specs: Specs,
    /// Breaking changes that are meant, each with its reason.
    #[arg(long, value_name = "FILE")]
    pub declare: Option<PathBuf>,
    /// List the fixtures in this folder that a change touches.
    #[arg(long, value_name = "DIR")]
    pub fixtures: Option<PathBuf>,
    /// List what breaks of this folder: payloads that were right until now, in JSON files, NDJSON and recordings (HAR).
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Write the comparison: text, json, markdown, changelog or junit, and where (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
}

/// `conformant events`.
#[derive(Args, Debug)]
pub struct EventsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: EventsCommand,
}

/// What can be done with events.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Begin the next version of an event from its last one.
    New {
        /// Its schema name: the folder under events/.
        name: String,
        /// The rulebook's folder.
        #[arg(
            long,
            value_name = "DIR",
            default_value = "specs",
            env = "CONFORMANT_SPECS"
        )]
        specs: PathBuf,
    },
}
