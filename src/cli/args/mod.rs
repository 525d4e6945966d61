//! The arguments of every command (the public surface: change it only with a note in CHANGELOG): those of
//! commands that judge in `judging`, of those that write something to use in `making`, and here the commands
//! themselves, what several share, and what only looks things up.

mod judging;
mod making;

pub(super) use judging::*;
pub(super) use making::*;

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
    /// Removed: the book is in docs/src.
    #[command(hide = true)]
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

/// What a judgement is told in, and what fails it.
#[derive(Args, Clone, Debug, Default)]
pub struct Telling {
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
    Events,
    Keys,
    Causes,
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
    /// What is known of a service: `service.yaml`.
    Service,
    OpenPoints,
    Config,
    Waivers,
    Declared,
    /// The record of a run: `--report json=FILE`.
    Record,
    /// What a set of fixtures says of itself: `manifest.json`.
    Manifest,
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
