//! Arguments of every command. They are public: a change needs a line in CHANGELOG.
//!
//! - `judging`: commands that judge or read stored runs
//! - `making`: commands that write files for other tools
//! - `groups`: the help of the program
//! - here: the list of commands, shared arguments, and commands that look something up

mod groups;
mod judging;
mod making;

pub(super) use groups::GUIDE;
pub(super) use judging::*;
pub(super) use making::*;

use super::completing;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// Conformance test harness and fixture generator; it needs no network.
///
/// Without a target, `conformant run` judges its own reference implementation.
#[derive(Debug, Parser)]
#[command(name = "conformant", version, max_term_width = 100, help_template = groups::template())]
pub struct Cli {
    /// Subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the scenarios against targets or the reference, and judge the responses.
    Run(RunArgs),
    /// Write a configuration, stubs of hooks and a CI file, or a rulebook folder from an OpenAPI document.
    Init(InitArgs),
    /// Check whether a run can judge the configured targets, and what it would leave out.
    Doctor(DoctorArgs),
    /// Accept the present failures of a run for a while, so that only new ones fail.
    Baseline(BaselineArgs),
    /// Serve the reference to client teams, with optional faults and variations.
    Serve(ServeArgs),
    /// Send random requests, judge the responses, and print findings as scenarios.
    Explore(ExploreArgs),
    /// Write a finding of a stored run as the shortest chain of requests that leads to it.
    Reproduce(super::reproduce::ReproduceArgs),
    /// Check that every fault is caught and every allowed variation passes.
    Selftest(SelftestArgs),
    /// Judge payload files offline.
    Check(CheckArgs),
    /// Forward traffic to targets and judge it.
    Proxy(ProxyArgs),
    /// Generate, verify or export fixtures.
    #[command(subcommand)]
    Fixtures(FixturesCommand),
    /// Build a registration token or its QR code.
    Token(TokenArgs),
    /// Explain an id, such as that of a rule, scenario, fault, hook or setting.
    Explain(ExplainArgs),
    /// List rules, scenarios, faults, hooks, types and the like.
    List(ListArgs),
    /// Removed: the book is in docs/src.
    #[command(hide = true)]
    Docs {
        /// Ignored.
        #[arg(long)]
        port: Option<u16>,
    },
    /// Write the embedded rulebook into a folder, to read or extend it.
    #[command(subcommand)]
    Specs(SpecsCommand),
    /// Check that every sentence of the documents is classified.
    Trace(TraceArgs),
    /// Compare two rulebooks or revisions, and report breaking changes.
    Diff(DiffArgs),
    /// Compare two stored runs side by side.
    Compare(CompareArgs),
    /// Judge a stored run with the present rulebook and waivers.
    Judge(JudgeArgs),
    /// Judge the evidence of a statement again, and check that it has the same verdicts.
    Verify(VerifyStatementArgs),
    /// Merge the records of a run's partitions into one.
    Merge(MergeArgs),
    /// Show the runs of several implementations side by side, by service and feature.
    Report(ReportArgs),
    /// Show trends, first failures and flaky rules of a `run --history` folder.
    History(HistoryArgs),
    /// Create the next version of an event.
    Events(EventsArgs),
    /// Print the JSON Schema of a file format, for editors.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command.
    Man(ManArgs),
}

/// Source of the rulebook.
#[derive(Args, Clone, Debug, Default)]
pub struct Specs {
    /// Read the rulebook from this folder instead of the embedded one.
    #[arg(long, value_name = "DIR", env = "CONFORMANT_SPECS")]
    pub specs: Option<PathBuf>,
}

/// What is judged, from the configuration and from flags.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Read this configuration [default: the nearest conformant.yaml, up to the root of the repository].
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Set the base URL of a service; `all=URL` means URL/auth, URL/chat, URL/media and URL/flow.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Call hooks below this URL: hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    #[command(flatten)]
    pub specs: Specs,
}

/// Reports to write.
#[derive(Args, Clone, Debug, Default)]
pub struct Reports {
    /// Write a report: json, jsonl, dir, junit, html, markdown, sarif, ctrf, github or statement, and a path (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` or `TERM=dumb` say otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Console output.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ConsoleArgs {
    /// Set when to use colors.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub color: When,
    /// Print one line for each problem, and the verdict.
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print everything; otherwise at most 400 lines.
    #[arg(long, short)]
    pub verbose: bool,
}

/// Reports, console output and what counts as a failure.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    #[command(flatten)]
    pub reports: Reports,
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Also fail on findings of level `should`.
    #[arg(long)]
    pub strict: bool,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Id of a rule, unspecified behavior, fault, variation, operation, scenario, hook, type, event, setting or cause.
    #[arg(add = ArgValueCompleter::new(completing::explainable))]
    pub id: String,
    #[command(flatten)]
    pub specs: Specs,
}

/// Lists that `list` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    Rules,
    Requests,
    Operations,
    Scenarios,
    OpenPoints,
    Faults,
    #[value(alias = "variations")]
    Variants,
    Hooks,
    #[value(alias = "types")]
    Kinds,
    Events,
    Keys,
    Causes,
}

/// Output format of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// One line for each item.
    #[default]
    Text,
    /// A JSON array.
    Json,
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// What to list.
    pub what: Listed,
    /// Set the output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// List only ids that match; `*` matches any text.
    #[arg(long = "filter", value_name = "GLOB")]
    pub filters: Vec<String>,
    #[command(flatten)]
    pub specs: Specs,
}

#[derive(Args, Debug)]
pub struct TraceArgs {
    /// Folder with the documents.
    #[arg(value_name = "DIR")]
    pub documents: PathBuf,
    #[command(flatten)]
    pub specs: Specs,
    /// Write documents.lock again from the citations of the rulebook; entries classified by hand are kept.
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
    /// Claims of an implementation: `claims.yaml`.
    Claims,
    Declared,
    /// Record of a run, from `--report json=FILE`.
    Record,
    /// One line of `--report jsonl=FILE`.
    Jsonl,
    /// Manifest of a fixture set, `manifest.json`.
    Manifest,
}

#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// File format.
    pub name: SchemaName,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Shell.
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Write a page for each command into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// A count that must not be zero.
fn at_least_one<N: std::str::FromStr + PartialEq + From<u8>>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number != N::from(0));
    number.ok_or_else(|| "expected a number from 1".to_owned())
}
