//! The arguments of every command (the public surface: change it only with a note in CHANGELOG).

use super::completing;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// Offline conformance harness and fixture generator.
///
/// With no target, `conformant run` judges its own reference implementation: nothing to install,
/// nothing to start.
#[derive(Debug, Parser)]
#[command(name = "conformant", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the scenarios against targets, or against the reference, and judge what they show.
    Run(RunArgs),
    /// Begin: write a configuration, stubs of hooks and a CI file.
    Init(InitArgs),
    /// See whether a run could judge the configured targets, and what it would leave out.
    Doctor(DoctorArgs),
    /// Accept a run's failures for a while, so that only new ones fail.
    Baseline(BaselineArgs),
    /// Serve the reference for client teams, with faults and variants if wanted.
    Serve(ServeArgs),
    /// Send random sequences of requests, judge what comes back, and show what was found as stories.
    Explore(ExploreArgs),
    /// Write a finding of a stored run as the chain of requests that leads to it.
    Reproduce(super::reproduce::ReproduceArgs),
    /// Prove the rulebook: every fault is caught by the rules it should be, every variant passes.
    Selftest(SelftestArgs),
    /// Judge payload files offline.
    Check(CheckArgs),
    /// Pass traffic on to targets, and judge it on its way.
    Proxy(ProxyArgs),
    /// Generate fixtures, or prove that a set of them is what it says.
    #[command(subcommand)]
    Fixtures(FixturesCommand),
    /// Build a registration token or QR code as the application would.
    Token(TokenArgs),
    /// Explain a rule, open point, fault, variant, operation, scenario, hook, kind, event, configuration
    /// key or cause.
    Explain(ExplainArgs),
    /// List what there is.
    List(ListArgs),
    /// Serve the book to this machine, from the program itself.
    Docs(DocsArgs),
    /// Check that every sentence of the documents is ruled, open, a definition or narrative.
    Trace(TraceArgs),
    /// Compare two rulebooks, two representations or two revisions of the documents: each change,
    /// and whom it breaks.
    Diff(DiffArgs),
    /// Compare two stored runs side by side.
    Compare(CompareArgs),
    /// Judge a stored run by the present rulebook and waivers, as far as its record tells.
    Judge(JudgeArgs),
    /// Merge the records of a run's partitions into one.
    Merge(MergeArgs),
    /// Show the runs that `run --history DIR` kept: the trend, when a rule broke first, what is flaky.
    History(HistoryArgs),
    /// Begin the next version of an event.
    Events(EventsArgs),
    /// Print the JSON Schema of a file format, for editors.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command.
    Man(ManArgs),
}

/// Where the rulebook comes from.
#[derive(Args, Clone, Debug, Default)]
pub struct Specs {
    /// Read the rulebook from this folder in place of the embedded one.
    #[arg(long, value_name = "DIR", env = "CONFORMANT_SPECS")]
    pub specs: Option<PathBuf>,
}

/// Reports to write.
#[derive(Args, Clone, Debug, Default)]
pub struct Reports {
    /// Write a report: json, junit, html, markdown, sarif, tap, ctrf, github, badge or statement, and
    /// where (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, as `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM=dumb` have it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What is said on the console.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ConsoleArgs {
    /// Coloured output.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub color: When,
    /// Say what is wrong in a line each, and the conclusion.
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say everything, however long; otherwise at most 400 lines.
    #[arg(long, short)]
    pub verbose: bool,
}

/// `conformant run`.
#[derive(Args, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct RunArgs {
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    /// Only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// Only scenarios whose id matches; `*` stands for any text.
    #[arg(long = "filter", value_name = "GLOB", add = ArgValueCompleter::new(completing::scenarios))]
    pub filters: Vec<String>,
    /// Further scenario files: DIR/SERVICE/TOPIC.yaml.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Reports.
    #[command(flatten)]
    pub reports: Reports,
    /// Console.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Accepted failures, each with reason and expiry.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// A part of the scenarios, `hash:M/N` or `slice:M/N`.
    #[arg(long, value_name = "PART")]
    pub partition: Option<String>,
    /// Scenarios side by side [default: 8].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// Seed of names, identifiers and order.
    #[arg(long, value_name = "N", env = "CONFORMANT_SEED")]
    pub seed: Option<u64>,
    /// Run in an order drawn from the seed.
    #[arg(long)]
    pub shuffle: bool,
    /// Findings of level `should` fail the run too.
    #[arg(long)]
    pub strict: bool,
    /// Exit 4 unless every selected must-rule was judged that a run can judge.
    #[arg(long)]
    pub require_complete: bool,
    /// Exit 4 unless so many percent of the must-rules that were tried could be judged.
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub min_judged: u8,
    /// Prove what a pass is worth: change what was answered, one place at a time, and judge again: off, each rule (rules), and
    /// how much of all would be noticed (sample).
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub prove: Prove,
    /// Keep the record of each run in this folder, and tell what changed since the last ones.
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,
    /// Only what failed the last time.
    #[arg(long, value_name = "WHICH")]
    pub rerun: Option<Rerun>,
    /// Only scenarios that the rulebook's changes since this git revision touch.
    #[arg(long, value_name = "REF")]
    pub since: Option<String>,
    /// Show the requests of each scenario and send nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The longest the whole run may take, such as 10m.
    #[arg(long, value_name = "DURATION")]
    pub global_timeout: Option<String>,
}

/// How far a run proves itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Prove {
    /// Not at all.
    Off,
    /// Each rule that passed is to be broken by some change of the answers.
    #[default]
    Rules,
    /// That, and answers are changed at random.
    Sample,
}

/// Whose CI is to run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Forge {
    /// A workflow.
    Github,
    /// A job.
    Gitlab,
    /// No file.
    None,
}

/// `conformant init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow. Asked for when left out
    /// at a terminal.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body [default: stubs in hooks/].
    #[arg(long, value_name = "URL")]
    pub hooks: Option<String>,
    /// CI file to write [default: for the forge whose files are found].
    #[arg(long, value_name = "FORGE")]
    pub ci: Option<Forge>,
    /// Folder to write to; files that are there stay as they are.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// `conformant doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant baseline`.
#[derive(Args, Debug)]
pub struct BaselineArgs {
    /// The record of a run (`--report json=PATH`).
    #[arg(value_name = "RUN.json", default_value = "reports/run.json")]
    pub run: PathBuf,
    /// The waivers: what is there stays, what fails is added.
    #[arg(long, value_name = "FILE", default_value = "waivers.yaml")]
    pub out: PathBuf,
    /// Take out what was judged and passed, add nothing.
    #[arg(long)]
    pub update: bool,
    /// Why the failures are accepted.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Who sees to them.
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// The last day on which they are accepted [default: in 90 days].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub expires: Option<String>,
    /// Accept findings of level `should` too.
    #[arg(long)]
    pub strict: bool,
}

/// Which scenarios are run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rerun {
    /// Those that did not pass in the last run.
    LastFailed,
}

/// `conformant serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Switch a fault on.
    #[arg(long = "fault", value_name = "ID", add = ArgValueCompleter::new(completing::faults))]
    pub faults: Vec<String>,
    /// Switch a variant on.
    #[arg(long = "variant", value_name = "ID", add = ArgValueCompleter::new(completing::variants))]
    pub variants: Vec<String>,
    /// Seed of identifiers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Judge what clients send: each finding at once, all of them at the end, and the exit code by them.
    #[arg(long, value_enum, value_name = "SIDE")]
    pub judge: Option<OfClients>,
    /// Reports, with --judge.
    #[command(flatten)]
    pub reports: Reports,
    /// Console.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Findings of level `should` fail too.
    #[arg(long)]
    pub strict: bool,
}

/// Whom the reference judges: not itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OfClients {
    /// What clients send.
    Requests,
}

/// Whom traffic is judged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// What clients send and what services answer.
    #[default]
    Both,
    /// What clients send.
    Requests,
    /// What services answer.
    Responses,
}

/// `conformant proxy`.
#[derive(Args, Debug)]
pub struct ProxyArgs {
    /// Base URL of the target behind `/SERVICE`: auth, chat, media, flow, or all for `URL/SERVICE` of
    /// each.
    #[arg(long = "upstream", value_name = "SERVICE=URL", required = true)]
    pub upstreams: Vec<String>,
    /// Port to listen on, on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// End after this time, such as 10m; otherwise a signal ends it.
    #[arg(long = "for", value_name = "DURATION")]
    pub time: Option<String>,
    /// End after so many requests.
    #[arg(long, value_name = "N")]
    pub max_exchanges: Option<usize>,
    /// Judge what clients send, what services answer, or both.
    #[arg(long, value_enum, value_name = "SIDE", default_value_t)]
    pub judge: Side,
    /// Nobody but this traffic acts on the targets: what exists, and what may not have changed
    /// meanwhile, is judged too.
    #[arg(long)]
    pub alone: bool,
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Reports.
    #[command(flatten)]
    pub reports: Reports,
    /// Console.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Findings of level `should` fail too.
    #[arg(long)]
    pub strict: bool,
}

/// `conformant explore`.
#[derive(Args, Debug)]
pub struct ExploreArgs {
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow. The reference
    /// when left out.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    /// Only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// How long: a time, such as 60s, or a number of sequences, which makes the output the same each time [default: 10s].
    #[arg(long, value_name = "TIME|N")]
    pub budget: Option<String>,
    /// Draws the sequences.
    #[arg(long, value_name = "N", env = "CONFORMANT_SEED")]
    pub seed: Option<u64>,
    /// Save each finding as a scenario that `run --scenarios DIR` plays.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Send nothing that writes, and ask nobody to do anything.
    #[arg(long)]
    pub only_safe: bool,
    /// Sequences side by side [default: 2].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant selftest`.
#[derive(Args, Debug)]
pub struct SelftestArgs {
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Only faults and variants whose id matches; `*` stands for any text.
    #[arg(long = "filter", value_name = "GLOB")]
    pub filters: Vec<String>,
    /// Draw N sequences of requests instead, without any story, and say which faults they find.
    #[arg(long, value_name = "N", conflicts_with = "pairs")]
    pub explore: Option<u64>,
    /// Try N pairs of variants and N pairs of defects instead, drawn at random.
    #[arg(long, value_name = "N")]
    pub pairs: Option<usize>,
    /// What the pairs are drawn by.
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "pairs")]
    pub seed: u64,
    /// Write the kill matrix: `json=PATH` or `markdown=PATH`.
    #[command(flatten)]
    pub reports: Reports,
    /// Runs side by side.
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
}

/// `conformant check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Files to judge, plain or packed by gzip or zstd; folders and patterns (`*`) stand for their
    /// files, `-` for standard input.
    #[arg(required = true, value_name = "FILE|DIR|GLOB")]
    pub files: Vec<PathBuf>,
    /// What they are: SERVICE/RESOURCE (`[]` for a list page), events/NAME/VERSION, an event type,
    /// events (each with its type and schema address beside it), har, token or qr.
    #[arg(long = "as", value_name = "KIND", add = ArgValueCompleter::new(completing::kinds))]
    pub kind: String,
    /// With `--as events`: JSON Pointer to an event's type [default: /type, as in CloudEvents].
    #[arg(long, value_name = "POINTER")]
    pub type_at: Option<String>,
    /// With `--as events`: JSON Pointer to the address of its schema [default: /dataschema].
    #[arg(long, value_name = "POINTER")]
    pub schema_at: Option<String>,
    /// With `--as events`: JSON Pointer to its payload [default: /data].
    #[arg(long, value_name = "POINTER")]
    pub payload_at: Option<String>,
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The moment at which tokens are judged, such as 2026-01-01T00:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// For har: judge what clients sent, what services answered, or both [default: both].
    #[arg(long, value_enum, value_name = "SIDE", hide_possible_values = true)]
    pub judge: Option<Side>,
    /// For har: nobody but this traffic acts on the targets: what exists, and what may not have changed
    /// meanwhile, is judged too.
    #[arg(long)]
    pub alone: bool,
    /// Threads that judge lines side by side [default: as many as there are processors].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Reports.
    #[command(flatten)]
    pub reports: Reports,
    /// Console.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Findings of level `should` fail too.
    #[arg(long)]
    pub strict: bool,
}

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
    /// A file for each kind, one document a line.
    Ndjson,
}

/// `conformant fixtures generate`.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// What to make: SERVICE/RESOURCE (`[]` for a list page), SERVICE/OPERATION for a request body,
    /// events/NAME/VERSION or an event type; `*` stands for any text [default: everything].
    #[arg(long = "kind", value_name = "KIND", add = ArgValueCompleter::new(completing::kinds))]
    pub kinds: Vec<String>,
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
    /// such as MessageSent/5.
    #[arg(long, value_name = "EVENT/VERSION")]
    pub against: Option<String>,
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
    /// A Postman collection 2.1 of every operation's happy path, which runs against `serve`.
    Postman,
    /// HAR 1.2: every exchange of an offline run, without secrets.
    Har,
    /// Hurl: every story of an offline run, which runs against `serve`.
    Hurl,
    /// Pact 4: interactions of each service, with what their provider states need.
    Pact,
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

/// `conformant explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Id of a rule, open point, fault, variant, operation, scenario, hook, kind, event, key of the
    /// configuration or cause of a transport fault.
    #[arg(add = ArgValueCompleter::new(completing::explainable))]
    pub id: String,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    Rules,
    Requests,
    Operations,
    Scenarios,
    OpenPoints,
    Faults,
    Variants,
    Hooks,
    Kinds,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A line each.
    #[default]
    Text,
    /// A JSON array.
    Json,
}

/// `conformant list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// What to list.
    pub what: Listed,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// Only ids that match; `*` stands for any text.
    #[arg(long = "filter", value_name = "GLOB")]
    pub filters: Vec<String>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// The folder with the documents.
    #[arg(value_name = "DIR")]
    pub documents: PathBuf,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Write documents.lock anew from the rulebook's citations, keeping what was classified by hand.
    #[arg(long)]
    pub update: bool,
}

/// File formats with a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    Scenario,
    Rules,
    OpenPoints,
    Config,
    Waivers,
    Declared,
    /// The record of a run: `--report json=FILE`.
    Record,
}

/// `conformant schema`.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Which format.
    pub name: SchemaName,
}

/// `conformant completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// For which shell.
    pub shell: clap_complete::Shell,
}

/// `conformant docs`.
#[derive(Args, Debug)]
pub struct DocsArgs {
    /// Port to listen on, on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// `conformant man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Write a page for each command into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
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
    /// Write the comparison: text, json, markdown or junit, and where (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
}

/// `conformant compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Record of the first run, as `run --report json=FILE` writes it.
    #[arg(value_name = "A.json")]
    pub a: PathBuf,
    /// Record of the second run.
    #[arg(value_name = "B.json")]
    pub b: PathBuf,
    /// Write the difference: text, json or markdown, and where (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
    /// Exit 1 on any failing finding that the first run does not have, also of a rule that it broke
    /// elsewhere.
    #[arg(long)]
    pub fail_on_new: bool,
}

/// `conformant judge`.
#[derive(Args, Debug)]
pub struct JudgeArgs {
    /// Record of the run.
    #[arg(value_name = "RUN.json")]
    pub run: PathBuf,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Accepted failures, each with reason and expiry.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// Findings of level `should` fail too.
    #[arg(long)]
    pub strict: bool,
    /// Reports.
    #[command(flatten)]
    pub reports: Reports,
    /// Console.
    #[command(flatten)]
    pub console: ConsoleArgs,
}

/// `conformant history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// The folder that `run --history` keeps records in.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// `conformant merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// Records of the parts.
    #[arg(required = true, value_name = "RUN.json")]
    pub runs: Vec<PathBuf>,
    /// Findings of level `should` fail too.
    #[arg(long)]
    pub strict: bool,
    /// Reports of the whole run.
    #[command(flatten)]
    pub reports: Reports,
    /// Console.
    #[command(flatten)]
    pub console: ConsoleArgs,
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
